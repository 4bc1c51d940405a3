//! The offset index, `<base>.index`.
//!
//! | position in entry | type | field |
//! |---|---|---|
//! | 0 | i32 | last offset of a batch − base offset |
//! | 4 | i32 | where that batch starts in the `.log` file |
//!
//! 1. Offsets and positions increase strictly; the first batch of a segment is never indexed, so
//!    no entry is all zeros.
//! 2. Every batch that starts before an entry's position ends before the entry's offset. That is
//!    all a lookup needs, because a forward scan follows. The table is what 3.9.1 and 4.3 write;
//!    0.9 to 1.1 store the *first* offset of the batch, 2.8 the last offset of a whole append,
//!    which can be several batches.
//! 3. The active segment's file is preallocated with zeros; they stay after a crash.
//!
//! Written on append about every `index.interval.bytes`, fsynced with its segment. A missing or
//! wrong index is rebuilt from the log.

use super::{relative_to, without_zero_tail};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::record::CorruptKind;

/// Bytes of an entry.
pub const OFFSET_ENTRY_BYTES: usize = 8;

/// One entry, with its offset made absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetEntry {
    /// An offset that no batch before the position reaches.
    pub offset: i64,
    /// Where a batch starts in the `.log` file.
    pub position: u32,
}

impl OffsetEntry {
    fn decode(base_offset: i64, raw: [u8; OFFSET_ENTRY_BYTES]) -> Self {
        let [o0, o1, o2, o3, p0, p1, p2, p3] = raw;
        let relative = i32::from_be_bytes([o0, o1, o2, o3]);
        Self {
            offset: base_offset.saturating_add(i64::from(relative)),
            position: u32::from_be_bytes([p0, p1, p2, p3]),
        }
    }

    /// The entry's bytes; `None` when offset or position do not fit an index with this base.
    pub fn encode(self, base_offset: i64) -> Option<[u8; OFFSET_ENTRY_BYTES]> {
        let [o0, o1, o2, o3] = relative_to(base_offset, self.offset)?.to_be_bytes();
        let [p0, p1, p2, p3] = i32::try_from(self.position).ok()?.to_be_bytes();
        Some([o0, o1, o2, o3, p0, p1, p2, p3])
    }
}

/// The bytes of an offset index.
#[derive(Debug, Clone, Copy)]
pub struct OffsetIndexView<'a> {
    base_offset: i64,
    entries: &'a [[u8; OFFSET_ENTRY_BYTES]],
    valid: usize,
    torn_bytes: usize,
}

impl<'a> OffsetIndexView<'a> {
    /// A view of the file's bytes. Takes time in proportion to the zeros at the end, if any.
    pub fn new(base_offset: i64, bytes: &'a [u8]) -> Self {
        let (entries, torn) = bytes.as_chunks();
        Self { base_offset, entries, valid: without_zero_tail(entries), torn_bytes: torn.len() }
    }

    /// Whole entries in the file, zeros at the end included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the file holds no whole entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries before the zeros at the end; only these are searched and checked.
    pub fn valid_entries(&self) -> usize {
        self.valid
    }

    /// Bytes after the last whole entry, which are ignored.
    pub fn torn_bytes(&self) -> usize {
        self.torn_bytes
    }

    /// The entry at an index below [`Self::len`].
    pub fn entry(&self, index: usize) -> Option<OffsetEntry> {
        let raw = self.entries.get(index)?;
        Some(OffsetEntry::decode(self.base_offset, *raw))
    }

    /// The valid entries in their order.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = OffsetEntry> + ExactSizeIterator + use<'a> {
        let base_offset = self.base_offset;
        let decode = move |raw: &[u8; OFFSET_ENTRY_BYTES]| OffsetEntry::decode(base_offset, *raw);
        self.valid_slice().iter().map(decode)
    }

    /// The greatest entry whose offset is not above the target; `None` means the segment's start.
    pub fn lookup(&self, target: i64) -> Option<OffsetEntry> {
        let at_or_below = |raw: &[u8; OFFSET_ENTRY_BYTES]| {
            OffsetEntry::decode(self.base_offset, *raw).offset <= target
        };
        let after = self.valid_slice().partition_point(at_or_below);
        // An unsorted, damaged index can lead the search astray, but never above the target.
        self.entry(after.checked_sub(1)?).filter(|entry| entry.offset <= target)
    }

    /// Checks what every index written by Kafka keeps.
    pub fn sanity(&self) -> Result<(), CorruptKind> {
        if self.torn_bytes != 0 {
            return Err(CorruptKind::Side("offset index ends inside an entry"));
        }
        let mut previous: Option<OffsetEntry> = None;
        for entry in self.iter() {
            if entry.offset < self.base_offset {
                return Err(CorruptKind::Side("offset index entry is below the base offset"));
            }
            if u64::from(entry.position) > SEGMENT_BYTES_MAX {
                return Err(CorruptKind::Side("offset index position is negative"));
            }
            if previous.is_some_and(|previous| previous.offset >= entry.offset) {
                return Err(CorruptKind::Side("offset index offsets do not increase"));
            }
            if previous.is_some_and(|previous| previous.position >= entry.position) {
                return Err(CorruptKind::Side("offset index positions do not increase"));
            }
            previous = Some(entry);
        }
        Ok(())
    }

    fn valid_slice(&self) -> &'a [[u8; OFFSET_ENTRY_BYTES]] {
        self.entries.get(..self.valid).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const EXAMPLE: [u8; 16] = [
        0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x10, 0x36, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x20,
        0x6c,
    ];

    fn entry(offset: i64, position: u32) -> OffsetEntry {
        OffsetEntry { offset, position }
    }

    fn encode(base_offset: i64, entries: &[OffsetEntry]) -> Vec<u8> {
        let raw = entries.iter().map(|entry| entry.encode(base_offset).unwrap());
        raw.flatten().collect()
    }

    #[test]
    fn the_published_example_reads_and_writes() {
        let view = OffsetIndexView::new(1000, &EXAMPLE);
        let entries: Vec<_> = view.iter().collect();
        assert_eq!(entries, [entry(1009, 4150), entry(1019, 8300)]);
        assert_eq!(encode(1000, &entries), EXAMPLE);
        assert_eq!(view.sanity(), Ok(()));
        assert_eq!(view.lookup(1008), None);
        assert_eq!(view.lookup(1009), Some(entry(1009, 4150)));
        assert_eq!(view.lookup(1018), Some(entry(1009, 4150)));
        assert_eq!(view.lookup(i64::MAX), Some(entry(1019, 8300)));
    }

    #[test]
    fn preallocated_zeros_are_no_entries_and_a_torn_end_is_reported() {
        let mut bytes = EXAMPLE.to_vec();
        bytes.extend([0; 8 * 1000 + 3]);
        let view = OffsetIndexView::new(1000, &bytes);
        assert_eq!((view.len(), view.valid_entries(), view.torn_bytes()), (1002, 2, 3));
        assert_eq!(view.lookup(5000), Some(entry(1019, 8300)));
        assert_eq!(view.sanity().unwrap_err().name(), "side_file");
        let empty = OffsetIndexView::new(1000, &[0; 64]);
        assert_eq!((empty.valid_entries(), empty.lookup(5000)), (0, None));
        assert_eq!(empty.sanity(), Ok(()));
        assert!(OffsetIndexView::new(0, &[1; 7]).is_empty());
    }

    #[test]
    fn entries_that_do_not_fit_are_not_encoded() {
        assert_eq!(entry(999, 0).encode(1000), None);
        assert_eq!(entry(1000 + (1 << 31), 0).encode(1000), None);
        assert_eq!(entry(1000, 1 << 31).encode(1000), None);
        assert_eq!(entry(i64::MAX, 1).encode(i64::MIN), None);
    }

    #[test]
    fn sanity_names_the_broken_rule() {
        let check = |bytes: &[u8]| match OffsetIndexView::new(1000, bytes).sanity() {
            Err(CorruptKind::Side(why)) => why,
            other => panic!("{other:?}"),
        };
        let mut below = EXAMPLE;
        below[0] = 0xff;
        assert!(check(&below).contains("below the base"));
        let mut negative = EXAMPLE;
        negative[4] = 0x80;
        assert!(check(&negative).contains("negative"));
        let mut offsets = EXAMPLE;
        offsets[11] = 9;
        assert!(check(&offsets).contains("offsets do not increase"));
        let mut positions = EXAMPLE;
        positions[14] = 0x10;
        positions[15] = 0x36;
        assert!(check(&positions).contains("positions do not increase"));
    }

    #[test]
    fn search_equals_linear_search() {
        let mut random = Random::new(3);
        let mut found = 0;
        for _ in 0..20_000 {
            let base = i64::try_from(random.next() >> 2).unwrap();
            let (mut offset, mut position) = (base, 0);
            let entries: Vec<_> = (0..random.below(60))
                .map(|_| {
                    offset += 1 + i64::try_from(random.below(4)).unwrap();
                    position += 1 + u32::try_from(random.below(5000)).unwrap();
                    entry(offset, position)
                })
                .collect();
            let mut bytes = encode(base, &entries);
            bytes.resize(bytes.len() + 8 * random.below(20) + random.below(8), 0);
            let view = OffsetIndexView::new(base, &bytes);
            for _ in 0..50 {
                let target = base - 3 + i64::try_from(random.below(160)).unwrap();
                let expected = entries.iter().rev().find(|entry| entry.offset <= target);
                assert_eq!(view.lookup(target).as_ref(), expected);
                found += usize::from(expected.is_some());
            }
        }
        assert!(found > 500_000, "{found} of 1,000,000 searches found an entry");
    }

    #[test]
    fn a_damaged_index_never_answers_above_the_target() {
        let mut random = Random::new(4);
        for _ in 0..50_000 {
            let bytes: Vec<u8> =
                (0..random.below(120)).map(|_| random.next().to_be_bytes()[7]).collect();
            let base = random.next().cast_signed();
            let view = OffsetIndexView::new(base, &bytes);
            let target = random.next().cast_signed();
            assert!(view.lookup(target).is_none_or(|entry| entry.offset <= target));
            let _ = view.sanity();
        }
    }
}

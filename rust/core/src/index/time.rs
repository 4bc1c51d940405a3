//! The time index, `<base>.timeindex`.
//!
//! | position in entry | type | field |
//! |---|---|---|
//! | 0 | i64 | largest timestamp of the segment so far |
//! | 8 | i32 | offset − base offset, where that timestamp was first reached |
//!
//! 1. Timestamps increase strictly, offsets do not decrease.
//! 2. Every record up to an entry's offset has a timestamp not above the entry's, so a record with
//!    a larger timestamp lies after it.
//! 3. Releases from 3.9.1 on store the last offset of the batch, older ones that of the record
//!    itself: an offset need not be a batch's end.
//! 4. The last entry of a closed segment is the segment's largest timestamp.
//! 5. The active segment's file is preallocated with zeros; they stay after a crash.
//!
//! Zeros are also an honest entry, timestamp 0 at the base offset, but only as the first one. It
//! counts as written when it stands alone; before further zeros it cannot be told from them, and
//! leaving it out only makes a search start at the segment's start.

use super::{relative_to, without_zero_tail};
use crate::record::CorruptKind;

/// Bytes of an entry.
pub const TIME_ENTRY_BYTES: usize = 12;

/// One entry, with its offset made absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeEntry {
    /// No record up to the offset has a larger timestamp.
    pub timestamp: i64,
    /// Where the timestamp was first reached.
    pub offset: i64,
}

impl TimeEntry {
    fn decode(base_offset: i64, raw: [u8; TIME_ENTRY_BYTES]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, o0, o1, o2, o3] = raw;
        let relative = i32::from_be_bytes([o0, o1, o2, o3]);
        Self {
            timestamp: i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            offset: base_offset.saturating_add(i64::from(relative)),
        }
    }

    /// The entry's bytes; `None` when the offset does not fit an index with this base.
    pub fn encode(self, base_offset: i64) -> Option<[u8; TIME_ENTRY_BYTES]> {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = self.timestamp.to_be_bytes();
        let [o0, o1, o2, o3] = relative_to(base_offset, self.offset)?.to_be_bytes();
        Some([t0, t1, t2, t3, t4, t5, t6, t7, o0, o1, o2, o3])
    }
}

/// The bytes of a time index.
#[derive(Debug, Clone, Copy)]
pub struct TimeIndexView<'a> {
    base_offset: i64,
    entries: &'a [[u8; TIME_ENTRY_BYTES]],
    valid: usize,
    torn_bytes: usize,
}

impl<'a> TimeIndexView<'a> {
    /// A view of the file's bytes. Takes time in proportion to the zeros at the end, if any.
    pub fn new(base_offset: i64, bytes: &'a [u8]) -> Self {
        let (entries, torn) = bytes.as_chunks();
        let valid = match entries {
            [_] => 1,
            _ => without_zero_tail(entries),
        };
        Self { base_offset, entries, valid, torn_bytes: torn.len() }
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
    pub fn entry(&self, index: usize) -> Option<TimeEntry> {
        let raw = self.entries.get(index)?;
        Some(TimeEntry::decode(self.base_offset, *raw))
    }

    /// The valid entries in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = TimeEntry> + ExactSizeIterator + use<'a> {
        let base_offset = self.base_offset;
        let decode = move |raw: &[u8; TIME_ENTRY_BYTES]| TimeEntry::decode(base_offset, *raw);
        self.valid_slice().iter().map(decode)
    }

    /// The greatest entry whose timestamp is not above the target; `None` means the segment's
    /// start. Records with a timestamp above the entry's stand after its offset.
    pub fn lookup(&self, timestamp: i64) -> Option<TimeEntry> {
        let at_or_below = |raw: &[u8; TIME_ENTRY_BYTES]| {
            TimeEntry::decode(self.base_offset, *raw).timestamp <= timestamp
        };
        let after = self.valid_slice().partition_point(at_or_below);
        // An unsorted, damaged index can lead the search astray, but never above the target.
        self.entry(after.checked_sub(1)?).filter(|entry| entry.timestamp <= timestamp)
    }

    /// Checks what every index written by Kafka keeps.
    pub fn sanity(&self) -> Result<(), CorruptKind> {
        if self.torn_bytes != 0 {
            return Err(CorruptKind::Side("time index ends inside an entry"));
        }
        let mut previous: Option<TimeEntry> = None;
        for entry in self.iter() {
            if entry.offset < self.base_offset {
                return Err(CorruptKind::Side("time index entry is below the base offset"));
            }
            if previous.is_some_and(|previous| previous.timestamp >= entry.timestamp) {
                return Err(CorruptKind::Side("time index timestamps do not increase"));
            }
            if previous.is_some_and(|previous| previous.offset > entry.offset) {
                return Err(CorruptKind::Side("time index offsets decrease"));
            }
            previous = Some(entry);
        }
        Ok(())
    }

    fn valid_slice(&self) -> &'a [[u8; TIME_ENTRY_BYTES]] {
        self.entries.get(..self.valid).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const T0: i64 = 1_700_000_000_000;
    const EXAMPLE: [u8; 36] = [
        0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x09, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x01,
        0x8b, 0xcf, 0xe5, 0x68, 0x13, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5,
        0x68, 0x19, 0x00, 0x00, 0x00, 0x19,
    ];

    fn entry(timestamp: i64, offset: i64) -> TimeEntry {
        TimeEntry { timestamp, offset }
    }

    fn encode(base_offset: i64, entries: &[TimeEntry]) -> Vec<u8> {
        let raw = entries.iter().map(|entry| entry.encode(base_offset).unwrap());
        raw.flatten().collect()
    }

    #[test]
    fn the_published_example_reads_and_writes() {
        let view = TimeIndexView::new(1000, &EXAMPLE);
        let entries: Vec<_> = view.iter().collect();
        assert_eq!(entries, [entry(T0 + 9, 1009), entry(T0 + 19, 1019), entry(T0 + 25, 1025)]);
        assert_eq!(encode(1000, &entries), EXAMPLE);
        assert_eq!(view.sanity(), Ok(()));
        assert_eq!(view.lookup(T0 + 8), None);
        assert_eq!(view.lookup(T0 + 18), Some(entry(T0 + 9, 1009)));
        assert_eq!(view.lookup(T0 + 19), Some(entry(T0 + 19, 1019)));
    }

    #[test]
    fn zeros_are_an_entry_only_when_they_stand_alone() {
        assert_eq!(TimeIndexView::new(5, &[0; 12]).lookup(0), Some(entry(0, 5)));
        assert_eq!(TimeIndexView::new(5, &[0; 24]).valid_entries(), 0);
        let mut later = [0; 36];
        later[11] = 0;
        later[19] = 1;
        let view = TimeIndexView::new(5, &later);
        assert_eq!((view.len(), view.valid_entries()), (3, 2));
        assert_eq!(view.sanity(), Ok(()));
        let mut torn = EXAMPLE.to_vec();
        torn.extend([0; 12 * 5 + 11]);
        let view = TimeIndexView::new(1000, &torn);
        assert_eq!((view.len(), view.valid_entries(), view.torn_bytes()), (8, 3, 11));
        assert!(view.sanity().is_err());
    }

    #[test]
    fn sanity_names_the_broken_rule() {
        let check = |bytes: &[u8]| match TimeIndexView::new(1000, bytes).sanity() {
            Err(CorruptKind::Side(why)) => why,
            other => panic!("{other:?}"),
        };
        let mut below = EXAMPLE;
        below[8] = 0x80;
        assert!(check(&below).contains("below the base"));
        let mut equal = EXAMPLE;
        equal[19] = 0x09;
        assert!(check(&equal).contains("timestamps do not increase"));
        let mut offsets = EXAMPLE;
        offsets[35] = 0x12;
        assert!(check(&offsets).contains("offsets decrease"));
        let mut same_offset = EXAMPLE;
        same_offset[35] = 0x13;
        assert_eq!(TimeIndexView::new(1000, &same_offset).sanity(), Ok(()));
    }

    #[test]
    fn search_equals_linear_search() {
        let mut random = Random::new(5);
        let mut found = 0;
        for _ in 0..20_000 {
            let (mut timestamp, mut offset) = (T0, 70_i64);
            let entries: Vec<_> = (0..random.below(60))
                .map(|_| {
                    timestamp += 1 + i64::try_from(random.below(4)).unwrap();
                    offset += i64::try_from(random.below(3)).unwrap();
                    entry(timestamp, offset)
                })
                .collect();
            let mut bytes = encode(70, &entries);
            bytes.resize(bytes.len() + 12 * random.below(20) + random.below(12), 0);
            let view = TimeIndexView::new(70, &bytes);
            for _ in 0..50 {
                let target = T0 - 3 + i64::try_from(random.below(160)).unwrap();
                let mut expected = entries.iter().rev().find(|entry| entry.timestamp <= target);
                // A lone zero entry is taken as written.
                let lone = entry(0, 70);
                if entries.is_empty() && view.len() == 1 {
                    expected = Some(&lone);
                }
                assert_eq!(view.lookup(target).as_ref(), expected);
                found += usize::from(expected.is_some());
            }
        }
        assert!(found > 500_000, "{found} of 1,000,000 searches found an entry");
    }

    #[test]
    fn a_damaged_index_never_answers_above_the_target() {
        let mut random = Random::new(6);
        for _ in 0..50_000 {
            let bytes: Vec<u8> =
                (0..random.below(120)).map(|_| random.next().to_be_bytes()[7]).collect();
            let view = TimeIndexView::new(random.next().cast_signed(), &bytes);
            let target = random.next().cast_signed();
            assert!(view.lookup(target).is_none_or(|entry| entry.timestamp <= target));
            let _ = view.sanity();
        }
    }
}

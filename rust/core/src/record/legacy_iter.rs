//! Records inside a version 0 or 1 message.
//!
//! A plain message is one record. A wrapper inflates to a set of messages, one behind the other,
//! each with its own framing:
//!
//! | | version 0 | version 1 |
//! |---|---|---|
//! | inner offsets | absolute | relative; only their distances count |
//! | absolute offset | as stored | wrapper offset − last inner offset + inner offset |
//! | wrapper offset 0 | means nothing | inner offsets count from 0: some clients leave it 0 |
//! | timestamp | none | wrapper's if it says `LogAppendTime`, else the inner message's |
//!
//! 1. The offsets of version 1 hang on the *last* inner message, so the framing of the whole set is
//!    walked once before the first record comes out. Compaction leaves holes in them.
//! 2. No inner message is compressed, and there is at least one.
//! 3. The magic of an inner message may differ from the wrapper's: Kafka reads such sets. An inner
//!    version 0 message has no timestamp whatever the wrapper says.
//! 4. A set whose last message is cut off ends before it, as it does for Kafka. The wrapper's own
//!    checksum has vouched for those bytes: whoever wrote them wrote them cut.

use super::{CorruptKind, Headers, LegacyView, RecordView, TimestampType};
use crate::limits::LOG_OVERHEAD;

/// Iterator over the records of a version 0 or 1 message. Stops after the first error.
#[derive(Debug, Clone)]
pub struct LegacyRecords<'a> {
    rest: &'a [u8],
    left: usize,
    first_offset: i64,
    last_offset: i64,
    /// What inner offsets count from; 0 where they are absolute.
    base: i64,
    append_time: Option<i64>,
    verify: bool,
}

impl<'a> LegacyRecords<'a> {
    /// The one record of a message that is not a wrapper. Its checksum is the message's, which
    /// the caller checks with [`LegacyView::check_crc`].
    pub fn plain(message: &LegacyView<'a>) -> Result<Self, CorruptKind> {
        if message.is_wrapper() {
            return Err(CorruptKind::Wrapper("its value is compressed"));
        }
        let offset = not_negative(message.offset())?;
        Ok(Self {
            rest: message.bytes(),
            left: 1,
            first_offset: offset,
            last_offset: offset,
            base: 0,
            append_time: None,
            verify: false,
        })
    }

    /// The records of a wrapper, from its inflated value. With `verify` the checksum of every
    /// inner message is compared as it is taken.
    pub fn wrapped(
        wrapper: &LegacyView<'_>,
        inflated: &'a [u8],
        verify: bool,
    ) -> Result<Self, CorruptKind> {
        if !wrapper.is_wrapper() {
            return Err(CorruptKind::Wrapper("the message is not compressed"));
        }
        let set = InnerSet::walk(inflated)?;
        let base = match wrapper.magic() {
            0 => 0,
            _ => relative_base(wrapper.offset(), set.last)?,
        };
        let append_time =
            (wrapper.timestamp_type() == TimestampType::LogAppendTime).then(|| wrapper.timestamp());
        Ok(Self {
            rest: inflated,
            left: set.count,
            first_offset: absolute(base, set.first)?,
            last_offset: absolute(base, set.last)?,
            base,
            append_time,
            verify,
        })
    }

    /// Records not yet taken.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Offset of the first record.
    #[inline]
    pub fn first_offset(&self) -> i64 {
        self.first_offset
    }

    /// Offset of the last record. For a version 0 wrapper the inner messages say it, so it can
    /// differ from the wrapper's own, which no checksum covers.
    #[inline]
    pub fn last_offset(&self) -> i64 {
        self.last_offset
    }

    /// The next record; `None` after the last.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'a>>, CorruptKind> {
        if self.left == 0 {
            return Ok(None);
        }
        let message = LegacyView::parse(self.rest)?;
        if self.verify {
            message.check_crc()?;
        }
        let (key, value) = message.key_and_value()?;
        let timestamp = match self.append_time {
            Some(time) if message.magic() > 0 => time,
            _ => message.timestamp(),
        };
        let record = RecordView {
            offset: absolute(self.base, message.offset())?,
            timestamp,
            key,
            value,
            headers: Headers::default(),
        };
        self.rest = self.rest.get(message.total_bytes()..).unwrap_or_default();
        self.left -= 1;
        Ok(Some(record))
    }
}

impl<'a> Iterator for LegacyRecords<'a> {
    type Item = Result<RecordView<'a>, CorruptKind>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_err() {
            self.left = 0;
        }
        next.transpose()
    }
}

/// What one walk over the framing of an inflated set tells.
struct InnerSet {
    count: usize,
    first: i64,
    last: i64,
}

impl InnerSet {
    fn walk(inflated: &[u8]) -> Result<Self, CorruptKind> {
        let mut set: Option<Self> = None;
        let mut rest = inflated;
        while whole_entry_follows(rest) {
            let message = LegacyView::parse(rest)?;
            if message.is_wrapper() {
                return Err(CorruptKind::Wrapper("an inner message is compressed"));
            }
            rest = rest.get(message.total_bytes()..).unwrap_or_default();
            let offset = not_negative(message.offset())?;
            set = Some(match set {
                None => Self { count: 1, first: offset, last: offset },
                Some(before) => Self { count: before.count + 1, first: before.first, last: offset },
            });
        }
        set.ok_or(CorruptKind::Wrapper("it holds no message"))
    }
}

/// Whether the bytes hold the whole entry that their size field announces. A size that no entry
/// can have counts as whole, so that parsing names it.
fn whole_entry_follows(bytes: &[u8]) -> bool {
    let Some((framing, body)) = bytes.split_first_chunk::<LOG_OVERHEAD>() else {
        return false;
    };
    let [.., s0, s1, s2, s3] = *framing;
    let size = i32::from_be_bytes([s0, s1, s2, s3]);
    usize::try_from(size).map_or(true, |size| size <= body.len())
}

fn relative_base(wrapper_offset: i64, last_inner: i64) -> Result<i64, CorruptKind> {
    if wrapper_offset == 0 {
        return Ok(0);
    }
    if wrapper_offset < last_inner {
        return Err(CorruptKind::Wrapper("its offset is below that of its last inner message"));
    }
    wrapper_offset.checked_sub(last_inner).ok_or(CorruptKind::Overflow)
}

#[inline]
fn absolute(base: i64, inner: i64) -> Result<i64, CorruptKind> {
    base.checked_add(inner).ok_or(CorruptKind::Overflow)
}

#[inline]
fn not_negative(offset: i64) -> Result<i64, CorruptKind> {
    if offset < 0 {
        return Err(CorruptKind::OffsetOrder { found: offset, expected: 0 });
    }
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, Legacy};
    use super::*;

    type Row = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

    fn rows(records: LegacyRecords<'_>) -> Vec<Row> {
        records
            .map(|record| {
                let record = record.unwrap();
                assert!(record.headers.is_empty());
                let own = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
                (record.offset, record.timestamp, own(record.key), own(record.value))
            })
            .collect()
    }

    fn offsets(wrapper: &[u8], inflated: &[u8]) -> Result<Vec<i64>, CorruptKind> {
        let wrapper = LegacyView::parse(wrapper)?;
        let records = LegacyRecords::wrapped(&wrapper, inflated, true)?;
        let (first, last, left) = (records.first_offset(), records.last_offset(), records.left());
        let offsets = records
            .map(|record| record.map(|record| record.offset))
            .collect::<Result<Vec<_>, _>>()?;
        assert_eq!((Some(&first), Some(&last)), (offsets.first(), offsets.last()));
        assert_eq!(left, offsets.len());
        Ok(offsets)
    }

    fn inner(magic: u8, offsets: &[i64]) -> Vec<u8> {
        offsets
            .iter()
            .flat_map(|offset| Legacy::new(magic, *offset).timestamp(100 + offset).bytes())
            .collect()
    }

    #[test]
    fn a_plain_message_is_one_record() {
        let bytes = samples::legacy_v1_append_time();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(
            rows(LegacyRecords::plain(&view).unwrap()),
            [(6, samples::T0, Some(b"k".to_vec()), None)]
        );
        let wrapper = samples::legacy_v1_gzip();
        let wrapper = LegacyView::parse(&wrapper).unwrap();
        assert!(LegacyRecords::plain(&wrapper).is_err());
        assert!(LegacyRecords::wrapped(&view, &bytes, true).is_err());
    }

    #[test]
    fn relative_offsets_count_back_from_the_wrapper() {
        let bytes = samples::legacy_v1_gzip();
        let view = LegacyView::parse(&bytes).unwrap();
        let set = samples::legacy_v1_gzip_inner();
        let records = LegacyRecords::wrapped(&view, &set, true).unwrap();
        let own = |text: &[u8]| Some(text.to_vec());
        assert_eq!(
            rows(records),
            [(10, samples::T0, own(b"a"), own(b"1")), (11, samples::T0 + 7, own(b"b"), own(b"2")),]
        );
    }

    #[test]
    fn version_0_offsets_are_absolute() {
        let bytes = samples::legacy_v0_lz4();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        // The block of this sample is stored, not compressed, so the set stands in it as it is.
        let set = &view.compressed().unwrap()[11..11 + 0x38];
        assert_eq!(offsets(&bytes, set), Ok(vec![10, 11]));
    }

    #[test]
    fn holes_left_by_compaction_keep_their_distances() {
        let wrapper = Legacy::new(1, 50).codec(1).bytes();
        assert_eq!(offsets(&wrapper, &inner(1, &[0, 3, 4, 9])), Ok(vec![41, 44, 45, 50]));
        // A compactor that kept the old relative offsets gives the same answer.
        assert_eq!(offsets(&wrapper, &inner(1, &[5, 8, 9, 14])), Ok(vec![41, 44, 45, 50]));
    }

    #[test]
    fn a_wrapper_with_offset_zero_counts_from_zero() {
        let wrapper = Legacy::new(1, 0).codec(1).bytes();
        assert_eq!(offsets(&wrapper, &inner(1, &[0, 1, 2])), Ok(vec![0, 1, 2]));
        let wrapper = Legacy::new(1, 1).codec(1).bytes();
        assert!(matches!(offsets(&wrapper, &inner(1, &[0, 1, 2])), Err(CorruptKind::Wrapper(_))));
    }

    #[test]
    fn the_append_time_of_the_wrapper_holds_for_all() {
        let set = inner(1, &[0, 1]);
        let timestamps = |attributes: u8| {
            let wrapper = Legacy::new(1, 7).codec(1 | attributes).timestamp(9_000).bytes();
            let wrapper = LegacyView::parse(&wrapper).unwrap();
            LegacyRecords::wrapped(&wrapper, &set, true)
                .unwrap()
                .map(|record| record.unwrap().timestamp)
                .collect::<Vec<_>>()
        };
        assert_eq!(timestamps(0), [100, 101]);
        assert_eq!(timestamps(8), [9_000, 9_000]);
    }

    #[test]
    fn inner_messages_of_the_other_version_are_read_as_kafka_reads_them() {
        let wrapper = Legacy::new(1, 11).codec(9).timestamp(9_000).bytes();
        let view = LegacyView::parse(&wrapper).unwrap();
        let mixed = [inner(0, &[0]), inner(1, &[1])].concat();
        let records = LegacyRecords::wrapped(&view, &mixed, true).unwrap();
        let got = rows(records).iter().map(|row| (row.0, row.1)).collect::<Vec<_>>();
        assert_eq!(got, [(10, -1), (11, 9_000)]);

        let wrapper = Legacy::new(0, 1).codec(1).bytes();
        assert_eq!(offsets(&wrapper, &mixed), Ok(vec![0, 1]));
    }

    #[test]
    fn nested_and_empty_sets_are_refused() {
        let wrapper = Legacy::new(1, 5).codec(1).bytes();
        let nested = Legacy::new(1, 0).codec(2).bytes();
        for set in [&nested[..], &[], &nested[..11], &nested[..20]] {
            assert!(matches!(offsets(&wrapper, set), Err(CorruptKind::Wrapper(_))));
        }
        let null = Legacy::new(1, 5).codec(1).value(None).bytes();
        let null = LegacyView::parse(&null).unwrap();
        assert!(matches!(null.compressed(), Err(CorruptKind::Wrapper(_))));
    }

    #[test]
    fn a_cut_off_last_message_ends_the_set() {
        let wrapper = Legacy::new(1, 5).codec(1).bytes();
        let set = inner(1, &[0, 1, 2]);
        let whole = inner(1, &[0, 1]).len();
        for end in whole..set.len() {
            assert_eq!(offsets(&wrapper, &set[..end]), Ok(vec![4, 5]), "cut at {end}");
        }
    }

    #[test]
    fn a_damaged_inner_message_is_found_when_asked() {
        let wrapper = Legacy::new(1, 5).codec(1).bytes();
        let view = LegacyView::parse(&wrapper).unwrap();
        let mut set = inner(1, &[0, 1]);
        *set.last_mut().unwrap() ^= 1;
        let last = |verify| LegacyRecords::wrapped(&view, &set, verify).unwrap().last().unwrap();
        assert!(last(false).is_ok());
        assert!(matches!(last(true), Err(CorruptKind::Crc { .. })));
    }

    #[test]
    fn the_iterator_stops_after_the_first_error() {
        let wrapper = Legacy::new(1, 5).codec(1).bytes();
        let view = LegacyView::parse(&wrapper).unwrap();
        let mut set = inner(1, &[0, 1, 2]);
        set[12] ^= 1;
        let records = LegacyRecords::wrapped(&view, &set, true).unwrap();
        assert_eq!(records.count(), 1);
    }

    #[test]
    fn offsets_outside_the_offset_space_are_refused() {
        let wrapper = Legacy::new(1, 5).codec(1).bytes();
        assert_eq!(
            offsets(&wrapper, &inner(1, &[9, 1])),
            Ok(vec![13, 5]),
            "order is not judged here"
        );
        assert!(offsets(&wrapper, &inner(1, &[-7, 1])).is_err());
        assert!(offsets(&wrapper, &inner(1, &[i64::MIN, 5])).is_err());
        assert!(offsets(&wrapper, &inner(1, &[0, i64::MIN + 200])).is_err());
        let wrapper = Legacy::new(0, -1).bytes();
        let view = LegacyView::parse(&wrapper).unwrap();
        assert!(LegacyRecords::plain(&view).is_err());
    }
}

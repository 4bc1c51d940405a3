//! One walk over the records of a batch, for what an append must know of them.

use super::{BatchHeader, CorruptKind, Records};

/// What the records of a batch have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skim {
    /// The smallest timestamp; the largest possible where there is no record.
    pub(super) min_timestamp: i64,
    /// The largest timestamp, at least −1.
    pub(super) max_timestamp: i64,
    /// Whether a key is null.
    pub(super) has_null_key: bool,
    /// Whether the offsets count up from the base by one and end at the last.
    pub(super) in_order: bool,
}

/// Walks every record, and thereby checks that each is well formed and that nothing else is there.
pub(super) fn skim(header: &BatchHeader, payload: &[u8]) -> Result<Skim, CorruptKind> {
    let mut skim =
        Skim { min_timestamp: i64::MAX, max_timestamp: -1, has_null_key: false, in_order: true };
    let mut records = Records::new(header, payload);
    let mut expected = header.base_offset;
    while let Some(span) = records.next_span()? {
        skim.min_timestamp = skim.min_timestamp.min(span.timestamp);
        skim.max_timestamp = skim.max_timestamp.max(span.timestamp);
        skim.has_null_key |= span.key(payload).is_none();
        skim.in_order &= span.offset == expected;
        expected = expected.wrapping_add(1);
    }
    skim.in_order &= expected.wrapping_sub(1) == header.last_offset();
    Ok(skim)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, T0};
    use super::super::{BatchView, TimestampType};
    use super::*;

    fn of(bytes: &[u8]) -> Skim {
        let batch = BatchView::parse(bytes).unwrap();
        skim(batch.header(), batch.payload()).unwrap()
    }

    #[test]
    fn the_extremes_are_those_of_the_records() {
        let skim = of(&samples::batch_b());
        assert_eq!((skim.min_timestamp, skim.max_timestamp), (T0, T0 + 5));
        assert!(skim.has_null_key && skim.in_order);
        assert!(!of(&samples::batch_d()).has_null_key);
    }

    #[test]
    fn holes_and_missing_records_are_out_of_order() {
        assert!(!of(&samples::batch_h()).in_order, "its first record is gone");
        assert!(!of(&samples::batch_g()).in_order, "all are gone");
        let bytes = samples::batch_b();
        let batch = BatchView::parse(&bytes).unwrap();
        let longer = BatchHeader { last_offset_delta: 3, ..*batch.header() };
        assert!(!skim(&longer, batch.payload()).unwrap().in_order);
    }

    #[test]
    fn an_append_time_stands_for_all_records() {
        let bytes = samples::batch_b();
        let batch = BatchView::parse(&bytes).unwrap();
        let attributes =
            batch.header().attributes.with_timestamp_type(TimestampType::LogAppendTime);
        let header = BatchHeader { attributes, max_timestamp: 9, ..*batch.header() };
        let skim = skim(&header, batch.payload()).unwrap();
        assert_eq!((skim.min_timestamp, skim.max_timestamp), (9, 9));
    }

    #[test]
    fn too_few_and_too_many_records_are_found() {
        let bytes = samples::batch_b();
        let batch = BatchView::parse(&bytes).unwrap();
        for count in [-1, 2, 4] {
            let header = BatchHeader { records_count: count, ..*batch.header() };
            assert!(skim(&header, batch.payload()).is_err(), "{count}");
        }
    }
}

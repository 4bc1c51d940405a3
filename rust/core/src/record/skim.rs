//! One walk over the records of a batch, for what an append must know of them.

use super::span::read_span;
use super::{BatchHeader, CorruptKind, Records, TimestampType};

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
    let is_plain = header.attributes.timestamp_type() == TimestampType::CreateTime;
    match is_plain.then(|| skim_plain(header, payload)).flatten() {
        Some(skim) => Ok(skim),
        None => skim_any(header, payload),
    }
}

const NOTHING: Skim =
    Skim { min_timestamp: i64::MAX, max_timestamp: -1, has_null_key: false, in_order: true };

/// The walk over records with times of their own. `None` when anything is wrong.
fn skim_plain(header: &BatchHeader, payload: &[u8]) -> Option<Skim> {
    let mut skim = NOTHING;
    let mut at = 0;
    for expected in 0..header.records_count {
        let record = match glance(payload, at) {
            Some(record) => record,
            None => look(payload, at)?,
        };
        let timestamp = header.base_timestamp.checked_add(record.timestamp_delta)?;
        skim.min_timestamp = skim.min_timestamp.min(timestamp);
        skim.max_timestamp = skim.max_timestamp.max(timestamp);
        skim.has_null_key |= record.has_null_key;
        skim.in_order &= record.offset_delta == i64::from(expected);
        at = record.end;
    }
    skim.in_order &= i64::from(header.last_offset_delta) + 1 == i64::from(header.records_count);
    (header.records_count >= 0 && at == payload.len()).then_some(skim)
}

/// The walk over any records.
#[cold]
fn skim_any(header: &BatchHeader, payload: &[u8]) -> Result<Skim, CorruptKind> {
    let mut skim = NOTHING;
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

/// What the walk needs of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Glance {
    timestamp_delta: i64,
    offset_delta: i64,
    has_null_key: bool,
    end: usize,
}

/// Reads a record whose fields have their usual sizes: no headers, less than 8 KiB, a time within
/// 8 s of the first. Length, time and offset come out of one load. `None` for every other record,
/// good or bad.
#[inline]
fn glance(payload: &[u8], at: usize) -> Option<Glance> {
    let rest = payload.get(at..)?;
    let word = u64::from_le_bytes(*rest.first_chunk()?);
    let (length, word, used) = short_word(word)?;
    if length & 1 == 1 {
        return None;
    }
    let end = used + usize::try_from(length >> 1).ok()?;
    let record = rest.get(..end)?;
    // The attributes byte is unused and ignored. Of 8 bytes, 3 are taken here at most.
    let (timestamp, word, taken) = short_word(word >> 8)?;
    let (offset, _, offset_taken) = short_word(word).or_else(|| three_bytes(word))?;
    let (key, at_key) = short(record, used + 1 + taken + offset_taken)?;
    let has_null_key = key & 1 == 1;
    let key_bytes = if has_null_key { 0 } else { usize::try_from(key >> 1).ok()? };
    let (value, at_value) = short(record, at_key + key_bytes)?;
    let value_bytes = if value & 1 == 1 { 0 } else { usize::try_from(value >> 1).ok()? };
    if record.get(at_value + value_bytes..)? != [0] {
        return None;
    }
    Some(Glance {
        timestamp_delta: unzigzag(timestamp),
        offset_delta: unzigzag(offset),
        has_null_key,
        end: at + end,
    })
}

/// The same for any record.
#[inline(never)]
fn look(payload: &[u8], at: usize) -> Option<Glance> {
    let span = read_span(payload, at, 0, 0)?;
    Some(Glance {
        timestamp_delta: span.timestamp,
        offset_delta: span.offset,
        has_null_key: span.key(payload).is_none(),
        end: span.end(),
    })
}

/// The integer in the lowest one or two bytes, what stands above it, and the bytes it takes.
#[inline]
fn short_word(word: u64) -> Option<(u64, u64, usize)> {
    if word & 0x80 == 0 {
        Some((word & 0x7f, word >> 8, 1))
    } else if word & 0x8000 == 0 {
        Some(((word & 0x7f) | ((word >> 1) & 0x3f80), word >> 16, 2))
    } else {
        None
    }
}

/// The integer in the lowest three bytes, as the offsets of large batches have them.
#[inline]
fn three_bytes(word: u64) -> Option<(u64, u64, usize)> {
    let value = (word & 0x7f) | ((word >> 1) & 0x3f80) | ((word >> 2) & 0x001f_c000);
    (word & 0x0080_0000 == 0).then_some((value, word >> 24, 3))
}

#[inline]
fn short(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((u64::from(first), at + 1));
    }
    let second = *bytes.get(at + 1)?;
    (second < 0x80).then(|| (u64::from(first & 0x7f) | (u64::from(second) << 7), at + 2))
}

#[inline]
fn unzigzag(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, T0};
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::super::{BatchBuilder, BatchSpec, BatchView};
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

    proptest! {
        #[test]
        fn a_glance_sees_what_a_whole_reading_sees(
            records in vec((T0..T0 + 20_000, option::of(0..200_usize), option::of(0..9_000_usize)), 1..40),
            (first, last_delta) in (0..9_000_i64, 0..50),
            damage in option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
            for (offset, (time, key, value)) in (first..).zip(&records) {
                let zeros = |bytes: Option<usize>| bytes.map(|bytes| vec![0; bytes]);
                let (key, value) = (zeros(*key), zeros(*value));
                builder.push_at(offset, *time, key.as_deref(), value.as_deref(), []).unwrap();
            }
            let mut bytes = Vec::new();
            let header = builder.finish(&mut bytes).unwrap();
            if let Some((at, byte)) = damage {
                *at.get_mut(&mut bytes[61..]) = byte;
            }
            for header in [header, BatchHeader { last_offset_delta: last_delta, ..header }] {
                let whole = skim_any(&header, &bytes[61..]);
                prop_assert_eq!(skim_plain(&header, &bytes[61..]), whole.ok());
                prop_assert_eq!(skim(&header, &bytes[61..]), whole);
            }
        }
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

//! Records as nearly all are, read for one pass that puts their fields where they belong.
//!
//! A plain record has no headers, a key of up to 63 bytes, a value, and no number of more than two
//! bytes; its fields start within its first [`NEAR`] bytes, of which all are there. So one comparison
//! of lengths covers every reading of a record, and what is not plain goes the way of all records.

use super::span::{Base, low_word, short, short_length, to_usize};

/// Bytes that follow the start of a plain record: a copy of fixed size from the start of either field
/// stays within.
pub(super) const NEAR: usize = 256;

/// No delta of up to two bytes is further from zero.
pub(super) const DELTA_MAX: i64 = 1 << 13;

/// With a base that is no further from zero, no plain record's time leaves what microseconds can say.
pub(super) const TIMESTAMP_MAX: i64 = 1 << 52;

/// Where the fields of a plain record start: 1 to 9 for the key, up to 74 for the value.
const KEY_MASK: usize = 15;
const VALUE_MASK: usize = 127;

/// A record without headers, with a short key and a value.
#[derive(Debug, Clone, Copy)]
pub struct PlainRecord<'a> {
    /// Absolute offset.
    pub offset: i64,
    /// Milliseconds since 1970; a thousand times as much does not overflow.
    pub timestamp: i64,
    /// Length of the key, at most 63.
    pub key_bytes: u32,
    /// Length of the value, at most 8,191.
    pub value_bytes: u32,
    near: &'a [u8; NEAR],
    whole: &'a [u8],
    key_at: usize,
    value_at: usize,
}

impl<'a> PlainRecord<'a> {
    /// `N` bytes from the start of the key on, whatever its length.
    #[inline]
    pub fn near_key<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.near.get(self.key_at & KEY_MASK..)?.first_chunk()
    }

    /// `N` bytes from the start of the value on, whatever its length.
    #[inline]
    pub fn near_value<const N: usize>(&self) -> Option<&'a [u8; N]> {
        self.near.get(self.value_at & VALUE_MASK..)?.first_chunk()
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        self.whole.get(self.value_at..self.value_at + to_usize(self.value_bytes))
    }
}

/// The record at the start of `rest` and what follows it; `None` if it is not plain. Bits of
/// `counts` say which bits of the time's delta count.
#[expect(clippy::inline_always, reason = "it is the body of the innermost loop")]
#[inline(always)]
pub(super) fn take_plain(rest: &[u8], base: Base, counts: i32) -> Option<(PlainRecord<'_>, &[u8])> {
    let near = rest.first_chunk::<NEAR>()?;
    let (body, end, word) = short_length(u64::from_le_bytes(*near.first_chunk()?), 0)?;
    let (whole, after) = rest.split_at_checked(end)?;
    // The attributes byte is unused and ignored.
    let (timestamp_delta, word, taken) = short(word >> 8)?;
    let at = body + 1 + taken;
    let (offset_delta, word, taken) = short(word)?;
    let key_at = at + taken + 1;
    let key_bytes = one_byte_length(word)?;
    let at = key_at + to_usize(key_bytes);
    let word = u32::from_le_bytes(*near.get(at & VALUE_MASK..)?.first_chunk()?);
    let (value_bytes, value_at) = match one_byte_length(u64::from(word)) {
        Some(bytes) => (bytes, at + 1),
        None if word & 0x8081 == 0x80 => (word >> 1 & 0x3f | word >> 2 & 0x1fc0, at + 2),
        None => return None,
    };
    let count_at = value_at + to_usize(value_bytes);
    if count_at + 1 != end || *whole.last()? != 0 {
        return None;
    }
    let record = PlainRecord {
        offset: base.offset.wrapping_add(i64::from(offset_delta)),
        timestamp: base.timestamp.wrapping_add(i64::from(timestamp_delta & counts)),
        key_bytes,
        value_bytes,
        near,
        whole,
        key_at,
        value_at,
    };
    Some((record, after))
}

/// A length in the lowest byte of `word`, if it is of one byte and not negative.
#[inline]
fn one_byte_length(word: u64) -> Option<u32> {
    (word & 0x81 == 0).then(|| low_word(word >> 1 & 0x3f))
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, BatchSpec, BatchView, Header, Records};
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Spec = (i64, Option<usize>, Option<usize>, bool);

    /// Lengths at which one of the forms ends and the next begins, most of them plain.
    fn length(plain: usize) -> impl Strategy<Value = Option<usize>> {
        prop_oneof![
            8 => (0..plain).prop_map(Some),
            2 => prop_oneof![62..66_usize, 126..131_usize, 8189..8194_usize].prop_map(Some),
            1 => Just(None),
        ]
    }

    fn batch_of(records: &[Spec], append_time: Option<i64>) -> Vec<u8> {
        let spec = BatchSpec { append_time, ..BatchSpec::at(1000) };
        let mut builder = BatchBuilder::new(spec).unwrap();
        for (index, (timestamp, key, value, has_header)) in records.iter().enumerate() {
            let fill = u8::try_from(index % 251).unwrap();
            let key = key.map(|bytes| vec![fill; bytes]);
            let value = value.map(|bytes| vec![!fill; bytes]);
            let header = Header { key: b"name", value: Some(b"v") };
            let headers: &[Header<'_>] = if *has_header { &[header] } else { &[] };
            builder
                .push(*timestamp, key.as_deref(), value.as_deref(), headers.iter().copied())
                .unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn plain_records_read_as_their_spans_do(
            records in vec((0..9000_i64, length(60), length(140), prop::bool::weighted(0.05)), 1..80),
            append_time in prop_oneof![Just(None), Just(Some(1_700_000_000_000_i64))],
        ) {
            let bytes = batch_of(&records, append_time);
            let batch = BatchView::parse(&bytes).unwrap();
            let mut slow = Records::new(batch.header(), batch.payload());
            let mut fast = slow.clone();
            let mut plain = 0;
            while slow.left() > 0 {
                let taken = fast.take_plain(0..7, |_, record| {
                    let other = slow.next_record().unwrap().unwrap();
                    assert_eq!((record.offset, record.timestamp), (other.offset, other.timestamp));
                    let key = record.near_key::<64>().unwrap();
                    assert_eq!(Some(&key[..to_usize(record.key_bytes)]), other.key);
                    assert_eq!(record.value(), other.value);
                    let length = to_usize(record.value_bytes).min(128);
                    let value = record.near_value::<128>().unwrap();
                    assert_eq!(Some(&value[..length]), other.value.map(|value| &value[..length]));
                    assert!(other.headers.is_empty());
                    Some(())
                });
                plain += taken.unwrap();
                prop_assert_eq!((fast.left(), fast.rest()), (slow.left(), slow.rest()));
                if taken.unwrap() == 0 {
                    prop_assert!(fast.next_record().unwrap().is_some());
                    slow.next_record().unwrap();
                }
            }
            let usual = |(time, key, value, has_header): &Spec| {
                *time < 8192 && key.is_some_and(|key| key < 64) && value.is_some_and(|value| value < 8100) && !has_header
            };
            // A delta counts from the first record, and the last records are too near to the end.
            let first = records[0].0;
            let tail = records.iter().rev().scan(0, |bytes, record| {
                *bytes += record.1.unwrap_or(0) + record.2.unwrap_or(0);
                (*bytes < NEAR).then_some(())
            });
            let expected = records.iter().filter(|record| usual(record) && (record.0 - first).abs() < 8192).count();
            prop_assert!(plain + tail.count() + 1 >= expected, "{plain} of {expected}");
        }
    }

    #[test]
    fn a_record_that_is_refused_comes_again() {
        let records = [(0, Some(5), Some(100), false); 9];
        let bytes = batch_of(&records, None);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut records = Records::new(batch.header(), batch.payload());
        let taken = records.take_plain(0..9, |row, _| (row < 3).then_some(()));
        assert_eq!((taken, records.left()), (Ok(3), 6));
        assert_eq!(records.next_record().unwrap().unwrap().offset, 1003);
    }
}

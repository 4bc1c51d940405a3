//! One record as ranges of its payload.
//!
//! This is the innermost loop of everything that reads records. It only asks whether a record is
//! well formed; which check failed is found out again, slowly, once one has.

use super::iter::{Headers, RecordView};
use super::varint::{read_varint, read_varlong};

/// A record, by where its parts stand in the payload it was read from.
///
/// Positions are 32 bits wide, which halves what the innermost loops move: no payload reaches 4 GiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordSpan {
    /// Absolute offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    key: FieldSpan,
    value: FieldSpan,
    headers_at: u32,
    end: u32,
    header_count: u32,
}

/// A field's place in the payload; null where its length is negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FieldSpan {
    at: u32,
    bytes: i32,
}

impl FieldSpan {
    /// Where the field starts.
    #[inline]
    pub fn at(self) -> usize {
        to_usize(self.at)
    }

    /// Its length; `None` when it is null.
    #[inline]
    pub fn bytes(self) -> Option<usize> {
        usize::try_from(self.bytes).ok()
    }

    /// The field's bytes; `None` when it is null.
    #[inline]
    pub fn slice(self, payload: &[u8]) -> Option<&[u8]> {
        let bytes = self.bytes()?;
        Some(payload.get(self.at()..self.at() + bytes).unwrap_or_default())
    }
}

impl RecordSpan {
    /// The place of the key.
    #[inline]
    pub fn key_span(&self) -> FieldSpan {
        self.key
    }

    /// The place of the value.
    #[inline]
    pub fn value_span(&self) -> FieldSpan {
        self.value
    }

    /// The key, if not null.
    #[inline]
    pub fn key<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        self.key.slice(payload)
    }

    /// The value, if not null.
    #[inline]
    pub fn value<'a>(&self, payload: &'a [u8]) -> Option<&'a [u8]> {
        self.value.slice(payload)
    }

    /// The headers.
    #[inline]
    pub fn headers<'a>(&self, payload: &'a [u8]) -> Headers<'a> {
        let bytes = payload.get(to_usize(self.headers_at)..self.end()).unwrap_or_default();
        Headers::walked(bytes, self.header_count)
    }

    /// The record with its parts borrowed.
    #[inline]
    pub fn view<'a>(&self, payload: &'a [u8]) -> RecordView<'a> {
        RecordView {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key(payload),
            value: self.value(payload),
            headers: self.headers(payload),
        }
    }

    /// Where the next record starts.
    #[inline]
    pub(super) fn end(&self) -> usize {
        to_usize(self.end)
    }
}

/// The numbers of a record, and where its key and value stand.
#[derive(Clone, Copy)]
struct Fields {
    end: usize,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Field,
    value: Field,
}

impl Fields {
    #[inline]
    fn span(&self, base: Base, header_count: u32, headers_at: usize) -> Option<RecordSpan> {
        Some(RecordSpan {
            offset: base.offset.checked_add(i64::from(self.offset_delta))?,
            timestamp: base.timestamp.checked_add(self.timestamp_delta)?,
            // No position is beyond the end.
            end: u32::try_from(self.end).ok()?,
            key: self.key.span(),
            value: self.value.span(),
            headers_at: low_half(headers_at),
            header_count,
        })
    }
}

/// A field while its record is read.
#[derive(Clone, Copy)]
struct Field {
    at: usize,
    bytes: i32,
}

impl Field {
    /// Kafka takes every negative length for null.
    #[inline]
    fn end(self) -> usize {
        self.at + usize::try_from(self.bytes).unwrap_or(0)
    }

    #[inline]
    fn span(self) -> FieldSpan {
        FieldSpan { at: low_half(self.at), bytes: self.bytes }
    }
}

/// What the deltas of a batch's records count from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
}

/// Reads the record at `at` and returns where the next one starts. `None` when anything is wrong.
#[inline]
pub(super) fn read_span(
    payload: &[u8],
    at: usize,
    base: Base,
    span: &mut RecordSpan,
) -> Option<usize> {
    match plain_span(payload, at, base, span) {
        Some(next) => Some(next),
        None => any_span(payload, at, base, span),
    }
}

/// The record at `at`, if it is as nearly all are: no headers, a length of the key of one byte, no
/// other number of more than two. Its numbers come out of two words, and each is put down as soon as
/// it is known: `span` has no meaning when the record turns out to be another.
#[expect(clippy::inline_always, reason = "it is the body of the innermost loop")]
#[inline(always)]
fn plain_span(payload: &[u8], at: usize, base: Base, span: &mut RecordSpan) -> Option<usize> {
    let word = u64::from_le_bytes(*payload.get(at..)?.first_chunk()?);
    let (body, end, word) = short_length(word, at)?;
    span.end = u32::try_from(end).ok()?;
    span.headers_at = span.end;
    span.header_count = 0;
    // The attributes byte is unused and ignored.
    let (timestamp_delta, word, taken) = short(word >> 8)?;
    span.timestamp = base.timestamp.checked_add(i64::from(timestamp_delta))?;
    let at = body + 1 + taken;
    let (offset_delta, word, taken) = short(word)?;
    span.offset = base.offset.checked_add(i64::from(offset_delta))?;
    let at = at + taken;
    if word & 0x80 != 0 {
        return None;
    }
    let key = Field { at: at + 1, bytes: unzigzag(low_word(word & 0x7f)) };
    span.key = key.span();
    let at = key.end();
    let word = u32::from_le_bytes(*payload.get(at..)?.first_chunk()?);
    let (bytes, _, taken) = short(u64::from(word))?;
    let value = Field { at: at + taken, bytes };
    span.value = value.span();
    let count_at = value.end();
    // The fields were read without regard to the record's end. Positions only rise: when the last
    // of them is right, all lie before the end.
    (count_at + 1 == end && *payload.get(count_at)? == 0).then_some(end)
}

/// The record at `at`, whatever its form. Its own function, so that the registers of the loop around
/// it are for plain records.
#[inline(never)]
fn any_span(payload: &[u8], at: usize, base: Base, span: &mut RecordSpan) -> Option<usize> {
    let fields = long_fields(payload, at)?;
    let body = payload.get(..fields.end)?;
    let (header_count, headers_at) = walk_headers(body, fields.value.end())?;
    *span = fields.span(base, header_count, headers_at)?;
    Some(fields.end)
}

/// Where the record at `start` has its body and its end, by the length in one or two bytes at the low
/// end of `word`; and what is left of the word. The next record waits for nothing else, so the steps
/// to it are few.
#[inline]
pub(super) fn short_length(word: u64, start: usize) -> Option<(usize, usize, u64)> {
    // A length is not negative: its lowest bit, the sign, is clear.
    if word & 0x81 == 0 {
        let length = to_usize(low_word(word >> 1 & 0x3f));
        Some((start + 1, start + 1 + length, word >> 8))
    } else if word & 0x8081 == 0x80 {
        let length = to_usize(low_word(word >> 1 & 0x3f | word >> 2 & 0x1fc0));
        Some((start + 2, start + 2 + length, word >> 16))
    } else {
        None
    }
}

/// A number of one or two bytes from the low end of `word`, what is left of the word, and the bytes
/// taken.
#[inline]
pub(super) fn short(word: u64) -> Option<(i32, u64, usize)> {
    let raw = low_word(word);
    if raw & 0x80 == 0 {
        Some((unzigzag(raw & 0x7f), word >> 8, 1))
    } else if raw & 0x8000 == 0 {
        Some((unzigzag(raw & 0x7f | raw >> 1 & 0x3f80), word >> 16, 2))
    } else {
        None
    }
}

fn long_fields(payload: &[u8], at: usize) -> Option<Fields> {
    let (length, at) = varint(payload, at)?;
    let end = at + usize::try_from(length).ok()?;
    let (timestamp_delta, taken) = read_varlong(payload.get(at + 1..)?).ok()?;
    let (offset_delta, at) = varint(payload, at + 1 + taken)?;
    let key = field(payload, at)?;
    let value = field(payload, key.end())?;
    Some(Fields { end, timestamp_delta, offset_delta, key, value })
}

/// The number of headers whose count stands at `at`, and where they start. They must fill the body
/// to its end.
fn walk_headers(body: &[u8], at: usize) -> Option<(u32, usize)> {
    let (count, start) = varint(body, at)?;
    let count = u32::try_from(count).ok()?;
    if to_usize(count) > body.len().saturating_sub(start) {
        return None;
    }
    let mut at = start;
    for _ in 0..count {
        let key = field(body, at)?;
        if key.bytes < 0 {
            return None;
        }
        at = field(body, key.end())?.end();
    }
    (at == body.len()).then_some((count, start))
}

#[inline]
fn field(body: &[u8], at: usize) -> Option<Field> {
    let (bytes, at) = varint(body, at)?;
    Some(Field { at, bytes })
}

#[inline]
fn varint(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let (value, taken) = read_varint(bytes.get(at..)?).ok()?;
    Some((value, at + taken))
}

#[inline]
fn unzigzag(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

#[inline]
pub(super) fn low_word(word: u64) -> u32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A position that is known to be below 4 GiB.
#[inline]
fn low_half(position: usize) -> u32 {
    low_word(u64::try_from(position).unwrap_or(u64::MAX))
}

/// Lossless where the engine runs: pointers have 32 bits or more.
#[inline]
pub(super) fn to_usize(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const BASE: Base = Base { offset: 1000, timestamp: 1_700_000_000_000 };

    /// Numbers at which one of the forms ends and the next begins.
    fn edges() -> impl Strategy<Value = i32> {
        prop_oneof![
            -2..=2_i32,
            62..=65_i32,
            -65..=-62_i32,
            8190..=8193_i32,
            -8193..=-8190_i32,
            0..200_i32
        ]
    }

    fn record(deltas: (i32, i32), key: i32, value: i32, tail: &[u8], lie: i32) -> Vec<u8> {
        use crate::record::varint::{write_varint, write_varlong};
        let mut body = vec![0];
        write_varlong(i64::from(deltas.0), &mut body);
        write_varint(deltas.1, &mut body);
        for length in [key, value] {
            write_varint(length, &mut body);
            body.resize(body.len() + usize::try_from(length).unwrap_or(0), 7);
        }
        body.extend(tail);
        let mut whole = Vec::new();
        write_varint(i32::try_from(body.len()).unwrap() + lie, &mut whole);
        whole.extend(body);
        whole
    }

    proptest! {
        #[test]
        fn a_plain_record_reads_as_any_record_does(
            deltas in (edges(), edges()),
            key in edges(),
            value in edges(),
            tail in prop_oneof![Just(vec![0]), vec(any::<u8>(), 0..4)],
            lie in prop_oneof![Just(0), -2..=2_i32],
            before in 0..3_usize,
            after in 0..9_usize,
        ) {
            let mut payload = vec![0xff; before];
            payload.extend(record(deltas, key, value, &tail, lie));
            payload.resize(payload.len() + after, 0);
            let mut span = RecordSpan::default();
            let next = any_span(&payload, before, BASE, &mut span);
            let mut plain = RecordSpan::default();
            if let Some(end) = plain_span(&payload, before, BASE, &mut plain) {
                prop_assert_eq!((Some(end), plain), (next, span));
                prop_assert_eq!(plain.header_count, 0);
            }
            if lie == 0 && tail == [0] {
                prop_assert_eq!(next, Some(payload.len() - after));
                prop_assert_eq!(span.offset, 1000 + i64::from(deltas.1));
                prop_assert_eq!(span.timestamp, 1_700_000_000_000 + i64::from(deltas.0));
                let length = |field: Option<&[u8]>| field.map_or(-1, |field| i32::try_from(field.len()).unwrap());
                prop_assert_eq!(length(span.key(&payload)), key.max(-1));
                prop_assert_eq!(length(span.value(&payload)), value.max(-1));
            }
        }
    }

    #[test]
    fn the_usual_record_is_plain() {
        for (key, value) in [(-1, 100), (12, 100), (12, -1), (63, 8000)] {
            let mut payload = record((3, 70), key, value, &[0], 0);
            payload.extend([0; 8]);
            assert!(
                plain_span(&payload, 0, BASE, &mut RecordSpan::default()).is_some(),
                "{key} {value}"
            );
        }
    }
}

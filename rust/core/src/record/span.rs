//! One record as ranges of its payload.
//!
//! This is the innermost loop of everything that reads records. It only asks whether a record is
//! well formed; which check failed is found out again, slowly, once one has.

use super::iter::{Headers, RecordView};

/// A field's place in the payload. Null has a length of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    at: u32,
    bytes: i32,
}

impl Field {
    #[inline]
    fn slice(self, payload: &[u8]) -> Option<&[u8]> {
        let bytes = usize::try_from(self.bytes).ok()?;
        let at = usize::try_from(self.at).unwrap_or(usize::MAX);
        Some(payload.get(at..at + bytes).unwrap_or_default())
    }
}

/// A record, by where its parts stand in the payload it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// Absolute offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    key: Field,
    value: Field,
    headers: Field,
    header_count: u32,
}

impl RecordSpan {
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
        Headers::walked(self.headers.slice(payload).unwrap_or_default(), self.header_count)
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
}

/// Reads the record at `at`: it and where the next one starts. `None` when anything is wrong.
#[inline]
pub(super) fn read_span(
    payload: &[u8],
    at: usize,
    base_offset: i64,
    base_timestamp: i64,
) -> Option<(RecordSpan, usize)> {
    let (length, at) = varint(payload, at)?;
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let body = payload.get(..end)?;
    // The attributes byte is unused and ignored.
    let (timestamp_delta, at) = varlong(body, at + 1)?;
    let (offset_delta, at) = varint(body, at)?;
    let (key, at) = field(body, at)?;
    let (value, at) = field(body, at)?;
    let (count, at) = varint(body, at)?;
    let header_count = u32::try_from(count).ok()?;
    if header_count == 0 {
        if at != end {
            return None;
        }
    } else {
        walk_headers(body, at, header_count)?;
    }
    let headers = Field { at: u32::try_from(at).ok()?, bytes: i32::try_from(end - at).ok()? };
    let span = RecordSpan {
        offset: base_offset.checked_add(i64::from(offset_delta))?,
        timestamp: base_timestamp.checked_add(timestamp_delta)?,
        key,
        value,
        headers,
        header_count,
    };
    Some((span, end))
}

#[inline]
fn field(body: &[u8], at: usize) -> Option<(Field, usize)> {
    let (bytes, at) = varint(body, at)?;
    // Kafka takes every negative length for null.
    let end = at + usize::try_from(bytes).unwrap_or(0);
    if end > body.len() {
        return None;
    }
    Some((Field { at: u32::try_from(at).ok()?, bytes }, end))
}

/// Whether `count` headers fill the body from `at` to its end.
fn walk_headers(body: &[u8], mut at: usize, count: u32) -> Option<()> {
    if usize::try_from(count).ok()? > body.len().saturating_sub(at) {
        return None;
    }
    for _ in 0..count {
        let (key, after) = field(body, at)?;
        if key.bytes < 0 {
            return None;
        }
        (_, at) = field(body, after)?;
    }
    (at == body.len()).then_some(())
}

#[inline]
fn varint(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((unzigzag(u32::from(first)), at + 1));
    }
    let second = *bytes.get(at + 1)?;
    if second < 0x80 {
        let raw = u32::from(first & 0x7f) | u32::from(second) << 7;
        return Some((unzigzag(raw), at + 2));
    }
    long_varint(bytes, at)
}

#[inline(never)]
fn long_varint(bytes: &[u8], at: usize) -> Option<(i32, usize)> {
    let (value, taken) = super::varint::read_varint(bytes.get(at..)?).ok()?;
    Some((value, at + taken))
}

#[inline]
fn varlong(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some((i64::from(unzigzag(u32::from(first))), at + 1));
    }
    let second = *bytes.get(at + 1)?;
    if second < 0x80 {
        let raw = u32::from(first & 0x7f) | u32::from(second) << 7;
        return Some((i64::from(unzigzag(raw)), at + 2));
    }
    long_varlong(bytes, at)
}

#[inline(never)]
fn long_varlong(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let (value, taken) = super::varint::read_varlong(bytes.get(at..)?).ok()?;
    Some((value, at + taken))
}

#[inline]
fn unzigzag(raw: u32) -> i32 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}

//! One record as ranges of its payload.
//!
//! This is the innermost loop of everything that reads records. It only asks whether a record is
//! well formed; which check failed is found out again, slowly, once one has.

use super::iter::{Headers, RecordView};

/// A record, by where its parts stand in the payload it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// Absolute offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    key: Field,
    value: Field,
    headers_at: usize,
    end: usize,
    header_count: u32,
}

/// A field's place in the payload; null where its length is negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    at: usize,
    bytes: i32,
}

impl Field {
    #[inline]
    fn slice(self, payload: &[u8]) -> Option<&[u8]> {
        let bytes = usize::try_from(self.bytes).ok()?;
        Some(payload.get(self.at..self.at + bytes).unwrap_or_default())
    }
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
        let bytes = payload.get(self.headers_at..self.end).unwrap_or_default();
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
        self.end
    }
}

/// Reads the record at `at`. `None` when anything is wrong.
#[inline]
pub(super) fn read_span(
    payload: &[u8],
    at: usize,
    base_offset: i64,
    base_timestamp: i64,
) -> Option<RecordSpan> {
    let (length, at) = varint(payload, at)?;
    let end = at + usize::try_from(length).ok()?;
    let body = payload.get(..end)?;
    // The attributes byte is unused and ignored.
    let (timestamp_delta, at) = varlong(body, at + 1)?;
    let (offset_delta, at) = varint(body, at)?;
    let (key, at) = field(body, at)?;
    let (value, at) = field(body, at)?;
    let (count, at) = varint(body, at)?;
    if count != 0 {
        walk_headers(body, at, count)?;
    } else if at != end {
        return None;
    }
    Some(RecordSpan {
        offset: base_offset.checked_add(i64::from(offset_delta))?,
        timestamp: base_timestamp.checked_add(timestamp_delta)?,
        key,
        value,
        headers_at: at,
        end,
        header_count: count.cast_unsigned(),
    })
}

#[inline]
fn field(body: &[u8], at: usize) -> Option<(Field, usize)> {
    let (bytes, at) = varint(body, at)?;
    // Kafka takes every negative length for null.
    let end = at + usize::try_from(bytes).unwrap_or(0);
    Some((Field { at, bytes }, end))
}

/// Whether `count` headers fill the body from `at` to its end.
#[inline(never)]
fn walk_headers(body: &[u8], mut at: usize, count: i32) -> Option<()> {
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

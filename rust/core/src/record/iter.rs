//! Records inside an inflated version 2 payload.
//!
//! A record is: varint length; i8 attributes; varlong timestamp delta; varint offset delta; varint
//! key length (−1 null) and key; varint value length (−1 null) and value; varint header count; per
//! header a varint key length and key, a varint value length (−1 null) and value.
//!
//! Iterating allocates nothing: keys, values and headers are slices of the payload.

use super::varint::{read_varint, read_varlong};
use super::{BatchHeader, CorruptKind, TimestampType};

/// One record, borrowed from its batch.
#[derive(Debug, Clone, Copy)]
pub struct RecordView<'a> {
    /// Absolute offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The key, if not null.
    pub key: Option<&'a [u8]>,
    /// The value; null is a tombstone.
    pub value: Option<&'a [u8]>,
    /// The headers, checked when iterated.
    pub headers: Headers<'a>,
}

/// The headers of a record: a count and the bytes they stand in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    count: u32,
}

/// One header. Names repeat, may be empty, and are UTF-8 only by convention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name's bytes.
    pub key: &'a [u8],
    /// The value, if not null.
    pub value: Option<&'a [u8]>,
}

impl<'a> Headers<'a> {
    /// Number of headers.
    #[inline]
    pub fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The headers in their order. Cannot fail: [`Records`] walked them once.
    pub fn iter(&self) -> impl Iterator<Item = Header<'a>> + Clone + use<'a> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| {
            let (header, tail) = take_header(rest).ok()?;
            rest = tail;
            Some(header)
        })
    }
}

/// Iterator over the records of an inflated payload. Stops after the first error.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
    append_time: Option<i64>,
}

impl<'a> Records<'a> {
    /// Records of the batch with this header, from its inflated payload.
    #[inline]
    pub fn new(header: &BatchHeader, payload: &'a [u8]) -> Self {
        let append_time = (header.attributes.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(header.max_timestamp);
        Self {
            rest: payload,
            left: header.records_count,
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time,
        }
    }

    /// Records not yet taken.
    #[inline]
    pub fn left(&self) -> i32 {
        self.left
    }

    /// Bytes not yet taken.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Goes on with other bytes of the same batch, for payloads that are inflated piece by piece.
    pub fn resume<'b>(&self, rest: &'b [u8]) -> Records<'b> {
        Records {
            rest,
            left: self.left,
            base_offset: self.base_offset,
            base_timestamp: self.base_timestamp,
            append_time: self.append_time,
        }
    }

    /// The next record; `None` after the last, when nothing may be left.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'a>>, CorruptKind> {
        if self.left <= 0 {
            return if self.left < 0 {
                Err(CorruptKind::RecordCount(self.left))
            } else if self.rest.is_empty() {
                Ok(None)
            } else {
                Err(CorruptKind::TrailingBytes)
            };
        }
        let (length, taken) = read_varint(self.rest)?;
        let body = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.get(taken..taken.checked_add(length)?))
            .ok_or(CorruptKind::RecordLength(i64::from(length)))?;
        let record = self.read_body(body)?;
        self.rest = self.rest.get(taken + body.len()..).unwrap_or_default();
        self.left -= 1;
        Ok(Some(record))
    }

    #[inline]
    fn read_body(&self, body: &'a [u8]) -> Result<RecordView<'a>, CorruptKind> {
        // The attributes byte is unused and ignored.
        let rest = body.get(1..).ok_or(CorruptKind::Varint)?;
        let (timestamp_delta, taken) = read_varlong(rest)?;
        let rest = rest.get(taken..).unwrap_or_default();
        let (offset_delta, taken) = read_varint(rest)?;
        let rest = rest.get(taken..).unwrap_or_default();
        let (key, rest) = take_nullable(rest)?;
        let (value, rest) = take_nullable(rest)?;
        let headers = take_headers(rest)?;
        let offset =
            self.base_offset.checked_add(i64::from(offset_delta)).ok_or(CorruptKind::Overflow)?;
        let timestamp = match self.append_time {
            Some(time) => time,
            None => {
                self.base_timestamp.checked_add(timestamp_delta).ok_or(CorruptKind::Overflow)?
            }
        };
        Ok(RecordView { offset, timestamp, key, value, headers })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, CorruptKind>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_err() {
            self.left = 0;
            self.rest = &[];
        }
        next.transpose()
    }
}

#[inline]
fn take_nullable(bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), CorruptKind> {
    let (length, taken) = read_varint(bytes)?;
    let rest = bytes.get(taken..).unwrap_or_default();
    if length < 0 {
        // Kafka takes every negative length for null.
        return Ok((None, rest));
    }
    let (field, rest) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or(CorruptKind::FieldLength(i64::from(length)))?;
    Ok((Some(field), rest))
}

#[inline]
fn take_headers(bytes: &[u8]) -> Result<Headers<'_>, CorruptKind> {
    // A record without headers ends in a single zero byte.
    if let [0] = bytes {
        return Ok(Headers::default());
    }
    take_headers_slow(bytes)
}

fn take_headers_slow(bytes: &[u8]) -> Result<Headers<'_>, CorruptKind> {
    let (count, taken) = read_varint(bytes)?;
    let fields = bytes.get(taken..).unwrap_or_default();
    let count = u32::try_from(count)
        .ok()
        .filter(|count| usize::try_from(*count).is_ok_and(|count| count <= fields.len()))
        .ok_or(CorruptKind::FieldLength(i64::from(count)))?;
    let mut rest = fields;
    for _ in 0..count {
        (_, rest) = take_header(rest)?;
    }
    if rest.is_empty() {
        Ok(Headers { bytes: fields, count })
    } else {
        Err(CorruptKind::TrailingBytes)
    }
}

fn take_header(bytes: &[u8]) -> Result<(Header<'_>, &[u8]), CorruptKind> {
    match take_nullable(bytes)? {
        (Some(key), rest) => {
            let (value, rest) = take_nullable(rest)?;
            Ok((Header { key, value }, rest))
        }
        (None, _) => Err(CorruptKind::FieldLength(-1)),
    }
}

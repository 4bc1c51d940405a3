//! Records inside an inflated version 2 payload.
//!
//! A record is: varint length; i8 attributes; varlong timestamp delta; varint offset delta; varint
//! key length (−1 null) and key; varint value length (−1 null) and value; varint header count; per
//! header a varint key length and key, a varint value length (−1 null) and value.
//!
//! Iterating allocates nothing: keys, values and headers are slices of the payload.

use super::plain::{DELTA_MAX, NEAR, PlainRecord, TIMESTAMP_MAX, take_plain};
use super::span::{Base, RecordSpan, read_span};
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
    /// Headers that were walked once and found well formed.
    #[inline]
    pub(super) fn walked(bytes: &'a [u8], count: u32) -> Self {
        Self { bytes, count }
    }

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
    payload: &'a [u8],
    at: usize,
    left: i32,
    base: Base,
    append_time: Option<i64>,
}

impl<'a> Records<'a> {
    /// Records of the batch with this header, from its inflated payload.
    #[inline]
    pub fn new(header: &BatchHeader, payload: &'a [u8]) -> Self {
        let append_time = (header.attributes.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(header.max_timestamp);
        Self {
            payload,
            at: 0,
            left: header.records_count,
            base: Base {
                offset: header.base_offset,
                // Deltas do not count when the broker set the time.
                timestamp: if append_time.is_some() { 0 } else { header.base_timestamp },
            },
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
        self.payload.get(self.at..).unwrap_or_default()
    }

    /// The bytes that spans refer to.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Goes on with other bytes of the same batch, for payloads that are inflated piece by piece.
    pub fn resume<'b>(&self, payload: &'b [u8]) -> Records<'b> {
        Records { payload, at: 0, left: self.left, base: self.base, append_time: self.append_time }
    }

    /// The next record; `None` after the last, when nothing may be left.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'a>>, CorruptKind> {
        Ok(self.next_span()?.map(|span| span.view(self.payload)))
    }

    /// The next record as ranges of [`Self::payload`].
    #[inline]
    pub fn next_span(&mut self) -> Result<Option<RecordSpan>, CorruptKind> {
        if self.left <= 0 {
            return self.end().map(|()| None);
        }
        let mut span = RecordSpan::default();
        let Some(next) = read_span(self.payload, self.at, self.base, &mut span) else {
            return Err(self.find_fault());
        };
        if let Some(time) = self.append_time {
            span.timestamp = time;
        }
        self.at = next;
        self.left -= 1;
        Ok(Some(span))
    }

    /// Puts the next records into `spans` and returns how many there were: as many as there is room
    /// for, or all that are left. Nothing may be left after the last.
    pub fn take_spans(&mut self, spans: &mut [RecordSpan]) -> Result<usize, CorruptKind> {
        let left = usize::try_from(self.left).unwrap_or(0);
        let count = left.min(spans.len());
        let spans = spans.get_mut(..count).unwrap_or_default();
        let Self { payload, mut at, base, .. } = *self;
        for span in &mut *spans {
            let Some(next) = read_span(payload, at, base, span) else {
                self.at = at;
                return Err(self.find_fault());
            };
            at = next;
        }
        self.at = at;
        self.left -= i32::try_from(count).unwrap_or(self.left);
        if let Some(time) = self.append_time {
            for span in spans {
                span.timestamp = time;
            }
        }
        if self.left <= 0 {
            self.end()?;
        }
        Ok(count)
    }

    /// Whether [`Self::take_plain`] may find anything here.
    #[inline]
    pub fn may_be_plain(&self) -> bool {
        let is_far = |base: i64, most: i64| base.unsigned_abs() > most.unsigned_abs();
        let timestamp = self.append_time.unwrap_or(self.base.timestamp);
        self.payload.len() - self.at >= NEAR
            && !is_far(timestamp, TIMESTAMP_MAX)
            && !is_far(self.base.offset, i64::MAX - DELTA_MAX)
    }

    /// Gives the next records to `put`, one for each of `rows`, and returns how many it took. Stops
    /// before the first that is not plain or that `put` does not take; that one is still to come.
    /// Nothing may be left after the last.
    #[inline]
    pub fn take_plain<T>(
        &mut self,
        rows: impl Iterator<Item = T>,
        mut put: impl FnMut(T, PlainRecord<'a>) -> Option<()>,
    ) -> Result<usize, CorruptKind> {
        if !self.may_be_plain() {
            return Ok(0);
        }
        let mut rest = self.rest();
        let before = rest.len();
        let (timestamp, counts) = match self.append_time {
            // Deltas do not count when the broker set the time.
            Some(time) => (time, 0),
            None => (self.base.timestamp, -1),
        };
        let base = Base { offset: self.base.offset, timestamp };
        let mut taken = 0;
        for row in rows.take(usize::try_from(self.left).unwrap_or(0)) {
            let Some((record, after)) = take_plain(rest, base, counts) else { break };
            if put(row, record).is_none() {
                break;
            }
            rest = after;
            taken += 1;
        }
        self.at += before - rest.len();
        self.left -= i32::try_from(taken).unwrap_or(self.left);
        if self.left <= 0 {
            self.end()?;
        }
        Ok(taken)
    }

    fn end(&self) -> Result<(), CorruptKind> {
        if self.left < 0 {
            Err(CorruptKind::RecordCount(self.left))
        } else if self.at < self.payload.len() {
            Err(CorruptKind::TrailingBytes)
        } else {
            Ok(())
        }
    }

    /// Which check the next record fails.
    #[cold]
    fn find_fault(&self) -> CorruptKind {
        let rest = self.rest();
        let (length, taken) = match read_varint(rest) {
            Ok(read) => read,
            Err(kind) => return kind,
        };
        let body = usize::try_from(length).ok().and_then(|length| rest.get(taken..)?.get(..length));
        let Some(body) = body else { return CorruptKind::RecordLength(i64::from(length)) };
        match Self::find_fault_in(body) {
            Err(kind) => kind,
            // The fields are well formed; what is left to fail is the sum with the base.
            Ok(()) => CorruptKind::Overflow,
        }
    }

    fn find_fault_in(body: &[u8]) -> Result<(), CorruptKind> {
        let rest = body.get(1..).ok_or(CorruptKind::Varint)?;
        let (_, taken) = read_varlong(rest)?;
        let rest = rest.get(taken..).unwrap_or_default();
        let (_, taken) = read_varint(rest)?;
        let rest = rest.get(taken..).unwrap_or_default();
        let (_, rest) = take_nullable(rest)?;
        let (_, rest) = take_nullable(rest)?;
        check_headers(rest)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, CorruptKind>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_record();
        if next.is_err() {
            self.left = 0;
            self.at = self.payload.len();
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

fn check_headers(bytes: &[u8]) -> Result<(), CorruptKind> {
    let (count, taken) = read_varint(bytes)?;
    let mut rest = bytes.get(taken..).unwrap_or_default();
    let fits = usize::try_from(count).is_ok_and(|count| count <= rest.len());
    if !fits {
        return Err(CorruptKind::FieldLength(i64::from(count)));
    }
    for _ in 0..count {
        (_, rest) = take_header(rest)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(CorruptKind::TrailingBytes) }
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

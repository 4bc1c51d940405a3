//! The records of an open version 2 batch, taken piece by piece.
//!
//! A plain payload is read where it lies in the window. A compressed one is inflated whole when it
//! is small, and streamed through a buffer when it is not, so that memory does not depend on how
//! well it compressed.

use kafkaseg_core::CorruptKind;
use kafkaseg_core::codec::{Decoder, Dialect, InflateError, Paused};
use kafkaseg_core::limits::{
    BATCH_HEADER_BYTES, INFLATE_WINDOW_BYTES, LEGACY_SET_BYTES_MAX, RECORD_BYTES_MAX,
};
use kafkaseg_core::record::varint::read_varint;
use kafkaseg_core::record::{BatchHeader, Codec, LegacyView, RecordSpan, Records};

use crate::columns::Columns;
use crate::reader::Wanted;

/// What an Arrow batch may exceed its size by before records are looked at one by one: most Kafka
/// batches are smaller, and their records need no check each.
const OVERSHOOT_BYTES: usize = 1 << 20;

/// How far a call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pumped {
    /// The Arrow batch is full; more records may follow.
    Full,
    /// The Kafka batch has no more records.
    Done,
    /// Neither, but it is time to give the caller a chance to stop.
    Paused,
}

enum Source {
    /// In the window.
    Plain,
    /// Whole, in the decoder.
    Inflated,
    /// Piece by piece.
    Streamed(Box<Streamed>),
}

struct Streamed {
    paused: Paused,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_at_end: bool,
    /// Bytes inflated since the last pause.
    inflated: usize,
}

/// The open batch.
#[derive(Default)]
pub(crate) struct V2Payload {
    decoder: Decoder,
    open: Option<Open>,
    spans: Vec<RecordSpan>,
}

struct Open {
    source: Source,
    /// Bytes of the payload already taken.
    cursor: usize,
    /// Where the records stand, without their bytes.
    records: Records<'static>,
    wanted: Option<Wanted>,
}

impl V2Payload {
    /// Opens a batch whose payload is stored as `stored`; `wanted` picks records, if not all are.
    pub(crate) fn open(
        &mut self,
        header: &BatchHeader,
        stored: &[u8],
        wanted: Option<Wanted>,
    ) -> Result<(), CorruptKind> {
        self.open = None;
        let codec = header.attributes.codec()?;
        let source = if codec == Codec::None || stored.is_empty() {
            Source::Plain
        } else {
            match self.decoder.inflate(codec, stored, INFLATE_WINDOW_BYTES) {
                Ok(_) => Source::Inflated,
                Err(InflateError::OverBudget) => Source::Streamed(Box::new(Streamed {
                    paused: self.decoder.stream(codec, stored)?.pause(),
                    buffer: Vec::new(),
                    start: 0,
                    end: 0,
                    is_at_end: false,
                    inflated: 0,
                })),
                Err(error) => return Err(error.into()),
            }
        };
        self.open = Some(Open { source, cursor: 0, records: Records::new(header, &[]), wanted });
        Ok(())
    }

    /// Pushes records until the batch or `columns` is done. `stored` is the same as at `open`.
    pub(crate) fn pump(
        &mut self,
        stored: &[u8],
        columns: &mut Columns,
        base: (i64, i32),
    ) -> Result<Pumped, CorruptKind> {
        let Some(open) = &mut self.open else { return Ok(Pumped::Done) };
        let payload = match &mut open.source {
            Source::Plain => stored,
            Source::Inflated => self.decoder.inflated(),
            Source::Streamed(streamed) => {
                let decoder = &mut self.decoder;
                let input = Compressed { decoder, stored };
                return streamed.pump(input, &mut open.records, open.wanted, columns, base);
            }
        };
        let mut records = open.records.resume(payload.get(open.cursor..).unwrap_or_default());
        let pumped = drain(&mut records, open.wanted, &mut self.spans, columns, base)?;
        open.cursor = payload.len() - records.rest().len();
        open.records = records.resume(&[]);
        Ok(pumped)
    }
}

/// Records that are placed before their columns are built: few enough to stay in the first-level
/// cache, enough to make each column's loop a long one.
const SPANS: usize = 128;

/// Records that are appended in one pass, when they are plain.
const PLAIN: usize = 256;

/// Pushes whole records of contiguous bytes.
fn drain(
    records: &mut Records<'_>,
    wanted: Option<Wanted>,
    spans: &mut Vec<RecordSpan>,
    columns: &mut Columns,
    base: (i64, i32),
) -> Result<Pumped, CorruptKind> {
    let payload = records.payload();
    let is_huge = payload.len() > RECORD_BYTES_MAX;
    spans.resize(SPANS, RecordSpan::default());
    loop {
        // When the rest is larger than the room, fewer records at a time keep close to the size.
        let room = columns.room().saturating_add(OVERSHOOT_BYTES);
        let before = records.rest().len();
        let most = if before <= room && !is_huge { SPANS } else { 1 };
        let is_taken =
            most == SPANS && wanted.is_none() && columns.append_plain(records, PLAIN)? > 0;
        if is_taken {
            if records.left() <= 0 {
                return Ok(Pumped::Done);
            }
            if columns.is_full() {
                return Ok(Pumped::Full);
            }
            continue;
        }
        let mut count = records.take_spans(spans.get_mut(..most).unwrap_or_default())?;
        if is_huge {
            check_record_bytes(before - records.rest().len())?;
        }
        if let Some(wanted) = wanted {
            count = keep(spans, count, wanted);
        }
        columns.append(payload, spans.get(..count).unwrap_or_default(), base);
        if records.left() <= 0 {
            return Ok(Pumped::Done);
        }
        if columns.is_full() {
            return Ok(Pumped::Full);
        }
    }
}

/// Moves the wanted ones of the first `count` spans to the front, and returns how many they are.
fn keep(spans: &mut [RecordSpan], count: usize, wanted: Wanted) -> usize {
    let mut kept = 0;
    for index in 0..count {
        if spans.get(index).is_some_and(|span| wanted.takes(span.offset, span.timestamp)) {
            spans.swap(kept, index);
            kept += 1;
        }
    }
    kept
}

/// Refuses a record that does not fit a column beside others.
pub(crate) fn check_record_bytes(bytes: usize) -> Result<(), CorruptKind> {
    if bytes > RECORD_BYTES_MAX {
        return Err(CorruptKind::RecordTooLarge(u64::try_from(bytes).unwrap_or(u64::MAX)));
    }
    Ok(())
}

/// The compressed payload, and the decoder that holds the rest of the stream's state.
struct Compressed<'a> {
    decoder: &'a mut Decoder,
    stored: &'a [u8],
}

impl Streamed {
    fn pump(
        &mut self,
        mut input: Compressed<'_>,
        records: &mut Records<'static>,
        wanted: Option<Wanted>,
        columns: &mut Columns,
        base: (i64, i32),
    ) -> Result<Pumped, CorruptKind> {
        self.inflated = 0;
        while records.left() > 0 {
            if self.inflated >= INFLATE_WINDOW_BYTES {
                return Ok(Pumped::Paused);
            }
            self.make_available(&mut input)?;
            let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
            let mut here = records.resume(bytes);
            let record = here.next_record()?;
            self.start = self.end - here.rest().len();
            if let Some(record) = record.filter(|record| {
                wanted.is_none_or(|wanted| wanted.takes(record.offset, record.timestamp))
            }) {
                columns.push(&record, base);
            }
            *records = here.resume(&[]);
            if columns.is_full() {
                return Ok(Pumped::Full);
            }
        }
        self.refill(&mut input, 1)?;
        if self.start < self.end { Err(CorruptKind::TrailingBytes) } else { Ok(Pumped::Done) }
    }

    /// Makes the next record whole in the buffer, or all that is left of the stream.
    fn make_available(&mut self, input: &mut Compressed<'_>) -> Result<(), CorruptKind> {
        // The longest length prefix is five bytes.
        self.refill(input, 5)?;
        let bytes = self.buffer.get(self.start..self.end).unwrap_or_default();
        let (length, taken) = read_varint(bytes)?;
        let length =
            usize::try_from(length).map_err(|_| CorruptKind::RecordLength(i64::from(length)))?;
        check_record_bytes(length)?;
        self.refill(input, length.saturating_add(taken))
    }

    /// Inflates until `bytes` bytes are held or the stream ends.
    fn refill(&mut self, input: &mut Compressed<'_>, bytes: usize) -> Result<(), CorruptKind> {
        if self.end - self.start >= bytes || self.is_at_end {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let mut stream = input.decoder.resume(self.paused, input.stored)?;
        while self.end < bytes && !self.is_at_end {
            if self.end == self.buffer.len() {
                // Grown as the stream gives bytes, not as a length field asks for them.
                let grown = (self.buffer.len() * 2).max(OVERSHOOT_BYTES);
                self.buffer.resize(grown, 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let read = stream.read(room)?;
            self.end += read;
            self.inflated += read;
            self.is_at_end = read == 0;
        }
        self.paused = stream.pause();
        Ok(())
    }
}

/// The whole payload of a batch, for a look into single batches.
pub(crate) fn inflate_whole<'a>(
    payload: &'a mut V2Payload,
    header: &BatchHeader,
    bytes: &'a [u8],
) -> Result<&'a [u8], CorruptKind> {
    let stored = bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default();
    match header.attributes.codec()? {
        Codec::None => Ok(stored),
        _ if stored.is_empty() => Ok(stored),
        codec => Ok(payload.decoder.inflate(codec, stored, LEGACY_SET_BYTES_MAX)?),
    }
}

/// The inflated set of an old-format wrapper.
pub(crate) fn inflate_legacy<'a>(
    payload: &'a mut V2Payload,
    view: &LegacyView<'a>,
) -> Result<&'a [u8], CorruptKind> {
    let stored = view.compressed()?;
    let dialect = Dialect::from_magic(view.magic()).ok_or(CorruptKind::Magic(view.magic()))?;
    Ok(payload.decoder.inflate_as(dialect, view.codec(), stored, LEGACY_SET_BYTES_MAX)?)
}

//! Turning columns into version 2 batches, as fast as the bytes can be copied.
//!
//! The bytes are those that [`BatchBuilder`](super::BatchBuilder) makes of the same records. What
//! differs is the way there: the small fields of a record are put together in a register and stored
//! at once, the output grows in place, and nothing is allocated per record.
//!
//! 1. A batch is closed before the record that would take it over the target, as Kafka's producer
//!    closes its batches; the target counts the bytes before compression, header included. One
//!    record always fits.
//! 2. No batch is larger than the limit, compressed or not: one that compresses to more is made of
//!    fewer records; a single record over it is refused.
//! 3. On an error the output is as it was.

use super::batch_spec::{check_timestamp, invalid};
use super::builder::{PAYLOAD_BYTES_MAX, batch_length, seal};
use super::columns::Columns;
use super::encode::StoredRecord;
use super::fault::{code, refuse, too_large};
use super::varint::{varint_word, zigzag32, zigzag64};
use super::{Attributes, BatchHeader, BatchSpec, Codec, Header, TimestampType};
use crate::codec::Encoder;
use crate::error::{Error, Result};
use crate::limits::BATCH_HEADER_BYTES;

/// Room that is asked for at the start of a batch; more comes as it is needed.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Raw values below this take at most four bytes.
const SHORT_RAW_MAX: u64 = 1 << 28;

/// How batches are cut and compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatcherOptions {
    /// Bytes at which a batch is closed, before compression and with its header.
    pub target_bytes: usize,
    /// Bytes that no batch exceeds as it is stored: `max.message.bytes`.
    pub max_bytes: usize,
    /// How batches are compressed.
    pub codec: Codec,
    /// The level of the codec; `None` is its default.
    pub level: Option<i32>,
}

/// Makes batches of columns. Holds what is worth keeping between them.
#[derive(Debug)]
pub struct ColumnsBatcher {
    options: BatcherOptions,
    encoder: Encoder,
    /// Records of one batch on their way through a codec.
    payload: Vec<u8>,
}

/// What a call has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Built {
    /// Batches appended to the output.
    pub batches: usize,
    /// The first row that is in none of them.
    pub next_row: usize,
    /// What the batch after them is to be.
    pub next_spec: BatchSpec,
}

/// Records of one batch, written.
struct Filled {
    rows: usize,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl ColumnsBatcher {
    /// A batcher; refuses a level that the codec does not have.
    pub fn new(options: BatcherOptions) -> Result<Self> {
        Encoder::check_level(options.codec, options.level)?;
        Ok(Self { options, encoder: Encoder::new(), payload: Vec::new() })
    }

    /// How batches are cut and compressed.
    pub fn options(&self) -> &BatcherOptions {
        &self.options
    }

    /// Appends batches of the rows from `row` on to `output`, until it holds `enough` bytes or no
    /// row is left. `spec` is what the first batch is; offsets and sequences go on from it.
    pub fn append(
        &mut self,
        columns: &Columns<'_>,
        row: usize,
        spec: BatchSpec,
        output: &mut Vec<u8>,
        enough: usize,
    ) -> Result<Built> {
        let start = output.len();
        let mut built = Built { batches: 0, next_row: row, next_spec: spec };
        while built.next_row < columns.rows() && output.len() < enough {
            let made = self.append_one(columns, built.next_row, built.next_spec, output);
            let header = made.inspect_err(|_| output.truncate(start))?;
            built.batches += 1;
            built.next_row += usize::try_from(header.records_count).unwrap_or(0);
            built.next_spec = following(&built.next_spec, &header)?;
        }
        Ok(built)
    }

    /// Appends one batch of the rows from `row` on to `output` and gives its header.
    pub fn append_one(
        &mut self,
        columns: &Columns<'_>,
        row: usize,
        spec: BatchSpec,
        output: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        spec.check()?;
        if spec.last_offset.is_some() || spec.delete_horizon.is_some() {
            return Err(invalid("columns hold no compacted records".to_owned()));
        }
        if row >= columns.rows() {
            return Err(invalid(format!("row {row} of {}", columns.rows())));
        }
        let start = output.len();
        let made = if self.options.codec == Codec::None {
            self.append_plain(columns, row, spec, output)
        } else {
            self.append_compressed(columns, row, spec, output)
        };
        made.inspect_err(|_| output.truncate(start))
    }

    fn append_plain(
        &mut self,
        columns: &Columns<'_>,
        row: usize,
        spec: BatchSpec,
        output: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        let BatcherOptions { target_bytes, max_bytes, .. } = self.options;
        let start = output.len();
        let target = target_bytes.min(max_bytes);
        output.reserve(target.min(ROOM_BYTES_MAX));
        output.extend_from_slice(&[0; BATCH_HEADER_BYTES]);
        let span = Span {
            row,
            end: columns.rows(),
            close: start.saturating_add(target),
            most: start.saturating_add(max_bytes.min(PAYLOAD_BYTES_MAX)),
        };
        let filled = fill(columns, &span, output)?;
        let batch = output.get_mut(start..).unwrap_or_default();
        finish(header_of(&spec, Codec::None, &filled)?, batch)
    }

    fn append_compressed(
        &mut self,
        columns: &Columns<'_>,
        row: usize,
        spec: BatchSpec,
        output: &mut Vec<u8>,
    ) -> Result<BatchHeader> {
        let BatcherOptions { target_bytes, max_bytes, codec, level } = self.options;
        let start = output.len();
        let payload_target = target_bytes.saturating_sub(BATCH_HEADER_BYTES);
        let mut end = columns.rows();
        loop {
            self.payload.clear();
            let span = Span { row, end, close: payload_target, most: PAYLOAD_BYTES_MAX };
            let filled = fill(columns, &span, &mut self.payload)?;
            output.extend_from_slice(&[0; BATCH_HEADER_BYTES]);
            self.encoder.compress(codec, level, &self.payload, output)?;
            let batch = output.get_mut(start..).unwrap_or_default();
            if batch.len() <= max_bytes {
                return finish(header_of(&spec, codec, &filled)?, batch);
            }
            if filled.rows == 1 {
                return Err(too_large(batch.len(), max_bytes));
            }
            output.truncate(start);
            end = row + filled.rows / 2;
        }
    }
}

/// The rows that a batch may take, and the lengths of the output that end it.
#[derive(Clone, Copy)]
struct Span {
    row: usize,
    end: usize,
    /// No record but the first goes beyond this.
    close: usize,
    /// No record goes beyond this.
    most: usize,
}

/// Writes rows behind what `output` holds.
fn fill(columns: &Columns<'_>, span: &Span, output: &mut Vec<u8>) -> Result<Filled> {
    let base_timestamp = columns.timestamp(span.row);
    let mut filled = Filled { rows: 0, base_timestamp, max_timestamp: -1 };
    let mut limit = span.most;
    let mut offset_delta = 0_i32;
    for row in span.row..span.end {
        let timestamp = columns.timestamp(row);
        if timestamp < -1 {
            check_timestamp(timestamp)?;
        }
        let Some(timestamp_delta) = timestamp.checked_sub(base_timestamp) else {
            return Err(invalid(format!("timestamp {timestamp} is too far from the first")));
        };
        let record =
            Row { timestamp_delta, offset_delta, key: columns.key(row), value: columns.value(row) };
        let room = limit.saturating_sub(output.len());
        let written = match columns.headers() {
            None => record.write(output, room),
            Some(headers) => record.write_with(headers.get(row), output, room),
        };
        if !written? {
            if filled.rows == 0 {
                return Err(record_too_large(row, span.most));
            }
            break;
        }
        limit = span.close.min(span.most);
        filled.rows += 1;
        filled.max_timestamp = filled.max_timestamp.max(timestamp);
        let Some(next) = offset_delta.checked_add(1) else { break };
        offset_delta = next;
    }
    Ok(filled)
}

#[cold]
fn record_too_large(row: usize, limit: usize) -> Error {
    refuse(code::MESSAGE_TOO_LARGE, format!("record {row} alone takes more than {limit} bytes"))
}

/// One record on its way into a batch.
struct Row<'a> {
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
}

impl Row<'_> {
    /// Appends the record unless it is larger than the room; gives whether it was.
    #[inline]
    fn write(&self, output: &mut Vec<u8>, room: usize) -> Result<bool> {
        let (key_raw, key_bytes) = field_raw(self.key);
        let (value_raw, value_bytes) = field_raw(self.value);
        let timestamp_raw = zigzag64(self.timestamp_delta);
        let offset_raw = u64::from(zigzag32(self.offset_delta));
        // All four are small, or the sum of the sizes below could exceed its own four bytes.
        if (key_raw | value_raw | timestamp_raw | offset_raw) >= SHORT_RAW_MAX / 4 {
            return self.write_with(std::iter::empty(), output, room);
        }
        let (timestamp, timestamp_bytes) = varint_word(timestamp_raw);
        let (offset, offset_bytes) = varint_word(offset_raw);
        let (key_length, key_length_bytes) = varint_word(key_raw);
        let (value_length, value_length_bytes) = varint_word(value_raw);
        let small = timestamp_bytes + offset_bytes + key_length_bytes + value_length_bytes + 2;
        let body = usize::try_from(small).unwrap_or(0) + key_bytes + value_bytes;
        let body_raw = u64::try_from(body).unwrap_or(0) << 1;
        let (length, length_bytes) = varint_word(body_raw);
        if body + usize::try_from(length_bytes).unwrap_or(4) > room {
            return Ok(false);
        }
        // Length, attributes (0), timestamp and offset: 13 bytes at most.
        let mut head = u128::from(timestamp) | (u128::from(offset) << (8 * timestamp_bytes));
        let mut head_bytes = length_bytes + 1;
        head = u128::from(length) | (head << (8 * head_bytes));
        head_bytes += timestamp_bytes + offset_bytes;
        if let Some(key) = self.key {
            put(output, head.to_le_bytes(), head_bytes);
            put(output, key_length.to_le_bytes(), key_length_bytes);
            output.extend_from_slice(key);
            put(output, value_length.to_le_bytes(), value_length_bytes);
        } else {
            let lengths = key_length | (value_length << 8);
            put(output, head.to_le_bytes(), head_bytes);
            put(output, lengths.to_le_bytes(), 1 + value_length_bytes);
        }
        output.extend_from_slice(self.value.unwrap_or_default());
        output.push(0);
        Ok(true)
    }

    /// The same for any record.
    #[inline(never)]
    fn write_with<'h, H>(&self, headers: H, output: &mut Vec<u8>, room: usize) -> Result<bool>
    where
        H: Iterator<Item = Header<'h>> + Clone,
    {
        let record = StoredRecord {
            timestamp_delta: self.timestamp_delta,
            offset_delta: self.offset_delta,
            key: self.key,
            value: self.value,
            headers,
        };
        match record.write(output, room) {
            Ok(()) => Ok(true),
            Err(Error::TooLarge { what: "batch", .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }
}

/// Appends the first `count` of some bytes: all are stored, which takes one instruction, and the
/// rest is given back.
#[inline]
fn put<const N: usize>(output: &mut Vec<u8>, bytes: [u8; N], count: u32) {
    let end = output.len() + usize::try_from(count).unwrap_or(N);
    output.extend_from_slice(&bytes);
    output.truncate(end);
}

/// The length of a field as it is stored, before it is cut into groups of bits, and the bytes after
/// it. Null is −1.
#[inline]
fn field_raw(field: Option<&[u8]>) -> (u64, usize) {
    match field {
        None => (1, 0),
        Some(field) => (u64::try_from(field.len()).unwrap_or(u64::MAX) << 1, field.len()),
    }
}

/// The header, but for length and checksum.
fn header_of(spec: &BatchSpec, codec: Codec, filled: &Filled) -> Result<BatchHeader> {
    let records_count = i32::try_from(filled.rows)
        .map_err(|_| invalid(format!("{} records in a batch", filled.rows)))?;
    let last_offset_delta = records_count - 1;
    // The offset after the last must exist too.
    if spec.base_offset.checked_add(i64::from(records_count)).is_none() {
        return Err(invalid(format!("a batch cannot begin at offset {}", spec.base_offset)));
    }
    let timestamp_type = match spec.append_time {
        Some(_) => TimestampType::LogAppendTime,
        None => TimestampType::CreateTime,
    };
    Ok(BatchHeader {
        base_offset: spec.base_offset,
        batch_length: 0,
        leader_epoch: spec.leader_epoch,
        crc: 0,
        attributes: Attributes::new(codec, timestamp_type)
            .with_transactional(spec.transactional)
            .with_control(spec.control),
        last_offset_delta,
        base_timestamp: filled.base_timestamp,
        max_timestamp: spec.append_time.unwrap_or(filled.max_timestamp),
        producer_id: spec.producer_id,
        producer_epoch: spec.producer_epoch,
        base_sequence: spec.base_sequence,
        records_count,
    })
}

/// Puts the header in front of the records, with length and checksum.
fn finish(mut header: BatchHeader, batch: &mut [u8]) -> Result<BatchHeader> {
    header.batch_length = batch_length(batch.len())?;
    if let Some(head) = batch.first_chunk_mut() {
        *head = header.write();
    }
    seal(&mut header, batch);
    Ok(header)
}

/// The batch after this one.
fn following(spec: &BatchSpec, header: &BatchHeader) -> Result<BatchSpec> {
    let base_offset = header
        .last_offset()
        .checked_add(1)
        .ok_or_else(|| invalid("no offset is left".to_owned()))?;
    let base_sequence = header.sequence_at(i64::from(header.records_count));
    Ok(BatchSpec { base_offset, base_sequence, ..*spec })
}

//! Arrow arrays grown record by record.
//!
//! What a record has of its own (key, value, offset, timestamp, headers, sequence) is appended per
//! record. What its batch or partition gives to all its records is kept as runs, and becomes an
//! array only when a batch is finished; a run that fills the whole batch is a slice of a cached
//! array, so topic and partition cost nothing per record.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, PrimitiveArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use kafkaseg_core::record::{Codec, Headers, RecordSpan, RecordView, Records, TimestampType};
use kafkaseg_core::{CorruptKind, Error, Result};

use crate::bytes_column::BytesColumn;
use crate::plain::append_plain;
use crate::pool::NumberColumn;
use crate::schema::{Column, header_fields, header_item, schema_of};

/// What all records of a batch share.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BatchFacts {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) leader_epoch: i32,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) base_offset: i64,
    pub(crate) position: i64,
    pub(crate) segment: i64,
    pub(crate) codec: Codec,
    pub(crate) magic: i8,
    pub(crate) is_transactional: bool,
    pub(crate) is_control: bool,
}

/// Header lists: one entry per record that has any.
struct HeadersColumn {
    offsets: Vec<i32>,
    validity: BooleanBufferBuilder,
    keys: BytesColumn,
    values: BytesColumn,
}

impl HeadersColumn {
    fn new(keep_bytes: usize) -> Self {
        Self {
            offsets: vec![0],
            validity: BooleanBufferBuilder::new(1024),
            keys: BytesColumn::new(keep_bytes),
            values: BytesColumn::new(keep_bytes),
        }
    }

    fn push(&mut self, headers: Headers<'_>) {
        for header in headers.iter() {
            // Names that are not UTF-8 read as Kafka's own clients show them, with U+FFFD.
            match std::str::from_utf8(header.key) {
                Ok(_) => self.keys.push(Some(header.key)),
                Err(_) => self.keys.push(Some(String::from_utf8_lossy(header.key).as_bytes())),
            }
            self.values.push(header.value);
        }
        self.validity.append(!headers.is_empty());
        self.offsets.push(i32::try_from(self.keys.rows()).unwrap_or(i32::MAX));
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows + 1);
        self.validity.truncate(rows);
        let headers = self.offsets.last().map_or(0, |end| usize::try_from(*end).unwrap_or(0));
        self.keys.truncate(headers);
        self.values.truncate(headers);
    }

    fn finish(&mut self) -> Result<ListArray> {
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let nulls = NullBuffer::new(self.validity.finish());
        let keys: ArrayRef = Arc::new(self.keys.finish_text()?);
        let values: ArrayRef = Arc::new(self.values.finish_binary()?);
        let items =
            StructArray::try_new(header_fields(), vec![keys, values], None).map_err(arrow_error)?;
        ListArray::try_new(
            Arc::new(header_item()),
            OffsetBuffer::new(ScalarBuffer::from(offsets)),
            Arc::new(items),
            Some(nulls),
        )
        .map_err(arrow_error)
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + self.values.bytes() + self.offsets.len() * 4
    }
}

/// A column made of runs of equal values, with the array of the last constant batch kept.
struct Runs<T> {
    runs: Vec<(T, usize)>,
    cached: Option<(T, ArrayRef)>,
}

impl<T: PartialEq + Clone> Runs<T> {
    fn new() -> Self {
        Self { runs: Vec::new(), cached: None }
    }

    fn push(&mut self, value: &T, rows: usize) {
        match self.runs.last_mut() {
            Some((last, count)) if last == value => *count += rows,
            _ => self.runs.push((value.clone(), rows)),
        }
    }

    fn finish(&mut self, rows: usize, build: impl Fn(&[(T, usize)]) -> ArrayRef) -> ArrayRef {
        let runs = std::mem::take(&mut self.runs);
        let [(value, _)] = runs.as_slice() else { return build(&runs) };
        match &self.cached {
            Some((kept, array)) if kept == value && array.len() >= rows => array.slice(0, rows),
            _ => {
                // A little longer than asked, so that the next batches fit the same array.
                let array = build(&[(value.clone(), rows + rows / 4)]);
                self.cached = Some((value.clone(), Arc::clone(&array)));
                array.slice(0, rows)
            }
        }
    }
}

fn primitive_runs<P: ArrowPrimitiveType>(runs: &[(P::Native, usize)]) -> ArrayRef {
    let mut values = Vec::with_capacity(runs.iter().map(|(_, rows)| rows).sum());
    for (value, rows) in runs {
        values.resize(values.len() + rows, *value);
    }
    Arc::new(PrimitiveArray::<P>::new(ScalarBuffer::from(values), None))
}

fn text_runs<T: AsRef<str>>(runs: &[(T, usize)]) -> ArrayRef {
    Arc::new(
        runs.iter()
            .flat_map(|(text, rows)| std::iter::repeat_n(Some(text.as_ref()), *rows))
            .collect::<StringArray>(),
    )
}

fn boolean_runs(runs: &[(bool, usize)]) -> ArrayRef {
    let mut bits = BooleanBufferBuilder::new(0);
    for (value, rows) in runs {
        bits.append_n(*rows, *value);
    }
    let bits: BooleanBuffer = bits.finish();
    Arc::new(BooleanArray::new(bits, None))
}

enum Builder {
    Key,
    Value,
    Offset,
    Timestamp,
    Headers,
    Sequence,
    Topic(Runs<Arc<str>>),
    Codec(Runs<&'static str>),
    Int64(Runs<i64>, fn(&BatchFacts) -> i64),
    Int32(Runs<i32>, fn(&BatchFacts) -> i32),
    Int16(Runs<i16>, fn(&BatchFacts) -> i16),
    Int8(Runs<i8>, fn(&BatchFacts) -> i8),
    Boolean(Runs<bool>, fn(&BatchFacts) -> bool),
}

impl Builder {
    fn of(column: Column) -> Self {
        match column {
            Column::Key => Self::Key,
            Column::Value => Self::Value,
            Column::Offset => Self::Offset,
            Column::Timestamp => Self::Timestamp,
            Column::Headers => Self::Headers,
            Column::Sequence => Self::Sequence,
            Column::Topic => Self::Topic(Runs::new()),
            Column::Codec => Self::Codec(Runs::new()),
            Column::Partition => Self::Int32(Runs::new(), |facts| facts.partition),
            Column::TimestampType => Self::Int32(Runs::new(), |facts| facts.timestamp_type.id()),
            Column::LeaderEpoch => Self::Int32(Runs::new(), |facts| facts.leader_epoch),
            Column::ProducerId => Self::Int64(Runs::new(), |facts| facts.producer_id),
            Column::BatchBaseOffset => Self::Int64(Runs::new(), |facts| facts.base_offset),
            Column::BatchPosition => Self::Int64(Runs::new(), |facts| facts.position),
            Column::Segment => Self::Int64(Runs::new(), |facts| facts.segment),
            Column::ProducerEpoch => Self::Int16(Runs::new(), |facts| facts.producer_epoch),
            Column::Magic => Self::Int8(Runs::new(), |facts| facts.magic),
            Column::IsTransactional => Self::Boolean(Runs::new(), |facts| facts.is_transactional),
            Column::IsControl => Self::Boolean(Runs::new(), |facts| facts.is_control),
        }
    }

    fn end_batch(&mut self, facts: &BatchFacts, rows: usize) {
        match self {
            Self::Key
            | Self::Value
            | Self::Offset
            | Self::Timestamp
            | Self::Headers
            | Self::Sequence => {}
            Self::Topic(runs) => runs.push(&facts.topic, rows),
            Self::Codec(runs) => runs.push(&facts.codec.name(), rows),
            Self::Int64(runs, get) => runs.push(&get(facts), rows),
            Self::Int32(runs, get) => runs.push(&get(facts), rows),
            Self::Int16(runs, get) => runs.push(&get(facts), rows),
            Self::Int8(runs, get) => runs.push(&get(facts), rows),
            Self::Boolean(runs, get) => runs.push(&get(facts), rows),
        }
    }
}

/// The arrays of the batch being built.
pub(crate) struct Columns {
    schema: SchemaRef,
    builders: Vec<Builder>,
    keys: Option<BytesColumn>,
    values: Option<BytesColumn>,
    offsets: Option<NumberColumn<i64>>,
    timestamps: Option<NumberColumn<i64>>,
    headers: Option<HeadersColumn>,
    sequences: Option<NumberColumn<i32>>,
    rows: usize,
    rows_of_batch: usize,
    batch_bytes: usize,
    fixed_row_bytes: usize,
    /// Bytes of text that each row of the current partition adds, and those of the rows so far.
    text_row_bytes: usize,
    text_bytes: usize,
}

impl Columns {
    pub(crate) fn new(columns: &[Column], batch_bytes: usize) -> Self {
        let wants = |column| columns.contains(&column);
        // An Arrow batch may exceed its size by what was read at once.
        let keep_bytes = batch_bytes.saturating_mul(2);
        let bytes = |column| wants(column).then(|| BytesColumn::new(keep_bytes));
        let longs = |column| wants(column).then(|| NumberColumn::new(keep_bytes));
        Self {
            schema: schema_of(columns),
            builders: columns.iter().map(|column| Builder::of(*column)).collect(),
            keys: bytes(Column::Key),
            values: bytes(Column::Value),
            offsets: longs(Column::Offset),
            timestamps: longs(Column::Timestamp),
            headers: wants(Column::Headers).then(|| HeadersColumn::new(keep_bytes)),
            sequences: wants(Column::Sequence).then(|| NumberColumn::new(keep_bytes)),
            rows: 0,
            rows_of_batch: 0,
            batch_bytes,
            fixed_row_bytes: columns.len() * 6,
            text_row_bytes: 0,
            text_bytes: 0,
        }
    }

    /// Tells the topic of the rows to come.
    pub(crate) fn enter(&mut self, topic: &str) {
        let text = |builder: &Builder| match builder {
            Builder::Topic(_) => topic.len(),
            // "snappy" is the longest.
            Builder::Codec(_) => 6,
            _ => 0,
        };
        self.text_row_bytes = self.builders.iter().map(text).sum();
    }

    /// Whether anything beyond the batch header is wanted of a record.
    pub(crate) fn needs_records(&self) -> bool {
        self.keys.is_some()
            || self.values.is_some()
            || self.offsets.is_some()
            || self.timestamps.is_some()
            || self.headers.is_some()
            || self.sequences.is_some()
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0 && self.rows_of_batch == 0
    }

    /// Whether the batch has reached its size.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Bytes the batch may still grow by.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        let rows = self.rows + self.rows_of_batch;
        let mut used = rows * self.fixed_row_bytes;
        used += self.keys.as_ref().map_or(0, BytesColumn::data_bytes);
        used += self.values.as_ref().map_or(0, BytesColumn::data_bytes);
        used += self.headers.as_ref().map_or(0, HeadersColumn::bytes);
        used += self.text_bytes + self.rows_of_batch * self.text_row_bytes;
        self.batch_bytes.saturating_sub(used)
    }

    /// Rows without values of their own that the batch may still take, at least one.
    pub(crate) fn rows_room(&self) -> usize {
        let row_bytes = self.fixed_row_bytes + self.text_row_bytes;
        self.room().checked_div(row_bytes).unwrap_or(usize::MAX).max(1)
    }

    /// Appends records by their places in a payload, column by column.
    pub(crate) fn append(&mut self, payload: &[u8], spans: &[RecordSpan], base: (i64, i32)) {
        if let Some(keys) = &mut self.keys {
            keys.extend(payload, spans, RecordSpan::key_span);
        }
        if let Some(values) = &mut self.values {
            values.extend(payload, spans, RecordSpan::value_span);
        }
        if let Some(offsets) = &mut self.offsets {
            offsets.extend(spans.iter().map(|span| span.offset));
        }
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.extend(spans.iter().map(|span| microseconds(span.timestamp)));
        }
        if let Some(headers) = &mut self.headers {
            for span in spans {
                headers.push(span.headers(payload));
            }
        }
        if let Some(sequences) = &mut self.sequences {
            sequences.extend(spans.iter().map(|span| sequence(base, span.offset)));
        }
        self.rows_of_batch += spans.len();
    }

    /// Appends at most `most` of the next records in one pass, if they are plain and the columns are
    /// the usual ones. Returns how many there were.
    pub(crate) fn append_plain(
        &mut self,
        records: &mut Records<'_>,
        most: usize,
    ) -> Result<usize, CorruptKind> {
        let Self {
            keys: Some(keys),
            values: Some(values),
            offsets: Some(offsets),
            timestamps: Some(timestamps),
            headers: None,
            sequences: None,
            ..
        } = self
        else {
            return Ok(0);
        };
        if !records.may_be_plain() {
            return Ok(0);
        }
        let taken = append_plain(records, most, (keys, values), (offsets, timestamps))?;
        self.rows_of_batch += taken;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn push(&mut self, record: &RecordView<'_>, base: (i64, i32)) {
        if let Some(keys) = &mut self.keys {
            keys.push(record.key);
        }
        if let Some(values) = &mut self.values {
            values.push(record.value);
        }
        if let Some(offsets) = &mut self.offsets {
            offsets.push(record.offset);
        }
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.push(microseconds(record.timestamp));
        }
        if let Some(headers) = &mut self.headers {
            headers.push(record.headers);
        }
        if let Some(sequences) = &mut self.sequences {
            sequences.push(sequence(base, record.offset));
        }
        self.rows_of_batch += 1;
    }

    /// Closes the run of records pushed since the last call: they all came from this batch.
    pub(crate) fn end_batch(&mut self, facts: &BatchFacts) {
        let rows = std::mem::take(&mut self.rows_of_batch);
        if rows == 0 {
            return;
        }
        self.rows += rows;
        self.text_bytes += rows * self.text_row_bytes;
        for builder in &mut self.builders {
            builder.end_batch(facts, rows);
        }
    }

    /// Takes back the records pushed since the last [`Self::end_batch`].
    pub(crate) fn rollback(&mut self) {
        self.rows_of_batch = 0;
        let rows = self.rows;
        for bytes in [&mut self.keys, &mut self.values].into_iter().flatten() {
            bytes.truncate(rows);
        }
        for values in [&mut self.offsets, &mut self.timestamps].into_iter().flatten() {
            values.truncate(rows);
        }
        if let Some(sequences) = &mut self.sequences {
            sequences.truncate(rows);
        }
        if let Some(headers) = &mut self.headers {
            headers.truncate(rows);
        }
    }

    /// Rows of a batch of which no column is record by record.
    pub(crate) fn push_rows(&mut self, rows: usize) {
        self.rows_of_batch += rows;
    }

    /// The finished batch; the builder starts anew.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch> {
        let rows = std::mem::take(&mut self.rows);
        self.text_bytes = 0;
        let mut builders = std::mem::take(&mut self.builders);
        let arrays =
            builders.iter_mut().map(|builder| self.array(builder, rows)).collect::<Result<_>>();
        self.builders = builders;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays?, &options)
            .map_err(arrow_error)
    }

    fn array(&mut self, builder: &mut Builder, rows: usize) -> Result<ArrayRef> {
        let missing = || Error::Invalid("a column without its builder".into());
        Ok(match builder {
            Builder::Key => Arc::new(self.keys.as_mut().ok_or_else(missing)?.finish_binary()?),
            Builder::Value => Arc::new(self.values.as_mut().ok_or_else(missing)?.finish_binary()?),
            Builder::Headers => Arc::new(self.headers.as_mut().ok_or_else(missing)?.finish()?),
            Builder::Offset => {
                let values = self.offsets.as_mut().ok_or_else(missing)?.take();
                Arc::new(Int64Array::new(values, None))
            }
            Builder::Timestamp => {
                let values = self.timestamps.as_mut().ok_or_else(missing)?.take();
                let array = TimestampMicrosecondArray::new(values, None);
                Arc::new(array.with_timezone("UTC"))
            }
            Builder::Sequence => {
                let values = self.sequences.as_mut().ok_or_else(missing)?.take();
                Arc::new(Int32Array::new(values, None))
            }
            Builder::Topic(runs) => runs.finish(rows, text_runs),
            Builder::Codec(runs) => runs.finish(rows, text_runs),
            Builder::Int64(runs, _) => runs.finish(rows, primitive_runs::<Int64Type>),
            Builder::Int32(runs, _) => runs.finish(rows, primitive_runs::<Int32Type>),
            Builder::Int16(runs, _) => runs.finish(rows, primitive_runs::<Int16Type>),
            Builder::Int8(runs, _) => runs.finish(rows, primitive_runs::<Int8Type>),
            Builder::Boolean(runs, _) => runs.finish(rows, boolean_runs),
        })
    }
}

/// Timestamps beyond the year 294,246 do not fit microseconds; they read as the last instant that
/// does.
#[inline]
fn microseconds(milliseconds: i64) -> i64 {
    milliseconds.saturating_mul(1000)
}

#[inline]
fn sequence((base_offset, base_sequence): (i64, i32), offset: i64) -> i32 {
    if base_sequence < 0 {
        return -1;
    }
    // Sequences run from 0 to i32::MAX and start again at 0.
    let sequence = i64::from(base_sequence).wrapping_add(offset.wrapping_sub(base_offset));
    i32::try_from(sequence & i64::from(i32::MAX)).unwrap_or(-1)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(crate) fn arrow_error(error: arrow_schema::ArrowError) -> Error {
    Error::Invalid(format!("arrow: {error}"))
}

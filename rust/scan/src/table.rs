//! The other way: Arrow batches as records of a log.
//!
//! Columns are lent to the batch builder as they are, so a record costs no object and no copy but
//! the one into its batch. What is not laid out that way (views) is copied once per column.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTimestampType, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use kafkaseg_core::fs::WriteFs;
use kafkaseg_core::log::{AppendInfo, Log};
use kafkaseg_core::record::{
    BatchSpec, BatcherOptions, BytesColumn, Codec, Columns, ColumnsBatcher, HeadersColumn, Offsets,
    Timestamps, Validity,
};
use kafkaseg_core::{Error, Result};

use crate::pulse::Pulse;

/// Bytes that are built before they are appended together: large enough that the append itself
/// costs nothing, small enough to stay in the cache.
const SET_BYTES: usize = 1 << 20;

/// How Arrow batches become batches of records.
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    /// Bytes at which a batch is closed, before compression.
    pub batch_bytes: usize,
    /// How batches are compressed, where the topic leaves that to producers.
    pub codec: Codec,
    /// The level of the codec.
    pub level: Option<i32>,
    /// Epoch of the leader that appends.
    pub leader_epoch: i32,
}

/// What was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appended {
    /// Records.
    pub records: u64,
    /// Batches they were put into.
    pub batches: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Offsets of the first and the last record.
    pub offsets: Option<(i64, i64)>,
}

impl Appended {
    fn add(&mut self, info: &AppendInfo, batches: usize) {
        let first = self.offsets.map_or(info.base_offset, |(first, _)| first);
        self.offsets = Some((first, info.last_offset));
        let records = info.last_offset.saturating_sub(info.base_offset).saturating_add(1);
        self.records += u64::try_from(records).unwrap_or(0);
        self.batches += u64::try_from(batches).unwrap_or(0);
        self.bytes += info.bytes;
    }
}

/// Appends Arrow batches to a log. Columns `key`, `value`, `timestamp` and `headers` are taken, all
/// of which may be missing; others are refused, because a record has no place for them.
pub struct TableWriter {
    batcher: ColumnsBatcher,
    leader_epoch: i32,
    set_bytes: usize,
    buffer: Vec<u8>,
    appended: Appended,
}

impl TableWriter {
    /// A writer for a log.
    pub fn new<S: WriteFs>(log: &Log<S>, options: &TableOptions) -> Result<Self> {
        let rules = log.rules();
        let (codec, level) = match rules.compression {
            Some(codec) => (codec, rules.compression_level),
            None => (options.codec, options.level),
        };
        let segment_bytes = usize::try_from(log.config().segment_size()).unwrap_or(usize::MAX);
        let batcher = ColumnsBatcher::new(BatcherOptions {
            target_bytes: options.batch_bytes,
            max_bytes: rules.max_message_bytes.min(segment_bytes),
            codec,
            level,
        })?;
        Ok(Self {
            batcher,
            leader_epoch: options.leader_epoch,
            // A set is written to one segment; the last batch may go over the mark by its size.
            set_bytes: SET_BYTES.min(segment_bytes / 2),
            buffer: Vec::new(),
            appended: Appended::default(),
        })
    }

    /// What was appended so far.
    pub fn appended(&self) -> Appended {
        self.appended
    }

    /// Appends the rows of a batch. Nothing is appended if a record is refused.
    pub fn append<S: WriteFs>(
        &mut self,
        log: &Log<S>,
        rows: &RecordBatch,
        now_ms: i64,
        pulse: &mut Pulse<'_>,
    ) -> Result<()> {
        let parts = Parts::of(rows, now_ms)?;
        let columns = parts.columns(rows.num_rows())?;
        columns.check(&log.rules(), now_ms)?;
        let mut row = 0;
        while row < columns.rows() {
            pulse()?;
            self.buffer.clear();
            let spec = BatchSpec::at(0);
            let built =
                self.batcher.append(&columns, row, spec, &mut self.buffer, self.set_bytes)?;
            let info = log.append_built(&mut self.buffer, self.leader_epoch)?;
            self.appended.add(&info, built.batches);
            row = built.next_row;
        }
        Ok(())
    }
}

/// The columns of a batch in the layouts that the builder takes.
struct Parts {
    key: Option<ArrayRef>,
    value: Option<ArrayRef>,
    timestamps: Times,
    headers: Option<Headers>,
}

enum Times {
    Each(Vec<i64>),
    All(i64),
}

struct Headers {
    lists: Lists,
    names: ArrayRef,
    values: ArrayRef,
}

/// Where the headers of each record begin and end.
enum Lists {
    Lent(ArrayRef),
    Own(Vec<i64>),
}

impl Lists {
    fn offsets(&self) -> Offsets<'_> {
        match self {
            Self::Own(offsets) => Offsets::Long(offsets),
            Self::Lent(lists) => match lists.data_type() {
                DataType::LargeList(_) => Offsets::Long(lists.as_list::<i64>().value_offsets()),
                _ => Offsets::Short(lists.as_list::<i32>().value_offsets()),
            },
        }
    }
}

impl Parts {
    fn of(rows: &RecordBatch, now_ms: i64) -> Result<Self> {
        let mut parts =
            Self { key: None, value: None, timestamps: Times::All(now_ms), headers: None };
        let schema = rows.schema();
        for (field, column) in schema.fields().iter().zip(rows.columns()) {
            match field.name().as_str() {
                "key" => parts.key = plain("key", column)?,
                "value" => parts.value = plain("value", column)?,
                "timestamp" => parts.timestamps = times(column, now_ms)?,
                "headers" => parts.headers = headers(column)?,
                other => {
                    return Err(Error::Invalid(format!(
                        "a record has no place for column {other:?}; the columns are key, value, \
                         timestamp and headers"
                    )));
                }
            }
        }
        Ok(parts)
    }

    fn columns(&self, rows: usize) -> Result<Columns<'_>> {
        let timestamps = match &self.timestamps {
            Times::Each(times) => Timestamps::Each(times),
            Times::All(time) => Timestamps::All(*time),
        };
        let mut columns = Columns::new(rows, timestamps)?;
        if let Some(key) = &self.key {
            columns = columns.with_keys(lent(key)?)?;
        }
        if let Some(value) = &self.value {
            columns = columns.with_values(lent(value)?)?;
        }
        if let Some(Headers { lists, names, values }) = &self.headers {
            let headers = HeadersColumn::new(lists.offsets(), lent(names)?, lent(values)?)?;
            columns = columns.with_headers(headers)?;
        }
        Ok(columns)
    }
}

/// A column of bytes or text as one with offsets; `None` when all of it is null.
fn plain(name: &str, column: &ArrayRef) -> Result<Option<ArrayRef>> {
    match column.data_type() {
        DataType::Null => Ok(None),
        DataType::Binary | DataType::LargeBinary | DataType::Utf8 | DataType::LargeUtf8 => {
            Ok(Some(ArrayRef::clone(column)))
        }
        DataType::BinaryView => {
            let copied: arrow_array::LargeBinaryArray = column.as_binary_view().iter().collect();
            Ok(Some(std::sync::Arc::new(copied)))
        }
        DataType::Utf8View => {
            let copied: arrow_array::LargeStringArray = column.as_string_view().iter().collect();
            Ok(Some(std::sync::Arc::new(copied)))
        }
        other => Err(Error::Invalid(format!("column {name} holds {other}, not bytes or text"))),
    }
}

/// A column of bytes or text, lent.
fn lent(column: &ArrayRef) -> Result<BytesColumn<'_>> {
    let validity = column.nulls().map(validity);
    let (offsets, data) = match column.data_type() {
        DataType::Binary => {
            let column = column.as_binary::<i32>();
            (Offsets::Short(column.value_offsets()), column.value_data())
        }
        DataType::LargeBinary => {
            let column = column.as_binary::<i64>();
            (Offsets::Long(column.value_offsets()), column.value_data())
        }
        DataType::Utf8 => {
            let column = column.as_string::<i32>();
            (Offsets::Short(column.value_offsets()), column.value_data())
        }
        DataType::LargeUtf8 => {
            let column = column.as_string::<i64>();
            (Offsets::Long(column.value_offsets()), column.value_data())
        }
        other => return Err(Error::Invalid(format!("a column holds {other}, not bytes or text"))),
    };
    BytesColumn::new(offsets, data, validity)
}

fn validity(nulls: &NullBuffer) -> Validity<'_> {
    Validity::new(nulls.validity(), nulls.offset())
}

/// Milliseconds since 1970. A record without a time gets that of the append, as from a producer.
fn times(column: &ArrayRef, now_ms: i64) -> Result<Times> {
    let each = match column.data_type() {
        DataType::Null => return Ok(Times::All(now_ms)),
        DataType::Int64 => {
            let column = column.as_primitive::<Int64Type>();
            column.iter().map(|time| time.unwrap_or(now_ms)).collect()
        }
        DataType::Timestamp(TimeUnit::Second, _) => {
            scaled::<TimestampSecondType>(column, now_ms, |time| time.checked_mul(1000))?
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            scaled::<TimestampMillisecondType>(column, now_ms, Some)?
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            scaled::<TimestampMicrosecondType>(column, now_ms, |time| Some(time.div_euclid(1000)))?
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let to_ms = |time: i64| Some(time.div_euclid(1_000_000));
            scaled::<TimestampNanosecondType>(column, now_ms, to_ms)?
        }
        other => {
            return Err(Error::Invalid(format!(
                "column timestamp holds {other}, not timestamps or 64-bit milliseconds"
            )));
        }
    };
    Ok(Times::Each(each))
}

fn scaled<T: ArrowTimestampType>(
    column: &ArrayRef,
    now_ms: i64,
    to_ms: impl Fn(i64) -> Option<i64>,
) -> Result<Vec<i64>> {
    let beyond = |time| Error::Invalid(format!("timestamp {time} does not fit milliseconds"));
    let to_ms = |time: Option<i64>| match time {
        Some(time) => to_ms(time).ok_or_else(|| beyond(time)),
        None => Ok(now_ms),
    };
    column.as_primitive::<T>().iter().map(to_ms).collect()
}

/// Lists of structures with the fields `key` and `value`.
fn headers(column: &ArrayRef) -> Result<Option<Headers>> {
    let items = match column.data_type() {
        DataType::Null => return Ok(None),
        DataType::List(_) => column.as_list::<i32>().values(),
        DataType::LargeList(_) => column.as_list::<i64>().values(),
        _ => return Err(not_headers(column)),
    };
    let items: &StructArray = items.as_struct_opt().ok_or_else(|| not_headers(column))?;
    let part = |name: &str| {
        let part = items.column_by_name(name).ok_or_else(|| not_headers(column))?;
        Ok::<_, Error>(match plain(name, part)? {
            Some(part) => part,
            None => arrow_array::new_null_array(&DataType::Binary, items.len()),
        })
    };
    let (names, values) = (part("key")?, part("value")?);
    let may_be_lent = column.null_count() + items.null_count() + names.null_count() == 0;
    let lists = Lists::Lent(ArrayRef::clone(column));
    let headers = Headers { lists, names, values };
    if may_be_lent { Ok(Some(headers)) } else { copied(column, items, &headers).map(Some) }
}

/// The headers that are there. Beneath a null, and outside the rows of a slice, Arrow lets anything
/// stand, which must neither be written nor refused.
fn copied(column: &ArrayRef, items: &StructArray, headers: &Headers) -> Result<Headers> {
    let (names, values) = (lent(&headers.names)?, lent(&headers.values)?);
    let (mut kept_names, mut kept_values) = (Vec::new(), Vec::new());
    let mut offsets = vec![0];
    for row in 0..column.len() {
        let range = headers.lists.offsets().range(row).filter(|_| column.is_valid(row));
        let (start, end) = range.unwrap_or((0, 0));
        for header in start..end {
            let is_there = items.is_valid(header);
            kept_names.push(names.get(header).filter(|_| is_there));
            kept_values.push(values.get(header));
        }
        offsets.push(i64::try_from(kept_names.len()).unwrap_or(i64::MAX));
    }
    let names: arrow_array::LargeBinaryArray = kept_names.into_iter().collect();
    let values: arrow_array::LargeBinaryArray = kept_values.into_iter().collect();
    let lists = Lists::Own(offsets);
    Ok(Headers { lists, names: std::sync::Arc::new(names), values: std::sync::Arc::new(values) })
}

fn not_headers(column: &ArrayRef) -> Error {
    Error::Invalid(format!(
        "column headers holds {}, not lists of structures of key and value",
        column.data_type()
    ))
}

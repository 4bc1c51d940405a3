//! Decoded records of the topics that Kafka keeps for itself.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BinaryArray, RecordBatch};
use kafkaseg_core::fs::Fs;
use kafkaseg_core::internal::{InternalRecord, decode_control, decode_internal};
use kafkaseg_core::{CorruptKind, Error, Result};

use crate::plan::Plan;
use crate::pulse::Pulse;
use crate::reader::Reader;
use crate::schema::Column;

/// A record of an internal topic.
#[derive(Debug, Clone, PartialEq)]
pub struct InternalRow {
    /// The topic.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
    /// The record's offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// What it says.
    pub record: InternalRecord,
}

/// Reads a plan over internal topics.
pub struct InternalReader<S: Fs> {
    reader: Reader<S>,
    plan: Arc<Plan>,
    /// The topic to decode as, where directories do not tell it.
    decode_as: Option<String>,
}

impl<S: Fs> InternalReader<S> {
    /// What a plan must have among its columns to be decoded.
    pub const COLUMNS: [Column; 9] = [
        Column::Topic,
        Column::Partition,
        Column::Offset,
        Column::Timestamp,
        Column::Key,
        Column::Value,
        Column::IsControl,
        Column::Segment,
        Column::BatchPosition,
    ];

    /// A reader over the whole plan. Records are decoded by the names of their topics, or all as
    /// those of one.
    pub fn new(fs: S, plan: Arc<Plan>, decode_as: Option<String>) -> Self {
        Self { reader: Reader::new(fs, Arc::clone(&plan)), plan, decode_as }
    }

    /// The next records, as many as an Arrow batch of the plan holds; `None` at the end.
    pub fn next_rows(&mut self, pulse: &mut Pulse<'_>) -> Result<Option<Vec<InternalRow>>> {
        let Some(batch) = self.reader.next_batch(pulse)? else { return Ok(None) };
        let rows = Rows::of(&batch)
            .ok_or_else(|| Error::Invalid("the plan lacks a column to decode".to_owned()))?;
        let decoded = (0..batch.num_rows()).map(|row| {
            let decoded = rows.decode(row, self.decode_as.as_deref());
            decoded.map_err(|kind| self.damage(&rows, row, kind))
        });
        decoded.collect::<Result<_>>().map(Some)
    }

    fn damage(&self, rows: &Rows<'_>, row: usize, kind: CorruptKind) -> Error {
        let position = u64::try_from(rows.position.value(row)).unwrap_or(0);
        Error::Corrupt { file: self.file_of(rows, row), position, kind }
    }

    fn file_of(&self, rows: &Rows<'_>, row: usize) -> PathBuf {
        let (topic, number) = (rows.topic.value(row), rows.partition.value(row));
        let snapshots = self.plan.partitions.iter().map(|partition| &partition.snapshot);
        let found = snapshots
            .filter(|snapshot| &*snapshot.topic == topic && snapshot.partition == number)
            .find_map(|snapshot| {
                let base = rows.segment.value(row);
                let mut segments = snapshot.segments.iter();
                let segment = segments.find(|segment| segment.base_offset == base)?;
                Some(snapshot.path().join(&segment.name))
            });
        found.unwrap_or_default()
    }
}

/// The columns of an Arrow batch.
struct Rows<'a> {
    topic: &'a arrow_array::StringArray,
    partition: &'a arrow_array::Int32Array,
    offset: &'a arrow_array::Int64Array,
    timestamp: &'a arrow_array::TimestampMicrosecondArray,
    key: &'a BinaryArray,
    value: &'a BinaryArray,
    is_control: &'a arrow_array::BooleanArray,
    segment: &'a arrow_array::Int64Array,
    position: &'a arrow_array::Int64Array,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |column: Column| batch.column_by_name(column.name());
        Some(Self {
            topic: column(Column::Topic)?.as_string_opt()?,
            partition: column(Column::Partition)?.as_primitive_opt::<Int32Type>()?,
            offset: column(Column::Offset)?.as_primitive_opt::<Int64Type>()?,
            timestamp: column(Column::Timestamp)?.as_primitive_opt::<TimestampMicrosecondType>()?,
            key: column(Column::Key)?.as_binary_opt()?,
            value: column(Column::Value)?.as_binary_opt()?,
            is_control: column(Column::IsControl)?.as_boolean_opt()?,
            segment: column(Column::Segment)?.as_primitive_opt::<Int64Type>()?,
            position: column(Column::BatchPosition)?.as_primitive_opt::<Int64Type>()?,
        })
    }

    fn decode(&self, row: usize, decode_as: Option<&str>) -> Result<InternalRow, CorruptKind> {
        let (key, value) = (field(self.key, row), field(self.value, row));
        let topic = self.topic.value(row);
        let record = if self.is_control.value(row) {
            decode_control(key, value)?
        } else {
            decode_internal(decode_as.unwrap_or(topic), key, value)?
        };
        Ok(InternalRow {
            topic: topic.to_owned(),
            partition: self.partition.value(row),
            offset: self.offset.value(row),
            timestamp: self.timestamp.value(row) / 1000,
            record,
        })
    }
}

fn field(column: &BinaryArray, row: usize) -> Option<&[u8]> {
    column.is_valid(row).then(|| column.value(row))
}

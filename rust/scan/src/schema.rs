//! The columns a scan can give, and their Arrow types.
//!
//! The first eight are those of Spark's Kafka source, with its names and types; the rest are facts
//! about the batch a record came in.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use kafkaseg_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// One column of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Column {
    /// The record's key.
    Key,
    /// The record's value.
    Value,
    /// The topic's name.
    Topic,
    /// The partition's number.
    Partition,
    /// The record's offset.
    Offset,
    /// The record's timestamp, in UTC.
    Timestamp,
    /// −1 none, 0 create time, 1 log append time.
    TimestampType,
    /// The record's headers; null when there are none, as Spark has it.
    Headers,
    /// Epoch of the leader that appended the batch, −1 in old formats.
    LeaderEpoch,
    /// The batch's producer id, −1 without one.
    ProducerId,
    /// The batch's producer epoch, −1 without one.
    ProducerEpoch,
    /// The record's sequence number, −1 without one.
    Sequence,
    /// Base offset of the batch; of a compressed old-format set, its first record's offset.
    BatchBaseOffset,
    /// Where the batch starts in its segment file.
    BatchPosition,
    /// Base offset that names the segment file.
    Segment,
    /// Name of the batch's codec.
    Codec,
    /// Format version: 0, 1 or 2.
    Magic,
    /// Whether the batch is part of a transaction.
    IsTransactional,
    /// Whether the record is a control record.
    IsControl,
}

impl Column {
    /// Every column, in the order the documentation lists them.
    pub const ALL: [Self; 19] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Headers,
        Self::LeaderEpoch,
        Self::ProducerId,
        Self::ProducerEpoch,
        Self::Sequence,
        Self::BatchBaseOffset,
        Self::BatchPosition,
        Self::Segment,
        Self::Codec,
        Self::Magic,
        Self::IsTransactional,
        Self::IsControl,
    ];

    /// What a scan gives when no columns are named: Spark's row without headers.
    pub const DEFAULT: [Self; 7] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
    ];

    /// The column's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::TimestampType => "timestampType",
            Self::Headers => "headers",
            Self::LeaderEpoch => "leader_epoch",
            Self::ProducerId => "producer_id",
            Self::ProducerEpoch => "producer_epoch",
            Self::Sequence => "sequence",
            Self::BatchBaseOffset => "batch_base_offset",
            Self::BatchPosition => "batch_position",
            Self::Segment => "segment",
            Self::Codec => "codec",
            Self::Magic => "magic",
            Self::IsTransactional => "is_transactional",
            Self::IsControl => "is_control",
        }
    }

    /// The column of a name.
    pub fn from_name(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|column| column.name()).collect();
            Error::Invalid(format!("no column {name:?}; the columns are {}", known.join(", ")))
        })
    }

    fn field(self) -> Field {
        let (kind, nullable) = match self {
            Self::Key | Self::Value => (DataType::Binary, true),
            Self::Topic | Self::Codec => (DataType::Utf8, false),
            Self::Timestamp => (DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
            Self::Headers => (DataType::List(Arc::new(header_item())), true),
            Self::Partition | Self::TimestampType | Self::LeaderEpoch | Self::Sequence => {
                (DataType::Int32, false)
            }
            Self::Offset
            | Self::ProducerId
            | Self::BatchBaseOffset
            | Self::BatchPosition
            | Self::Segment => (DataType::Int64, false),
            Self::ProducerEpoch => (DataType::Int16, false),
            Self::Magic => (DataType::Int8, false),
            Self::IsTransactional | Self::IsControl => (DataType::Boolean, false),
        };
        Field::new(self.name(), kind, nullable)
    }
}

/// The fields of one header.
pub(crate) fn header_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ])
}

/// The item of the headers list, nullable throughout because Spark's mapping is.
pub(crate) fn header_item() -> Field {
    Field::new("element", DataType::Struct(header_fields()), true)
}

/// The Arrow schema of a choice of columns.
pub fn schema_of(columns: &[Column]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field()).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_found_by_its_name_and_named_once() {
        for column in Column::ALL {
            assert_eq!(Column::from_name(column.name()).unwrap(), column);
        }
        let error = Column::from_name("vaule").unwrap_err().to_string();
        assert!(error.contains("\"vaule\"") && error.contains("batch_position"), "{error}");
    }
}

//! Records and the batches that hold them, in every version Kafka ever wrote.

mod batch;
mod corrupt;
mod crc;
mod header;
mod iter;
pub mod varint;

pub use batch::BatchView;
pub use corrupt::CorruptKind;
pub use crc::{crc32, crc32c};
pub use header::{Attributes, BatchHeader, Codec, TimestampType};
pub use iter::{Header, Headers, RecordView, Records};

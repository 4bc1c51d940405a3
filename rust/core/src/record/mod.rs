//! Records and the batches that hold them, in every version Kafka ever wrote.

mod batch;
mod control;
mod corrupt;
mod crc;
mod entry;
mod flexible;
mod header;
mod iter;
mod legacy;
mod legacy_iter;
#[cfg(test)]
mod samples;
pub mod varint;

pub use batch::BatchView;
pub use control::{
    ControlRecord, ControlType, EndTxnMarker, Endpoint, KRaftVoter, LeaderChange, Voter,
};
pub use corrupt::CorruptKind;
pub use crc::{crc32, crc32c};
pub use entry::{EntryView, entry_total_bytes};
pub use header::{Attributes, BatchHeader, Codec, TimestampType};
pub use iter::{Header, Headers, RecordView, Records};
pub use legacy::{KeyAndValue, LegacyView};
pub use legacy_iter::LegacyRecords;

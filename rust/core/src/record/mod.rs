//! Records and the batches that hold them, in every version Kafka ever wrote.

mod batch;
mod batch_spec;
mod builder;
mod control;
#[cfg(test)]
mod corpus_tests;
mod corrupt;
mod crc;
mod encode;
mod entry;
mod flexible;
mod header;
mod iter;
mod legacy;
mod legacy_iter;
mod open;
mod patch;
mod plain;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod samples;
mod span;
pub mod varint;

pub use batch::BatchView;
pub use batch_spec::BatchSpec;
pub use builder::BatchBuilder;
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
pub use open::EntryRecords;
pub use patch::BatchMut;
pub use plain::PlainRecord;
pub use span::{FieldSpan, RecordSpan};

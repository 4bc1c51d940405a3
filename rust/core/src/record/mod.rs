//! Records and the batches that hold them, in every version Kafka ever wrote.

mod analyze;
mod batch;
mod batch_spec;
mod batcher;
#[cfg(test)]
mod batcher_tests;
mod builder;
mod columns;
mod control;
#[cfg(test)]
mod corpus_tests;
mod corrupt;
mod crc;
mod encode;
mod entry;
mod fault;
mod flexible;
mod header;
mod iter;
mod legacy;
mod legacy_iter;
mod open;
mod origin;
mod patch;
mod place;
mod plain;
#[cfg(test)]
mod properties;
mod rebuild;
mod rules;
#[cfg(test)]
mod samples;
mod skim;
mod span;
#[cfg(test)]
mod speed_tests;
mod validate;
#[cfg(test)]
mod validate_corpus_tests;
#[cfg(test)]
mod validate_properties;
#[cfg(test)]
mod validate_tests;
pub mod varint;

pub use analyze::{AnalyzeLimits, AppendFacts, analyze};
pub use batch::BatchView;
pub use batch_spec::BatchSpec;
pub use batcher::{BatcherOptions, Built, ColumnsBatcher};
pub use builder::BatchBuilder;
pub use columns::{BytesColumn, Columns, HeadersColumn, Offsets, Timestamps, Validity};
pub use control::{
    ControlRecord, ControlType, EndTxnMarker, Endpoint, KRaftVoter, LeaderChange, Voter,
};
pub use corrupt::CorruptKind;
pub use crc::{crc32, crc32c};
pub use entry::{EntryView, entry_total_bytes};
pub use fault::{RecordError, RecordFault};
pub use header::{Attributes, BatchHeader, Codec, TimestampType};
pub use iter::{Header, Headers, RecordView, Records};
pub use legacy::{KeyAndValue, LegacyView};
pub use legacy_iter::LegacyRecords;
pub use open::EntryRecords;
pub use origin::Origin;
pub use patch::BatchMut;
pub use place::{Placed, place_batches};
pub use plain::PlainRecord;
pub use rules::Rules;
pub use span::{FieldSpan, RecordSpan};
pub use validate::{Placement, Validated, Validator};

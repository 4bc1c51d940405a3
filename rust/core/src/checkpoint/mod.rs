//! The small text files of a log directory, one module each.
//!
//! All are replaced as a whole: written beside their name with `.tmp`, fsynced, renamed. The
//! functions here turn bytes into values and back; they touch no file.

mod clean_shutdown;
mod json;
mod leader_epoch;
mod lines;
mod meta_properties;
mod offsets;
mod partition_metadata;
mod properties;
mod quorum_state;

pub use clean_shutdown::CleanShutdown;
pub use leader_epoch::{EpochEntry, LeaderEpochs};
pub use meta_properties::MetaProperties;
pub use offsets::OffsetCheckpoint;
pub use partition_metadata::PartitionMetadata;
pub use properties::Properties;
pub use quorum_state::QuorumState;

#[cfg(test)]
pub(crate) use json::Json;

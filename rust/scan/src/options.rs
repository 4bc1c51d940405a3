//! What to scan and how.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::schema::Column;

/// Which records of transactions are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// All of them.
    ReadUncommitted,
    /// Those of committed transactions, up to the last stable offset.
    ReadCommitted,
}

/// What damage does to a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnCorrupt {
    /// It ends with an error.
    Error,
    /// The damaged bytes are reported and passed over.
    Skip,
    /// The partition ends there; the others go on.
    Stop,
}

/// What a segment file that vanished since the snapshot does to a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnMissing {
    /// It ends with an error.
    Error,
    /// The file is reported and passed over.
    Skip,
}

/// A bound on offsets: one for all partitions, or one for each that is named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OffsetBound {
    /// No bound.
    #[default]
    None,
    /// The same for every partition.
    All(i64),
    /// By topic and partition; others have none.
    Each(BTreeMap<String, BTreeMap<i32, i64>>),
}

impl OffsetBound {
    /// The bound of one partition.
    pub fn of(&self, topic: &str, partition: i32) -> Option<i64> {
        match self {
            Self::None => None,
            Self::All(offset) => Some(*offset),
            Self::Each(map) => map.get(topic)?.get(&partition).copied(),
        }
    }
}

/// Which partitions and offsets are read.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Topics by name; all but the cluster metadata log when not given.
    pub topics: Option<Vec<String>>,
    /// Partition numbers; all when not given.
    pub partitions: Option<Vec<i32>>,
    /// First offset, inclusive.
    pub start: OffsetBound,
    /// Last offset, exclusive.
    pub end: OffsetBound,
}

/// How records are read and given out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ScanOptions {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// Which records of transactions are seen.
    pub isolation: Isolation,
    /// What damage does.
    pub on_corrupt: OnCorrupt,
    /// What a vanished file does.
    pub on_missing: OnMissing,
    /// Records with this timestamp or a later one, milliseconds.
    pub start_timestamp: Option<i64>,
    /// Records before this timestamp, milliseconds.
    pub end_timestamp: Option<i64>,
    /// Whether control records are given out too.
    pub control: bool,
    /// Whether checksums are compared.
    pub verify: bool,
    /// Size that an Arrow batch grows to.
    pub batch_bytes: usize,
    /// Threads that read; 1 starts none.
    pub threads: usize,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            columns: Column::DEFAULT.to_vec(),
            isolation: Isolation::ReadUncommitted,
            on_corrupt: OnCorrupt::Error,
            on_missing: OnMissing::Error,
            start_timestamp: None,
            end_timestamp: None,
            control: false,
            verify: true,
            batch_bytes: 1 << 20,
            threads: 1,
        }
    }
}

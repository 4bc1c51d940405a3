//! How a log is opened, and what it says of itself.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::config::LogConfig;
use crate::error::Error;
use crate::record::CorruptKind;

/// What the checkpoint files of a log directory say of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpointed {
    /// Offsets below are on the device.
    pub recovery_point: i64,
    /// The first offset that readers may ask for.
    pub log_start: i64,
    /// The high watermark, where one is recorded.
    pub high_watermark: Option<i64>,
}

/// How far a recovery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes examined.
    pub bytes: u64,
    /// Bytes to examine.
    pub total_bytes: u64,
}

/// Somebody who is told of something and may refuse to go on.
pub type Told<T> = Arc<dyn Fn(T) -> Result<(), Error> + Send + Sync>;

/// How a log is opened.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct LogOptions {
    /// The topic, for messages.
    pub topic: String,
    /// The partition, for messages.
    pub partition: i32,
    /// The topic's configuration.
    pub config: LogConfig,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// What the checkpoints of the directory say.
    pub checkpointed: Checkpointed,
    /// Whether the directory was closed cleanly.
    pub is_clean: bool,
    /// Told how far a recovery is; an error stops it.
    pub progress: Option<Told<Progress>>,
    /// Whether a replica layer moves the high watermark. Without one it follows the log's end.
    pub replicated: bool,
    /// Whether damage that good batches follow is cut with everything behind it, as Kafka does.
    pub kafka_recovery: bool,
    /// Whether somebody calls [`Log::flush_pending`](super::Log::flush_pending) from time to time.
    /// Without one, the append that rolls a segment also flushes the one before.
    pub background_flush: bool,
    /// Called when a truncation lowers the recovery point, before anything is cut: whoever keeps
    /// the checkpoint must record the lower one, or a crash later would trust bytes that were
    /// written anew. The log's lock is held; [`Log::recovery_point`](super::Log::recovery_point)
    /// can be asked.
    pub on_recovery_point_lowered: Option<Told<i64>>,
    /// Called when a truncation lowers the log start, before anything is cut: a recorded start above
    /// the records that follow would hide them after a crash. The log's lock is held.
    pub on_start_lowered: Option<Told<i64>>,
    /// How long a producer that writes nothing is remembered.
    pub producer_expiration_ms: i64,
}

impl LogOptions {
    /// Options for a log without checkpoints.
    pub fn new(topic: &str, partition: i32, config: LogConfig) -> Self {
        Self {
            topic: topic.to_owned(),
            partition,
            config,
            clock: Arc::new(SystemClock),
            checkpointed: Checkpointed::default(),
            is_clean: false,
            progress: None,
            replicated: false,
            kafka_recovery: false,
            background_flush: false,
            on_recovery_point_lowered: None,
            on_start_lowered: None,
            producer_expiration_ms: 86_400_000,
        }
    }
}

impl fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogOptions")
            .field("topic", &self.topic)
            .field("partition", &self.partition)
            .field("config", &self.config)
            .field("checkpointed", &self.checkpointed)
            .field("is_clean", &self.is_clean)
            .field("replicated", &self.replicated)
            .field("kafka_recovery", &self.kafka_recovery)
            .finish_non_exhaustive()
    }
}

/// Damage that good batches follow: the log can be read up to it and not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file.
    pub file: PathBuf,
    /// Where the damage begins.
    pub position: u64,
    /// The check that failed.
    pub kind: CorruptKind,
}

impl Damage {
    pub(crate) fn error(&self) -> Error {
        Error::corrupt(&self.file, self.position, self.kind)
    }
}

/// Which records a reader may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Everything that was appended.
    LogEnd,
    /// Everything below the high watermark.
    HighWatermark,
    /// Everything below the last stable offset, with the list of aborted transactions.
    Committed,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendInfo {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The largest timestamp.
    pub max_timestamp: i64,
    /// The time that the records were stamped with, −1 where they keep their own.
    pub log_append_time: i64,
    /// The first offset of the log.
    pub log_start: i64,
    /// Bytes written.
    pub bytes: u64,
    /// Whether the batch was there already: the offsets are those of the first time, and nothing
    /// was written.
    pub is_duplicate: bool,
}

/// What is known of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The offset that names it.
    pub base_offset: i64,
    /// The offset after its last, as far as the log knows: the next segment's base or the log's end.
    pub next_offset: i64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// The largest timestamp, or that of the file where the records have none.
    pub largest_timestamp: i64,
    /// Entries of the offset index.
    pub offset_index_entries: u64,
    /// Entries of the time index.
    pub time_index_entries: u64,
    /// Whether it is the one that is written.
    pub is_active: bool,
}

/// An answer to a search by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOffset {
    /// The record's timestamp, −1 for the special searches that give a place without a record.
    pub timestamp: i64,
    /// The offset.
    pub offset: i64,
    /// The leader epoch of the offset, where it is known.
    pub leader_epoch: Option<i32>,
}

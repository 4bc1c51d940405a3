//! The grammar of names in a Kafka log directory.
//!
//! | name | what |
//! |---|---|
//! | `<topic>-<partition>` | a live partition |
//! | `<topic>-<partition>.<32 hex>-delete` | a partition waiting for removal; at most 255 characters |
//! | `<topic>-<partition>.<32 hex>-future` | a replica that is being moved here; not capped |
//! | `<topic>-<partition>.<32 hex>-stray` | a replica that does not belong here; at most 255 characters |
//! | `<20 digits>.{log,index,timeindex,txnindex,snapshot}` | a file of a segment, or producer state |
//! | the same + `.deleted` | waits for removal |
//! | the same, not `.snapshot`, + `.cleaned` or `.swap` | output of compaction, unfinished or finished |
//! | `<20 digits>-<10 digits>.checkpoint` | a snapshot of the metadata log: end offset and epoch |
//! | the same + `.deleted`; `<20>-<10>-<random>.checkpoint.part` | waits for removal; unfinished |
//!
//! 1. A topic may hold dashes and dots, so the partition starts after the **last** dash.
//! 2. `-delete` and `-stray` names keep their suffix whole and cut the topic on the right, so the
//!    topic of such a name can be a prefix of the real one.
//! 3. What parses prints to the same text: numbers without padding other than the fixed widths,
//!    lowercase hexadecimal. Kafka's own parser also takes `t-007`, which no broker writes.
//! 4. No parsed name is `.` or `..` or holds a slash: a [`TopicName`] cannot leave its directory.

use std::fmt;
use std::ops::Deref;

use crate::limits::{FILE_NAME_MAX, TOPIC_NAME_MAX};
use crate::uuid::Uuid;

#[cfg(test)]
mod tests;

/// Identity of the cluster, node and directory.
pub const META_PROPERTIES: &str = "meta.properties";
/// The process lock of a log directory.
pub const LOCK: &str = ".lock";
/// Says that every log of the directory was closed cleanly.
pub const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// First offset of each partition that is not known to be on disk.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// High watermark of each partition.
pub const HIGH_WATERMARK_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Log start offset of each partition.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";
/// First offset of each partition that the cleaner has not cleaned.
pub const CLEANER_CHECKPOINT: &str = "cleaner-offset-checkpoint";
/// Leader epochs of a partition.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";
/// Topic id of a partition.
pub const PARTITION_METADATA: &str = "partition.metadata";
/// The first metadata records of a cluster.
pub const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";
/// Election state of the metadata quorum.
pub const QUORUM_STATE: &str = "quorum-state";
/// A sub-directory that holds no partition.
pub const REMOTE_INDEX_CACHE: &str = "remote-log-index-cache";

/// A legal topic name: 1 to 249 of `[a-zA-Z0-9._-]`, neither `.` nor `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

impl TopicName {
    /// Checks a name.
    pub fn parse(name: &str) -> Option<Self> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = !name.is_empty() && name.len() <= TOPIC_NAME_MAX;
        (fits && name != "." && name != ".." && name.bytes().all(legal))
            .then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for TopicName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<TopicName> for String {
    fn from(name: TopicName) -> Self {
        name.0
    }
}

/// What a partition directory is to its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DirState {
    /// A partition in use.
    Live,
    /// Waits for removal.
    Delete(Uuid),
    /// A replica that is being moved into this log directory.
    Future(Uuid),
    /// A replica that the cluster says does not belong here.
    Stray(Uuid),
}

impl DirState {
    fn suffix(self) -> Option<(Uuid, &'static str)> {
        match self {
            Self::Live => None,
            Self::Delete(id) => Some((id, "-delete")),
            Self::Future(id) => Some((id, "-future")),
            Self::Stray(id) => Some((id, "-stray")),
        }
    }

    fn is_capped(self) -> bool {
        matches!(self, Self::Delete(_) | Self::Stray(_))
    }

    /// Splits `<name>.<32 hex><suffix>`; a name that ends in a suffix has no other reading.
    fn split(name: &str) -> Option<(&str, Self)> {
        type Make = fn(Uuid) -> DirState;
        let states: [(&str, Make); 3] =
            [("-delete", Self::Delete), ("-future", Self::Future), ("-stray", Self::Stray)];
        for (suffix, state) in states {
            if let Some(rest) = name.strip_suffix(suffix) {
                let (rest, hex) = rest.rsplit_once('.')?;
                return Some((rest, state(Uuid::parse_hex(hex)?)));
            }
        }
        Some((name, Self::Live))
    }
}

/// The name of a partition directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionDir {
    /// The topic, or its first characters: see [`Self::topic_may_be_cut`].
    pub topic: TopicName,
    /// The partition, not negative.
    pub partition: i32,
    /// What the directory is to its broker.
    pub state: DirState,
}

impl PartitionDir {
    /// A partition in use.
    pub fn live(topic: TopicName, partition: i32) -> Self {
        Self { topic, partition, state: DirState::Live }
    }

    /// Reads a directory name; `None` when it is not one of a partition.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, state) = DirState::split(name)?;
        if state.is_capped() && name.len() > FILE_NAME_MAX {
            return None;
        }
        let (topic, partition) = rest.rsplit_once('-')?;
        Some(Self { topic: TopicName::parse(topic)?, partition: parse_unpadded(partition)?, state })
    }

    /// Whether the topic may be a prefix of the real one: the name has the full length to which
    /// Kafka cuts names of this state.
    pub fn topic_may_be_cut(&self) -> bool {
        self.state.is_capped() && self.to_string().len() == FILE_NAME_MAX
    }
}

impl fmt::Display for PartitionDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((id, suffix)) = self.state.suffix() else {
            return write!(f, "{}-{}", self.topic, self.partition);
        };
        let tail = format!("-{}.{}{suffix}", self.partition, id.hex());
        let room = if self.state.is_capped() {
            FILE_NAME_MAX.saturating_sub(tail.len())
        } else {
            TOPIC_NAME_MAX
        };
        f.write_str(self.topic.get(..room).unwrap_or(&self.topic))?;
        f.write_str(&tail)
    }
}

/// What a file of a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// Record batches.
    Log,
    /// Offsets to positions.
    Index,
    /// Timestamps to offsets.
    TimeIndex,
    /// Aborted transactions.
    TxnIndex,
    /// Producer state up to, not including, the offset of the name.
    Snapshot,
}

impl FileKind {
    const ALL: [Self; 5] =
        [Self::Log, Self::Index, Self::TimeIndex, Self::TxnIndex, Self::Snapshot];

    /// The extension, without its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Index => "index",
            Self::TimeIndex => "timeindex",
            Self::TxnIndex => "txnindex",
            Self::Snapshot => "snapshot",
        }
    }
}

/// What a file of a segment is to its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileState {
    /// In use.
    Live,
    /// Waits for removal.
    Deleted,
    /// Unfinished output of compaction or of a split; discarded after a crash.
    Cleaned,
    /// Finished output that is replacing its sources; completed after a crash.
    Swap,
}

impl FileState {
    const SUFFIXED: [Self; 3] = [Self::Deleted, Self::Cleaned, Self::Swap];

    /// What follows the extension, with its dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// The name of a segment's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentFile {
    /// Base offset of the segment; of a snapshot, the offset after the last it covers.
    pub base_offset: i64,
    /// What the file holds.
    pub kind: FileKind,
    /// What the file is to its broker. Kafka never cleans or swaps a snapshot.
    pub state: FileState,
}

impl SegmentFile {
    /// A file in use.
    pub fn live(base_offset: i64, kind: FileKind) -> Self {
        Self { base_offset, kind, state: FileState::Live }
    }

    /// Reads a file name; `None` when it is not one of a segment.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, state) = FileState::SUFFIXED
            .into_iter()
            .find_map(|state| Some((name.strip_suffix(state.suffix())?, state)))
            .unwrap_or((name, FileState::Live));
        let (offset, extension) = rest.split_once('.')?;
        let kind = FileKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
        if kind == FileKind::Snapshot && matches!(state, FileState::Cleaned | FileState::Swap) {
            return None;
        }
        Some(Self { base_offset: parse_padded(offset, 20)?, kind, state })
    }
}

impl fmt::Display for SegmentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, state) = (self.kind.extension(), self.state.suffix());
        write!(f, "{:020}.{kind}{state}", self.base_offset)
    }
}

/// What a snapshot of the metadata log is to its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SnapshotState {
    /// Complete.
    Live,
    /// Waits for removal.
    Deleted,
    /// Unfinished, with the number that keeps names of two attempts apart.
    Partial(u64),
}

/// The name of a snapshot of the metadata log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetadataSnapshotFile {
    /// The offset after the last one it covers.
    pub end_offset: i64,
    /// Epoch of the last record it covers.
    pub epoch: i32,
    /// What the file is to its broker.
    pub state: SnapshotState,
}

impl MetadataSnapshotFile {
    /// Reads a file name; `None` when it is not one of a snapshot.
    pub fn parse(name: &str) -> Option<Self> {
        let (stem, suffix) = name.split_once('.')?;
        let mut parts = stem.splitn(3, '-');
        let (offset, epoch, unique) = (parts.next()?, parts.next()?, parts.next());
        let state = match (suffix, unique) {
            ("checkpoint", None) => SnapshotState::Live,
            ("checkpoint.deleted", None) => SnapshotState::Deleted,
            ("checkpoint.part", Some(unique)) => SnapshotState::Partial(parse_unpadded(unique)?),
            _ => return None,
        };
        Some(Self {
            end_offset: parse_padded(offset, 20)?,
            epoch: i32::try_from(parse_padded(epoch, 10)?).ok()?,
            state,
        })
    }
}

impl fmt::Display for MetadataSnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}-{:010}", self.end_offset, self.epoch)?;
        match self.state {
            SnapshotState::Live => f.write_str(".checkpoint"),
            SnapshotState::Deleted => f.write_str(".checkpoint.deleted"),
            SnapshotState::Partial(unique) => write!(f, "-{unique}.checkpoint.part"),
        }
    }
}

/// A number that is not negative, padded with zeros to exactly `width` digits.
fn parse_padded(text: &str, width: usize) -> Option<i64> {
    let digits = text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// A number that is not negative, without padding or sign.
fn parse_unpadded<T: std::str::FromStr>(text: &str) -> Option<T> {
    let padded = text.len() > 1 && text.starts_with('0');
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits && !padded)
}

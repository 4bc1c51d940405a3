//! What a topic sets for its logs.

use super::key::{self, Key};
use super::{CleanupPolicy, CompressionType, Fsync, dir_keys, log_keys};
use crate::checkpoint::Properties;
use crate::error::{Error, Result};
use crate::record::{Codec, TimestampType};

/// The configuration of a log, one field per name of Kafka's. Times are milliseconds.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a name of Kafka's")]
pub struct LogConfig {
    /// `segment.bytes`; [`LogConfig::segment_size`] is the bound in force.
    pub segment_bytes: u32,
    /// `internal.segment.bytes`: takes the place of `segment.bytes`, without its floor.
    pub internal_segment_bytes: Option<u32>,
    /// `segment.ms`; [`LogConfig::max_segment_ms`] is the bound in force.
    pub segment_ms: i64,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `flush.messages`.
    pub flush_messages: i64,
    /// `flush.ms`.
    pub flush_ms: i64,
    /// `retention.bytes`; negative is without bound.
    pub retention_bytes: i64,
    /// `retention.ms`; −1 is without bound.
    pub retention_ms: i64,
    /// `local.retention.bytes`; −2 is `retention.bytes`.
    pub local_retention_bytes: i64,
    /// `local.retention.ms`; −2 is `retention.ms`.
    pub local_retention_ms: i64,
    /// `max.message.bytes`: the largest batch.
    pub max_message_bytes: u32,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// `preallocate`.
    pub preallocate: bool,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election_enable: bool,
    /// `leader.replication.throttled.replicas`.
    pub leader_replication_throttled_replicas: Vec<String>,
    /// `follower.replication.throttled.replicas`.
    pub follower_replication_throttled_replicas: Vec<String>,
    /// `remote.storage.enable`.
    pub remote_storage_enable: bool,
    /// `remote.log.copy.disable`.
    pub remote_log_copy_disable: bool,
    /// `remote.log.delete.on.disable`.
    pub remote_log_delete_on_disable: bool,
    /// `remote.copy.lag.ms`; −1 follows the local retention.
    pub remote_copy_lag_ms: i64,
    /// `remote.copy.lag.bytes`; −1 follows the local retention.
    pub remote_copy_lag_bytes: i64,
    /// `fsync`, which is ours: when an append reaches the device.
    pub fsync: Fsync,
}

impl Default for LogConfig {
    fn default() -> Self {
        const WEEK_MS: i64 = 604_800_000;
        Self {
            segment_bytes: 1 << 30,
            internal_segment_bytes: None,
            segment_ms: WEEK_MS,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            retention_bytes: -1,
            retention_ms: WEEK_MS,
            local_retention_bytes: -2,
            local_retention_ms: -2,
            max_message_bytes: (1 << 20) + 12,
            delete_retention_ms: 86_400_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            cleanup_policy: CleanupPolicy { compact: false, delete: true },
            file_delete_delay_ms: 60_000,
            preallocate: false,
            compression_type: CompressionType::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            message_timestamp_type: TimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: 3_600_000,
            min_insync_replicas: 1,
            unclean_leader_election_enable: false,
            leader_replication_throttled_replicas: Vec::new(),
            follower_replication_throttled_replicas: Vec::new(),
            remote_storage_enable: false,
            remote_log_copy_disable: false,
            remote_log_delete_on_disable: false,
            remote_copy_lag_ms: 0,
            remote_copy_lag_bytes: -1,
            fsync: Fsync::default(),
        }
    }
}

impl LogConfig {
    /// Kafka's defaults, changed by these pairs of name and value.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        Self::default().with(pairs)
    }

    /// Kafka's defaults, changed by a properties text.
    pub fn from_properties(properties: &Properties) -> Result<Self> {
        Self::parse(properties.iter())
    }

    /// This configuration, changed by these pairs: what a topic sets over its directory's defaults.
    pub fn with<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let pairs: Vec<_> = pairs.into_iter().collect();
        for (name, _) in &pairs {
            if !Self::knows(name) {
                return Err(Self::unknown(name));
            }
        }
        self.apply(&pairs)
    }

    /// Every name with its value as Kafka prints it. What is not set is left out.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let entry = |key: &Key<Self>| Some((key.name, key.get(self)?));
        log_keys::KEYS.iter().filter_map(entry).collect()
    }

    /// Whether a name, or a broker's name for the same thing, is one of a log's.
    pub(super) fn knows(name: &str) -> bool {
        log_keys::KEYS.iter().any(|key| key.is_called(name))
    }

    /// The names of a log.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        log_keys::KEYS.iter().flat_map(Key::names)
    }

    fn unknown(name: &str) -> Error {
        if dir_keys::KEYS.iter().any(|key| key.is_called(name)) {
            return Error::Invalid(format!("{name} is set for a log directory, not for a log"));
        }
        key::unknown(name, Self::names())
    }

    /// Applies the pairs that are a log's and passes over the others.
    pub(super) fn apply(&self, pairs: &[(&str, &str)]) -> Result<Self> {
        let mut config = self.clone();
        for key in &log_keys::KEYS {
            key.apply(&mut config, pairs)?;
        }
        config.check()?;
        Ok(config)
    }

    /// Checks what one value alone cannot show.
    pub fn check(&self) -> Result<()> {
        let (min, max) = (self.min_compaction_lag_ms, self.max_compaction_lag_ms);
        if min > max {
            return Err(Error::Invalid(format!(
                "min.compaction.lag.ms ({min}) cannot be above max.compaction.lag.ms ({max})"
            )));
        }
        if !self.remote_storage_enable {
            return Ok(());
        }
        if self.cleanup_policy.compact {
            return Err(Error::Invalid(
                "remote.storage.enable cannot be true while cleanup.policy holds compact".into(),
            ));
        }
        check_local("retention.bytes", self.local_retention_bytes, self.retention_bytes)?;
        check_local("retention.ms", self.local_retention_ms, self.retention_ms)
    }

    /// Bytes at which a segment is full.
    pub fn segment_size(&self) -> u32 {
        self.internal_segment_bytes.unwrap_or(self.segment_bytes)
    }

    /// Record time that one segment may span, before jitter.
    pub fn max_segment_ms(&self) -> i64 {
        if self.cleanup_policy.compact {
            return self.segment_ms.min(self.max_compaction_lag_ms.max(0));
        }
        self.segment_ms
    }

    /// The jitter of a new segment, from a random number.
    pub fn random_segment_jitter(&self, random: i32) -> i64 {
        let bound = self.segment_jitter_ms.min(self.segment_ms);
        // Java's absolute value of the smallest int is 0 in Kafka.
        let positive = i64::from(random.checked_abs().unwrap_or(0));
        positive.checked_rem(bound).unwrap_or(0)
    }

    /// Bytes that a new segment's file begins with.
    pub fn initial_file_bytes(&self) -> u32 {
        if self.preallocate { self.segment_size() } else { 0 }
    }

    /// Bytes of an offset index while it is written to: whole entries only.
    pub fn offset_index_bytes(&self) -> u32 {
        whole_entries(self.segment_index_bytes, 8)
    }

    /// Bytes of a time index while it is written to: whole entries only.
    pub fn time_index_bytes(&self) -> u32 {
        whole_entries(self.segment_index_bytes, 12)
    }

    /// The level to compress with, where the codec has levels.
    pub fn compression_level(&self, codec: Codec) -> Option<i32> {
        match codec {
            Codec::None | Codec::Snappy => None,
            Codec::Gzip => Some(self.compression_gzip_level),
            Codec::Lz4 => Some(self.compression_lz4_level),
            Codec::Zstd => Some(self.compression_zstd_level),
        }
    }
}

fn whole_entries(bytes: u32, entry_bytes: u32) -> u32 {
    bytes - bytes % entry_bytes
}

/// What stays on the disk cannot be more than what stays at all.
fn check_local(name: &str, local: i64, total: i64) -> Result<()> {
    let within = local == -2 || total < 0 || (0..=total).contains(&local);
    if within {
        return Ok(());
    }
    Err(Error::Invalid(format!("local.{name} ({local}) cannot be above {name} ({total})")))
}

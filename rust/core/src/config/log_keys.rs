//! The names of a log's configuration, with their ranges and the broker's names for them.

use super::key::{Key, Slot, Synonym, words};
use super::{CleanupPolicy, CompressionType, Fsync, LogConfig};
use crate::codec::Encoder;
use crate::record::{Codec, TimestampType};

const HOUR_MS: i64 = 3_600_000;
const MINUTE_MS: i64 = 60_000;

/// Since Kafka 4.0 a segment holds at least 1 MiB.
const SEGMENT_BYTES_MIN: u32 = 1 << 20;

type Row = Key<LogConfig>;

const fn row(name: &'static str, synonyms: &'static [Synonym], slot: Slot<LogConfig>) -> Row {
    Key { name, synonyms, slot }
}

/// A row whose broker's name has the same unit.
macro_rules! same {
    ($($name:literal),*) => {
        const { &[$(Synonym::same($name)),*] }
    };
}

macro_rules! long {
    ($field:ident, $min:expr) => {
        Slot::Long { at: |config| &mut config.$field, min: $min }
    };
}

macro_rules! int {
    ($field:ident, $min:expr) => {
        Slot::Int { at: |config| &mut config.$field, min: $min }
    };
}

macro_rules! flag {
    ($field:ident) => {
        Slot::Bool { at: |config| &mut config.$field }
    };
}

/// A slot whose value is read by a function that answers `None` for what is not allowed.
macro_rules! other {
    ($field:ident, $allowed:expr, $read:expr, $show:expr) => {
        Slot::Other {
            allowed: $allowed,
            set: |config, text| $read(text).map(|value| config.$field = value).is_some(),
            get: |config| $show(&config.$field),
        }
    };
}

macro_rules! level {
    ($field:ident, $codec:expr, $allowed:literal) => {
        other!($field, $allowed, |text| read_level($codec, text), |level: &i32| Some(
            level.to_string()
        ))
    };
}

/// Every name, in the order of Kafka's documentation of topics.
pub(super) static KEYS: [Row; 37] = [
    row("segment.bytes", same!("log.segment.bytes"), int!(segment_bytes, SEGMENT_BYTES_MIN)),
    row(
        "internal.segment.bytes",
        &[],
        other!(
            internal_segment_bytes,
            "a whole number from 1 to 2147483647",
            |text| read_int(text).map(Some),
            |bytes: &Option<u32>| bytes.map(|bytes| bytes.to_string())
        ),
    ),
    row(
        "segment.ms",
        &[Synonym::same("log.roll.ms"), Synonym::scaled("log.roll.hours", HOUR_MS)],
        long!(segment_ms, 1),
    ),
    row(
        "segment.jitter.ms",
        &[Synonym::same("log.roll.jitter.ms"), Synonym::scaled("log.roll.jitter.hours", HOUR_MS)],
        long!(segment_jitter_ms, 0),
    ),
    row("segment.index.bytes", same!("log.index.size.max.bytes"), int!(segment_index_bytes, 4)),
    row("index.interval.bytes", same!("log.index.interval.bytes"), int!(index_interval_bytes, 0)),
    row("flush.messages", same!("log.flush.interval.messages"), long!(flush_messages, 1)),
    row(
        "flush.ms",
        same!("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        long!(flush_ms, 0),
    ),
    row("retention.bytes", same!("log.retention.bytes"), long!(retention_bytes, i64::MIN)),
    row(
        "retention.ms",
        &[
            Synonym::retention("log.retention.ms", 1),
            Synonym::retention("log.retention.minutes", MINUTE_MS),
            Synonym::retention("log.retention.hours", HOUR_MS),
        ],
        long!(retention_ms, -1),
    ),
    row(
        "local.retention.bytes",
        same!("log.local.retention.bytes"),
        long!(local_retention_bytes, -2),
    ),
    row("local.retention.ms", same!("log.local.retention.ms"), long!(local_retention_ms, -2)),
    row("max.message.bytes", same!("message.max.bytes"), int!(max_message_bytes, 0)),
    row(
        "delete.retention.ms",
        same!("log.cleaner.delete.retention.ms"),
        long!(delete_retention_ms, 0),
    ),
    row(
        "min.compaction.lag.ms",
        same!("log.cleaner.min.compaction.lag.ms"),
        long!(min_compaction_lag_ms, 0),
    ),
    row(
        "max.compaction.lag.ms",
        same!("log.cleaner.max.compaction.lag.ms"),
        long!(max_compaction_lag_ms, 1),
    ),
    row(
        "min.cleanable.dirty.ratio",
        same!("log.cleaner.min.cleanable.ratio"),
        Slot::Double { at: |config| &mut config.min_cleanable_dirty_ratio, min: 0.0, max: 1.0 },
    ),
    row(
        "cleanup.policy",
        same!("log.cleanup.policy"),
        other!(
            cleanup_policy,
            CleanupPolicy::NAMES,
            CleanupPolicy::parse,
            |policy: &CleanupPolicy| Some(policy.text().to_owned())
        ),
    ),
    row(
        "file.delete.delay.ms",
        same!("log.segment.delete.delay.ms"),
        long!(file_delete_delay_ms, 0),
    ),
    row("preallocate", same!("log.preallocate"), flag!(preallocate)),
    row(
        "compression.type",
        &[],
        other!(
            compression_type,
            CompressionType::NAMES,
            CompressionType::from_name,
            |kind: &CompressionType| Some(kind.name().to_owned())
        ),
    ),
    row(
        "compression.gzip.level",
        &[],
        level!(compression_gzip_level, Codec::Gzip, "a whole number from 1 to 9, or -1"),
    ),
    row(
        "compression.lz4.level",
        &[],
        level!(compression_lz4_level, Codec::Lz4, "a whole number from 1 to 17"),
    ),
    row(
        "compression.zstd.level",
        &[],
        level!(compression_zstd_level, Codec::Zstd, "a whole number from -131072 to 22"),
    ),
    row(
        "message.timestamp.type",
        same!("log.message.timestamp.type"),
        other!(
            message_timestamp_type,
            "CreateTime or LogAppendTime",
            read_timestamp_type,
            |kind: &TimestampType| Some(timestamp_type_name(*kind).to_owned())
        ),
    ),
    row(
        "message.timestamp.before.max.ms",
        same!("log.message.timestamp.before.max.ms"),
        long!(message_timestamp_before_max_ms, 0),
    ),
    row(
        "message.timestamp.after.max.ms",
        same!("log.message.timestamp.after.max.ms"),
        long!(message_timestamp_after_max_ms, 0),
    ),
    row("min.insync.replicas", &[], int!(min_insync_replicas, 1)),
    row("unclean.leader.election.enable", &[], flag!(unclean_leader_election_enable)),
    row(
        "leader.replication.throttled.replicas",
        &[],
        other!(leader_replication_throttled_replicas, THROTTLED, read_throttled, show_list),
    ),
    row(
        "follower.replication.throttled.replicas",
        &[],
        other!(follower_replication_throttled_replicas, THROTTLED, read_throttled, show_list),
    ),
    row("remote.storage.enable", &[], flag!(remote_storage_enable)),
    row("remote.log.copy.disable", &[], flag!(remote_log_copy_disable)),
    row("remote.log.delete.on.disable", &[], flag!(remote_log_delete_on_disable)),
    row("remote.copy.lag.ms", same!("log.remote.copy.lag.ms"), long!(remote_copy_lag_ms, -1)),
    row(
        "remote.copy.lag.bytes",
        same!("log.remote.copy.lag.bytes"),
        long!(remote_copy_lag_bytes, -1),
    ),
    row(
        "fsync",
        same!("log.fsync"),
        other!(fsync, Fsync::NAMES, Fsync::from_name, |mode: &Fsync| Some(mode.name().to_owned())),
    ),
];

const THROTTLED: &str = "a list of partition:broker pairs, or *";

fn read_int(text: &str) -> Option<u32> {
    text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok()).filter(|n| *n > 0)
}

fn read_level(codec: Codec, text: &str) -> Option<i32> {
    let level = text.parse().ok()?;
    Encoder::check_level(codec, Some(level)).is_ok().then_some(level)
}

fn read_timestamp_type(text: &str) -> Option<TimestampType> {
    match text {
        "CreateTime" => Some(TimestampType::CreateTime),
        "LogAppendTime" => Some(TimestampType::LogAppendTime),
        _ => None,
    }
}

fn timestamp_type_name(kind: TimestampType) -> &'static str {
    match kind {
        TimestampType::None | TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn read_throttled(text: &str) -> Option<Vec<String>> {
    if text == "*" {
        return Some(vec![text.to_owned()]);
    }
    let pair = |word: &str| {
        let (partition, broker) = word.split_once(':')?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (number(partition) && number(broker)).then(|| word.to_owned())
    };
    words(text).map(pair).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the table asks for an option")]
fn show_list(list: &[String]) -> Option<String> {
    Some(list.join(","))
}

use super::*;
use crate::checkpoint::Properties;
use crate::record::{Codec, TimestampType};

fn refused<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    LogConfig::parse(pairs).unwrap_err().to_string()
}

#[test]
fn the_defaults_are_kafkas() {
    let text = "segment.bytes=1073741824 segment.ms=604800000 segment.jitter.ms=0
        segment.index.bytes=10485760 index.interval.bytes=4096
        flush.messages=9223372036854775807 flush.ms=9223372036854775807 retention.bytes=-1
        retention.ms=604800000 local.retention.bytes=-2 local.retention.ms=-2
        max.message.bytes=1048588 delete.retention.ms=86400000 min.compaction.lag.ms=0
        max.compaction.lag.ms=9223372036854775807 min.cleanable.dirty.ratio=0.5
        cleanup.policy=delete file.delete.delay.ms=60000 preallocate=false
        compression.type=producer compression.gzip.level=-1 compression.lz4.level=9
        compression.zstd.level=3 message.timestamp.type=CreateTime
        message.timestamp.before.max.ms=9223372036854775807
        message.timestamp.after.max.ms=3600000 min.insync.replicas=1
        unclean.leader.election.enable=false leader.replication.throttled.replicas=
        follower.replication.throttled.replicas= remote.storage.enable=false
        remote.log.copy.disable=false remote.log.delete.on.disable=false remote.copy.lag.ms=0
        remote.copy.lag.bytes=-1 fsync=interval";
    let expected: Vec<(&str, String)> = text
        .split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| (name, value.to_owned()))
        .collect();
    assert_eq!(LogConfig::default().entries(), expected);
    assert_eq!(DirConfig::default().entries().len(), 19 + expected.len());
}

#[test]
fn what_is_printed_reads_back() {
    let config = LogConfig::parse([
        ("segment.bytes", " 2097152 "),
        ("internal.segment.bytes", "500"),
        ("cleanup.policy", " compact , delete "),
        ("compression.type", "uncompressed"),
        ("compression.zstd.level", "-131072"),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "1"),
        ("leader.replication.throttled.replicas", "0:1, 2:3"),
        ("follower.replication.throttled.replicas", "*"),
        ("preallocate", "TRUE"),
        ("fsync", "always"),
    ])
    .unwrap();
    assert_eq!(config.segment_bytes, 2 << 20);
    assert_eq!(config.segment_size(), 500);
    assert_eq!(config.cleanup_policy, CleanupPolicy { compact: true, delete: true });
    assert_eq!(config.compression_type, CompressionType::Codec(Codec::None));
    assert_eq!(config.message_timestamp_type, TimestampType::LogAppendTime);
    assert_eq!(config.leader_replication_throttled_replicas, ["0:1", "2:3"]);
    assert_eq!(config.fsync, Fsync::Always);
    assert_eq!(config.initial_file_bytes(), 500);
    let entries = config.entries();
    let pairs = entries.iter().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(LogConfig::parse(pairs.clone()).unwrap(), config);
    assert_eq!(LogConfig::default().with(pairs).unwrap(), config);
    let dir = DirConfig { log: config, ..DirConfig::default() };
    let entries = dir.entries();
    let pairs = entries.iter().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(DirConfig::parse(pairs).unwrap(), dir);
}

#[test]
fn a_refusal_names_key_value_and_what_is_allowed() {
    for (name, value, allowed) in [
        ("segment.bytes", "1048575", "a whole number from 1048576 to 2147483647"),
        ("segment.bytes", "2147483648", "a whole number from 1048576 to 2147483647"),
        ("segment.ms", "0", "a whole number from 1 up"),
        ("retention.ms", "-2", "a whole number from -1 up"),
        ("retention.ms", "1d", "a whole number from -1 up"),
        ("retention.bytes", "", "a whole number"),
        ("log.retention.ms", "0", "a whole number, -1 or from 1 up"),
        ("log.retention.hours", "0", "a whole number, -1 or from 1 up to 2147483647"),
        ("log.roll.hours", "0", "a whole number from 1 up to 2147483647"),
        ("min.cleanable.dirty.ratio", "1.01", "a number from 0 to 1"),
        ("min.cleanable.dirty.ratio", "NaN", "a number from 0 to 1"),
        ("cleanup.policy", "compact,compact", CleanupPolicy::NAMES),
        ("cleanup.policy", "compact,", CleanupPolicy::NAMES),
        ("compression.type", "none", CompressionType::NAMES),
        ("compression.gzip.level", "0", "a whole number from 1 to 9, or -1"),
        ("compression.lz4.level", "18", "a whole number from 1 to 17"),
        ("message.timestamp.type", "createtime", "CreateTime or LogAppendTime"),
        ("preallocate", "yes", "true or false"),
        ("min.insync.replicas", "0", "a whole number from 1 to 2147483647"),
        ("leader.replication.throttled.replicas", "1", "a list of partition:broker pairs, or *"),
        ("internal.segment.bytes", "0", "a whole number from 1 to 2147483647"),
        ("fsync", "sometimes", "never, interval or always"),
    ] {
        assert_eq!(
            refused([(name, value)]),
            format!("{name} cannot be {value:?}: it takes {allowed}")
        );
    }
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_known_one() {
    assert_eq!(
        refused([("segment_bytes", "1")]),
        "unknown configuration \"segment_bytes\"; did you mean \"segment.bytes\"?"
    );
    assert_eq!(
        refused([("log.retention.hour", "1")]),
        "unknown configuration \"log.retention.hour\"; did you mean \"log.retention.hours\"?"
    );
    assert_eq!(refused([("listeners", "1")]), "unknown configuration \"listeners\"");
    assert_eq!(
        refused([("message.format.version", "2.8")]),
        "message.format.version is no configuration since Kafka 4.0"
    );
    assert_eq!(
        refused([("num.partitions", "2")]),
        "num.partitions is set for a log directory, not for a log"
    );
    let error = DirConfig::parse([("num.partition", "2")]).unwrap_err().to_string();
    assert_eq!(error, "unknown configuration \"num.partition\"; did you mean \"num.partitions\"?");
}

#[test]
fn the_strongest_name_wins_wherever_it_stands() {
    let names = [
        ("retention.ms", "1", 1),
        ("log.retention.ms", "2", 2),
        ("log.retention.minutes", "3", 180_000),
        ("log.retention.hours", "4", 14_400_000),
    ];
    for (strongest, (_, _, expected)) in names.iter().enumerate() {
        let pairs = names[strongest..].iter().rev().map(|(name, value, _)| (*name, *value));
        assert_eq!(LogConfig::parse(pairs).unwrap().retention_ms, *expected);
    }
    assert_eq!(LogConfig::parse([("log.retention.hours", "-5")]).unwrap().retention_ms, -1);
    let roll = LogConfig::parse([("log.roll.hours", "1"), ("log.roll.jitter.hours", "2")]).unwrap();
    assert_eq!((roll.segment_ms, roll.segment_jitter_ms), (3_600_000, 7_200_000));
    let twice = LogConfig::parse([("flush.ms", "5"), ("flush.ms", "6")]).unwrap();
    assert_eq!(twice.flush_ms, 6);
    let most = LogConfig::parse([("log.retention.hours", "2147483647")]).unwrap();
    assert_eq!(most.retention_ms, 2_147_483_647 * 3_600_000);
}

#[test]
fn values_that_contradict_each_other_are_refused() {
    assert_eq!(
        refused([("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")]),
        "min.compaction.lag.ms (2) cannot be above max.compaction.lag.ms (1)"
    );
    let remote = ("remote.storage.enable", "true");
    assert!(refused([remote, ("cleanup.policy", "compact")]).contains("compact"));
    assert!(LogConfig::parse([remote, ("local.retention.ms", "604800000")]).is_ok());
    assert!(refused([remote, ("local.retention.ms", "604800001")]).contains("local.retention.ms"));
    assert!(refused([remote, ("local.retention.ms", "-1")]).contains("local.retention.ms"));
    let threads = DirConfig::parse([("log.cleaner.threads", "128")]).unwrap_err().to_string();
    assert!(threads.contains("1048576 bytes a thread"), "{threads}");
}

#[test]
fn derived_values_follow_kafka() {
    let compacted = LogConfig::parse([
        ("cleanup.policy", "compact"),
        ("max.compaction.lag.ms", "1000"),
        ("segment.ms", "5000"),
    ])
    .unwrap();
    assert_eq!(compacted.max_segment_ms(), 1000);
    let deleted = compacted.with([("cleanup.policy", "")]).unwrap();
    assert_eq!(deleted.max_segment_ms(), 5000);
    assert_eq!(deleted.cleanup_policy, CleanupPolicy { compact: false, delete: false });
    let plain = LogConfig::parse([("segment.index.bytes", "100"), ("preallocate", "true")]);
    let plain = plain.unwrap();
    assert_eq!((plain.offset_index_bytes(), plain.time_index_bytes()), (96, 96));
    assert_eq!(LogConfig::default().time_index_bytes(), 10_485_756);
    assert_eq!(plain.initial_file_bytes(), 1 << 30);
    assert_eq!(LogConfig::default().initial_file_bytes(), 0);
    assert_eq!(plain.random_segment_jitter(77), 0);
    let jitter = LogConfig::parse([("segment.jitter.ms", "50"), ("segment.ms", "20")]).unwrap();
    assert_eq!(jitter.random_segment_jitter(-77), 17);
    assert_eq!(jitter.random_segment_jitter(i32::MIN), 0);
    assert_eq!(plain.compression_level(Codec::Snappy), None);
    assert_eq!(plain.compression_level(Codec::Lz4), Some(9));
}

#[test]
fn a_brokers_properties_give_the_directory_and_its_topics() {
    let text = "process.roles=broker\nlisteners=PLAINTEXT://:9092\nnum.partitions=3\n\
        log.retention.hours=1\nlog.flush.scheduler.interval.ms=7\ncompression.type=zstd\n";
    let properties = Properties::decode(text.as_bytes()).unwrap();
    let config = DirConfig::from_server_properties(&properties).unwrap();
    assert_eq!(config.num_partitions, 3);
    assert_eq!(config.log.retention_ms, 3_600_000);
    assert_eq!((config.flush_scheduler_interval_ms, config.log.flush_ms), (7, 7));
    assert_eq!(config.log.compression_type.target(Codec::Gzip), Codec::Zstd);
    assert!(DirConfig::from_properties(&properties).is_err());
    let topic = Properties::decode(b"retention.ms=5\n").unwrap();
    assert_eq!(LogConfig::from_properties(&topic).unwrap().retention_ms, 5);
}

#[test]
fn random_pairs_never_panic() {
    let mut random = crate::testing::Random::new(4);
    let names: Vec<_> = DirConfig::default().entries();
    for _ in 0..20_000 {
        let (name, _) = random.pick(&names);
        let value: String = (0..random.below(20))
            .map(|_| *random.pick(&['0', '9', '-', '+', '.', 'e', ',', ':', '*', ' ', 'é']))
            .collect();
        if let Ok(config) = DirConfig::parse([(*name, value.as_str())]) {
            let _ = (config.log.max_segment_ms(), config.log.random_segment_jitter(-5));
        }
    }
}

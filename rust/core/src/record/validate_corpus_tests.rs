//! What real brokers stored, appended again: as a replica and as a leader.

use super::{
    AnalyzeLimits, BatchMut, BatchView, Codec, EntryView, Origin, Placement, Rules, TimestampType,
    Validator, analyze,
};
use crate::testing::{at_least, corpus_files};

const ANY: AnalyzeLimits = AnalyzeLimits { max_message_bytes: 1, leader_epoch: i32::MAX };

#[test]
fn a_replica_takes_every_file_up_to_its_first_damage() {
    let (mut whole, mut entries) = (0, 0);
    for (path, bytes) in corpus_files(".log") {
        let mut rest = &bytes[..];
        let mut count = 0;
        while let Ok(entry) = EntryView::parse(rest) {
            if entry.check_crc().is_err() || entry.check().is_err() {
                break;
            }
            rest = &rest[entry.total_bytes()..];
            count += 1;
        }
        let valid = bytes.len() - rest.len();
        let Ok(facts) = analyze(&bytes[..valid], Origin::Replication, ANY) else {
            // Damage of offsets, which no checksum covers.
            continue;
        };
        assert_eq!((facts.entries, facts.valid_bytes), (count, valid), "{}", path.display());
        assert_eq!(facts.entries_of(&bytes).count(), count);
        whole += 1;
        entries += count;
    }
    assert!(whole >= at_least(400), "only {whole} files");
    assert!(entries >= at_least(8_000), "only {entries} entries");
}

/// A stored batch as its producer may have sent it.
fn as_sent(batch: &BatchView<'_>) -> Vec<u8> {
    let mut bytes = batch.bytes().to_vec();
    let mut sent = BatchMut::parse(&mut bytes).unwrap();
    sent.set_base_offset(0).unwrap();
    sent.set_leader_epoch(-1);
    bytes
}

/// Rules that take any time, so that old batches are appended today.
fn rules(timestamp_type: TimestampType) -> Rules {
    Rules { timestamp_type, timestamp_after_max_ms: i64::MAX, ..Rules::default() }
}

#[test]
fn a_leader_gives_back_what_the_broker_stored() {
    let mut validator = Validator::new();
    let (mut same, mut stamped) = (0, 0);
    for (path, bytes) in corpus_files(".log") {
        let mut rest = &bytes[..];
        while let Ok(entry) = EntryView::parse(rest) {
            rest = &rest[entry.total_bytes()..];
            let EntryView::Batch(batch) = entry else { continue };
            let header = batch.header();
            let holes = header.last_offset_delta + 1 != header.records_count;
            if batch.check_crc().is_err() || header.check().is_err() || holes {
                continue;
            }
            let origin =
                if header.attributes.is_control() { Origin::Coordinator } else { Origin::Client };
            let at = Placement {
                origin,
                next_offset: header.base_offset,
                leader_epoch: header.leader_epoch,
                now_ms: header.max_timestamp,
            };
            let limits = AnalyzeLimits { max_message_bytes: 64 << 20, leader_epoch: -1 };
            let kind = header.attributes.timestamp_type();
            if kind == TimestampType::LogAppendTime {
                // The time and its type are the broker's; the producer's stand in the records.
                stamped += 1;
                continue;
            }
            let mut appended = as_sent(&batch);
            let facts = analyze(&appended, origin, limits).unwrap();
            let validated = validator.validate(&mut appended, &facts, &rules(kind), &at);
            let validated = validated.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(!validated.rebuilt, "{}", path.display());
            assert!(appended == batch.bytes(), "{}: {header:?}", path.display());
            same += 1;
        }
    }
    assert!(same >= at_least(5_000), "only {same} batches");
    assert!(stamped >= at_least(10), "only {stamped} batches");
}

#[test]
fn the_append_time_of_a_broker_is_found_again() {
    let mut validator = Validator::new();
    let mut seen = 0;
    for (path, bytes) in corpus_files(".log") {
        let mut rest = &bytes[..];
        while let Ok(entry) = EntryView::parse(rest) {
            rest = &rest[entry.total_bytes()..];
            let EntryView::Batch(batch) = entry else { continue };
            let header = batch.header();
            let is_stamped = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
            let holes = header.last_offset_delta + 1 != header.records_count;
            if !is_stamped || batch.check_crc().is_err() || holes {
                continue;
            }
            let mut sent = as_sent(&batch);
            let mut unstamped = BatchMut::parse(&mut sent).unwrap();
            unstamped.set_max_timestamp(TimestampType::CreateTime, header.base_timestamp).unwrap();
            let at = Placement {
                origin: Origin::Client,
                next_offset: header.base_offset,
                leader_epoch: header.leader_epoch,
                now_ms: header.max_timestamp,
            };
            let limits = AnalyzeLimits { max_message_bytes: 64 << 20, leader_epoch: -1 };
            let facts = analyze(&sent, Origin::Client, limits).unwrap();
            let rules = rules(TimestampType::LogAppendTime);
            validator.validate(&mut sent, &facts, &rules, &at).unwrap();
            assert!(sent == batch.bytes(), "{}: {header:?}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= at_least(10), "only {seen} batches");
}

#[test]
fn old_messages_of_real_brokers_become_batches() {
    let mut validator = Validator::new();
    let mut codecs = std::collections::BTreeSet::new();
    let mut seen = 0;
    for (path, bytes) in corpus_files(".log") {
        let mut rest = &bytes[..];
        while let Ok(entry) = EntryView::parse(rest) {
            rest = &rest[entry.total_bytes()..];
            let EntryView::Legacy(message) = entry else { continue };
            if message.check_crc().is_err()
                || message.timestamp_type() == TimestampType::LogAppendTime
            {
                continue;
            }
            let mut converted = message.bytes().to_vec();
            let at = Placement {
                origin: Origin::Client,
                next_offset: 1_000,
                leader_epoch: 4,
                now_ms: message.timestamp(),
            };
            let limits = AnalyzeLimits { max_message_bytes: 64 << 20, leader_epoch: -1 };
            let facts = analyze(&converted, Origin::Client, limits).unwrap();
            let rules = rules(TimestampType::CreateTime);
            let validated = validator.validate(&mut converted, &facts, &rules, &at);
            let validated = validated.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(validated.header.max_timestamp, message.timestamp(), "{}", path.display());
            assert_eq!(validated.header.attributes.codec(), Ok(message.codec()));
            codecs.insert((message.magic(), message.codec()));
            seen += 1;
        }
    }
    assert!(seen >= at_least(100), "only {seen} messages");
    if at_least(2) == 2 {
        assert!(codecs.contains(&(0, Codec::Lz4)) && codecs.contains(&(1, Codec::None)));
    }
}

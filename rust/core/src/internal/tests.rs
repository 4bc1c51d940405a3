use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::checkpoint::Json;
use crate::record::{BatchView, Records};
use crate::testing::{Random, at_least, cases, dump_sections, labelled};
use crate::uuid::Uuid;

/// Compares a decoded value with the JSON that Kafka prints for it. Kafka prints null for some
/// tagged fields that are not written.
fn same(value: &Value, json: &Json) -> bool {
    match (value, json) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(ours), Json::Bool(theirs)) => ours == theirs,
        (Value::Int(ours), Json::Number(_)) => json.integer() == Some(*ours),
        (Value::Float(ours), Json::Number(theirs)) => theirs.parse() == Ok(*ours),
        (Value::Text(ours), Json::Text(theirs)) => ours == theirs,
        (Value::Uuid(ours), Json::Text(theirs)) => ours.to_string() == *theirs,
        (Value::Bytes(ours), Json::Text(theirs)) => base64(ours) == *theirs,
        (Value::List(ours), Json::List(theirs)) => {
            let mut pairs = ours.iter().zip(theirs);
            ours.len() == theirs.len() && pairs.all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Record(ours), Json::Object(theirs)) => {
            ours.iter().all(|(name, value)| json.get(name).is_some_and(|json| same(value, json)))
                && theirs
                    .iter()
                    .all(|(name, json)| *json == Json::Null || value.get(name).is_some())
        }
        _ => false,
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes(padded);
        for place in 0..4_usize {
            let digit = usize::try_from(number >> (18 - 6 * place) & 0x3f).unwrap();
            text.push(if place <= group.len() { ALPHABET[digit].into() } else { '=' });
        }
    }
    text
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|_| panic!("{text}"))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = (text != "-").then(|| text.as_bytes().chunks(2))?;
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    Some(digits.map(byte).collect())
}

/// Random values of every record type and version, written and printed by Kafka 4.3.0's own
/// classes: topic, type, version, key, value, key as JSON, value as JSON.
const SAMPLES: &str = include_str!("samples.tsv");

#[test]
fn every_type_and_version_that_kafka_writes_is_read_as_kafka_prints_it() {
    let mut seen = BTreeSet::new();
    for line in SAMPLES.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [topic, kind, version, key, value, key_json, value_json] = fields[..] else {
            panic!("{line}");
        };
        let decoded = decode_internal(topic, unhex(key).as_deref(), unhex(value).as_deref())
            .unwrap_or_else(|kind| panic!("{kind}: {line}"));
        assert_eq!(decoded.kind, kind.trim_start_matches("Legacy"));
        assert_eq!(decoded.version.to_string(), version, "{line}");
        assert!(same(&decoded.value, &json(value_json)), "{:?}\n{line}", decoded.value);
        if key == "-" {
            assert_eq!(decoded.key, Value::Null);
        } else {
            assert!(same(&decoded.key, &json(key_json)), "{:?}\n{line}", decoded.key);
        }
        seen.insert((topic, kind, version));
    }
    assert_eq!(seen.len(), 71, "types and versions");
}

#[derive(Debug)]
struct Stored {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

/// The records of an uncompressed log or snapshot by offset, control records left out.
fn records(bytes: &[u8]) -> BTreeMap<i64, Stored> {
    let mut found = BTreeMap::new();
    let mut rest = bytes;
    while let Ok(batch) = BatchView::parse(rest) {
        rest = &rest[batch.bytes().len()..];
        if batch.header().attributes.is_control() {
            continue;
        }
        for record in Records::new(batch.header(), batch.payload()) {
            let record = record.unwrap();
            let key = record.key.map(<[u8]>::to_vec);
            let value = record.value.map(<[u8]>::to_vec);
            found.insert(record.offset, Stored { key, value });
        }
    }
    found
}

/// `TOPIC_RECORD` → `Topic`.
fn kind_of(printed: &str) -> String {
    let words = printed.trim_end_matches("_RECORD").split('_');
    words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
}

/// Releases before 4.0 print transactions in a form of their own.
fn old_transaction_text(record: &InternalRecord) -> String {
    const STATES: [&str; 8] = [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ];
    let int = |name| match record.value.get(name) {
        Some(Value::Int(number)) => *number,
        other => panic!("{name}: {other:?}"),
    };
    let Some(Value::Text(id)) = record.key.get("transactionalId") else {
        panic!("{record:?}");
    };
    let mut partitions = Vec::new();
    if let Some(Value::List(topics)) = record.value.get("transactionPartitions") {
        for topic in topics {
            let (Some(Value::Text(name)), Some(Value::List(ids))) =
                (topic.get("topic"), topic.get("partitionIds"))
            else {
                panic!("{topic:?}");
            };
            for id in ids {
                let Value::Int(id) = id else { panic!("{id:?}") };
                partitions.push(format!("{name}-{id}"));
            }
        }
    }
    partitions.sort();
    format!(
        "transaction_metadata::transactionalId={id} payload: producerId:{},producerEpoch:{},state={},\
         partitions=[{}],txnLastUpdateTimestamp={},txnTimeoutMs={}",
        int("producerId"),
        int("producerEpoch"),
        STATES[usize::try_from(int("transactionStatus")).unwrap()],
        partitions.join(","),
        int("transactionLastUpdateTimestampMs"),
        int("transactionTimeoutMs"),
    )
}

/// The tool prints the partitions of a transaction in the order of a hash table.
fn with_sorted_partitions(printed: &str) -> String {
    let (before, rest) = printed.split_once("partitions=[").unwrap();
    let (partitions, after) = rest.split_once(']').unwrap();
    let mut partitions: Vec<&str> = partitions.split(',').collect();
    partitions.sort_unstable();
    format!("{before}partitions=[{}]{after}", partitions.join(","))
}

/// Compares a record with the part of a dump line that shows its key and value.
fn agrees(record: &InternalRecord, printed: &str) -> bool {
    if let Some(payload) = printed.strip_prefix("payload: ") {
        let printed = json(payload);
        let Some(Json::Text(kind)) = printed.get("type") else {
            panic!("{payload}");
        };
        return record.kind == kind_of(kind)
            && printed.get("version").unwrap().integer() == Some(record.version)
            && same(&record.value, printed.get("data").unwrap());
    }
    let printed = printed.strip_prefix("key: ").unwrap_or_else(|| panic!("{printed}"));
    if printed.starts_with("transaction_metadata::") {
        return old_transaction_text(record) == with_sorted_partitions(printed);
    }
    let (key, value) = printed.split_once(" payload: ").unwrap();
    let key_agrees = same(&record.key, json(key).get("data").unwrap());
    if value == "<DELETE>" {
        return key_agrees && (record.version, &record.value) == (-1, &Value::Null);
    }
    let value = json(value);
    let version = Json::Text(record.version.to_string());
    key_agrees
        && value.get("version") == Some(&version)
        && same(&record.value, value.get("data").unwrap())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads the corpus directly")]
fn every_internal_record_of_the_corpus_agrees_with_the_dump_tool() {
    let mut compared = BTreeMap::new();
    for case in cases() {
        for (file, lines) in dump_sections(&case.dump().unwrap_or_default()) {
            let directory = file.split('/').next().unwrap_or_default();
            let topic = directory.rsplit_once('-').map_or("", |(topic, _)| topic);
            let is_log = [".log", ".checkpoint"].iter().any(|ending| file.ends_with(ending));
            if !is_internal(topic) || !is_log {
                continue;
            }
            let mut records = records(&std::fs::read(case.log().join(file)).unwrap());
            for line in lines.iter().filter(|line| line.starts_with("| offset")) {
                let (_, printed) = line.split_once(" headerKeys: [] ").unwrap();
                let Some(record) = records.remove(&labelled(line, "offset").unwrap()) else {
                    // Control records are not decoded here; the tool prints no key for them.
                    assert!(!printed.contains("payload: "), "{} {file}: {line}", case.name());
                    continue;
                };
                let decoded =
                    decode_internal(topic, record.key.as_deref(), record.value.as_deref())
                        .unwrap_or_else(|kind| panic!("{} {file}: {kind}: {line}", case.name()));
                assert!(agrees(&decoded, printed), "{} {file}: {decoded:?}\n{line}", case.name());
                *compared.entry(topic.to_owned()).or_insert(0_usize) += 1;
            }
            assert!(records.is_empty(), "{} {file}: not in the dump: {records:?}", case.name());
        }
    }
    for (topic, floor) in
        [("__cluster_metadata", 690), ("__consumer_offsets", 61), ("__transaction_state", 2023)]
    {
        let count = compared.get(topic).copied().unwrap_or(0);
        assert!(count >= at_least(floor), "{count} records of {topic}");
    }
}

#[test]
fn the_published_metadata_records_read() {
    let topic = unhex("01020004666f6f000102030405060708090a0b0c0d0e0f00");
    let topic = decode_internal("__cluster_metadata", None, topic.as_deref()).unwrap();
    assert_eq!((&*topic.kind, topic.version), ("Topic", 0));
    assert_eq!(topic.value.get("name"), Some(&Value::Text("foo".to_owned())));
    let id = Uuid::parse("AAECAwQFBgcICQoLDA0ODw").unwrap();
    assert_eq!(topic.value.get("topicId"), Some(&Value::Uuid(id)));
    let level = unhex("010c00116d657461646174612e76657273696f6e001500");
    let level = decode_internal("__cluster_metadata", None, level.as_deref()).unwrap();
    assert_eq!(level.value.get("featureLevel"), Some(&Value::Int(21)));
}

#[test]
fn what_a_newer_release_added_keeps_its_bytes() {
    let decode = |topic, key, value| decode_internal(topic, key, value).unwrap();
    let type_99: &[u8] = &[1, 99, 0, 7];
    let record = decode("__cluster_metadata", None, Some(type_99));
    assert_eq!((&*record.kind, record.version), ("unknown(99)", -1));
    assert_eq!(record.value, Value::Bytes(type_99.to_vec()));
    let topic_v9: &[u8] = &[1, 2, 9, 7];
    let record = decode("__cluster_metadata", None, Some(topic_v9));
    assert_eq!((&*record.kind, record.version), ("Topic", 9));
    assert_eq!(record.value, Value::Bytes(topic_v9.to_vec()));

    let record = decode("__consumer_offsets", Some(&[0x7f, 0xff, 1]), None);
    assert_eq!((&*record.kind, &record.value), ("unknown(32767)", &Value::Null));
    let group: &[u8] = &[0, 2, 0, 1, b'g'];
    let record = decode("__consumer_offsets", Some(group), Some(&[0, 5, 1]));
    assert_eq!((&*record.kind, record.version), ("GroupMetadata", 5));
    assert_eq!(record.value, Value::Bytes(vec![0, 5, 1]));
    assert_eq!(record.key.get("group"), Some(&Value::Text("g".to_owned())));
}

#[test]
fn early_layouts_of_share_groups_keep_their_bytes() {
    let group: &[u8] = &[0, 11, 0, 1, b'g'];
    let without_hash: &[u8] = &[0, 0, 0, 0, 0, 7, 0];
    let record = decode_internal("__consumer_offsets", Some(group), Some(without_hash)).unwrap();
    assert_eq!(record.kind, "ShareGroupMetadata");
    assert_eq!(record.value, Value::Bytes(without_hash.to_vec()));
}

#[test]
fn a_tombstone_has_a_key_and_no_value() {
    let key: &[u8] = &[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 3];
    let record = decode_internal("__consumer_offsets", Some(key), None).unwrap();
    assert_eq!((&*record.kind, record.version), ("OffsetCommit", -1));
    assert_eq!((record.key.get("partition"), record.value), (Some(&Value::Int(3)), Value::Null));
}

#[test]
fn subscriptions_of_other_protocols_stay_bytes() {
    let group = |protocol: &str| {
        let mut value = vec![0, 0, 0, u8::try_from(protocol.len()).unwrap()];
        value.extend(protocol.as_bytes());
        value.extend([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
        value.extend([0, 1, b'm', 0, 0, 0, 0, 0, 0, 0, 9]);
        // Version 7 of a subscription starts like version 3; an empty assignment is none.
        value.extend([0, 0, 0, 20, 0, 7, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        value.extend([0, 0, 0, 0, 0, 0, 0, 5, 0xff, 0xff, 0, 0, 0, 0]);
        let key: &[u8] = &[0, 2, 0, 1, b'g'];
        let record = decode_internal("__consumer_offsets", Some(key), Some(&value)).unwrap();
        let Some(Value::List(members)) = record.value.get("members") else {
            panic!("{record:?}");
        };
        members[0].clone()
    };
    let consumer = group("consumer");
    let subscription = consumer.get("subscription").unwrap();
    assert_eq!(subscription.get("generationId"), Some(&Value::Int(5)));
    assert_eq!(consumer.get("assignment"), Some(&Value::Bytes(Vec::new())));
    let connect = group("connect");
    assert!(matches!(connect.get("subscription"), Some(Value::Bytes(bytes)) if bytes.len() == 20));
}

#[test]
fn records_that_make_no_sense_are_refused() {
    let commit: &[u8] = &[0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 3];
    for (topic, key, value) in [
        ("orders", Some(commit), None),
        ("__consumer_offsets", None, None),
        ("__consumer_offsets", Some(&commit[..1]), None),
        ("__consumer_offsets", Some(&commit[..11]), None),
        ("__consumer_offsets", Some(commit), Some(&[0][..])),
        ("__consumer_offsets", Some(commit), Some(&[0, 3, 0][..])),
        ("__cluster_metadata", None, None),
        ("__cluster_metadata", None, Some(&[][..])),
        ("__cluster_metadata", None, Some(&[0, 20, 0, 0][..])),
        ("__cluster_metadata", None, Some(&[2, 20, 0, 0][..])),
        ("__cluster_metadata", None, Some(&[1, 20, 0, 0, 0][..])),
        ("__cluster_metadata", None, Some(&[1, 20, 0x80, 0x80, 0x04, 0][..])),
    ] {
        let refused = decode_internal(topic, key, value);
        assert!(refused.is_err(), "{topic} {key:?} {value:?}: {refused:?}");
    }
}

#[test]
fn damaged_records_never_panic_and_cut_ones_are_noticed() {
    let mut random = Random::new(12);
    let (mut refused, mut cut) = (0, 0);
    for line in SAMPLES.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (topic, key, value) = (fields[0], unhex(fields[3]), unhex(fields[4]).unwrap());
        for length in 0..value.len() {
            match decode_internal(topic, key.as_deref(), Some(&value[..length])) {
                Err(_) => cut += 1,
                Ok(record) => assert!(matches!(record.value, Value::Bytes(_)), "{line}"),
            }
        }
        for _ in 0..500 {
            let mut damaged = value.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] ^= 1 << random.below(8);
            }
            let decoded = decode_internal(topic, key.as_deref(), Some(&damaged));
            refused += usize::from(decoded.is_err());
        }
    }
    assert!(refused > 20_000 && cut > 8_000, "{refused} refused, {cut} cut");
}

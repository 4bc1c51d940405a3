//! The formats held against what real brokers wrote.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use super::samples::rebuild;
use super::{
    BatchView, Codec, ControlRecord, ControlType, CorruptKind, EntryView, KRaftVoter,
    LegacyRecords, RecordView, Records, TimestampType, Voter,
};
use crate::codec::{Decoder, Dialect};
use crate::testing::{Case, at_least, cases, corpus_files, dump_sections, labelled};

/// Every whole, valid entry at the start of a file.
fn entries(bytes: &[u8]) -> impl Iterator<Item = EntryView<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let entry = EntryView::parse(rest).ok().filter(|entry| entry.check_crc().is_ok())?;
        rest = &rest[entry.total_bytes()..];
        Some(entry)
    })
}

/// Whether every kind of batch is there, which the small copy in the repository does not promise.
fn is_whole_corpus() -> bool {
    at_least(2) == 2
}

fn batches(bytes: &[u8]) -> impl Iterator<Item = BatchView<'_>> {
    entries(bytes).filter_map(|entry| match entry {
        EntryView::Batch(batch) => Some(batch),
        EntryView::Legacy(_) => None,
    })
}

/// What makes a batch worth rebuilding, apart from its records.
fn features(batch: &BatchView<'_>) -> Vec<&'static str> {
    let header = batch.header();
    let attributes = header.attributes;
    let holes = i64::from(header.records_count) <= i64::from(header.last_offset_delta);
    [
        (header.records_count == 0, "empty"),
        (attributes.timestamp_type() == TimestampType::LogAppendTime, "append time"),
        (attributes.is_transactional(), "transactional"),
        (attributes.is_control(), "control"),
        (attributes.has_delete_horizon(), "delete horizon"),
        (header.producer_id >= 0, "producer"),
        (holes, "holes"),
    ]
    .into_iter()
    .filter_map(|(is_so, name)| is_so.then_some(name))
    .collect()
}

#[test]
fn every_uncompressed_batch_of_the_corpus_rebuilds_byte_for_byte() {
    let mut seen = 0;
    let mut others = Vec::new();
    let mut features_seen = BTreeMap::new();
    for (path, bytes) in corpus_files(".log").into_iter().chain(corpus_files(".checkpoint")) {
        for batch in batches(&bytes).filter(|batch| batch.codec() == Ok(Codec::None)) {
            assert_eq!(batch.header().check(), Ok(()), "{}", path.display());
            seen += 1;
            for feature in features(&batch) {
                *features_seen.entry(feature).or_insert(0) += 1;
            }
            if rebuild(&batch, batch.payload()) != batch.bytes() {
                others.push((path.clone(), batch.header().base_offset));
            }
        }
    }
    // No client of the corpus writes an over-long integer or an unknown attribute bit.
    assert_eq!(others, []);
    assert!(seen >= at_least(5_900), "only {seen} batches");
    if is_whole_corpus() {
        let rare = features_seen.iter().filter(|(_, count)| **count < 10).collect::<Vec<_>>();
        assert_eq!((features_seen.len(), rare), (7, Vec::new()), "{features_seen:?}");
    }
}

/// A control record in the words of Kafka's own dump tool.
fn in_dump_words(record: &ControlRecord) -> String {
    let voters = |voters: &[Voter]| {
        let texts = voters.iter().map(|voter| format!("{{\"voterId\":{}}}", voter.id));
        texts.collect::<Vec<_>>().join(",")
    };
    match record {
        ControlRecord::Abort(marker) => {
            format!("endTxnMarker: ABORT coordinatorEpoch: {}", marker.coordinator_epoch)
        }
        ControlRecord::Commit(marker) => {
            format!("endTxnMarker: COMMIT coordinatorEpoch: {}", marker.coordinator_epoch)
        }
        ControlRecord::LeaderChange(change) => format!(
            "LeaderChange: {{\"version\":{},\"leaderId\":{},\"voters\":[{}],\"grantingVoters\":[{}]}}",
            change.version,
            change.leader_id,
            voters(&change.voters),
            voters(&change.granting_voters),
        ),
        ControlRecord::SnapshotHeader { last_contained_log_timestamp } => format!(
            "SnapshotHeader {{\"version\":0,\"lastContainedLogTimestamp\":\
             {last_contained_log_timestamp}}}"
        ),
        ControlRecord::SnapshotFooter => "SnapshotFooter {\"version\":0}".to_owned(),
        ControlRecord::KRaftVersion(version) => {
            format!("KRaftVersion {{\"version\":0,\"kRaftVersion\":{version}}}")
        }
        ControlRecord::KRaftVoters(voters) => {
            let voters = voters.iter().map(voter_in_dump_words).collect::<Vec<_>>().join(",");
            format!("KRaftVoters {{\"version\":0,\"voters\":[{voters}]}}")
        }
        ControlRecord::Unknown(id) => panic!("type {id}"),
    }
}

fn voter_in_dump_words(voter: &KRaftVoter) -> String {
    let endpoints = voter.endpoints.iter().map(|endpoint| {
        format!(
            "{{\"name\":\"{}\",\"host\":\"{}\",\"port\":{}}}",
            endpoint.name, endpoint.host, endpoint.port
        )
    });
    format!(
        "{{\"voterId\":{},\"voterDirectoryId\":\"{}\",\"endpoints\":[{}],\
         \"kRaftVersionFeature\":{{\"minSupportedVersion\":{},\"maxSupportedVersion\":{}}}}}",
        voter.id,
        voter.directory_id,
        endpoints.collect::<Vec<_>>().join(","),
        voter.kraft_version_min,
        voter.kraft_version_max,
    )
}

/// The control records of a file, in the order of their offsets.
fn control_records(bytes: &[u8]) -> Vec<(i64, ControlType, ControlRecord)> {
    batches(bytes)
        .filter(|batch| batch.header().attributes.is_control())
        .flat_map(|batch| Records::new(batch.header(), batch.payload()))
        .map(|record| {
            let record = record.unwrap();
            let kind = ControlType::from_key(record.key).unwrap();
            (record.offset, kind, ControlRecord::decode(&record).unwrap())
        })
        .collect()
}

#[test]
fn every_control_record_says_what_kafka_s_dump_tool_says() {
    let mut seen = BTreeMap::new();
    for case in cases().iter().filter(|case| case.is_clean()) {
        let Some(dump) = case.dump() else { continue };
        let dumped = dump_sections(&dump).into_iter().collect::<BTreeMap<_, _>>();
        for path in case.files(".log").into_iter().chain(case.files(".checkpoint")) {
            let file = path.strip_prefix(case.log()).unwrap().to_str().unwrap();
            let Some(lines) = dumped.get(file) else {
                assert_eq!(file, "bootstrap.checkpoint", "the only file not dumped");
                continue;
            };
            for (offset, kind, record) in control_records(&read(&path)) {
                let words = in_dump_words(&record);
                // Some releases of the tool name the type and leave the value out.
                let name_only = format!("controlType: {}({})", kind.name(), kind.id());
                let line = lines
                    .iter()
                    .find(|line| line.starts_with("| ") && labelled(line, "offset") == Some(offset))
                    .unwrap_or_else(|| panic!("{file}: offset {offset}"));
                assert!(line.ends_with(&words) || line.ends_with(&name_only), "{line}: {words}");
                if line.ends_with(&words) {
                    *seen.entry(kind.name()).or_insert(0) += 1;
                }
            }
        }
    }
    let total = seen.values().sum::<usize>();
    assert!(total >= at_least(290), "only {total}");
    if is_whole_corpus() {
        assert_eq!(seen.len(), 7, "{seen:?}");
    }
}

/// One record, in the words of the truth: topic and partition, offset, timestamp and what it means,
/// key and value.
type Row = (String, i64, i64, String, Option<Vec<u8>>, Option<Vec<u8>>);

/// Every record a real consumer read from the case.
fn truth(case: &Case) -> Vec<Row> {
    let mut text = String::new();
    let packed = read(&case.log().with_file_name("expected").join("records.jsonl.gz"));
    flate2::read::MultiGzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let rows = text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| line[name].as_i64().unwrap();
        let bytes = |name: &str| line[name].as_str().map(base64);
        let partition = format!("{}-{}", line["topic"].as_str().unwrap(), number("partition"));
        let kind = line["timestamp_type"].as_str().unwrap().to_owned();
        (partition, number("offset"), number("timestamp"), kind, bytes("key"), bytes("value"))
    });
    rows.collect()
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = ALPHABET.iter().position(|known| *known == digit).unwrap();
        bits = (bits << 6) | u32::try_from(value).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xff).unwrap());
        }
    }
    bytes
}

/// Adds the records of an entry, inner checksums verified.
fn decode(entry: &EntryView<'_>, decoder: &mut Decoder, partition: &str, rows: &mut Vec<Row>) {
    let kind = match entry.timestamp_type() {
        TimestampType::None => "NoTimestampType",
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    };
    let mut keep = |record: Result<RecordView<'_>, CorruptKind>| {
        let record = record.unwrap();
        let own = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
        let (key, value) = (own(record.key), own(record.value));
        let (partition, kind) = (partition.to_owned(), kind.to_owned());
        rows.push((partition, record.offset, record.timestamp, kind, key, value));
    };
    match entry {
        EntryView::Batch(batch) => {
            let payload = decoder.inflate(batch.codec().unwrap(), batch.payload(), BUDGET).unwrap();
            Records::new(batch.header(), payload).for_each(&mut keep);
        }
        EntryView::Legacy(message) if message.is_wrapper() => {
            let dialect = Dialect::from_magic(message.magic()).unwrap();
            let compressed = message.compressed().unwrap();
            let set = decoder.inflate_as(dialect, message.codec(), compressed, BUDGET).unwrap();
            let records = LegacyRecords::wrapped(message, set, true).unwrap();
            assert_eq!(records.last_offset(), message.offset());
            records.for_each(&mut keep);
        }
        EntryView::Legacy(message) => {
            LegacyRecords::plain(message).unwrap().for_each(&mut keep);
        }
    }
}

const BUDGET: usize = 16 << 20;

#[test]
fn logs_of_every_version_read_to_what_a_real_consumer_saw() {
    let mut seen = BTreeMap::new();
    let mut decoder = Decoder::new();
    for case in cases() {
        let name = case.name();
        if !["legacy-", "downconverted-", "upgraded-", "compacted-v"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            continue;
        }
        let mut rows = Vec::new();
        for path in case.files(".log") {
            let partition = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
            for entry in entries(&read(&path)) {
                let kind = (entry.magic(), entry.codec().unwrap().name());
                *seen.entry(kind).or_insert(0) += 1;
                decode(&entry, &mut decoder, partition, &mut rows);
            }
        }
        let mut expected = truth(&case);
        expected.sort();
        rows.sort();
        assert!(!expected.is_empty());
        // Not `assert_eq!`: the two would fill screens.
        assert!(rows == expected, "{name}: {} records, not {}", rows.len(), expected.len());
    }
    if is_whole_corpus() {
        let legacy = seen.keys().filter(|(magic, _)| *magic < 2).count();
        assert_eq!(legacy, 8, "two versions, each plain and in three codecs: {seen:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a test reads the corpus directly")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

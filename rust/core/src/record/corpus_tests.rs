//! The formats held against what real brokers wrote.

use std::collections::BTreeMap;
use std::path::Path;

use super::samples::rebuild;
use super::{
    BatchView, Codec, ControlRecord, ControlType, EntryView, KRaftVoter, Records, TimestampType,
    Voter,
};
use crate::testing::{at_least, cases, corpus_files, dump_sections, labelled};

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

#[expect(clippy::disallowed_methods, reason = "a test reads the corpus directly")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

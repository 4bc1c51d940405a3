//! The state against what real brokers wrote.

use std::path::Path;

use super::super::*;
use crate::fs::{Dir as _, File as _, Fs as _, RealFs};
use crate::record::{BatchView, EntryView, Records};
use crate::testing::{Random, at_least, cases, corpus_files, name_of};

/// The oldest broker walks Scala's map, and keeps the time of the last data instead of the marker's.
fn is_oldest(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "oldest-v2-1.1.1")
}

#[test]
fn entries_in_any_order_are_written_as_kafka_wrote_them() {
    let mut random = Random::new(21);
    let mut seen = 0;
    for (path, bytes) in corpus_files(".snapshot") {
        let Ok(mut snapshot) = ProducerSnapshot::decode(&bytes) else { continue };
        if snapshot.entries.len() < 2 || is_oldest(&path) {
            continue;
        }
        for _ in 0..20 {
            for at in (1..snapshot.entries.len()).rev() {
                snapshot.entries.swap(at, random.below(at + 1));
            }
            let mut states = ProducerStates::new(0);
            states.restore(&snapshot, 0, i64::MIN, i64::MAX);
            assert_eq!(states.snapshot().encode().unwrap(), bytes, "{}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= at_least(70), "{seen} snapshots");
}

/// The batches of producers in a segment file.
fn facts_of(bytes: &[u8]) -> Vec<BatchFacts> {
    let mut facts = Vec::new();
    let mut rest = bytes;
    while let Some(Ok(total)) = rest.first_chunk().map(crate::record::entry_total_bytes) {
        let Some((entry, tail)) = rest.split_at_checked(total) else { break };
        rest = tail;
        let Ok(EntryView::Batch(batch)) = EntryView::parse(entry) else { continue };
        facts.push(BatchFacts::of(batch.header(), marker_of(&batch)));
    }
    facts
}

fn marker_of(batch: &BatchView<'_>) -> Option<Marker> {
    if !batch.header().attributes.is_control() {
        return None;
    }
    let mut records = Records::new(batch.header(), batch.payload());
    let record = records.next_record().unwrap()?;
    Marker::of(&record).unwrap()
}

#[test]
fn replaying_a_log_gives_every_snapshot_that_its_broker_took() {
    let (mut compared, mut aborted) = (0, 0);
    for case in cases().iter().filter(|case| case.is_clean()) {
        // Compaction has removed batches that the snapshots still know of.
        if case.name().starts_with("compacted") {
            continue;
        }
        for (dir, snapshots) in by_directory(&case.files(".snapshot")) {
            let counts = compare(&dir, &snapshots);
            compared += counts.0;
            aborted += counts.1;
        }
    }
    assert!(compared >= at_least(40), "{compared} snapshots");
    assert!(aborted >= at_least(20), "{aborted} aborted transactions");
}

type Group = (std::path::PathBuf, Vec<std::path::PathBuf>);

fn by_directory(paths: &[std::path::PathBuf]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for path in paths {
        let dir = path.parent().unwrap().to_owned();
        match groups.last_mut() {
            Some((last, group)) if *last == dir => group.push(path.clone()),
            _ => groups.push((dir, vec![path.clone()])),
        }
    }
    groups
}

/// Replays a partition and compares it at each snapshot and transaction index. The answer is how
/// many snapshots with entries and how many aborted transactions were equal.
fn compare(path: &Path, snapshots: &[std::path::PathBuf]) -> (usize, usize) {
    let dir = RealFs.open_dir(path).unwrap();
    let mut logs: Vec<String> = dir.list().unwrap().into_iter().map(|entry| entry.name).collect();
    logs.retain(|name| name.ends_with(".log"));
    logs.sort();
    if logs[0] != "00000000000000000000.log" {
        return (0, 0);
    }
    let mut states = ProducerStates::new(0);
    let mut taken = vec![(0, states.snapshot())];
    let mut aborted = 0;
    for log in &logs {
        let file = dir.open(log).unwrap();
        let mut bytes = vec![0; usize::try_from(file.facts().unwrap().bytes).unwrap()];
        file.read_at(&mut bytes, 0).unwrap();
        let mut index = Vec::new();
        for facts in facts_of(&bytes) {
            let outcome = states.replay(&facts).unwrap();
            index.extend(outcome.filter(|outcome| outcome.txn.aborted));
            taken.push((states.map_end_offset(), states.snapshot()));
        }
        aborted += compare_index(path, log, &index);
    }
    let mut compared = 0;
    for snapshot in snapshots {
        let offset: i64 = name_of(snapshot).split('.').next().unwrap().parse().unwrap();
        let bytes = dir.read_small(name_of(snapshot)).unwrap().unwrap();
        let Some((_, ours)) = taken.iter().find(|(end, _)| *end == offset) else { continue };
        let theirs = ProducerSnapshot::decode(&bytes).unwrap();
        if is_oldest(snapshot) {
            assert_eq!(timeless(ours), timeless(&theirs), "{}", snapshot.display());
            compared += 1;
            continue;
        }
        assert_eq!(*ours, theirs, "{}", snapshot.display());
        assert_eq!(ours.encode().unwrap(), bytes, "{}", snapshot.display());
        compared += usize::from(!theirs.entries.is_empty());
    }
    (compared, aborted)
}

fn timeless(snapshot: &ProducerSnapshot) -> Vec<ProducerEntry> {
    let mut entries = snapshot.entries.clone();
    entries.sort_by_key(|entry| entry.producer_id);
    entries.into_iter().map(|entry| ProducerEntry { timestamp: 0, ..entry }).collect()
}

fn compare_index(path: &Path, log: &str, ours: &[TxnOutcome]) -> usize {
    let name = log.replace(".log", ".txnindex");
    let dir = RealFs.open_dir(path).unwrap();
    let bytes = dir.read_small(&name).unwrap().unwrap_or_default();
    let mut expected = Vec::new();
    for outcome in ours {
        expected.extend(0_i16.to_be_bytes());
        let txn = outcome.txn;
        for field in
            [txn.producer_id, txn.first_offset, txn.last_offset, outcome.last_stable_offset]
        {
            expected.extend(field.to_be_bytes());
        }
    }
    assert_eq!(expected, bytes, "{}/{name}", path.display());
    ours.len()
}

//! What real brokers left, opened: nothing may be lost, and after a clean stop nothing may change.
#![allow(clippy::disallowed_methods, reason = "tests look at files directly")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::dir::{DirOptions, LogDir, PartitionKey};
use crate::fs::RealFs;
use crate::log::{Isolation, Log};
use crate::record::{EntryRecords, EntryView};
use crate::testing::{at_least, cases, corpus_dir};

/// Files of a clean directory that opening and closing it changes, and why.
const CHANGED: &[&str] = &[
    // In use while the directory is open, written again at the end.
    ".lock",
    ".kafka_cleanshutdown",
    // Written at every close; a broker may name partitions that are not here.
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
];

fn copied(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    copy(from, to.path());
    to
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::write(&target, fs::read(&path).unwrap()).unwrap();
        }
    }
}

fn tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
            }
        }
    }
    files
}

/// The offsets of the records that consumers see, by partition.
fn offsets(log: &Log<RealFs>) -> BTreeSet<i64> {
    let (mut next, mut found, mut bytes) = (log.start_offset().unwrap(), BTreeSet::new(), vec![]);
    let start = next;
    let mut decoder = crate::codec::Decoder::new();
    loop {
        let fetch = log.read_into(next, 1 << 20, Isolation::LogEnd, true, &mut bytes).unwrap();
        if fetch.is_empty() {
            return found;
        }
        let mut rest = bytes.as_slice();
        while let Ok(entry) = EntryView::parse(rest) {
            let records = EntryRecords::open(&entry, &mut decoder, 64 << 20).unwrap().unwrap();
            let is_control = matches!(&entry, EntryView::Batch(batch)
                if batch.header().attributes.is_control());
            for record in records {
                let record = record.unwrap();
                if !is_control && record.offset >= start {
                    found.insert(record.offset);
                }
            }
            next = entry.last_offset() + 1;
            rest = &rest[entry.total_bytes()..];
        }
    }
}

/// The offsets that a real consumer read, by partition.
fn expected(root: &Path, name: &str) -> Option<BTreeMap<PartitionKey, BTreeSet<i64>>> {
    let packed = fs::read(root.join("expected").join(name)).ok()?;
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let mut found: BTreeMap<PartitionKey, BTreeSet<i64>> = BTreeMap::new();
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        let partition = i32::try_from(record["partition"].as_i64().unwrap()).unwrap();
        let key = (record["topic"].as_str().unwrap().to_owned(), partition);
        found.entry(key).or_default().insert(record["offset"].as_i64().unwrap());
    }
    Some(found)
}

fn check_records(
    name: &str,
    dir: &LogDir<RealFs>,
    expected: &BTreeMap<PartitionKey, BTreeSet<i64>>,
) {
    for (key, offsets_read) in expected {
        let log = dir.partition(&key.0, key.1).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(&offsets(&log), offsets_read, "{name} {key:?}");
    }
}

fn open(path: &Path, kafka_recovery: bool) -> LogDir<RealFs> {
    let options = DirOptions { kafka_recovery, create: false, ..DirOptions::default() };
    LogDir::open(&RealFs, path, options).unwrap()
}

#[test]
#[ignore = "differences from brokers that are not settled yet"]
fn a_directory_that_a_broker_closed_opens_whole_and_is_given_back_unchanged() {
    let mut seen = 0;
    for case in cases().into_iter().filter(crate::testing::Case::is_clean) {
        let name = case.name().to_owned();
        let copy = copied(&case.log());
        let before = tree(copy.path());
        let dir = open(copy.path(), false);
        assert!(dir.recovery().is_clean, "{name}");
        assert_eq!(dir.offline(), [], "{name}");
        for (key, recovery) in dir.recovery().logs {
            // Releases before 0.10 have no time index.
            let is_old = recovery
                .indexes_rebuilt
                .iter()
                .all(|path| !before.contains_key(path.strip_prefix(copy.path()).unwrap()));
            assert!(recovery.cuts.is_empty() && is_old, "{name} {key:?}: {recovery:?}");
        }
        if let Some(expected) = expected(&corpus_dir().join(&name), "records.jsonl.gz") {
            check_records(&name, &dir, &expected);
        }
        dir.close().unwrap();
        let after = tree(copy.path());
        for (path, bytes) in &before {
            let is_changed = after.get(path) != Some(bytes);
            let may_change = CHANGED.iter().any(|name| path.ends_with(name));
            assert!(!is_changed || may_change, "{name}: {} changed", path.display());
        }
        for path in after.keys().filter(|path| !before.contains_key(*path)) {
            // A log without producers has no snapshot until it is closed by a release that
            // writes one; a missing time index is made.
            let made = [".snapshot", ".timeindex", ".lock"];
            let path = path.to_str().unwrap();
            assert!(
                made.iter().any(|ending| path.ends_with(ending)) || CHANGED.contains(&path),
                "{name}: {path} is new"
            );
        }
        let dir = open(copy.path(), false);
        assert!(dir.recovery().is_clean && dir.recovery().logs.is_empty(), "{name}");
        dir.close().unwrap();
        let again = tree(copy.path());
        for (path, bytes) in &after {
            assert!(again.get(path) == Some(bytes), "{name}: {} changed again", path.display());
        }
        seen += 1;
    }
    assert!(seen >= at_least(35), "{seen} clean cases");
}

/// Where the broker's own recovery of a partition ended.
fn broker_ends(root: &Path) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(root.join("expected/recovery-log.txt")).unwrap_or_default();
    let mut ends = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("Completed load of Log")) {
        let after = |label: &str| {
            let rest = &line[line.find(label)? + label.len()..];
            Some(rest[..rest.find([',', ')', ' ']).unwrap_or(rest.len())].to_owned())
        };
        let Some(dir) = after("Log(dir=") else { continue };
        let end = after("logEndOffset=").or_else(|| after("log end offset "));
        let name = Path::new(&dir).file_name().unwrap().to_str().unwrap().to_owned();
        ends.entry(name).or_insert_with(|| end.unwrap().parse().unwrap());
    }
    ends
}

#[test]
#[ignore = "differences from brokers that are not settled yet"]
fn a_killed_brokers_directory_ends_where_the_broker_ended_it_or_earlier_and_untouched() {
    let mut seen = 0;
    let mut differ = Vec::new();
    for case in cases().into_iter().filter(|case| !case.is_clean()) {
        let name = case.name().to_owned();
        let root = corpus_dir().join(&name);
        let ends = broker_ends(&root);
        for kafka_recovery in [false, true] {
            let copy = copied(&case.log());
            let before = tree(copy.path());
            let dir = open(copy.path(), kafka_recovery);
            assert_eq!(dir.offline(), [], "{name}");
            assert!(!dir.recovery().is_clean, "{name}");
            for (topic, partition) in dir.partitions() {
                let log = dir.partition(&topic, partition).unwrap();
                let partition_name = format!("{topic}-{partition}");
                let end = log.end_offset().unwrap();
                if let Some(damage) = log.damage() {
                    assert!(!kafka_recovery, "{name}: {damage:?}");
                    for (path, bytes) in &before {
                        if path.starts_with(&partition_name)
                            && path.extension().is_some_and(|e| e == "log")
                        {
                            assert!(fs::read(copy.path().join(path)).unwrap() == *bytes, "{name}");
                        }
                    }
                }
                let Some(broker) = ends.get(&partition_name) else { continue };
                offsets(&log);
                if end != *broker {
                    differ.push((name.clone(), partition_name, kafka_recovery, end, *broker));
                }
            }
            drop(dir);
        }
        seen += 1;
    }
    assert_eq!(differ, []);
    assert!(seen >= at_least(15), "{seen} killed cases");
}

//! The rule by which a broker makes index entries, held against the files that brokers made: the
//! batches of every segment are fed to our indexes, which must come out byte for byte.

use std::collections::BTreeMap;

use super::corpus::{Batch, base_of, batches};
use super::*;
use crate::testing::{Case, at_least, cases, name_of};

/// Whether the case was written by a release whose rule is ours, in one run, without compaction.
fn is_comparable(case: &Case, facts: &serde_json::Value) -> bool {
    let release = facts["kafka_release"].as_str().unwrap();
    let has_rule = release == "3.9.1" || release.starts_with("4.");
    let one_run = !["epochs", "txn-3.9.1"].iter().any(|name| case.name().starts_with(name));
    has_rule && case.is_clean() && one_run && !case.name().starts_with("compacted")
}

fn interval_of(facts: &serde_json::Value, partition: &str) -> usize {
    let (topic, _) = partition.rsplit_once('-').unwrap();
    let interval = &facts["topics"][topic]["config"]["index.interval.bytes"];
    interval.as_str().map_or(4096, |interval| interval.parse().unwrap())
}

/// Makes both indexes of a segment as the engine does while it appends, and closes them.
fn rebuild(room: &Room, base: i64, batches: &[Batch], interval: usize) -> (Vec<u8>, Vec<u8>) {
    let offsets = room.offset(base, 65_536, IndexMode::Active);
    let times = room.time(base, 65_536, IndexMode::Active);
    let mut largest = when(-1, base);
    let mut since_entry = 0;
    for batch in batches {
        if batch.max_timestamp > largest.timestamp {
            largest = when(batch.max_timestamp, batch.last_offset);
        }
        if since_entry > interval {
            offsets.append(batch.last_offset, batch.position).unwrap();
            times.maybe_append(largest, false).unwrap();
            since_entry = 0;
        }
        since_entry += batch.bytes;
    }
    times.maybe_append(largest, true).unwrap();
    offsets.close().unwrap();
    times.close().unwrap();
    (read(&offsets.path()), read(&times.path()))
}

#[test]
fn the_indexes_of_real_segments_come_out_byte_for_byte() {
    let mut segments: BTreeMap<String, usize> = BTreeMap::new();
    let mut entries = 0;
    for case in cases() {
        let facts = read(&case.log().join("../expected/case.json"));
        let facts: serde_json::Value = serde_json::from_slice(&facts).unwrap();
        if !is_comparable(&case, &facts) {
            continue;
        }
        let room = Room::new();
        for log in case.files(".log") {
            let interval = interval_of(&facts, name_of(log.parent().unwrap()));
            let batches = batches(&read(&log));
            let made = rebuild(&room, base_of(&log), &batches, interval);
            let index = read(&log.with_extension("index"));
            let times = read(&log.with_extension("timeindex"));
            assert!(made.0 == index, "{}: offset index differs", log.display());
            assert!(made.1 == times, "{}: time index differs", log.display());
            *segments.entry(case.name().to_owned()).or_default() += 1;
            entries += index.len() / 8 + times.len() / 12;
            room.offset(base_of(&log), 0, IndexMode::Sealed).remove().unwrap();
            room.time(base_of(&log), 0, IndexMode::Sealed).remove().unwrap();
        }
    }
    let total: usize = segments.values().sum();
    assert!(total >= at_least(300), "{total} segments: {segments:?}");
    assert!(entries >= at_least(1500), "{entries} entries");
}

#[test]
fn spacing_follows_the_published_example() {
    let room = Room::new();
    let batch = |offset: i64| Batch {
        position: u32::try_from(offset * 2000).unwrap(),
        bytes: 2000,
        base_offset: offset,
        last_offset: offset,
        max_timestamp: -1,
        producer_id: -1,
        is_control: false,
        is_legacy: false,
    };
    let batches: Vec<_> = (0..12).map(batch).collect();
    let (offsets, times) = rebuild(&room, 0, &batches, 4096);
    let view = crate::index::OffsetIndexView::new(0, &offsets);
    let expected = [at(3, 6000), at(6, 12_000), at(9, 18_000)];
    assert_eq!((view.iter().collect::<Vec<_>>(), times.len()), (expected.to_vec(), 0));
    let room = Room::new();
    let (offsets, _) = rebuild(&room, 0, &batches, 0);
    assert_eq!(offsets.len() / 8, 11, "every batch but the first");
}

#[test]
fn indexes_of_real_brokers_are_sane_when_they_were_closed() {
    let (mut sane, mut unclean) = (0, 0);
    for case in cases() {
        for log in case.files(".log") {
            let dir = Arc::new(RealFs.open_dir(log.parent().unwrap()).unwrap());
            let base = base_of(&log);
            let offsets = OffsetIndex::open(Arc::clone(&dir), base, 0, IndexMode::Sealed).unwrap();
            let times = TimeIndex::open(Arc::clone(&dir), base, 0, IndexMode::Sealed).unwrap();
            let txns = TxnIndex::open(dir, base);
            if case.is_clean() {
                offsets.sanity().and_then(|()| times.sanity()).unwrap();
                txns.sanity().unwrap();
                sane += 1;
            } else {
                unclean += usize::from(offsets.sanity().is_err() || times.sanity().is_err());
            }
        }
    }
    assert!(sane >= at_least(550), "{sane}");
    assert!(unclean >= at_least(15), "{unclean}");
}

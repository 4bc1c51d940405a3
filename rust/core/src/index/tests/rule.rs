//! The rule by which a broker makes index entries, held against the files that brokers made: the
//! batches of every segment are fed to our indexes, which must come out byte for byte.

use super::corpus::{Batch, base_of, batches};
use super::*;
use crate::testing::{Case, at_least, cases, name_of};

/// Whether the case was written by a release whose rule is ours.
fn is_comparable(case: &Case, facts: &serde_json::Value) -> bool {
    let release = facts["kafka_release"].as_str().unwrap();
    case.is_clean() && (release == "3.9.1" || release.starts_with("4."))
}

fn interval_of(facts: &serde_json::Value, partition: &str) -> usize {
    let (topic, _) = partition.rsplit_once('-').unwrap();
    let interval = &facts["topics"][topic]["config"]["index.interval.bytes"];
    interval.as_str().map_or(4096, |interval| interval.parse().unwrap())
}

/// Makes both indexes of a segment as the engine does while it appends, and closes them. Before
/// each of the batches in `restarts` the segment is closed and opened again.
fn rebuild(base: i64, batches: &[Batch], interval: usize, restarts: &[usize]) -> [Vec<u8>; 2] {
    let room = Room::new();
    let offsets = room.offset(base, 65_536, IndexMode::Active);
    let times = room.time(base, 65_536, IndexMode::Active);
    let mut largest = when(-1, base);
    let mut since_entry = 0;
    for (number, batch) in batches.iter().enumerate() {
        if restarts.contains(&number) {
            times.maybe_append(largest, true).unwrap();
            offsets.close().and_then(|()| offsets.extend(65_536)).unwrap();
            times.close().and_then(|()| times.extend(65_536)).unwrap();
            since_entry = 0;
        }
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
    [read(&offsets.path()), read(&times.path())]
}

/// Every choice of at most two batches.
fn restarts(batches: usize) -> impl Iterator<Item = Vec<usize>> {
    let single = (0..batches).map(|one| vec![one]);
    single.chain((0..batches).flat_map(|one| (0..one).map(move |two| vec![two, one])))
}

#[test]
fn the_indexes_of_real_segments_come_out_byte_for_byte() {
    let (mut segments, mut entries) = (0, 0);
    let mut restarted = Vec::new();
    for case in cases() {
        let facts = read(&case.log().join("../expected/case.json"));
        let facts: serde_json::Value = serde_json::from_slice(&facts).unwrap();
        if !is_comparable(&case, &facts) {
            continue;
        }
        for log in case.files(".log") {
            let interval = interval_of(&facts, name_of(log.parent().unwrap()));
            let (base, batches) = (base_of(&log), batches(&read(&log)));
            let theirs = ["index", "timeindex"].map(|ending| read(&log.with_extension(ending)));
            entries += theirs[0].len() / 8 + theirs[1].len() / 12;
            segments += 1;
            if rebuild(base, &batches, interval, &[]) == theirs {
                continue;
            }
            // The last entry is also added when a broker stops, which no file records.
            let as_restarted = |at: &Vec<usize>| rebuild(base, &batches, interval, at) == theirs;
            let found = restarts(batches.len()).find(as_restarted);
            assert!(found.is_some(), "{} differs", log.display());
            restarted.push(case.name().to_owned());
        }
    }
    assert!(segments >= at_least(384), "{segments} segments");
    assert!(entries >= at_least(1343), "{entries} entries");
    let stopped_on_the_way =
        ["epochs-4.3.0", "epochs-4.3.0", "idempotent-4.3.0", "txn-3.9.1", "txn-3.9.1", "txn-3.9.1"];
    assert!(restarted.iter().all(|case| stopped_on_the_way.contains(&case.as_str())));
    assert!(restarted.len() <= stopped_on_the_way.len(), "{restarted:?}");
}

#[test]
fn spacing_follows_the_published_example() {
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
    let [offsets, times] = rebuild(0, &batches, 4096, &[]);
    let view = crate::index::OffsetIndexView::new(0, &offsets);
    let expected = [at(3, 6000), at(6, 12_000), at(9, 18_000)];
    assert_eq!((view.iter().collect::<Vec<_>>(), times.len()), (expected.to_vec(), 0));
    let [offsets, _] = rebuild(0, &batches, 0, &[]);
    assert_eq!(offsets.len() / 8, 11, "every batch but the first");
}

#[test]
fn indexes_of_real_brokers_are_sane_when_they_were_closed() {
    let (mut sane, mut unclean) = (0, 0);
    for case in cases() {
        for log in case.files(".log") {
            let (room, base) = (Room::new(), base_of(&log));
            for ending in ["index", "timeindex", "txnindex"] {
                let path = log.with_extension(ending);
                if path.exists() {
                    room.write(name_of(&path), &read(&path));
                }
            }
            let offsets = room.offset(base, 0, IndexMode::Sealed);
            let (times, txns) = (room.time(base, 0, IndexMode::Sealed), room.txn(base));
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

#![allow(clippy::disallowed_methods, reason = "tests look at the directory from outside")]

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::*;
use super::*;
use crate::fs::{Fs as _, RealDir, RealFs};
use crate::testing::Random;

fn open() -> (TempDir, Snapshots<RealDir>) {
    let root = TempDir::new().unwrap();
    let dir = RealFs.open_dir(root.path()).unwrap();
    let snapshots = Snapshots::open(Arc::new(dir)).unwrap();
    (root, snapshots)
}

fn names(root: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(root.path()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Snapshots at these offsets, each with a producer of that number.
fn with(offsets: &[i64]) -> (TempDir, Snapshots<RealDir>) {
    let (root, mut snapshots) = open();
    let mut states = ProducerStates::new(0);
    for offset in offsets {
        client(&mut states, &data(*offset, 0, 0, 1, offset - 1));
        assert!(snapshots.take(&states, false).unwrap());
    }
    (root, snapshots)
}

#[test]
fn a_snapshot_is_taken_only_for_a_new_offset() {
    let (root, mut snapshots) = open();
    let mut states = ProducerStates::new(0);
    assert!(!snapshots.take(&states, true).unwrap());
    client(&mut states, &data(1, 0, 0, 3, 0));
    assert!(snapshots.take(&states, true).unwrap());
    assert!(!snapshots.take(&states, true).unwrap());
    states.set_map_end_offset(7);
    assert!(snapshots.take(&states, false).unwrap());
    snapshots.sync(7).unwrap();
    snapshots.sync(8).unwrap();
    assert_eq!(names(&root), ["00000000000000000003.snapshot", "00000000000000000007.snapshot"]);
    let bytes = fs::read(root.path().join("00000000000000000003.snapshot")).unwrap();
    assert_eq!(bytes, states.snapshot().encode().unwrap());
    assert_eq!(snapshots.newest(), Some(7));
}

#[test]
fn only_snapshots_in_use_are_listed() {
    let (root, _) = with(&[5]);
    for name in ["00000000000000000006.snapshot.deleted", "6.snapshot", "00000000000000000006.log"]
    {
        fs::write(root.path().join(name), b"").unwrap();
    }
    fs::create_dir(root.path().join("00000000000000000009.snapshot")).unwrap();
    let dir = Arc::new(RealFs.open_dir(root.path()).unwrap());
    assert_eq!(Snapshots::open(dir).unwrap().offsets().collect::<Vec<_>>(), [5]);
}

#[test]
fn strays_go_but_for_the_newest_at_or_after_the_last_segment() {
    for (offsets, bases, kept) in [
        (vec![10, 20, 30], vec![0, 10, 20], vec![10, 20, 30]),
        (vec![10, 15, 20, 25, 30], vec![0, 10, 20], vec![10, 20, 30]),
        (vec![10, 15], vec![0, 10, 20], vec![10]),
        (vec![5, 15, 25], vec![0, 20], vec![25]),
        (vec![5, 15], vec![], vec![15]),
        (vec![10], vec![10], vec![10]),
        (vec![], vec![0], vec![]),
    ] {
        let (root, mut snapshots) = with(&offsets);
        snapshots.remove_stray(&bases).unwrap();
        assert_eq!(snapshots.offsets().collect::<Vec<_>>(), kept, "{offsets:?} {bases:?}");
        assert_eq!(names(&root).len(), kept.len());
    }
}

#[test]
fn reloading_takes_the_newest_snapshot_inside_the_log() {
    let (root, mut snapshots) = with(&[10, 20, 30]);
    let mut states = ProducerStates::new(0);
    states.set_map_end_offset(35);
    snapshots.truncate_and_reload(&mut states, 10, 25, T0, i64::MAX).unwrap();
    assert_eq!(snapshots.offsets().collect::<Vec<_>>(), [20]);
    assert_eq!(states.map_end_offset(), 20);
    assert_eq!(states.len(), 2);
    assert!(!snapshots.take(&states, false).unwrap());
    states.set_map_end_offset(25);
    assert!(snapshots.take(&states, false).unwrap());
    // A state that stands for the end already is kept.
    client(&mut states, &data(99, 0, 0, 1, 25));
    snapshots.truncate_and_reload(&mut states, 21, 26, T0, i64::MAX).unwrap();
    assert!(states.get(99).is_some());
    assert_eq!(names(&root), ["00000000000000000025.snapshot"]);
    snapshots.truncate_and_reload(&mut states, 40, 50, T0, i64::MAX).unwrap();
    assert_eq!((states.len(), states.map_end_offset()), (0, 40));
    assert!(names(&root).is_empty());
}

#[test]
fn a_damaged_snapshot_is_removed_and_an_older_one_used() {
    for damage in 0..5 {
        let (root, mut snapshots) = with(&[10, 20]);
        let path = root.path().join("00000000000000000020.snapshot");
        let mut bytes = fs::read(&path).unwrap();
        match damage {
            0 => bytes.clear(),
            1 => bytes.truncate(9),
            2 => bytes.truncate(bytes.len() - 1),
            3 => bytes[30] ^= 1,
            _ => bytes.push(0),
        }
        fs::write(&path, bytes).unwrap();
        let mut states = ProducerStates::new(0);
        snapshots.truncate_and_reload(&mut states, 0, 30, T0, i64::MAX).unwrap();
        assert_eq!((states.len(), states.map_end_offset()), (1, 10));
        assert_eq!(names(&root), ["00000000000000000010.snapshot"]);
        assert_eq!(snapshots.damaged()[0].0, 20);
    }
    // A huge file of zeros is judged by its head.
    let (root, mut snapshots) = with(&[10]);
    let file = fs::File::options()
        .write(true)
        .open(root.path().join("00000000000000000010.snapshot"))
        .unwrap();
    file.set_len((1 << 30) - 1).unwrap();
    assert_eq!(snapshots.load_newest().unwrap(), None);
}

#[test]
fn an_error_of_the_disk_removes_nothing() {
    let (root, mut snapshots) = with(&[10, 20]);
    let newest = root.path().join("00000000000000000020.snapshot");
    fs::remove_file(&newest).unwrap();
    fs::create_dir(&newest).unwrap();
    assert!(snapshots.load_newest().is_err());
    assert_eq!(names(&root).len(), 2);
    fs::remove_dir(&newest).unwrap();
    assert_eq!(snapshots.load_newest().unwrap().unwrap().0, 10, "one that is gone is passed over");
}

#[test]
fn snapshots_leave_with_their_segments() {
    let (root, mut snapshots) = with(&[10, 20, 30, 40]);
    assert_eq!(
        snapshots.rename_deleted(10).unwrap().as_deref(),
        Some("00000000000000000010.snapshot.deleted")
    );
    assert_eq!(snapshots.rename_deleted(10).unwrap(), None);
    fs::remove_file(root.path().join("00000000000000000020.snapshot")).unwrap();
    assert_eq!(snapshots.rename_deleted(20).unwrap(), None);
    snapshots.delete_before(30).unwrap();
    assert_eq!(snapshots.offsets().collect::<Vec<_>>(), [30, 40]);
    snapshots.delete_after(30).unwrap();
    assert_eq!(snapshots.offsets().collect::<Vec<_>>(), [30]);
    snapshots.delete_all().unwrap();
    assert_eq!(names(&root), ["00000000000000000010.snapshot.deleted"]);
    let mut states = ProducerStates::new(5);
    states.set_map_end_offset(5);
    assert!(snapshots.take(&states, false).unwrap(), "a log that begins anew takes them anew");
}

/// Rolls, truncations, log starts and restarts with damage: the files and the state are always what
/// the batches of the log say.
#[test]
fn random_operations_leave_the_state_of_the_log() {
    let mut random = Random::new(5);
    for _ in 0..60 {
        let (root, mut snapshots) = open();
        let mut states = ProducerStates::new(0);
        let mut log: BTreeMap<i64, BatchFacts> = BTreeMap::new();
        let mut start = 0;
        for _ in 0..30 {
            let end = states.map_end_offset();
            match random.below(9) {
                0 => drop(snapshots.take(&states, random.below(2) == 0).unwrap()),
                1 => {
                    let picked = pick_offset(&mut random, &log, end).max(start);
                    log.split_off(&picked);
                    reload(&mut snapshots, &mut states, &log, start, picked);
                }
                2 => {
                    start = start.max(pick_offset(&mut random, &log, end));
                    states.on_log_start(start);
                }
                3 => {
                    spoil_newest(&mut random, &root, &snapshots);
                    let dir = RealFs.open_dir(root.path()).unwrap();
                    snapshots = Snapshots::open(Arc::new(dir)).unwrap();
                    states = ProducerStates::new(-1);
                    reload(&mut snapshots, &mut states, &log, start, end);
                }
                _ => {
                    let id = i64::try_from(random.below(4)).unwrap();
                    let last = states.get(id).map_or(-1, ProducerState::last_sequence);
                    let facts = data(id, 0, last + 1, 2, end);
                    client(&mut states, &facts);
                    log.insert(end, facts);
                }
            }
            check(&states, &log, start);
        }
    }
}

fn pick_offset(random: &mut Random, log: &BTreeMap<i64, BatchFacts>, end: i64) -> i64 {
    let mut offsets: Vec<i64> = log.keys().copied().collect();
    offsets.push(end);
    *random.pick(&offsets)
}

fn spoil_newest(random: &mut Random, root: &TempDir, snapshots: &Snapshots<RealDir>) {
    let Some(newest) = snapshots.newest().filter(|_| random.below(2) == 0) else { return };
    let path = root.path().join(format!("{newest:020}.snapshot"));
    let mut bytes = fs::read(&path).unwrap();
    let at = random.below(bytes.len());
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

/// What a log does after it was cut or opened.
fn reload(
    snapshots: &mut Snapshots<RealDir>,
    states: &mut ProducerStates,
    log: &BTreeMap<i64, BatchFacts>,
    start: i64,
    end: i64,
) {
    snapshots.truncate_and_reload(states, start, end, T0, i64::MAX).unwrap();
    let from = states.map_end_offset();
    for facts in log.range(from..end).map(|(_, facts)| facts) {
        states.replay(facts).unwrap();
    }
    states.set_map_end_offset(end);
}

/// Every producer with a batch at or after the log start is known by its last batch. Those before
/// may be known from a snapshot or not.
fn check(states: &ProducerStates, log: &BTreeMap<i64, BatchFacts>, start: i64) {
    let mut last: BTreeMap<i64, &BatchFacts> = BTreeMap::new();
    for facts in log.values() {
        last.insert(facts.producer_id, facts);
    }
    for (id, facts) in last {
        match states.get(id) {
            Some(state) => assert_eq!(state.last_sequence(), facts.last_sequence),
            None => assert!(facts.last_offset < start),
        }
    }
}

//! Snapshots and epochs on a disk that fails and loses power.

use std::path::Path;
use std::sync::Arc;

use super::super::*;
use super::*;
use crate::epoch::EpochCache;
use crate::fs::sim::{Fault, SimDir};
use crate::fs::{Fs as _, SimFs, WriteFs as _};

const STEPS: i64 = 6;

fn partition(disk: &SimFs) -> Arc<SimDir> {
    disk.make_dirs(Path::new("/p-0")).unwrap();
    Arc::new(disk.open_dir(Path::new("/p-0")).unwrap())
}

/// The state after so many batches.
fn states_at(end: i64) -> ProducerStates {
    let mut states = ProducerStates::new(0);
    for offset in 0..end {
        client(&mut states, &data(offset % 3, 0, i32::try_from(offset / 3).unwrap(), 1, offset));
    }
    states
}

/// Takes a snapshot and assigns an epoch per batch; the offset and epoch that are durable for sure.
fn work(disk: &SimFs, dir: &Arc<SimDir>) -> (i64, i32) {
    let (mut taken, mut assigned) = (0, -1);
    let mut snapshots = Snapshots::open(Arc::clone(dir)).unwrap();
    let mut epochs = EpochCache::default();
    for end in 1..=STEPS {
        let sync = end % 2 == 0;
        let epoch = i32::try_from(end).unwrap() - 1;
        epochs.assign(epoch, end - 1).unwrap();
        if epochs.save(&**dir).is_ok() {
            assigned = epoch;
        }
        if snapshots.take(&states_at(end), sync).is_ok() && sync {
            taken = end;
        }
        if disk.is_off() {
            break;
        }
    }
    (taken, assigned)
}

#[test]
fn a_power_cut_leaves_a_snapshot_as_new_as_the_last_synced_one() {
    let whole = SimFs::new();
    let dir = partition(&whole);
    let before = whole.calls();
    work(&whole, &dir);
    let mut recovered = 0;
    for cut in before + 1..=whole.calls() + 1 {
        let disk = SimFs::new();
        let dir = partition(&disk);
        disk.crash_before(cut);
        // The listing of the directory comes first, and fails with the power.
        if cut == before + 1 {
            continue;
        }
        let (taken, assigned) = work(&disk, &dir);
        for after in disk.crash_states(cut, 12) {
            let dir = partition(&after);
            let mut snapshots = Snapshots::open(Arc::clone(&dir)).unwrap();
            let mut states = ProducerStates::new(-1);
            snapshots.truncate_and_reload(&mut states, 0, STEPS, T0, i64::MAX).unwrap();
            let end = states.map_end_offset();
            assert!(end >= taken, "cut {cut}: {end} is before {taken}");
            assert_eq!(states.snapshot(), states_at(end).snapshot(), "cut {cut}");
            let latest = EpochCache::load(&*dir).unwrap().latest();
            assert!(latest.map_or(-1, |entry| entry.epoch) >= assigned, "cut {cut}");
            recovered += 1;
        }
    }
    assert!(recovered > 200, "{recovered}");
}

#[test]
fn no_failing_call_makes_a_good_snapshot_disappear_or_a_bad_one_count() {
    let whole = SimFs::new();
    let dir = partition(&whole);
    let before = whole.calls();
    work(&whole, &dir);
    let reload = |dir: &Arc<SimDir>| -> Result<i64> {
        let mut snapshots = Snapshots::open(Arc::clone(dir))?;
        let mut states = ProducerStates::new(-1);
        snapshots.truncate_and_reload(&mut states, 0, STEPS, T0, i64::MAX)?;
        assert_eq!(states.snapshot(), states_at(states.map_end_offset()).snapshot());
        Ok(states.map_end_offset())
    };
    for fault in [Fault::Io, Fault::NoSpace, Fault::ShortWrite] {
        for number in before + 2..=whole.calls() {
            let disk = SimFs::new();
            let dir = partition(&disk);
            disk.fail_at(number, fault);
            work(&disk, &dir);
            assert_eq!(reload(&dir).unwrap(), STEPS - i64::from(is_last(&disk, &dir)));
        }
    }
    // While the state is read back.
    let reading = whole.calls();
    reload(&dir).unwrap();
    let calls = whole.calls() - reading;
    let names = whole.tree().len();
    for step in 1..=calls {
        let at = whole.calls() + step;
        whole.fail_at(at, Fault::Io);
        assert!(reload(&dir).is_err(), "step {step}");
        whole.heal();
        assert_eq!(whole.tree().len(), names);
        assert_eq!(reload(&dir).unwrap(), STEPS);
    }
}

/// Whether the fault met the last snapshot, which then is torn or was never made.
fn is_last(disk: &SimFs, dir: &Arc<SimDir>) -> bool {
    assert_eq!(disk.faults_hit(), 1);
    let snapshots = Snapshots::open(Arc::clone(dir)).unwrap();
    snapshots.read(STEPS).is_err()
}

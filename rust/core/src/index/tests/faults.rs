//! A disk that refuses, and one that is full: nothing crashes, nothing that was there is lost.

use std::path::Path;
use std::thread;

use super::*;
use crate::error::{Error, Result};
use crate::fs::WriteFs as _;
use crate::fs::sim::{Call, Fault, SimDir, SimFs};
use crate::index::AbortedTxn;

const MAX: u64 = 8 * 6000;

fn room() -> (SimFs, Arc<SimDir>) {
    let disk = SimFs::new();
    disk.make_dirs(Path::new("/p")).unwrap();
    let dir = Arc::new(disk.open_dir(Path::new("/p")).unwrap());
    (disk, dir)
}

fn offsets(dir: &Arc<SimDir>, mode: IndexMode) -> Result<OffsetIndex<SimDir>> {
    OffsetIndex::open(Arc::clone(dir), 0, MAX, mode)
}

/// A life of all three indexes, up to the first refusal.
fn live(
    offsets: &OffsetIndex<SimDir>,
    times: &TimeIndex<SimDir>,
    txns: &TxnIndex<SimDir>,
) -> Result<()> {
    for round in 0..3_u32 {
        offsets.extend(MAX)?;
        times.extend(MAX)?;
        for entry in round * 3000 + 1..=round * 3000 + 300 {
            offsets.append(i64::from(entry), entry * 10)?;
            times.maybe_append(when(i64::from(entry), i64::from(entry)), false)?;
        }
        let last = i64::from(round) * 3000 + 300;
        txns.append(&AbortedTxn {
            producer_id: 1,
            first_offset: last - 5,
            last_offset: last,
            last_stable_offset: last + 1,
        })?;
        offsets.flush()?;
        txns.flush()?;
        let cut = last - 70;
        offsets.truncate_to(cut)?;
        times.truncate_to(cut)?;
        txns.truncate_to(cut)?;
        offsets.trim()?;
        times.close()?;
        txns.close();
        offsets.flush()?;
        assert_eq!(offsets.lookup(cut + 50)?.offset, cut - 1);
        assert_eq!(times.lookup(cut + 50)?.offset, cut - 1);
        txns.sanity()?;
        offsets.close()?;
        if round == 1 {
            offsets.reset(MAX)?;
            times.reset(MAX)?;
            txns.reset()?;
        }
    }
    Ok(())
}

#[test]
fn any_call_may_fail_and_a_reset_makes_the_index_good_again() {
    let (disk, dir) = room();
    let before = disk.calls();
    let times = |dir: &Arc<SimDir>| TimeIndex::open(Arc::clone(dir), 0, MAX, IndexMode::Sealed);
    let sealed = offsets(&dir, IndexMode::Sealed).unwrap();
    live(&sealed, &times(&dir).unwrap(), &TxnIndex::open(Arc::clone(&dir), 0)).unwrap();
    let calls = disk.calls() - before;
    assert!(calls > 60, "{calls} calls");
    for number in 1..=calls {
        let (disk, dir) = room();
        let index = offsets(&dir, IndexMode::Sealed).unwrap();
        let time_index = times(&dir).unwrap();
        let txns = TxnIndex::open(Arc::clone(&dir), 0);
        disk.fail_at(disk.calls() + number, Fault::Io);
        let refused = live(&index, &time_index, &txns);
        assert!(matches!(refused, Err(Error::Io { .. })), "call {number}: {refused:?}");
        assert!(index.lookup(1000).unwrap().offset <= 1000);
        assert!(time_index.lookup(1000).unwrap().timestamp <= 1000);
        index.reset(MAX).and_then(|()| time_index.reset(MAX)).unwrap();
        index.append(7, 70).unwrap();
        time_index.maybe_append(when(7, 7), false).unwrap();
        index.close().and_then(|()| time_index.close()).unwrap();
        let index = offsets(&dir, IndexMode::Sealed).unwrap();
        assert_eq!((index.entries().unwrap(), index.lookup(9).unwrap()), (1, at(7, 70)));
        assert_eq!(times(&dir).unwrap().last().unwrap(), when(7, 7));
        txns.reset().and_then(|()| txns.sanity()).unwrap();
        assert_eq!(disk.bus_errors(), 0, "call {number}");
    }
}

#[test]
fn a_full_disk_refuses_an_entry_and_kills_nobody() {
    let (disk, dir) = room();
    let index = offsets(&dir, IndexMode::Active).unwrap();
    disk.set_capacity(Some(disk.used_bytes() + 20_000));
    let mut entries = 0;
    let refused = loop {
        match index.append(i64::from(entries) + 1, entries + 1) {
            Ok(()) => entries += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    assert!((1000..6000).contains(&entries), "{entries}");
    assert_eq!(index.last().unwrap(), at(i64::from(entries), entries));
    assert_eq!(index.lookup(500).unwrap(), at(500, 500));
    disk.set_capacity(None);
    index.append(i64::from(entries) + 1, entries + 1).unwrap();
    index.close().unwrap();
    assert_eq!(disk.bus_errors(), 0);
}

#[test]
fn racing_readers_open_and_map_a_sealed_index_once() {
    let (disk, dir) = room();
    let active = offsets(&dir, IndexMode::Active).unwrap();
    active.append(5, 50).unwrap();
    active.close().unwrap();
    for _ in 0..50 {
        let index = offsets(&dir, IndexMode::Sealed).unwrap();
        let before = disk.ops().len();
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| assert_eq!(index.lookup(6).unwrap(), at(5, 50)));
            }
        });
        let calls: Vec<Call> = disk.ops()[before..].iter().map(|op| op.call).collect();
        assert_eq!(calls, [Call::Open, Call::Facts, Call::Map]);
    }
}

#[test]
fn a_flushed_index_survives_a_power_cut_and_a_second_flush_costs_nothing() {
    let (disk, dir) = room();
    let index = offsets(&dir, IndexMode::Active).unwrap();
    index.append(5, 50).unwrap();
    index.trim().unwrap();
    index.flush().unwrap();
    let before = disk.calls();
    index.flush().unwrap();
    assert_eq!(disk.calls(), before);
    crate::fs::WriteDir::sync(&*dir).unwrap();
    for after in disk.crash_states(3, 20) {
        let dir = Arc::new(after.open_dir(Path::new("/p")).unwrap());
        let index = offsets(&dir, IndexMode::Sealed).unwrap();
        assert_eq!((index.entries().unwrap(), index.last().unwrap()), (1, at(5, 50)));
    }
}

#[test]
fn a_flushed_transaction_index_keeps_its_name_through_a_power_cut() {
    let (disk, dir) = room();
    let index = TxnIndex::open(dir, 0);
    let entry =
        AbortedTxn { producer_id: 1, first_offset: 1, last_offset: 2, last_stable_offset: 3 };
    index.append(&entry).unwrap();
    index.flush().unwrap();
    for after in disk.crash_states(3, 20) {
        let dir = Arc::new(after.open_dir(Path::new("/p")).unwrap());
        let found = TxnIndex::open(dir, 0).aborted_between(0, 9).unwrap();
        assert_eq!(found, (vec![entry], false));
    }
}

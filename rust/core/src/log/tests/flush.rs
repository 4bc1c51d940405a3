use std::path::Path;

use super::roll::sized;
use super::*;
use crate::error::Error;
use crate::fs::sim::{Call, Fault, SimFs};

fn sim(pairs: &[(&str, &str)]) -> (SimFs, Log<SimFs>) {
    let fs = SimFs::new();
    fs.make_dirs(Path::new("/d/t-0")).unwrap();
    let dir = fs.open_dir(Path::new("/d/t-0")).unwrap();
    // The simulated disk holds an index whole.
    let pairs = [&[("segment.index.bytes", "1200")], pairs].concat();
    let (log, _) = fresh::<SimFs>(dir, &pairs, |_| ()).unwrap();
    (fs, log)
}

fn syncs(fs: &SimFs, ending: &str) -> usize {
    fs.ops().iter().filter(|op| op.call.is_sync() && op.path.ends_with(ending)).count()
}

#[test]
fn an_append_under_always_is_synced_with_its_name_before_it_is_answered() {
    let (fs, log) = sim(&[("fsync", "always")]);
    client(&log, &batch(1, b"v")).unwrap();
    assert_eq!((syncs(&fs, ".log"), syncs(&fs, "t-0")), (1, 1));
    assert_eq!((log.recovery_point(), log.high_watermark().unwrap()), (1, 1));
    client(&log, &batch(1, b"v")).unwrap();
    assert_eq!((syncs(&fs, ".log"), syncs(&fs, "t-0")), (2, 1), "the name is there already");
    log.roll().unwrap();
    client(&log, &batch(1, b"v")).unwrap();
    assert!(syncs(&fs, "t-0") >= 2, "the new file's name");
}

#[test]
fn interval_flushes_after_so_many_messages_and_never_does_not() {
    let (fs, log) = sim(&[("flush.messages", "3")]);
    for expected in [0, 0, 1, 1, 1, 2] {
        client(&log, &batch(1, b"v")).unwrap();
        assert_eq!(syncs(&fs, ".log"), expected);
    }
    let (fs, log) = sim(&[("flush.messages", "3"), ("fsync", "never")]);
    for _ in 0..6 {
        client(&log, &batch(1, b"v")).unwrap();
    }
    assert_eq!(syncs(&fs, ".log"), 0);
    log.flush().unwrap();
    assert_eq!((syncs(&fs, ".log"), log.recovery_point()), (1, 6));
}

#[test]
fn a_closed_segment_is_flushed_whole_by_the_append_or_by_whoever_comes_by() {
    let pairs = [("internal.segment.bytes", "300")];
    let (fs, log) = sim(&pairs);
    for _ in 0..4 {
        client(&log, &sized(100)).unwrap();
    }
    assert!(syncs(&fs, "00000000000000000000.index") > 0);
    assert_eq!(log.recovery_point(), 4);
    let bench = Bench::with(&pairs, |options| options.background_flush = true);
    for _ in 0..4 {
        client(&bench.log, &sized(100)).unwrap();
    }
    assert_eq!(bench.log.recovery_point(), 0);
    assert!(bench.log.flush_pending().unwrap());
    assert_eq!(bench.log.recovery_point(), 4);
    assert!(!bench.log.flush_pending().unwrap());
}

/// The number of the next call, and the calls that one append makes.
fn calls_of_append(pairs: &[(&str, &str)], before: usize) -> (u64, u64) {
    let (fs, log) = sim(pairs);
    for _ in 0..before {
        client(&log, &sized(100)).unwrap();
    }
    let from = fs.calls();
    client(&log, &sized(100)).unwrap();
    (from, fs.calls())
}

#[test]
fn a_failure_at_any_call_of_an_append_leaves_the_log_as_it_was_or_poisons_it() {
    let mut poisoned = 0;
    let mut clean = 0;
    for fault in [Fault::Io, Fault::NoSpace, Fault::ShortWrite, Fault::SyncLost] {
        for (pairs, before) in [
            (&[("internal.segment.bytes", "300"), ("index.interval.bytes", "0")][..], 2),
            (&[("internal.segment.bytes", "300"), ("fsync", "always")][..], 3),
        ] {
            let (from, to) = calls_of_append(pairs, before);
            for number in from + 1..=to {
                let (fs, log) = sim(pairs);
                for _ in 0..before {
                    client(&log, &sized(100)).unwrap();
                }
                let end = log.end_offset().unwrap();
                fs.fail_at(number, fault);
                let failed = client(&log, &sized(100));
                if fs.faults_hit() == 0 || failed.is_ok() {
                    continue;
                }
                assert_eq!(log.high_watermark().unwrap(), end, "call {number}, {fault:?}");
                let seen = offsets(&log, 0, Isolation::HighWatermark);
                assert_eq!(seen, (0..end).collect::<Vec<_>>());
                match client(&log, &sized(100)) {
                    Ok(info) => {
                        assert_eq!(info.base_offset, end, "the offset was not given out before");
                        assert_eq!(offsets(&log, 0, Isolation::LogEnd).len(), before + 1);
                        clean += 1;
                    }
                    Err(Error::Poisoned { .. }) => {
                        assert!(log.is_poisoned());
                        assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
                        poisoned += 1;
                    }
                    Err(error) => panic!("call {number}, {fault:?}: {error}"),
                }
            }
        }
    }
    assert!(poisoned > 3 && clean > 10, "{poisoned} poisoned, {clean} clean");
}

#[test]
fn a_failed_sync_poisons_although_the_next_would_succeed() {
    let (fs, log) = sim(&[("fsync", "always")]);
    client(&log, &batch(1, b"v")).unwrap();
    let next = fs.ops().iter().rev().find(|op| op.call == Call::Write).unwrap().number;
    let sync = fs.ops().iter().find(|op| op.number > next && op.call == Call::Sync).unwrap().number;
    fs.fail_at(fs.calls() + sync - next + 1, Fault::SyncLost);
    assert!(client(&log, &batch(1, b"v")).is_err());
    assert_eq!(fs.faults_hit(), 1);
    assert!(matches!(client(&log, &batch(1, b"v")), Err(Error::Poisoned { .. })));
    assert!(matches!(log.flush(), Err(Error::Poisoned { .. })));
    assert_eq!(log.high_watermark().unwrap(), 1, "readers see what was synced");
    assert_eq!(offsets(&log, 0, Isolation::HighWatermark), [0]);
}

#[test]
fn appends_resume_when_a_full_disk_has_room_again() {
    let (fs, log) = sim(&[("internal.segment.bytes", "100000")]);
    fs.set_capacity(Some(fs.used_bytes() + 100_000));
    let mut appended: i64 = 0;
    let error = loop {
        match client(&log, &sized(9000)) {
            Ok(_) => appended += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(appended > 5);
    assert_eq!(offsets(&log, 0, Isolation::LogEnd).len(), usize::try_from(appended).unwrap());
    assert!(client(&log, &sized(9000)).is_err());
    fs.set_capacity(None);
    assert_eq!(client(&log, &sized(9000)).unwrap().base_offset, appended);
    log.close().unwrap();
}

#[test]
fn a_clean_close_syncs_everything_and_lets_go() {
    let (fs, log) = sim(&[]);
    client(&log, &batch(1, b"v")).unwrap();
    log.close().unwrap();
    for file in ["00.log", "00.index", "00.timeindex"] {
        assert!(syncs(&fs, file) > 0, "{file}");
    }
    assert_eq!(fs.bus_errors(), 0);
    let bench = Bench::new(&[("internal.segment.bytes", "300")]);
    for _ in 0..9 {
        client(&bench.log, &sized(100)).unwrap();
    }
    let stats = bench.log.stats().unwrap();
    assert_eq!((stats.segments, stats.bytes, stats.offsets, stats.appends), (3, 900, 9, 9));
    assert_eq!(stats.descriptors, 3);
    bench.log.close().unwrap();
}

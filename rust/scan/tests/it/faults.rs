//! A disk that fails, and a disk that changes, at every call of a scan in turn.

use std::path::PathBuf;

use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::{Codec, ControlType};
use kafkaseg_core::{Error, Result};
use kafkaseg_scan::{Isolation, OnCorrupt, OnMissing, TimeQuery, batches, offset_for_time};

use crate::log::{Batch, Close, Log, PARTITION};
use crate::memory::{EIO, Event, MemoryFs};
use crate::random::Random;
use crate::rows::{Ask, Row, assert_no_wrong_row, calm};

/// Three segments with everything beside them, among them transactions.
fn log() -> Log {
    let mut random = Random::new(40);
    let mut all = random.batches(1000, 12 << 10, &Codec::ALL);
    let mut offset = all.last().unwrap().last_offset + 1;
    let epoch = all.last().unwrap().leader_epoch;
    for marker in [ControlType::Commit, ControlType::Abort] {
        let mut data = Batch::of(epoch, vec![random.record(offset)]);
        data.transaction = Some(7);
        let mut end =
            Batch { records: vec![], marker: Some(marker), is_control: true, ..data.clone() };
        (end.base_offset, end.last_offset) = (offset + 1, offset + 1);
        all.extend([data, end]);
        offset += 2;
    }
    all.push(Batch::of(epoch, vec![random.record(offset)]));
    let mut log = Log::of(1000, vec![]);
    let last = all.split_off(all.len() - 3);
    let second = all.split_off(all.len() / 2);
    log.segments = vec![(1000, all)];
    log.segments.push((second[0].base_offset, second));
    log.segments.push((last[0].base_offset, last));
    log.index_interval = 512;
    log
}

type Run = fn(&MemoryFs) -> Result<Vec<Row>>;

/// Everything a scan can be asked, as one run each that gives rows.
fn runs() -> Vec<(&'static str, Run)> {
    vec![
        ("a scan", |fs| Ok(Ask::default().rows(fs)?.0)),
        ("small batches", |fs| {
            let mut ask = Ask::default();
            ask.options.batch_bytes = 1 << 10;
            Ok(ask.rows(fs)?.0)
        }),
        ("a scan that skips damage", |fs| Ok(Ask::on_corrupt(OnCorrupt::Skip).rows(fs)?.0)),
        ("a scan that stops at damage", |fs| Ok(Ask::on_corrupt(OnCorrupt::Stop).rows(fs)?.0)),
        ("a range", |fs| Ok(Ask::default().between(Some(1100), Some(1150)).rows(fs)?.0)),
        ("a time", |fs| {
            let mut ask = Ask::default();
            ask.options.start_timestamp = Some(crate::log::T0 + 11_500);
            Ok(ask.rows(fs)?.0)
        }),
        ("committed records", |fs| {
            let mut ask = Ask::default();
            ask.options.isolation = Isolation::ReadCommitted;
            Ok(ask.rows(fs)?.0)
        }),
        ("splits", |fs| Ok(Ask::default().split_rows(fs, 5)?.0)),
        ("two threads", |fs| {
            let mut ask = Ask::default();
            ask.options.threads = 2;
            Ok(ask.rows(fs)?.0)
        }),
        ("a count", |fs| {
            let count = Ask::default().count(fs)?;
            Ok((0..count).map(|_| numbered(0)).collect())
        }),
        ("batch headers", |fs| {
            let (batch, _) = batches(fs, &Ask::default().plan(fs)?, &mut calm)?;
            Ok((0..batch.num_rows()).map(|_| numbered(0)).collect())
        }),
        ("an offset for a time", |fs| {
            let plan = Ask::default().plan(fs)?;
            let query = TimeQuery::At(crate::log::T0 + 11_500);
            let found = offset_for_time(fs, &plan, &plan.partitions[0], query, &mut calm)?;
            Ok(found.into_iter().map(|answer| numbered(answer.offset)).collect())
        }),
    ]
}

fn numbered(offset: i64) -> Row {
    Row { offset, timestamp: 0, key: None, value: None, headers: vec![], leader_epoch: 0 }
}

/// The disk fails the n-th call, for every n until a run needs no more calls.
#[test]
fn a_disk_error_is_an_error_whatever_call_it_hits() {
    let (fs, _) = log().write();
    for (name, run) in runs() {
        let truth = run(&fs).unwrap();
        assert!(!truth.is_empty(), "{name} gives something");
        let mut failed = 0;
        for number in 1.. {
            let faulty = fs.copy();
            faulty.at_call(number, Event::Fail(EIO));
            match run(&faulty) {
                Err(Error::Io { source, .. }) => {
                    assert_eq!(source.raw_os_error(), Some(EIO), "{name}, call {number}");
                    failed += 1;
                }
                Err(other) => panic!("{name}, call {number}: {other}"),
                Ok(rows) => {
                    // Two threads need not make the same number of calls each time.
                    assert!(faulty.calls() < number, "{name} hides the error of call {number}");
                    assert!(rows == truth, "{name}, call {number}");
                    break;
                }
            }
        }
        assert!(failed > 10, "{name} made only {failed} calls");
    }
}

/// The last file of an open log shrinks at the n-th call: the snapshot was taken after it, the file
/// was read before it, or the scan says so. It is never damage and never a torn tail.
#[test]
fn a_file_that_shrinks_under_a_scan_is_a_change_and_not_damage() {
    let mut log = log();
    log.close = Close::Open;
    let (fs, placed) = log.write();
    let path = log.path_of(2, FileKind::Log);
    // In the middle of the last batch but one.
    let kept = placed[placed.len() - 2].position + 30;
    let all = log.rows();
    let runs = runs().into_iter().filter(|(name, _)| !name.contains("two threads"));
    for (name, run) in runs.take(9) {
        let truth = run(&fs).unwrap();
        let short = fs.with(&path, fs.read(&path)[..kept].to_vec());
        let after = run(&short).unwrap();
        let mut changed = 0;
        for number in 1.. {
            let faulty = fs.copy();
            faulty.at_call(number, Event::Shrink(path.clone(), kept));
            match run(&faulty) {
                Err(Error::Changed { path: named, what }) => {
                    assert_eq!((&named, what), (&path, "was cut short"), "{name}, call {number}");
                    changed += 1;
                }
                Err(other) => panic!("{name}, call {number}: {other}"),
                Ok(rows) => {
                    assert!(rows == truth || rows == after, "{name}, call {number}");
                    if rows.iter().all(|row| row.value.is_some()) {
                        assert_no_wrong_row(&rows, &all, name);
                    }
                    if faulty.calls() < number {
                        break;
                    }
                }
            }
        }
        assert!(changed > 0 || name == "a range", "{name} never met the change");
    }
}

/// What retention and compaction do to a sealed segment at the n-th call.
#[test]
fn a_segment_that_goes_away_is_noticed_or_still_read() {
    let log = log();
    let (fs, _) = log.write();
    let path = log.path_of(1, FileKind::Log);
    let gone = log.segments[1].0..log.segments[2].0;
    let without: Vec<_> =
        log.rows().into_iter().filter(|row| !gone.contains(&row.offset)).collect();
    let deleted = PathBuf::from(format!("{}.deleted", path.display()));
    let events = [
        (Event::Remove(path.clone()), true),
        (Event::Replace(path.clone(), b"another file".to_vec()), true),
        (Event::Rename(path.clone(), deleted), false),
        (Event::Remove(PARTITION.into()), true),
    ];
    for (event, is_lost) in events {
        for on_missing in [OnMissing::Error, OnMissing::Skip] {
            let mut ask = Ask::default();
            ask.options.on_missing = on_missing;
            let mut outcomes = [0; 3];
            let planned = {
                let counted = fs.copy();
                ask.plan(&counted).unwrap();
                counted.calls()
            };
            for number in planned + 1.. {
                let faulty = fs.copy();
                faulty.at_call(number, event.clone());
                match ask.rows(&faulty) {
                    Ok((rows, report)) if report.missing.is_empty() => {
                        assert!(rows == log.rows(), "{event:?}, call {number}");
                        outcomes[0] += 1;
                    }
                    Ok((rows, report)) => {
                        assert_eq!(on_missing, OnMissing::Skip);
                        assert_no_wrong_row(&rows, &log.rows(), "skipped");
                        if !matches!(&event, Event::Remove(path) if path.ends_with("t-0")) {
                            assert_eq!(report.missing, std::slice::from_ref(&path));
                            assert!(rows == without, "{event:?}, call {number}");
                        }
                        outcomes[1] += 1;
                    }
                    Err(Error::Changed { .. }) if on_missing == OnMissing::Error => {
                        outcomes[2] += 1;
                    }
                    Err(other) => panic!("{event:?}, call {number}: {other}"),
                }
                if faulty.calls() < number {
                    break;
                }
            }
            let [read, skipped, failed] = outcomes;
            assert!(read > 0, "{event:?}");
            let met = if on_missing == OnMissing::Skip { skipped } else { failed };
            assert_eq!(met > 0, is_lost, "{event:?} {on_missing:?}");
        }
    }
}

/// What a broker does to the active segment while it is read.
#[test]
fn what_is_appended_after_the_snapshot_is_not_read() {
    let mut log = log();
    log.close = Close::Open;
    let (fs, _) = log.write();
    let path = log.path_of(2, FileKind::Log);
    let mut longer = log.clone();
    let end = log.end();
    let epoch = log.batches().last().unwrap().leader_epoch;
    longer.segments[2].1.push(Batch::of(epoch, vec![Random::new(41).record(end)]));
    let more = longer.encode().0[2][fs.read(&path).len()..].to_vec();
    let ask = Ask::default();
    let planned = {
        let counted = fs.copy();
        ask.plan(&counted).unwrap();
        counted.calls()
    };
    for number in 1.. {
        let live = fs.copy();
        live.at_call(number, Event::Append(path.clone(), more.clone()));
        let (rows, report) = ask.rows(&live).unwrap();
        let is_old = rows == log.rows();
        assert!(is_old || (number <= planned && rows == longer.rows()), "call {number}");
        assert_eq!((report.damage_count, report.tails.len()), (0, 0), "call {number}");
        if live.calls() < number {
            assert!(number > planned && is_old);
            break;
        }
    }
}

/// A partition that is deleted between the look at its directory and the plan.
#[test]
fn a_partition_that_vanishes_while_it_is_planned_is_told() {
    let (fs, _) = log().write();
    for number in 1..200 {
        for on_missing in [OnMissing::Error, OnMissing::Skip] {
            let live = fs.copy();
            live.at_call(number, Event::Remove(PARTITION.into()));
            let mut ask = Ask::default();
            ask.options.on_missing = on_missing;
            match ask.plan(&live) {
                Ok(_) => {}
                Err(Error::Changed { .. } | Error::Io { .. } | Error::Invalid(_)) => {
                    // Whoever asks to go on without what is missing gets no error once the
                    // partition was seen.
                    assert!(on_missing == OnMissing::Error || number <= 3, "call {number}");
                }
                Err(other) => panic!("call {number}: {other}"),
            }
        }
    }
}

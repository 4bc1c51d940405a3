use std::path::Path;

use super::{ROOT, T0, fill, offsets, open, options, tree, with_topic};
use crate::dir::{DirOptions, LogDir};
use crate::error::Error;
use crate::fs::{Create, Dir, File, Fs, SimFs, WriteDir, WriteFile};
use crate::log::Log;
use crate::record::CorruptKind;

const SMALL: &[(&str, &str)] =
    &[("internal.segment.bytes", "4000"), ("log.index.interval.bytes", "500")];

fn partition(fs: &SimFs) -> <SimFs as Fs>::Dir {
    fs.open_dir(&Path::new(ROOT).join("t-0")).unwrap()
}

fn small(fs: &SimFs) -> LogDir<SimFs> {
    with_topic(fs, SMALL)
}

/// The directory as it stands when its process dies.
fn killed(dir: LogDir<SimFs>, fs: &SimFs) -> SimFs {
    let after = fs.process_crash();
    drop(dir);
    after
}

fn log_names(fs: &SimFs) -> Vec<String> {
    let entries = partition(fs).list().unwrap();
    let mut names: Vec<_> =
        entries.into_iter().map(|e| e.name).filter(|name| name.ends_with(".log")).collect();
    names.sort();
    names
}

fn log_of(dir: &LogDir<SimFs>) -> std::sync::Arc<Log<SimFs>> {
    dir.partition("t", 0).unwrap()
}

#[test]
fn a_clean_close_leaves_nothing_to_recover_and_reopening_changes_nothing() {
    let fs = SimFs::new();
    let dir = small(&fs);
    fill(&log_of(&dir), 30);
    dir.close().unwrap();
    let before = tree(&fs);
    let dir = open(&fs, SMALL);
    assert!(dir.recovery().is_clean);
    assert!(dir.recovery().logs.is_empty(), "{:?}", dir.recovery());
    assert_eq!(offsets(&log_of(&dir)), (0..300).collect::<Vec<_>>());
    dir.close().unwrap();
    let after = tree(&fs);
    for (name, content) in &before {
        assert!(after.get(name) == Some(content), "{name}");
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn a_killed_process_loses_nothing_and_its_indexes_come_out_as_a_clean_close_leaves_them() {
    let (fs, clean) = (SimFs::new(), SimFs::new());
    let dir = small(&clean);
    fill(&log_of(&dir), 30);
    dir.close().unwrap();
    let dir = small(&fs);
    fill(&log_of(&dir), 30);
    let fs = killed(dir, &fs);
    let dir = open(&fs, SMALL);
    assert!(!dir.recovery().is_clean);
    let recovery = dir.recovery().logs[&("t".to_owned(), 0)].clone();
    assert!(recovery.cuts.is_empty(), "{recovery:?}");
    assert!(!recovery.segments_recovered.is_empty());
    assert_eq!(offsets(&log_of(&dir)), (0..300).collect::<Vec<_>>());
    dir.close().unwrap();
    let (is, should) = (tree(&fs), tree(&clean));
    for (name, content) in &should {
        if name.contains("/t-0/") && !name.ends_with("partition.metadata") {
            assert!(is.get(name) == Some(content), "{name}");
        }
    }
}

#[test]
fn a_torn_tail_is_cut_and_kept_and_the_log_goes_on_behind_it() {
    let fs = SimFs::new();
    let dir = small(&fs);
    fill(&log_of(&dir), 10);
    let fs = killed(dir, &fs);
    let last = log_names(&fs).pop().unwrap();
    let file = partition(&fs).open_write(&last, Create::No).unwrap();
    let end = file.facts().unwrap().bytes;
    file.write_at(b"half a batch", end).unwrap();
    let dir = open(&fs, SMALL);
    let recovery = dir.recovery().logs[&("t".to_owned(), 0)].clone();
    let [cut] = recovery.cuts.as_slice() else { panic!("{recovery:?}") };
    assert_eq!((cut.position, cut.bytes), (end, 12));
    assert_eq!(cut.kind, Some(CorruptKind::TruncatedEntry));
    let kept = cut.kept_in.clone().unwrap();
    let kept = partition(&fs).read_small(kept.file_name().unwrap().to_str().unwrap()).unwrap();
    assert_eq!(kept.unwrap(), b"half a batch");
    fill(&log_of(&dir), 1);
    assert_eq!(offsets(&log_of(&dir)), (0..110).collect::<Vec<_>>());
    dir.close().unwrap();
    let dir = open(&fs, SMALL);
    assert_eq!(offsets(&log_of(&dir)), (0..110).collect::<Vec<_>>());
}

#[test]
fn damage_in_front_of_good_batches_ends_the_log_read_only_and_touches_nothing() {
    let fs = SimFs::new();
    let dir = small(&fs);
    fill(&log_of(&dir), 30);
    let fs = killed(dir, &fs);
    let first = log_names(&fs).remove(0);
    let file = partition(&fs).open_write(&first, Create::No).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 1000).unwrap();
    file.write_at(&[byte[0] ^ 1], 1000).unwrap();
    let before: Vec<_> = tree(&fs).into_iter().filter(|(name, _)| name.contains("t-0")).collect();
    let dir = open(&fs, SMALL);
    let log = log_of(&dir);
    let damage = log.damage().cloned().unwrap();
    assert!(matches!(damage.kind, CorruptKind::Crc { .. }), "{damage:?}");
    let served = offsets(&log);
    assert!(!served.is_empty() && served.len() < 300);
    assert_eq!(served, (0..i64::try_from(served.len()).unwrap()).collect::<Vec<_>>());
    let refused = log.append_leader(&mut Vec::new(), crate::record::Origin::Client, 0);
    assert!(matches!(refused, Err(Error::Corrupt { .. })));
    let after: Vec<_> = tree(&fs).into_iter().filter(|(name, _)| name.contains("t-0")).collect();
    assert!(before == after);
    drop(log);
    drop(dir);

    let kafka = DirOptions { kafka_recovery: true, ..options(SMALL) };
    let dir = LogDir::open(&fs.process_crash(), Path::new(ROOT), kafka).unwrap();
    let log = log_of(&dir);
    assert!(log.damage().is_none());
    assert_eq!(offsets(&log), served);
    fill(&log, 1);
    assert_eq!(log.end_offset().unwrap(), i64::try_from(served.len()).unwrap() + 10);
}

#[test]
fn a_missing_or_senseless_index_is_made_anew_also_in_a_clean_directory() {
    for ending in [".index", ".timeindex"] {
        for change in 0..3 {
            let fs = SimFs::new();
            let dir = small(&fs);
            fill(&log_of(&dir), 30);
            dir.close().unwrap();
            let should = tree(&fs);
            let at = partition(&fs);
            let first = log_names(&fs).remove(0).replace(".log", ending);
            let file = at.open_write(&first, Create::No).unwrap();
            match change {
                0 => assert!(at.unlink(&first).unwrap()),
                1 => file.set_len(file.facts().unwrap().bytes - 3).unwrap(),
                _ => file.write_at(&[0xff; 12], 0).unwrap(),
            }
            let dir = open(&fs, SMALL);
            let recovery = dir.recovery().logs[&("t".to_owned(), 0)].clone();
            assert_eq!(recovery.indexes_rebuilt.len(), 1, "{recovery:?}");
            assert_eq!(offsets(&log_of(&dir)), (0..300).collect::<Vec<_>>());
            dir.close().unwrap();
            let is = tree(&fs);
            for (name, content) in &should {
                assert!(is.get(name) == Some(content), "{name} after change {change} of {ending}");
            }
        }
    }
}

#[test]
fn one_partition_that_cannot_be_opened_does_not_stop_the_others() {
    let fs = SimFs::new();
    let dir = small(&fs);
    dir.grow_topic("t", 3).unwrap();
    fill(&dir.partition("t", 2).unwrap(), 2);
    dir.close().unwrap();
    let broken = fs.open_dir(&Path::new(ROOT).join("t-1")).unwrap();
    broken.unlink("00000000000000000000.log").unwrap();
    broken.make_dir("00000000000000000000.log").unwrap();
    broken.make_dir("00000000000000000000.index").ok();
    let dir = open(&fs, SMALL);
    let offline = dir.offline();
    assert_eq!(offline.len(), 1, "{offline:?}");
    assert_eq!(offline[0].0, ("t".to_owned(), 1));
    assert!(dir.partition("t", 1).is_err());
    assert_eq!(offsets(&dir.partition("t", 2).unwrap()).len(), 20);
    dir.close().unwrap();
    assert!(!tree(&fs).keys().any(|name| name.ends_with(".kafka_cleanshutdown")));
}

#[test]
fn a_log_start_inside_a_segment_survives_a_clean_close() {
    let fs = SimFs::new();
    let dir = small(&fs);
    fill(&log_of(&dir), 10);
    log_of(&dir).delete_records(37).unwrap();
    dir.close().unwrap();
    let dir = open(&fs, SMALL);
    assert_eq!(log_of(&dir).start_offset().unwrap(), 37);
    assert_eq!(offsets(&log_of(&dir)), (37..100).collect::<Vec<_>>());
    let upkeep = dir.upkeep(T0).unwrap();
    assert_eq!(upkeep.failed, []);
    dir.close().unwrap();
}

#[test]
fn opening_needs_no_free_space() {
    let fs = SimFs::new();
    let dir = small(&fs);
    fill(&log_of(&dir), 30);
    let fs = killed(dir, &fs);
    fs.set_capacity(Some(fs.used_bytes()));
    let dir = open(&fs, SMALL);
    assert_eq!(offsets(&log_of(&dir)), (0..300).collect::<Vec<_>>());
}

use std::collections::BTreeSet;
use std::path::Path;

use super::{CrashClass, Fault, SimDir, SimFs, is_power_off};
use crate::Error;
use crate::fs::{
    Create, Dir as _, File as _, Fs as _, Map as _, WriteDir as _, WriteFile as _, WriteFs as _,
    replace_file,
};

const OLD: usize = 1000;
const NEW: usize = 20_000;

fn empty() -> (SimFs, SimDir) {
    let fs = SimFs::new();
    fs.make_dirs(Path::new("/d/t-0")).unwrap();
    let dir = fs.open_dir(Path::new("/d/t-0")).unwrap();
    (fs, dir)
}

fn put(dir: &SimDir, name: &str, bytes: &[u8], sync: bool) {
    let file = dir.open_write(name, Create::IfMissing).unwrap();
    file.write_at(bytes, 0).unwrap();
    if sync {
        file.sync().unwrap();
    }
}

/// A directory with everything durable, then one change of each kind that is not.
fn scene() -> SimFs {
    let (fs, dir) = empty();
    let top = fs.open_dir(Path::new("/d")).unwrap();
    put(&dir, "0.log", &[b'a'; OLD], true);
    put(&dir, "0.index", &[0; 4096], true);
    put(&dir, "c", b"old", true);
    put(&dir, "gone", b"gone", true);
    put(&top, "checkpoint", b"1", true);
    dir.sync().unwrap();
    top.sync().unwrap();
    let log = dir.open_write("0.log", Create::No).unwrap();
    log.write_at(&[b'b'; NEW - OLD], 1000).unwrap();
    dir.open_write("0.index", Create::No).unwrap().map(4096).unwrap().store(3, 7);
    put(&dir, "1.log", b"new", false);
    put(&dir, "c.tmp", b"fresh", false);
    dir.rename("c.tmp", "c").unwrap();
    dir.unlink("gone").unwrap();
    put(&top, "checkpoint", b"2", false);
    fs
}

/// The one state of a class, as (path, content).
struct State(std::collections::BTreeMap<String, Option<Vec<u8>>>);

impl State {
    fn of(fs: &SimFs, class: CrashClass, seed: u64) -> Self {
        let state = fs.crash_state(class, seed);
        assert_eq!(state.class(), Some(class));
        Self(state.tree())
    }

    fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(&format!("/d/{name}")).map(|content| content.as_deref().unwrap())
    }
}

#[test]
fn nothing_synced_is_lost_in_any_state() {
    let (fs, dir) = empty();
    put(&dir, "a", b"synced", true);
    dir.sync().unwrap();
    put(&dir, "b", b"not", false);
    let states: Vec<SimFs> = fs.crash_states(1, 100).collect();
    assert!(states.len() >= 4);
    for state in states {
        assert_eq!(state.tree()["/d/t-0/a"].as_deref(), Some(&b"synced"[..]));
    }
}

#[test]
fn without_unsynced_changes_there_is_one_state() {
    let (fs, dir) = empty();
    put(&dir, "a", b"synced", true);
    dir.sync().unwrap();
    let states: Vec<SimFs> = fs.crash_states(1, 100).collect();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0].tree(), fs.tree());
}

#[test]
fn everything_unsynced_may_be_lost_or_kept() {
    let fs = scene();
    let lost = State::of(&fs, CrashClass::Lost, 1);
    assert_eq!(lost.get("t-0/0.log").unwrap(), [b'a'; OLD]);
    assert_eq!(lost.get("t-0/0.index").unwrap(), [0; 4096]);
    assert_eq!(lost.get("t-0/1.log"), None);
    assert_eq!(lost.get("t-0/c").unwrap(), b"old");
    assert_eq!(lost.get("t-0/gone").unwrap(), b"gone");
    assert_eq!(lost.get("checkpoint").unwrap(), b"1");
    assert_eq!(State::of(&fs, CrashClass::Kept, 1).0, fs.tree());
}

#[test]
fn a_size_may_be_durable_without_its_data() {
    let zeros = State::of(&scene(), CrashClass::Zeros, 1);
    let log = zeros.get("t-0/0.log").unwrap();
    assert_eq!(log.len(), NEW);
    assert_eq!(log[..OLD], [b'a'; OLD]);
    assert!(log[OLD..].iter().all(|byte| *byte == 0));
    assert_eq!(zeros.get("t-0/1.log").unwrap(), [0; 3]);
}

#[test]
fn a_tail_may_be_garbage() {
    let log = State::of(&scene(), CrashClass::Garbage, 1);
    let log = log.get("t-0/0.log").unwrap();
    assert_eq!((log.len(), &log[..OLD]), (NEW, &[b'a'; OLD][..]));
    assert!(log[OLD..].iter().collect::<BTreeSet<_>>().len() > 100);
}

#[test]
fn writes_are_torn_at_sectors_and_pages() {
    for (class, unit) in [(CrashClass::Torn512, 512), (CrashClass::Torn4096, 4096)] {
        let (mut cuts, mut holes) = (0, 0);
        for seed in 0..40 {
            let state = State::of(&scene(), class, seed);
            let log = state.get("t-0/0.log").unwrap();
            assert_eq!(log[..OLD], [b'a'; OLD]);
            if log.len() < NEW {
                assert!(log.len() == OLD || log.len().is_multiple_of(unit), "{}", log.len());
                cuts += 1;
            }
            let changes =
                log.windows(2).enumerate().skip(OLD).filter(|(_, pair)| pair[0] != pair[1]);
            for (at, _) in changes {
                assert_eq!((at + 1) % unit, 0);
                holes += 1;
            }
        }
        assert!(cuts > 3 && holes > 10, "{cuts} {holes}");
    }
}

#[test]
fn names_and_contents_are_durable_apart() {
    let fs = scene();
    let nameless = State::of(&fs, CrashClass::NamesLost, 1);
    assert_eq!(nameless.get("t-0/1.log"), None);
    assert_eq!(nameless.get("t-0/0.log").unwrap().len(), NEW);
    let hollow = State::of(&fs, CrashClass::NamesKept, 1);
    assert_eq!(hollow.get("t-0/1.log").unwrap(), b"");
    assert_eq!(hollow.get("t-0/c").unwrap(), b"");
    assert_eq!(hollow.get("t-0/gone"), None);
}

#[test]
fn a_removal_may_be_durable_before_the_replacement() {
    let state = State::of(&scene(), CrashClass::UnlinksFirst, 1);
    assert_eq!(state.get("t-0/gone"), None);
    assert_eq!(state.get("t-0/1.log"), None);
    assert_eq!(state.get("t-0/c").unwrap(), b"old");
}

#[test]
fn logs_indexes_and_checkpoints_run_ahead_of_each_other() {
    let fs = scene();
    let behind = State::of(&fs, CrashClass::LogsBehind, 1);
    assert_eq!(behind.get("t-0/0.log").unwrap().len(), OLD);
    assert_eq!(behind.get("t-0/0.index").unwrap()[15], 7);
    let ahead = State::of(&fs, CrashClass::LogsAhead, 1);
    assert_eq!(ahead.get("t-0/0.log").unwrap().len(), NEW);
    assert_eq!(ahead.get("t-0/0.index").unwrap()[15], 0);
    let upper = State::of(&fs, CrashClass::UpperAhead, 1);
    assert_eq!(upper.get("checkpoint").unwrap(), b"2");
    assert_eq!(upper.get("t-0/0.log").unwrap().len(), OLD);
    let lower = State::of(&fs, CrashClass::UpperBehind, 1);
    assert_eq!(lower.get("checkpoint").unwrap(), b"1");
    assert_eq!(lower.get("t-0/0.log").unwrap().len(), NEW);
}

#[test]
fn random_states_are_many_and_follow_the_seed() {
    let fs = scene();
    let random =
        |seed| -> Vec<_> { fs.crash_states(seed, 100).map(|state| state.tree()).collect() };
    let states = random(5);
    assert!(states.len() > 60, "{}", states.len());
    assert_eq!(states.iter().collect::<BTreeSet<_>>().len(), states.len());
    assert_eq!(states, random(5));
    assert_ne!(states, random(6));
    let new = |tree: &std::collections::BTreeMap<_, _>| tree.contains_key("/d/t-0/1.log");
    let gone = |tree: &std::collections::BTreeMap<_, _>| tree.contains_key("/d/t-0/gone");
    let mixes: BTreeSet<_> = states.iter().map(|tree| (new(tree), gone(tree))).collect();
    assert_eq!(mixes.len(), 4);
}

#[test]
fn a_cut_and_what_follows_it_mix_in_one_block_only() {
    let (fs, dir) = empty();
    put(&dir, "0.log", &[b'a'; 3 * 4096], true);
    dir.sync().unwrap();
    let log = dir.open_write("0.log", Create::No).unwrap();
    log.set_len(100).unwrap();
    log.write_at(&[b'b'; 2 * 4096], 100).unwrap();
    let mut mixed = 0;
    for state in fs.crash_states(9, 400) {
        let tree = state.tree();
        let log = tree["/d/t-0/0.log"].as_ref().unwrap();
        assert_eq!(log[..100], [b'a'; 100]);
        if log.len() == 3 * 4096 {
            assert!(log[4096..].iter().all(|byte| *byte == b'a'));
            mixed += usize::from(log[100..4096].contains(&b'b'));
        }
    }
    assert!(mixed > 0);
}

#[test]
fn the_power_goes_off_before_the_call_that_was_named() {
    let (fs, dir) = empty();
    let file = dir.open_write("a", Create::New).unwrap();
    file.allocate(8).unwrap();
    let map = file.map(8).unwrap();
    map.store(0, 1);
    fs.crash_before(fs.calls() + 2);
    file.write_at(b"xxxx", 4).unwrap();
    let error = file.sync().unwrap_err();
    assert!(is_power_off(&error) && fs.is_off());
    map.store(0, 2);
    assert!(is_power_off(&dir.list().unwrap_err()));
    let kept = State::of(&fs, CrashClass::Kept, 1);
    assert_eq!(kept.get("t-0/a").unwrap(), b"\0\0\0\x01xxxx");
    assert_eq!(State::of(&fs, CrashClass::Lost, 1).get("t-0/a"), None);
}

#[test]
fn a_dead_process_leaves_its_pages_and_no_lock() {
    let (fs, dir) = empty();
    put(&dir, "a", b"page", false);
    let _lock = dir.lock(".lock").unwrap();
    assert!(matches!(dir.lock(".lock"), Err(Error::Locked { .. })));
    let next = fs.process_crash();
    assert_eq!(next.tree(), fs.tree());
    let dir = next.open_dir(Path::new("/d/t-0")).unwrap();
    drop(dir.lock(".lock").unwrap());
    drop(dir.lock(".lock").unwrap());
    let lost = State::of(&next, CrashClass::Lost, 1);
    assert_eq!(lost.get("t-0/a"), None);
}

#[test]
fn the_named_call_fails_once_and_as_asked() {
    let (fs, dir) = empty();
    let file = dir.open_write("a", Create::New).unwrap();
    fs.fail_at(fs.calls() + 1, Fault::Io);
    assert!(matches!(file.write_at(b"1234", 0), Err(Error::Io { op: "write", .. })));
    assert_eq!(file.facts().unwrap().bytes, 0);
    fs.fail_at(fs.calls() + 1, Fault::NoSpace);
    assert!(matches!(file.write_at(b"1234", 0), Err(Error::NoSpace { .. })));
    fs.fail_at(fs.calls() + 1, Fault::ShortWrite);
    assert!(file.write_at(b"1234", 0).is_err());
    assert_eq!(file.facts().unwrap().bytes, 2);
    fs.fail_at(fs.calls() + 1, Fault::ReadOnly);
    assert!(file.facts().is_ok());
    fs.fail_at(fs.calls() + 1, Fault::ReadOnly);
    assert!(dir.unlink("a").is_err());
    assert!(dir.unlink("a").unwrap());
    assert_eq!(fs.faults_hit(), 4);
}

#[test]
fn a_failed_sync_forgets_the_pages_it_should_have_written() {
    let (fs, dir) = empty();
    put(&dir, "a", b"....", true);
    dir.sync().unwrap();
    let file = dir.open_write("a", Create::No).unwrap();
    file.write_at(b"lost", 0).unwrap();
    fs.fail_at(fs.calls() + 1, Fault::SyncLost);
    assert!(file.sync().is_err());
    file.write_at(b"more", 4).unwrap();
    file.sync().unwrap();
    assert_eq!(fs.tree()["/d/t-0/a"].as_deref(), Some(&b"lostmore"[..]));
    assert_eq!(State::of(&fs, CrashClass::Lost, 1).get("t-0/a").unwrap(), b"....more");
}

#[test]
fn a_full_disk_takes_what_fits_and_gives_space_back() {
    let (fs, dir) = empty();
    fs.set_capacity(Some(8192));
    let file = dir.open_write("a", Create::New).unwrap();
    assert!(matches!(file.write_at(&[1; 10_000], 0), Err(Error::NoSpace { .. })));
    assert_eq!((file.facts().unwrap().bytes, fs.used_bytes()), (8192, 8192));
    let other = dir.open_write("b", Create::New).unwrap();
    assert!(other.allocate(1).is_err());
    assert_eq!((dir.free_bytes().unwrap(), other.facts().unwrap().bytes), (0, 0));
    file.set_len(4096).unwrap();
    other.allocate(4096).unwrap();
    dir.unlink("a").unwrap();
    assert_eq!(dir.free_bytes().unwrap(), 0);
    drop(file);
    assert_eq!(dir.free_bytes().unwrap(), 4096);
}

#[test]
fn a_map_that_would_kill_the_process_is_counted() {
    let (fs, dir) = empty();
    let file = dir.open_write("a", Create::New).unwrap();
    file.set_len(3 * 4096).unwrap();
    let map = file.map(3 * 4096).unwrap();
    map.store(2, 5);
    assert_eq!((map.load(2), fs.bus_errors()), (5, 0));
    fs.set_capacity(Some(4096));
    map.store(2048, 5);
    assert_eq!(fs.bus_errors(), 1);
    file.set_len(6).unwrap();
    assert_eq!((map.load(3), fs.bus_errors()), (0, 1));
    assert_eq!((map.load(1024), fs.bus_errors()), (0, 2));
}

#[test]
fn a_replaced_file_is_old_or_new_after_every_crash() {
    let total = {
        let (fs, dir) = empty();
        let before = fs.calls();
        replace_file(&dir, "c", b"new").unwrap();
        fs.calls() - before
    };
    let mut contents = BTreeSet::new();
    for at in 1..=total + 1 {
        let (fs, dir) = empty();
        replace_file(&dir, "c", b"old content").unwrap();
        fs.crash_before(fs.calls() + at);
        let done = replace_file(&dir, "c", b"new").is_ok();
        for state in fs.crash_states(at, 50) {
            let content = state.tree().remove("/d/t-0/c").flatten().unwrap();
            assert!(content == b"old content" || content == b"new", "{content:?}");
            assert!(!done || content == b"new");
            contents.insert(content);
        }
    }
    assert_eq!(contents.len(), 2);
}

#[test]
fn a_reader_cannot_write() {
    let (_fs, dir) = empty();
    put(&dir, "a", b"x", true);
    let file = dir.open("a").unwrap();
    assert!(file.write_at(b"y", 0).is_err());
    assert!(file.set_len(0).is_err());
    assert!(file.map(1).is_err());
}

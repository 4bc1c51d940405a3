//! Opens what a crash left and holds it against the model.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kafkaseg_core::clock::{Clock as _, ManualClock};
use kafkaseg_core::fs::SimFs;
use kafkaseg_core::fs::sim::CrashClass;

use crate::model::{Partition, State};
use crate::subject::{self, Dir};
use crate::workload;

pub type Model = BTreeMap<&'static str, Partition>;
type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// How much is done with a recovered directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Open, read, open again; files may change, because the first opening may have made the
    /// space that the second can use.
    Records,
    /// Open, read, open again.
    Open,
    /// Also close, open, append, lose the power, open.
    Whole,
}

/// Opens a disk and checks it; the error says what is wrong.
pub fn verify(
    fs: &SimFs,
    model: &Model,
    clock: &Arc<ManualClock>,
    depth: Depth,
) -> Result<(), String> {
    let checked = AssertUnwindSafe(|| check(fs, model, clock, depth));
    catch_unwind(checked).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn check(fs: &SimFs, model: &Model, clock: &Arc<ManualClock>, depth: Depth) -> Result<(), String> {
    let dir = open(fs, clock)?;
    let first = look(&dir, model)?;
    let was_clean = dir.recovery().is_clean || depth == Depth::Records;
    drop(dir);
    let second = again("a second open", fs, &first, model, clock, was_clean)?;
    let last = if was_clean && depth != Depth::Records {
        // The first took the directory as it was, the second had to recover it.
        again("a third open", &second, &first, model, clock, false)?
    } else {
        second
    };
    if fs.bus_errors() > 0 || last.bus_errors() > 0 {
        return Err("a map was touched past its file".to_owned());
    }
    if depth == Depth::Whole { use_it(&last.process_crash(), &first, clock) } else { Ok(()) }
}

/// Opens once more after the process died: the same records, the same files.
fn again(
    what: &str,
    fs: &SimFs,
    first: &BTreeMap<&'static str, State>,
    model: &Model,
    clock: &Arc<ManualClock>,
    may_change: bool,
) -> Result<SimFs, String> {
    let before = fs.tree();
    let fs = fs.process_crash();
    let found = look(&open(&fs, clock)?, model)?;
    if found != *first {
        return Err(format!("{what} reads other records"));
    }
    if !may_change {
        same_tree(what, &before, &fs.tree())?;
    }
    Ok(fs)
}

fn open(fs: &SimFs, clock: &Arc<ManualClock>) -> Result<Dir, String> {
    let dir = subject::open(fs, clock).map_err(|error| format!("refused: {error}"))?;
    match dir.offline().first() {
        Some((key, why)) => Err(format!("refused: {key:?} is offline: {why}")),
        None => Ok(dir),
    }
}

/// Reads every partition and checks it.
fn look(dir: &Dir, model: &Model) -> Result<BTreeMap<&'static str, State>, String> {
    let mut states = BTreeMap::new();
    for (topic, partition) in model {
        let log = match dir.partition(topic, 0) {
            Ok(log) => log,
            Err(_) if !partition.exists => continue,
            Err(error) => return Err(format!("lost: {topic}: {error}")),
        };
        if let Some(damage) = log.damage() {
            return Err(format!("read-only: {topic}: {damage:?}"));
        }
        let found =
            subject::content(&log).map_err(|error| format!("unreadable: {topic}: {error}"))?;
        partition.check(&found).map_err(|why| format!("{topic}: {why}"))?;
        stable(&found, log.last_stable_offset().map_err(|error| error.to_string())?)
            .map_err(|why| format!("{topic}: {why}"))?;
        states.insert(*topic, found);
    }
    Ok(states)
}

/// The last stable offset follows from the batches. A log that starts later may have lost the
/// beginning of a transaction and then knows less.
fn stable(found: &State, stable: i64) -> Result<(), String> {
    let expected = found.open().values().copied().min().unwrap_or(found.end);
    if found.start == 0 && stable != expected {
        return Err(format!("the last stable offset is {stable} and not {expected}"));
    }
    Ok(())
}

fn same_tree(what: &str, a: &Tree, b: &Tree) -> Result<(), String> {
    for path in a.keys().chain(b.keys()) {
        if content(a, path) != content(b, path) {
            let size = |tree: &Tree| tree.get(path).map(|bytes| bytes.as_ref().map(Vec::len));
            return Err(format!("{what} changes {path}: {:?} to {:?}", size(a), size(b)));
        }
    }
    Ok(())
}

/// A file's bytes, nothing for a directory. The zeros that a file in use is lengthened by do not
/// count.
fn content<'a>(tree: &'a Tree, path: &str) -> Option<&'a [u8]> {
    let bytes = tree.get(path)?.as_deref().unwrap_or_default();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    let grows = [".log", ".index", ".timeindex"].iter().any(|ending| path.ends_with(ending));
    Some(if grows { &bytes[..used] } else { bytes })
}

/// A recovered directory is closed, opened, written and survives the next crash.
fn use_it(
    fs: &SimFs,
    states: &BTreeMap<&'static str, State>,
    clock: &Arc<ManualClock>,
) -> Result<(), String> {
    let told = |error: kafkaseg_core::Error| format!("after recovery: {error}");
    let dir = open(fs, clock)?;
    dir.close().map_err(told)?;
    drop(dir);
    let closed = fs.tree();
    let dir = open(fs, clock)?;
    dir.close().map_err(told)?;
    drop(dir);
    same_tree("opening and closing once more", &closed, &fs.tree())?;
    let dir = open(fs, clock)?;
    let mut model = Model::new();
    for (topic, state) in states {
        let log = dir.partition(topic, 0).map_err(told)?;
        let state = workload::one_more(&log, state, clock.now_ms()).map_err(told)?;
        log.flush().map_err(told)?;
        let mut partition = Partition::coming();
        partition.exists = true;
        partition.done(state);
        partition.synced();
        model.insert(*topic, partition);
    }
    drop(dir);
    let lost = fs.crash_state(CrashClass::Lost, 0);
    look(&open(&lost, clock)?, &model).map_err(|why| format!("after recovery: {why}"))?;
    Ok(())
}

//! One call fails, whichever: nothing acknowledged is lost, nothing is deleted because of it, and
//! the log goes on, after it was opened again where it says so.

use kafkaseg_core::Error;
use kafkaseg_core::fs::SimFs;
use kafkaseg_core::fs::sim::{Call, CrashClass, Fault, Op};

use crate::model::{Partition, State};
use crate::random::{Random, is_long, seed};
use crate::subject;
use crate::verify::{Depth, Model, verify};
use crate::workload::{Run, Step, script};

const ROUNDS: usize = 2;
const FAILURES_SHOWN: usize = 12;

fn calls(steps: &[Step]) -> Vec<Op> {
    let mut run = Run::new(SimFs::new());
    for (at, step) in steps.iter().enumerate() {
        if let Err(error) = run.step(step) {
            panic!("step {at}, {step:?}, failed without a fault: {error}");
        }
    }
    run.fs.ops()
}

/// What a run with one fault did.
struct Outcome {
    /// The call that failed.
    hit: bool,
    /// Errors that steps returned.
    errors: usize,
}

/// The script with one failing call. A step that fails is given up; a poisoned log is opened again.
fn faulty(steps: &[Step], number: u64, fault: Fault) -> Result<(Run, Outcome), String> {
    let mut run = Run::new(SimFs::new());
    run.fs.fail_at(number, fault);
    let mut errors = 0;
    for step in steps {
        let Err(error) = run.step(step) else { continue };
        errors += 1;
        if errors > 3 {
            return Err(format!("{step:?} fails again: {error}"));
        }
        if needs_open(&run, step) {
            reopen(&mut run).map_err(|why| format!("after {step:?} failed with {error}: {why}"))?;
        } else {
            unchanged(&run).map_err(|why| format!("after {step:?} failed with {error}: {why}"))?;
        }
    }
    let outcome = Outcome { hit: run.fs.faults_hit() > 0, errors };
    Ok((run, outcome))
}

fn needs_open(run: &Run, step: &Step) -> bool {
    let Some(dir) = &run.dir else { return true };
    if matches!(step, Step::Open | Step::Restarted | Step::Create(_) | Step::DeleteTopic) {
        return true;
    }
    let poisoned = |topic| dir.partition(topic, 0).map_or(true, |log| log.is_poisoned());
    run.model.keys().any(|topic| poisoned(topic))
}

/// Opens the directory again as the next process would, and takes over what it holds.
fn reopen(run: &mut Run) -> Result<(), String> {
    run.dir = None;
    run.new_producers();
    if run.open().is_err() {
        // The fault may have been in the opening itself; it does not come twice.
        run.open().map_err(|error| format!("refused: {error}"))?;
    }
    let offline = run.dir().offline();
    if !offline.is_empty() {
        // An error keeps a partition away until the next opening, and harms nothing.
        run.dir = None;
        run.open().map_err(|error| format!("refused: {error}"))?;
    }
    run.adopt()
}

/// A log that goes on after a failure shows what it showed before.
fn unchanged(run: &Run) -> Result<(), String> {
    for (topic, partition) in &run.model {
        let log = run.log(topic).map_err(|error| error.to_string())?;
        let found =
            subject::content(&log).map_err(|error| format!("unreadable: {topic}: {error}"))?;
        let expected = partition.after_process_crash();
        expected.check(&found).map_err(|why| format!("{topic}: {why}"))?;
        if found.end != partition.current.end {
            let (is, was) = (found.end, partition.current.end);
            return Err(format!("{topic} ends at {is} after a failure, and did at {was}"));
        }
    }
    Ok(())
}

/// The end of a faulty run, after the power went off and after it did not.
fn settle(run: &Run, random: &mut Random) -> Result<(), String> {
    let process: Model = run
        .model
        .iter()
        .map(|(topic, partition)| (*topic, Partition::after_process_crash(partition)))
        .collect();
    verify(&run.fs.process_crash(), &process, &run.clock, Depth::Open)?;
    for class in [CrashClass::Lost, CrashClass::Kept, CrashClass::Random] {
        let state = run.fs.crash_state(class, random.next());
        verify(&state, &run.model, &run.clock, Depth::Open)
            .map_err(|why| format!("{class:?} {why}"))?;
    }
    Ok(())
}

/// Every call fails once in a run of its own, or a sample of them.
fn each_call(fault: Fault, sample: usize, concerns: impl Fn(&Op) -> bool) {
    let seed = seed();
    let mut random = Random::new(seed);
    let steps = script(seed, ROUNDS);
    let ops = calls(&steps);
    let mut failures = Vec::new();
    let (mut tried, mut hit, mut told) = (0, 0, 0);
    for op in ops.iter().filter(|op| concerns(op)) {
        if !is_long() && random.below(sample) > 0 {
            continue;
        }
        tried += 1;
        let outcome = faulty(&steps, op.number, fault).and_then(|(run, outcome)| {
            hit += usize::from(outcome.hit);
            told += usize::from(outcome.errors > 0);
            settle(&run, &mut random)
        });
        if let Err(why) = outcome {
            failures.push(format!("call {} ({:?} {}): {why}", op.number, op.call, op.path));
        }
    }
    println!("{fault:?}: {tried} calls, {hit} hit, {told} told, seed {seed}");
    let shown = failures.iter().take(FAILURES_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{fault:?}: {} of {tried}, seed {seed}\n{shown}", failures.len());
    assert!(hit * 10 >= tried * 9 && told > 0, "{tried} tried, {hit} hit, {told} told");
}

#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn an_error_of_any_call_harms_nothing() {
    each_call(Fault::Io, 8, |_| true);
}

#[test]
fn a_short_write_leaves_nothing_behind() {
    each_call(Fault::ShortWrite, 3, |op| op.call == Call::Write);
}

#[test]
fn a_disk_that_turns_read_only_harms_nothing() {
    each_call(Fault::ReadOnly, 8, |op| op.call.is_write());
}

#[test]
fn a_full_disk_at_any_call_harms_nothing() {
    each_call(Fault::NoSpace, 4, |op| op.call.is_write());
}

#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn nothing_is_acknowledged_after_a_failed_sync() {
    let seed = seed();
    let mut random = Random::new(seed);
    let steps = script(seed, ROUNDS);
    let ops = calls(&steps);
    let mut failures = Vec::new();
    let mut poisoned = 0;
    for op in ops.iter().filter(|op| op.call.is_sync()) {
        if !is_long() && random.below(3) > 0 {
            continue;
        }
        match stop_at_sync(&steps, op, &mut random) {
            Ok(was_poisoned) => poisoned += usize::from(was_poisoned),
            Err(why) => {
                failures.push(format!("call {} ({:?} {}): {why}", op.number, op.call, op.path));
            }
        }
    }
    let shown = failures.iter().take(FAILURES_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures, seed {seed}\n{shown}", failures.len());
    assert!(poisoned > 10, "{poisoned} logs were poisoned, seed {seed}");
}

/// Runs to a sync that fails and forgets; says whether that poisoned a log.
fn stop_at_sync(steps: &[Step], op: &Op, random: &mut Random) -> Result<bool, String> {
    let mut run = Run::new(SimFs::new());
    run.fs.fail_at(op.number, Fault::SyncLost);
    let Some(failed) = steps.iter().find(|step| run.step(step).is_err()) else {
        return Err("nobody was told of the failed sync".to_owned());
    };
    let mut poisoned = false;
    if let Some(dir) = &run.dir {
        for topic in ["page", "sync", "brief"] {
            let Ok(log) = dir.partition(topic, 0) else { continue };
            if !log.is_poisoned() {
                continue;
            }
            poisoned = true;
            let state = State { end: log.end_offset().unwrap(), ..State::default() };
            match crate::workload::one_more(&log, &state, 0) {
                Err(Error::Poisoned { .. }) => {}
                Err(other) => return Err(format!("{other} and not Poisoned after {failed:?}")),
                Ok(_) => return Err(format!("acknowledged after {failed:?} failed")),
            }
        }
        let closed = dir.close();
        if poisoned && closed.is_ok() {
            return Err(format!("closed cleanly after {failed:?} failed"));
        }
        let marker = format!("{}/.kafka_cleanshutdown", subject::ROOT);
        if poisoned && run.fs.tree().contains_key(&marker) {
            return Err("the marker of a clean stop is there".to_owned());
        }
    }
    let of_log = matches!(op.call, Call::Sync | Call::Flush) && op.path.contains(".log");
    if of_log && !poisoned && !matches!(failed, Step::Restarted | Step::Open) {
        return Err(format!("{failed:?} failed and no log is poisoned"));
    }
    for class in [CrashClass::Lost, CrashClass::Kept, CrashClass::Random] {
        let state = run.fs.crash_state(class, random.next());
        verify(&state, &run.model, &run.clock, Depth::Open)
            .map_err(|why| format!("{class:?} {why}"))?;
    }
    Ok(poisoned)
}

/// The disk runs full in the middle of the script: everything can be read, also after a restart
/// without a free byte, and goes on once there is space.
#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn a_full_disk_is_read_and_opened_and_goes_on_with_space() {
    let seed = seed();
    let mut random = Random::new(seed);
    for _ in 0..if is_long() { 200 } else { 20 } {
        let steps = script(random.next(), ROUNDS);
        let from = 5 + random.below(steps.len() - 10);
        if let Err(why) = full_from(&steps, from, &mut random) {
            panic!("seed {seed}, full from step {from} on: {why}");
        }
    }
}

fn full_from(steps: &[Step], from: usize, random: &mut Random) -> Result<(), String> {
    let mut run = Run::new(SimFs::new());
    for step in &steps[..from] {
        run.step(step).map_err(|error| format!("{step:?} without a fault: {error}"))?;
    }
    run.fs.set_capacity(Some(run.fs.used_bytes()));
    let stuck = steps[from..].iter().position(|step| run.step(step).is_err());
    let Some(stuck) = stuck.map(|at| from + at) else { return Ok(()) };
    let model: Model = run
        .model
        .iter()
        .map(|(topic, partition)| (*topic, partition.after_process_crash()))
        .collect();
    let full = run.fs.process_crash();
    full.set_capacity(Some(full.used_bytes()));
    verify(&full, &model, &run.clock, Depth::Records).map_err(|why| format!("full: {why}"))?;
    run.fs.set_capacity(None);
    if needs_open(&run, &steps[stuck]) {
        reopen(&mut run)?;
    } else {
        unchanged(&run)?;
    }
    for step in &steps[stuck + 1..] {
        run.step(step).map_err(|error| format!("{step:?} with space again: {error}"))?;
    }
    if run.fs.bus_errors() > 0 {
        return Err("a map was stored into a hole of a full disk".to_owned());
    }
    settle(&run, random)
}

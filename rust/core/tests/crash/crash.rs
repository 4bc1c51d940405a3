//! The power goes off before every call of a script, and again during the recovery.

use std::collections::BTreeMap;

use kafkaseg_core::fs::SimFs;
use kafkaseg_core::fs::sim::{CrashClass, Op};

use crate::random::{Random, is_long, seed};
use crate::verify::{Depth, Model, verify};
use crate::workload::{Run, Step, script};

const ROUNDS: usize = 3;
const FAILURES_SHOWN: usize = 24;
const EACH_SHOWN: usize = 3;

/// The script without a crash; gives every call that it made.
fn calls(steps: &[Step]) -> Vec<Op> {
    let mut run = Run::new(SimFs::new());
    for (at, step) in steps.iter().enumerate() {
        if let Err(error) = run.step(step) {
            panic!("step {at} failed without a crash: {error}\n{:#?}", &steps[..=at]);
        }
    }
    run.fs.ops()
}

/// The script until the power goes off.
fn cut(steps: &[Step], number: u64) -> Run {
    let mut run = Run::new(SimFs::new());
    run.fs.crash_before(number);
    for step in steps {
        if let Err(error) = run.step(step) {
            assert!(run.fs.is_off(), "{step:?} failed before the crash: {error}");
            break;
        }
    }
    run
}

/// What was tried and what went wrong.
#[derive(Default)]
struct Tally {
    recoveries: usize,
    classes: BTreeMap<CrashClass, usize>,
    failures: Vec<String>,
    kinds: BTreeMap<String, usize>,
    failed: usize,
}

/// The kind of a failure: its text without numbers and names of segments.
pub fn kind(why: &str) -> String {
    let plain: String = why.chars().filter(|c| !c.is_ascii_digit()).collect();
    plain.split(" found").next().unwrap_or_default().to_owned()
}

impl Tally {
    fn note(&mut self, state: &SimFs, outcome: Result<(), String>, place: impl FnOnce() -> String) {
        self.recoveries += 1;
        *self.classes.entry(state.class().unwrap()).or_insert(0) += 1;
        if let Err(why) = outcome {
            self.failed += 1;
            let count = self.kinds.entry(kind(&why)).or_insert(0);
            *count += 1;
            if *count <= EACH_SHOWN && self.failures.len() < FAILURES_SHOWN {
                self.failures.push(format!("{:?} {}: {why}", state.class().unwrap(), place()));
            }
        }
    }

    fn finish(&self, seed: u64, least: usize) {
        println!("{} recoveries, seed {seed}, {:?}", self.recoveries, self.classes);
        assert!(
            self.failed == 0,
            "{} of {} recoveries failed; KAFKASEG_CRASH_SEED={seed} repeats them\n{:#?}\n{}",
            self.failed,
            self.recoveries,
            self.kinds,
            self.failures.join("\n")
        );
        assert!(self.recoveries >= least, "only {} recoveries, not {least}", self.recoveries);
        assert_eq!(self.classes.len(), CrashClass::ALL.len(), "{:?}", self.classes);
    }
}

/// The calls after which a crash may leave something new.
fn points(ops: &[Op]) -> Vec<&Op> {
    ops.iter().filter(|op| op.call.is_write()).collect()
}

fn place(op: &Op) -> String {
    format!("before call {} ({:?} {})", op.number, op.call, op.path)
}

#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn every_crash_leaves_a_log_that_opens_with_all_that_was_synced() {
    let seed = seed();
    let (wanted, each) = if is_long() { (25_000, 14) } else { (2_000, 2) };
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let mut script_seed = seed;
    while tally.recoveries < wanted {
        let steps = script(script_seed, ROUNDS);
        let ops = calls(&steps);
        for op in points(&ops) {
            if !is_long() && random.below(3) > 0 {
                continue;
            }
            let run = cut(&steps, op.number);
            for state in run.fs.crash_states(random.next(), each) {
                let depth = if random.below(4) == 0 { Depth::Whole } else { Depth::Open };
                let outcome = verify(&state, &run.model, &run.clock, depth);
                tally.note(&state, outcome, || place(op));
            }
            if !is_long() && tally.recoveries >= wanted {
                break;
            }
        }
        script_seed = script_seed.wrapping_add(1);
    }
    tally.finish(seed, wanted);
}

#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn every_crash_of_the_process_leaves_all_that_was_acknowledged() {
    let seed = seed();
    let steps = script(seed, ROUNDS);
    let ops = calls(&steps);
    let mut random = Random::new(seed);
    let mut failures = Vec::new();
    let mut count = 0;
    for op in points(&ops) {
        if !is_long() && random.below(8) > 0 {
            continue;
        }
        let run = cut(&steps, op.number);
        let model: Model = run
            .model
            .iter()
            .map(|(topic, partition)| (*topic, partition.after_process_crash()))
            .collect();
        count += 1;
        if let Err(why) = verify(&run.fs.process_crash(), &model, &run.clock, Depth::Open) {
            failures.push(format!("{}: {why}", place(op)));
        }
    }
    println!("{count} crashes of the process, seed {seed}");
    let shown = failures.iter().take(FAILURES_SHOWN).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {count}, seed {seed}\n{shown}", failures.len());
}

#[test]
#[ignore = "finds states that recovery does not judge right yet"]
fn a_crash_during_recovery_loses_nothing_either() {
    let seed = seed();
    let wanted = if is_long() { 5_000 } else { 300 };
    let mut random = Random::new(seed ^ 0x6e65_7374);
    let mut tally = Tally::default();
    let mut script_seed = seed;
    while tally.recoveries < wanted {
        let steps = script(script_seed, ROUNDS);
        let ops = calls(&steps);
        let points = points(&ops);
        for _ in 0..200 {
            if tally.recoveries >= wanted {
                break;
            }
            let op = points[random.below(points.len())];
            let run = cut(&steps, op.number);
            for state in run.fs.crash_states(random.next(), 1) {
                again(&state, &run, &mut random, &mut tally, op);
            }
        }
        script_seed = script_seed.wrapping_add(1);
    }
    tally.finish(seed, wanted);
}

/// Crashes before every call of one recovery, or a few of them.
fn again(state: &SimFs, run: &Run, random: &mut Random, tally: &mut Tally, op: &Op) {
    let whole = state.process_crash();
    let opened = crate::subject::open(&whole, &run.clock);
    drop(opened);
    let ops = whole.ops();
    for inner in points(&ops) {
        if !is_long() && random.below(4) > 0 {
            continue;
        }
        let half = state.process_crash();
        half.crash_before(inner.number);
        drop(crate::subject::open(&half, &run.clock));
        for left in half.crash_states(random.next(), if is_long() { 4 } else { 1 }) {
            let outcome = verify(&left, &run.model, &run.clock, Depth::Open);
            tally.note(&left, outcome, || {
                format!("{} of {:?}, then {}", place(op), state.class(), place(inner))
            });
        }
    }
}

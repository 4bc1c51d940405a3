//! A short run of every fuzz target, without a nightly compiler: the stored inputs as they are,
//! then damaged again and again until the time is up.
//!
//! `KAFKASEG_FUZZ_SECONDS` sets the time of each target (4 if unset). `KAFKASEG_FUZZ_SEED` repeats
//! a run: execution n of a seed is always the same input, however fast the machine is.
#![allow(clippy::disallowed_methods, reason = "a test reads its inputs directly")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kafkaseg_core::fuzzing;
use kafkaseg_core::record::{crc32, crc32c, entry_total_bytes};

const INPUT_BYTES_MAX: usize = 128 << 10;

#[test]
fn entries_of_any_version_are_read_without_harm() {
    smoke("batch", fuzzing::batch);
}

#[test]
fn records_are_read_without_harm() {
    smoke("records", fuzzing::records);
}

#[test]
fn legacy_sets_are_read_without_harm() {
    smoke("legacy_set", fuzzing::legacy_set);
}

#[test]
fn compressed_bytes_are_inflated_without_harm() {
    smoke("codecs", fuzzing::codecs);
}

#[test]
fn log_files_are_walked_without_harm() {
    smoke("log_file", fuzzing::log_file);
}

/// The harness itself must be able to fail.
#[test]
fn a_broken_promise_fails_the_run() {
    let seeds = [b"a stored input".to_vec()];
    let failed = catch_unwind(|| {
        run("self_test", &seeds, 1, Duration::from_secs(20), |input| assert!(input.len() > 9))
    });
    let message = *failed.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("of KAFKASEG_FUZZ_SEED=1 panicked"), "{message}");
    let kept = fs::read(crash_file("self_test")).unwrap();
    assert!(kept.len() <= 9, "the input that failed is kept");
}

#[expect(clippy::print_stdout, reason = "what a run did is its only trace")]
fn smoke(target: &str, promise: fn(&[u8])) {
    let seeds = stored(target);
    let seconds = std::env::var("KAFKASEG_FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(4.0, |text| text.parse().expect("KAFKASEG_FUZZ_SECONDS"));
    let seed = std::env::var("KAFKASEG_FUZZ_SEED").ok();
    let seed = seed.map_or_else(fresh_seed, |text| text.parse().expect("KAFKASEG_FUZZ_SEED"));
    let executions = run(target, &seeds, seed, Duration::from_secs_f64(seconds), promise);
    println!("{target}: {executions} executions in {seconds} s, KAFKASEG_FUZZ_SEED={seed}");
    assert!(executions > seeds.len(), "{target}: only {executions} executions");
}

/// Runs the stored inputs, then damaged ones until the time is up; gives the number of executions.
fn run(
    target: &str,
    seeds: &[Vec<u8>],
    seed: u64,
    budget: Duration,
    promise: impl Fn(&[u8]),
) -> usize {
    let until = Instant::now() + budget;
    let mut executions = 0;
    while executions < seeds.len() || Instant::now() < until {
        let input = match seeds.get(executions) {
            Some(stored) => stored.clone(),
            None => damaged(seeds, &mut Random::of(seed, executions)),
        };
        if catch_unwind(AssertUnwindSafe(|| promise(&input))).is_err() {
            let path = crash_file(target);
            fs::write(&path, &input).unwrap();
            panic!(
                "{target}: execution {executions} of KAFKASEG_FUZZ_SEED={seed} panicked; \
                 its input is in {}",
                path.display()
            );
        }
        executions += 1;
    }
    executions
}

fn crash_file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{target}.crash"))
}

fn stored(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no stored input in {}", folder.display());
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs() ^ (u64::from(now.subsec_nanos()) << 32)
}

/// A stored input with one to four kinds of damage; half of the time its checksums are made right
/// again, so that the damage gets past them.
fn damaged(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(seeds).clone();
    for _ in 0..=random.below(4) {
        damage(&mut input, seeds, random);
    }
    input.truncate(INPUT_BYTES_MAX);
    if random.below(2) == 0 {
        mend_checksums(&mut input);
    }
    input
}

fn damage(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(8) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => input.truncate(at),
        3 => {
            // A piece of another input, put in or put over.
            let other = random.pick(seeds);
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            let over = if random.below(2) == 0 { to - from } else { 0 };
            let end = (at + over).min(input.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
        4 => {
            let end = (at + random.below(32)).min(input.len());
            input.drain(at..end);
        }
        5 => {
            let end = (at + random.below(32)).min(input.len());
            input[at..end].fill(*random.pick(&[0, 0xff, 0x80, 0x7f]));
        }
        _ => edit_length(input, random),
    }
}

/// Changes a field that says how much follows, at its place in one of the formats or anywhere.
fn edit_length(input: &mut [u8], random: &mut Random) {
    let anywhere = random.below(input.len().max(1));
    let at = *random.pick(&[8, 18, 23, 26, 57, 61, anywhere, anywhere]);
    let Some(field) = input.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) else {
        return;
    };
    let value = i32::from_be_bytes(*field);
    let near = i32::try_from(random.below(7)).unwrap() - 3;
    let edges = [0, -1, 13, 14, 22, 48, 49, i32::MAX, i32::MIN, value.wrapping_add(near)];
    *field = random.pick(&edges).to_be_bytes();
}

/// Puts the right checksum into every entry from the start on.
fn mend_checksums(input: &mut [u8]) {
    let mut rest = input;
    while let Some(total) = rest.first_chunk().and_then(|head| entry_total_bytes(head).ok()) {
        let Some((entry, after)) = rest.split_at_mut_checked(total) else {
            return;
        };
        let (at, crc) =
            if entry[16] == 2 { (17, crc32c(&entry[21..])) } else { (12, crc32(&entry[16..])) };
        entry[at..at + 4].copy_from_slice(&crc.to_be_bytes());
        rest = after;
    }
}

/// A small repeatable random source (splitmix64).
struct Random(u64);

impl Random {
    /// The source of one execution. What it starts from is itself a random number, so that
    /// neighbouring executions have nothing in common.
    fn of(seed: u64, execution: usize) -> Self {
        let mixed = Self(seed).next() ^ u64::try_from(execution).unwrap();
        Self(Self(mixed).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

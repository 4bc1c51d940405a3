//! How long a search takes. Ignored: it prints figures and asserts none. Run it with
//! `cargo test --release -p kafkaseg-core index::tests::speed -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "figures are the point")]

use std::hint::black_box;
use std::time::Instant;

use super::*;

const BYTES: u64 = 10 * 1024 * 1024;
/// Searches of one round: few, so that some rounds run without being interrupted.
const SEARCHES: u32 = 2_000;

/// The best of many short rounds, in nanoseconds a search.
fn measure(mut search: impl FnMut(usize)) -> f64 {
    let mut random = Random::new(1);
    let picks: Vec<usize> = (0..65_536).map(|_| random.below(1 << 40)).collect();
    let mut next = picks.iter().cycle();
    let mut round = || {
        let start = Instant::now();
        for _ in 0..SEARCHES {
            search(*next.next().unwrap());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(SEARCHES)
    };
    (0..3_000).map(|_| round()).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "measures"]
fn searches() {
    for (name, jitter) in [("even", 0), ("uneven", 60)] {
        let room = Room::new();
        let index = room.offset(0, BYTES, IndexMode::Active);
        let times = room.time(0, BYTES, IndexMode::Active);
        let mut random = Random::new(2);
        let (mut offset, mut entries) = (0, 0_i64);
        while !index.is_full() {
            offset += 30 + random_i64(&mut random, jitter + 1);
            entries += 1;
            index.append(offset, u32::try_from(entries * 1000).unwrap()).unwrap();
            if !times.is_full() {
                times.maybe_append(when(1_700_000_000_000 + offset * 3, offset), false).unwrap();
            }
        }
        let all = usize::try_from(offset).unwrap();
        let in_time = usize::try_from(times.last().unwrap().offset).unwrap();
        let signed = |pick: usize| i64::try_from(pick).unwrap();
        let cold = measure(|pick| {
            black_box(index.lookup(black_box(signed(pick % all))).unwrap());
        });
        let warm = measure(|pick| {
            black_box(index.lookup(black_box(offset - signed(pick % 20_000))).unwrap());
        });
        let last = measure(|_| {
            black_box(index.lookup(black_box(offset)).unwrap());
        });
        let time = measure(|pick| {
            let target = 1_700_000_000_000 + signed(pick % in_time) * 3;
            black_box(times.lookup(black_box(target)).unwrap());
        });
        let upper = measure(|pick| {
            let position = u64::try_from(pick % 1_300_000_000).unwrap();
            black_box(index.upper_bound(black_box(position), 1000).unwrap());
        });
        println!(
            "{name}: random {cold:.0} ns, warm {warm:.0}, last {last:.0}, time {time:.0}, \
             upper bound {upper:.0}"
        );
    }
    let room = Room::new();
    let index = room.offset(0, BYTES, IndexMode::Active);
    let start = Instant::now();
    for entry in 1..=1_310_720_u32 {
        index.append(i64::from(entry), entry).unwrap();
    }
    println!("append {:.0} ns", start.elapsed().as_secs_f64() * 1e9 / 1_310_720.0);
}

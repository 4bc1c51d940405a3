//! Readers beside a writer that appends, truncates, trims, extends and closes.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use super::*;

/// An entry that tells whether it is whole: the position follows from the offset.
fn position_of(offset: i64) -> u32 {
    u32::try_from(offset * 3 % 0x7fff_0000).unwrap()
}

#[test]
fn readers_beside_a_writer_see_whole_entries_and_all_that_was_published() {
    let room = Room::new();
    let index = room.offset(0, 8 * 200_000, IndexMode::Active);
    let times = room.time(0, 12 * 200_001, IndexMode::Active);
    let published = AtomicI64::new(0);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (index, times, published) = (&index, &times, &published);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                loop {
                    let known = published.load(Ordering::Acquire);
                    let target = random_i64(&mut random, usize::try_from(known).unwrap() + 1);
                    let found = index.lookup(target).unwrap();
                    assert_eq!(found, at(target, position_of(target)));
                    let found = index.lookup(i64::MAX).unwrap();
                    assert!(found.offset >= known && found.position == position_of(found.offset));
                    let found = times.lookup(1000 + target).unwrap();
                    assert!(target == 0 || found == when(1000 + target, target), "{found:?}");
                    if known == 200_000 {
                        break;
                    }
                }
            });
        }
        for offset in 1..=200_000 {
            index.append(offset, position_of(offset)).unwrap();
            times.maybe_append(when(1000 + offset, offset), false).unwrap();
            published.store(offset, Ordering::Release);
        }
    });
}

#[test]
fn readers_beside_truncation_and_resizing_get_whole_entries_never_above_their_target() {
    let room = Room::new();
    let max = 8 * 20_000;
    let index = room.offset(0, max, IndexMode::Active);
    let times = room.time(0, max, IndexMode::Active);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..3 {
            let (index, times, done) = (&index, &times, &done);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !done.load(Ordering::Relaxed) {
                    let target = random_i64(&mut random, 60_000);
                    let found = index.lookup(target).unwrap();
                    assert!(found.offset <= target);
                    assert_eq!(found.position, position_of(found.offset));
                    let found = times.lookup(target).unwrap();
                    assert!(found.timestamp <= target && found.offset == found.timestamp.max(0));
                    let _ = (index.upper_bound(1000, 1000).unwrap(), index.last().unwrap());
                }
            });
        }
        let mut random = Random::new(9);
        let mut last = 0;
        for round in 0..400 {
            for _ in 0..random.below(2000) {
                if index.is_full() || times.is_full() {
                    break;
                }
                last += 1 + random_i64(&mut random, 4);
                index.append(last, position_of(last)).unwrap();
                times.maybe_append(when(last, last), false).unwrap();
            }
            match round % 4 {
                0 => index.trim().and_then(|()| times.trim()).unwrap(),
                1 => index.close().and_then(|()| times.close()).unwrap(),
                2 => index.reset(max).and_then(|()| times.reset(max)).map(|()| last = 0).unwrap(),
                _ => {}
            }
            let to = random_i64(&mut random, usize::try_from(last).unwrap() + 1);
            index.truncate_to(to).and_then(|()| times.truncate_to(to)).unwrap();
            index.extend(max).and_then(|()| times.extend(max)).unwrap();
            last = index.last().unwrap().offset;
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn racing_readers_map_a_sealed_index_once() {
    let room = Room::new();
    let active = room.offset(0, 1024, IndexMode::Active);
    active.append(5, position_of(5)).unwrap();
    active.close().unwrap();
    for _ in 0..300 {
        let index = room.offset(0, 1024, IndexMode::Sealed);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(index.lookup(6).unwrap(), at(5, position_of(5))));
            }
        });
        assert!(index.is_mapped());
    }
}

#[test]
fn a_transaction_index_is_read_beside_its_writer() {
    let room = Room::new();
    let index = room.txn(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                while !done.load(Ordering::Relaxed) {
                    let from = random_i64(&mut random, 3000);
                    let (found, _) = index.aborted_between(from, from + 40).unwrap();
                    for entry in found {
                        assert_eq!(entry.first_offset, entry.last_offset - 1);
                        assert!(entry.last_offset >= from);
                    }
                }
            });
        }
        let mut last = 0;
        for round in 1..=3000 {
            last += 2;
            let entry = crate::index::AbortedTxn {
                producer_id: 1,
                first_offset: last - 1,
                last_offset: last,
                last_stable_offset: last + 1,
            };
            index.append(&entry).unwrap();
            if round % 500 == 0 {
                last /= 2;
                index.truncate_to(last + 1).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

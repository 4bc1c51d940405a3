//! Searching a sorted array of entries as Kafka does, without touching cold pages needlessly.
//!
//! Most lookups are near the end of an index. A plain binary search would touch the middle, the
//! third quarter and so on first: pages that nobody else keeps in memory. So the last 8 KiB of
//! entries are asked first, and only a target before them makes the search look at the rest.
//!
//! Keys come from a mapped file, so nothing is proved about their order. Every loop here shrinks
//! its range by a fixed part of its length whatever the keys are: unsorted keys give an answer of
//! no use, never an endless search. [`greatest_at_or_below`] checks its answer, so that even then
//! the entry it names is not above the target.

use std::hint::select_unpredictable;

/// Bytes at the end of an index that are searched first.
const WARM_BYTES: usize = 8192;

/// The first entry of the warm section of an index that is not empty.
pub(super) fn first_warm(entries: usize, entry_bytes: usize) -> usize {
    entries.saturating_sub(1).saturating_sub(WARM_BYTES / entry_bytes)
}

/// The last entry whose key is not above the target. `None` when there is none.
#[inline]
pub(super) fn greatest_at_or_below<K: Copy + PartialOrd>(
    entries: usize,
    entry_bytes: usize,
    target: K,
    key: impl Fn(usize) -> K,
) -> Option<usize> {
    if entries == 0 {
        return None;
    }
    let first_warm = first_warm(entries, entry_bytes);
    let found = if key(first_warm) < target {
        narrow_near(first_warm, entries - first_warm, target, &key)
    } else if key(0) > target {
        return None;
    } else {
        narrow_far(0, first_warm + 1, target, &key)
    };
    (key(found) <= target).then_some(found)
}

/// The first entry whose key is not below the target. `None` when there is none.
pub(super) fn smallest_at_or_above<K: Copy + PartialOrd>(
    entries: usize,
    entry_bytes: usize,
    target: K,
    key: impl Fn(usize) -> K,
) -> Option<usize> {
    let Some(below) = greatest_at_or_below(entries, entry_bytes, target, &key) else {
        return (entries > 0).then_some(0);
    };
    if key(below) == target {
        return Some(below);
    }
    Some(below + 1).filter(|above| *above < entries)
}

/// The last of `count` entries from `start` whose key is not above the target, when the first of
/// them is not above it. The warm section is in the processor's caches, where a wrongly predicted
/// branch costs more than a look: which half goes on is chosen without one.
#[inline]
fn narrow_near<K: Copy + PartialOrd>(
    mut start: usize,
    mut count: usize,
    target: K,
    key: &impl Fn(usize) -> K,
) -> usize {
    while count > 1 {
        let half = count / 2;
        let middle = start + half;
        start = select_unpredictable(key(middle) <= target, middle, start);
        count -= half;
    }
    start
}

/// The same for the rest of an index, which is in memory at best. Here a look costs more than a
/// wrongly predicted branch, and behind a branch the processor looks ahead at the half that it
/// expects: half of the time the next key is on its way before the last one has come.
#[inline]
fn narrow_far<K: Copy + PartialOrd>(
    mut start: usize,
    mut count: usize,
    target: K,
    key: &impl Fn(usize) -> K,
) -> usize {
    while count > 1 {
        let half = count / 2;
        if key(start + half) <= target {
            start += half;
            count -= half;
        } else {
            count = half;
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn the_warm_section_starts_where_kafka_starts_it() {
        assert_eq!(first_warm(5000, 8), 3975);
        assert_eq!(first_warm(5000, 12), 4317);
        assert_eq!(first_warm(1000, 8), 0);
        assert_eq!(first_warm(1000, 12), 317);
        assert_eq!(first_warm(0, 8), 0);
    }

    fn check(keys: &[i64], entry_bytes: usize, target: i64) {
        let key = |index: usize| keys[index];
        let lower = keys.iter().rposition(|key| *key <= target);
        let upper = keys.iter().position(|key| *key >= target);
        assert_eq!(greatest_at_or_below(keys.len(), entry_bytes, target, key), lower);
        assert_eq!(smallest_at_or_above(keys.len(), entry_bytes, target, key), upper);
    }

    #[test]
    fn search_equals_linear_search() {
        let mut random = Random::new(30);
        for round in 0..4_000 {
            // Small entries of a search are large steps: 4096 makes the warm section two entries.
            let entry_bytes = *random.pick(&[8, 12, 512, 4096]);
            let most = if round % 50 == 0 { 3000 } else { 60 };
            let mut last = 0;
            let keys: Vec<i64> = (0..random.below(most))
                .map(|_| {
                    last += 1 + i64::try_from(random.below(4)).unwrap();
                    last
                })
                .collect();
            for _ in 0..300 {
                let span = usize::try_from(last).unwrap() + 6;
                check(&keys, entry_bytes, i64::try_from(random.below(span)).unwrap() - 2);
            }
        }
    }

    #[test]
    fn every_target_around_the_edges_of_both_sections_is_found() {
        for entry_bytes in [8, 12] {
            let warm = WARM_BYTES / entry_bytes;
            for entries in (0..9).chain(warm - 2..warm + 4).chain(2 * warm - 1..2 * warm + 3) {
                let keys: Vec<i64> =
                    (0..entries).map(|at| i64::try_from(at * 2).unwrap()).collect();
                let edge = i64::try_from(2 * first_warm(entries, entry_bytes)).unwrap();
                let end = i64::try_from(2 * entries).unwrap();
                for near in [0, edge, end] {
                    for target in near - 5..near + 5 {
                        check(&keys, entry_bytes, target);
                    }
                }
            }
        }
    }

    #[test]
    fn unsorted_keys_end_the_search_within_its_bound_and_never_above_the_target() {
        let mut random = Random::new(31);
        for _ in 0..20_000 {
            let entries = random.below(2000);
            let keys: Vec<u64> = (0..entries).map(|_| random.next() >> 60).collect();
            let looks = Cell::new(0);
            let key = |index: usize| {
                looks.set(looks.get() + 1);
                keys[index]
            };
            let target = random.next() >> 60;
            let found = greatest_at_or_below(entries, 64, target, key);
            assert!(found.is_none_or(|found| keys[found] <= target));
            let _ = smallest_at_or_above(entries, 64, target, key);
            assert!(looks.get() < 40, "{} keys of {entries}", looks.get());
        }
    }
}

use super::*;
use crate::fs::{Fs as _, RealFs};
use crate::testing::Random;

fn cache(entries: &[(i32, i64)]) -> EpochCache {
    let mut cache = EpochCache::default();
    for (epoch, start_offset) in entries {
        assert!(cache.assign(*epoch, *start_offset).unwrap());
    }
    cache
}

fn pairs(cache: &EpochCache) -> Vec<(i32, i64)> {
    cache.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
}

fn published() -> EpochCache {
    cache(&[(0, 0), (4, 1200), (7, 1534)])
}

#[test]
fn the_published_truth_table_of_ends_holds() {
    let ends = published();
    for (epoch, end) in [
        (-1, None),
        (0, Some((0, 1200))),
        (2, Some((0, 1200))),
        (4, Some((4, 1534))),
        (5, Some((4, 1534))),
        (7, Some((7, 1600))),
        (8, None),
    ] {
        assert_eq!(ends.end_offset_for(epoch, 1600), end, "epoch {epoch}");
    }
    assert_eq!(cache(&[(4, 1200), (7, 1534)]).end_offset_for(2, 1600), Some((2, 1200)));
    assert_eq!(EpochCache::default().end_offset_for(0, 5), None);
    assert_eq!(cache(&[(0, 0)]).end_offset_for(0, 5), Some((0, 5)));
}

#[test]
fn the_published_changes_hold() {
    let mut cut = published();
    assert!(cut.truncate_from_start(1300));
    assert_eq!(pairs(&cut), [(4, 1300), (7, 1534)]);
    let mut cut = published();
    assert!(cut.truncate_from_end(1534));
    assert_eq!(pairs(&cut), [(0, 0), (4, 1200)]);
    let mut assigned = published();
    assert!(assigned.assign(6, 1500).unwrap());
    assert_eq!(pairs(&assigned), [(0, 0), (4, 1200), (6, 1500)]);
}

#[test]
fn a_follower_finds_where_it_differs() {
    let own = cache(&[(0, 0), (2, 50), (3, 70)]);
    let leader = cache(&[(0, 0), (2, 50), (4, 60)]);
    assert_eq!(leader.end_offset_for(3, 100), Some((2, 60)));
    assert_eq!(own.end_offset_for(2, 90), Some((2, 70)));
    let mut own = own;
    assert!(own.truncate_from_end(60));
    assert_eq!(pairs(&own), [(0, 0), (2, 50)]);
}

#[test]
fn only_a_change_asks_for_the_file_to_be_written() {
    let mut epochs = EpochCache::default();
    assert!(epochs.assign(0, 0).unwrap(), "epoch 0 at offset 0 is an epoch");
    assert!(!epochs.assign(0, 0).unwrap());
    assert!(!epochs.assign(0, 10).unwrap());
    assert!(epochs.assign(3, 10).unwrap());
    assert!(epochs.assign(3, 5).unwrap(), "an epoch may turn out to begin earlier");
    assert!(!epochs.truncate_from_end(6));
    assert!(!epochs.truncate_from_start(0));
    assert!(epochs.truncate_from_start(2));
    assert_eq!(pairs(&epochs), [(0, 2), (3, 5)]);
    assert!(epochs.clear());
    assert!(!epochs.clear());
    for (epoch, offset) in [(-1, 0), (0, -1)] {
        assert!(epochs.assign(epoch, offset).is_err());
    }
    assert!(epochs.entries().is_empty());
}

#[test]
fn the_file_is_written_and_read_back() {
    let root = tempfile::TempDir::new().unwrap();
    let dir = RealFs.open_dir(root.path()).unwrap();
    assert_eq!(EpochCache::load(&dir).unwrap(), EpochCache::default());
    let epochs = published();
    epochs.save(&dir).unwrap();
    assert_eq!(EpochCache::load(&dir).unwrap(), epochs);
    crate::fs::replace_file(&dir, "leader-epoch-checkpoint", b"0\n1\nx\n").unwrap();
    assert!(matches!(EpochCache::load(&dir), Err(crate::Error::Corrupt { .. })));
}

/// A log as the epoch of each offset from its start on.
#[derive(Default)]
struct Model {
    start: i64,
    epochs: Vec<i32>,
    /// The last epoch of a log that has lost all its records from the start on.
    before: Option<i32>,
}

impl Model {
    fn end(&self) -> i64 {
        self.start + i64::try_from(self.epochs.len()).unwrap()
    }

    fn index(&self, offset: i64) -> usize {
        usize::try_from(offset - self.start).unwrap()
    }

    fn cut_start(&mut self, offset: i64) {
        let last = self.epochs.last().copied().or(self.before);
        self.epochs.drain(..self.index(offset));
        self.before = last.filter(|_| self.epochs.is_empty());
        self.start = offset;
    }

    fn cut_end(&mut self, offset: i64) {
        self.epochs.truncate(self.index(offset));
        self.before = None;
    }

    /// What the records say.
    fn pairs(&self) -> Vec<(i32, i64)> {
        let mut pairs: Vec<(i32, i64)> = Vec::new();
        for (offset, epoch) in (self.start..).zip(&self.epochs) {
            if pairs.last().is_none_or(|(last, _)| last != epoch) {
                pairs.push((*epoch, offset));
            }
        }
        pairs.extend(self.before.filter(|_| self.epochs.is_empty()).map(|e| (e, self.start)));
        pairs
    }
}

/// P2: after any truncation the cache says what the records say, epoch 0 included.
#[test]
fn the_cache_equals_what_the_records_say_after_any_operation() {
    let mut random = Random::new(3);
    let mut operations = 0;
    while operations < 40_000 {
        let (mut epochs, mut model, mut epoch) = (EpochCache::default(), Model::default(), 0);
        for _ in 0..random.below(40) {
            operations += 1;
            let within = i64::try_from(random.below(model.epochs.len() + 1)).unwrap();
            match random.below(8) {
                0 => {
                    epochs.truncate_from_start(model.start + within);
                    model.cut_start(model.start + within);
                }
                1 => {
                    epochs.truncate_from_end(model.start + within);
                    model.cut_end(model.start + within);
                    epoch = model.pairs().last().map_or(0, |(epoch, _)| *epoch);
                }
                2 => {
                    // Recovery reads every batch again into a cache that may know them already.
                    let mut again = epochs.clone();
                    if random.below(2) == 0 {
                        again.clear();
                    }
                    for (epoch, offset) in model.pairs() {
                        again.assign(epoch, offset).unwrap();
                    }
                    assert_eq!(again, epochs);
                }
                3 => epoch += 1 + i32::try_from(random.below(3)).unwrap(),
                _ => {
                    epochs.assign(epoch, model.end()).unwrap();
                    model.epochs.extend(vec![epoch; 1 + random.below(4)]);
                    model.before = None;
                }
            }
            assert_eq!(pairs(&epochs), model.pairs());
            check_questions(&mut random, &epochs, &model);
        }
    }
}

/// Asks for an offset and for the end of an epoch, and looks them up record by record.
fn check_questions(random: &mut Random, epochs: &EpochCache, model: &Model) {
    let Some((latest, _)) = model.pairs().last().copied() else {
        assert_eq!(epochs.latest(), None);
        return;
    };
    let offset = model.start + i64::try_from(random.below(model.epochs.len() + 3)).unwrap() - 1;
    let expected =
        match model.epochs.get(usize::try_from(offset - model.start).unwrap_or(usize::MAX)) {
            Some(epoch) => Some(*epoch),
            None if offset < model.start => None,
            None => Some(latest),
        };
    assert_eq!(epochs.epoch_for(offset), expected);
    let asked = i32::try_from(random.below(usize::try_from(latest).unwrap() + 3)).unwrap();
    let end = if asked == latest {
        Some((latest, model.end()))
    } else {
        let higher = model.pairs().into_iter().find(|(epoch, _)| *epoch > asked);
        let floor = model.epochs.iter().copied().filter(|epoch| *epoch <= asked).max();
        higher.map(|(_, start)| (floor.unwrap_or(asked), start))
    };
    assert_eq!(epochs.end_offset_for(asked, model.end()), end);
}

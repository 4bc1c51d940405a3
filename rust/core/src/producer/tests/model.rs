//! Random appends against a model that remembers every batch and computes everything anew.

use std::collections::BTreeMap;

use super::super::*;
use super::*;
use crate::testing::Random;

/// Every batch that was accepted, in order.
#[derive(Default)]
struct Model {
    log: Vec<BatchFacts>,
}

impl Model {
    fn of(&self, id: i64) -> impl DoubleEndedIterator<Item = &BatchFacts> {
        self.log.iter().filter(move |facts| facts.producer_id == id)
    }

    fn epoch(&self, id: i64) -> i16 {
        self.of(id).next_back().map_or(-1, |facts| facts.producer_epoch)
    }

    /// Data batches since the epoch last changed.
    fn window(&self, id: i64) -> Vec<&BatchFacts> {
        let epoch = self.epoch(id);
        let mut window: Vec<_> =
            self.of(id).rev().take_while(|facts| facts.producer_epoch == epoch).collect();
        window.retain(|facts| !facts.is_control);
        window.truncate(5);
        window
    }

    /// First offset of the open transaction.
    fn open(&self, id: i64) -> Option<i64> {
        let since = self.of(id).rev().take_while(|facts| !facts.is_control);
        since.filter(|facts| facts.is_transactional).last().map(|facts| facts.base_offset)
    }

    fn ids(&self) -> Vec<i64> {
        let mut ids: Vec<_> = self.log.iter().map(|facts| facts.producer_id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// What a leader must say: the code of a refusal, "duplicate" or "new".
    fn verdict(&self, facts: &BatchFacts) -> &'static str {
        let id = facts.producer_id;
        let (epoch, window) = (self.epoch(id), self.window(id));
        if let Some(marker) = facts.marker {
            let coordinator = self.of(id).rev().find_map(|facts| facts.marker);
            let fenced =
                coordinator.is_some_and(|last| last.coordinator_epoch > marker.coordinator_epoch);
            return match () {
                () if facts.producer_epoch < epoch => "INVALID_PRODUCER_EPOCH",
                () if fenced => "TRANSACTION_COORDINATOR_FENCED",
                () => "new",
            };
        }
        let repeats = |batch: &&BatchFacts| {
            batch.base_sequence == facts.base_sequence && batch.last_sequence == facts.last_sequence
        };
        if epoch == facts.producer_epoch && window.iter().any(repeats) {
            return "duplicate";
        }
        let next = window.first().map_or(0, |last| (i64::from(last.last_sequence) + 1) % (1 << 31));
        let in_order = match () {
            () if epoch == -1 => true,
            () if epoch == facts.producer_epoch => i64::from(facts.base_sequence) == next,
            () => facts.base_sequence == 0,
        };
        match () {
            () if facts.producer_epoch < epoch => "INVALID_PRODUCER_EPOCH",
            () if !in_order => "OUT_OF_ORDER_SEQUENCE_NUMBER",
            () if self.open(id).is_some() && !facts.is_transactional => "INVALID_TXN_STATE",
            () => "new",
        }
    }

    fn snapshot(&self) -> Vec<ProducerEntry> {
        let entry = |id: i64| {
            let last = self.of(id).next_back().unwrap();
            let batch = self.window(id).first().copied();
            ProducerEntry {
                producer_id: id,
                producer_epoch: last.producer_epoch,
                last_sequence: batch.map_or(-1, |batch| batch.last_sequence),
                last_offset: batch.map_or(-1, |batch| batch.last_offset),
                offset_delta: batch.map_or(0, |batch| {
                    i32::try_from(batch.last_offset - batch.base_offset).unwrap()
                }),
                timestamp: last.marker.map_or(last.max_timestamp, |marker| marker.timestamp),
                coordinator_epoch: self
                    .of(id)
                    .rev()
                    .find_map(|facts| facts.marker)
                    .map_or(-1, |marker| marker.coordinator_epoch),
                txn_first_offset: self.open(id).unwrap_or(-1),
            }
        };
        self.ids().into_iter().map(entry).collect()
    }

    /// First offsets of transactions whose marker is not below the high watermark, and whose first
    /// record has come.
    fn first_unstable(&self, high_watermark: i64) -> Option<i64> {
        let mut open: BTreeMap<i64, i64> = BTreeMap::new();
        let mut unstable = Vec::new();
        for facts in &self.log {
            if facts.is_control {
                let first = open.remove(&facts.producer_id);
                unstable.extend(first.filter(|_| facts.base_offset >= high_watermark));
            } else if facts.is_transactional {
                open.entry(facts.producer_id).or_insert(facts.base_offset);
            }
        }
        unstable.into_iter().chain(open.into_values()).min()
    }
}

/// A batch that is often, but not always, what the producer must send next.
fn random_batch(random: &mut Random, states: &ProducerStates, offset: i64) -> BatchFacts {
    let id = i64::try_from(random.below(5)).unwrap() * 16;
    let known = states.get(id);
    let epoch = known.map_or(0, |state| state.producer_epoch);
    let epoch = epoch + *random.pick(&[0, 0, 0, 0, 0, 0, 1, -1]);
    let epoch = epoch.max(0);
    if random.below(5) == 0 {
        let facts = end(id, epoch, offset, random.below(2) == 0);
        let coordinator_epoch = i32::try_from(random.below(3)).unwrap();
        return end_with(facts, |marker| marker.coordinator_epoch = coordinator_epoch);
    }
    let last = known.map_or(i32::MAX - 5, |state| state.last_sequence());
    let next = if last == i32::MAX { 0 } else { last + 1 };
    let sequence = match random.below(8) {
        0 => 0,
        1 => next.saturating_add(1),
        2 => known.and_then(|state| state.batches().next()).map_or(3, BatchMeta::first_sequence),
        _ => next,
    };
    let records = 1 + i32::try_from(random.below(3)).unwrap();
    let in_txn = match known.and_then(|state| state.txn_first_offset) {
        Some(_) => random.below(10) > 0,
        None => random.below(3) == 0,
    };
    BatchFacts { is_transactional: in_txn, ..data(id, epoch, sequence, records, offset) }
}

fn verdict_of(result: &Result<Analysis>) -> String {
    match result {
        Ok(Analysis::Duplicate(_)) => "duplicate".to_owned(),
        Ok(Analysis::New) => "new".to_owned(),
        Err(error) => error.to_string().split(':').next().unwrap().to_owned(),
    }
}

#[test]
fn random_appends_agree_with_a_model_that_knows_every_batch() {
    let mut random = Random::new(1);
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..400 {
        let (mut states, mut model) = (ProducerStates::new(0), Model::default());
        let (mut offset, mut high_watermark) = (0, 0);
        for _ in 0..60 {
            let facts = random_batch(&mut random, &states, offset);
            let origin = if facts.is_control { Origin::Coordinator } else { Origin::Client };
            let before = states.snapshot();
            let result = states.analyze(&facts, origin);
            assert_eq!(verdict_of(&result), model.verdict(&facts), "{facts:?}");
            *verdicts.entry(verdict_of(&result)).or_default() += 1;
            assert_eq!(states.snapshot(), before, "examining changes nothing");
            if matches!(result, Ok(Analysis::New)) {
                append(&mut states, &facts, origin).unwrap();
                model.log.push(facts);
                offset = facts.last_offset + 1;
            }
            if random.below(4) == 0 {
                high_watermark += i64::try_from(random.below(6)).unwrap();
                high_watermark = high_watermark.min(offset);
                states.on_high_watermark(high_watermark);
            }
            let mut entries = states.snapshot().entries;
            entries.sort_by_key(|entry| entry.producer_id);
            assert_eq!(entries, model.snapshot());
            assert_eq!(states.first_unstable_offset(), model.first_unstable(high_watermark));
            assert_eq!(states.map_end_offset(), offset);
        }
    }
    assert_eq!(verdicts.len(), 6, "{verdicts:?}");
    assert!(verdicts.values().all(|count| *count > 100), "{verdicts:?}");
}

/// P1: a snapshot and the batches after it give what the whole log gives.
#[test]
fn a_snapshot_and_the_tail_give_the_same_state_as_the_whole_log() {
    let mut random = Random::new(2);
    for round in 0..20_000 {
        let mut states = ProducerStates::new(0);
        let mut log = Vec::new();
        for _ in 0..random.below(24) {
            let offset = states.map_end_offset();
            let facts = random_batch(&mut random, &states, offset);
            // Another replica's log: whatever a leader accepted.
            let origin = if facts.is_control { Origin::Coordinator } else { Origin::Client };
            if matches!(states.analyze(&facts, origin), Ok(Analysis::New)) {
                append(&mut states, &facts, origin).unwrap();
                log.push(facts);
            }
        }
        let cut = random.below(log.len() + 1);
        let mut head = ProducerStates::new(0);
        for facts in &log[..cut] {
            head.replay(facts).unwrap();
        }
        let bytes = head.snapshot().encode().unwrap();
        let mut restored = ProducerStates::new(0);
        let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
        restored.restore(&snapshot, head.map_end_offset(), T0, i64::MAX);
        for facts in &log[cut..] {
            assert_eq!(restored.replay(facts).unwrap(), head.replay(facts).unwrap());
        }
        assert_eq!(restored.snapshot(), states.snapshot(), "round {round}");
        assert_eq!(restored.map_end_offset(), states.map_end_offset());
        assert!(restored.ongoing().eq(states.ongoing()), "round {round}");
        // Transactions that ended before the snapshot are below the high watermark by then.
        for side in [&mut restored, &mut states] {
            side.on_high_watermark(i64::MAX);
        }
        assert_eq!(restored.first_unstable_offset(), states.first_unstable_offset());
    }
}

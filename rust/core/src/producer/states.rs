//! Every producer of a log, and the transactions that are open or not yet replicated.
//!
//! 1. Nothing changes while batches are examined: [`ProducerStates::add`] works on the copies that
//!    [`Changes`] holds, and [`ProducerStates::commit`] takes them over once the bytes are in the
//!    log.
//! 2. A transaction is *ongoing* from its first record to its marker, and *unreplicated* from its
//!    marker until the high watermark has passed it. The first offset of both is the first unstable
//!    offset: readers of committed records stop there.
//! 3. `map_end_offset` is the offset that the state stands for: every batch below is in it.

use std::collections::BTreeMap;

use super::facts::BatchFacts;
use super::java_order::JavaMap;
use super::snapshot::ProducerSnapshot;
use super::state::{BatchMeta, CompletedTxn, ProducerState, refuse};
use super::verification::{Announced, VerificationGuard, Verifications};
use crate::error::Result;
use crate::record::Origin;

/// What transactions may run over their longest time before they count as late.
const LATE_TRANSACTION_BUFFER_MS: i64 = 300_000;

/// A transaction on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Txn {
    producer_id: i64,
    /// Offset of its marker, once there is one.
    last_offset: Option<i64>,
}

/// A completed transaction with the last stable offset that the transaction index keeps for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxnOutcome {
    /// The transaction.
    pub txn: CompletedTxn,
    /// Up to where every transaction was decided when its marker was written.
    pub last_stable_offset: i64,
}

/// What examining a batch found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Analysis {
    /// The batch repeats one that was appended; nothing is to be written.
    Duplicate(BatchMeta),
    /// The batch is new, and noted among the changes.
    New,
}

/// The copy of one producer that an append works on.
#[derive(Debug, Clone)]
struct Draft {
    state: ProducerState,
    was_known: bool,
    ends_verification: bool,
}

/// What the batches of one append change, before it is known that they were written.
#[derive(Debug, Clone)]
pub struct Changes {
    origin: Origin,
    /// `None`: transactions are not verified. `Some`: they are, and this is what the append brought.
    guard: Option<Option<VerificationGuard>>,
    drafts: JavaMap<Draft>,
    started: Vec<(i64, i64)>,
    completed: Vec<CompletedTxn>,
    last_offset: Option<i64>,
}

impl Changes {
    /// Changes of batches from this origin.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            guard: None,
            drafts: JavaMap::default(),
            started: Vec::new(),
            completed: Vec::new(),
            last_offset: None,
        }
    }

    /// The same, where a transaction begins only with the guard of its verification.
    #[must_use]
    pub fn verified(mut self, guard: Option<VerificationGuard>) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The transactions that end in these batches.
    pub fn completed(&self) -> &[CompletedTxn] {
        &self.completed
    }
}

/// The state of every producer of a log.
#[derive(Debug, Clone, Default)]
pub struct ProducerStates {
    producers: JavaMap<ProducerState>,
    ongoing: BTreeMap<i64, Txn>,
    unreplicated: BTreeMap<i64, Txn>,
    verifications: Verifications,
    map_end_offset: i64,
}

impl ProducerStates {
    /// No producer at all, up to an offset.
    pub fn new(map_end_offset: i64) -> Self {
        Self { map_end_offset, ..Self::default() }
    }

    /// What one batch alone would do.
    pub fn analyze(&self, facts: &BatchFacts, origin: Origin) -> Result<Analysis> {
        self.add(&mut self.begin(origin), facts)
    }

    /// Begins an append.
    #[expect(clippy::unused_self, reason = "reads as the first of three steps on the states")]
    pub fn begin(&self, origin: Origin) -> Changes {
        Changes::new(origin)
    }

    /// Examines the next batch of an append and notes what it changes. After a refusal the changes
    /// are of no more use.
    pub fn add(&self, changes: &mut Changes, facts: &BatchFacts) -> Result<Analysis> {
        if facts.has_producer_id() {
            let known = self.get(facts.producer_id);
            if changes.origin == Origin::Client
                && let Some(batch) = known.and_then(|state| state.duplicate_of(facts))
            {
                return Ok(Analysis::Duplicate(batch));
            }
            self.check_guard(changes, facts)?;
            self.draft(changes, facts)?;
        }
        changes.last_offset = Some(facts.last_offset);
        Ok(Analysis::New)
    }

    fn draft(&self, changes: &mut Changes, facts: &BatchFacts) -> Result<()> {
        let id = facts.producer_id;
        if changes.drafts.get(id).is_none() {
            let known = self.get(id).copied();
            let state = known.unwrap_or_else(|| ProducerState::unknown(id));
            let was_known = state.producer_epoch != -1;
            changes.drafts.insert(id, Draft { state, was_known, ends_verification: false });
        }
        let Some(draft) = changes.drafts.get_mut(id) else { return Ok(()) };
        if facts.is_control {
            if let Some(marker) = &facts.marker {
                let completed = draft.state.append_marker(facts, marker, changes.origin)?;
                changes.completed.extend(completed);
            }
        } else {
            let verification = self.verifications.get(id);
            let verification = verification.filter(|_| !draft.ends_verification);
            let (origin, was_known) = (changes.origin, draft.was_known);
            if draft.state.append_data(facts, origin, was_known, verification)? {
                changes.started.push((facts.base_offset, id));
            }
        }
        draft.ends_verification |= facts.is_transactional;
        Ok(())
    }

    /// A transaction that begins here must bring the guard of its verification.
    fn check_guard(&self, changes: &Changes, facts: &BatchFacts) -> Result<()> {
        let Some(brought) = changes.guard else { return Ok(()) };
        let is_asked = matches!(changes.origin, Origin::Client | Origin::Coordinator);
        if !is_asked || !facts.is_transactional || facts.is_control {
            return Ok(());
        }
        let draft = changes.drafts.get(facts.producer_id).map(|draft| &draft.state);
        if let Some(state) = draft.or_else(|| self.get(facts.producer_id)) {
            if state.txn_first_offset.is_some() && state.producer_epoch == facts.producer_epoch {
                return Ok(());
            }
            state.check_epoch(facts, changes.origin)?;
        }
        let expected = self.verifications.get(facts.producer_id).map(|entry| entry.guard);
        if expected.is_some() && expected == brought {
            return Ok(());
        }
        Err(refuse(
            "INVALID_TXN_STATE",
            format!(
                "the transaction of producer {} (epoch {}) at offset {} was not verified",
                facts.producer_id, facts.producer_epoch, facts.base_offset
            ),
        ))
    }

    /// What the transaction index gets for the transactions that end in these changes, in order.
    pub fn outcomes(&self, changes: &Changes) -> Vec<TxnOutcome> {
        if changes.completed.is_empty() {
            return Vec::new();
        }
        let mut ongoing: BTreeMap<i64, i64> =
            self.ongoing.iter().map(|(first, txn)| (*first, txn.producer_id)).collect();
        ongoing.extend(changes.started.iter().copied());
        let outcome = |txn: &CompletedTxn| {
            // The transaction itself is still there: the rule asks for one of another producer.
            let other = ongoing.iter().find(|(_, producer_id)| **producer_id != txn.producer_id);
            let end = txn.last_offset.saturating_add(1);
            let last_stable_offset = other.map_or(end, |(first, _)| *first);
            ongoing.remove(&txn.first_offset);
            TxnOutcome { txn: *txn, last_stable_offset }
        };
        changes.completed.iter().map(outcome).collect()
    }

    /// Takes the changes over, now that their batches are in the log. The answer is that of
    /// [`ProducerStates::outcomes`].
    pub fn commit(&mut self, changes: Changes) -> Vec<TxnOutcome> {
        let outcomes = self.outcomes(&changes);
        for draft in changes.drafts.ordered() {
            let id = draft.state.producer_id;
            // An emptied control batch leaves no trace of a producer that was not known.
            if draft.state != ProducerState::unknown(id) || self.get(id).is_some() {
                self.producers.insert(id, draft.state);
            }
            if draft.ends_verification {
                self.verifications.remove(id);
            }
        }
        for (first_offset, producer_id) in changes.started {
            self.ongoing.insert(first_offset, Txn { producer_id, last_offset: None });
        }
        for txn in changes.completed {
            if let Some(mut ended) = self.ongoing.remove(&txn.first_offset) {
                ended.last_offset = Some(txn.last_offset);
                self.unreplicated.insert(txn.first_offset, ended);
            }
        }
        if let Some(last_offset) = changes.last_offset {
            self.map_end_offset = last_offset.saturating_add(1);
        }
        outcomes
    }

    /// Examines and takes over a batch that is already in the log.
    pub fn replay(&mut self, facts: &BatchFacts) -> Result<Option<TxnOutcome>> {
        let mut changes = self.begin(Origin::Replication);
        self.add(&mut changes, facts)?;
        Ok(self.commit(changes).pop())
    }
}

/// What the state shows.
impl ProducerStates {
    /// A producer.
    pub fn get(&self, producer_id: i64) -> Option<&ProducerState> {
        self.producers.get(producer_id)
    }

    /// How many producers are known.
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether nothing is known: no producer and no transaction.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.ongoing.is_empty() && self.unreplicated.is_empty()
    }

    /// Every producer, in the order of a snapshot.
    pub fn producers(&self) -> Vec<&ProducerState> {
        self.producers.ordered()
    }

    /// The offset that the state stands for.
    pub fn map_end_offset(&self) -> i64 {
        self.map_end_offset
    }

    /// Moves the offset that the state stands for, where no batch of a producer lies between.
    pub fn set_map_end_offset(&mut self, offset: i64) {
        self.map_end_offset = offset;
    }

    /// First offset of the earliest transaction that is open or not yet replicated.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let first = |txns: &BTreeMap<i64, Txn>| txns.first_key_value().map(|(first, _)| *first);
        match (first(&self.ongoing), first(&self.unreplicated)) {
            (Some(ongoing), Some(unreplicated)) => Some(ongoing.min(unreplicated)),
            (one, other) => one.or(other),
        }
    }

    /// Where readers of committed records stop.
    pub fn last_stable_offset(&self, log_start: i64, high_watermark: i64) -> i64 {
        let first = self.first_unstable_offset().map(|first| first.max(log_start));
        first.filter(|first| *first < high_watermark).unwrap_or(high_watermark)
    }

    /// What the transaction index keeps for a transaction that ends now.
    pub fn last_stable_offset_of(&self, txn: &CompletedTxn) -> i64 {
        let other = self.ongoing.iter().find(|(_, open)| open.producer_id != txn.producer_id);
        other.map_or(txn.last_offset.saturating_add(1), |(first, _)| *first)
    }

    /// First offsets and producers of the open transactions, in order.
    pub fn ongoing(&self) -> impl ExactSizeIterator<Item = (i64, i64)> {
        self.ongoing.iter().map(|(first, txn)| (*first, txn.producer_id))
    }

    /// First offsets and producers of ended transactions above the high watermark, in order.
    pub fn unreplicated(&self) -> impl ExactSizeIterator<Item = (i64, i64)> {
        self.unreplicated.iter().map(|(first, txn)| (*first, txn.producer_id))
    }

    /// Whether the oldest open transaction has not been heard of for longer than any may run.
    pub fn has_late_transaction(&self, now_ms: i64, transaction_max_timeout_ms: i64) -> bool {
        let oldest = self.ongoing.first_key_value();
        let last_timestamp = oldest
            .and_then(|(_, txn)| self.get(txn.producer_id))
            .map_or(-1, |state| state.last_timestamp);
        let allowed = transaction_max_timeout_ms.saturating_add(LATE_TRANSACTION_BUFFER_MS);
        last_timestamp > 0 && now_ms.saturating_sub(last_timestamp) > allowed
    }
}

/// What happens to the state beside appends.
impl ProducerStates {
    /// The high watermark has risen: transactions that ended below it are stable.
    pub fn on_high_watermark(&mut self, high_watermark: i64) {
        self.unreplicated
            .retain(|_, txn| txn.last_offset.is_none_or(|last| last >= high_watermark));
    }

    /// The log begins later now. Producers are kept; their records may be gone, not they.
    pub fn on_log_start(&mut self, log_start: i64) {
        self.on_high_watermark(log_start);
        self.map_end_offset = self.map_end_offset.max(log_start);
    }

    /// Forgets producers without an open transaction that were not heard of for so long.
    pub fn expire(&mut self, now_ms: i64, producer_id_expiration_ms: i64) {
        self.producers.retain(|state| !state.is_expired(now_ms, producer_id_expiration_ms));
        self.verifications.expire(now_ms, producer_id_expiration_ms);
    }

    /// Forgets everything and stands for an offset.
    pub fn clear(&mut self, map_end_offset: i64) {
        self.producers.clear();
        self.ongoing.clear();
        self.unreplicated.clear();
        self.map_end_offset = map_end_offset;
    }

    /// What a snapshot keeps, in the order that Kafka would write.
    pub fn snapshot(&self) -> ProducerSnapshot {
        let entries = self.producers.ordered().into_iter().map(ProducerState::to_entry);
        ProducerSnapshot { entries: entries.collect() }
    }

    /// Takes the place of everything known by what a snapshot of `offset` says, without producers
    /// that have expired meanwhile.
    pub fn restore(
        &mut self,
        snapshot: &ProducerSnapshot,
        offset: i64,
        now_ms: i64,
        producer_id_expiration_ms: i64,
    ) {
        self.clear(offset);
        for entry in &snapshot.entries {
            let state = ProducerState::from_entry(entry);
            if state.is_expired(now_ms, producer_id_expiration_ms) {
                continue;
            }
            let producer_id = state.producer_id;
            self.producers.insert(producer_id, state);
            if let Some(first_offset) = state.txn_first_offset {
                self.ongoing.insert(first_offset, Txn { producer_id, last_offset: None });
            }
        }
    }

    /// Asks for the guard of a transaction that may begin here; `None` when it is already open.
    pub fn start_verification(
        &mut self,
        announced: &Announced,
        now_ms: i64,
    ) -> Option<VerificationGuard> {
        let is_open = self.get(announced.producer_id).is_some_and(|state| {
            state.txn_first_offset.is_some() && state.producer_epoch == announced.producer_epoch
        });
        (!is_open).then(|| self.verifications.start(announced, now_ms))
    }
}

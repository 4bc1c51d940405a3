//! What is known of one producer, and the rules that its next batch is held to.
//!
//! 1. Epochs do not fall, sequences follow each other without a gap, and a new epoch begins at 0.
//!    A producer that is not known may begin anywhere: its state may have expired.
//! 2. While a transaction is open, every data batch is part of it, until a marker ends it.
//! 3. A replica keeps what its leader accepted: it follows the same steps and refuses nothing but
//!    a batch that would break rule 2.

use super::facts::{BatchFacts, Marker};
use super::sequence::Sequence;
use super::snapshot::ProducerEntry;
use super::verification::Verification;
use crate::error::{Error, Result};
use crate::record::Origin;

/// Batches of a producer that are remembered to tell a repeated one.
pub const BATCHES_KEPT: usize = 5;

/// A batch that was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchMeta {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Last offset − first offset.
    pub offset_delta: i32,
    /// Its latest time.
    pub timestamp: i64,
}

impl BatchMeta {
    const NONE: Self = Self { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };

    /// Sequence of its first record.
    pub fn first_sequence(&self) -> i32 {
        Sequence(self.last_sequence).back(self.offset_delta).0
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset.saturating_sub(i64::from(self.offset_delta))
    }
}

/// The latest batches of a producer, the newest at the end of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    slots: [BatchMeta; BATCHES_KEPT],
    count: usize,
}

impl Window {
    const EMPTY: Self = Self { slots: [BatchMeta::NONE; BATCHES_KEPT], count: 0 };

    fn push(&mut self, batch: BatchMeta) {
        self.slots.rotate_left(1);
        if let Some(newest) = self.slots.last_mut() {
            *newest = batch;
        }
        self.count = self.count.saturating_add(1).min(BATCHES_KEPT);
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &BatchMeta> {
        self.slots.iter().skip(BATCHES_KEPT - self.count)
    }
}

/// One producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerState {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch, −1 before its first batch.
    pub producer_epoch: i16,
    /// Epoch of the coordinator whose marker came last, −1 none.
    pub coordinator_epoch: i32,
    /// When it last wrote, by the time of its records, −1 never.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub txn_first_offset: Option<i64>,
    window: Window,
}

/// A transaction that a marker has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedTxn {
    /// The producer.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
    /// Offset of the marker.
    pub last_offset: i64,
    /// Whether it was aborted.
    pub aborted: bool,
}

impl ProducerState {
    /// A producer of which nothing is known.
    pub fn unknown(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            txn_first_offset: None,
            window: Window::EMPTY,
        }
    }

    /// The producer that an entry of a snapshot stands for. It remembers one batch.
    pub fn from_entry(entry: &ProducerEntry) -> Self {
        let mut state = Self {
            producer_epoch: entry.producer_epoch,
            coordinator_epoch: entry.coordinator_epoch,
            last_timestamp: entry.timestamp,
            txn_first_offset: Some(entry.txn_first_offset).filter(|offset| *offset >= 0),
            ..Self::unknown(entry.producer_id)
        };
        if entry.last_offset >= 0 {
            state.window.push(BatchMeta {
                last_sequence: entry.last_sequence,
                last_offset: entry.last_offset,
                offset_delta: entry.offset_delta,
                timestamp: entry.timestamp,
            });
        }
        state
    }

    /// What a snapshot keeps.
    pub fn to_entry(&self) -> ProducerEntry {
        let last = self.batches().next_back().unwrap_or(&BatchMeta::NONE);
        ProducerEntry {
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            last_sequence: last.last_sequence,
            last_offset: last.last_offset,
            offset_delta: last.offset_delta,
            timestamp: self.last_timestamp,
            coordinator_epoch: self.coordinator_epoch,
            txn_first_offset: self.txn_first_offset.unwrap_or(-1),
        }
    }

    /// The batches remembered, oldest first.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = &BatchMeta> {
        self.window.iter()
    }

    /// Sequence of the last record, −1 when no batch is remembered.
    pub fn last_sequence(&self) -> i32 {
        self.batches().next_back().map_or(-1, |batch| batch.last_sequence)
    }

    /// The batch that this one repeats, if it repeats one.
    pub fn duplicate_of(&self, facts: &BatchFacts) -> Option<BatchMeta> {
        if facts.producer_epoch != self.producer_epoch {
            return None;
        }
        let same = |batch: &&BatchMeta| {
            batch.first_sequence() == facts.base_sequence
                && batch.last_sequence == facts.last_sequence
        };
        self.batches().find(same).copied()
    }

    /// Whether nothing was heard of it for so long.
    pub fn is_expired(&self, now_ms: i64, expiration_ms: i64) -> bool {
        self.txn_first_offset.is_none()
            && now_ms.saturating_sub(self.last_timestamp) >= expiration_ms
    }

    fn enter_epoch(&mut self, epoch: i16) {
        if self.producer_epoch != epoch {
            self.producer_epoch = epoch;
            self.window = Window::EMPTY;
        }
    }

    /// Whether an epoch is below the one known, and whether that matters to this origin.
    pub(super) fn check_epoch(&self, facts: &BatchFacts, origin: Origin) -> Result<()> {
        if facts.producer_epoch >= self.producer_epoch || !origin.is_leader() {
            return Ok(());
        }
        Err(self.epoch_refusal(facts, "is below the epoch known"))
    }

    fn epoch_refusal(&self, facts: &BatchFacts, what: &str) -> Error {
        refuse(
            "INVALID_PRODUCER_EPOCH",
            format!(
                "epoch {} of producer {} at offset {} {what}, {}",
                facts.producer_epoch, self.producer_id, facts.base_offset, self.producer_epoch
            ),
        )
    }
}

/// Data batches.
impl ProducerState {
    /// Takes a data batch; true when it opens a transaction. `was_known` is whether the producer
    /// was known before this append, which frees the first batches of an unknown one.
    pub(super) fn append_data(
        &mut self,
        facts: &BatchFacts,
        origin: Origin,
        was_known: bool,
        verification: Option<&Verification>,
    ) -> Result<bool> {
        self.check_epoch(facts, origin)?;
        if origin == Origin::Client {
            self.check_verified_sequence(facts, verification)?;
            self.check_sequence(facts, was_known)?;
        }
        if let (Some(first), false) = (self.txn_first_offset, facts.is_transactional) {
            return Err(refuse(
                "INVALID_TXN_STATE",
                format!(
                    "producer {} writes outside of its transaction at offset {}, which is open \
                     since offset {first}",
                    self.producer_id, facts.base_offset
                ),
            ));
        }
        self.enter_epoch(facts.producer_epoch);
        let delta = facts.last_offset.saturating_sub(facts.base_offset);
        self.window.push(BatchMeta {
            last_sequence: facts.last_sequence,
            last_offset: facts.last_offset,
            offset_delta: i32::try_from(delta).unwrap_or(i32::MAX),
            timestamp: facts.max_timestamp,
        });
        self.last_timestamp = facts.max_timestamp;
        let opens = facts.is_transactional && self.txn_first_offset.is_none();
        if opens {
            self.txn_first_offset = Some(facts.base_offset);
        }
        Ok(opens)
    }

    fn check_sequence(&self, facts: &BatchFacts, was_known: bool) -> Result<()> {
        let first = Sequence(facts.base_sequence);
        if facts.producer_epoch != self.producer_epoch {
            // An unknown producer may begin anywhere.
            if first.0 == 0 || self.producer_epoch == -1 {
                return Ok(());
            }
            return Err(refuse(
                "OUT_OF_ORDER_SEQUENCE_NUMBER",
                format!(
                    "producer {} begins epoch {} with sequence {} at offset {}, not with 0 \
                     (its epoch was {})",
                    self.producer_id,
                    facts.producer_epoch,
                    first.0,
                    facts.base_offset,
                    self.producer_epoch
                ),
            ));
        }
        let last = Sequence(self.last_sequence());
        if !was_known || first.follows(last) {
            return Ok(());
        }
        Err(refuse(
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
            format!(
                "producer {} (epoch {}) sends sequence {} at offset {} after sequence {}",
                self.producer_id, self.producer_epoch, first.0, facts.base_offset, last.0
            ),
        ))
    }

    /// A transaction that is being verified begins with the lowest sequence that was announced.
    fn check_verified_sequence(
        &self,
        facts: &BatchFacts,
        verification: Option<&Verification>,
    ) -> Result<()> {
        let Some(verification) = verification else { return Ok(()) };
        let first = facts.base_sequence;
        let begins_late = verification.supports_epoch_bump && self.window.count == 0 && first != 0;
        if !begins_late && first <= verification.lowest_sequence {
            return Ok(());
        }
        let lowest = if begins_late { 0 } else { verification.lowest_sequence };
        Err(refuse(
            "OUT_OF_ORDER_SEQUENCE_NUMBER",
            format!(
                "producer {} sends sequence {first} at offset {} while sequence {lowest} of its \
                 transaction has not come",
                self.producer_id, facts.base_offset
            ),
        ))
    }
}

/// Markers.
impl ProducerState {
    /// Takes a marker; the transaction that it ends, if one is open.
    pub(super) fn append_marker(
        &mut self,
        facts: &BatchFacts,
        marker: &Marker,
        origin: Origin,
    ) -> Result<Option<CompletedTxn>> {
        self.check_marker_epoch(facts, marker, origin)?;
        if self.coordinator_epoch > marker.coordinator_epoch && origin.is_leader() {
            return Err(refuse(
                "TRANSACTION_COORDINATOR_FENCED",
                format!(
                    "coordinator epoch {} of the marker for producer {} at offset {} is below the \
                     epoch known, {}",
                    marker.coordinator_epoch,
                    self.producer_id,
                    facts.base_offset,
                    self.coordinator_epoch
                ),
            ));
        }
        let completed = self.txn_first_offset.take().map(|first_offset| CompletedTxn {
            producer_id: self.producer_id,
            first_offset,
            last_offset: facts.base_offset,
            aborted: marker.aborted,
        });
        self.enter_epoch(facts.producer_epoch);
        self.coordinator_epoch = marker.coordinator_epoch;
        self.last_timestamp = marker.timestamp;
        Ok(completed)
    }

    fn check_marker_epoch(
        &self,
        facts: &BatchFacts,
        marker: &Marker,
        origin: Origin,
    ) -> Result<()> {
        self.check_epoch(facts, origin)?;
        let is_strict = marker.transaction_version >= 2 && origin.is_leader();
        let was_raised = facts.producer_epoch > self.producer_epoch;
        // A marker that is sent again finds no transaction; the last epoch cannot be raised.
        let may_stay = self.txn_first_offset.is_none() || facts.producer_epoch == i16::MAX;
        if !is_strict || was_raised || may_stay {
            return Ok(());
        }
        Err(self.epoch_refusal(facts, "must be above the epoch of the transaction"))
    }
}

/// A refusal under Kafka's name of the error.
pub(super) fn refuse(code: &'static str, reason: String) -> Error {
    Error::Rejected { code, reason }
}

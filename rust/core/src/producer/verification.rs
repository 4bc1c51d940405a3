//! Transactions that begin on this log while the coordinator is asked whether they exist.
//!
//! Between the question and the answer the log holds a guard for the producer; the first batch of
//! the transaction must bring it. A marker that ends the transaction meanwhile removes the guard, so
//! that a late batch cannot open a transaction that nobody will end.

use std::collections::HashMap;

/// What proves that the coordinator was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VerificationGuard(u64);

/// A question under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verification {
    pub(super) guard: VerificationGuard,
    pub(super) lowest_sequence: i32,
    epoch: i16,
    pub(super) supports_epoch_bump: bool,
    created_ms: i64,
}

/// The questions under way, by producer.
#[derive(Debug, Clone, Default)]
pub(super) struct Verifications {
    entries: HashMap<i64, Verification>,
    guards_made: u64,
}

/// What a batch that waits for its verification announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of the first record.
    pub base_sequence: i32,
    /// Whether its transactions raise the epoch each (version 2 of the protocol).
    pub supports_epoch_bump: bool,
}

impl Verifications {
    pub(super) fn get(&self, producer_id: i64) -> Option<&Verification> {
        self.entries.get(&producer_id)
    }

    /// The guard of a producer, made if there is none.
    pub(super) fn start(&mut self, announced: &Announced, now_ms: i64) -> VerificationGuard {
        let guards_made = &mut self.guards_made;
        let entry = self.entries.entry(announced.producer_id).or_insert_with(|| {
            *guards_made = guards_made.wrapping_add(1);
            Verification {
                guard: VerificationGuard(*guards_made),
                lowest_sequence: announced.base_sequence,
                epoch: announced.producer_epoch,
                supports_epoch_bump: announced.supports_epoch_bump,
                created_ms: now_ms,
            }
        });
        if announced.producer_epoch > entry.epoch {
            entry.epoch = announced.producer_epoch;
            entry.lowest_sequence = announced.base_sequence;
        } else if announced.producer_epoch == entry.epoch {
            entry.lowest_sequence = entry.lowest_sequence.min(announced.base_sequence);
        }
        entry.guard
    }

    pub(super) fn remove(&mut self, producer_id: i64) {
        self.entries.remove(&producer_id);
    }

    pub(super) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, entry| now_ms.saturating_sub(entry.created_ms) < expiration_ms);
    }
}

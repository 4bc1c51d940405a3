//! The leader epochs of a log in memory, beside the file `leader-epoch-checkpoint`.
//!
//! 1. Epochs and start offsets both increase strictly. Epoch 0 is an epoch like any other.
//! 2. Replicas find where they differ by asking for the end of an epoch. An epoch that is missing
//!    would hide a difference, so an assignment is in the file before the batch is in the log. What
//!    a truncation removes may stay in the file for a while: loading removes it again.

use crate::checkpoint::{EpochEntry, LeaderEpochs};
use crate::error::{Error, Result};
use crate::fs::{Dir, WriteDir, replace_file};
use crate::names::LEADER_EPOCH_CHECKPOINT;

/// The epochs of a log. What changes them tells whether the file is to be written again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EpochCache {
    epochs: LeaderEpochs,
}

impl EpochCache {
    /// The epochs of a file.
    pub fn from_file(epochs: LeaderEpochs) -> Self {
        Self { epochs }
    }

    /// Reads the file of a partition; a missing one is empty.
    pub fn load<D: Dir>(dir: &D) -> Result<Self> {
        let bytes = dir.read_small(LEADER_EPOCH_CHECKPOINT)?.unwrap_or_default();
        let epochs = LeaderEpochs::decode(&bytes)
            .map_err(|kind| Error::corrupt(&dir.path().join(LEADER_EPOCH_CHECKPOINT), 0, kind))?;
        Ok(Self { epochs })
    }

    /// Replaces the file of a partition, durably.
    pub fn save<D: WriteDir>(&self, dir: &D) -> Result<()> {
        replace_file(dir, LEADER_EPOCH_CHECKPOINT, &self.encode())
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        self.epochs.encode()
    }

    /// The epochs, oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        self.epochs.entries()
    }

    /// The epoch in force.
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries().last().copied()
    }

    /// The epoch of the record at an offset, if the cache reaches back to it.
    pub fn epoch_for(&self, offset: i64) -> Option<i32> {
        self.epochs.epoch_at(offset)
    }

    /// Notes that an epoch begins at an offset and drops the entries that contradict it. False when
    /// it is in force already.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> Result<bool> {
        if epoch < 0 || start_offset < 0 {
            return Err(Error::Invalid(format!(
                "leader epoch {epoch} cannot begin at offset {start_offset}: neither is negative"
            )));
        }
        Ok(self.epochs.assign(EpochEntry { epoch, start_offset }))
    }

    /// Where the records of an epoch end: the greatest epoch known that is not above it, with the
    /// offset at which the next one begins. `None` when the cache cannot tell, which Kafka answers
    /// with −1 for both.
    pub fn end_offset_for(&self, epoch: i32, log_end: i64) -> Option<(i32, i64)> {
        if epoch < 0 {
            return None;
        }
        let entries = self.entries();
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return Some((epoch, log_end));
        }
        let above = entries.partition_point(|entry| entry.epoch <= epoch);
        let next = entries.get(above)?;
        let floor = above.checked_sub(1).and_then(|floor| entries.get(floor));
        // Before the first epoch nothing is known but that the one asked for ends there.
        Some((floor.map_or(epoch, |floor| floor.epoch), next.start_offset))
    }

    /// Drops the epochs that begin at the log's new end or after it.
    pub fn truncate_from_end(&mut self, log_end: i64) -> bool {
        let mut entries = self.entries().to_vec();
        entries.truncate(entries.partition_point(|entry| entry.start_offset < log_end));
        self.replace(entries)
    }

    /// Drops the epochs that end before the log's new start; the one in force there begins there.
    pub fn truncate_from_start(&mut self, log_start: i64) -> bool {
        let mut entries = self.entries().to_vec();
        let gone = entries.partition_point(|entry| entry.start_offset <= log_start);
        let Some(last) = gone.checked_sub(1) else { return false };
        entries.drain(..last);
        if let Some(first) = entries.first_mut() {
            first.start_offset = log_start;
        }
        self.replace(entries)
    }

    /// Drops every epoch.
    pub fn clear(&mut self) -> bool {
        self.replace(Vec::new())
    }

    fn replace(&mut self, entries: Vec<EpochEntry>) -> bool {
        let changes = entries != self.entries();
        if changes {
            self.epochs = LeaderEpochs::from_entries(entries);
        }
        changes
    }
}

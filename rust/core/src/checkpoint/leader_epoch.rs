//! `leader-epoch-checkpoint`: where each leader epoch of a partition begins.
//!
//! ```text
//! 0
//! 3
//! 0 0          epoch, start offset
//! 4 1200
//! 7 1534
//! ```
//!
//! 1. Once read, epochs and start offsets both increase strictly. A file that breaks this is no
//!    error: as in Kafka, a later line removes the ones before it that are not below it in both.
//! 2. Neither is negative.
//!
//! Replaced when an epoch begins and on truncation; a missing file is an empty one.

use super::lines;
use crate::record::CorruptKind;

/// An epoch and its first offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    /// The leader epoch.
    pub epoch: i32,
    /// Offset of its first record.
    pub start_offset: i64,
}

/// The epochs of a partition, strictly increasing in epoch and start offset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaderEpochs {
    entries: Vec<EpochEntry>,
}

impl LeaderEpochs {
    /// Reads a checkpoint file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let mut epochs = Self::default();
        lines::decode(bytes, |[epoch, start_offset]| {
            let entry = EpochEntry {
                epoch: lines::number(epoch)?,
                start_offset: lines::number(start_offset)?,
            };
            if entry.epoch < 0 || entry.start_offset < 0 {
                return Err(CorruptKind::Side("leader epoch or its start offset is negative"));
            }
            epochs.assign(entry);
            Ok(())
        })?;
        Ok(epochs)
    }

    /// The checkpoint file.
    pub fn encode(&self) -> Vec<u8> {
        let line = |entry: &EpochEntry| format!("{} {}", entry.epoch, entry.start_offset);
        lines::encode(self.entries.iter().map(line))
    }

    /// The epochs, oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The epoch of a record, if the checkpoint reaches back to it.
    pub fn epoch_at(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        Some(entry.epoch)
    }

    /// Entries that already increase in both.
    pub(crate) fn from_entries(entries: Vec<EpochEntry>) -> Self {
        Self { entries }
    }

    /// Adds an entry and removes those that it contradicts; false when it says nothing new.
    pub(crate) fn assign(&mut self, entry: EpochEntry) -> bool {
        let repeats = |last: &EpochEntry| {
            last.epoch == entry.epoch && last.start_offset <= entry.start_offset
        };
        if self.entries.last().is_some_and(repeats) {
            return false;
        }
        while self.entries.last().is_some_and(|last| {
            last.epoch >= entry.epoch || last.start_offset >= entry.start_offset
        }) {
            self.entries.pop();
        }
        self.entries.push(entry);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_least, corpus_files};

    fn read(text: &str) -> Vec<(i32, i64)> {
        let epochs = LeaderEpochs::decode(text.as_bytes()).unwrap();
        let pair = |entry: &EpochEntry| (entry.epoch, entry.start_offset);
        epochs.entries().iter().map(pair).collect()
    }

    #[test]
    fn the_published_example_reads_and_writes() {
        let text = "0\n3\n0 0\n4 1200\n7 1534\n";
        assert_eq!(read(text), [(0, 0), (4, 1200), (7, 1534)]);
        let epochs = LeaderEpochs::decode(text.as_bytes()).unwrap();
        assert_eq!(epochs.encode(), text.as_bytes());
        assert_eq!(epochs.epoch_at(1199), Some(0));
        assert_eq!(epochs.epoch_at(1200), Some(4));
        assert_eq!(epochs.epoch_at(i64::MAX), Some(7));
        assert_eq!(epochs.epoch_at(-1), None);
        assert_eq!(read(""), []);
    }

    #[test]
    fn a_later_line_removes_what_it_contradicts() {
        assert_eq!(read("0\n3\n0 0\n1 0\n2 5\n"), [(1, 0), (2, 5)]);
        assert_eq!(read("0\n3\n0 0\n5 10\n3 8\n"), [(0, 0), (3, 8)]);
        assert_eq!(read("0\n3\n0 0\n5 10\n5 12\n"), [(0, 0), (5, 10)]);
        assert_eq!(read("0\n3\n0 0\n5 10\n5 7\n"), [(0, 0), (5, 7)]);
    }

    #[test]
    fn negative_and_malformed_lines_are_refused() {
        for text in ["0\n1\n-1 0\n", "0\n1\n0 -1\n", "0\n1\n0\n", "0\n1\n0 0 0\n", "0\n2\n0 0\n"] {
            assert!(LeaderEpochs::decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_checkpoint_of_the_corpus_is_written_back_byte_for_byte() {
        let files = corpus_files(crate::names::LEADER_EPOCH_CHECKPOINT);
        for (path, bytes) in &files {
            let epochs = LeaderEpochs::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            if bytes.is_empty() {
                assert_eq!(epochs, LeaderEpochs::default());
            } else {
                assert_eq!(&epochs.encode(), bytes, "{}", path.display());
            }
        }
        assert!(files.len() >= at_least(230), "{} files", files.len());
    }
}

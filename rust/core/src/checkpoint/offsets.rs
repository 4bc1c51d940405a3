//! The four offset checkpoints of a log directory: recovery point, high watermark
//! (`replication-offset-checkpoint`), log start and cleaner.
//!
//! ```text
//! 0
//! 2
//! orders 0 1234        topic, partition, offset
//! orders 1 99
//! ```
//!
//! 1. Lines stand in no particular order; of two for one partition the last wins.
//! 2. A partition without an entry has offset 0 (log start, recovery point, high watermark) or has
//!    never been cleaned.
//!
//! Replaced every few seconds to a minute, on truncation and at shutdown. A broker that cannot read
//! one takes the directory offline, or at start-up goes on as if it were empty.

use std::collections::BTreeMap;

use super::lines;
use crate::record::CorruptKind;

/// Offsets by topic and partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OffsetCheckpoint {
    topics: BTreeMap<String, BTreeMap<i32, i64>>,
}

impl OffsetCheckpoint {
    /// Reads a checkpoint file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let mut checkpoint = Self::default();
        lines::decode(bytes, |[topic, partition, offset]| {
            checkpoint.insert(topic, lines::number(partition)?, lines::number(offset)?);
            Ok(())
        })?;
        Ok(checkpoint)
    }

    /// The checkpoint file, in order of topic and partition.
    pub fn encode(&self) -> Vec<u8> {
        let entries: Vec<String> = self
            .iter()
            .map(|(topic, partition, offset)| format!("{topic} {partition} {offset}"))
            .collect();
        lines::encode(entries.into_iter())
    }

    /// The offset of a partition.
    pub fn get(&self, topic: &str, partition: i32) -> Option<i64> {
        self.topics.get(topic)?.get(&partition).copied()
    }

    /// Sets the offset of a partition.
    pub fn insert(&mut self, topic: &str, partition: i32, offset: i64) {
        let partitions = match self.topics.get_mut(topic) {
            Some(partitions) => partitions,
            None => self.topics.entry(topic.to_owned()).or_default(),
        };
        partitions.insert(partition, offset);
    }

    /// Forgets a partition.
    pub fn remove(&mut self, topic: &str, partition: i32) {
        if let Some(partitions) = self.topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                self.topics.remove(topic);
            }
        }
    }

    /// Every entry, in order of topic and partition.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i32, i64)> {
        self.topics.iter().flat_map(|(topic, partitions)| {
            let entry = |(partition, offset): (&i32, &i64)| (topic.as_str(), *partition, *offset);
            partitions.iter().map(entry)
        })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.topics.values().map(BTreeMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::testing::{at_least, corpus_files};

    #[test]
    fn the_published_example_reads_and_writes() {
        let text = "0\n2\norders 0 1234\norders 1 99\n";
        let checkpoint = OffsetCheckpoint::decode(text.as_bytes()).unwrap();
        assert_eq!(checkpoint.get("orders", 0), Some(1234));
        assert_eq!(checkpoint.get("orders", 1), Some(99));
        assert_eq!(checkpoint.get("orders", 2), None);
        assert_eq!(checkpoint.encode(), text.as_bytes());
        assert_eq!(OffsetCheckpoint::default().encode(), b"0\n0\n");
    }

    #[test]
    fn the_last_of_two_entries_wins_and_both_count() {
        let checkpoint = OffsetCheckpoint::decode(b"0\n2\na 0 1\na 0 2\n").unwrap();
        assert_eq!((checkpoint.len(), checkpoint.get("a", 0)), (1, Some(2)));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for text in ["0\n1\na 2147483648 1\n", "0\n1\na 0 9223372036854775808\n", "0\n1\na 0 x\n"] {
            assert!(OffsetCheckpoint::decode(text.as_bytes()).is_err(), "{text:?}");
        }
        let lowest = OffsetCheckpoint::decode(b"0\n1\na 0 -9223372036854775808\n").unwrap();
        assert_eq!(lowest.get("a", 0), Some(i64::MIN));
    }

    #[test]
    fn every_checkpoint_of_the_corpus_reads_and_keeps_its_lines() {
        let (mut files, mut entries) = (0, 0);
        for name in [
            names::RECOVERY_POINT_CHECKPOINT,
            names::HIGH_WATERMARK_CHECKPOINT,
            names::LOG_START_CHECKPOINT,
            names::CLEANER_CHECKPOINT,
        ] {
            for (path, bytes) in corpus_files(name) {
                let checkpoint = OffsetCheckpoint::decode(&bytes)
                    .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
                let sorted = |bytes: &[u8]| {
                    let mut lines: Vec<_> =
                        bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                    lines.sort();
                    lines
                };
                if !bytes.is_empty() {
                    assert_eq!(sorted(&checkpoint.encode()), sorted(&bytes), "{}", path.display());
                }
                files += 1;
                entries += checkpoint.len();
            }
        }
        assert!(files >= at_least(216), "{files} files");
        assert!(entries >= at_least(500), "{entries} entries");
    }
}

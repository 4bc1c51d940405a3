//! `partition.metadata`: the topic id of a partition directory.
//!
//! ```text
//! version: 0
//! topic_id: AAECAwQFBgcICQoLDA0ODw      no line end after it
//! ```
//!
//! 1. The version is not negative; higher ones are read alike, so that a downgrade works.
//! 2. The topic id is not all zero.
//!
//! Written before the first byte of the log, never changed. Older brokers (seen: up to 2.8.2)
//! write none: the id is then unknown.

use super::lines;
use crate::record::CorruptKind;
use crate::uuid::Uuid;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Format version; 0 is written.
    pub version: i32,
    /// The topic.
    pub topic_id: Uuid,
}

impl PartitionMetadata {
    /// Reads the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let mut lines = lines::lines(lines::text(bytes)?);
        let version: i32 = lines::number(field(lines.next(), "version")?)?;
        if version < 0 {
            return Err(CorruptKind::Side("partition.metadata version is negative"));
        }
        let topic_id = Uuid::parse(field(lines.next(), "topic_id")?)
            .filter(|id| *id != Uuid::ZERO)
            .ok_or(CorruptKind::Side("partition.metadata topic id is not an id"))?;
        Ok(Self { version, topic_id })
    }

    /// The file.
    pub fn encode(&self) -> Vec<u8> {
        format!("version: {}\ntopic_id: {}", self.version, self.topic_id).into_bytes()
    }
}

/// The value of a `key: value` line. As in Kafka, a colon followed by white space separates.
fn field<'a>(line: Option<&'a str>, key: &str) -> Result<&'a str, CorruptKind> {
    let space = |c: char| matches!(c, ' ' | '\t' | '\u{b}' | '\u{c}');
    line.and_then(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .filter(|rest| rest.starts_with(space))
        .map(|rest| rest.trim_start_matches(space))
        .ok_or(CorruptKind::Side("partition.metadata line is malformed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_least, corpus_files};

    #[test]
    fn the_published_example_reads_and_writes() {
        let text = "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw";
        let metadata = PartitionMetadata::decode(text.as_bytes()).unwrap();
        assert_eq!((metadata.version, metadata.topic_id.0[15]), (0, 15));
        assert_eq!(metadata.encode(), text.as_bytes());
        let newer = "version: 7\ntopic_id: AAECAwQFBgcICQoLDA0ODw\nmore: x\n";
        assert_eq!(PartitionMetadata::decode(newer.as_bytes()).unwrap().version, 7);
    }

    #[test]
    fn malformed_files_are_refused() {
        for text in [
            "",
            "version: 0",
            "version:0\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
            "version: -1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
            "version: x\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
            "version: 0\ntopic: AAECAwQFBgcICQoLDA0ODw",
            "topic_id: AAECAwQFBgcICQoLDA0ODw\nversion: 0",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD",
            "version: 0\n\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        ] {
            assert!(PartitionMetadata::decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_file_of_the_corpus_is_written_back_byte_for_byte() {
        let files = corpus_files(crate::names::PARTITION_METADATA);
        for (path, bytes) in &files {
            let metadata = PartitionMetadata::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            assert_eq!(&metadata.encode(), bytes, "{}", path.display());
        }
        assert!(files.len() >= at_least(187), "{} files", files.len());
    }
}

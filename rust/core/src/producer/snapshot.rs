//! The producer snapshot, `<offset>.snapshot`: every producer's state before that offset.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i16 | version, 1 |
//! | 2 | u32 | CRC-32C over everything from position 6 |
//! | 6 | i32 | number of entries |
//! | 10 | 46 bytes each | entries |
//!
//! | position in entry | type | field |
//! |---|---|---|
//! | 0 | i64 | producer id |
//! | 8 | i16 | producer epoch |
//! | 10 | i32 | last sequence, −1 none |
//! | 14 | i64 | last offset, −1 none |
//! | 22 | i32 | last offset − first offset of the last batch |
//! | 26 | i64 | timestamp of the last update |
//! | 34 | i32 | coordinator epoch, −1 none |
//! | 38 | i64 | first offset of the open transaction, −1 none |
//!
//! 1. Entries stand in no particular order, one per producer, with its latest batch only.
//! 2. Only version 1 exists on disk.
//!
//! Written at roll, clean close and after recovery. A missing or wrong file is deleted, the next
//! older one is used, and the log is read from there.

use crate::bytes::Reader;
use crate::record::{CorruptKind, crc32c};

const VERSION: i16 = 1;
const ENTRY_BYTES: usize = 46;
const SHORT: CorruptKind = CorruptKind::Side("producer snapshot is cut short");

/// What a snapshot keeps of one producer. −1 stands for "none", as in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Last offset − first offset of its last batch.
    pub offset_delta: i32,
    /// When it last wrote, milliseconds since 1970.
    pub timestamp: i64,
    /// Epoch of the coordinator whose marker came last.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub txn_first_offset: i64,
}

impl ProducerEntry {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, CorruptKind> {
        Ok(Self {
            producer_id: reader.i64()?,
            producer_epoch: reader.i16()?,
            last_sequence: reader.i32()?,
            last_offset: reader.i64()?,
            offset_delta: reader.i32()?,
            timestamp: reader.i64()?,
            coordinator_epoch: reader.i32()?,
            txn_first_offset: reader.i64()?,
        })
    }

    fn encode(&self, output: &mut Vec<u8>) {
        output.extend(self.producer_id.to_be_bytes());
        output.extend(self.producer_epoch.to_be_bytes());
        output.extend(self.last_sequence.to_be_bytes());
        output.extend(self.last_offset.to_be_bytes());
        output.extend(self.offset_delta.to_be_bytes());
        output.extend(self.timestamp.to_be_bytes());
        output.extend(self.coordinator_epoch.to_be_bytes());
        output.extend(self.txn_first_offset.to_be_bytes());
    }
}

/// A whole snapshot, entries in the file's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProducerSnapshot {
    /// One entry per producer.
    pub entries: Vec<ProducerEntry>,
}

impl ProducerSnapshot {
    /// Bytes before the entries.
    pub const HEAD_BYTES: usize = 10;

    /// Checks version and count against the size of the whole file, before it is read.
    pub fn check_head(head: &[u8], file_bytes: u64) -> Result<(), CorruptKind> {
        let mut reader = Reader::new(head, SHORT);
        if reader.i16()? != VERSION {
            return Err(CorruptKind::Side("producer snapshot version is not 1"));
        }
        reader.u32()?;
        let whole = u64::try_from(reader.i32()?)
            .ok()
            .and_then(|count| count.checked_mul(u64::try_from(ENTRY_BYTES).ok()?))
            .and_then(|entries| entries.checked_add(u64::try_from(Self::HEAD_BYTES).ok()?));
        if whole != Some(file_bytes) {
            return Err(CorruptKind::Side("producer snapshot count does not match its size"));
        }
        Ok(())
    }

    /// Reads a snapshot file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let mut reader = Reader::new(bytes, SHORT);
        if reader.i16()? != VERSION {
            return Err(CorruptKind::Side("producer snapshot version is not 1"));
        }
        let stored = reader.u32()?;
        let computed = crc32c(reader.rest());
        if stored != computed {
            return Err(CorruptKind::Crc { stored, computed });
        }
        let count = usize::try_from(reader.i32()?)
            .map_err(|_| CorruptKind::Side("producer snapshot count is negative"))?;
        if count.checked_mul(ENTRY_BYTES) != Some(reader.rest().len()) {
            return Err(CorruptKind::Side("producer snapshot count does not match its size"));
        }
        let entries = (0..count).map(|_| ProducerEntry::decode(&mut reader));
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// The snapshot file; `None` with more entries than the count field can say.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let count = i32::try_from(self.entries.len()).ok()?;
        let mut body = count.to_be_bytes().to_vec();
        for entry in &self.entries {
            entry.encode(&mut body);
        }
        let mut output = VERSION.to_be_bytes().to_vec();
        output.extend(crc32c(&body).to_be_bytes());
        output.extend(body);
        Some(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, at_least, cases, corpus_files, dump_sections, labelled};

    const EXAMPLE: [u8; 102] = [
        0x00, 0x01, 0x28, 0x79, 0xdd, 0x63, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x10, 0x92, 0x00, 0x03, 0x00, 0x00, 0x00, 0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x68, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x01, 0xff,
        0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x67, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x4d, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00,
        0x00, 0x00, 0x00, 0x04, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ];
    const EMPTY: [u8; 10] = [0x00, 0x01, 0x48, 0x67, 0x4b, 0xc7, 0x00, 0x00, 0x00, 0x00];

    /// Spoils a copy and makes the checksum right again, to reach the checks behind it.
    fn resealed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = EXAMPLE.to_vec();
        change(&mut bytes);
        let crc = crc32c(&bytes[6..]).to_be_bytes();
        bytes[2..6].copy_from_slice(&crc);
        bytes
    }

    #[test]
    fn the_published_examples_read_and_write() {
        let snapshot = ProducerSnapshot::decode(&EXAMPLE).unwrap();
        let open = ProducerEntry {
            producer_id: 4242,
            producer_epoch: 3,
            last_sequence: 11,
            last_offset: 104,
            offset_delta: 1,
            timestamp: 1_700_000_000_001,
            coordinator_epoch: -1,
            txn_first_offset: 103,
        };
        let marked = ProducerEntry {
            producer_id: 77,
            producer_epoch: 0,
            last_sequence: -1,
            last_offset: -1,
            offset_delta: 0,
            timestamp: 1_700_000_000_000,
            coordinator_epoch: 4,
            txn_first_offset: -1,
        };
        assert_eq!(snapshot.entries, [open, marked]);
        assert_eq!(snapshot.encode().unwrap(), EXAMPLE);
        assert_eq!(ProducerSnapshot::decode(&EMPTY), Ok(ProducerSnapshot::default()));
        assert_eq!(ProducerSnapshot::default().encode().unwrap(), EMPTY);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        for bit in 0..EXAMPLE.len() * 8 {
            let mut bytes = EXAMPLE;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(ProducerSnapshot::decode(&bytes).is_err(), "bit {bit}");
        }
        for length in 0..EXAMPLE.len() {
            assert!(ProducerSnapshot::decode(&EXAMPLE[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_wrong_count_is_refused_before_memory_is_taken() {
        for count in [1_i32, 3, -1, i32::MAX] {
            let bytes = resealed(|bytes| bytes[6..10].copy_from_slice(&count.to_be_bytes()));
            assert!(matches!(ProducerSnapshot::decode(&bytes), Err(CorruptKind::Side(_))));
        }
        let trailing = resealed(|bytes| bytes.push(0));
        assert!(matches!(ProducerSnapshot::decode(&trailing), Err(CorruptKind::Side(_))));
        let version = resealed(|bytes| bytes[1] = 2);
        assert!(matches!(ProducerSnapshot::decode(&version), Err(CorruptKind::Side(_))));
    }

    #[test]
    fn random_snapshots_survive_both_ways() {
        let mut random = Random::new(7);
        for _ in 0..5_000 {
            let body: Vec<u8> = (0..ENTRY_BYTES * random.below(6))
                .map(|_| random.next().to_be_bytes()[0])
                .collect();
            let count = i32::try_from(body.len() / ENTRY_BYTES).unwrap();
            let mut bytes = vec![0, 1, 0, 0, 0, 0];
            bytes.extend(count.to_be_bytes());
            bytes.extend(body);
            let crc = crc32c(&bytes[6..]).to_be_bytes();
            bytes[2..6].copy_from_slice(&crc);
            let snapshot = ProducerSnapshot::decode(&bytes).unwrap();
            assert_eq!(snapshot.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn every_snapshot_of_the_corpus_is_written_back_byte_for_byte() {
        let files = corpus_files(".snapshot");
        let mut producers = 0;
        for (path, bytes) in &files {
            let snapshot = ProducerSnapshot::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            assert_eq!(snapshot.encode().as_ref(), Some(bytes), "{}", path.display());
            producers += snapshot.entries.len();
        }
        assert!(files.len() >= at_least(600), "{} files", files.len());
        assert!(producers >= at_least(300), "{producers} producers");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test reads the corpus directly")]
    fn the_dump_tool_sees_the_same_producers() {
        let mut producers = 0;
        for case in cases() {
            for (file, lines) in dump_sections(&case.dump().unwrap_or_default()) {
                if !file.ends_with(".snapshot") {
                    continue;
                }
                let bytes = std::fs::read(case.log().join(file)).unwrap();
                let entries = ProducerSnapshot::decode(&bytes).unwrap().entries;
                let lines: Vec<_> =
                    lines.iter().filter(|line| line.starts_with("producerId")).collect();
                assert_eq!(entries.len(), lines.len(), "{} {file}", case.name());
                for (entry, line) in entries.iter().zip(lines) {
                    let printed = |label| labelled(line, label);
                    assert_eq!(printed("producerId"), Some(entry.producer_id));
                    assert_eq!(printed("producerEpoch"), Some(entry.producer_epoch.into()));
                    assert_eq!(printed("coordinatorEpoch"), Some(entry.coordinator_epoch.into()));
                    // Releases name the time differently, and print a batch only if there is one.
                    let time = printed("lastTimestamp").or_else(|| printed("timestamp"));
                    assert_eq!(time, Some(entry.timestamp), "{line}");
                    let has_batch = entry.last_offset >= 0;
                    for (label, value) in [
                        ("lastSequence", entry.last_sequence.into()),
                        ("lastOffset", entry.last_offset),
                        ("offsetDelta", entry.offset_delta.into()),
                    ] {
                        assert_eq!(printed(label), has_batch.then_some(value), "{line}");
                    }
                    let digits = line.split("currentTxnFirstOffset: ").nth(1).unwrap();
                    let digits: String = digits
                        .split(' ')
                        .take(1)
                        .flat_map(str::chars)
                        .filter(char::is_ascii_digit)
                        .collect();
                    assert_eq!(digits.parse().unwrap_or(-1), entry.txn_first_offset, "{line}");
                    producers += 1;
                }
            }
        }
        assert!(producers >= at_least(300), "{producers} producers");
    }
}

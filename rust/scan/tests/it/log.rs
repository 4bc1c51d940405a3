//! Logs made for a test, and the truth about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kafkaseg_core::checkpoint::OffsetCheckpoint;
use kafkaseg_core::codec::Encoder;
use kafkaseg_core::index::{AbortedTxn, OffsetEntry, TimeEntry};
use kafkaseg_core::limits::{BATCH_HEADER_BYTES, CRC_COVERS_FROM, LOG_OVERHEAD};
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::producer::{ProducerEntry, ProducerSnapshot};
use kafkaseg_core::record::{
    BatchBuilder, BatchHeader, BatchSpec, Codec, ControlType, EndTxnMarker, Header, crc32c,
};

use crate::memory::MemoryFs;
use crate::rows::Row;

pub(crate) const ROOT: &str = "logs";
pub(crate) const TOPIC: &str = "t";
pub(crate) const PARTITION: &str = "logs/t-0";

/// The timestamp that records count from.
pub(crate) const T0: i64 = 1_700_000_000_000;

/// One record to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// One batch to write.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) leader_epoch: i32,
    pub(crate) codec: Codec,
    /// The producer whose transaction it belongs to.
    pub(crate) transaction: Option<i64>,
    /// A transaction marker has no records of its own.
    pub(crate) marker: Option<ControlType>,
    /// Holds control records, if any.
    pub(crate) is_control: bool,
    pub(crate) records: Vec<Record>,
}

impl Batch {
    /// A batch without gaps.
    pub(crate) fn of(leader_epoch: i32, records: Vec<Record>) -> Self {
        Self {
            base_offset: records.first().unwrap().offset,
            last_offset: records.last().unwrap().offset,
            leader_epoch,
            codec: Codec::None,
            transaction: None,
            marker: None,
            is_control: false,
            records,
        }
    }

    fn encode(&self, output: &mut Vec<u8>) -> BatchHeader {
        let mut builder = BatchBuilder::new(BatchSpec {
            last_offset: Some(self.last_offset),
            leader_epoch: self.leader_epoch,
            producer_id: self.transaction.unwrap_or(-1),
            producer_epoch: if self.transaction.is_some() { 0 } else { -1 },
            base_sequence: if self.transaction.is_some() && !self.is_control { 0 } else { -1 },
            transactional: self.transaction.is_some(),
            control: self.is_control,
            empty_max_timestamp: T0,
            ..BatchSpec::at(self.base_offset)
        })
        .unwrap();
        if let Some(marker) = self.marker {
            let value = EndTxnMarker { coordinator_epoch: 1 }.to_value();
            builder.push(T0, Some(&marker.to_key()), Some(&value), []).unwrap();
        }
        for record in &self.records {
            let headers =
                record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            builder.push_at(record.offset, record.timestamp, key, value, headers).unwrap();
        }
        let start = output.len();
        let header = builder.finish(output).unwrap();
        if self.codec == Codec::None || header.records_count == 0 {
            return header;
        }
        let records = output.split_off(start + BATCH_HEADER_BYTES);
        output.truncate(start);
        compressed_batch(header, self.codec, &records, output)
    }
}

/// Appends a batch of these records, compressed, with the right length and checksum.
pub(crate) fn compressed_batch(
    mut header: BatchHeader,
    codec: Codec,
    records: &[u8],
    output: &mut Vec<u8>,
) -> BatchHeader {
    let mut stored = Vec::new();
    Encoder::new().compress(codec, None, records, &mut stored).unwrap();
    header.attributes.0 |= i16::from(codec.id());
    sealed_batch(header, &stored, output)
}

/// Appends a batch with this header and payload, with the right length and checksum.
pub(crate) fn sealed_batch(
    mut header: BatchHeader,
    stored: &[u8],
    output: &mut Vec<u8>,
) -> BatchHeader {
    let start = output.len();
    header.batch_length = i32::try_from(BATCH_HEADER_BYTES - LOG_OVERHEAD + stored.len()).unwrap();
    output.extend(header.write());
    output.extend(stored);
    header.crc = crc32c(&output[start + CRC_COVERS_FROM..]);
    output[start..start + BATCH_HEADER_BYTES].copy_from_slice(&header.write());
    header
}

/// Where a batch was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) segment: usize,
    pub(crate) position: usize,
    pub(crate) header: BatchHeader,
}

impl Placed {
    pub(crate) fn end(&self) -> usize {
        self.position + self.header.total_bytes()
    }
}

/// How the log was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    /// Not at all.
    Open,
    /// Cleanly, the end known from the recovery point.
    Clean,
    /// Cleanly, the end known from the producer snapshot only.
    CleanBySnapshot,
}

/// A partition to write: segments of batches.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) segments: Vec<(i64, Vec<Batch>)>,
    pub(crate) close: Close,
    pub(crate) has_epochs: bool,
    pub(crate) has_indexes: bool,
    pub(crate) index_interval: usize,
}

impl Log {
    /// One segment, cleanly closed, with every file that Kafka keeps beside it.
    pub(crate) fn of(base_offset: i64, batches: Vec<Batch>) -> Self {
        Self {
            segments: vec![(base_offset, batches)],
            close: Close::Clean,
            has_epochs: true,
            has_indexes: true,
            index_interval: 4096,
        }
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.segments.iter().flat_map(|(_, batches)| batches)
    }

    /// The offset after the last record.
    pub(crate) fn end(&self) -> i64 {
        let last = self.batches().last().map(|batch| batch.last_offset + 1);
        last.unwrap_or(0).max(self.segments.last().unwrap().0)
    }

    /// Every data record, as a scan gives it.
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.batches()
            .flat_map(|batch| batch.records.iter().map(|record| Row::of(record, batch)))
            .collect()
    }

    /// The bytes of each segment and where its batches are.
    pub(crate) fn encode(&self) -> (Vec<Vec<u8>>, Vec<Placed>) {
        let mut files = Vec::new();
        let mut placed = Vec::new();
        for (segment, (_, batches)) in self.segments.iter().enumerate() {
            let mut bytes = Vec::new();
            for batch in batches {
                let position = bytes.len();
                let header = batch.encode(&mut bytes);
                placed.push(Placed { segment, position, header });
            }
            files.push(bytes);
        }
        (files, placed)
    }

    /// Where a segment's file stands.
    pub(crate) fn path_of(&self, segment: usize, kind: FileKind) -> PathBuf {
        side_path(self.segments[segment].0, kind)
    }

    /// Writes the partition and what its log directory says about it.
    pub(crate) fn write(&self) -> (MemoryFs, Vec<Placed>) {
        let fs = MemoryFs::default();
        let (files, placed) = self.encode();
        for (segment, bytes) in files.into_iter().enumerate() {
            fs.write(self.path_of(segment, FileKind::Log), bytes);
            if self.has_indexes {
                let here: Vec<_> = placed.iter().filter(|batch| batch.segment == segment).collect();
                self.write_indexes(&fs, segment, &here);
            }
        }
        if self.has_indexes {
            self.write_producers(&fs);
        }
        if self.has_epochs {
            fs.write(Path::new(PARTITION).join("leader-epoch-checkpoint"), self.epochs());
        }
        self.write_close(&fs);
        (fs, placed)
    }

    fn write_close(&self, fs: &MemoryFs) {
        let root = Path::new(ROOT);
        if self.close != Close::Open {
            fs.write(root.join(".kafka_cleanshutdown"), Vec::new());
            let snapshot = ProducerSnapshot::default().encode().unwrap();
            fs.write(side_path(self.end(), FileKind::Snapshot), snapshot);
        }
        if self.close == Close::Clean {
            let mut checkpoint = OffsetCheckpoint::default();
            checkpoint.insert(TOPIC, 0, self.end());
            fs.write(root.join("recovery-point-offset-checkpoint"), checkpoint.encode());
        }
    }

    /// The leader-epoch checkpoint that belongs to the batches.
    fn epochs(&self) -> Vec<u8> {
        let mut starts: BTreeMap<i32, i64> = BTreeMap::new();
        for batch in self.batches() {
            starts.entry(batch.leader_epoch).or_insert(batch.base_offset);
        }
        let mut lines = format!("0\n{}\n", starts.len());
        for (epoch, start) in starts {
            lines.extend([epoch.to_string(), format!(" {start}\n")]);
        }
        lines.into_bytes()
    }

    fn write_indexes(&self, fs: &MemoryFs, segment: usize, placed: &[&Placed]) {
        let base = self.segments[segment].0;
        let is_sealed = segment + 1 < self.segments.len();
        let (mut offsets, mut times) = (Vec::new(), Vec::new());
        let mut since = 0;
        let mut largest: Option<TimeEntry> = None;
        let mut written: Option<i64> = None;
        let mut write_time = |entry: Option<TimeEntry>| {
            let new = entry.filter(|entry| written.is_none_or(|last| entry.timestamp > last));
            if let Some(entry) = new {
                times.extend(entry.encode(base).unwrap());
                written = Some(entry.timestamp);
            }
        };
        for batch in placed {
            let (last, time) = (batch.header.last_offset(), batch.header.max_timestamp);
            if largest.is_none_or(|entry| time > entry.timestamp) {
                largest = Some(TimeEntry { timestamp: time, offset: last });
            }
            if since > self.index_interval {
                let position = u32::try_from(batch.position).unwrap();
                offsets.extend(OffsetEntry { offset: last, position }.encode(base).unwrap());
                write_time(largest);
                since = 0;
            }
            since += batch.header.total_bytes();
        }
        if is_sealed || self.close != Close::Open {
            write_time(largest);
        }
        fs.write(self.path_of(segment, FileKind::Index), offsets);
        fs.write(self.path_of(segment, FileKind::TimeIndex), times);
    }

    /// Transaction indexes, and a producer snapshot at the base of every segment but the first.
    fn write_producers(&self, fs: &MemoryFs) {
        let mut open: BTreeMap<i64, i64> = BTreeMap::new();
        for (segment, (base, batches)) in self.segments.iter().enumerate() {
            if segment > 0 {
                fs.write(side_path(*base, FileKind::Snapshot), snapshot_of(&open));
            }
            let mut aborted = Vec::new();
            for batch in batches {
                let Some(producer_id) = batch.transaction else { continue };
                match batch.marker {
                    None => drop(open.entry(producer_id).or_insert(batch.base_offset)),
                    Some(marker) => {
                        let first = open.remove(&producer_id);
                        if let (Some(first_offset), ControlType::Abort) = (first, marker) {
                            let stable = open.values().min().copied();
                            let entry = AbortedTxn {
                                producer_id,
                                first_offset,
                                last_offset: batch.last_offset,
                                last_stable_offset: stable.unwrap_or(batch.last_offset + 1),
                            };
                            entry.encode(&mut aborted);
                        }
                    }
                }
            }
            if !aborted.is_empty() {
                fs.write(self.path_of(segment, FileKind::TxnIndex), aborted);
            }
        }
    }
}

fn side_path(base_offset: i64, kind: FileKind) -> PathBuf {
    Path::new(PARTITION).join(SegmentFile::live(base_offset, kind).to_string())
}

fn snapshot_of(open: &BTreeMap<i64, i64>) -> Vec<u8> {
    let entries = open.iter().map(|(producer_id, first)| ProducerEntry {
        producer_id: *producer_id,
        producer_epoch: 0,
        last_sequence: 0,
        last_offset: *first,
        offset_delta: 0,
        timestamp: T0,
        coordinator_epoch: -1,
        txn_first_offset: *first,
    });
    ProducerSnapshot { entries: entries.collect() }.encode().unwrap()
}

//! What `read_committed` may see of a partition.
//!
//! A transaction's records are seen once its COMMIT marker stands in the log; nothing at or above
//! the first offset of the earliest open transaction (the last stable offset) is seen at all. Both
//! follow from the batch headers. A sealed segment is not walked when its `.txnindex` lists its
//! aborted transactions and the producer snapshot behind it tells which were still open.

use std::collections::HashMap;

use kafkaseg_core::fs::{Dir, Fs};
use kafkaseg_core::index::TxnIndexView;
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::producer::ProducerSnapshot;
use kafkaseg_core::record::{BatchView, ControlType, Records};
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::options::{OnCorrupt, OnMissing, ScanOptions};
use crate::pulse::{ENTRIES_BETWEEN, Pulse};
use crate::reader::HEAD_READ_BYTES;
use crate::snapshot::{FileOf, Partition};

/// The offsets of one producer that an ABORT marker took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Aborted {
    producer_id: i64,
    first: i64,
    last: i64,
}

/// The committed view of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// By producer, then first offset.
    aborted: Vec<Aborted>,
    /// Records at or above it are not seen.
    pub last_stable: i64,
}

impl Committed {
    /// Whether a transactional batch was taken back.
    pub fn is_aborted(&self, producer_id: i64, base_offset: i64) -> bool {
        let after = self
            .aborted
            .partition_point(|txn| (txn.producer_id, txn.first) <= (producer_id, base_offset));
        after.checked_sub(1).and_then(|last| self.aborted.get(last)).is_some_and(|txn| {
            txn.producer_id == producer_id && txn.first <= base_offset && base_offset <= txn.last
        })
    }

    /// Works the view out from a partition's files.
    pub fn of<S: Fs>(
        fs: &S,
        partition: &Partition,
        options: &ScanOptions,
        pulse: &mut Pulse<'_>,
    ) -> Result<Self> {
        let mut state = State { open: HashMap::new(), aborted: Vec::new() };
        for index in 0..partition.segments.len() {
            if state.take_from_index(fs, partition, index)? {
                continue;
            }
            if !state.walk(fs, partition, index, options, pulse)? {
                break;
            }
        }
        state.aborted.sort_unstable();
        let last_stable = state.open.values().copied().min().unwrap_or(i64::MAX);
        Ok(Self { aborted: state.aborted, last_stable })
    }
}

struct State {
    /// First offset of each producer's open transaction.
    open: HashMap<i64, i64>,
    aborted: Vec<Aborted>,
}

impl State {
    /// Takes a sealed segment's transactions from its index and the snapshot behind it.
    fn take_from_index<S: Fs>(
        &mut self,
        fs: &S,
        partition: &Partition,
        index: usize,
    ) -> Result<bool> {
        let (Some(segment), Some(next)) =
            (partition.segments.get(index), partition.segments.get(index + 1))
        else {
            return Ok(false);
        };
        if !partition.producer_snapshots.contains(&next.base_offset) {
            return Ok(false);
        }
        let directory = partition.open_dir(fs)?;
        let name = SegmentFile::live(segment.base_offset, FileKind::TxnIndex).to_string();
        let Some(bytes) = directory.read_small(&name)? else { return Ok(false) };
        let view = TxnIndexView::new(segment.base_offset, &bytes);
        let name = SegmentFile::live(next.base_offset, FileKind::Snapshot).to_string();
        let snapshot = directory.read_small(&name)?;
        let Some(Ok(snapshot)) = snapshot.map(|bytes| ProducerSnapshot::decode(&bytes)) else {
            return Ok(false);
        };
        let (Ok(entries), Ok(())) = (view.iter().collect::<Result<Vec<_>, _>>(), view.sanity())
        else {
            return Ok(false);
        };
        self.aborted.extend(entries.iter().map(|txn| Aborted {
            producer_id: txn.producer_id,
            first: txn.first_offset,
            last: txn.last_offset,
        }));
        self.open = snapshot
            .entries
            .iter()
            .filter(|entry| entry.txn_first_offset >= 0)
            .map(|entry| (entry.producer_id, entry.txn_first_offset))
            .collect();
        Ok(true)
    }

    /// Walks a segment's batches; false when the partition ends in it.
    fn walk<S: Fs>(
        &mut self,
        fs: &S,
        partition: &Partition,
        index: usize,
        options: &ScanOptions,
        pulse: &mut Pulse<'_>,
    ) -> Result<bool> {
        let Some(segment) = partition.segments.get(index) else { return Ok(false) };
        let file = match partition.open_segment(fs, segment) {
            Ok(file) => file,
            Err(Error::Changed { .. }) if options.on_missing == OnMissing::Skip => return Ok(true),
            Err(error) => return Err(error),
        };
        // A scan that stops at damage must not count transactions behind it, so it looks as closely
        // here as the scan itself will.
        let (depth, read_bytes) = if options.on_corrupt == OnCorrupt::Stop && options.verify {
            (Depth::Checked, 256 << 10)
        } else {
            (Depth::Heads, HEAD_READ_BYTES)
        };
        let window = Window::new(file, 0, segment.bytes, read_bytes);
        let mut walker = Walker::new(window, partition.span(index), depth);
        for entries in 0_u32.. {
            if entries.is_multiple_of(ENTRIES_BETWEEN) {
                pulse()?;
            }
            match walker.step_with(pulse)? {
                Step::Entry(head) => self.note::<S>(&head, &mut walker)?,
                Step::Damage { .. } if options.on_corrupt == OnCorrupt::Skip => {}
                Step::Damage { .. } => return Ok(false),
                Step::Torn { .. } | Step::End => return Ok(true),
            }
        }
        Ok(true)
    }

    fn note<S: Fs>(&mut self, head: &EntryHead, walker: &mut Walker<FileOf<S>>) -> Result<()> {
        let EntryHead::Batch(header) = head else { return Ok(()) };
        if !header.attributes.is_transactional() {
            return Ok(());
        }
        if !header.attributes.is_control() {
            self.open.entry(header.producer_id).or_insert(header.base_offset);
            return Ok(());
        }
        let marker = marker_of(walker.load()?);
        match marker {
            Some(ControlType::Abort) => {
                if let Some(first) = self.open.remove(&header.producer_id) {
                    let last = header.last_offset();
                    self.aborted.push(Aborted { producer_id: header.producer_id, first, last });
                }
            }
            Some(ControlType::Commit) => {
                self.open.remove(&header.producer_id);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The marker in a control batch; a damaged one decides nothing.
fn marker_of(bytes: &[u8]) -> Option<ControlType> {
    let batch = BatchView::parse(bytes).ok()?;
    batch.check_crc().ok()?;
    let record = Records::new(batch.header(), batch.payload()).next()?.ok()?;
    ControlType::from_key(record.key).ok()
}

//! What `read_committed` may see of a partition.
//!
//! A transaction's records are seen once its COMMIT marker stands in the log; nothing at or above
//! the first offset of the earliest open transaction (the last stable offset) is seen at all. Both
//! follow from the batch headers. A sealed segment is not walked when its `.txnindex` lists its
//! aborted transactions and the producer snapshot behind it tells which were still open.

use std::collections::HashMap;

use kafkaseg_core::fs::{Dir, File, Fs};
use kafkaseg_core::index::{AbortedTxn, TxnIndexView};
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::producer::ProducerSnapshot;
use kafkaseg_core::record::{BatchView, ControlType, Records};
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{CorruptKind, Error, Result};
use serde::{Deserialize, Serialize};

use crate::cut::entry_at;
use crate::options::{OnCorrupt, OnMissing, ScanOptions};
use crate::pulse::{ENTRIES_BETWEEN, Pulse};
use crate::reader::{HEAD_READ_BYTES, READ_BYTES};
use crate::snapshot::{FileOf, Partition};

/// More than a batch that holds nothing but a transaction marker takes (78 bytes in every release).
const MARKER_BYTES_MAX: u64 = 128;

/// Entries of a transaction index that are confirmed in the log; with more, a walk is cheaper: each
/// takes two looks through the offset index.
const CONFIRMED_MAX: usize = 100;

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
    /// Offsets not seen because the log ends behind them, for a scan that stops at damage: from the
    /// first of a transaction that is open there, to the damage. Ascending.
    held: Vec<(i64, i64)>,
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

    /// Whether a transaction that damage cuts off holds back a batch.
    pub fn is_held(&self, last_offset: i64) -> bool {
        let after = self.held.partition_point(|(_, end)| *end <= last_offset);
        self.held.get(after).is_some_and(|(first, _)| *first <= last_offset)
    }

    /// Works the view out from a partition's files.
    pub fn of<S: Fs>(
        fs: &S,
        partition: &Partition,
        options: &ScanOptions,
        pulse: &mut Pulse<'_>,
    ) -> Result<Self> {
        // A scan that passes damage, or stops at it, must count no transaction by bytes that it will
        // not serve, so it looks as closely here as it will then.
        let is_close = options.verify && options.on_corrupt != OnCorrupt::Error;
        let depth = if is_close { Depth::Checked } else { Depth::Heads };
        let mut state = State::of(fs, partition, options, depth, pulse)?;
        // A scan that ends with an error at damage meets all of it itself, unless a transaction
        // stays open and ends the scan before: perhaps its marker is what is damaged.
        if depth == Depth::Heads && options.verify && !state.open.is_empty() {
            state = State::of(fs, partition, options, Depth::Checked, pulse)?;
        }
        state.aborted.sort_unstable();
        let last_stable = state.open.values().copied().min().unwrap_or(i64::MAX);
        Ok(Self { aborted: state.aborted, held: state.held, last_stable })
    }
}

#[derive(Default)]
struct State {
    /// First offset of each producer's open transaction.
    open: HashMap<i64, i64>,
    aborted: Vec<Aborted>,
    held: Vec<(i64, i64)>,
}

impl State {
    fn of<S: Fs>(
        fs: &S,
        partition: &Partition,
        options: &ScanOptions,
        depth: Depth,
        pulse: &mut Pulse<'_>,
    ) -> Result<Self> {
        let mut state = Self::default();
        for index in 0..partition.segments.len() {
            // What is open at damage, where a scan stops, is in no index.
            let is_known = options.on_corrupt != OnCorrupt::Stop
                && state.take_from_index(fs, partition, index, pulse)?;
            if !is_known {
                state.walk(fs, partition, index, options, depth, pulse)?;
            }
        }
        Ok(state)
    }

    /// Takes a sealed segment's transactions from its index and the snapshot behind it.
    fn take_from_index<S: Fs>(
        &mut self,
        fs: &S,
        partition: &Partition,
        index: usize,
        pulse: &mut Pulse<'_>,
    ) -> Result<bool> {
        let (Some(segment), Some(next)) =
            (partition.segments.get(index), partition.segments.get(index + 1))
        else {
            return Ok(false);
        };
        if !partition.producer_snapshots.contains(&next.base_offset) {
            return Ok(false);
        }
        let directory = match partition.open_dir(fs) {
            Ok(directory) => directory,
            // The walk will meet the same and knows what to do about it.
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
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
        // An empty file proves nothing: what crashes leave is often empty.
        if entries.is_empty() || entries.len() > CONFIRMED_MAX {
            return Ok(false);
        }
        for entry in &entries {
            pulse()?;
            if !is_confirmed(fs, partition, entry)? {
                return Ok(false);
            }
        }
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

    /// Walks a segment's batches.
    fn walk<S: Fs>(
        &mut self,
        fs: &S,
        partition: &Partition,
        index: usize,
        options: &ScanOptions,
        depth: Depth,
        pulse: &mut Pulse<'_>,
    ) -> Result<()> {
        let Some(segment) = partition.segments.get(index) else { return Ok(()) };
        let next_base = partition.segments.get(index + 1).map(|next| next.base_offset);
        let file = match partition.open_segment(fs, segment) {
            Ok(file) => file,
            Err(Error::Changed { .. }) if options.on_missing == OnMissing::Skip => {
                self.lose_markers(segment.base_offset);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let read_bytes = if depth == Depth::Heads { HEAD_READ_BYTES } else { READ_BYTES };
        let window = Window::new(file, 0, segment.bytes, read_bytes);
        let mut walker = Walker::new(window, partition.span(index), depth);
        for entries in 0_u32.. {
            if entries.is_multiple_of(ENTRIES_BETWEEN) {
                pulse()?;
            }
            let (position, bytes, kind) = match walker.step_with(pulse)? {
                Step::Entry(head) => match self.note::<S>(&head, &mut walker)? {
                    Ok(()) => continue,
                    Err(kind) => (walker.position(), to_u64(head.total_bytes()), kind),
                },
                Step::Damage { position, bytes, kind } => (position, bytes, kind),
                Step::Torn { .. } | Step::End => break,
            };
            match options.on_corrupt {
                OnCorrupt::Error => {
                    return Err(Error::corrupt(walker.file().path(), position, kind));
                }
                OnCorrupt::Stop => self.hold_back(walker.expected()),
                OnCorrupt::Skip => {}
            }
            let damage = Damage { position, bytes, file_bytes: segment.bytes, next_base };
            if damage.may_hold_a_marker(walker.file())? {
                self.lose_markers(walker.expected());
            }
        }
        Ok(())
    }

    /// The log ends at an offset for a scan that stops there, and what is open there stays so. (One
    /// that begins behind it sees what follows.)
    fn hold_back(&mut self, offset: i64) {
        if let Some(first) = self.open.values().copied().min() {
            self.held.push((first, offset));
        }
    }

    /// A marker may be lost at an offset: whatever is open there may have ended either way, so it
    /// is not shown, and holds back nothing that comes after.
    fn lose_markers(&mut self, offset: i64) {
        for (producer_id, first) in self.open.drain() {
            let last = offset.saturating_sub(1).max(first);
            self.aborted.push(Aborted { producer_id, first, last });
        }
    }

    fn note<S: Fs>(
        &mut self,
        head: &EntryHead,
        walker: &mut Walker<FileOf<S>>,
    ) -> Result<Result<(), CorruptKind>> {
        let EntryHead::Batch(header) = head else { return Ok(Ok(())) };
        if !header.attributes.is_transactional() {
            return Ok(Ok(()));
        }
        if !header.attributes.is_control() {
            self.open.entry(header.producer_id).or_insert(header.base_offset);
            return Ok(Ok(()));
        }
        // Compaction leaves the empty batch of a marker whose transaction is long gone.
        if header.records_count == 0 {
            return Ok(Ok(()));
        }
        let marker = match marker_of(walker.load()?) {
            Ok(marker) => marker,
            Err(kind) => return Ok(Err(kind)),
        };
        if let ControlType::Abort | ControlType::Commit = marker
            && let Some(first) = self.open.remove(&header.producer_id)
            && marker == ControlType::Abort
        {
            let last = header.last_offset();
            self.aborted.push(Aborted { producer_id: header.producer_id, first, last });
        }
        Ok(Ok(()))
    }
}

/// Whether the log has what an entry of the transaction index says: the index has no checksum.
fn is_confirmed<S: Fs>(fs: &S, partition: &Partition, txn: &AbortedTxn) -> Result<bool> {
    let of_producer = |head: &EntryHead, is_control: bool| match head {
        EntryHead::Batch(header) => {
            header.producer_id == txn.producer_id
                && header.attributes.is_transactional()
                && header.attributes.is_control() == is_control
        }
        EntryHead::Message(_) => false,
    };
    let Some((head, bytes)) = entry_at(fs, partition, txn.last_offset)? else { return Ok(false) };
    if !of_producer(&head, true) || marker_of(&bytes) != Ok(ControlType::Abort) {
        return Ok(false);
    }
    let first = entry_at(fs, partition, txn.first_offset)?;
    Ok(first.is_some_and(|(head, _)| {
        of_producer(&head, false) && head.base_offset() == Some(txn.first_offset)
    }))
}

/// The marker in a control batch.
fn marker_of(bytes: &[u8]) -> Result<ControlType, CorruptKind> {
    let batch = BatchView::parse(bytes)?;
    batch.check_crc()?;
    let mut records = Records::new(batch.header(), batch.payload());
    let record = records.next_record()?.ok_or(CorruptKind::RecordCount(0))?;
    ControlType::from_key(record.key)
}

/// Damaged bytes and what follows them.
struct Damage {
    position: u64,
    bytes: u64,
    file_bytes: u64,
    /// Base offset of the next segment.
    next_base: Option<i64>,
}

impl Damage {
    /// Whether a transaction marker can be among the bytes. One batch that is much larger than a
    /// marker is none; that it is one batch is known where its length and its last offset lead to
    /// what follows.
    fn may_hold_a_marker<F: File>(&self, file: &F) -> Result<bool> {
        if self.bytes <= MARKER_BYTES_MAX {
            return Ok(self.bytes > 0);
        }
        let Some(lost) = head_at(file, self.position, self.bytes)? else { return Ok(true) };
        let end = self.position.saturating_add(self.bytes);
        let left = self.file_bytes.saturating_sub(end);
        let next = match left {
            0 => self.next_base,
            left => head_at(file, end, left)?.and_then(|head| head.base_offset()),
        };
        let is_one = to_u64(lost.total_bytes()) == self.bytes
            && next == Some(lost.last_offset().saturating_add(1));
        Ok(!is_one)
    }
}

fn head_at<F: File>(file: &F, position: u64, left: u64) -> Result<Option<EntryHead>> {
    let mut start = [0; EntryHead::BYTES];
    let read = file.read_at(&mut start, position)?;
    Ok(EntryHead::read(start.get(..read).unwrap_or_default(), left).ok())
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

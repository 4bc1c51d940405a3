//! Reading a segment from front to back: where its good entries end, and what its indexes must be.
//!
//! Nothing is written here. The indexes are made in memory, at most as long as their files may be,
//! and compared with the files afterwards: a recovery that finds nothing wrong changes nothing, and
//! needs no space.
//!
//! An index entry is due when more than `index.interval.bytes` lie between a batch and the last one
//! that was indexed, which is the rule of appends told by positions.

use super::active::to_u64;
use super::{Depth, EntryHead, Span, Step, Walker, Window};
use crate::error::Result;
use crate::fs::File;
use crate::index::{AbortedTxn, OffsetEntry, TimeEntry};
use crate::record::CorruptKind;

/// Bytes read at once; what is read stays in the second-level cache while it is checked.
const READ_BYTES: usize = 256 << 10;

/// Good bytes between two calls of the progress function.
const PROGRESS_BYTES: u64 = 16 << 20;

/// A disk loses what was not synced by the sector.
const SECTOR: u64 = 512;

/// How the good entries of a segment end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the file.
    Whole,
    /// With bytes that were never a whole entry; nothing good follows in the file.
    Torn { bytes: u64, kind: CorruptKind, is_zeros: bool },
    /// With damage that good entries follow.
    Damage { bytes: u64, kind: CorruptKind, is_hole: bool },
    /// With an entry whose offset the segment's base cannot express.
    Overflow,
}

/// What a segment is, by its own entries.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    /// Bytes of good entries.
    pub(crate) size: u64,
    /// The offset after the last of them.
    pub(crate) next_offset: i64,
    /// The largest timestamp, −1 without any, and the last offset of the first batch with it.
    pub(crate) largest: TimeEntry,
    pub(crate) ending: Ending,
    pub(crate) offset_index: Vec<u8>,
    pub(crate) time_index: Vec<u8>,
    pub(crate) txn_index: Vec<u8>,
}

/// What a rebuild is told.
pub(crate) struct Rule {
    /// `index.interval.bytes`.
    pub(crate) interval: u64,
    /// `segment.index.bytes`.
    pub(crate) index_bytes: usize,
}

/// Who learns of each good entry, in order: with the transaction that it aborts, if any.
pub(crate) type Witness<'a> = &'a mut dyn FnMut(&EntryHead, &[u8]) -> Result<Option<AbortedTxn>>;

/// Reads the first `bytes` of a segment file.
pub(crate) fn rebuild<F: File>(
    file: F,
    bytes: u64,
    span: Span,
    rule: &Rule,
    witness: Witness<'_>,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Rebuilt> {
    let base_offset = span.segment_base;
    let next_offset = span.expected.max(base_offset);
    let mut made = Indexer::new(base_offset, rule);
    let mut rebuilt = Rebuilt {
        size: 0,
        next_offset,
        largest: made.largest,
        ending: Ending::Whole,
        offset_index: Vec::new(),
        time_index: Vec::new(),
        txn_index: Vec::new(),
    };
    let mut walker = Walker::new(Window::new(file, 0, bytes, READ_BYTES), span, Depth::Checked);
    let mut told = 0;
    rebuilt.ending = loop {
        match walker.step_with(&mut || progress(0))? {
            Step::Entry(head) => {
                if !made.add(&head, walker.position()) {
                    break Ending::Overflow;
                }
                if let Some(aborted) = witness(&head, walker.bytes())? {
                    aborted.encode(&mut rebuilt.txn_index);
                }
                rebuilt.size = walker.position().saturating_add(to_u64(head.total_bytes()));
                rebuilt.next_offset = head.last_offset().saturating_add(1);
                if rebuilt.size - told >= PROGRESS_BYTES {
                    progress(rebuilt.size - told)?;
                    told = rebuilt.size;
                }
            }
            Step::End => break Ending::Whole,
            Step::Torn { position, bytes, kind } => {
                let is_zeros = is_zeros(walker.file(), position, bytes)?;
                break Ending::Torn { bytes, kind, is_zeros };
            }
            Step::Damage { position, bytes, kind } => {
                let is_hole = has_lost_sector(walker.file(), position, bytes, rebuilt.next_offset)?;
                break Ending::Damage { bytes, kind, is_hole };
            }
        }
    };
    progress(rebuilt.size - told)?;
    rebuilt.largest = made.largest;
    (rebuilt.offset_index, rebuilt.time_index) = made.finish();
    Ok(rebuilt)
}

/// Makes index entries as appends do.
struct Indexer<'a> {
    base_offset: i64,
    rule: &'a Rule,
    indexed_at: u64,
    largest: TimeEntry,
    /// Timestamp of the last time-index entry.
    timed: i64,
    offsets: Vec<u8>,
    times: Vec<u8>,
}

impl<'a> Indexer<'a> {
    fn new(base_offset: i64, rule: &'a Rule) -> Self {
        let largest = TimeEntry { timestamp: -1, offset: base_offset };
        let (offsets, times) = (Vec::new(), Vec::new());
        Self { base_offset, rule, indexed_at: 0, largest, timed: -1, offsets, times }
    }

    /// `false` when the segment cannot express the entry's offset.
    fn add(&mut self, head: &EntryHead, position: u64) -> bool {
        let offset = head.last_offset();
        let Some(entry) = u32::try_from(position)
            .ok()
            .and_then(|position| OffsetEntry { offset, position }.encode(self.base_offset))
        else {
            return false;
        };
        if head.max_timestamp() > self.largest.timestamp {
            self.largest = TimeEntry { timestamp: head.max_timestamp(), offset };
        }
        if position.saturating_sub(self.indexed_at) > self.rule.interval {
            self.indexed_at = position;
            if self.offsets.len() + entry.len() <= self.rule.index_bytes {
                self.offsets.extend(entry);
            }
            self.add_time(false);
        }
        true
    }

    fn add_time(&mut self, is_final: bool) {
        let Some(entry) = self.largest.encode(self.base_offset) else { return };
        // One slot is kept for the final entry.
        let room = self.rule.index_bytes.saturating_sub(if is_final { 0 } else { entry.len() });
        if self.largest.timestamp > self.timed && self.times.len() + entry.len() <= room {
            self.timed = self.largest.timestamp;
            self.times.extend(entry);
        }
    }

    fn finish(mut self) -> (Vec<u8>, Vec<u8>) {
        self.add_time(true);
        (self.offsets, self.times)
    }
}

/// Whether a part of a file holds nothing but zeros.
fn is_zeros<F: File>(file: &F, position: u64, bytes: u64) -> Result<bool> {
    let mut buffer = vec![0; READ_BYTES];
    let mut at = position;
    let end = position.saturating_add(bytes);
    while at < end {
        let ask = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(buffer.get_mut(..ask).unwrap_or_default(), at)?;
        let read = buffer.get(..read).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        if read.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at = at.saturating_add(to_u64(read.len()));
    }
    Ok(true)
}

/// How many zeros an entry may begin with that has this offset or a higher one: those of the offset,
/// and of the size behind it.
fn zeros_of_an_entry(offset: i64) -> u64 {
    const OFFSET_AND_SIZE: u64 = 12;
    match u64::try_from(offset) {
        Ok(1..) => u64::from(offset.leading_zeros() / 8),
        _ => OFFSET_AND_SIZE - 1,
    }
}

/// Whether a whole sector of a part of a file reads as zeros, as one does that a power cut kept from
/// the device while later ones reached it; or the rest of the sector that the part begins in, where
/// the device had the sector as it was before. Damage of other kinds leaves no such sector behind.
fn has_lost_sector<F: File>(file: &F, position: u64, bytes: u64, offset: i64) -> Result<bool> {
    let end = position.saturating_add(bytes);
    let mut at = position.next_multiple_of(SECTOR);
    if at <= end
        && at - position > zeros_of_an_entry(offset)
        && is_zeros(file, position, at - position)?
    {
        return Ok(true);
    }
    while at.saturating_add(SECTOR) <= end {
        if is_zeros(file, at, SECTOR)? {
            return Ok(true);
        }
        at = at.saturating_add(SECTOR);
    }
    Ok(false)
}

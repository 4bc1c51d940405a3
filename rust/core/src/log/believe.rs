//! Whether the indexes of a segment that was closed cleanly belong to it.
//!
//! Nothing protects an index. Kafka believes every index of a clean directory; here the ends are held
//! against the log, which costs two or three small reads a segment, and small indexes are checked
//! whole. An entry in the middle of a large index is believed until a lookup leads somewhere
//! implausible.

use crate::error::Result;
use crate::fs::{Dir, File};
use crate::index::{
    OFFSET_ENTRY_BYTES, OffsetEntry, OffsetIndexView, TIME_ENTRY_BYTES, TXN_ENTRY_BYTES, TimeEntry,
    TimeIndexView, TxnIndexView,
};
use crate::names::FileKind;
use crate::segment::EntryHead;
use crate::segment::name;
use crate::segment::read::Heads;

/// Indexes up to this size are checked entry by entry.
const WHOLE_BYTES: usize = 64 << 10;

/// A log without a single index entry is believed up to this size.
const UNINDEXED_BYTES: u64 = 2 << 20;

/// A segment whose files can be believed.
pub(super) struct Sealed {
    pub(super) size: u64,
    /// The offset after its last entry.
    pub(super) next_offset: i64,
}

/// Looks at a segment; `None` when it must be read whole.
pub(super) fn sealed<D: Dir>(
    dir: &D,
    base_offset: i64,
    size: u64,
    next_base: Option<i64>,
    interval: u64,
) -> Result<Option<Sealed>> {
    let index = Tail::of(dir, base_offset, FileKind::Index, OFFSET_ENTRY_BYTES)?;
    let times = Tail::of(dir, base_offset, FileKind::TimeIndex, TIME_ENTRY_BYTES)?;
    let (index, times) = match (index, times) {
        (Some(index), Some(times)) => (index, times),
        // A segment that nothing was appended to needs no index.
        (index, times) if size == 0 => (index.unwrap_or_default(), times.unwrap_or_default()),
        _ => return Ok(None),
    };
    if !txns_are_sane(dir, base_offset)? {
        return Ok(None);
    }
    let Some(ends) = Ends::of(base_offset, &index, &times, interval) else {
        return Ok(None);
    };
    let Some(next_offset) = walk(dir, base_offset, size, &ends)? else {
        return Ok(None);
    };
    let fits = next_base.is_none_or(|next_base| next_offset <= next_base);
    Ok(fits.then_some(Sealed { size, next_offset }))
}

/// The last offsets that the two indexes of a segment name, as far as they make sense.
pub(super) fn last_indexed<D: Dir>(dir: &D, base_offset: i64) -> Result<[Option<i64>; 2]> {
    let index = Tail::of(dir, base_offset, FileKind::Index, OFFSET_ENTRY_BYTES)?;
    let index = index.unwrap_or_default();
    let view = OffsetIndexView::new(base_offset, &index.bytes);
    let sane = view.sanity().ok();
    let last = sane.and_then(|()| view.iter().next_back()).map(|entry| entry.offset);
    let times = Tail::of(dir, base_offset, FileKind::TimeIndex, TIME_ENTRY_BYTES)?;
    let times = times.unwrap_or_default();
    let view = TimeIndexView::new(base_offset, &times.bytes);
    let sane = view.sanity().ok();
    Ok([last, sane.and_then(|()| view.iter().next_back()).map(|entry| entry.offset)])
}

/// How the indexes of a segment end.
struct Ends {
    /// The last entry.
    indexed: Option<OffsetEntry>,
    /// The entry with the largest timestamp.
    timed: Option<TimeEntry>,
    /// Where the search for the batch with that timestamp begins, if it is short.
    timed_from: Option<u64>,
    /// Bytes that may lie behind the last indexed entry before another one is due.
    slack: u64,
}

impl Ends {
    /// `None` when an index cannot be one.
    fn of(base_offset: i64, index: &Tail, times: &Tail, interval: u64) -> Option<Self> {
        let view = OffsetIndexView::new(base_offset, &index.bytes);
        let is_whole = !index.is_torn && view.valid_entries() == view.len();
        view.sanity().ok().filter(|()| is_whole)?;
        let time_view = TimeIndexView::new(base_offset, &times.bytes);
        let is_whole = !times.is_torn && time_view.valid_entries() == time_view.len();
        time_view.sanity().ok().filter(|()| is_whole)?;
        let indexed = view.len().checked_sub(1).and_then(|last| view.entry(last));
        // Nothing says which interval an adopted log was written with, but the distances between
        // its entries; without any, the time index, which gets an entry along with the other and
        // one more at the end.
        let mut before = 0;
        let distances = view.iter().map(|entry| {
            let distance = u64::from(entry.position.saturating_sub(before));
            before = entry.position;
            distance
        });
        let widest = distances.skip(usize::from(index.is_part)).max().unwrap_or(0);
        let slack = if indexed.is_none() && time_view.len() <= 1 {
            UNINDEXED_BYTES
        } else {
            interval.max(widest).saturating_mul(2)
        };
        let last_time = time_view.len().checked_sub(1).and_then(|last| time_view.entry(last));
        let before_timed = last_time.and_then(|entry| view.lookup(entry.offset));
        let timed_from = match before_timed {
            Some(entry) => Some(u64::from(entry.position)),
            None => (!index.is_part).then_some(0),
        };
        Some(Self { indexed, timed: last_time, timed_from, slack })
    }
}

/// From the last index entry to the end of the file: the offset after the last entry, or `None` when
/// the indexes are not those of the file, or the file does not end with a whole entry.
fn walk<D: Dir>(dir: &D, base_offset: i64, size: u64, ends: &Ends) -> Result<Option<i64>> {
    let from = ends.indexed.map_or(0, |entry| u64::from(entry.position));
    if size == 0 || from >= size {
        let is_empty = size == 0 && ends.indexed.is_none() && ends.timed.is_none();
        return Ok(is_empty.then_some(base_offset));
    }
    let file = dir.open(&name(base_offset, FileKind::Log))?;
    let mut heads = Heads::new(&file, from, size);
    let mut next = base_offset;
    let (mut is_first, mut largest) = (true, -1);
    loop {
        let (position, head) = match heads.next() {
            Ok(Some(found)) => found,
            Ok(None) => break,
            Err(crate::Error::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let starts = head.base_offset().unwrap_or(base_offset);
        // Older brokers index the first offset of a batch, or the last of several.
        let is_misplaced = is_first && ends.indexed.is_some_and(|entry| starts > entry.offset);
        // An entry that is due and missing: the index was emptied or cut.
        let is_overdue = !is_first && position.saturating_sub(from) > ends.slack;
        if is_misplaced || is_overdue || starts < base_offset {
            return Ok(None);
        }
        is_first = false;
        largest = largest.max(head.max_timestamp());
        next = head.last_offset().saturating_add(1);
    }
    // Entries beyond the end would keep later ones out.
    let is_within = ends.indexed.is_none_or(|entry| entry.offset < next)
        && ends.timed.is_none_or(|entry| entry.offset < next);
    let is_timed = ends.timed.map_or(-1, |entry| entry.timestamp) >= largest;
    let is_right = is_within && is_timed && has_timestamp(&file, size, ends)?;
    Ok(is_right.then_some(next))
}

/// Whether the batch that the last time-index entry names has that timestamp. Old formats, and
/// batches that compaction removed, say nothing.
fn has_timestamp<F: File>(file: &F, size: u64, ends: &Ends) -> Result<bool> {
    let (Some(timed), Some(from)) = (ends.timed, ends.timed_from) else {
        return Ok(true);
    };
    let mut heads = Heads::new(file, from, size);
    loop {
        match heads.next() {
            Ok(Some((position, _))) if position.saturating_sub(from) > ends.slack => {
                return Ok(true);
            }
            Ok(Some((_, head))) if head.last_offset() < timed.offset => {}
            Ok(Some((_, EntryHead::Batch(header)))) if header.base_offset <= timed.offset => {
                return Ok(header.max_timestamp == timed.timestamp);
            }
            Ok(_) => return Ok(true),
            Err(crate::Error::Corrupt { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// The last entries of an index file.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// The file is no whole number of entries long.
    is_torn: bool,
    /// There are more entries before these.
    is_part: bool,
}

impl Tail {
    /// `None` when the file is missing.
    fn of<D: Dir>(dir: &D, base: i64, kind: FileKind, entry: usize) -> Result<Option<Self>> {
        let file = match dir.open(&name(base, kind)) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let length = file.facts()?.bytes;
        let entry_bytes = u64::try_from(entry).unwrap_or(1);
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        let is_part = whole > WHOLE_BYTES;
        let ask = if is_part { entry.saturating_mul(2) } else { whole };
        let from = (length - length % entry_bytes)
            .saturating_sub(u64::try_from(ask - ask % entry).unwrap_or(0));
        let mut bytes = vec![0; ask - ask % entry];
        let read = file.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(Some(Self { bytes, is_torn: length % entry_bytes != 0, is_part }))
    }
}

/// A segment without aborted transactions needs no such file.
fn txns_are_sane<D: Dir>(dir: &D, base_offset: i64) -> Result<bool> {
    let Some(bytes) = dir.read_small(&name(base_offset, FileKind::TxnIndex))? else {
        return Ok(true);
    };
    let view = TxnIndexView::new(base_offset, &bytes);
    Ok(bytes.len().is_multiple_of(TXN_ENTRY_BYTES) && view.sanity().is_ok())
}

//! Whether the indexes of a segment that was closed cleanly belong to it.
//!
//! Nothing protects an index. Kafka believes every index of a clean directory; here the ends are held
//! against the log, which costs two or three small reads a segment, and small indexes are checked
//! whole. An entry in the middle of a large index is believed until a lookup leads somewhere
//! implausible.

use crate::error::Result;
use crate::fs::{Dir, File};
use crate::index::{
    OFFSET_ENTRY_BYTES, OffsetIndexView, TIME_ENTRY_BYTES, TXN_ENTRY_BYTES, TimeIndexView,
    TxnIndexView,
};
use crate::names::FileKind;
use crate::segment::name;
use crate::segment::read::Heads;

/// Indexes up to this size are checked entry by entry.
const WHOLE_BYTES: usize = 64 << 10;

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
    let Some(tail) = Tail::of(dir, base_offset, FileKind::Index, OFFSET_ENTRY_BYTES)? else {
        return Ok(None);
    };
    let view = OffsetIndexView::new(base_offset, &tail.bytes);
    if tail.is_torn || view.valid_entries() < view.len() || view.sanity().is_err() {
        return Ok(None);
    }
    let last = view.len().checked_sub(1).and_then(|last| view.entry(last));
    let from = last.map_or(0, |entry| u64::from(entry.position));
    if from > size || !times_are_sane(dir, base_offset)? || !txns_are_sane(dir, base_offset)? {
        return Ok(None);
    }
    let Some(next_offset) = walk(dir, base_offset, size, from, last.map(|l| l.offset), interval)?
    else {
        return Ok(None);
    };
    let next_offset = next_offset.max(base_offset);
    let fits = next_base.is_none_or(|next_base| next_offset <= next_base);
    Ok(fits.then_some(Sealed { size, next_offset }))
}

/// From the last index entry to the end of the file: the offset after the last entry, or `None` when
/// the index is not that of the file, or the file does not end with a whole entry.
fn walk<D: Dir>(
    dir: &D,
    base_offset: i64,
    size: u64,
    from: u64,
    indexed: Option<i64>,
    interval: u64,
) -> Result<Option<i64>> {
    let file = dir.open(&name(base_offset, FileKind::Log))?;
    let mut heads = Heads::new(&file, from, size);
    let mut next = base_offset;
    let mut is_first = true;
    loop {
        let (position, head) = match heads.next() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Some(next)),
            Err(crate::Error::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_indexed = is_first && indexed.is_some();
        // Older brokers index the first offset of a batch, or the last of several.
        let starts = head.base_offset().unwrap_or(base_offset);
        if is_indexed && indexed.is_some_and(|offset| starts > offset) || starts < base_offset {
            return Ok(None);
        }
        // An entry that is due and missing: the index was emptied or cut.
        if !is_first && position.saturating_sub(from) > interval.saturating_mul(2) {
            return Ok(None);
        }
        is_first = false;
        next = head.last_offset().saturating_add(1);
    }
}

/// The last entries of an index file.
struct Tail {
    bytes: Vec<u8>,
    /// The file is no whole number of entries long.
    is_torn: bool,
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
        let ask = if whole <= WHOLE_BYTES { whole } else { entry };
        let from = (length - length % entry_bytes)
            .saturating_sub(u64::try_from(ask - ask % entry).unwrap_or(0));
        let mut bytes = vec![0; ask - ask % entry];
        let read = file.read_at(&mut bytes, from)?;
        bytes.truncate(read);
        Ok(Some(Self { bytes, is_torn: length % entry_bytes != 0 }))
    }
}

fn times_are_sane<D: Dir>(dir: &D, base_offset: i64) -> Result<bool> {
    let Some(tail) = Tail::of(dir, base_offset, FileKind::TimeIndex, TIME_ENTRY_BYTES)? else {
        return Ok(false);
    };
    let view = TimeIndexView::new(base_offset, &tail.bytes);
    Ok(!tail.is_torn && view.valid_entries() == view.len() && view.sanity().is_ok())
}

/// A segment without aborted transactions needs no such file.
fn txns_are_sane<D: Dir>(dir: &D, base_offset: i64) -> Result<bool> {
    let Some(bytes) = dir.read_small(&name(base_offset, FileKind::TxnIndex))? else {
        return Ok(true);
    };
    let view = TxnIndexView::new(base_offset, &bytes);
    Ok(bytes.len().is_multiple_of(TXN_ENTRY_BYTES) && view.sanity().is_ok())
}

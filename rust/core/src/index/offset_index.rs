//! The offset index of a segment in a directory that we own: written, mapped and searched.
//!
//! The layout of the file is that of [`OffsetIndexView`](super::OffsetIndexView). Who may call what
//! beside whom, and what a crash leaves, is said at the top of `mapped.rs`; the essence: one writer,
//! many readers, and an answer is a hint that whoever reads the `.log` file checks there.

use std::path::PathBuf;
use std::sync::Arc;

use super::mapped::{IndexMode, Mapped, load};
use super::search::{greatest_at_or_below, smallest_at_or_above};
use super::{OFFSET_ENTRY_BYTES, OffsetEntry, relative_to};
use crate::error::Result;
use crate::fs::{Map, WriteDir};
use crate::names::{FileKind, FileState, SegmentFile};
use crate::record::CorruptKind;

const CELLS: usize = OFFSET_ENTRY_BYTES / size_of::<u32>();

/// From offsets to positions, about one entry every `index.interval.bytes`.
pub struct OffsetIndex<D: WriteDir> {
    base_offset: i64,
    mapped: Mapped<D, CELLS>,
}

impl<D: WriteDir> OffsetIndex<D> {
    /// The index of the segment with this base offset. An active one is made when it is missing
    /// and is `max_bytes` long, rounded down; a sealed one is not touched before the first search.
    pub fn open(dir: Arc<D>, base_offset: i64, max_bytes: u64, mode: IndexMode) -> Result<Self> {
        Self::open_as(dir, base_offset, FileState::Live, max_bytes, mode)
    }

    /// The same for a file that the cleaner or a deletion has named otherwise.
    pub fn open_as(
        dir: Arc<D>,
        base_offset: i64,
        state: FileState,
        max_bytes: u64,
        mode: IndexMode,
    ) -> Result<Self> {
        let name = SegmentFile { base_offset, kind: FileKind::Index, state };
        Ok(Self { base_offset, mapped: Mapped::open(dir, name, max_bytes, mode)? })
    }

    /// The entry with the greatest offset that is not above the target: (base offset, 0) when
    /// there is none. Reading the `.log` file from its position finds the target.
    #[inline]
    pub fn lookup(&self, target: i64) -> Result<OffsetEntry> {
        let start = OffsetEntry { offset: self.base_offset, position: 0 };
        let Some(relative) = self.clamp(target) else {
            return Ok(start);
        };
        let found = self.mapped.search(|map, entries| {
            let found = at_or_below(map, entries, relative)?;
            Some(self.decode(load(map, found)))
        })?;
        Ok(found.flatten().unwrap_or(start))
    }

    /// The entry of [`Self::lookup`] and the one after it, where there is one: what is looked for
    /// lies between their positions, or right behind the second.
    #[inline]
    pub fn lookup_pair(&self, target: i64) -> Result<(OffsetEntry, Option<OffsetEntry>)> {
        let start = OffsetEntry { offset: self.base_offset, position: 0 };
        let relative = self.clamp(target);
        let found = self.mapped.search(|map, entries| {
            let found = relative.and_then(|relative| at_or_below(map, entries, relative));
            let next = found.map_or(0, |found| found + 1);
            let entry = found.map_or(start, |found| self.decode(load(map, found)));
            (entry, (next < entries).then(|| self.decode(load(map, next))))
        })?;
        Ok(found.unwrap_or((start, None)))
    }

    /// The first entry whose position is not before the end of the `bytes` at a position: no
    /// record in those bytes has its offset or a later one. `None` when no entry is that far.
    pub fn upper_bound(&self, position: u64, bytes: u64) -> Result<Option<OffsetEntry>> {
        let Ok(end) = u32::try_from(position.saturating_add(bytes)) else {
            return Ok(None);
        };
        let found = self.mapped.search(|map, entries| {
            let key = |entry: usize| map.load(entry * CELLS + 1);
            let found = smallest_at_or_above(entries, OFFSET_ENTRY_BYTES, end, key)?;
            Some(self.decode(load(map, found)))
        })?;
        Ok(found.flatten())
    }

    /// Appends an entry. Offsets increase strictly; a full index takes none.
    pub fn append(&self, offset: i64, position: u32) -> Result<()> {
        let relative = relative_to(self.base_offset, offset);
        self.mapped.append(|tail| {
            if tail.entries >= tail.capacity {
                return Err(format!("is full with {} entries", tail.entries));
            }
            let Some(relative) = relative.filter(|_| i32::try_from(position).is_ok()) else {
                return Err(format!("cannot hold offset {offset} at position {position}"));
            };
            if let Some(last) = tail.last.map(|last| self.decode(last).offset)
                && offset <= last
            {
                return Err(format!("ends with offset {last}, so {offset} cannot follow"));
            }
            Ok(Some([relative.cast_unsigned(), position]))
        })?;
        Ok(())
    }

    /// The last entry: (base offset, 0) when there is none. Leaves a closed index closed.
    pub fn last(&self) -> Result<OffsetEntry> {
        let start = OffsetEntry { offset: self.base_offset, position: 0 };
        Ok(self.mapped.last()?.map_or(start, |cells| self.decode(cells)))
    }

    /// The entry at an index.
    pub fn entry(&self, index: usize) -> Result<Option<OffsetEntry>> {
        let found = self
            .mapped
            .search(|map, entries| (index < entries).then(|| self.decode(load(map, index))))?;
        Ok(found.flatten())
    }

    /// Number of entries. Leaves a closed index closed.
    pub fn entries(&self) -> Result<usize> {
        self.mapped.entries()
    }

    /// Whether it takes no further entry; the segment then rolls. A sealed one takes none.
    pub fn is_full(&self) -> bool {
        self.mapped.is_full(0)
    }

    /// Drops the entries of this offset and later ones. The caller then extends or trims.
    pub fn truncate_to(&self, offset: i64) -> Result<()> {
        self.mapped.truncate(|map, entries| {
            let below = offset.checked_sub(1).and_then(|below| self.clamp(below));
            let kept = below.and_then(|below| at_or_below(map, entries, below));
            kept.map_or(0, |kept| kept + 1)
        })
    }

    /// Forgets every entry and makes the index active with this length, for a rebuild.
    pub fn reset(&self, max_bytes: u64) -> Result<()> {
        self.mapped.reset(max_bytes)
    }

    /// Makes the index active with this length, but never shorter than its entries.
    pub fn extend(&self, max_bytes: u64) -> Result<()> {
        self.mapped.extend(max_bytes)
    }

    /// Cuts the file to its entries and seals the index.
    pub fn trim(&self) -> Result<()> {
        self.mapped.trim()
    }

    /// Lets the next flush sync the file: an earlier process may have left it in the page cache.
    pub(crate) fn distrust(&self) {
        self.mapped.distrust();
    }

    /// Makes entries and length durable, if anything has changed.
    pub fn flush(&self) -> Result<()> {
        self.mapped.flush()
    }

    /// Trims an active index and gives up map and descriptor; the next search opens it again.
    pub fn close(&self) -> Result<()> {
        self.mapped.close()
    }

    /// Renames the file for another state.
    pub fn rename(&self, to: FileState) -> Result<()> {
        self.mapped.rename(to)
    }

    /// Closes the index and removes its file; `false` when there was none.
    pub fn remove(&self) -> Result<bool> {
        self.mapped.remove()
    }

    /// Whether a map is held.
    pub fn is_mapped(&self) -> bool {
        self.mapped.is_mapped()
    }

    /// Where the file is now.
    pub fn path(&self) -> PathBuf {
        self.mapped.file_path()
    }

    /// Checks what every index written by Kafka keeps, entry by entry. The zeros that an unclean
    /// stop leaves fail it; a missing file does not.
    pub fn sanity(&self) -> Result<()> {
        self.mapped.check_length(CorruptKind::Side("offset index ends inside an entry"))?;
        let damage = self.mapped.search(|map, entries| {
            let mut previous = [u32::MAX, 0];
            for entry in 0..entries {
                let [relative, position] = load(map, entry);
                if relative.cast_signed() < 0 {
                    return Some((entry, "offset index entry is below the base offset"));
                }
                if position.cast_signed() < 0 {
                    return Some((entry, "offset index position is negative"));
                }
                if relative.cast_signed() <= previous[0].cast_signed() {
                    return Some((entry, "offset index offsets do not increase"));
                }
                if position <= previous[1] {
                    return Some((entry, "offset index positions do not increase"));
                }
                previous = [relative, position];
            }
            None
        })?;
        match damage.flatten() {
            Some((entry, why)) => Err(self.mapped.corrupt(entry, CorruptKind::Side(why))),
            None => Ok(()),
        }
    }

    fn decode(&self, [relative, position]: [u32; CELLS]) -> OffsetEntry {
        let relative = i64::from(relative.cast_signed());
        OffsetEntry { offset: self.base_offset.saturating_add(relative), position }
    }

    /// The target relative to the base offset; `None` when every entry is above it.
    #[inline]
    fn clamp(&self, target: i64) -> Option<i32> {
        let relative = target.saturating_sub(self.base_offset);
        if relative < 0 { None } else { Some(i32::try_from(relative).unwrap_or(i32::MAX)) }
    }
}

#[inline]
fn at_or_below(map: &impl Map, entries: usize, relative: i32) -> Option<usize> {
    let key = |entry: usize| map.load(entry * CELLS).cast_signed();
    greatest_at_or_below(entries, OFFSET_ENTRY_BYTES, relative, key)
}

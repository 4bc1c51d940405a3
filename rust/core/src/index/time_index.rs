//! The time index of a segment in a directory that we own: written, mapped and searched.
//!
//! The layout of the file is that of [`TimeIndexView`](super::TimeIndexView). Who may call what
//! beside whom, and what a crash leaves, is said at the top of `mapped.rs`; the essence: one writer,
//! many readers, and an answer is a hint that whoever reads the `.log` file checks there.

use std::path::PathBuf;
use std::sync::Arc;

use super::mapped::{IndexMode, Mapped, load};
use super::search::greatest_at_or_below;
use super::{TIME_ENTRY_BYTES, TimeEntry, relative_to};
use crate::error::Result;
use crate::fs::{Map, WriteDir};
use crate::names::{FileKind, FileState, SegmentFile};
use crate::record::CorruptKind;

const CELLS: usize = TIME_ENTRY_BYTES / size_of::<u32>();

/// From timestamps to offsets: each entry is the largest timestamp up to its offset.
pub struct TimeIndex<D: WriteDir> {
    base_offset: i64,
    mapped: Mapped<D, CELLS>,
}

impl<D: WriteDir> TimeIndex<D> {
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
        let name = SegmentFile { base_offset, kind: FileKind::TimeIndex, state };
        Ok(Self { base_offset, mapped: Mapped::open(dir, name, max_bytes, mode)? })
    }

    /// The entry with the greatest timestamp that is not above the target: (−1, base offset) when
    /// there is none. Records with a later timestamp stand after its offset.
    #[inline]
    pub fn lookup(&self, timestamp: i64) -> Result<TimeEntry> {
        let found = self.mapped.search(|map, entries| {
            let key = |entry: usize| timestamp_at(map, entry);
            let found = greatest_at_or_below(entries, TIME_ENTRY_BYTES, timestamp, key)?;
            Some(self.decode(load(map, found)))
        })?;
        Ok(found.flatten().unwrap_or(self.start()))
    }

    /// Appends an entry if its timestamp is above the last one's, and says whether it did. Neither
    /// timestamp nor offset may be below those of the last entry. A full index takes none; it keeps
    /// one slot free for the `last_of_segment`, which is added when a segment rolls or closes.
    pub fn maybe_append(&self, entry: TimeEntry, last_of_segment: bool) -> Result<bool> {
        let TimeEntry { timestamp, offset } = entry;
        let relative = relative_to(self.base_offset, offset);
        self.mapped.append(|tail| {
            if !last_of_segment && tail.entries + 1 >= tail.capacity {
                return Err(format!("is full with {} entries", tail.entries));
            }
            let last = tail.last.map_or(self.start(), |last| self.decode(last));
            if tail.last.is_some() && offset < last.offset {
                return Err(format!("ends with offset {}, {offset} cannot follow", last.offset));
            }
            if tail.last.is_some() && timestamp < last.timestamp {
                let last = last.timestamp;
                return Err(format!("ends with timestamp {last}, {timestamp} cannot follow"));
            }
            if timestamp <= last.timestamp {
                return Ok(None);
            }
            let Some(relative) = relative else {
                return Err(format!("cannot hold offset {offset}"));
            };
            Ok(Some(encode(timestamp, relative)))
        })
    }

    /// The last entry: (−1, base offset) when there is none. Leaves a closed index closed.
    pub fn last(&self) -> Result<TimeEntry> {
        Ok(self.mapped.last()?.map_or(self.start(), |cells| self.decode(cells)))
    }

    /// The entry at an index.
    pub fn entry(&self, index: usize) -> Result<Option<TimeEntry>> {
        let found = self
            .mapped
            .search(|map, entries| (index < entries).then(|| self.decode(load(map, index))))?;
        Ok(found.flatten())
    }

    /// Number of entries. Leaves a closed index closed.
    pub fn entries(&self) -> Result<usize> {
        self.mapped.entries()
    }

    /// Whether only the slot of the segment's last entry is left; the segment then rolls. A sealed
    /// one takes no entry.
    pub fn is_full(&self) -> bool {
        self.mapped.is_full(1)
    }

    /// Drops the entries of this offset and later ones. The caller then extends or trims.
    pub fn truncate_to(&self, offset: i64) -> Result<()> {
        let relative = offset.saturating_sub(self.base_offset);
        self.mapped.truncate(|map, entries| {
            let key = |entry: usize| i64::from(map.load(entry * CELLS + 2).cast_signed());
            let below = relative.saturating_sub(1);
            let kept = greatest_at_or_below(entries, TIME_ENTRY_BYTES, below, key);
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
    /// stop leaves fail it; a missing file does not, nor one zero entry that stands alone: that is
    /// timestamp 0 at the base offset.
    pub fn sanity(&self) -> Result<()> {
        self.mapped.check_length(CorruptKind::Side("time index ends inside an entry"))?;
        let damage = self.mapped.search(|map, entries| {
            let mut previous = (-1, 0);
            for entry in 0..entries {
                let [_, _, relative] = load::<CELLS>(map, entry);
                let (timestamp, relative) = (timestamp_at(map, entry), relative.cast_signed());
                if relative < 0 {
                    return Some((entry, "time index entry is below the base offset"));
                }
                if timestamp <= previous.0 {
                    return Some((entry, "time index timestamps do not increase"));
                }
                if relative < previous.1 {
                    return Some((entry, "time index offsets decrease"));
                }
                previous = (timestamp, relative);
            }
            None
        })?;
        match damage.flatten() {
            Some((entry, why)) => Err(self.mapped.corrupt(entry, CorruptKind::Side(why))),
            None => Ok(()),
        }
    }

    fn start(&self) -> TimeEntry {
        TimeEntry { timestamp: -1, offset: self.base_offset }
    }

    fn decode(&self, [high, low, relative]: [u32; CELLS]) -> TimeEntry {
        let relative = i64::from(relative.cast_signed());
        let offset = self.base_offset.saturating_add(relative);
        TimeEntry { timestamp: join(high, low), offset }
    }
}

#[inline]
fn timestamp_at(map: &impl Map, entry: usize) -> i64 {
    join(map.load(entry * CELLS), map.load(entry * CELLS + 1))
}

#[inline]
fn join(high: u32, low: u32) -> i64 {
    (u64::from(high) << 32 | u64::from(low)).cast_signed()
}

fn encode(timestamp: i64, relative: i32) -> [u32; CELLS] {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = timestamp.to_be_bytes();
    let high = u32::from_be_bytes([t0, t1, t2, t3]);
    let low = u32::from_be_bytes([t4, t5, t6, t7]);
    [high, low, relative.cast_unsigned()]
}

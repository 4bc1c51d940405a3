//! The producer snapshots of a partition: which there are, and how the state comes back from them.
//!
//! 1. A snapshot is written at each roll, at close and after recovery, and only when the state stands
//!    for more than at the last one.
//! 2. It is written in place, as Kafka does: a torn one fails its checksum, is removed, and the next
//!    older one is used. A failure to read is no damage; nothing is removed because of one.
//! 3. No snapshot is needed to open a log. The state of a log without any comes from its batches.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{ProducerSnapshot, ProducerStates};
use crate::error::{Error, Result};
use crate::fs::{Create, Dir, EntryKind, File, WriteDir, WriteFile};
use crate::limits::PRODUCER_SNAPSHOT_BYTES_MAX;
use crate::names::{FileKind, FileState, SegmentFile};
use crate::record::CorruptKind;

/// The snapshots of one partition.
pub struct Snapshots<D> {
    dir: Arc<D>,
    offsets: BTreeSet<i64>,
    /// The offset that the newest state on disk stands for.
    taken: i64,
    damaged: Vec<(i64, CorruptKind)>,
}

impl<D> fmt::Debug for Snapshots<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("offsets", &self.offsets)
            .field("taken", &self.taken)
            .field("damaged", &self.damaged)
            .finish_non_exhaustive()
    }
}

fn encoded(states: &ProducerStates) -> Result<Vec<u8>> {
    states.snapshot().encode().ok_or(Error::TooLarge {
        what: "producer snapshot",
        size: u64::MAX,
        limit: PRODUCER_SNAPSHOT_BYTES_MAX,
    })
}

fn live(offset: i64) -> SegmentFile {
    SegmentFile::live(offset, FileKind::Snapshot)
}

fn name_of(offset: i64) -> String {
    live(offset).to_string()
}

impl<D> Snapshots<D> {
    /// Offsets of the snapshots, in order.
    pub fn offsets(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.offsets.iter().copied()
    }

    /// The newest snapshot.
    pub fn newest(&self) -> Option<i64> {
        self.offsets.last().copied()
    }

    /// Snapshots that were removed because they could not be read, with what was wrong.
    pub fn damaged(&self) -> &[(i64, CorruptKind)] {
        &self.damaged
    }
}

impl<D: Dir> Snapshots<D> {
    /// The snapshots of a new partition: none.
    pub fn new(dir: Arc<D>) -> Self {
        Self { dir, offsets: BTreeSet::new(), taken: 0, damaged: Vec::new() }
    }

    /// The snapshots that a directory holds.
    pub fn open(dir: Arc<D>) -> Result<Self> {
        let snapshot = |name: &str| {
            let file = SegmentFile::parse(name)?;
            let is_live = file.kind == FileKind::Snapshot && file.state == FileState::Live;
            is_live.then_some(file.base_offset)
        };
        let entries = dir.list()?.into_iter().filter(|entry| entry.kind == EntryKind::File);
        let offsets = entries.filter_map(|entry| snapshot(&entry.name)).collect();
        Ok(Self { offsets, ..Self::new(dir) })
    }

    /// Reads a snapshot. Damage is [`Error::Corrupt`].
    pub fn read(&self, offset: i64) -> Result<ProducerSnapshot> {
        let file = self.dir.open(&name_of(offset))?;
        let bytes = file.facts()?.bytes;
        if bytes > PRODUCER_SNAPSHOT_BYTES_MAX {
            let limit = PRODUCER_SNAPSHOT_BYTES_MAX;
            return Err(Error::TooLarge { what: "producer snapshot", size: bytes, limit });
        }
        // The head is checked first, so that a wrong file of that size is not read at all.
        let mut head = [0; ProducerSnapshot::HEAD_BYTES];
        let count = file.read_at(&mut head, 0)?;
        let head = head.get(..count).unwrap_or_default();
        let damage = |kind| Error::corrupt(file.path(), 0, kind);
        ProducerSnapshot::check_head(head, bytes).map_err(damage)?;
        let mut content = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let count = file.read_at(&mut content, 0)?;
        content.truncate(count);
        ProducerSnapshot::decode(&content).map_err(damage)
    }
}

impl<D: WriteDir> Snapshots<D> {
    /// Writes the state; false when it stands for nothing new. Without `sync` the file is synced by
    /// a later [`Snapshots::sync`]; with it, the file and its name are durable.
    pub fn take(&mut self, states: &ProducerStates, sync: bool) -> Result<bool> {
        let offset = states.map_end_offset();
        if offset <= self.taken {
            return Ok(false);
        }
        let name = name_of(offset);
        let bytes = encoded(states)?;
        let file = self.dir.open_write(&name, Create::IfMissing)?;
        // From here on a file of that name is there, good or torn.
        self.offsets.insert(offset);
        file.set_len(0)?;
        file.write_at(&bytes, 0)?;
        if sync {
            file.sync()?;
            self.dir.sync()?;
        }
        self.taken = offset;
        Ok(true)
    }

    /// The same for a log that is being opened: a snapshot that says the same already is left as it
    /// is.
    pub(crate) fn take_changed(&mut self, states: &ProducerStates, sync: bool) -> Result<()> {
        let offset = states.map_end_offset();
        if self.offsets.contains(&offset) {
            let bytes = encoded(states)?;
            let file = self.dir.open_write(&name_of(offset), Create::No)?;
            let mut there = vec![0; bytes.len()];
            if file.facts()?.bytes == u64::try_from(bytes.len()).unwrap_or(u64::MAX)
                && file.read_at(&mut there, 0)? == bytes.len()
                && there == bytes
            {
                self.taken = offset;
                return if sync { file.sync() } else { Ok(()) };
            }
        }
        self.take(states, sync).map(|_| ())
    }

    /// Makes the bytes of a snapshot durable, if it is still there.
    pub fn sync(&self, offset: i64) -> Result<()> {
        match self.dir.open_write(&name_of(offset), Create::No) {
            Ok(file) => file.sync(),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what no segment needs, while a log is loaded: every snapshot that is not at the base
    /// of a segment, but for the newest of those if it is not before the last segment.
    pub fn remove_stray(&mut self, segment_bases: &[i64]) -> Result<()> {
        let strays = self.offsets.iter().filter(|offset| !segment_bases.contains(offset));
        let mut strays: Vec<i64> = strays.copied().collect();
        let last_base = segment_bases.iter().max();
        if strays.last().is_some_and(|newest| last_base.is_none_or(|base| newest >= base)) {
            strays.pop();
        }
        self.delete(strays)
    }

    /// Brings the state to a log that now reaches from `log_start` to `log_end`. Snapshots outside
    /// are removed. A state that stands for another end is replaced by the newest snapshot that can
    /// be read, or by none: the caller replays the batches from its `map_end_offset` on.
    pub fn truncate_and_reload(
        &mut self,
        states: &mut ProducerStates,
        log_start: i64,
        log_end: i64,
        now_ms: i64,
        producer_id_expiration_ms: i64,
    ) -> Result<()> {
        let outside = |offset: &&i64| **offset > log_end || **offset <= log_start;
        let outside: Vec<i64> = self.offsets.iter().filter(outside).copied().collect();
        self.delete(outside)?;
        if states.map_end_offset() == log_end {
            states.on_log_start(log_start);
            self.taken = self.newest().unwrap_or(log_start);
            return Ok(());
        }
        match self.load_newest()? {
            Some((offset, snapshot)) => {
                states.restore(&snapshot, offset, now_ms, producer_id_expiration_ms);
            }
            None => states.clear(log_start),
        }
        self.taken = states.map_end_offset();
        Ok(())
    }

    /// The newest snapshot that can be read; damaged ones before it are removed.
    pub fn load_newest(&mut self) -> Result<Option<(i64, ProducerSnapshot)>> {
        while let Some(offset) = self.newest() {
            match self.read(offset) {
                Ok(snapshot) => return Ok(Some((offset, snapshot))),
                Err(Error::Corrupt { kind, .. }) => {
                    self.damaged.push((offset, kind));
                    self.delete([offset])?;
                }
                // Somebody else removed it.
                Err(error) if error.is_not_found() => {
                    self.offsets.remove(&offset);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Removes the snapshots below an offset.
    pub fn delete_before(&mut self, offset: i64) -> Result<()> {
        let before: Vec<i64> = self.offsets.range(..offset).copied().collect();
        self.delete(before)
    }

    /// Removes the snapshots above an offset.
    pub fn delete_after(&mut self, offset: i64) -> Result<()> {
        let after = self.offsets.iter().copied().filter(|other| *other > offset);
        let after: Vec<i64> = after.collect();
        self.delete(after)
    }

    /// Removes a snapshot that could not be read.
    pub fn discard(&mut self, offset: i64) -> Result<()> {
        self.delete([offset])
    }

    /// Removes every snapshot: the log begins anew.
    pub fn delete_all(&mut self) -> Result<()> {
        let all: Vec<i64> = self.offsets().collect();
        self.delete(all)?;
        self.taken = 0;
        Ok(())
    }

    /// Takes a snapshot out of use with its segment; the name under which it waits for removal.
    pub fn rename_deleted(&mut self, offset: i64) -> Result<Option<String>> {
        if !self.offsets.contains(&offset) {
            return Ok(None);
        }
        let doomed = SegmentFile { state: FileState::Deleted, ..live(offset) }.to_string();
        let renamed = match self.dir.rename(&name_of(offset), &doomed) {
            Ok(()) => Some(doomed),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        self.offsets.remove(&offset);
        Ok(renamed)
    }

    fn delete(&mut self, offsets: impl IntoIterator<Item = i64>) -> Result<()> {
        for offset in offsets {
            self.dir.unlink(&name_of(offset))?;
            self.offsets.remove(&offset);
        }
        Ok(())
    }
}

//! What a segment is asked after it was written: its timestamps, its durability, its removal.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use super::read::Heads;
use super::{Segment, Times, name};
use crate::error::{Error, Result};
use crate::fs::{Dir, File, WriteDir, WriteFile, WriteFs};
use crate::index::TimeEntry;
use crate::names::{FileKind, FileState, SegmentFile};

/// How much of a segment a flush makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlushDepth {
    /// The records. Enough for the segment that is written: after a crash its indexes are made anew.
    Records,
    /// The indexes too.
    Whole,
}

impl<S: WriteFs> Segment<S> {
    pub(super) fn times(&self) -> Times {
        *self.times_mut()
    }

    pub(super) fn times_mut(&self) -> MutexGuard<'_, Times> {
        // Every store leaves the times whole, so a panic elsewhere does not spoil them.
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn dir_path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn changed(&self, what: &'static str) -> Error {
        Error::Changed { path: self.dir.path().join(name(self.base_offset, FileKind::Log)), what }
    }

    /// The largest timestamp so far and the last offset of the first batch that has it; (−1, base)
    /// when no record has one.
    pub(crate) fn largest(&self) -> Result<TimeEntry> {
        if let Some(largest) = self.times().largest {
            return Ok(largest);
        }
        let largest = self.time_index.last()?;
        Ok(*self.times_mut().largest.get_or_insert(largest))
    }

    /// The largest timestamp, or that of the file where no record has one.
    pub(crate) fn largest_timestamp(&self) -> Result<i64> {
        match self.largest()?.timestamp {
            timestamp @ 0.. => Ok(timestamp),
            _ => Ok(self.file()?.facts()?.modified_ms),
        }
    }

    /// The max timestamp of the first batch.
    pub(super) fn first_timestamp(&self) -> Result<Option<i64>> {
        if let Some(first) = self.times().first {
            return Ok(Some(first));
        }
        let first = Heads::new(self.file()?, 0, self.size()).next()?;
        let first = first.map(|(_, head)| head.max_timestamp());
        self.times_mut().first = first;
        Ok(first)
    }

    /// The largest timestamp from the index and the entries behind the last one it names.
    pub(super) fn find_largest(&self, limit: u64) -> Result<TimeEntry> {
        let mut largest = self.time_index.last()?;
        let from = self.hint(largest.offset, limit)?;
        let mut heads = Heads::new(self.file()?, from, limit);
        while let Some((_, head)) = heads.next()? {
            if head.max_timestamp() > largest.timestamp {
                largest = TimeEntry { timestamp: head.max_timestamp(), offset: head.last_offset() };
            }
        }
        Ok(largest)
    }

    /// Makes what was written durable. A segment that has left its log has nothing to lose.
    pub(crate) fn flush(&self, depth: FlushDepth) -> Result<()> {
        let file = match self.file() {
            Err(_) if self.is_retired() => return Ok(()),
            file => file?,
        };
        file.sync()?;
        self.txn_index.flush()?;
        if depth == FlushDepth::Whole {
            self.offset_index.flush()?;
            self.time_index.flush()?;
        }
        Ok(())
    }

    /// Lets the next flush sync every file: what an earlier process wrote may be in the page cache
    /// alone.
    pub(crate) fn distrust(&self) {
        self.offset_index.distrust();
        self.time_index.distrust();
        self.txn_index.distrust();
    }

    /// Takes over the largest timestamp from whoever has read the segment.
    pub(crate) fn know_largest(&self, largest: TimeEntry) {
        self.times_mut().largest = Some(largest);
    }

    /// Takes the segment out of its log: nothing of it is opened by name from now on.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Renames the files so that they wait for removal, and gives their new names. A file that is
    /// not there is passed over.
    pub(crate) fn rename_deleted(&self) -> Result<Vec<String>> {
        let deleted = FileState::Deleted;
        let mut renamed = Vec::new();
        renamed.extend(rename_deleted(&*self.dir, &name(self.base_offset, FileKind::Log))?);
        self.offset_index.rename(deleted)?;
        self.time_index.rename(deleted)?;
        self.txn_index.rename(deleted)?;
        for kind in [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            let base_offset = self.base_offset;
            renamed.push(SegmentFile { base_offset, kind, state: deleted }.to_string());
        }
        Ok(renamed)
    }
}

/// Renames a file so that it waits for removal; `None` when it is not there.
pub(crate) fn rename_deleted<D: WriteDir>(dir: &D, name: &str) -> Result<Option<String>> {
    let to = format!("{name}{}", FileState::Deleted.suffix());
    match dir.rename(name, &to) {
        Ok(()) => Ok(Some(to)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

//! What a recovery writes: cuts, indexes made anew, and copies of what is taken out of the log.
//!
//! Bytes leave a log in two ways. The end of a file is copied to `<file>.quarantine-<position>` and
//! cut; a whole file behind a cut is renamed to `<file>.quarantine`. Neither name means anything to a
//! broker. A copy is made only where there is space for it: a full disk must not keep a log closed.

use super::recovery::{Cut, Recovery};
use crate::error::{Error, Result};
use crate::fs::{Create, File, WriteDir, WriteFile, replace_file};
use crate::names::FileKind;
use crate::record::CorruptKind;
use crate::segment::name;
use crate::segment::recover::Rebuilt;

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Space that a copy leaves free, for the log itself.
const SPARE_BYTES: u64 = 64 << 20;

pub(super) struct Keeper<'a, D> {
    pub(super) dir: &'a D,
    pub(super) recovery: &'a mut Recovery,
}

impl<D: WriteDir> Keeper<'_, D> {
    /// Cuts a segment file, durably, and keeps what is cut unless it is nothing but zeros.
    pub(super) fn cut(
        &mut self,
        base_offset: i64,
        position: u64,
        bytes: u64,
        kind: Option<CorruptKind>,
        is_zeros: bool,
    ) -> Result<()> {
        let log = name(base_offset, FileKind::Log);
        let file = self.dir.open_write(&log, Create::No)?;
        let kept = if is_zeros || bytes == 0 { None } else { self.copy(&file, &log, position)? };
        file.set_len(position)?;
        file.sync()?;
        self.recovery.cuts.push(Cut {
            file: file.path().to_owned(),
            position,
            bytes,
            kind,
            kept_in: kept.map(|name| self.dir.path().join(name)),
        });
        Ok(())
    }

    /// Copies the end of a file; gives the copy's name, or nothing when there is no space for it.
    fn copy(&mut self, file: &D::File, log: &str, position: u64) -> Result<Option<String>> {
        let bytes = file.facts()?.bytes.saturating_sub(position);
        let to = format!("{log}.quarantine-{position}");
        if self.dir.free_bytes()? < bytes.saturating_add(SPARE_BYTES) {
            self.recovery.skipped.push(format!("a copy of {bytes} bytes cut from {log}: no space"));
            return Ok(None);
        }
        match self.write_copy(file, &to, position) {
            Ok(()) => Ok(Some(to)),
            Err(Error::NoSpace { .. }) => {
                self.dir.unlink(&to)?;
                self.recovery.skipped.push(format!("a copy of what was cut from {log}: no space"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn write_copy(&self, file: &D::File, to: &str, position: u64) -> Result<()> {
        let copy = self.dir.open_write(to, Create::IfMissing)?;
        copy.set_len(0)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut done = 0;
        loop {
            let read = file.read_at(&mut buffer, position.saturating_add(done))?;
            let Some(read) = buffer.get(..read).filter(|read| !read.is_empty()) else { break };
            copy.write_at(read, done)?;
            done = done.saturating_add(u64::try_from(read.len()).unwrap_or(u64::MAX));
        }
        copy.sync()?;
        self.dir.sync()
    }

    /// Takes a whole segment out of the log. Its records keep a name; its indexes are made again if
    /// anybody wants them.
    pub(super) fn set_aside(&mut self, base_offset: i64) -> Result<()> {
        let log = name(base_offset, FileKind::Log);
        let file = self.dir.path().join(&log);
        let bytes = self.dir.open(&log)?.facts()?.bytes;
        let mut kept_in = None;
        if bytes == 0 {
            self.dir.unlink(&log)?;
        } else {
            let to = format!("{log}.quarantine");
            self.dir.rename(&log, &to)?;
            kept_in = Some(self.dir.path().join(to));
        }
        for kind in [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex, FileKind::Snapshot] {
            self.dir.unlink(&name(base_offset, kind))?;
        }
        self.recovery.cuts.push(Cut { file, position: 0, bytes, kind: None, kept_in });
        Ok(())
    }

    /// Makes the index files what they must be. Those that are right are not touched.
    /// Where a crash would not lead to another recovery of this segment, they are made durable.
    pub(super) fn write_indexes(
        &mut self,
        base_offset: i64,
        rebuilt: &Rebuilt,
        is_durable: bool,
    ) -> Result<()> {
        self.write_index(base_offset, FileKind::Index, &rebuilt.offset_index, is_durable)?;
        self.write_index(base_offset, FileKind::TimeIndex, &rebuilt.time_index, is_durable)?;
        // Most segments have no aborted transactions and no file for them.
        if rebuilt.txn_index.is_empty() {
            if self.dir.unlink(&name(base_offset, FileKind::TxnIndex))? {
                let path = self.dir.path().join(name(base_offset, FileKind::TxnIndex));
                self.recovery.indexes_rebuilt.push(path);
            }
            return Ok(());
        }
        self.write_index(base_offset, FileKind::TxnIndex, &rebuilt.txn_index, is_durable)
    }

    fn write_index(
        &mut self,
        base_offset: i64,
        kind: FileKind,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<()> {
        let index = name(base_offset, kind);
        if self.holds(&index, bytes)? {
            return Ok(());
        }
        let written = if is_durable {
            replace_file(self.dir, &index, bytes)
        } else {
            self.overwrite(&index, bytes)
        };
        match written {
            Ok(()) => self.recovery.indexes_rebuilt.push(self.dir.path().join(index)),
            // An empty index leads to the same records, only later. Without its aborted
            // transactions a segment would show records that must not be seen.
            Err(Error::NoSpace { .. }) if kind != FileKind::TxnIndex => {
                self.dir.unlink(&format!("{index}.tmp"))?;
                self.dir.open_write(&index, Create::IfMissing)?.set_len(0)?;
                self.recovery.skipped.push(format!("{index}: no space"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes the indexes of a segment durable that are in the page cache alone, perhaps.
    pub(super) fn sync_indexes(&self, base_offset: i64) -> Result<()> {
        for kind in [FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex] {
            match self.dir.open_write(&name(base_offset, kind), Create::No) {
                Ok(file) => file.sync()?,
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.dir.open_write(name, Create::IfMissing)?;
        file.set_len(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
        file.write_at(bytes, 0)
    }

    /// Whether a file consists of these bytes.
    fn holds(&self, name: &str, bytes: &[u8]) -> Result<bool> {
        let file = match self.dir.open(name) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
        if file.facts()?.bytes != u64::try_from(bytes.len()).unwrap_or(u64::MAX) {
            return Ok(false);
        }
        let mut there = vec![0; bytes.len()];
        Ok(file.read_at(&mut there, 0)? == bytes.len() && there == bytes)
    }
}

//! Closing one log cleanly: what is open is finished, synced and let go.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::view::View;
use super::writer::{Writer, no_segment};
use super::{Log, closed};
use crate::error::Result;
use crate::fs::{WriteDir, WriteFs};
use crate::segment::sealed::FlushDepth;

impl<S: WriteFs> Log<S> {
    /// Closes the log: producer snapshot, last time-index entry, indexes and preallocated files cut
    /// to what they hold, everything synced, deleted files removed. Every use after it is an error,
    /// a second close too. When it fails, the log was not closed cleanly and is closed all the same.
    pub fn close(&self) -> Result<()> {
        let _alone = self.commits.flushing.lock();
        let mut writer = self.writer.lock().map_err(|_| self.poisoned())?;
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Err(closed());
        }
        let finished = match (&self.damage, self.check_poison()) {
            (_, Err(poisoned)) => Err(poisoned),
            (Some(_), _) => Ok(()),
            (None, Ok(())) => self.finish(&mut writer),
        };
        match &finished {
            Ok(()) => self.commit_all(writer.flush.appends),
            Err(_) => self.is_poisoned.store(true, Ordering::Release),
        }
        self.let_go(&mut writer);
        finished
    }

    /// Ends the use of a log whose directory is on its way out: nothing is written any more.
    pub(crate) fn abandon(&self) {
        let _alone = self.commits.flushing.lock();
        let Ok(mut writer) = self.writer.lock() else { return };
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.let_go(&mut writer);
        }
    }

    /// An untouched log has nothing to finish but a snapshot that may be missing.
    fn finish(&self, writer: &mut Writer<S>) -> Result<()> {
        let end = writer.records_end;
        writer.take_synced_snapshot()?;
        self.write_epochs(writer)?;
        if let Some(tail) = writer.tail {
            let active = Arc::clone(writer.active().ok_or_else(no_segment)?);
            active.finish_times(tail.largest)?;
            active.seal()?;
        }
        let has_deleted = !writer.doomed.is_empty();
        self.purge_files(writer, i64::MAX)?;
        let has_written = writer.tail.is_some() || !writer.flush.snapshots.is_empty();
        if has_written || has_deleted || end > self.recovery_point() {
            let plan = self.plan_flush(writer, FlushDepth::Whole);
            self.sync(&plan)?;
        }
        self.raise_recovery_point(end);
        Ok(())
    }

    /// Lets go of maps and files. A reader that still has a slice keeps its file.
    fn let_go(&self, writer: &mut Writer<S>) {
        for slot in writer.slots.iter() {
            // The indexes were cut and synced, or the next start makes them anew.
            let _ = slot.segment.offset_index.close();
            let _ = slot.segment.time_index.close();
            slot.segment.txn_index.close();
        }
        writer.slots = Arc::new(Vec::new());
        writer.tail = None;
        self.dir.rest();
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let _ = self.last_bounds.set(view.bounds());
        *view = View { slots: Arc::new(Vec::new()), ..view.clone() };
    }
}

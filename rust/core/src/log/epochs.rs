//! Leader epochs of a log: the cache that readers see and its file.
//!
//! A new epoch is in the file before a batch of it is in the log: an epoch that the file lacks
//! would let a later leader keep records that were never committed. Entries that the file has too
//! many do no harm, so what a truncation drops from the cache leaves the file with the next flush.

use std::sync::Arc;

use super::Log;
use super::append::entries;
use super::writer::Writer;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::WriteFs;
use crate::record::EntryView;

impl<S: WriteFs> Log<S> {
    /// The epoch of the latest leader that the log knows of.
    pub fn latest_epoch(&self) -> Result<Option<i32>> {
        Ok(self.view()?.epochs.latest().map(|entry| entry.epoch))
    }

    /// Refuses a leader that another one has followed. Batches whose epochs go back would pass for
    /// damage when the log is recovered.
    pub(super) fn check_epoch(writer: &Writer<S>, epoch: i32) -> Result<()> {
        match writer.epochs.latest() {
            Some(latest) if epoch < latest.epoch => Err(Error::Rejected {
                code: "FENCED_LEADER_EPOCH",
                reason: format!("leader epoch {epoch} is over: the latest is {}", latest.epoch),
            }),
            _ => Ok(()),
        }
    }

    /// Notes that an epoch begins at the log's end: what a leader does before its first batch.
    pub fn assign_epoch(&self, epoch: i32) -> Result<()> {
        let mut writer = self.writer()?;
        let mut epochs = (*writer.epochs).clone();
        if epochs.assign(epoch, writer.end.offset)? {
            self.replace_epochs(&mut writer, epochs)?;
            self.publish(&writer);
        }
        Ok(())
    }

    /// Notes the epochs of batches that are about to be written. Old formats have none, and a log
    /// that gets such batches cannot tell by epochs what others have.
    pub(super) fn assign_epochs(&self, writer: &mut Writer<S>, bytes: &[u8]) -> Result<()> {
        let mut changed: Option<EpochCache> = None;
        for entry in entries(bytes) {
            let epochs = changed.as_ref().unwrap_or(&writer.epochs);
            match entry {
                EntryView::Batch(batch) => {
                    let (epoch, offset) = (batch.header().leader_epoch, batch.header().base_offset);
                    let repeats = epochs
                        .latest()
                        .is_some_and(|last| last.epoch == epoch && last.start_offset <= offset);
                    if epoch >= 0 && !repeats {
                        let epochs = changed.get_or_insert_with(|| (*writer.epochs).clone());
                        epochs.assign(epoch, offset)?;
                    }
                }
                EntryView::Legacy(_) if !epochs.entries().is_empty() => {
                    changed = Some(EpochCache::default());
                }
                EntryView::Legacy(_) => {}
            }
        }
        match changed {
            Some(epochs) => self.replace_epochs(writer, epochs),
            None => Ok(()),
        }
    }

    /// Writes epochs and then has them.
    fn replace_epochs(&self, writer: &mut Writer<S>, epochs: EpochCache) -> Result<()> {
        epochs.save(&*self.dir)?;
        writer.epochs = Arc::new(epochs);
        writer.epochs_stale = false;
        Ok(())
    }

    /// Brings the file up to date with the cache.
    pub(super) fn write_epochs(&self, writer: &mut Writer<S>) -> Result<()> {
        if writer.epochs_stale {
            writer.epochs.save(&*self.dir)?;
            writer.epochs_stale = false;
        }
        Ok(())
    }
}

impl<S: WriteFs> Writer<S> {
    /// Changes the cache alone.
    pub(super) fn change_epochs(&mut self, change: impl FnOnce(&mut EpochCache) -> bool) {
        let mut epochs = (*self.epochs).clone();
        if change(&mut epochs) {
            self.epochs = Arc::new(epochs);
            self.epochs_stale = true;
        }
    }
}

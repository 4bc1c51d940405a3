//! Retention: which segments go, and how their files do.
//!
//! 1. Segments go from the oldest on, whole, and only below the high watermark.
//! 2. Who goes is settled before anything changes.
//! 3. A segment leaves the view first, then its files are renamed to `.deleted`, later they are
//!    removed. Only names that end so are ever removed: a new segment may have taken the old name.

use std::sync::Arc;

use super::Log;
use super::view::Slot;
use super::writer::{Doomed, Writer};
use crate::error::Result;
use crate::fs::{WriteDir, WriteFs};
use crate::segment::active::to_u64;

/// What retention removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    /// Segments that went.
    pub segments: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// The log start after it.
    pub log_start: i64,
}

impl<S: WriteFs> Log<S> {
    /// Removes the segments that the topic's retention does not keep, and files that have waited
    /// long enough. What goes below the log start, by size and by age, in this order.
    pub fn apply_retention(&self, now_ms: i64) -> Result<Retained> {
        let config = self.config();
        let mut writer = self.writer()?;
        let mut done = Retained::default();
        let start = writer.start;
        let below_start = |_: &Slot<S>, next: Option<i64>| Ok(next.is_some_and(|n| n <= start));
        self.remove_while(&mut writer, now_ms, &mut done, below_start)?;
        if config.cleanup_policy.delete {
            if let Ok(keep) = u64::try_from(config.retention_bytes) {
                let total: u64 = writer.slots.iter().map(|slot| slot.segment.size()).sum();
                let mut excess = total.checked_sub(keep);
                let too_many = |slot: &Slot<S>, _: Option<i64>| {
                    excess = excess.and_then(|left| left.checked_sub(slot.segment.size()));
                    Ok(excess.is_some())
                };
                self.remove_while(&mut writer, now_ms, &mut done, too_many)?;
            }
            if config.retention_ms >= 0 {
                let too_old = |slot: &Slot<S>, _: Option<i64>| {
                    let age = now_ms.saturating_sub(slot.segment.largest_timestamp()?);
                    Ok(age > config.retention_ms)
                };
                self.remove_while(&mut writer, now_ms, &mut done, too_old)?;
            }
        }
        done.log_start = writer.start;
        self.purge_files(&mut writer, now_ms)?;
        Ok(done)
    }

    /// Removes the oldest segments for as long as the predicate says so of a segment and the base
    /// of the next one.
    fn remove_while(
        &self,
        writer: &mut Writer<S>,
        now_ms: i64,
        done: &mut Retained,
        mut goes: impl FnMut(&Slot<S>, Option<i64>) -> Result<bool>,
    ) -> Result<()> {
        let mut count = 0;
        for (index, slot) in writer.slots.iter().enumerate() {
            let next = writer.slots.get(index.saturating_add(1));
            let next = next.map(|slot| slot.segment.base_offset());
            let is_empty_last = next.is_none() && slot.segment.size() == 0;
            let upper = next.unwrap_or(writer.end.offset);
            if is_empty_last || writer.high_watermark.offset < upper || !goes(slot, next)? {
                break;
            }
            count = index.saturating_add(1);
        }
        if count == 0 {
            return Ok(());
        }
        if count == writer.slots.len() {
            self.roll_to(writer, writer.end.offset, now_ms)?;
        }
        let mut slots = writer.slots.to_vec();
        let gone: Vec<Slot<S>> = slots.drain(..count).collect();
        done.segments = done.segments.saturating_add(to_u64(gone.len()));
        done.bytes =
            gone.iter().map(|slot| slot.segment.size()).fold(done.bytes, u64::saturating_add);
        let removed = self.remove_oldest(writer, slots, &gone, now_ms);
        self.poison_if(removed)
    }

    fn remove_oldest(
        &self,
        writer: &mut Writer<S>,
        kept: Vec<Slot<S>>,
        gone: &[Slot<S>],
        now_ms: i64,
    ) -> Result<()> {
        let first = kept.first().map_or(writer.end.offset, |slot| slot.segment.base_offset());
        writer.slots = Arc::new(kept);
        self.raise_start(writer, first)?;
        self.publish(writer);
        for slot in gone {
            slot.segment.retire();
            self.doom_segment(writer, slot, now_ms)?;
        }
        Ok(())
    }

    /// Renames the files of a segment that nobody can find any more, with the producer snapshot of
    /// its base offset.
    pub(super) fn doom_segment(
        &self,
        writer: &mut Writer<S>,
        slot: &Slot<S>,
        now_ms: i64,
    ) -> Result<()> {
        let names = slot.segment.rename_deleted()?;
        self.doom(writer, names, now_ms);
        let snapshot = writer.snapshots.rename_deleted(slot.segment.base_offset())?;
        self.doom(writer, snapshot, now_ms);
        Ok(())
    }

    pub(super) fn doom(
        &self,
        writer: &mut Writer<S>,
        names: impl IntoIterator<Item = String>,
        now_ms: i64,
    ) {
        writer.flush.names = true;
        let due_ms = now_ms.saturating_add(self.config().file_delete_delay_ms);
        for name in names {
            // A file of the same name that waited before was replaced by this one.
            writer.doomed.retain(|doomed| doomed.name != name);
            writer.doomed.push(Doomed { name, due_ms });
        }
    }

    /// Removes the deleted files that have waited for `file.delete.delay.ms`; gives how many are
    /// still waiting.
    pub fn purge(&self, now_ms: i64) -> Result<usize> {
        let mut writer = self.writer()?;
        self.purge_files(&mut writer, now_ms)?;
        Ok(writer.doomed.len())
    }

    pub(super) fn purge_files(&self, writer: &mut Writer<S>, now_ms: i64) -> Result<()> {
        let mut failed = Ok(());
        let dir = &self.dir;
        writer.doomed.retain(|doomed| {
            if doomed.due_ms > now_ms || failed.is_err() {
                return true;
            }
            failed = dir.unlink(&doomed.name).map(|_| ());
            failed.is_err()
        });
        failed
    }
}

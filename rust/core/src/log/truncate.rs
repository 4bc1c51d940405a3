//! Truncation: dropping the end of a log, or all of it.
//!
//! Readers run beside it without a lock, so its order matters: the generation of every segment that
//! loses bytes is raised, the shorter view is shown, and only then are bytes dropped. After a crash
//! at any point the log is one that ends between the old end and the new: segments go one by one
//! from the highest down, and they and their producer snapshots are gone for sure before new bytes
//! can follow the cut. A log that begins anew has its new segment before it loses the last old one:
//! without any, the next opening would not know where offsets go on.

use std::sync::Arc;

use super::Log;
use super::view::{Mark, Slot, floor};
use super::writer::{Writer, no_segment};
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::{WriteDir, WriteFs};
use crate::segment::Segment;

impl<S: WriteFs> Log<S> {
    /// Drops every batch that has an offset from this one on; `false` when there is none. The next
    /// offset is then this one, also where it lay inside a batch.
    pub fn truncate_to(&self, offset: i64) -> Result<bool> {
        if offset < 0 {
            return Err(Error::Invalid(format!("a log cannot end at offset {offset}")));
        }
        let mut writer = self.writer()?;
        if offset >= writer.end.offset {
            let end = writer.end.offset;
            writer.change_epochs(|epochs| epochs.truncate_from_end(end));
            self.publish(&writer);
            return Ok(false);
        }
        let Some(last) = floor(&writer.slots, offset) else {
            return self.restart(&mut writer, offset, offset).map(|()| true);
        };
        let (mark, records_end) = place(&writer, last, offset)?;
        self.lower_recovery_point(records_end)?;
        let cut = self.cut(&mut writer, last, mark, records_end);
        self.poison_if(cut)?;
        Ok(true)
    }

    /// Drops everything; the next offset is `offset`, and so is the log start unless it is given.
    pub fn truncate_fully_and_start_at(&self, offset: i64, log_start: Option<i64>) -> Result<()> {
        if offset < 0 || log_start.is_some_and(|start| !(0..=offset).contains(&start)) {
            return Err(Error::Invalid(format!(
                "a log cannot start at offset {} and end at {offset}",
                log_start.unwrap_or(offset)
            )));
        }
        let mut writer = self.writer()?;
        self.restart(&mut writer, offset, log_start.unwrap_or(offset))
    }

    /// Ends the log in the middle of the segment at index `last`.
    fn cut(&self, writer: &mut Writer<S>, last: usize, end: Mark, records_end: i64) -> Result<()> {
        let (config, now_ms) = (self.config(), self.now_ms());
        self.lower_start(writer, end.offset)?;
        let mut kept: Vec<Slot<S>> = writer.slots.to_vec();
        let gone = kept.split_off(last.saturating_add(1));
        let Some(slot) = kept.last_mut() else {
            return Ok(());
        };
        let segment = Arc::clone(&slot.segment);
        for slot in &gone {
            slot.segment.retire();
            slot.segment.raise_generation();
        }
        segment.raise_generation();
        slot.generation = segment.generation();
        self.show_end(writer, kept, end, writer.start);
        writer.records_end = records_end;
        self.doom_newest(writer, &gone, now_ms)?;
        writer.snapshots.delete_after(end.offset)?;
        self.dir.sync()?;
        let segment = match segment.cut_at(end.offset, end.position, now_ms)? {
            Some(copy) => self.replace_last(writer, copy),
            None => segment,
        };
        writer.tail = Some(segment.activate(&config)?);
        writer.change_epochs(|epochs| epochs.truncate_from_end(end.offset));
        self.rebuild_producers(writer)?;
        writer.stable = writer.resolve_stable()?;
        self.publish(writer);
        Ok(())
    }

    /// Lowers the log start and has it recorded. It is shown first, so that a checkpoint written
    /// beside this does not record the old one again.
    fn lower_start(&self, writer: &mut Writer<S>, start: i64) -> Result<()> {
        if start >= writer.start {
            return Ok(());
        }
        writer.start = start;
        self.publish(writer);
        match &self.options.on_start_lowered {
            Some(record) => record(start),
            None => Ok(()),
        }
    }

    /// Puts another segment in the place of the last one. Readers that have the old one find out
    /// by its generation.
    fn replace_last(&self, writer: &mut Writer<S>, segment: Segment<S>) -> Arc<Segment<S>> {
        let segment = Arc::new(segment);
        let mut slots = writer.slots.to_vec();
        if let Some(old) = slots.pop() {
            old.segment.retire();
            old.segment.raise_generation();
        }
        slots.push(Slot::new(Arc::clone(&segment)));
        writer.slots = Arc::new(slots);
        self.publish(writer);
        segment
    }

    /// Shows readers a log that ends earlier.
    fn show_end(&self, writer: &mut Writer<S>, slots: Vec<Slot<S>>, end: Mark, start: i64) {
        writer.flush.truncations = writer.flush.truncations.wrapping_add(1);
        writer.flush.from = writer.flush.from.min(end.segment);
        writer.slots = Arc::new(slots);
        writer.tail = None;
        writer.start = start;
        writer.end = end;
        for mark in [&mut writer.high_watermark, &mut writer.stable] {
            if mark.offset >= end.offset {
                *mark = end;
            }
        }
        self.publish(writer);
    }

    /// Takes segments away for good, the newest first: none outlives one before it.
    fn doom_newest(&self, writer: &mut Writer<S>, gone: &[Slot<S>], now_ms: i64) -> Result<()> {
        gone.iter().rev().try_for_each(|slot| {
            self.doom_segment(writer, slot, now_ms)?;
            self.dir.sync()
        })
    }

    /// Drops every segment and begins a new one.
    fn restart(&self, writer: &mut Writer<S>, offset: i64, start: i64) -> Result<()> {
        self.lower_recovery_point(offset)?;
        let restarted = self.restart_files(writer, offset, start);
        self.poison_if(restarted)
    }

    fn restart_files(&self, writer: &mut Writer<S>, offset: i64, start: i64) -> Result<()> {
        let (config, now_ms) = (self.config(), self.now_ms());
        if offset < writer.end.offset {
            let last = floor(&writer.slots, offset).unwrap_or(0);
            let (end, records_end) = place(writer, last, offset)?;
            self.cut(writer, last, end, records_end)?;
        }
        if offset < writer.end.offset {
            // The cut has emptied the first segment, and the new one goes before it.
            self.remove_strays(offset)?;
            let segment = Segment::create(&self.dir, offset, &config, now_ms)?;
            let mut slots = vec![Slot::new(Arc::new(segment))];
            slots.extend(writer.slots.iter().cloned());
            writer.slots = Arc::new(slots);
            self.dir.sync()?;
            self.lower_start(writer, offset)?;
        } else if self.roll_to(writer, offset, now_ms)? {
            self.dir.sync()?;
        }
        let (kept, gone): (Vec<_>, Vec<_>) =
            writer.slots.iter().cloned().partition(|slot| slot.segment.base_offset() == offset);
        for slot in &gone {
            slot.segment.retire();
            slot.segment.raise_generation();
        }
        let end = Mark { offset, segment: offset, position: 0 };
        writer.high_watermark = end;
        writer.stable = end;
        self.show_end(writer, kept, end, start);
        writer.records_end = offset;
        writer.flush.from = offset;
        writer.ready(&config)?;
        writer.reset_producers(offset)?;
        self.doom_newest(writer, &gone, now_ms)?;
        self.dir.sync()?;
        writer.change_epochs(EpochCache::clear);
        self.write_epochs(writer)
    }
}

/// Where an offset is in a segment, or the beginning of the segment where it lies before it; and
/// the offset at which the batch begins that holds it.
fn place<S: WriteFs>(writer: &Writer<S>, at: usize, offset: i64) -> Result<(Mark, i64)> {
    let Some(Slot { segment, .. }) = writer.slots.get(at) else {
        return Err(no_segment());
    };
    let (offset, size) = (offset.max(segment.base_offset()), segment.size());
    let found = segment.locate(offset, size)?;
    let position = found.as_ref().map_or(size, |found| found.position);
    let records_end = found.map_or(offset, |found| found.base_offset.min(offset));
    Ok((Mark { offset, segment: segment.base_offset(), position }, records_end))
}

//! Rolling: closing the segment that is written and beginning the next.
//!
//! A crash must not leave a hole between two segments: the old one is on the device, with its name,
//! before the new one has a name. Only a log that promises nothing but to outlive its process, and
//! that another thread flushes, goes on without waiting for that.

use std::sync::Arc;

use super::view::Slot;
use super::writer::{Writer, no_segment};
use super::{Log, Mark};
use crate::config::{Fsync, LogConfig};
use crate::error::{Error, Result};
use crate::fs::{WriteDir, WriteFs};
use crate::names::FileKind;
use crate::segment::active::Incoming;
use crate::segment::sealed::FlushDepth;
use crate::segment::{Segment, name};

const FILES: [FileKind; 4] =
    [FileKind::Log, FileKind::Index, FileKind::TimeIndex, FileKind::TxnIndex];

impl<S: WriteFs> Log<S> {
    /// Closes the segment that is written and begins a new one at the log's end. Gives the base
    /// offset of the segment that is written then; an empty one is kept.
    pub fn roll(&self) -> Result<i64> {
        let mut writer = self.writer()?;
        let base_offset = writer.end.offset;
        let has_rolled = self.roll_to(&mut writer, base_offset, self.now_ms())?;
        drop(writer);
        if has_rolled && !self.options.background_flush {
            self.flush()?;
        }
        Ok(base_offset)
    }

    /// Begins a new segment if the set does not belong into the old one; says whether it did.
    pub(super) fn maybe_roll(
        &self,
        writer: &mut Writer<S>,
        set: &Incoming,
        first_offset: i64,
        config: &LogConfig,
    ) -> Result<bool> {
        let tail = writer.ready(config)?;
        let active = writer.active().ok_or_else(no_segment)?;
        if !active.is_full_for(set, &tail, config)? {
            return Ok(false);
        }
        self.roll_to(writer, first_offset, set.now_ms)
    }

    /// Begins a new segment at an offset, or at the log's end if that is higher. An empty segment
    /// of that base is kept as it is.
    pub(super) fn roll_to(
        &self,
        writer: &mut Writer<S>,
        base_offset: i64,
        now_ms: i64,
    ) -> Result<bool> {
        let config = self.config();
        let base_offset = base_offset.max(writer.end.offset);
        let active = Arc::clone(writer.active().ok_or_else(no_segment)?);
        if base_offset == active.base_offset() && active.size() == 0 {
            return Ok(false);
        }
        if base_offset <= active.base_offset() {
            return Err(Error::Invalid(format!(
                "a segment cannot begin at {base_offset}: there is one at {}",
                active.base_offset()
            )));
        }
        let tail = writer.ready(&config)?;
        // The flush that follows would write them, but after the bytes of an append are visible.
        self.write_epochs(writer)?;
        writer.take_snapshot(base_offset)?;
        self.remove_strays(base_offset)?;
        active.finish_times(tail.largest)?;
        let sealed = active.seal().and_then(|()| self.settle_end(&active, &config));
        self.poison_if(sealed)?;
        let segment = match Segment::create(&self.dir, base_offset, &config, now_ms) {
            Ok(segment) => Arc::new(segment),
            Err(error) => {
                let undone = self.undo_roll(writer, &active, base_offset, &config);
                self.poison_if(undone)?;
                return Err(error);
            }
        };
        let tail = segment.activate(&config);
        writer.tail = Some(self.poison_if(tail)?);
        let mut slots = writer.slots.to_vec();
        slots.push(Slot::new(segment));
        writer.slots = Arc::new(slots);
        writer.move_end(base_offset);
        writer.flush.names = true;
        writer.flush.is_pending = true;
        self.publish(writer);
        Ok(true)
    }

    /// Makes sure that a segment is there before the next one can be: its records, and its name.
    /// Without fsync nothing is promised of a power cut.
    fn settle_end(&self, active: &Segment<S>, config: &LogConfig) -> Result<()> {
        if config.fsync == Fsync::Never {
            return Ok(());
        }
        active.flush(FlushDepth::Records)?;
        self.dir.sync()
    }

    /// Makes the old segment ready again after a new one could not be made.
    fn undo_roll(
        &self,
        writer: &mut Writer<S>,
        active: &Segment<S>,
        base_offset: i64,
        config: &LogConfig,
    ) -> Result<()> {
        let since_index = writer.tail.map_or(0, |tail| tail.since_index);
        writer.tail = None;
        self.remove_strays(base_offset)?;
        let mut tail = active.activate(config)?;
        tail.since_index = since_index;
        writer.tail = Some(tail);
        Ok(())
    }

    /// Removes files that a crash or a failed roll left where a new segment is to be.
    pub(super) fn remove_strays(&self, base_offset: i64) -> Result<()> {
        FILES.into_iter().try_for_each(|kind| self.dir.unlink(&name(base_offset, kind)).map(|_| ()))
    }
}

impl<S: WriteFs> Writer<S> {
    /// The end, and the marks that stand at it, move to the new segment.
    fn move_end(&mut self, base_offset: i64) {
        let end = Mark { offset: self.end.offset, segment: base_offset, position: 0 };
        for mark in [&mut self.high_watermark, &mut self.stable] {
            if mark.offset == end.offset {
                *mark = end;
            }
        }
        self.end = end;
    }
}

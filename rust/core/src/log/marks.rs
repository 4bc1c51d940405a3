//! The offsets that bound what readers see: log start, last stable offset, high watermark, end.

use super::Log;
use std::sync::PoisonError;

use super::view::{Mark, View};
use super::writer::Writer;
use crate::error::{Error, Result};
use crate::fs::WriteFs;

/// Where a log begins and ends, of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Base offset of the first segment.
    pub first_base: i64,
    /// The first offset that readers may ask for.
    pub start: i64,
    /// Readers of committed transactions end here.
    pub last_stable: i64,
    /// Readers end here.
    pub high_watermark: i64,
    /// The next offset to be written.
    pub end: i64,
}

impl<S: WriteFs> View<S> {
    pub(super) fn bounds(&self) -> Bounds {
        let first = self.slots.first();
        Bounds {
            first_base: first.map_or(self.start, |slot| slot.segment.base_offset()),
            start: self.start,
            last_stable: self.stable.offset,
            high_watermark: self.high_watermark.offset,
            end: self.end.offset,
        }
    }
}

impl<S: WriteFs> Log<S> {
    /// Where the log begins and ends.
    pub fn bounds(&self) -> Result<Bounds> {
        Ok(self.view()?.bounds())
    }

    /// The same of a log that may have been closed: where it began and ended then.
    pub(crate) fn last_bounds(&self) -> Bounds {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        self.last_bounds.get().copied().unwrap_or_else(|| view.bounds())
    }

    /// The first offset that readers may ask for.
    pub fn start_offset(&self) -> Result<i64> {
        Ok(self.view()?.start)
    }

    /// The next offset to be written.
    pub fn end_offset(&self) -> Result<i64> {
        Ok(self.view()?.end.offset)
    }

    /// The offset that readers end at.
    pub fn high_watermark(&self) -> Result<i64> {
        Ok(self.view()?.high_watermark.offset)
    }

    /// The offset that readers of committed transactions end at.
    pub fn last_stable_offset(&self) -> Result<i64> {
        Ok(self.view()?.stable.offset)
    }

    /// Moves the high watermark to an offset, or as near to it as the log reaches. Gives where it
    /// is then.
    pub fn set_high_watermark(&self, offset: i64) -> Result<i64> {
        let mut writer = self.writer()?;
        let mark = writer.resolve(offset.max(writer.start))?;
        self.move_high_watermark(&mut writer, mark)?;
        Ok(mark.offset)
    }

    /// Moves the high watermark forward; gives the old one if it moved. A leader's way.
    pub fn maybe_raise_high_watermark(&self, offset: i64) -> Result<Option<i64>> {
        let mut writer = self.writer()?;
        if offset > writer.end.offset {
            return Err(Error::Invalid(format!(
                "the high watermark {offset} cannot be above the log's end {}",
                writer.end.offset
            )));
        }
        let old = writer.high_watermark;
        let mark = writer.resolve(offset)?;
        if mark.offset > old.offset || (mark.offset == old.offset && mark.segment > old.segment) {
            self.move_high_watermark(&mut writer, mark)?;
            return Ok(Some(old.offset));
        }
        Ok(None)
    }

    pub(super) fn move_high_watermark(&self, writer: &mut Writer<S>, mark: Mark) -> Result<()> {
        writer.high_watermark = mark;
        writer.producers.on_high_watermark(mark.offset);
        writer.stable = writer.resolve_stable()?;
        self.publish(writer);
        Ok(())
    }

    /// Drops the records below an offset, or below the high watermark for −1, from what readers
    /// see. Their files go when retention runs. Gives the log start.
    pub fn delete_records(&self, before: i64) -> Result<i64> {
        let policy = self.config().cleanup_policy;
        if policy.compact && !policy.delete {
            return Err(Error::Rejected {
                code: "POLICY_VIOLATION",
                reason: "records of a topic that is only compacted cannot be deleted".to_owned(),
            });
        }
        let mut writer = self.writer()?;
        let high_watermark = writer.high_watermark.offset;
        let offset = if before == -1 { high_watermark } else { before };
        if offset < 0 || offset > high_watermark {
            let (start, end) = (writer.start, high_watermark);
            return Err(Error::OutOfRange { asked: before, start, end });
        }
        self.raise_start(&mut writer, offset)?;
        Ok(writer.start)
    }

    /// Raises the log start to an offset that is not above the high watermark.
    pub(super) fn raise_start(&self, writer: &mut Writer<S>, offset: i64) -> Result<()> {
        if offset <= writer.start {
            return Ok(());
        }
        writer.start = offset;
        writer.change_epochs(|epochs| epochs.truncate_from_start(offset));
        writer.producers.on_log_start(offset);
        writer.stable = writer.resolve_stable()?;
        self.publish(writer);
        Ok(())
    }
}

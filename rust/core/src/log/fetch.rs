//! A slice of a segment's file that a reader was given.

use std::path::PathBuf;

use super::view::{Slot, View};
use crate::error::Result;
use crate::fs::{File, WriteFs};
use crate::index::AbortedTxn;

/// A slice of a segment's file. The file stays readable while the slice is held, also when the
/// segment is deleted; a truncation of the segment is noticed.
pub struct Fetch<S: WriteFs> {
    slot: Option<Slot<S>>,
    position: u64,
    bytes: u64,
    /// First offset of the first batch, or the offset asked for when there is none.
    pub base_offset: i64,
    /// Whether the byte limit cuts the first batch.
    pub first_entry_incomplete: bool,
    /// The aborted transactions that reach into the slice, for readers of committed records.
    pub aborted: Option<Vec<AbortedTxn>>,
    /// The first offset of the log when the slice was made.
    pub log_start: i64,
    /// The high watermark then.
    pub high_watermark: i64,
    /// The last stable offset then.
    pub last_stable_offset: i64,
}

impl<S: WriteFs> Fetch<S> {
    pub(super) fn empty(view: &View<S>, offset: i64) -> Self {
        Self {
            slot: None,
            position: 0,
            bytes: 0,
            base_offset: offset,
            first_entry_incomplete: false,
            aborted: None,
            log_start: view.start,
            high_watermark: view.high_watermark.offset,
            last_stable_offset: view.stable.offset,
        }
    }

    pub(super) fn slice(view: &View<S>, slot: Slot<S>, position: u64, bytes: u64) -> Self {
        Self { slot: Some(slot), position, bytes, ..Self::empty(view, 0) }
    }

    /// Base offset of the segment, when there is something to read.
    pub fn segment(&self) -> Option<i64> {
        self.slot.as_ref().map(|slot| slot.segment.base_offset())
    }

    /// The file, when there is something to read.
    pub fn path(&self) -> Option<PathBuf> {
        let slot = self.slot.as_ref()?;
        Some(slot.segment.file().ok()?.path().to_owned())
    }

    /// Where the slice begins in the file.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the slice.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn slot(&self) -> Option<&Slot<S>> {
        self.slot.as_ref()
    }

    /// Reads the slice into a buffer, which then holds nothing else.
    pub fn read(&self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.resize(usize::try_from(self.bytes).unwrap_or(usize::MAX), 0);
        self.read_at(buffer, 0)
    }

    /// Fills a buffer from a place in the slice.
    pub(super) fn read_at(&self, buffer: &mut [u8], from: u64) -> Result<()> {
        let Some(slot) = self.slot.as_ref().filter(|_| !buffer.is_empty()) else {
            return Ok(());
        };
        let read = slot.segment.file()?.read_at(buffer, self.position.saturating_add(from))?;
        if !slot.is_current() {
            return Err(slot.segment.changed("was truncated"));
        }
        if read < buffer.len() {
            return Err(slot.segment.changed("was cut short"));
        }
        Ok(())
    }
}

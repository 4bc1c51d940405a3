//! What readers see of a log: one consistent picture, taken under a short lock and then free.

use std::sync::Arc;

use crate::epoch::EpochCache;
use crate::fs::WriteFs;
use crate::segment::Segment;

/// An offset with the place of the batch that has it, or that will have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The offset.
    pub offset: i64,
    /// Base offset of the segment.
    pub segment: i64,
    /// Position in the segment's file. A batch that holds the offset in its middle starts here.
    pub position: u64,
}

/// A segment as it was when the view was made.
pub(crate) struct Slot<S: WriteFs> {
    pub(crate) segment: Arc<Segment<S>>,
    /// The generation whose bytes the view speaks of.
    pub(crate) generation: u64,
}

impl<S: WriteFs> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self { segment: Arc::clone(&self.segment), generation: self.generation }
    }
}

impl<S: WriteFs> Slot<S> {
    pub(crate) fn new(segment: Arc<Segment<S>>) -> Self {
        let generation = segment.generation();
        Self { segment, generation }
    }

    /// Whether the bytes are still those that the view spoke of.
    pub(crate) fn is_current(&self) -> bool {
        self.segment.generation() == self.generation
    }
}

/// One picture of a log. The offsets are in order: start ≤ stable ≤ high watermark ≤ end.
pub(crate) struct View<S: WriteFs> {
    /// The segments by base offset; never empty, the last is the one that is written.
    pub(crate) slots: Arc<Vec<Slot<S>>>,
    /// The first offset that readers may ask for.
    pub(crate) start: i64,
    /// Readers of committed transactions end here.
    pub(crate) stable: Mark,
    /// Readers end here.
    pub(crate) high_watermark: Mark,
    /// The next offset to be written.
    pub(crate) end: Mark,
    pub(crate) epochs: Arc<EpochCache>,
}

impl<S: WriteFs> Clone for View<S> {
    fn clone(&self) -> Self {
        Self {
            slots: Arc::clone(&self.slots),
            epochs: Arc::clone(&self.epochs),
            start: self.start,
            stable: self.stable,
            high_watermark: self.high_watermark,
            end: self.end,
        }
    }
}

impl<S: WriteFs> View<S> {
    /// Index of the segment that an offset lies in.
    pub(crate) fn floor(&self, offset: i64) -> Option<usize> {
        floor(&self.slots, offset)
    }

    /// Bytes of a segment that this view speaks of.
    pub(crate) fn size_of(&self, slot: &Slot<S>) -> u64 {
        if slot.segment.base_offset() == self.end.segment {
            self.end.position
        } else {
            slot.segment.size()
        }
    }
}

/// Index of the segment with the greatest base offset that is not above the offset.
pub(crate) fn floor<S: WriteFs>(slots: &[Slot<S>], offset: i64) -> Option<usize> {
    slots.partition_point(|slot| slot.segment.base_offset() <= offset).checked_sub(1)
}

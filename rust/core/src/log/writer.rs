//! The state behind the log's lock, and how it is shown to readers.

use std::sync::Arc;

use super::view::{Mark, Slot, View, floor};
use crate::config::LogConfig;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::WriteFs;
use crate::producer::{ProducerStates, Snapshots};
use crate::record::Validator;
use crate::segment::Segment;
use crate::segment::active::Tail;

/// What only the holder of the log's lock touches.
pub(crate) struct Writer<S: WriteFs> {
    pub(crate) slots: Arc<Vec<Slot<S>>>,
    /// Of the last segment; `None` until it was made ready for appends.
    pub(crate) tail: Option<Tail>,
    pub(crate) start: i64,
    pub(crate) stable: Mark,
    pub(crate) high_watermark: Mark,
    pub(crate) end: Mark,
    /// The offset after the last record. A truncation inside a batch leaves a gap before the end,
    /// and the recovery point must not lie in it: what is written there next is not on the device.
    pub(crate) records_end: i64,
    pub(crate) validator: Validator,
    pub(crate) producers: ProducerStates,
    pub(crate) snapshots: Snapshots<S::Dir>,
    pub(crate) epochs: Arc<EpochCache>,
    /// Whether the leader-epoch file is behind the cache.
    pub(crate) epochs_stale: bool,
    /// Files that wait for their removal.
    pub(crate) doomed: Vec<Doomed>,
    pub(crate) flush: FlushState,
}

/// What is not on the device yet.
pub(crate) struct FlushState {
    /// Base offset of the first segment that was not flushed since its last write.
    pub(crate) from: i64,
    /// Whether names came or went in the directory since it was synced.
    pub(crate) names: bool,
    /// Producer snapshots that were not synced.
    pub(crate) snapshots: Vec<i64>,
    /// Counts appends: a flush covers those counted before it began.
    pub(crate) appends: u64,
    /// Counts truncations: a flush beside one says nothing about offsets.
    pub(crate) truncations: u64,
    /// When a flush ended last.
    pub(crate) last_ms: i64,
    /// A segment was closed and not flushed since.
    pub(crate) is_pending: bool,
}

impl FlushState {
    pub(crate) fn new(from: i64, names: bool, now_ms: i64) -> Self {
        Self {
            from,
            names,
            snapshots: Vec::new(),
            appends: 0,
            truncations: 0,
            last_ms: now_ms,
            is_pending: false,
        }
    }
}

/// A file that waits for its removal.
pub(crate) struct Doomed {
    pub(crate) name: String,
    pub(crate) due_ms: i64,
}

impl<S: WriteFs> Writer<S> {
    /// The segment that is written.
    pub(crate) fn active(&self) -> Option<&Arc<Segment<S>>> {
        self.slots.last().map(|slot| &slot.segment)
    }

    /// The picture for readers.
    pub(crate) fn view(&self) -> View<S> {
        View {
            slots: Arc::clone(&self.slots),
            start: self.start,
            stable: self.stable,
            high_watermark: self.high_watermark,
            end: self.end,
            epochs: Arc::clone(&self.epochs),
        }
    }

    /// Makes the last segment ready for appends, once.
    pub(crate) fn ready(&mut self, config: &LogConfig) -> Result<Tail> {
        if let Some(tail) = self.tail {
            return Ok(tail);
        }
        let Some(active) = self.active() else {
            return Err(no_segment());
        };
        let tail = active.activate(config)?;
        self.tail = Some(tail);
        Ok(tail)
    }

    /// Bytes of a segment that the log knows of.
    pub(crate) fn size_of(&self, segment: &Segment<S>) -> u64 {
        if segment.base_offset() == self.end.segment { self.end.position } else { segment.size() }
    }

    /// The place of an offset between start and end: that of the batch that holds it, or of the
    /// next one where it falls into a gap.
    pub(crate) fn resolve(&self, offset: i64) -> Result<Mark> {
        if offset >= self.end.offset {
            return Ok(self.end);
        }
        let first = floor(&self.slots, offset).unwrap_or(0);
        for slot in self.slots.iter().skip(first) {
            let segment = &slot.segment;
            if let Some(found) = segment.locate(offset, self.size_of(segment))? {
                let segment = segment.base_offset();
                return Ok(Mark { offset, segment, position: found.position });
            }
        }
        Ok(Mark { offset, ..self.end })
    }

    /// Where the last stable offset is, given the high watermark and the producers.
    pub(crate) fn resolve_stable(&self) -> Result<Mark> {
        let unstable = self.producers.first_unstable_offset().map(|first| first.max(self.start));
        match unstable {
            Some(offset) if offset == self.stable.offset => Ok(self.stable),
            Some(offset) if offset < self.high_watermark.offset => self.resolve(offset),
            _ => Ok(self.high_watermark),
        }
    }
}

/// A log has a segment from its first moment on.
pub(crate) fn no_segment() -> Error {
    Error::Invalid("the log has no segment".to_owned())
}

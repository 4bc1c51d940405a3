//! Reading: from an offset to a slice of a segment's file.

use std::time::Duration;

use super::fetch::Fetch;
use super::view::{Mark, Slot, View};
use super::{Isolation, Log};
use crate::error::{Error, Result};
use crate::fs::WriteFs;
use crate::index::AbortedTxn;

/// How often a reader begins again because of a truncation: for about a second.
const ATTEMPTS: u32 = 10_000;
/// Beginnings without a pause; a truncation usually takes less time than these.
const QUICK_ATTEMPTS: u32 = 100;

impl<S: WriteFs> Log<S> {
    /// Finds the records from an offset on: at most `max_bytes`, but with `min_one` at least the
    /// first batch. The slice may end inside a batch, and begins with the whole batch that holds
    /// the offset.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: u64,
        isolation: Isolation,
        min_one: bool,
    ) -> Result<Fetch<S>> {
        let wanted = Wanted { offset, max_bytes, isolation, min_one };
        self.retrying(|view| wanted.find(view))
    }

    /// [`Self::read`] and the bytes of it, into a buffer that is used again. A truncation beside it
    /// is not seen: the read begins again.
    pub fn read_into(
        &self,
        offset: i64,
        max_bytes: u64,
        isolation: Isolation,
        min_one: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<Fetch<S>> {
        let wanted = Wanted { offset, max_bytes, isolation, min_one };
        self.retrying(|view| {
            let fetch = wanted.find(view)?;
            fetch.read(buffer)?;
            Ok(fetch)
        })
    }

    /// Runs a search on a view, and again on a new one when a segment went away beneath it.
    pub(super) fn retrying<T>(&self, mut run: impl FnMut(&View<S>) -> Result<T>) -> Result<T> {
        let mut attempt = 0;
        loop {
            let view = self.view()?;
            match run(&view) {
                Err(error) if attempt < ATTEMPTS && has_moved(&view, &error) => {
                    attempt += 1;
                    if attempt < QUICK_ATTEMPTS {
                        std::thread::yield_now();
                    } else {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
                result => return result,
            }
        }
    }
}

/// Whether a failure can come from the segments having changed since the view was made. The check
/// goes over all of them, which is only done after a failure.
fn has_moved<S: WriteFs>(view: &View<S>, error: &Error) -> bool {
    let can_be = matches!(error, Error::Changed { .. } | Error::Corrupt { .. } | Error::Io { .. });
    can_be && view.slots.iter().any(|slot| !slot.is_current() || slot.segment.is_retired())
}

/// What a reader asks for.
#[derive(Clone, Copy)]
struct Wanted {
    offset: i64,
    max_bytes: u64,
    isolation: Isolation,
    min_one: bool,
}

impl Wanted {
    fn find<S: WriteFs>(self, view: &View<S>) -> Result<Fetch<S>> {
        let (start, end) = (view.start, view.end.offset);
        let out_of_range = Error::OutOfRange { asked: self.offset, start, end };
        if self.offset < start || self.offset > end {
            return Err(out_of_range);
        }
        let bound = match self.isolation {
            Isolation::LogEnd => view.end,
            Isolation::HighWatermark => view.high_watermark,
            Isolation::Committed => view.stable,
        };
        if self.offset >= bound.offset {
            return Ok(Fetch::empty(view, self.offset));
        }
        let Some(first) = view.floor(self.offset) else {
            return Err(out_of_range);
        };
        for (index, slot) in view.slots.iter().enumerate().skip(first) {
            if let Some(mut fetch) = self.find_in(view, slot, bound)? {
                if self.isolation == Isolation::Committed {
                    fetch.aborted = Some(self.aborted(view, index, &fetch)?);
                }
                return Ok(fetch);
            }
        }
        Ok(Fetch::empty(view, end))
    }

    /// The slice of one segment; `None` when the segment ends before the offset.
    fn find_in<S: WriteFs>(
        self,
        view: &View<S>,
        slot: &Slot<S>,
        bound: Mark,
    ) -> Result<Option<Fetch<S>>> {
        let segment = &slot.segment;
        let size = view.size_of(slot);
        let Some(found) = segment.locate(self.offset, size)? else {
            return check(slot).map(|()| None);
        };
        check(slot)?;
        let max_position = match segment.base_offset().cmp(&bound.segment) {
            std::cmp::Ordering::Less => size,
            std::cmp::Ordering::Equal => bound.position,
            std::cmp::Ordering::Greater => found.position,
        };
        let limit = if self.min_one { self.max_bytes.max(found.bytes) } else { self.max_bytes };
        let bytes = max_position.saturating_sub(found.position).min(limit);
        let mut fetch = Fetch::slice(view, slot.clone(), found.position, bytes);
        fetch.base_offset = found.base_offset;
        fetch.first_entry_incomplete = limit < found.bytes;
        Ok(Some(fetch))
    }

    /// The aborted transactions that reach into the slice.
    fn aborted<S: WriteFs>(
        self,
        view: &View<S>,
        index: usize,
        fetch: &Fetch<S>,
    ) -> Result<Vec<AbortedTxn>> {
        let slots = view.slots.get(index..).unwrap_or_default();
        let Some((slot, later)) = slots.split_first() else {
            return Ok(Vec::new());
        };
        let beyond = slot.segment.offset_index.upper_bound(fetch.position(), fetch.bytes())?;
        let next = later.first().map_or(view.end.offset, |slot| slot.segment.base_offset());
        let upper = beyond.map_or(next, |entry| entry.offset);
        let mut aborted = Vec::new();
        for slot in slots {
            let (found, is_complete) =
                slot.segment.txn_index.aborted_between(self.offset, upper)?;
            check(slot)?;
            aborted.extend(found);
            if is_complete {
                break;
            }
        }
        Ok(aborted)
    }
}

/// Fails when a look into the segment may have met other bytes than those of the view.
fn check<S: WriteFs>(slot: &Slot<S>) -> Result<()> {
    if !slot.is_current() {
        return Err(slot.segment.changed("was truncated"));
    }
    if slot.segment.is_retired() {
        return Err(slot.segment.changed("was deleted"));
    }
    Ok(())
}

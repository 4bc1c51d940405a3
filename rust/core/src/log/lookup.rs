//! From times and leader epochs to offsets.

use std::cell::RefCell;

use super::view::{Slot, View};
use super::{Isolation, Log, TimeOffset};
use crate::codec::Decoder;
use crate::error::{Error, Result};
use crate::fs::{File, WriteFs};
use crate::limits::LEGACY_SET_BYTES_MAX;
use crate::record::{EntryRecords, EntryView};
use crate::segment::EntryHead;
use crate::segment::read::Heads;

/// Asks for the log's end, or what the isolation allows of it.
pub const LATEST: i64 = -1;
/// Asks for the first offset.
pub const EARLIEST: i64 = -2;
/// Asks for the first record with the largest timestamp.
pub const MAX_TIMESTAMP: i64 = -3;
/// Asks for the first offset that is on this disk; the first one, without tiered storage.
pub const EARLIEST_LOCAL: i64 = -4;
/// Asks for the last offset in tiered storage, which there is none of.
pub const LATEST_TIERED: i64 = -5;
/// Asks for the first offset that waits to go to tiered storage, which there is none of.
pub const EARLIEST_PENDING_UPLOAD: i64 = -6;

thread_local! {
    static SCRATCH: RefCell<(Vec<u8>, Decoder)> = RefCell::default();
}

impl<S: WriteFs> Log<S> {
    /// The first record whose timestamp is not below the one asked for, or what one of the special
    /// negative timestamps asks for. `None` when there is no such record below the bound that the
    /// isolation sets.
    pub fn offset_for_time(
        &self,
        timestamp: i64,
        isolation: Isolation,
    ) -> Result<Option<TimeOffset>> {
        self.retrying(|view| {
            let bound = match isolation {
                Isolation::LogEnd => view.end.offset,
                Isolation::HighWatermark => view.high_watermark.offset,
                Isolation::Committed => view.stable.offset,
            };
            let found = match timestamp {
                LATEST => return Ok(Some(place(view, bound))),
                EARLIEST | EARLIEST_LOCAL => return Ok(Some(place(view, view.start))),
                LATEST_TIERED | EARLIEST_PENDING_UPLOAD => return Ok(None),
                MAX_TIMESTAMP => find_largest(view)?,
                0.. => find(view, timestamp)?,
                unknown => {
                    return Err(Error::Invalid(format!(
                        "{unknown} is no timestamp: it takes one from 0 up, or −1 to −6"
                    )));
                }
            };
            Ok(found.filter(|found| found.offset < bound).map(|found| TimeOffset {
                leader_epoch: view.epochs.epoch_for(found.offset),
                ..found
            }))
        })
    }

    /// The largest epoch up to the one asked for and the offset where it ends; `None` when the
    /// log does not know.
    pub fn end_offset_for_epoch(&self, epoch: i32) -> Result<Option<(i32, i64)>> {
        let view = self.view()?;
        Ok(view.epochs.end_offset_for(epoch, view.end.offset))
    }
}

/// An offset that no record is looked up for.
fn place<S: WriteFs>(view: &View<S>, offset: i64) -> TimeOffset {
    TimeOffset { timestamp: -1, offset, leader_epoch: view.epochs.epoch_for(offset) }
}

/// The first record at or after a time: in the first segment that reaches it, and only there.
fn find<S: WriteFs>(view: &View<S>, timestamp: i64) -> Result<Option<TimeOffset>> {
    for slot in view.slots.iter() {
        let segment = &slot.segment;
        if view.size_of(slot) == 0 || segment.largest_timestamp()? < timestamp {
            continue;
        }
        let hint = segment.time_index.lookup(timestamp)?.offset.max(view.start);
        let accepts = |found: i64, offset: i64| found >= timestamp && offset >= view.start;
        return search(view, slot, hint, timestamp, &accepts);
    }
    Ok(None)
}

/// The first record with the largest timestamp of all.
fn find_largest<S: WriteFs>(view: &View<S>) -> Result<Option<TimeOffset>> {
    let mut best = None;
    for slot in view.slots.iter() {
        let largest = slot.segment.largest()?;
        if best.is_none_or(|(_, timestamp)| largest.timestamp > timestamp) {
            best = Some((slot, largest.timestamp));
        }
    }
    let Some((slot, timestamp)) = best.filter(|(_, timestamp)| *timestamp >= 0) else {
        return Ok(None);
    };
    let hint = slot.segment.largest()?.offset;
    search(view, slot, hint, timestamp, &|found, _| found == timestamp)
}

/// The first accepted record of one segment, among the batches that reach the timestamp.
fn search<S: WriteFs>(
    view: &View<S>,
    slot: &Slot<S>,
    hint: i64,
    timestamp: i64,
    accepts: &dyn Fn(i64, i64) -> bool,
) -> Result<Option<TimeOffset>> {
    let segment = &slot.segment;
    let size = view.size_of(slot);
    let file = segment.file()?;
    let mut heads = Heads::new(file, segment.hint(hint, size)?, size);
    while let Some((position, head)) = heads.next()? {
        if head.max_timestamp() < timestamp || head.last_offset() < view.start {
            continue;
        }
        let found = search_entry(file, position, &head, accepts)?;
        if !slot.is_current() {
            return Err(segment.changed("was truncated"));
        }
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The first accepted record of one entry.
fn search_entry<F: File>(
    file: &F,
    position: u64,
    head: &EntryHead,
    accepts: &dyn Fn(i64, i64) -> bool,
) -> Result<Option<TimeOffset>> {
    SCRATCH.with_borrow_mut(|(buffer, decoder)| {
        buffer.resize(head.total_bytes(), 0);
        if file.read_at(buffer, position)? < buffer.len() {
            return Err(Error::Changed { path: file.path().to_owned(), what: "was cut short" });
        }
        let damage = |kind| Error::corrupt(file.path(), position, kind);
        let entry = EntryView::parse(buffer).map_err(damage)?;
        let records = EntryRecords::open(&entry, decoder, LEGACY_SET_BYTES_MAX)?;
        for record in records.map_err(damage)? {
            let record = record.map_err(damage)?;
            if accepts(record.timestamp, record.offset) {
                let (timestamp, offset) = (record.timestamp, record.offset);
                return Ok(Some(TimeOffset { timestamp, offset, leader_epoch: None }));
            }
        }
        Ok(None)
    })
}

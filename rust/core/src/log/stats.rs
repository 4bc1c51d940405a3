//! What a log says of itself.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Log, SegmentInfo};
use crate::error::Result;
use crate::fs::WriteFs;
use crate::segment::active::to_u64;

/// What happened since the log was opened.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) appends: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) flushes: AtomicU64,
}

/// Figures about a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogStats {
    /// Segments.
    pub segments: u64,
    /// Bytes of their entries.
    pub bytes: u64,
    /// Offsets from start to end; fewer records are there where there are gaps.
    pub offsets: u64,
    /// Appends since it was opened.
    pub appends: u64,
    /// Bytes they wrote.
    pub appended_bytes: u64,
    /// Flushes since it was opened.
    pub flushes: u64,
    /// Entries of the offset indexes that are open.
    pub offset_index_entries: u64,
    /// Entries of the time indexes that are open.
    pub time_index_entries: u64,
    /// Maps held.
    pub maps: u64,
    /// Segment files held open.
    pub descriptors: u64,
    /// Deleted files that wait for their removal.
    pub waiting_files: u64,
    /// Producers known.
    pub producers: u64,
}

impl LogStats {
    /// Adds the figures of another log.
    pub(crate) fn add(&mut self, other: &Self) {
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.offsets += other.offsets;
        self.appends += other.appends;
        self.appended_bytes += other.appended_bytes;
        self.flushes += other.flushes;
        self.offset_index_entries += other.offset_index_entries;
        self.time_index_entries += other.time_index_entries;
        self.maps += other.maps;
        self.descriptors += other.descriptors;
        self.waiting_files += other.waiting_files;
        self.producers += other.producers;
    }
}

impl<S: WriteFs> Log<S> {
    /// Figures. Opens nothing that is not open.
    pub fn stats(&self) -> Result<LogStats> {
        let view = self.view()?;
        let mut stats = LogStats {
            segments: to_u64(view.slots.len()),
            offsets: u64::try_from(view.end.offset.saturating_sub(view.start)).unwrap_or(0),
            appends: self.counters.appends.load(Ordering::Relaxed),
            appended_bytes: self.counters.bytes.load(Ordering::Relaxed),
            flushes: self.counters.flushes.load(Ordering::Relaxed),
            ..LogStats::default()
        };
        for slot in view.slots.iter() {
            let segment = &slot.segment;
            stats.bytes = stats.bytes.saturating_add(view.size_of(slot));
            stats.descriptors += u64::from(segment.is_open());
            if segment.offset_index.is_mapped() {
                stats.maps += 1;
                stats.offset_index_entries += to_u64(segment.offset_index.entries()?);
            }
            if segment.time_index.is_mapped() {
                stats.maps += 1;
                stats.time_index_entries += to_u64(segment.time_index.entries()?);
            }
        }
        // Figures of a log that refuses changes are figures all the same.
        if let Ok(writer) = self.writer.lock() {
            stats.waiting_files = to_u64(writer.doomed.len());
            stats.producers = to_u64(writer.producers.len());
        }
        Ok(stats)
    }

    /// The segments, oldest first.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>> {
        self.retrying(|view| {
            let mut infos = Vec::with_capacity(view.slots.len());
            for (index, slot) in view.slots.iter().enumerate() {
                let segment = &slot.segment;
                let next = view.slots.get(index.saturating_add(1));
                infos.push(SegmentInfo {
                    base_offset: segment.base_offset(),
                    next_offset: next.map_or(view.end.offset, |slot| slot.segment.base_offset()),
                    bytes: view.size_of(slot),
                    largest_timestamp: segment.largest_timestamp()?,
                    offset_index_entries: to_u64(segment.offset_index.entries()?),
                    time_index_entries: to_u64(segment.time_index.entries()?),
                    is_active: next.is_none(),
                });
            }
            Ok(infos)
        })
    }
}

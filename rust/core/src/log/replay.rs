//! Producer state and leader epochs while a log is being opened.
//!
//! Both are learned from the batches that are read. Producer state begins with the newest snapshot;
//! batches between it and what is read are replayed from their heads.

use std::sync::Arc;

use super::LogOptions;
use super::append::facts_of;
use super::producers::replay;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::WriteFs;
use crate::index::AbortedTxn;
use crate::producer::{BatchFacts, ProducerStates, Snapshots};
use crate::record::{BatchHeader, BatchView};
use crate::segment::{EntryHead, Segment};

pub(super) struct Replay<S: WriteFs> {
    producers: ProducerStates,
    snapshots: Snapshots<S::Dir>,
    epochs: EpochCache,
    /// Whether the producers stand for everything up to their end offset.
    is_loaded: bool,
    /// Snapshots that could not be read.
    senseless: Vec<i64>,
    /// Snapshots that were not synced.
    unsynced: Vec<i64>,
    log_start: i64,
    now_ms: i64,
    expiration_ms: i64,
}

/// What came out of it.
pub(super) struct Restored<S: WriteFs> {
    pub(super) producers: ProducerStates,
    pub(super) snapshots: Snapshots<S::Dir>,
    pub(super) epochs: EpochCache,
    /// Snapshots that may be in the page cache alone.
    pub(super) unsynced: Vec<i64>,
    /// Whether snapshots were removed.
    pub(super) names_changed: bool,
}

impl<S: WriteFs> Replay<S> {
    pub(super) fn new(dir: Arc<S::Dir>, epochs: EpochCache, options: &LogOptions) -> Result<Self> {
        Ok(Self {
            producers: ProducerStates::new(0),
            snapshots: Snapshots::open(dir)?,
            epochs,
            is_loaded: false,
            senseless: Vec::new(),
            unsynced: Vec::new(),
            log_start: options.checkpointed.log_start,
            now_ms: options.clock.now_ms(),
            expiration_ms: options.producer_expiration_ms,
        })
    }

    /// Brings producer state to an offset, before which the log consists of these segments.
    pub(super) fn reach(&mut self, offset: i64, segments: &[Arc<Segment<S>>]) -> Result<()> {
        if self.is_loaded && self.producers.map_end_offset() == offset {
            return Ok(());
        }
        self.restore(offset, segments.first().map_or(offset, |first| first.base_offset()))?;
        let producers = &mut self.producers;
        let from = producers.map_end_offset();
        if from < offset {
            let after = segments.partition_point(|segment| segment.base_offset() <= from);
            for segment in segments.get(after.saturating_sub(1)..).unwrap_or_default() {
                replay(producers, segment, segment.size(), from)?;
            }
            producers.set_map_end_offset(offset);
        }
        self.is_loaded = true;
        Ok(())
    }

    /// Loads the newest snapshot up to an offset that can be read. Nothing is removed: it is not
    /// known yet whether the log is one that may be changed.
    fn restore(&mut self, offset: i64, first: i64) -> Result<()> {
        let start = self.log_start.max(first).min(offset);
        let candidates: Vec<i64> =
            self.snapshots.offsets().rev().filter(|at| *at > start && *at <= offset).collect();
        for at in candidates {
            match self.snapshots.read(at) {
                Ok(snapshot) => {
                    let Self { producers, now_ms, expiration_ms, .. } = self;
                    producers.restore(&snapshot, at, *now_ms, *expiration_ms);
                    return Ok(());
                }
                Err(Error::Corrupt { .. } | Error::TooLarge { .. }) => self.senseless.push(at),
                Err(error) => return Err(error),
            }
        }
        self.producers.clear(start);
        Ok(())
    }

    /// Learns from a batch that was read; gives the transaction that it aborts.
    pub(super) fn entry(&mut self, head: &EntryHead, bytes: &[u8]) -> Result<Option<AbortedTxn>> {
        let EntryHead::Batch(header) = head else { return Ok(None) };
        self.learn_epoch(header)?;
        let end = header.last_offset().saturating_add(1);
        // What lies below the start counts for nothing, whether its segment was read or believed.
        if header.producer_id < 0 || end <= self.log_start {
            self.producers.set_map_end_offset(end);
            return Ok(None);
        }
        let facts = if header.attributes.is_control() {
            BatchView::parse(bytes).ok().map(|batch| facts_of(&batch)).transpose()
        } else {
            Ok(Some(BatchFacts::of(header, None)))
        };
        let outcome = facts
            .and_then(|facts| facts.map(|facts| self.producers.replay(&facts)).transpose())
            .map(Option::flatten);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // A batch that contradicts the ones before, or a marker that makes no sense, is in the
            // log all the same.
            Err(Error::Rejected { .. }) => None,
            Err(error) => return Err(error),
        };
        self.producers.set_map_end_offset(end);
        Ok(outcome.filter(|outcome| outcome.txn.aborted).map(|outcome| AbortedTxn {
            producer_id: outcome.txn.producer_id,
            first_offset: outcome.txn.first_offset,
            last_offset: outcome.txn.last_offset,
            last_stable_offset: outcome.last_stable_offset,
        }))
    }

    fn learn_epoch(&mut self, header: &BatchHeader) -> Result<()> {
        let latest = self.epochs.latest().map(|entry| entry.epoch);
        if header.leader_epoch >= 0 && latest.is_none_or(|latest| header.leader_epoch > latest) {
            self.epochs.assign(header.leader_epoch, header.base_offset)?;
        }
        Ok(())
    }

    /// Keeps the state at the end of a segment that was read, so that the next one begins there.
    /// One that is there already is not written again, but may be in the page cache alone.
    pub(super) fn snapshot(&mut self, offset: i64, sync: bool) -> Result<()> {
        self.producers.set_map_end_offset(offset);
        match self.snapshots.take_changed(&self.producers, sync) {
            Ok(()) => {
                // Where one could not be read, there is a good one now.
                self.senseless.retain(|at| *at != offset);
                if !sync {
                    self.unsynced.push(offset);
                }
            }
            Err(Error::NoSpace { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Forgets everything: the log begins anew.
    pub(super) fn restart(&mut self, offset: i64) -> Result<()> {
        self.producers.clear(offset);
        self.epochs.clear();
        self.unsynced.clear();
        self.is_loaded = true;
        self.snapshots.delete_all()
    }

    /// Brings everything to the end of the log. Files that belong to no part of it are removed,
    /// unless the log is damaged.
    pub(super) fn finish(
        mut self,
        start: i64,
        end: i64,
        segments: &[Arc<Segment<S>>],
        is_damaged: bool,
    ) -> Result<Restored<S>> {
        // In this order: an epoch that is moved to the start of an empty log does not stay.
        self.epochs.truncate_from_start(start);
        self.epochs.truncate_from_end(end);
        self.log_start = start;
        self.reach(end, segments)?;
        let count = self.snapshots.offsets().count();
        if !is_damaged {
            for offset in std::mem::take(&mut self.senseless) {
                self.snapshots.discard(offset)?;
            }
            // First what lies outside the log: of the strays inside it, the newest is kept.
            let Self { producers, snapshots, now_ms, expiration_ms, .. } = &mut self;
            snapshots.truncate_and_reload(producers, start, end, *now_ms, *expiration_ms)?;
            let bases: Vec<i64> = segments.iter().map(|segment| segment.base_offset()).collect();
            snapshots.remove_stray(&bases)?;
        }
        let Self { producers, snapshots, epochs, unsynced, .. } = self;
        let names_changed = snapshots.offsets().count() != count;
        Ok(Restored { producers, snapshots, epochs, unsynced, names_changed })
    }
}

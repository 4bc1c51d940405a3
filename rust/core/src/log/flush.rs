//! Durability: what is synced when, and who waits for it.
//!
//! 1. No lock is held while a file is synced, but for the last sync of a segment before the next
//!    one begins. Appends go on; the sync covers those counted before it began.
//! 2. With `fsync=always` an append waits for a sync that began after its bytes were written. One
//!    waiter syncs, the others wait for it: however many threads append, a sync serves them all.
//! 3. A failed sync says nothing about what is on the device, nor does a later one that succeeds.
//!    It poisons the log.
//! 4. The recovery point moves only after everything below it was synced. The segment that is
//!    written is recovered as a whole after a crash, so its indexes need no sync before it is closed.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Log;
use super::view::{Mark, floor};
use super::writer::Writer;
use crate::config::Fsync;
use crate::error::Result;
use crate::fs::{Create, WriteDir, WriteFile, WriteFs};
use crate::names::FileKind;
use crate::segment::sealed::FlushDepth;
use crate::segment::{Segment, name};

/// Where waiting appends meet.
#[derive(Default)]
pub(super) struct GroupCommit {
    state: Mutex<Commit>,
    pub(super) flushing: Mutex<()>,
    done: Condvar,
    arrived: Condvar,
}

/// The longest that an append waits for others before it syncs.
const GATHER_MAX: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Commit {
    /// Appends that a sync has covered.
    covered: u64,
    is_running: bool,
    /// Appends that wait for somebody else's sync now, and that did when the last one ended.
    waiting: usize,
    group: usize,
    /// How long the last sync took.
    took: Duration,
}

impl GroupCommit {
    /// Waits a little for as many appends as waited last time: threads that were just answered come
    /// back with their next append at once, and one sync then serves all of them. The wait is a
    /// fraction of what a sync of their own would cost them.
    fn gather<'a>(&self, mut commit: MutexGuard<'a, Commit>) -> MutexGuard<'a, Commit> {
        let end = Instant::now() + (commit.took / 2).min(GATHER_MAX);
        while commit.waiting < commit.group {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.arrived.wait_timeout(commit, left);
            commit = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        commit
    }
}

/// What one flush works on.
pub(super) struct Plan<S: WriteFs> {
    segments: Vec<Arc<Segment<S>>>,
    end: Mark,
    records_end: i64,
    appends: u64,
    truncations: u64,
    names: bool,
    snapshots: Vec<i64>,
    depth: FlushDepth,
}

impl<S: WriteFs> Log<S> {
    /// Makes everything that was appended so far durable, indexes included.
    pub fn flush(&self) -> Result<()> {
        self.flush_as(FlushDepth::Whole).map(|_| ())
    }

    /// Flushes if a segment was closed since the last flush, or if `flush.ms` have passed. Says
    /// whether it did.
    pub fn flush_pending(&self) -> Result<bool> {
        let config = self.config();
        let now_ms = self.now_ms();
        let is_due = {
            let writer = self.writer()?;
            let waited = now_ms.saturating_sub(writer.flush.last_ms);
            let has_more = writer.records_end > self.recovery_point();
            let is_late = config.fsync != Fsync::Never && has_more && waited >= config.flush_ms;
            writer.flush.is_pending || is_late
        };
        if is_due {
            self.flush()?;
        }
        Ok(is_due)
    }

    /// Waits until a sync has covered the appends up to this count.
    pub(super) fn wait_durable(&self, appends: u64) -> Result<()> {
        let lock = || self.commits.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut commit = lock();
        while commit.covered < appends {
            self.check_poison()?;
            if commit.is_running {
                commit.waiting += 1;
                self.commits.arrived.notify_one();
                commit = self.commits.done.wait(commit).unwrap_or_else(PoisonError::into_inner);
                commit.waiting -= 1;
                continue;
            }
            commit.is_running = true;
            commit = self.commits.gather(commit);
            drop(commit);
            let begun = Instant::now();
            let covered = self.flush_as(FlushDepth::Records);
            commit = lock();
            commit.is_running = false;
            commit.took = begun.elapsed();
            commit.group = commit.waiting;
            self.commits.done.notify_all();
            match covered {
                Ok(covered) => commit.covered = commit.covered.max(covered),
                // A close beside this has synced everything.
                Err(_) if commit.covered >= appends => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Flushes, and gives the count of appends that are covered.
    fn flush_as(&self, depth: FlushDepth) -> Result<u64> {
        // One flush at a time: each takes over what no earlier one has taken, and may call nothing
        // durable that an earlier one still works on.
        let _alone = self.commits.flushing.lock();
        let plan = {
            let mut writer = self.writer()?;
            if depth == FlushDepth::Whole {
                self.write_epochs(&mut writer)?;
            }
            self.plan_flush(&mut writer, depth)
        };
        let synced = self.sync(&plan);
        self.poison_if(synced)?;
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        self.finish_flush(&plan)?;
        Ok(plan.appends)
    }

    /// Lets every waiting append go: everything is on the device.
    pub(super) fn commit_all(&self, appends: u64) {
        let mut commit = self.commits.state.lock().unwrap_or_else(PoisonError::into_inner);
        commit.covered = commit.covered.max(appends);
        self.commits.done.notify_all();
    }

    pub(super) fn plan_flush(&self, writer: &mut Writer<S>, depth: FlushDepth) -> Plan<S> {
        let from = self.recovery_point().min(writer.flush.from);
        let first = floor(&writer.slots, from).unwrap_or(0);
        let segments = writer.slots.iter().skip(first).map(|slot| Arc::clone(&slot.segment));
        Plan {
            segments: segments.collect(),
            end: writer.end,
            records_end: writer.records_end,
            appends: writer.flush.appends,
            truncations: writer.flush.truncations,
            names: std::mem::take(&mut writer.flush.names),
            snapshots: std::mem::take(&mut writer.flush.snapshots),
            depth,
        }
    }

    pub(super) fn sync(&self, plan: &Plan<S>) -> Result<()> {
        for segment in &plan.segments {
            let is_active = segment.base_offset() == plan.end.segment;
            segment.flush(if is_active { plan.depth } else { FlushDepth::Whole })?;
        }
        for offset in &plan.snapshots {
            sync_snapshot(&*self.dir, *offset)?;
        }
        if plan.names {
            self.dir.sync()?;
        }
        Ok(())
    }

    fn finish_flush(&self, plan: &Plan<S>) -> Result<()> {
        let mut writer = self.writer()?;
        if writer.flush.truncations != plan.truncations {
            return Ok(());
        }
        self.raise_recovery_point(plan.records_end);
        writer.flush.from = writer.flush.from.max(plan.end.segment);
        writer.flush.is_pending = writer.end.segment != plan.end.segment;
        writer.flush.last_ms = self.now_ms();
        if self.follows_syncs() && plan.end.offset > writer.high_watermark.offset {
            // The end may lie on an older segment by now; the mark is right all the same.
            self.move_high_watermark(&mut writer, plan.end)?;
        }
        Ok(())
    }

    /// Whether readers see records only once they are on the device.
    pub(super) fn follows_syncs(&self) -> bool {
        !self.options.replicated && self.config().fsync == Fsync::Always
    }
}

/// Syncs a producer snapshot; one that was deleted meanwhile has nothing to lose.
fn sync_snapshot<D: WriteDir>(dir: &D, offset: i64) -> Result<()> {
    match dir.open_write(&name(offset, FileKind::Snapshot), Create::No) {
        Ok(file) => file.sync(),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

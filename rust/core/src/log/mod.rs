//! One partition: an ordered row of segments and the state around them.
//!
//! One mutex, Kafka's log lock, serialises everything that changes the log. Readers never take it:
//! they take a [`View`] under a lock that is held for a few instructions and then read files that
//! nobody changes below what the view shows. A truncation is the exception, and readers notice it
//! by the segment's generation and begin again.
//!
//! | what | when |
//! |---|---|
//! | compute | validation, producer state on a scratch copy; nothing changes |
//! | write | leader-epoch file, then bytes, then index entries |
//! | change | end, producer state, high watermark, and the view that readers take |
//!
//! An append that fails before or while its bytes are written leaves the log as it was. Anything
//! that fails after, and every failed fsync, poisons the log: it answers reads, refuses changes, and
//! must be opened again.

mod append;
mod believe;
mod close;
mod epochs;
mod fetch;
mod flush;
mod keep;
mod leftovers;
mod load;
mod lookup;
mod marks;
mod options;
mod producers;
mod read;
mod recovery;
mod replay;
mod retain;
mod roll;
mod send;
mod stats;
#[cfg(test)]
mod tests;
mod truncate;
mod view;
mod writer;

pub use fetch::Fetch;
pub use lookup::{
    EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, MAX_TIMESTAMP,
};
pub use marks::Bounds;
pub use options::{
    AppendInfo, Checkpointed, Damage, Isolation, LogOptions, Progress, SegmentInfo, TimeOffset,
    Told,
};
pub use recovery::{Cut, Leftover, Recovery};
pub use retain::Retained;
pub use send::{SendReport, SendWay};
pub use stats::LogStats;
pub use view::Mark;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use flush::GroupCommit;
use stats::Counters;
use view::{Slot, View};
use writer::{FlushState, Writer};

use crate::config::LogConfig;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::{Dir, RealFs, WriteDir, WriteFs};
use crate::producer::{ProducerStates, Snapshots};
use crate::record::Validator;
use crate::segment::Segment;

/// One partition that this process owns.
pub struct Log<S: WriteFs = RealFs> {
    dir: Arc<S::Dir>,
    options: LogOptions,
    config: RwLock<Arc<LogConfig>>,
    writer: Mutex<Writer<S>>,
    view: RwLock<View<S>>,
    /// Offsets below are on the device. Beside the lock, so that a checkpoint of many logs can be
    /// written while one of them is being truncated.
    recovery_point: AtomicI64,
    commits: GroupCommit,
    counters: Counters,
    damage: Option<Damage>,
    is_poisoned: AtomicBool,
    is_closed: AtomicBool,
    /// Where the log began and ended when it was closed.
    last_bounds: OnceLock<Bounds>,
}

/// What loading found, out of which a log is put together.
pub(crate) struct Parts<S: WriteFs> {
    pub(crate) dir: Arc<S::Dir>,
    pub(crate) options: LogOptions,
    /// By base offset, at least one.
    pub(crate) segments: Vec<Arc<Segment<S>>>,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) recovery_point: i64,
    pub(crate) producers: ProducerStates,
    pub(crate) snapshots: Snapshots<S::Dir>,
    pub(crate) epochs: EpochCache,
    /// Whether the leader-epoch file says something else.
    pub(crate) epochs_stale: bool,
    /// Producer snapshots that may be in the page cache alone.
    pub(crate) unsynced_snapshots: Vec<i64>,
    /// Where reading must end and writing is refused.
    pub(crate) damage: Option<Damage>,
}

impl<S: WriteFs> Log<S> {
    /// Puts a log together. The high watermark is the checkpointed one where replicas move it, else
    /// the end.
    /// Lets go of the directory until it is needed.
    pub(crate) fn rest(&self) {
        self.dir.rest();
    }

    /// Takes hold of the directory, which is about to get another name.
    pub(crate) fn wake(&self) -> Result<()> {
        self.dir.wake()
    }

    pub(crate) fn assemble(parts: Parts<S>) -> Result<Self> {
        let Parts { dir, options, segments, start, end, producers, snapshots, epochs, .. } = parts;
        let slots: Vec<Slot<S>> = segments.into_iter().map(Slot::new).collect();
        let last = slots.last().map(|slot| &slot.segment).ok_or_else(writer::no_segment)?;
        let (segment, position) = (last.base_offset(), last.size());
        let end = Mark { offset: end, segment, position };
        let now_ms = options.clock.now_ms();
        // Everything from the recovery point on may be in the page cache alone.
        let unflushed = view::floor(&slots, parts.recovery_point).and_then(|at| slots.get(at));
        let unflushed = unflushed.map_or(segment, |slot| slot.segment.base_offset());
        let mut writer = Writer {
            slots: Arc::new(slots),
            tail: None,
            start,
            stable: end,
            high_watermark: end,
            end,
            records_end: end.offset,
            validator: Validator::new(),
            producers,
            snapshots,
            epochs: Arc::new(epochs),
            epochs_stale: parts.epochs_stale,
            doomed: Vec::new(),
            // A segment that begins at the recovery point may be newer than the last sync of names.
            flush: FlushState::new(unflushed, parts.recovery_point <= segment, now_ms),
        };
        writer.flush.names |= !parts.unsynced_snapshots.is_empty();
        writer.flush.snapshots = parts.unsynced_snapshots;
        if options.replicated {
            let recorded = options.checkpointed.high_watermark.unwrap_or(start);
            writer.high_watermark = writer.resolve(recorded.max(start))?;
        }
        writer.producers.on_high_watermark(writer.high_watermark.offset);
        writer.stable = writer.resolve_stable()?;
        Ok(Self {
            dir,
            config: RwLock::new(Arc::new(options.config.clone())),
            options,
            view: RwLock::new(writer.view()),
            writer: Mutex::new(writer),
            recovery_point: AtomicI64::new(parts.recovery_point),
            commits: GroupCommit::default(),
            counters: Counters::default(),
            damage: parts.damage,
            is_poisoned: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            last_bounds: OnceLock::new(),
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.options.topic
    }

    /// The partition.
    pub fn partition(&self) -> i32 {
        self.options.partition
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<LogConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another configuration in force. Segments that are there keep what they were made with.
    pub fn set_config(&self, config: LogConfig) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Why the log can be read only, if it can.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Whether a failure has made the log refuse changes until it is opened again.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Acquire)
    }

    /// Whether the log was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Offsets below are on the device.
    pub fn recovery_point(&self) -> i64 {
        self.recovery_point.load(Ordering::Acquire)
    }

    fn raise_recovery_point(&self, offset: i64) {
        self.recovery_point.fetch_max(offset, Ordering::AcqRel);
    }

    /// Lowers the recovery point before bytes above it can change, and has it recorded.
    fn lower_recovery_point(&self, offset: i64) -> Result<()> {
        if self.recovery_point.fetch_min(offset, Ordering::AcqRel) <= offset {
            return Ok(());
        }
        match &self.options.on_recovery_point_lowered {
            Some(record) => record(offset),
            None => Ok(()),
        }
    }

    /// The time by the log's clock.
    pub fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// The picture of the log at this moment.
    fn view(&self) -> Result<View<S>> {
        if self.is_closed() {
            return Err(closed());
        }
        Ok(self.view.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Shows readers what the writer has.
    fn publish(&self, writer: &Writer<S>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *view, writer.view());
        drop(view);
        drop(old);
    }

    /// The log's lock, if the log can be changed.
    fn writer(&self) -> Result<MutexGuard<'_, Writer<S>>> {
        // A thread that panicked under the lock has left who knows what.
        let writer = self.writer.lock().map_err(|_| self.poisoned())?;
        if self.is_closed() {
            return Err(closed());
        }
        self.check_poison()?;
        match &self.damage {
            Some(damage) => Err(damage.error()),
            None => Ok(writer),
        }
    }

    fn poisoned(&self) -> Error {
        Error::Poisoned { path: self.dir.path().to_owned() }
    }

    fn check_poison(&self) -> Result<()> {
        if self.is_poisoned() { Err(self.poisoned()) } else { Ok(()) }
    }

    /// Refuses changes from now on if this failed.
    fn poison_if<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.is_poisoned.store(true, Ordering::Release);
        }
        result
    }
}

fn closed() -> Error {
    Error::Invalid("the log is closed".to_owned())
}

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

mod options;
mod view;
mod writer;

pub use options::{
    AppendInfo, Checkpointed, Damage, Isolation, LogOptions, Progress, SegmentInfo, TimeOffset,
};
pub use view::{Mark, View};
pub(crate) use view::Slot;
pub(crate) use writer::Writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::config::LogConfig;
use crate::epoch::EpochCache;
use crate::error::{Error, Result};
use crate::fs::{Dir, RealFs, WriteFs};
use crate::producer::{ProducerStates, Snapshots};
use crate::segment::Segment;

/// One partition that this process owns.
pub struct Log<S: WriteFs = RealFs> {
    dir: Arc<S::Dir>,
    options: LogOptions,
    config: RwLock<Arc<LogConfig>>,
    writer: Mutex<Writer<S>>,
    view: RwLock<View<S>>,
    damage: Option<Damage>,
    is_poisoned: AtomicBool,
    is_closed: AtomicBool,
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
    /// Where reading must end and writing is refused.
    pub(crate) damage: Option<Damage>,
}

//! A whole `log.dirs` entry: one lock, many partitions, Kafka's checkpoint files.
//!
//! 1. The lock is taken first and given back last; a running broker holds the same one.
//! 2. The clean-shutdown marker is gone before the first log is loaded and comes back only when
//!    every log was closed cleanly.
//! 3. A partition that cannot be opened is kept aside with its error; the others are served.
//! 4. Nothing runs in the background unless [`LogDir::start`] was called.

mod home;
mod load;
mod shared;
mod stats;
#[cfg(test)]
mod tests;
mod topics;
mod upkeep;

pub use load::{DirProgress, DirRecovery};
pub use shared::Partition;
pub use stats::DirStats;
pub use upkeep::Upkeep;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use home::{Home, TopicConfigs};

use crate::checkpoint::{MetaProperties, OffsetCheckpoint};
use crate::clock::{Clock, SystemClock};
use crate::config::{DirConfig, LogConfig};
use crate::error::{Error, Result};
use crate::fs::{RealFs, WriteFs};
use crate::log::Log;

/// A topic and a partition number.
pub type PartitionKey = (String, i32);

/// Told how far loading is; an error stops it.
pub type OnProgress = Arc<dyn Fn(DirProgress) -> Result<()> + Send + Sync>;

/// How a log directory is opened.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each named where it is set"
)]
pub struct DirOptions {
    /// Configuration of the directory, with the defaults of its topics.
    pub config: DirConfig,
    /// Whether a missing directory is made.
    pub create: bool,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Whether damage that good batches follow is cut with everything behind it, as Kafka does.
    pub kafka_recovery: bool,
    /// Whether a replica layer moves the high watermarks.
    pub replicated: bool,
    /// Who the directory belongs to, for a directory that does not say so yet.
    pub meta: Option<MetaProperties>,
    /// Whether partitions are loaded when they are asked for, instead of all at once.
    pub is_lazy: bool,
    /// Configuration of the logs that are opened with these options, stronger than their topics'.
    pub log_config: BTreeMap<String, String>,
    /// Told how far loading is.
    pub progress: Option<OnProgress>,
}

impl Default for DirOptions {
    fn default() -> Self {
        Self {
            config: DirConfig::default(),
            create: true,
            clock: Arc::new(SystemClock),
            kafka_recovery: false,
            replicated: false,
            meta: None,
            is_lazy: false,
            log_config: BTreeMap::new(),
            progress: None,
        }
    }
}

/// A log directory that this process owns.
pub struct LogDir<S: WriteFs = RealFs> {
    path: PathBuf,
    options: DirOptions,
    root: Arc<Root<S>>,
    state: Mutex<State<S>>,
    background: Mutex<Option<upkeep::Background>>,
    is_closed: AtomicBool,
}

/// The root of the directory with what must be written there while a log's lock is held. Nothing
/// that waits for a log may hold one of these locks.
struct Root<S: WriteFs> {
    /// `None` once closed: the lock is given back.
    home: RwLock<Option<Home<S>>>,
    points: Mutex<Points>,
}

/// What the checkpoints say that a truncation must be able to lower at once; entries of partitions
/// that are not loaded stay as they are.
struct Points {
    recovery_points: OffsetCheckpoint,
    log_starts: OffsetCheckpoint,
}

impl<S: WriteFs> Root<S> {
    fn points(&self) -> MutexGuard<'_, Points> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn home(&self) -> RwLockReadGuard<'_, Option<Home<S>>> {
        self.home.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the root's files.
    fn with_home<T>(&self, work: impl FnOnce(&Home<S>) -> Result<T>) -> Result<T> {
        match &*self.home() {
            Some(home) => work(home),
            None => Err(Error::Invalid("the log directory is closed".into())),
        }
    }

    /// Records a recovery point at once.
    fn record_recovery_point(&self, (topic, partition): &PartitionKey, offset: i64) -> Result<()> {
        let mut points = self.points();
        points.recovery_points.insert(topic, *partition, offset);
        self.with_home(|home| home.write_offsets(home::RECOVERY_POINT, &points.recovery_points))
    }

    /// Records at once that a log starts lower, if the checkpoint says otherwise.
    fn record_log_start(&self, (topic, partition): &PartitionKey, offset: i64) -> Result<()> {
        let mut points = self.points();
        if points.log_starts.get(topic, *partition).is_none_or(|start| start <= offset) {
            return Ok(());
        }
        points.log_starts.insert(topic, *partition, offset);
        self.with_home(|home| home.write_offsets(home::LOG_START, &points.log_starts))
    }
}

/// What changes while a directory is open.
struct State<S: WriteFs> {
    logs: BTreeMap<PartitionKey, Arc<Log<S>>>,
    /// Partitions that could not be opened, with the reason.
    offline: BTreeMap<PartitionKey, String>,
    /// Partition directories that were not loaded, see [`DirOptions::is_lazy`].
    unloaded: BTreeMap<PartitionKey, String>,
    /// Partitions that were opened by their own path, and those of them that were closed again.
    opened: BTreeSet<PartitionKey>,
    closed: BTreeSet<PartitionKey>,
    /// Partitions that were opened by their own path and let go of without being closed.
    dropped: BTreeSet<PartitionKey>,
    /// Partitions that can be read only: a clean start would not notice their damage.
    damaged: BTreeSet<PartitionKey>,
    topics: TopicConfigs,
    /// Directories renamed to `-delete`, and when they may go.
    doomed: Vec<(String, i64)>,
    /// Whether what is not loaded was closed cleanly.
    was_clean: bool,
    broker_epoch: Option<i64>,
    meta: Option<MetaProperties>,
    recovery: DirRecovery,
    /// What the checkpoint says; entries of partitions that are not loaded stay as they are.
    high_watermarks: OffsetCheckpoint,
}

impl<S: WriteFs> LogDir<S> {
    /// Opens a log directory: takes its lock, loads its partitions and recovers what needs it.
    pub fn open(fs: &S, path: &Path, options: DirOptions) -> Result<Self> {
        let home = Home::open(fs, path, options.create)?;
        let mut found = home.read()?;
        home.remove_marker()?;
        let meta = match (found.meta.clone(), &options.meta) {
            (None, Some(meta)) => {
                home.write_meta(meta, options.clock.now_ms())?;
                Some(meta.clone())
            }
            (found, _) => found,
        };
        let points = Points {
            recovery_points: std::mem::take(&mut found.recovery_points),
            log_starts: std::mem::take(&mut found.log_starts),
        };
        let home = RwLock::new(Some(home));
        let root = Arc::new(Root { home, points: Mutex::new(points) });
        let state = load::load_all(&root, found, meta, &options)?;
        Ok(Self {
            path: path.to_owned(),
            options,
            root,
            state: Mutex::new(state),
            background: Mutex::new(None),
            is_closed: AtomicBool::new(false),
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Configuration of the directory, with the defaults of its topics.
    pub fn config(&self) -> &DirConfig {
        &self.options.config
    }

    /// The time by the directory's clock.
    pub fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// What `meta.properties` says.
    pub fn meta(&self) -> Option<MetaProperties> {
        self.state().meta.clone()
    }

    /// What opening the directory found and did.
    pub fn recovery(&self) -> DirRecovery {
        self.state().recovery.clone()
    }

    /// The open partitions, in order.
    pub fn partitions(&self) -> Vec<PartitionKey> {
        self.state().logs.keys().cloned().collect()
    }

    /// Partitions that could not be opened, with the reason.
    pub fn offline(&self) -> Vec<(PartitionKey, String)> {
        self.state().offline.iter().map(|(key, why)| (key.clone(), why.clone())).collect()
    }

    /// An open partition; one that was left aside at opening is loaded now.
    pub fn partition(&self, topic: &str, partition: i32) -> Result<Arc<Log<S>>> {
        self.check_open()?;
        let key = (topic.to_owned(), partition);
        let mut state = self.state();
        if let Some(log) = state.logs.get(&key) {
            return Ok(Arc::clone(log));
        }
        if let Some(why) = state.offline.get(&key) {
            return Err(Error::Invalid(format!("{topic}-{partition} is offline: {why}")));
        }
        if state.unloaded.contains_key(&key) {
            return self.load_late(&mut state, &key, &self.options);
        }
        Err(Error::Invalid(format!("{} has no partition {topic}-{partition}", self.path.display())))
    }

    /// Configuration of a topic: the directory's defaults with what the topic changes.
    pub fn topic_config(&self, topic: &str) -> Result<LogConfig> {
        config_of(&self.options, &self.state().topics, topic)
    }

    /// Closes every log and writes the checkpoints; when all went well, also the marker that spares
    /// the next opening a recovery. The lock is given back in any case.
    pub fn close(&self) -> Result<()> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Err(self.closed());
        }
        self.stop();
        let mut state = self.state();
        let closed = self.close_logs(&mut state);
        let home = self.root.home.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(home) = home else { return closed };
        // What one log could not do must not cost the others what they have to say.
        let checkpointed = state.write_checkpoints(&home, &self.root.points());
        closed?;
        checkpointed?;
        if state.is_clean_now() { home.write_marker(state.broker_epoch) } else { Ok(()) }
    }

    /// Closes all logs, also behind one that fails; the first failure is told.
    fn close_logs(&self, state: &mut State<S>) -> Result<()> {
        let mut outcome = Ok(());
        for (key, log) in std::mem::take(&mut state.logs) {
            state.note(&mut self.root.points(), &key, &log);
            let closed = close_log(&log);
            self.root.points().recovery_points.insert(&key.0, key.1, log.recovery_point());
            if log.damage().is_some() {
                state.damaged.insert(key);
            }
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// Whether the directory was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed() { Err(self.closed()) } else { Ok(()) }
    }

    fn closed(&self) -> Error {
        Error::Invalid(format!("{} is closed", self.path.display()))
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        // Every change leaves the maps whole, so a panic elsewhere does not spoil them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_home<T>(&self, work: impl FnOnce(&Home<S>) -> Result<T>) -> Result<T> {
        self.root.with_home(work)
    }
}

impl<S: WriteFs> State<S> {
    /// Takes over what a log has to say for the checkpoint files, also one that was closed.
    fn note(&mut self, points: &mut Points, (topic, partition): &PartitionKey, log: &Log<S>) {
        let bounds = log.last_bounds();
        self.high_watermarks.insert(topic, *partition, bounds.high_watermark);
        // Where the log begins with its first segment, the name of that file says it all.
        if bounds.start > bounds.first_base {
            points.log_starts.insert(topic, *partition, bounds.start);
        } else {
            points.log_starts.remove(topic, *partition);
        }
    }

    fn forget(&mut self, points: &mut Points, topic: &str, partition: i32) {
        self.high_watermarks.remove(topic, partition);
        points.log_starts.remove(topic, partition);
        points.recovery_points.remove(topic, partition);
    }

    fn write_checkpoints(&self, home: &Home<S>, points: &Points) -> Result<()> {
        home.write_offsets(home::RECOVERY_POINT, &points.recovery_points)?;
        home.write_offsets(home::LOG_START, &points.log_starts)?;
        home.write_offsets(home::HIGH_WATERMARK, &self.high_watermarks)
    }

    /// Whether the marker may be written: it speaks for every partition of the directory.
    fn is_clean_now(&self) -> bool {
        self.offline.is_empty()
            && self.damaged.is_empty()
            && self.unloaded.keys().all(|key| self.was_closed(key))
    }

    /// Whether a partition that is not open was closed cleanly when it last was.
    fn was_closed(&self, key: &PartitionKey) -> bool {
        (self.was_clean || self.closed.contains(key)) && !self.dropped.contains(key)
    }
}

impl<S: WriteFs> Drop for LogDir<S> {
    fn drop(&mut self) {
        // Without `close` this is a crash as far as the files are concerned: they are left as they
        // are, and the next opening recovers. The threads must go, and whoever still has a log must
        // not write to it when the lock is somebody else's.
        self.stop();
        for log in std::mem::take(&mut self.state().logs).into_values() {
            log.abandon();
        }
    }
}

/// Closes a log. One that was closed on its own was closed cleanly, unless that failed.
fn close_log<S: WriteFs>(log: &Log<S>) -> Result<()> {
    if log.is_closed() && !log.is_poisoned() { Ok(()) } else { log.close() }
}

/// Configuration of a topic.
fn config_of(options: &DirOptions, topics: &TopicConfigs, topic: &str) -> Result<LogConfig> {
    let stored = topics.get(topic).into_iter().flatten();
    let pairs = stored.chain(&options.log_config);
    options.config.log.with(pairs.map(|(key, value)| (key.as_str(), value.as_str())))
}

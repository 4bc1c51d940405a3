//! Loading the partitions of a log directory, several at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::home::Found;
use super::{DirOptions, LogDir, OnProgress, PartitionKey, Root, State, config_of};
use crate::checkpoint::{MetaProperties, OffsetCheckpoint};
use crate::error::{Error, Result};
use crate::fs::{Dir, EntryKind, WriteFs};
use crate::log::{Checkpointed, Log, LogOptions, Progress, Recovery};
use crate::names::{DirState, PartitionDir};

/// How far the loading of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirProgress {
    /// Partitions loaded.
    pub partitions: usize,
    /// Partitions to load.
    pub total_partitions: usize,
    /// Bytes read and checked by recoveries.
    pub bytes: u64,
}

/// What opening a directory found and did.
#[derive(Debug, Clone, Default)]
pub struct DirRecovery {
    /// Whether the directory was closed cleanly.
    pub is_clean: bool,
    /// What each log found and did, without those where there was nothing to do.
    pub logs: BTreeMap<PartitionKey, Recovery>,
    /// Files of the root that made no sense and count as empty, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Directories that are no partitions in use: strays, replicas on the move, unknown names.
    pub ignored: Vec<String>,
}

/// A partition that is to be loaded.
struct Job {
    key: PartitionKey,
    name: String,
}

type Loaded<S> = (PartitionKey, Result<(Log<S>, Recovery)>);

/// Loads what a root holds.
pub(super) fn load_all<S: WriteFs>(
    root: &Arc<Root<S>>,
    found: Found,
    meta: Option<MetaProperties>,
    options: &DirOptions,
) -> Result<State<S>> {
    let mut state = State {
        logs: BTreeMap::new(),
        offline: BTreeMap::new(),
        unloaded: BTreeMap::new(),
        opened: BTreeSet::new(),
        closed: BTreeSet::new(),
        dropped: BTreeSet::new(),
        damaged: BTreeSet::new(),
        topics: found.topics,
        doomed: Vec::new(),
        was_clean: found.is_clean,
        broker_epoch: found.broker_epoch,
        meta,
        recovery: DirRecovery {
            is_clean: found.is_clean,
            unreadable: found.unreadable,
            ..DirRecovery::default()
        },
        high_watermarks: found.high_watermarks,
    };
    let jobs = root.with_home(|home| jobs(home.dir(), &mut state, options))?;
    // Where nothing is, nothing was left unfinished.
    if jobs.is_empty() && state.unloaded.is_empty() {
        (state.was_clean, state.recovery.is_clean) = (true, true);
    }
    for (key, loaded) in run(root, &state, options, jobs)? {
        state.take_in(key, loaded)?;
    }
    Ok(state)
}

/// Sorts the entries of a root into partitions to load and everything else.
fn jobs<S: WriteFs>(
    root: &S::Dir,
    state: &mut State<S>,
    options: &DirOptions,
) -> Result<VecDeque<Job>> {
    let mut jobs = BTreeMap::new();
    for entry in root.list()? {
        if entry.kind != EntryKind::Directory {
            continue;
        }
        match PartitionDir::parse(&entry.name) {
            Some(PartitionDir { topic, partition, state: DirState::Live }) => {
                jobs.insert((String::from(topic), partition), entry.name);
            }
            // What waited for its removal when the process ended may go at once.
            Some(PartitionDir { state: DirState::Delete(_), .. }) => {
                state.doomed.push((entry.name, i64::MIN));
            }
            _ => state.recovery.ignored.push(entry.name),
        }
    }
    if options.is_lazy {
        state.unloaded = jobs;
        return Ok(VecDeque::new());
    }
    Ok(jobs.into_iter().map(|(key, name)| Job { key, name }).collect())
}

/// How far the threads that load are, and whether they are to stop.
struct Tally {
    partitions: AtomicUsize,
    total_partitions: usize,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
    told: Option<OnProgress>,
}

impl Tally {
    fn new(total_partitions: usize, options: &DirOptions) -> Self {
        Self {
            partitions: AtomicUsize::new(0),
            total_partitions,
            bytes: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            told: options.progress.clone(),
        }
    }

    /// Says how far things are; one that is told may put an end to all of them.
    fn tell(&self) -> Result<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let progress = DirProgress {
            partitions: self.partitions.load(Ordering::Relaxed),
            total_partitions: self.total_partitions,
            bytes: self.bytes.load(Ordering::Relaxed),
        };
        let told = self.told.as_ref().map_or(Ok(()), |told| told(progress));
        if told.is_err() {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        told
    }
}

/// Loads the jobs with the number of threads that the configuration names, this one included.
fn run<S: WriteFs>(
    root: &Arc<Root<S>>,
    state: &State<S>,
    options: &DirOptions,
    jobs: VecDeque<Job>,
) -> Result<Vec<Loaded<S>>> {
    let tally = Arc::new(Tally::new(jobs.len(), options));
    tally.tell()?;
    let threads = usize::try_from(options.config.recovery_threads).unwrap_or(1);
    let threads = threads.clamp(1, jobs.len().max(1));
    let queue = Mutex::new(jobs);
    let results = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(job) = job else { return Ok(()) };
            let loaded = load_one(root, state, options, &job, &tally);
            if let Err(Error::Interrupted) = loaded {
                return Err(Error::Interrupted);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((job.key, loaded));
            tally.partitions.fetch_add(1, Ordering::Relaxed);
            tally.tell()?;
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut outcome = work();
        for other in others {
            // This thread is the one that signals reach, so it keeps looking for them.
            while outcome.is_ok() && !other.is_finished() {
                outcome = tally.tell();
                std::thread::sleep(Duration::from_millis(5));
            }
            let panicked = |_| Error::Invalid("a thread that loads logs panicked".into());
            let joined = other.join().map_err(panicked).flatten();
            outcome = outcome.and(joined);
        }
        outcome
    })?;
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn load_one<S: WriteFs>(
    root: &Arc<Root<S>>,
    state: &State<S>,
    options: &DirOptions,
    job: &Job,
    tally: &Arc<Tally>,
) -> Result<(Log<S>, Recovery)> {
    let dir = root.with_home(|home| home.dir().open_dir(&job.name))?;
    let mut log_options = log_options(root, state, options, &job.key)?;
    let (tally, before) = (Arc::clone(tally), AtomicU64::new(0));
    log_options.progress = Some(Arc::new(move |done: Progress| {
        let more = done.bytes.saturating_sub(before.swap(done.bytes, Ordering::Relaxed));
        tally.bytes.fetch_add(more, Ordering::Relaxed);
        tally.tell()
    }));
    let (log, recovery) = Log::load(dir, &log_options)?;
    log.rest();
    Ok((log, recovery))
}

/// How a log of this directory is opened.
pub(super) fn log_options<S: WriteFs>(
    root: &Arc<Root<S>>,
    state: &State<S>,
    options: &DirOptions,
    key: &PartitionKey,
) -> Result<LogOptions> {
    let (topic, partition) = key;
    let config = config_of(options, &state.topics, topic)?;
    let get = |offsets: &OffsetCheckpoint| offsets.get(topic, *partition);
    let (root_of, key_of) = (Arc::downgrade(root), key.clone());
    let record = move |offset| match root_of.upgrade() {
        Some(root) => root.record_recovery_point(&key_of, offset),
        None => Ok(()),
    };
    let (root_of, key_of) = (Arc::downgrade(root), key.clone());
    let record_start = move |offset| match root_of.upgrade() {
        Some(root) => root.record_log_start(&key_of, offset),
        None => Ok(()),
    };
    let points = root.points();
    Ok(LogOptions {
        clock: Arc::clone(&options.clock),
        checkpointed: Checkpointed {
            recovery_point: get(&points.recovery_points).unwrap_or(0),
            log_start: get(&points.log_starts).unwrap_or(0),
            high_watermark: get(&state.high_watermarks),
        },
        is_clean: state.was_closed(key),
        replicated: options.replicated,
        kafka_recovery: options.kafka_recovery,
        on_recovery_point_lowered: Some(Arc::new(record)),
        on_start_lowered: Some(Arc::new(record_start)),
        producer_expiration_ms: options.config.producer_id_expiration_ms,
        ..LogOptions::new(topic, *partition, config)
    })
}

impl<S: WriteFs> State<S> {
    /// Keeps a loaded log, or the reason why it is offline.
    fn take_in(&mut self, key: PartitionKey, loaded: Result<(Log<S>, Recovery)>) -> Result<()> {
        match loaded {
            Ok((log, recovery)) => {
                if recovery == (Recovery { is_clean: true, ..Recovery::default() }) {
                    self.recovery.logs.remove(&key);
                } else {
                    self.recovery.logs.insert(key.clone(), recovery);
                }
                self.logs.insert(key, Arc::new(log));
            }
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => {
                self.offline.insert(key, error.to_string());
            }
        }
        Ok(())
    }
}

impl<S: WriteFs> LogDir<S> {
    /// Loads a partition that was left aside when the directory was opened.
    pub(super) fn load_late(
        &self,
        state: &mut State<S>,
        key: &PartitionKey,
        options: &DirOptions,
    ) -> Result<Arc<Log<S>>> {
        let name = state.unloaded.get(key).cloned().unwrap_or_default();
        let job = Job { key: key.clone(), name };
        let tally = Arc::new(Tally::new(1, options));
        let (log, recovery) = load_one(&self.root, state, options, &job, &tally)?;
        tally.partitions.store(1, Ordering::Relaxed);
        tally.tell()?;
        state.unloaded.remove(key);
        state.take_in(key.clone(), Ok((log, recovery)))?;
        state.logs.get(key).cloned().ok_or(Error::Interrupted)
    }
}

//! Loading the partitions of a log directory, several at a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::home::Found;
use super::{DirOptions, LogDir, PartitionKey, Root, State, config_of};
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
        log_starts: found.log_starts,
        high_watermarks: found.high_watermarks,
    };
    let jobs = root.with_home(|home| jobs(home.dir(), &mut state, options))?;
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
    if let Some(only) = &options.only {
        let chosen = jobs.remove(only);
        state.unloaded = jobs;
        let job = |name| Job { key: only.clone(), name };
        return Ok(chosen.into_iter().map(job).collect());
    }
    Ok(jobs.into_iter().map(|(key, name)| Job { key, name }).collect())
}

/// Loads the jobs with the number of threads that the configuration names.
fn run<S: WriteFs>(
    root: &Arc<Root<S>>,
    state: &State<S>,
    options: &DirOptions,
    jobs: VecDeque<Job>,
) -> Result<Vec<Loaded<S>>> {
    let total_partitions = jobs.len();
    let threads = usize::try_from(options.config.recovery_threads).unwrap_or(1);
    let threads = threads.clamp(1, total_partitions.max(1));
    let (partitions, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
    let tell = |partitions: usize, bytes: u64| match &options.progress {
        Some(progress) => progress(DirProgress { partitions, total_partitions, bytes }),
        None => Ok(()),
    };
    tell(0, 0)?;
    let queue = Mutex::new(jobs);
    let results = Mutex::new(Vec::with_capacity(total_partitions));
    let work = || -> Result<()> {
        loop {
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(job) = job else { return Ok(()) };
            let loaded = load_one(root, state, options, &job, &partitions, &bytes);
            if let Err(Error::Interrupted) = loaded {
                return Err(Error::Interrupted);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((job.key, loaded));
            let done = partitions.fetch_add(1, Ordering::Relaxed) + 1;
            tell(done, bytes.load(Ordering::Relaxed))?;
        }
    };
    if threads == 1 {
        work()?;
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                let panicked = |_| Error::Invalid("a thread that loads logs panicked".into());
                worker.join().map_err(panicked)?
            })
        })?;
    }
    Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn load_one<S: WriteFs>(
    root: &Arc<Root<S>>,
    state: &State<S>,
    options: &DirOptions,
    job: &Job,
    partitions: &Arc<AtomicUsize>,
    bytes: &Arc<AtomicU64>,
) -> Result<(Log<S>, Recovery)> {
    let dir = root.with_home(|home| home.dir().open_dir(&job.name))?;
    let mut log_options = log_options(root, state, options, &job.key)?;
    if let Some(progress) = &options.progress {
        let (progress, partitions, bytes) =
            (Arc::clone(progress), Arc::clone(partitions), Arc::clone(bytes));
        let before = AtomicU64::new(0);
        log_options.progress = Some(Arc::new(move |done: Progress| {
            let added = done.bytes.saturating_sub(before.swap(done.bytes, Ordering::Relaxed));
            let bytes = bytes.fetch_add(added, Ordering::Relaxed).saturating_add(added);
            let partitions = partitions.load(Ordering::Relaxed);
            progress(DirProgress { partitions, total_partitions: 0, bytes })
        }));
    }
    Log::load(dir, log_options)
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
    Ok(LogOptions {
        clock: Arc::clone(&options.clock),
        checkpointed: Checkpointed {
            recovery_point: get(&root.recovery_points()).unwrap_or(0),
            log_start: get(&state.log_starts).unwrap_or(0),
            high_watermark: get(&state.high_watermarks),
        },
        is_clean: state.was_clean || state.closed.contains(key),
        replicated: options.replicated,
        kafka_recovery: options.kafka_recovery,
        on_recovery_point_lowered: Some(Arc::new(record)),
        producer_expiration_ms: options.config.producer_id_expiration_ms,
        ..LogOptions::new(topic, *partition, config)
    })
}

impl<S: WriteFs> State<S> {
    /// Keeps a loaded log, or the reason why it is offline.
    fn take_in(&mut self, key: PartitionKey, loaded: Result<(Log<S>, Recovery)>) -> Result<()> {
        match loaded {
            Ok((log, recovery)) => {
                if recovery != (Recovery { is_clean: true, ..Recovery::default() }) {
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
    ) -> Result<Arc<Log<S>>> {
        let name = state.unloaded.get(key).cloned().unwrap_or_default();
        let job = Job { key: key.clone(), name };
        let counts = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let (log, recovery) =
            load_one(&self.root, state, &self.options, &job, &counts.0, &counts.1)?;
        state.unloaded.remove(key);
        state.take_in(key.clone(), Ok((log, recovery)))?;
        state.logs.get(key).cloned().ok_or(Error::Interrupted)
    }
}

//! One partition on its own: its parent is opened as a log directory that loads nothing else.
//!
//! The lock belongs to the parent, so two partitions of one parent share it inside a process. The
//! last of them that is closed closes the parent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{DirOptions, LogDir, close_log};
use crate::error::{Error, Result};
use crate::fs::{RealFs, WriteDir};
use crate::log::Log;
use crate::names::{DirState, PartitionDir};
use crate::uuid::Uuid;

static PARENTS: Mutex<BTreeMap<PathBuf, Weak<LogDir<RealFs>>>> = Mutex::new(BTreeMap::new());

/// A partition that was opened by its own path.
pub struct Partition {
    parent: Arc<LogDir<RealFs>>,
    log: Arc<Log<RealFs>>,
}

impl Partition {
    /// Opens the partition directory at a path, which is made if it is missing and that is wanted.
    /// `topic_config` holds what differs from the defaults.
    pub fn open(
        path: &Path,
        mut options: DirOptions,
        topic_config: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let (parent, name) = split(path)?;
        let pairs = topic_config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        options.config.log.with(pairs)?;
        // The parent serves other partitions too: what is asked of this one is not asked of them.
        options.is_lazy = true;
        let parent_options = DirOptions { progress: None, ..options.clone() };
        options.log_config.clone_from(topic_config);
        let mut parents = parents();
        let parent_key = std::path::absolute(&parent).unwrap_or_else(|_| parent.clone());
        let parent = match parents.get(&parent_key).and_then(Weak::upgrade) {
            Some(parent) if !parent.is_closed() => parent,
            _ => {
                let dir = Arc::new(LogDir::open(&RealFs, &parent, parent_options)?);
                parents.retain(|_, parent| parent.strong_count() > 0);
                parents.insert(parent_key, Arc::downgrade(&dir));
                dir
            }
        };
        match parent.open_partition(&name, &options) {
            Ok(log) => Ok(Self { parent, log }),
            Err(error) => {
                // Nothing was done in a parent that nobody uses: it stays as clean as it was.
                if parent.state().opened.is_empty() {
                    let _ = parent.close();
                }
                Err(error)
            }
        }
    }

    /// The log.
    pub fn log(&self) -> &Arc<Log<RealFs>> {
        &self.log
    }

    /// The log directory that the partition belongs to.
    pub fn parent(&self) -> &Arc<LogDir<RealFs>> {
        &self.parent
    }

    /// Closes the log, and the directory with it when no other partition of it is open.
    pub fn close(&self) -> Result<()> {
        let _parents = parents();
        self.parent.release(&self.log)
    }
}

impl LogDir<RealFs> {
    /// Opens or makes one partition.
    fn open_partition(
        &self,
        name: &PartitionDir,
        options: &DirOptions,
    ) -> Result<Arc<Log<RealFs>>> {
        let topic = name.topic.as_str();
        let key = (topic.to_owned(), name.partition);
        let mut state = self.state();
        if state.logs.contains_key(&key) && state.opened.contains(&key) {
            return Err(Error::Locked { path: self.path.join(name.to_string()) });
        }
        if state.unloaded.contains_key(&key) {
            self.load_late(&mut state, &key, options)?;
        }
        let is_known = state.logs.contains_key(&key) || state.offline.contains_key(&key);
        drop(state);
        if !is_known {
            if !options.create {
                let path = self.path.join(name.to_string());
                let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
                return Err(Error::io("open", &path, missing));
            }
            let id = self.topic_id(topic)?.unwrap_or_else(Uuid::random);
            let mut state = self.state();
            self.add_partition(&mut state, &name.topic, name.partition, id, options)?;
            drop(state);
            self.with_home(|home| home.dir().sync())?;
        }
        let log = self.partition(topic, name.partition)?;
        self.state().opened.insert(key);
        Ok(log)
    }

    /// Closes a partition and lets go of it; the last one closes the directory.
    fn release(&self, log: &Arc<Log<RealFs>>) -> Result<()> {
        let key = (log.topic().to_owned(), log.partition());
        let mut state = self.state();
        // The name may be that of another log by now.
        if !state.logs.get(&key).is_some_and(|held| Arc::ptr_eq(held, log)) {
            return Err(Error::Invalid("the log is closed".to_owned()));
        }
        state.note(&mut self.root.points(), &key, log);
        let closed = close_log(log);
        self.root.points().recovery_points.insert(&key.0, key.1, log.recovery_point());
        state.logs.remove(&key);
        state.opened.remove(&key);
        match closed {
            Ok(()) => {
                state.unloaded.insert(key.clone(), format!("{}-{}", key.0, key.1));
                // A clean start would not notice damage.
                if log.damage().is_some() {
                    state.dropped.insert(key);
                } else {
                    state.dropped.remove(&key);
                    state.closed.insert(key);
                }
            }
            // The directory is not clean any more, whatever else happens in it.
            Err(ref error) => {
                state.offline.insert(key, error.to_string());
            }
        }
        let is_last = state.opened.is_empty();
        drop(state);
        let left = if is_last { self.close() } else { self.checkpoint() };
        closed.and(left)
    }
}

impl Drop for Partition {
    /// Without `close` the partition is left as a crash would leave it; the others of its directory
    /// go on, and it can be opened again.
    fn drop(&mut self) {
        let key = (self.log.topic().to_owned(), self.log.partition());
        let mut state = self.parent.state();
        if !state.logs.get(&key).is_some_and(|held| Arc::ptr_eq(held, &self.log)) {
            return;
        }
        self.log.abandon();
        state.logs.remove(&key);
        state.opened.remove(&key);
        state.closed.remove(&key);
        state.unloaded.insert(key.clone(), format!("{}-{}", key.0, key.1));
        state.dropped.insert(key);
    }
}

fn parents() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<LogDir<RealFs>>>> {
    PARENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The parent and the parsed name of a partition directory.
fn split(path: &Path) -> Result<(PathBuf, PartitionDir)> {
    let refused = || {
        Error::Invalid(format!(
            "{} is not the name of a partition directory, which is <topic>-<number>",
            path.display()
        ))
    };
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(refused)?;
    let name = PartitionDir::parse(name)
        .filter(|name| name.state == DirState::Live)
        .ok_or_else(refused)?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    Ok((parent, name))
}

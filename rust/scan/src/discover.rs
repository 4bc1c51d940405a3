//! Finding partitions below the paths a user names.
//!
//! A path is a `log.dirs` entry, a partition directory or one `.log` file. What a directory is
//! shows by its content, since a `log.dirs` entry may well be called `kafka-1`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kafkaseg_core::checkpoint::{LeaderEpochs, OffsetCheckpoint};
use kafkaseg_core::fs::{Dir, Entry, EntryKind, Fs};
use kafkaseg_core::names::{DirState, FileKind, FileState, PartitionDir, SegmentFile};
use kafkaseg_core::{Error, Result};

/// The log that a `KRaft` controller keeps for itself; no consumer ever sees it.
const CLUSTER_METADATA: &str = "__cluster_metadata";

/// Facts that the root of a log directory holds about one partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct RootFacts {
    pub(crate) log_start: Option<i64>,
    pub(crate) recovery_point: Option<i64>,
    pub(crate) is_clean: bool,
}

/// One partition that was found, not yet looked into.
#[derive(Debug, Clone)]
pub struct Found {
    /// The directory the user named, or the parent of the file they named.
    pub root: PathBuf,
    /// The partition's directory below the root; none when the root is the partition.
    pub directory: Option<String>,
    /// The one file to read, when the user named a file.
    pub file: Option<String>,
    /// Topic by the directory's name.
    pub topic: Arc<str>,
    /// Partition by the directory's name.
    pub partition: i32,
    pub(crate) facts: RootFacts,
}

impl Found {
    /// The partition's directory.
    pub fn path(&self) -> PathBuf {
        match &self.directory {
            Some(name) => self.root.join(name),
            None => self.root.clone(),
        }
    }
}

/// Everything below the named paths.
#[derive(Debug, Default)]
pub struct Discovery {
    /// Partitions, by topic and number.
    pub found: Vec<Found>,
    /// Directories that are no live partitions, with the reason: kept for the report.
    pub passed: Vec<(PathBuf, &'static str)>,
}

impl Discovery {
    /// Looks below each path. Reads names and checkpoint files only.
    pub fn look<S: Fs>(fs: &S, paths: &[PathBuf]) -> Result<Self> {
        let mut discovery = Self::default();
        for path in paths {
            match fs.kind(path)? {
                EntryKind::Directory => discovery.look_into(fs, path)?,
                EntryKind::File => discovery.take_file(path)?,
                EntryKind::Link | EntryKind::Special => {
                    return Err(Error::Invalid(format!(
                        "{} is neither a directory nor a file",
                        path.display()
                    )));
                }
            }
        }
        discovery.found.sort_by(|a, b| {
            (&a.topic, a.partition, &a.root, &a.file).cmp(&(
                &b.topic,
                b.partition,
                &b.root,
                &b.file,
            ))
        });
        discovery.refuse_twins()?;
        Ok(discovery)
    }

    /// Topics that a scan without a choice of topics reads, in order, each once.
    pub fn topics(&self) -> Vec<Arc<str>> {
        let mut topics: Vec<_> = self.found.iter().map(|found| Arc::clone(&found.topic)).collect();
        topics.dedup();
        topics
    }

    fn look_into<S: Fs>(&mut self, fs: &S, path: &Path) -> Result<()> {
        let directory = fs.open_dir(path)?;
        let entries = directory.list()?;
        if entries.iter().any(is_segment_log) {
            return self.take_partition(fs, path);
        }
        let facts = LogDirFacts::read(&directory)?;
        let mut any = facts.any;
        for entry in entries {
            any |= self.take_entry(path, entry, &facts)?;
        }
        if any {
            return Ok(());
        }
        // An empty partition directory is a partition with nothing in it yet.
        if name_of(path).and_then(|name| PartitionDir::parse(&name)).is_some() {
            return self.take_partition(fs, path);
        }
        Err(Error::Invalid(format!(
            "{} is no Kafka directory: it holds neither segments nor partition directories",
            path.display()
        )))
    }

    fn take_entry(&mut self, root: &Path, entry: Entry, facts: &LogDirFacts) -> Result<bool> {
        let Some(parsed) = PartitionDir::parse(&entry.name) else { return Ok(false) };
        let path = root.join(&entry.name);
        match entry.kind {
            EntryKind::Directory => {}
            EntryKind::Link => {
                return Err(Error::Invalid(format!(
                    "{} is a symbolic link; links below a scanned directory are not followed: \
                     name its target as a path of its own",
                    path.display()
                )));
            }
            EntryKind::File | EntryKind::Special => return Ok(false),
        }
        let why = match parsed.state {
            DirState::Live => None,
            DirState::Delete(_) => Some("waits for deletion"),
            DirState::Future(_) => Some("is a replica on the move"),
            DirState::Stray(_) => Some("is a stray replica"),
        };
        if let Some(why) = why {
            self.passed.push((path, why));
            return Ok(true);
        }
        self.found.push(Found {
            root: root.to_owned(),
            directory: Some(entry.name),
            file: None,
            facts: facts.of(parsed.topic.as_str(), parsed.partition),
            topic: Arc::from(parsed.topic.as_str()),
            partition: parsed.partition,
        });
        Ok(true)
    }

    fn take_partition<S: Fs>(&mut self, fs: &S, path: &Path) -> Result<()> {
        let (topic, partition) = identity(path);
        let parent = fs.open_dir(&path.join(".."))?;
        let facts = LogDirFacts::read(&parent)?.of(&topic, partition);
        self.found.push(Found {
            root: path.to_owned(),
            directory: None,
            file: None,
            topic: Arc::from(topic),
            partition,
            facts,
        });
        Ok(())
    }

    fn take_file(&mut self, path: &Path) -> Result<()> {
        let segment = name_of(path).and_then(|name| SegmentFile::parse(&name));
        let is_log = segment.is_some_and(|segment| segment.kind == FileKind::Log);
        let (true, Some(name)) = (is_log, name_of(path)) else {
            return Err(Error::Invalid(format!(
                "{} is not named like a segment: twenty digits and .log",
                path.display()
            )));
        };
        let root = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
            Some(parent) => parent.to_owned(),
            None => PathBuf::from("/"),
        };
        let (topic, partition) = identity(&root);
        self.found.push(Found {
            root,
            directory: None,
            file: Some(name),
            topic: Arc::from(topic),
            partition,
            facts: RootFacts::default(),
        });
        Ok(())
    }

    /// One partition in two log directories has two truths; a broker refuses to start on them.
    fn refuse_twins(&self) -> Result<()> {
        for pair in self.found.windows(2) {
            let [a, b] = pair else { continue };
            let same = a.topic == b.topic && a.partition == b.partition;
            if same && a.file.is_none() && b.file.is_none() {
                return Err(Error::Invalid(format!(
                    "partition {} of topic {} is in both {} and {}",
                    a.partition,
                    a.topic,
                    a.root.display(),
                    b.root.display()
                )));
            }
        }
        Ok(())
    }
}

/// Whether a scan that names no topics reads this one.
pub(crate) fn is_default_topic(topic: &str) -> bool {
    topic != CLUSTER_METADATA
}

/// Topic and partition by the directory's name. A directory that is named otherwise (a copy of a
/// few segments, say) reads as a topic of its own name, partition −1.
fn identity(path: &Path) -> (String, i32) {
    let name = name_of(path).unwrap_or_default();
    match PartitionDir::parse(&name) {
        Some(parsed) => (parsed.topic.as_str().to_owned(), parsed.partition),
        None => (name, -1),
    }
}

fn name_of(path: &Path) -> Option<String> {
    let name = match path.file_name() {
        Some(name) => name.to_owned(),
        None => std::path::absolute(path).ok()?.file_name()?.to_owned(),
    };
    name.into_string().ok()
}

fn is_segment_log(entry: &Entry) -> bool {
    SegmentFile::parse(&entry.name).is_some_and(|segment| {
        segment.kind == FileKind::Log && matches!(segment.state, FileState::Live | FileState::Swap)
    })
}

/// The checkpoint files at the root of a log directory.
struct LogDirFacts {
    log_start: OffsetCheckpoint,
    recovery_point: OffsetCheckpoint,
    is_clean: bool,
    any: bool,
}

impl LogDirFacts {
    fn read<D: Dir>(directory: &D) -> Result<Self> {
        let log_start = directory.read_small("log-start-offset-checkpoint")?;
        let recovery = directory.read_small("recovery-point-offset-checkpoint")?;
        let clean = directory.read_small(".kafka_cleanshutdown")?;
        let meta = directory.read_small("meta.properties")?;
        Ok(Self {
            any: log_start.is_some() || recovery.is_some() || clean.is_some() || meta.is_some(),
            log_start: offsets_of(log_start),
            recovery_point: offsets_of(recovery),
            is_clean: clean.is_some(),
        })
    }

    fn of(&self, topic: &str, partition: i32) -> RootFacts {
        RootFacts {
            log_start: self.log_start.get(topic, partition),
            recovery_point: self.recovery_point.get(topic, partition),
            is_clean: self.is_clean,
        }
    }
}

/// A checkpoint that cannot be read counts as empty, as it does for a broker that starts.
fn offsets_of(bytes: Option<Vec<u8>>) -> OffsetCheckpoint {
    bytes.and_then(|bytes| OffsetCheckpoint::decode(&bytes).ok()).unwrap_or_default()
}

/// The leader epochs of a partition, empty when the file is missing or unreadable.
pub(crate) fn epochs_of<D: Dir>(partition: &D) -> Result<Arc<Vec<(i32, i64)>>> {
    let bytes = partition.read_small("leader-epoch-checkpoint")?;
    let epochs = bytes.and_then(|bytes| LeaderEpochs::decode(&bytes).ok()).unwrap_or_default();
    Ok(Arc::new(epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()))
}

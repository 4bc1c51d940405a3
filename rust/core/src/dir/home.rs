//! The files at the root of a log directory, and the lock that makes them ours.
//!
//! | file | written | a crash leaves |
//! |---|---|---|
//! | `.lock` | held while the directory is open | nothing: the lock dies with the process |
//! | `.kafka_cleanshutdown` | last thing at a clean close, removed before anything is loaded | no file, and so an unclean start |
//! | `recovery-point-offset-checkpoint` | from time to time and at close | an older value: more is recovered than needed |
//! | `log-start-offset-checkpoint` | the same | an older value: deleted records come back until they are deleted again |
//! | `replication-offset-checkpoint` | the same | an older high watermark |
//! | `kafkaseg-topics.properties` | when a topic is made or configured | the old configuration or the new |
//!
//! All but the marker are replaced whole, so a reader never sees half of one. Brokers ignore the
//! last one: they keep the configuration of topics in their metadata log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::checkpoint::{CleanShutdown, MetaProperties, OffsetCheckpoint, Properties};
use crate::error::{Error, Result};
use crate::fs::{Create, Dir, WriteDir, WriteFile, WriteFs, replace_file};

const LOCK: &str = ".lock";
const MARKER: &str = ".kafka_cleanshutdown";
const META: &str = "meta.properties";
const TOPICS: &str = "kafkaseg-topics.properties";

/// Offsets below are on the device.
pub(super) const RECOVERY_POINT: &str = "recovery-point-offset-checkpoint";
/// The first offset of logs that begin inside their first segment.
pub(super) const LOG_START: &str = "log-start-offset-checkpoint";
/// High watermarks.
pub(super) const HIGH_WATERMARK: &str = "replication-offset-checkpoint";

/// Configuration of each topic by name, only what differs from the defaults.
pub(super) type TopicConfigs = BTreeMap<String, BTreeMap<String, String>>;

/// The root of a log directory whose lock we hold.
pub(super) struct Home<S: WriteFs> {
    dir: S::Dir,
    /// Released when dropped, after everything else.
    _lock: <S::Dir as WriteDir>::Lock,
}

/// What the root said when it was opened.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether every log was closed cleanly.
    pub(super) is_clean: bool,
    /// Epoch of the broker that closed it, if it said so.
    pub(super) broker_epoch: Option<i64>,
    pub(super) meta: Option<MetaProperties>,
    pub(super) recovery_points: OffsetCheckpoint,
    pub(super) log_starts: OffsetCheckpoint,
    pub(super) high_watermarks: OffsetCheckpoint,
    pub(super) topics: TopicConfigs,
    /// Files that could not be made sense of and count as empty, with the reason.
    pub(super) unreadable: Vec<(PathBuf, String)>,
}

impl<S: WriteFs> Home<S> {
    /// Opens a root, makes it if that is wanted, and takes its lock.
    pub(super) fn open(fs: &S, path: &Path, create: bool) -> Result<Self> {
        let dir = match fs.open_dir(path) {
            Ok(dir) => dir,
            Err(error) if error.is_not_found() && create => {
                fs.make_dirs(path)?;
                fs.open_dir(path)?
            }
            Err(error) => return Err(error),
        };
        let lock = dir.lock(LOCK)?;
        Ok(Self { dir, _lock: lock })
    }

    pub(super) fn dir(&self) -> &S::Dir {
        &self.dir
    }

    /// Reads the root's files and takes the clean-shutdown marker away: a crash while logs are
    /// being loaded must not pass for a clean stop.
    pub(super) fn read(&self) -> Result<Found> {
        let mut found = Found::default();
        let marker = self.dir.read_small(MARKER)?;
        found.is_clean = marker.is_some();
        found.broker_epoch = marker
            .and_then(|bytes| CleanShutdown::decode(&bytes).ok())
            .and_then(|m| m.broker_epoch);
        if let Some(bytes) = self.dir.read_small(META)? {
            let meta = MetaProperties::decode(&bytes)
                .map_err(|kind| Error::corrupt(&self.dir.path().join(META), 0, kind))?;
            found.meta = Some(meta);
        }
        found.recovery_points = self.offsets(RECOVERY_POINT, &mut found.unreadable)?;
        found.log_starts = self.offsets(LOG_START, &mut found.unreadable)?;
        found.high_watermarks = self.offsets(HIGH_WATERMARK, &mut found.unreadable)?;
        found.topics = self.topic_configs(&mut found.unreadable)?;
        Ok(found)
    }

    /// Says, durably, that the directory is in use.
    pub(super) fn remove_marker(&self) -> Result<()> {
        if self.dir.unlink(MARKER)? {
            self.dir.sync()?;
        }
        Ok(())
    }

    /// Says that every log was closed cleanly. The last thing ever done to a directory.
    pub(super) fn write_marker(&self, broker_epoch: Option<i64>) -> Result<()> {
        // A broker that finds −1 knows that no broker of its cluster wrote it.
        let marker = CleanShutdown { broker_epoch: Some(broker_epoch.unwrap_or(-1)) };
        let file = self.dir.open_write(MARKER, Create::IfMissing)?;
        file.set_len(0)?;
        file.write_at(&marker.encode(), 0)?;
        file.sync()?;
        self.dir.sync()
    }

    pub(super) fn write_meta(&self, meta: &MetaProperties, now_ms: i64) -> Result<()> {
        replace_file(&self.dir, META, &meta.encode(now_ms))
    }

    pub(super) fn write_offsets(&self, name: &str, offsets: &OffsetCheckpoint) -> Result<()> {
        replace_file(&self.dir, name, &offsets.encode())
    }

    pub(super) fn write_topics(&self, topics: &TopicConfigs, now_ms: i64) -> Result<()> {
        let mut properties = Properties::default();
        for (topic, config) in topics {
            for (key, value) in config {
                properties.insert(&format!("{topic}/{key}"), value.as_str());
            }
        }
        replace_file(&self.dir, TOPICS, &properties.encode(now_ms))
    }

    /// A checkpoint; one that is damaged counts as empty, as it does for a broker.
    fn offsets(
        &self,
        name: &str,
        unreadable: &mut Vec<(PathBuf, String)>,
    ) -> Result<OffsetCheckpoint> {
        let Some(bytes) = self.dir.read_small(name)? else {
            return Ok(OffsetCheckpoint::default());
        };
        Ok(OffsetCheckpoint::decode(&bytes).unwrap_or_else(|kind| {
            unreadable.push((self.dir.path().join(name), kind.to_string()));
            OffsetCheckpoint::default()
        }))
    }

    fn topic_configs(&self, unreadable: &mut Vec<(PathBuf, String)>) -> Result<TopicConfigs> {
        let mut topics = TopicConfigs::new();
        let Some(bytes) = self.dir.read_small(TOPICS)? else { return Ok(topics) };
        match Properties::decode(&bytes) {
            Ok(properties) => {
                for (key, value) in properties.iter() {
                    if let Some((topic, name)) = key.split_once('/') {
                        let config = topics.entry(topic.to_owned()).or_default();
                        config.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            Err(kind) => unreadable.push((self.dir.path().join(TOPICS), kind.to_string())),
        }
        Ok(topics)
    }
}

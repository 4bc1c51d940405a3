//! Making, growing and deleting topics under Kafka's rules.
//!
//! A partition directory is complete before it has its name: it is made as `<name>.<id>-future`,
//! which every broker knows as a replica that is not in use yet, gets its `partition.metadata`, is
//! synced and renamed. A crash leaves a partition or nothing that anybody would read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::load::log_options;
use super::{DirOptions, LogDir, PartitionKey, State};
use crate::checkpoint::{OffsetCheckpoint, PartitionMetadata};
use crate::error::{Error, Result};
use crate::fs::{Dir, WriteDir, WriteFs, replace_file};
use crate::limits::PARTITIONS_PER_REQUEST_MAX;
use crate::log::Log;
use crate::names::{DirState, PartitionDir, TopicName};
use crate::uuid::Uuid;

/// The file in a partition directory that names its topic.
const METADATA: &str = "partition.metadata";

/// The topic that brokers keep their metadata in; nobody can make it.
const CLUSTER_METADATA: &str = "__cluster_metadata";

impl<S: WriteFs> LogDir<S> {
    /// Makes a topic. `config` holds what differs from the directory's defaults.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        config: &BTreeMap<String, String>,
        topic_id: Option<Uuid>,
    ) -> Result<Uuid> {
        self.check_open()?;
        let topic = checked_name(name)?;
        check_count(partitions)?;
        let pairs = config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        self.options.config.log.with(pairs)?;
        let mut state = self.state();
        refuse_collisions(&state.names(), name)?;
        let id = topic_id.unwrap_or_else(Uuid::random);
        if !config.is_empty() {
            state.topics.insert(name.to_owned(), config.clone());
            self.with_home(|home| home.write_topics(&state.topics, self.options.clock.now_ms()))?;
        }
        for partition in 0..partitions {
            self.add_partition(&mut state, &topic, partition, id, &self.options)?;
        }
        self.with_home(|home| home.dir().sync())?;
        Ok(id)
    }

    /// Gives a topic more partitions. It never gets fewer: records would be lost, and keys would
    /// not find their partition again.
    pub fn grow_topic(&self, name: &str, partitions: i32) -> Result<()> {
        self.check_open()?;
        let topic = checked_name(name)?;
        let mut state = self.state();
        let count = state.partition_count(name)?;
        if partitions <= count {
            return Err(Error::Rejected {
                code: "INVALID_PARTITIONS",
                reason: format!(
                    "{name} has {count} partitions and cannot have {partitions}: it only grows"
                ),
            });
        }
        check_count(partitions.saturating_sub(count))?;
        let id = self.topic_id(name)?.unwrap_or_else(Uuid::random);
        for partition in count..partitions {
            self.add_partition(&mut state, &topic, partition, id, &self.options)?;
        }
        self.with_home(|home| home.dir().sync())
    }

    /// Takes a topic out of service. Its directories are renamed at once and removed after
    /// `file.delete.delay.ms`; whoever reads from it now can read on until then.
    pub fn delete_topic(&self, name: &str) -> Result<()> {
        self.check_open()?;
        let mut state = self.state();
        let count = state.partition_count(name)?;
        let delay = self.config_delay(&state, name);
        let due = self.options.clock.now_ms().saturating_add(delay);
        let keys = state.keys_of(name);
        // A later topic of this name must not be taken for this one, whenever a crash comes.
        let mut points = self.root.points();
        for key in &keys {
            state.forget(&mut points, name, key.1);
        }
        self.with_home(|home| state.write_checkpoints(home, &points))?;
        drop(points);
        for key in keys {
            let topic = checked_name(&key.0)?;
            let live = PartitionDir::live(topic.clone(), key.1).to_string();
            let doomed =
                PartitionDir { topic, partition: key.1, state: DirState::Delete(Uuid::random()) };
            // Whoever reads from it now can read on.
            if let Some(log) = state.logs.get(&key).filter(|log| !log.is_closed()) {
                log.wake()?;
            }
            self.with_home(|home| home.dir().rename(&live, &doomed.to_string()))?;
            if let Some(log) = state.logs.remove(&key) {
                log.abandon();
            }
            state.offline.remove(&key);
            state.unloaded.remove(&key);
            state.opened.remove(&key);
            state.closed.remove(&key);
            state.dropped.remove(&key);
            state.doomed.push((doomed.to_string(), due));
        }
        debug_assert!(count > 0, "a topic has a partition");
        state.topics.remove(name);
        self.with_home(|home| {
            home.dir().sync()?;
            home.write_topics(&state.topics, self.options.clock.now_ms())
        })
    }

    /// The topics, with their number of partitions.
    pub fn topics(&self) -> BTreeMap<String, usize> {
        let mut topics = BTreeMap::new();
        for (topic, _) in self.state().all_keys() {
            *topics.entry(topic).or_insert(0) += 1;
        }
        topics
    }

    /// The identifier of a topic; `None` where none of its partitions has one, as before Kafka 2.8.
    pub fn topic_id(&self, name: &str) -> Result<Option<Uuid>> {
        let topic = checked_name(name)?;
        self.with_home(|home| {
            let dir = match home.dir().open_dir(&PartitionDir::live(topic, 0).to_string()) {
                Ok(dir) => dir,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(bytes) = dir.read_small(METADATA)? else { return Ok(None) };
            let metadata = PartitionMetadata::decode(&bytes)
                .map_err(|kind| Error::corrupt(&dir.path().join(METADATA), 0, kind))?;
            Ok(Some(metadata.topic_id))
        })
    }

    /// Makes one partition and opens it.
    pub(super) fn add_partition(
        &self,
        state: &mut State<S>,
        topic: &TopicName,
        partition: i32,
        topic_id: Uuid,
        options: &DirOptions,
    ) -> Result<()> {
        let key = (topic.as_str().to_owned(), partition);
        self.forget_old(state, &key)?;
        let options = log_options(&self.root, state, options, &key)?;
        let dir =
            self.with_home(|home| make_partition::<S>(home.dir(), topic, partition, topic_id))?;
        let (log, _) = Log::load(dir, &options)?;
        log.rest();
        state.logs.insert(key, Arc::new(log));
        Ok(())
    }

    /// Takes what the checkpoints say of an earlier partition of that name out of them, durably,
    /// before there is a new one.
    fn forget_old(&self, state: &mut State<S>, (topic, partition): &PartitionKey) -> Result<()> {
        let mut points = self.root.points();
        let is_named = |offsets: &OffsetCheckpoint| offsets.get(topic, *partition).is_some();
        let said = [&points.recovery_points, &points.log_starts, &state.high_watermarks];
        if !said.into_iter().any(is_named) {
            return Ok(());
        }
        state.forget(&mut points, topic, *partition);
        self.with_home(|home| state.write_checkpoints(home, &points))
    }

    fn config_delay(&self, state: &State<S>, name: &str) -> i64 {
        let config = super::config_of(&self.options, &state.topics, name);
        config.map_or(60_000, |config| config.file_delete_delay_ms)
    }
}

/// Makes the directory of a partition; one that is there already is opened.
fn make_partition<S: WriteFs>(
    root: &S::Dir,
    topic: &TopicName,
    partition: i32,
    topic_id: Uuid,
) -> Result<S::Dir> {
    let live = PartitionDir::live(topic.clone(), partition).to_string();
    match root.open_dir(&live) {
        Ok(dir) => return Ok(dir),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    let future =
        PartitionDir { topic: topic.clone(), partition, state: DirState::Future(Uuid::random()) };
    let name = future.to_string();
    root.make_dir(&name)?;
    let metadata = PartitionMetadata { version: 0, topic_id };
    replace_file(&root.open_dir(&name)?, METADATA, &metadata.encode())?;
    root.rename(&name, &live)?;
    root.open_dir(&live)
}

impl<S: WriteFs> State<S> {
    fn all_keys(&self) -> BTreeSet<PartitionKey> {
        let keys = self.logs.keys().chain(self.offline.keys()).chain(self.unloaded.keys());
        keys.cloned().collect()
    }

    fn names(&self) -> BTreeSet<String> {
        self.all_keys().into_iter().map(|(topic, _)| topic).collect()
    }

    fn keys_of(&self, topic: &str) -> Vec<PartitionKey> {
        self.all_keys().into_iter().filter(|(name, _)| name == topic).collect()
    }

    /// One more than the highest partition of a topic.
    fn partition_count(&self, topic: &str) -> Result<i32> {
        let highest = self.keys_of(topic).into_iter().map(|(_, partition)| partition).max();
        highest.map(|highest| highest.saturating_add(1)).ok_or_else(|| Error::Rejected {
            code: "UNKNOWN_TOPIC_OR_PARTITION",
            reason: format!("there is no topic {topic}"),
        })
    }
}

fn checked_name(name: &str) -> Result<TopicName> {
    let refused = |why: &str| Error::Rejected {
        code: "INVALID_TOPIC_EXCEPTION",
        reason: format!("{name:?} cannot be a topic: {why}"),
    };
    if name == CLUSTER_METADATA {
        return Err(refused("brokers keep their metadata in it"));
    }
    TopicName::parse(name).ok_or_else(|| {
        refused(
            "a name has 1 to 249 of the characters a-z A-Z 0-9 . _ - and is not \".\" or \"..\"",
        )
    })
}

fn check_count(partitions: i32) -> Result<()> {
    if partitions < 1 {
        return Err(Error::Rejected {
            code: "INVALID_PARTITIONS",
            reason: format!("a topic has at least one partition, not {partitions}"),
        });
    }
    if partitions > PARTITIONS_PER_REQUEST_MAX {
        return Err(Error::Rejected {
            code: "POLICY_VIOLATION",
            reason: format!(
                "{partitions} partitions at once are more than {PARTITIONS_PER_REQUEST_MAX}"
            ),
        });
    }
    Ok(())
}

/// `a.b` and `a_b` would report under one name in Kafka's metrics.
fn refuse_collisions(names: &BTreeSet<String>, name: &str) -> Result<()> {
    if names.contains(name) {
        return Err(Error::Rejected {
            code: "TOPIC_ALREADY_EXISTS",
            reason: format!("there is a topic {name} already"),
        });
    }
    let flat = |name: &str| name.replace('.', "_");
    match names.iter().find(|other| flat(other) == flat(name)) {
        Some(other) => Err(Error::Rejected {
            code: "INVALID_TOPIC_EXCEPTION",
            reason: format!("{name} and {other} differ only in . and _, which metrics cannot tell"),
        }),
        None => Ok(()),
    }
}

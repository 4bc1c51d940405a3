//! The files beside the segments, and the grammar of names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kafkaseg_core::checkpoint::{
    CleanShutdown, LeaderEpochs, MetaProperties, OffsetCheckpoint, PartitionMetadata, Properties,
    QuorumState,
};
use kafkaseg_core::fs::{Dir, Fs, RealDir, RealFile, RealFs};
use kafkaseg_core::index::{OffsetIndexView, TimeIndexView, TxnIndexView};
use kafkaseg_core::names::{self, FileKind, SegmentFile};
use kafkaseg_core::producer::{ProducerEntry, ProducerSnapshot};
use kafkaseg_core::{CorruptKind, Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::pulse::run;

/// Errno of a name that does not exist.
const ENOENT: i32 = 2;

/// The directory of a file, and the file's name in it.
fn split(path: &Path) -> Result<(RealDir, &str)> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        Error::Invalid(format!("{} does not end in the name of a file", path.display()))
    })?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok((RealFs.open_dir(parent)?, name))
}

/// Opens a file that the caller named, refusing links and everything that is not a file.
pub(crate) fn open(path: &Path) -> Result<RealFile> {
    let (directory, name) = split(path)?;
    directory.open(name)
}

fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let (directory, name) = split(path)?;
    directory.read_small(name)?.ok_or_else(|| {
        let source = std::io::Error::from_raw_os_error(ENOENT);
        Error::io("open", path, source)
    })
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Entries of an index or a producer snapshot: the file's kind and packed rows in native order.
#[pyfunction]
#[pyo3(signature = (path, verify))]
pub(crate) fn read_index(
    py: Python<'_>,
    path: PathBuf,
    verify: bool,
) -> PyResult<(&'static str, Bound<'_, PyBytes>)> {
    let (kind, rows) = run(py, |_| {
        let named = SegmentFile::parse(name_of(&path));
        let Some(file) = named.filter(|file| file.kind != FileKind::Log) else {
            return Err(Error::Invalid(format!(
                "{} is no index: those are named by twenty digits and .index, .timeindex, \
                 .txnindex or .snapshot",
                path.display()
            )));
        };
        let bytes = read_whole(&path)?;
        let rows = pack(file, &bytes, verify).map_err(|kind| Error::corrupt(&path, 0, kind))?;
        Ok((file.kind.extension(), rows))
    })?;
    Ok((kind, PyBytes::new(py, &rows)))
}

fn pack(
    file: SegmentFile,
    bytes: &[u8],
    verify: bool,
) -> std::result::Result<Vec<u8>, CorruptKind> {
    let mut rows = Vec::with_capacity(bytes.len().saturating_mul(2));
    match file.kind {
        FileKind::Index => {
            let index = OffsetIndexView::new(file.base_offset, bytes);
            if verify {
                index.sanity()?;
            }
            for entry in index.iter() {
                rows.extend(entry.offset.to_ne_bytes());
                rows.extend(entry.position.to_ne_bytes());
            }
        }
        FileKind::TimeIndex => {
            let index = TimeIndexView::new(file.base_offset, bytes);
            if verify {
                index.sanity()?;
            }
            for entry in index.iter() {
                rows.extend(entry.timestamp.to_ne_bytes());
                rows.extend(entry.offset.to_ne_bytes());
            }
        }
        FileKind::TxnIndex => {
            let index = TxnIndexView::new(file.base_offset, bytes);
            if verify {
                index.sanity()?;
            }
            for entry in index.iter() {
                let entry = entry?;
                rows.extend(entry.producer_id.to_ne_bytes());
                rows.extend(entry.first_offset.to_ne_bytes());
                rows.extend(entry.last_offset.to_ne_bytes());
                rows.extend(entry.last_stable_offset.to_ne_bytes());
            }
        }
        FileKind::Snapshot => {
            for entry in ProducerSnapshot::decode(bytes)?.entries {
                pack_producer(&entry, &mut rows);
            }
        }
        FileKind::Log => {}
    }
    Ok(rows)
}

fn pack_producer(entry: &ProducerEntry, rows: &mut Vec<u8>) {
    rows.extend(entry.producer_id.to_ne_bytes());
    rows.extend(entry.producer_epoch.to_ne_bytes());
    rows.extend(entry.last_sequence.to_ne_bytes());
    rows.extend(entry.last_offset.to_ne_bytes());
    rows.extend(entry.offset_delta.to_ne_bytes());
    rows.extend(entry.timestamp.to_ne_bytes());
    rows.extend(entry.coordinator_epoch.to_ne_bytes());
    rows.extend(entry.txn_first_offset.to_ne_bytes());
}

/// A small file of a log or partition directory, told apart by its name.
enum Checkpoint {
    Epochs(LeaderEpochs),
    Offsets(OffsetCheckpoint),
    Partition(PartitionMetadata),
    Meta(MetaProperties),
    Clean(CleanShutdown),
    Quorum(QuorumState),
}

const CHECKPOINTS: [&str; 9] = [
    names::LEADER_EPOCH_CHECKPOINT,
    names::RECOVERY_POINT_CHECKPOINT,
    names::HIGH_WATERMARK_CHECKPOINT,
    names::LOG_START_CHECKPOINT,
    names::CLEANER_CHECKPOINT,
    names::PARTITION_METADATA,
    names::META_PROPERTIES,
    names::CLEAN_SHUTDOWN,
    names::QUORUM_STATE,
];

impl Checkpoint {
    fn read(path: &Path) -> Result<Self> {
        let name = name_of(path);
        if !CHECKPOINTS.contains(&name) {
            return Err(Error::Invalid(format!(
                "{name:?} is no checkpoint file; those are {}",
                CHECKPOINTS.join(", ")
            )));
        }
        let bytes = read_whole(path)?;
        Self::decode(name, &bytes).map_err(|kind| Error::corrupt(path, 0, kind))
    }

    fn decode(name: &str, bytes: &[u8]) -> std::result::Result<Self, CorruptKind> {
        Ok(match name {
            names::LEADER_EPOCH_CHECKPOINT => Self::Epochs(LeaderEpochs::decode(bytes)?),
            names::PARTITION_METADATA => Self::Partition(PartitionMetadata::decode(bytes)?),
            names::META_PROPERTIES => Self::Meta(MetaProperties::decode(bytes)?),
            names::CLEAN_SHUTDOWN => Self::Clean(CleanShutdown::decode(bytes)?),
            names::QUORUM_STATE => Self::Quorum(QuorumState::decode(bytes)?),
            _ => Self::Offsets(OffsetCheckpoint::decode(bytes)?),
        })
    }

    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let dict = PyDict::new(py);
        match self {
            Self::Epochs(epochs) => {
                let rows = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset));
                return Ok(PyList::new(py, rows.collect::<Vec<_>>())?.into_any());
            }
            Self::Offsets(offsets) => {
                for (topic, partition, offset) in offsets.iter() {
                    dict.set_item((topic, partition), offset)?;
                }
            }
            Self::Partition(partition) => {
                dict.set_item("version", partition.version)?;
                dict.set_item("topic_id", partition.topic_id.to_string())?;
            }
            Self::Meta(meta) => {
                dict.set_item("version", meta.version)?;
                dict.set_item("cluster_id", meta.cluster_id)?;
                dict.set_item("node_id", meta.node_id)?;
                dict.set_item("directory_id", meta.directory_id.map(|id| id.to_string()))?;
            }
            Self::Clean(clean) => dict.set_item("broker_epoch", clean.broker_epoch)?,
            Self::Quorum(quorum) => {
                let voted_directory_id = quorum.voted_directory_id.map(|id| id.to_string());
                dict.set_item("version", quorum.version)?;
                dict.set_item("leader_id", quorum.leader_id)?;
                dict.set_item("leader_epoch", quorum.leader_epoch)?;
                dict.set_item("voted_id", quorum.voted_id)?;
                dict.set_item("voted_directory_id", voted_directory_id)?;
                dict.set_item("voters", quorum.voters)?;
            }
        }
        Ok(dict.into_any())
    }
}

/// What a checkpoint file says, as plain Python.
#[pyfunction]
pub(crate) fn read_checkpoint(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    run(py, |_| Checkpoint::read(&path))?.into_python(py)
}

/// The keys and values of a `.properties` file.
#[pyfunction]
pub(crate) fn read_properties(py: Python<'_>, path: PathBuf) -> PyResult<BTreeMap<String, String>> {
    run(py, |_| {
        let properties = Properties::decode(&read_whole(&path)?)
            .map_err(|kind| Error::corrupt(&path, 0, kind))?;
        Ok(properties.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    })
}

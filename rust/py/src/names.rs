//! The grammar of names, as tuples.

use kafkaseg_core::names::{
    DirState, FileState, MetadataSnapshotFile, PartitionDir, SegmentFile, SnapshotState,
};
use kafkaseg_core::uuid::Uuid;
use pyo3::prelude::*;

/// Topic, partition, state, what tells two directories of that state apart, and whether the topic
/// may be cut.
type PartitionRow = (String, i32, &'static str, Option<String>, bool);
/// Base offset, kind and state.
type SegmentRow = (i64, &'static str, &'static str);
/// End offset, epoch and state.
type SnapshotRow = (i64, i32, &'static str);

/// The name of a partition directory.
#[pyfunction]
pub(crate) fn parse_partition_name(name: &str) -> Option<PartitionRow> {
    let parsed = PartitionDir::parse(name)?;
    let may_be_cut = parsed.topic_may_be_cut();
    let (state, id) = match parsed.state {
        DirState::Live => ("live", None),
        DirState::Delete(id) => ("delete", Some(id)),
        DirState::Future(id) => ("future", Some(id)),
        DirState::Stray(id) => ("stray", Some(id)),
    };
    Some((parsed.topic.into(), parsed.partition, state, id.map(Uuid::hex), may_be_cut))
}

/// The name of a segment's file.
#[pyfunction]
pub(crate) fn parse_segment_name(name: &str) -> Option<SegmentRow> {
    let parsed = SegmentFile::parse(name)?;
    let state = match parsed.state {
        FileState::Live => "live",
        FileState::Deleted => "deleted",
        FileState::Cleaned => "cleaned",
        FileState::Swap => "swap",
    };
    Some((parsed.base_offset, parsed.kind.extension(), state))
}

/// The name of a snapshot of the metadata log.
#[pyfunction]
pub(crate) fn parse_snapshot_name(name: &str) -> Option<SnapshotRow> {
    let parsed = MetadataSnapshotFile::parse(name)?;
    let state = match parsed.state {
        SnapshotState::Live => "live",
        SnapshotState::Deleted => "deleted",
        SnapshotState::Partial(_) => "partial",
    };
    Some((parsed.end_offset, parsed.epoch, state))
}

//! What opening a log found and did.

use std::path::PathBuf;

use crate::record::CorruptKind;

/// What opening a log found and did. Nothing in it is an error: the log is open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Whether the log was closed cleanly, so that its records were taken as they are.
    pub is_clean: bool,
    /// Segments whose records were read and checked, by base offset.
    pub segments_recovered: Vec<i64>,
    /// Bytes of records that were read and checked.
    pub bytes_checked: u64,
    /// What was cut from the log.
    pub cuts: Vec<Cut>,
    /// Index files that were wrong or missing and were made anew.
    pub indexes_rebuilt: Vec<PathBuf>,
    /// Leftovers of interrupted work, and what became of each.
    pub leftovers: Vec<(PathBuf, Leftover)>,
    /// Segments that were split because an offset did not fit them, by base offset.
    pub segments_split: Vec<i64>,
    /// What was left undone because there was no space for it. The log is complete without it.
    pub skipped: Vec<String>,
}

/// Bytes that opening a log took out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// The file.
    pub file: PathBuf,
    /// Where the cut begins.
    pub position: u64,
    /// How many bytes went.
    pub bytes: u64,
    /// The check that the bytes failed; `None` for good bytes behind bad ones.
    pub kind: Option<CorruptKind>,
    /// Where the bytes are now; `None` when there were only zeros, or no space for a copy.
    pub kept_in: Option<PathBuf>,
}

/// What became of a leftover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Removed.
    Removed,
    /// Renamed to its final name.
    Completed,
}

impl Recovery {
    /// Bytes that were taken out of the log.
    pub fn bytes_truncated(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.bytes).sum()
    }
}

//! One error enum for the engine. Each variant names what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::{CorruptKind, RecordError};

/// The result of everything in this crate that touches a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused. Nothing was judged and nothing was changed because of it.
    #[error("{op} {}: {source}", path.display())]
    Io {
        /// The call that failed, in plain words ("open", "read").
        op: &'static str,
        /// The file it was made on.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The disk or the quota is full.
    #[error("no space left on the device that holds {}", path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// An earlier fsync failed; nothing may be acknowledged until the log is opened again.
    #[error("{} is offline after a failed fsync; close it and open it again", path.display())]
    Poisoned {
        /// The directory that is offline.
        path: PathBuf,
    },
    /// Another process owns the directory.
    #[error("{} is locked by another process", path.display())]
    Locked {
        /// The locked directory.
        path: PathBuf,
    },
    /// Bytes are damaged.
    #[error("{} is damaged at position {position}: {kind}", file.display())]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where the entry that fails its check begins.
        position: u64,
        /// The check that failed.
        kind: CorruptKind,
    },
    /// A magic, codec or version this release does not know.
    #[error("unsupported {what}: {found}")]
    Unsupported {
        /// The thing that has versions.
        what: &'static str,
        /// The version found.
        found: String,
    },
    /// A bound of [`crate::limits`] was met.
    #[error("{what} of {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// The thing that is bounded.
        what: &'static str,
        /// What was asked or found.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The offset is not in the log.
    #[error("offset {asked} is out of range: the log holds {start} to {end}")]
    OutOfRange {
        /// The offset asked for.
        asked: i64,
        /// The first offset of the log.
        start: i64,
        /// The offset after the last one.
        end: i64,
    },
    /// A file of a snapshot was deleted, replaced or cut short since the snapshot was taken.
    #[error("{} {what} since the scan took its snapshot", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it, as a verb phrase ("was deleted").
        what: &'static str,
    },
    /// Good bytes in the wrong state; the code is Kafka's own error name.
    #[error("{code}: {reason}")]
    Rejected {
        /// Kafka's name of the error.
        code: &'static str,
        /// Why, with the values that clash.
        reason: String,
    },
    /// Records that break the rules of their topic, for which Kafka refuses the whole set.
    #[error("{code}: {reason}")]
    RejectedRecords {
        /// Kafka's name of the error.
        code: &'static str,
        /// How many records fail, and the first of them.
        reason: String,
        /// The failing records, at most [`crate::limits::RECORD_ERRORS_MAX`] of them.
        records: Vec<RecordError>,
    },
    /// The caller's argument makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Wraps an operating-system error, telling a full disk from the rest.
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { path: path.to_owned() }
            }
            _ => Self::Io { op, path: path.to_owned(), source },
        }
    }

    /// Damage of a file at a position.
    pub fn corrupt(file: &Path, position: u64, kind: CorruptKind) -> Self {
        Self::Corrupt { file: file.to_owned(), position, kind }
    }

    /// Kafka's name of the error, where the bytes were good and the log refused them.
    pub fn rejection(&self) -> Option<&'static str> {
        match self {
            Self::Rejected { code, .. } | Self::RejectedRecords { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the operating system said that the file is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_refusals_by_errno() {
        let path = Path::new("a.log");
        for errno in [rustix::io::Errno::NOSPC, rustix::io::Errno::DQUOT] {
            let full = io::Error::from_raw_os_error(errno.raw_os_error());
            assert!(matches!(Error::io("write", path, full), Error::NoSpace { .. }));
        }
        let other = io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error());
        assert!(matches!(Error::io("write", path, other), Error::Io { op: "write", .. }));
    }
}

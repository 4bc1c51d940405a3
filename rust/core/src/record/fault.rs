//! Why a log refuses what it was given to append.

use std::fmt;

use super::CorruptKind;
use crate::error::Error;
use crate::limits::RECORD_ERRORS_MAX;

/// Kafka's names of the refusals.
pub(super) mod code {
    pub(in super::super) const CORRUPT_MESSAGE: &str = "CORRUPT_MESSAGE";
    pub(in super::super) const INVALID_RECORD: &str = "INVALID_RECORD";
    pub(in super::super) const INVALID_TIMESTAMP: &str = "INVALID_TIMESTAMP";
    pub(in super::super) const MESSAGE_TOO_LARGE: &str = "MESSAGE_TOO_LARGE";
    /// Kafka has an exception of this name and no error of its protocol: only a replica meets it.
    pub(in super::super) const OFFSETS_OUT_OF_ORDER: &str = "OFFSETS_OUT_OF_ORDER";
}

/// A refusal of the whole set.
#[cold]
pub(super) fn refuse(code: &'static str, reason: impl Into<String>) -> Error {
    Error::Rejected { code, reason: reason.into() }
}

/// A refusal of bytes that are not what they claim to be.
#[cold]
pub(super) fn corrupt(kind: CorruptKind) -> Error {
    refuse(code::CORRUPT_MESSAGE, kind.to_string())
}

/// A refusal of a set because of a record that cannot be read. Damage that a checksum or a codec
/// found is corruption; a record that breaks its own layout was sent so.
#[cold]
pub(super) fn unreadable(kind: CorruptKind) -> Error {
    match kind {
        CorruptKind::Crc { .. } | CorruptKind::Inflate(_) => corrupt(kind),
        _ => refuse(code::INVALID_RECORD, kind.to_string()),
    }
}

/// A batch over `max.message.bytes`.
#[cold]
pub(super) fn too_large(bytes: usize, limit: usize) -> Error {
    refuse(
        code::MESSAGE_TOO_LARGE,
        format!("a batch of {bytes} bytes is over the max.message.bytes of {limit}"),
    )
}

/// The rule of its topic that a record breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordFault {
    /// A compacted topic keeps the last record of each key, so there must be one.
    NullKey,
    /// The timestamp lies too far from the time of the append.
    Timestamp {
        /// The record's.
        found: i64,
        /// The smallest allowed.
        earliest: i64,
        /// The largest allowed.
        latest: i64,
    },
    /// The batch says that a log set its times, which is the log's to say.
    AppendTime,
    /// A message inside a wrapper has another version than the wrapper.
    Magic {
        /// The message's.
        found: i8,
        /// The wrapper's.
        wrapper: i8,
    },
}

impl RecordFault {
    /// Kafka's name of the error.
    pub fn code(self) -> &'static str {
        match self {
            Self::NullKey | Self::Magic { .. } => code::INVALID_RECORD,
            Self::Timestamp { .. } | Self::AppendTime => code::INVALID_TIMESTAMP,
        }
    }
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NullKey => f.write_str("the topic is compacted and the record has no key"),
            Self::Timestamp { found, earliest, latest } => {
                write!(f, "timestamp {found} is out of the range {earliest} to {latest}")
            }
            Self::AppendTime => {
                f.write_str("a producer cannot set the timestamp type LogAppendTime")
            }
            Self::Magic { found, wrapper } => {
                write!(f, "a version {found} message inside a version {wrapper} wrapper")
            }
        }
    }
}

/// A failing record of a refused set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordError {
    /// The record's place in the set, from 0.
    pub index: u32,
    /// The rule it breaks.
    pub fault: RecordFault,
}

/// The failing records of a set: all are counted, the first ones kept.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kept: Vec<RecordError>,
    count: u64,
    timestamps: bool,
}

impl Faults {
    pub(super) fn add(&mut self, index: usize, fault: RecordFault) {
        self.count += 1;
        self.timestamps |= fault.code() == code::INVALID_TIMESTAMP;
        if self.kept.len() < RECORD_ERRORS_MAX {
            self.kept.push(RecordError { index: u32::try_from(index).unwrap_or(u32::MAX), fault });
        }
    }

    /// The refusal, if any record fails. One bad timestamp names the whole.
    pub(super) fn refuse(self) -> Result<(), Error> {
        let Some(first) = self.kept.first() else { return Ok(()) };
        let reason = match self.count {
            1 => format!("record {} fails: {}", first.index, first.fault),
            count => {
                format!("{count} records fail, the first is {}: {}", first.index, first.fault)
            }
        };
        let code = if self.timestamps { code::INVALID_TIMESTAMP } else { code::INVALID_RECORD };
        Err(Error::RejectedRecords { code, reason, records: self.kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_timestamp_names_the_whole_refusal() {
        let mut faults = Faults::default();
        faults.add(2, RecordFault::NullKey);
        faults.add(5, RecordFault::AppendTime);
        let refusal = faults.refuse().unwrap_err();
        assert_eq!(refusal.rejection(), Some("INVALID_TIMESTAMP"));
        assert!(refusal.to_string().contains("2 records fail, the first is 2"), "{refusal}");
    }

    #[test]
    fn all_failing_records_are_counted_and_the_first_ones_listed() {
        let mut faults = Faults::default();
        for index in 0..5_000 {
            faults.add(index, RecordFault::NullKey);
        }
        let Err(Error::RejectedRecords { code, reason, records }) = faults.refuse() else {
            panic!("no refusal")
        };
        assert_eq!(code, "INVALID_RECORD");
        assert!(reason.starts_with("5000 records fail"), "{reason}");
        assert_eq!(records.len(), RECORD_ERRORS_MAX);
        assert_eq!(records[999].index, 999);
    }

    #[test]
    fn nothing_failing_is_no_refusal() {
        assert!(Faults::default().refuse().is_ok());
    }
}

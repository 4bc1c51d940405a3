//! What a batch says of itself apart from its records.

use super::{BatchHeader, TimestampType};
use crate::error::{Error, Result};

/// What a batch is, apart from its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSpec {
    /// Offset of the first record, unless it is pushed at a higher one.
    pub base_offset: i64,
    /// Last offset, when the batch spans more than its records.
    pub last_offset: Option<i64>,
    /// −1 = none, as producers send it.
    pub leader_epoch: i32,
    /// −1 = none.
    pub producer_id: i64,
    /// −1 = none.
    pub producer_epoch: i16,
    /// −1 = none.
    pub base_sequence: i32,
    /// Part of a transaction.
    pub transactional: bool,
    /// Holds control records.
    pub control: bool,
    /// The append time, for a log that stamps its records itself.
    pub append_time: Option<i64>,
    /// When tombstones and markers of this batch may go.
    pub delete_horizon: Option<i64>,
    /// Largest timestamp of a batch without records; otherwise the records say it.
    pub empty_max_timestamp: i64,
}

impl BatchSpec {
    /// A plain batch at an offset.
    pub fn at(base_offset: i64) -> Self {
        Self {
            base_offset,
            last_offset: None,
            leader_epoch: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            transactional: false,
            control: false,
            append_time: None,
            delete_horizon: None,
            empty_max_timestamp: -1,
        }
    }

    /// The batch that takes the place of one with this header: same offsets, producer and flags,
    /// other records.
    pub fn of(header: &BatchHeader) -> Self {
        let stamped = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        Self {
            base_offset: header.base_offset,
            last_offset: Some(header.last_offset()),
            leader_epoch: header.leader_epoch,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            transactional: header.attributes.is_transactional(),
            control: header.attributes.is_control(),
            append_time: stamped.then_some(header.max_timestamp),
            delete_horizon: header.delete_horizon(),
            empty_max_timestamp: header.max_timestamp,
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.base_offset < 0 {
            return Err(invalid(format!("base offset {} is negative", self.base_offset)));
        }
        for time in [self.append_time, self.delete_horizon].into_iter().flatten() {
            check_timestamp(time)?;
        }
        if self.transactional && self.producer_id < 0 {
            return Err(invalid("a transactional batch needs a producer id".to_owned()));
        }
        if self.producer_id >= 0 && self.producer_epoch < 0 {
            return Err(invalid("a producer id needs a producer epoch".to_owned()));
        }
        if self.producer_id >= 0 && self.base_sequence < 0 && !self.control {
            return Err(invalid("a producer id needs a base sequence".to_owned()));
        }
        Ok(())
    }
}

pub(super) fn check_timestamp(timestamp: i64) -> Result<()> {
    if timestamp < -1 {
        return Err(invalid(format!("timestamp {timestamp} is negative")));
    }
    Ok(())
}

pub(super) fn invalid(what: String) -> Error {
    Error::Invalid(what)
}

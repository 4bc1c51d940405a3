//! What the state of producers needs to know of a batch.

use crate::record::{BatchHeader, ControlRecord, CorruptKind, RecordView};

/// The decision that ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Whether the transaction was aborted, instead of committed.
    pub aborted: bool,
    /// Epoch of the coordinator that decided.
    pub coordinator_epoch: i32,
    /// When it decided.
    pub timestamp: i64,
    /// Version of the transaction protocol: from 2 on, a leader refuses an epoch that was not
    /// raised. The log does not store it; 0 for a marker that is read back.
    pub transaction_version: i16,
}

impl Marker {
    /// The marker in the first record of a control batch; `None` for other control records.
    pub fn of(record: &RecordView<'_>) -> Result<Option<Self>, CorruptKind> {
        let (aborted, marker) = match ControlRecord::decode(record)? {
            ControlRecord::Abort(marker) => (true, marker),
            ControlRecord::Commit(marker) => (false, marker),
            _ => return Ok(None),
        };
        Ok(Some(Self {
            aborted,
            coordinator_epoch: marker.coordinator_epoch,
            timestamp: record.timestamp,
            transaction_version: 0,
        }))
    }
}

/// A batch as the state of producers sees it, with the offsets it has in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchFacts {
    /// The producer, −1 for one without identity.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Sequence of the first record, −1 none.
    pub base_sequence: i32,
    /// Sequence of the last record, −1 none.
    pub last_sequence: i32,
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The latest time in the batch.
    pub max_timestamp: i64,
    /// Whether it is part of a transaction.
    pub is_transactional: bool,
    /// Whether it holds control records.
    pub is_control: bool,
    /// The marker of a control batch; none in one that compaction has emptied.
    pub marker: Option<Marker>,
}

impl BatchFacts {
    /// The facts of a version 2 batch. Older batches know no producers and need none.
    pub fn of(header: &BatchHeader, marker: Option<Marker>) -> Self {
        Self {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            is_transactional: header.attributes.is_transactional(),
            is_control: header.attributes.is_control(),
            marker,
        }
    }

    /// Whether a producer with an identity wrote it.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }
}

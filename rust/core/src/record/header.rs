//! The header of a version 2 batch.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | base offset |
//! | 8 | i32 | batch length: bytes after this field, at least 49 |
//! | 12 | i32 | partition leader epoch |
//! | 16 | i8 | magic, 2 |
//! | 17 | u32 | CRC-32C over everything from position 21 |
//! | 21 | i16 | attributes |
//! | 23 | i32 | last offset delta |
//! | 27 | i64 | base timestamp, or the delete horizon when attribute bit 6 is set |
//! | 35 | i64 | max timestamp |
//! | 43 | i64 | producer id |
//! | 51 | i16 | producer epoch |
//! | 53 | i32 | base sequence |
//! | 57 | i32 | records count |
//!
//! The CRC does not cover the first 17 bytes: a leader assigns offset and epoch without touching it,
//! and damage there shows only against the batches around it.

use super::CorruptKind;
use crate::limits::{BATCH_HEADER_BYTES, LOG_OVERHEAD, RECORD_BYTES_MIN};

/// How a batch is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// Not at all.
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, raw or in snappy-java's framing.
    Snappy,
    /// LZ4 frame.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// Every codec, in the order of its id.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec of an id.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The id in the attributes.
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name of the codec.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// What a record's timestamp means. The number is the one Spark's Kafka source shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// Version 0 messages carry none.
    None,
    /// Set by the producer.
    CreateTime,
    /// Set by the broker.
    LogAppendTime,
}

impl TimestampType {
    /// −1 none, 0 create time, 1 log append time.
    pub fn id(self) -> i32 {
        match self {
            Self::None => -1,
            Self::CreateTime => 0,
            Self::LogAppendTime => 1,
        }
    }
}

/// The attribute bits of a batch. Only the low byte has meaning; unknown bits are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

impl Attributes {
    const TIMESTAMP_TYPE: i16 = 0x08;
    const TRANSACTIONAL: i16 = 0x10;
    const CONTROL: i16 = 0x20;
    const DELETE_HORIZON: i16 = 0x40;

    /// Puts attributes together.
    pub fn new(codec: Codec, timestamp_type: TimestampType) -> Self {
        Self(i16::from(codec.id())).with_timestamp_type(timestamp_type)
    }

    fn with(self, bit: i16, on: bool) -> Self {
        if on { Self(self.0 | bit) } else { Self(self.0 & !bit) }
    }

    /// With this meaning of the timestamps.
    #[must_use]
    pub fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        self.with(Self::TIMESTAMP_TYPE, timestamp_type == TimestampType::LogAppendTime)
    }

    /// With the transactional bit set or cleared.
    #[must_use]
    pub fn with_transactional(self, on: bool) -> Self {
        self.with(Self::TRANSACTIONAL, on)
    }

    /// With the control bit set or cleared.
    #[must_use]
    pub fn with_control(self, on: bool) -> Self {
        self.with(Self::CONTROL, on)
    }

    /// With the delete-horizon bit set or cleared.
    #[must_use]
    pub fn with_delete_horizon(self, on: bool) -> Self {
        self.with(Self::DELETE_HORIZON, on)
    }

    /// The codec.
    #[inline]
    pub fn codec(self) -> Result<Codec, CorruptKind> {
        let bits = u8::try_from(self.0 & 0x07).unwrap_or(u8::MAX);
        Codec::from_id(bits).ok_or(CorruptKind::CodecBits(bits))
    }

    /// The meaning of the timestamps.
    #[inline]
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::TIMESTAMP_TYPE == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Part of a transaction.
    #[inline]
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Holds control records, which applications never see.
    #[inline]
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// The base timestamp is a delete horizon.
    #[inline]
    pub fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }
}

/// A parsed version 2 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record when the batch was written.
    pub base_offset: i64,
    /// Bytes after the length field.
    pub batch_length: i32,
    /// Epoch of the leader that appended it, −1 from producers.
    pub leader_epoch: i32,
    /// CRC-32C over everything after it.
    pub crc: u32,
    /// Codec, timestamp type and flags.
    pub attributes: Attributes,
    /// Last offset − base offset.
    pub last_offset_delta: i32,
    /// What timestamp deltas count from.
    pub base_timestamp: i64,
    /// Largest timestamp, or the append time.
    pub max_timestamp: i64,
    /// −1 = none.
    pub producer_id: i64,
    /// −1 = none.
    pub producer_epoch: i16,
    /// −1 = none.
    pub base_sequence: i32,
    /// Records in the payload; fewer than the offsets after compaction.
    pub records_count: i32,
}

impl BatchHeader {
    /// Reads a header from the first 61 bytes. Checks nothing but that they are there.
    #[inline]
    pub fn read(bytes: &[u8; BATCH_HEADER_BYTES]) -> Self {
        Self {
            base_offset: i64::from_be_bytes(field::<0, 8>(bytes)),
            batch_length: i32::from_be_bytes(field::<8, 4>(bytes)),
            leader_epoch: i32::from_be_bytes(field::<12, 4>(bytes)),
            crc: u32::from_be_bytes(field::<17, 4>(bytes)),
            attributes: Attributes(i16::from_be_bytes(field::<21, 2>(bytes))),
            last_offset_delta: i32::from_be_bytes(field::<23, 4>(bytes)),
            base_timestamp: i64::from_be_bytes(field::<27, 8>(bytes)),
            max_timestamp: i64::from_be_bytes(field::<35, 8>(bytes)),
            producer_id: i64::from_be_bytes(field::<43, 8>(bytes)),
            producer_epoch: i16::from_be_bytes(field::<51, 2>(bytes)),
            base_sequence: i32::from_be_bytes(field::<53, 4>(bytes)),
            records_count: i32::from_be_bytes(field::<57, 4>(bytes)),
        }
    }

    /// The header's bytes, magic 2 included.
    pub fn write(&self) -> [u8; BATCH_HEADER_BYTES] {
        let mut bytes = [0; BATCH_HEADER_BYTES];
        put::<0, 8>(&mut bytes, self.base_offset.to_be_bytes());
        put::<8, 4>(&mut bytes, self.batch_length.to_be_bytes());
        put::<12, 4>(&mut bytes, self.leader_epoch.to_be_bytes());
        put::<16, 1>(&mut bytes, [2]);
        put::<17, 4>(&mut bytes, self.crc.to_be_bytes());
        put::<21, 2>(&mut bytes, self.attributes.0.to_be_bytes());
        put::<23, 4>(&mut bytes, self.last_offset_delta.to_be_bytes());
        put::<27, 8>(&mut bytes, self.base_timestamp.to_be_bytes());
        put::<35, 8>(&mut bytes, self.max_timestamp.to_be_bytes());
        put::<43, 8>(&mut bytes, self.producer_id.to_be_bytes());
        put::<51, 2>(&mut bytes, self.producer_epoch.to_be_bytes());
        put::<53, 4>(&mut bytes, self.base_sequence.to_be_bytes());
        put::<57, 4>(&mut bytes, self.records_count.to_be_bytes());
        bytes
    }

    /// Checks what the header alone can show to be wrong.
    #[inline]
    pub fn check(&self) -> Result<(), CorruptKind> {
        let codec = self.attributes.codec()?;
        if self.last_offset_delta < 0
            || self.base_offset < 0
            || self.base_offset.checked_add(i64::from(self.last_offset_delta)).is_none()
        {
            return Err(CorruptKind::OffsetDelta(self.last_offset_delta));
        }
        let count = usize::try_from(self.records_count)
            .map_err(|_| CorruptKind::RecordCount(self.records_count))?;
        let room = self.total_bytes().saturating_sub(BATCH_HEADER_BYTES) / RECORD_BYTES_MIN;
        if count > 0 && codec == Codec::None && count > room {
            return Err(CorruptKind::RecordCount(self.records_count));
        }
        Ok(())
    }

    /// Bytes of the whole batch, framing included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        usize::try_from(self.batch_length).unwrap_or(0).saturating_add(LOG_OVERHEAD)
    }

    /// Offset of the last record when the batch was written.
    #[inline]
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta))
    }

    /// Sequence of the last record; the sequence space wraps after `i32::MAX` to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return self.base_sequence;
        }
        self.sequence_at(i64::from(self.last_offset_delta))
    }

    /// Sequence of the record at an offset delta, −1 when the batch has none.
    #[inline]
    pub fn sequence_at(&self, offset_delta: i64) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let space = i64::from(i32::MAX) + 1;
        let sequence = i64::from(self.base_sequence).wrapping_add(offset_delta).rem_euclid(space);
        i32::try_from(sequence).unwrap_or(-1)
    }

    /// When tombstones and markers of this batch may go, if compaction has said so.
    pub fn delete_horizon(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }
}

#[inline]
pub(super) fn field<const AT: usize, const N: usize>(bytes: &[u8; BATCH_HEADER_BYTES]) -> [u8; N] {
    let mut out = [0; N];
    if let Some(slice) = bytes.get(AT..AT + N) {
        out.copy_from_slice(slice);
    }
    out
}

#[inline]
pub(super) fn put<const AT: usize, const N: usize>(bytes: &mut [u8], value: [u8; N]) {
    if let Some(slice) = bytes.get_mut(AT..AT + N) {
        slice.copy_from_slice(&value);
    }
}

//! One entry of a `.log` file, whatever its version.
//!
//! A `.log` file is entries one behind the other, without header or padding:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | version 2: first offset; versions 0 and 1: last offset |
//! | 8 | i32 | size: bytes after this field |
//! | 16 | i8 | magic: 0, 1 or 2 |
//!
//! The magic sits at the same place in every version, so 17 bytes tell where the next entry
//! begins. Each version has its own smallest size; a size of zero is what a preallocated or
//! half-written tail shows.

use super::legacy::legacy_total_bytes;
use super::{BatchView, Codec, CorruptKind, LegacyView, TimestampType};
use crate::limits::{BATCH_HEADER_BYTES, ENTRY_SIZE_MIN, HEADER_UP_TO_MAGIC, LOG_OVERHEAD};

/// An entry whose length and magic were checked.
#[derive(Debug, Clone, Copy)]
pub enum EntryView<'a> {
    /// A version 2 batch.
    Batch(BatchView<'a>),
    /// A version 0 or 1 message, alone or wrapping a compressed set.
    Legacy(LegacyView<'a>),
}

/// Bytes of the entry that begins with these, framing included.
#[inline]
pub fn entry_total_bytes(head: &[u8; HEADER_UP_TO_MAGIC]) -> Result<usize, CorruptKind> {
    let [.., s0, s1, s2, s3, _, _, _, _, magic] = *head;
    let size = i32::from_be_bytes([s0, s1, s2, s3]);
    if magic != 2 {
        return legacy_total_bytes(size, i8::from_be_bytes([magic]));
    }
    usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(LOG_OVERHEAD))
        .filter(|total| size >= ENTRY_SIZE_MIN && *total >= BATCH_HEADER_BYTES)
        .ok_or(CorruptKind::EntrySize(size))
}

impl<'a> EntryView<'a> {
    /// Takes the entry at the start of `bytes`; bytes after it are left alone.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CorruptKind> {
        let head = bytes.first_chunk().ok_or(CorruptKind::TruncatedEntry)?;
        let total = entry_total_bytes(head)?;
        let entry = bytes.get(..total).ok_or(CorruptKind::TruncatedEntry)?;
        if head[16] == 2 {
            BatchView::parse(entry).map(Self::Batch)
        } else {
            LegacyView::parse(entry).map(Self::Legacy)
        }
    }

    /// The version: 0, 1 or 2.
    #[inline]
    pub fn magic(&self) -> i8 {
        match self {
            Self::Batch(_) => 2,
            Self::Legacy(message) => message.magic(),
        }
    }

    /// The whole entry.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Batch(batch) => batch.bytes(),
            Self::Legacy(message) => message.bytes(),
        }
    }

    /// Bytes of the whole entry, framing included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// The first offset. `None` for a wrapper message, which tells it only when inflated; no
    /// record of it lies below the entry before or above [`last_offset`](Self::last_offset).
    #[inline]
    pub fn base_offset(&self) -> Option<i64> {
        match self {
            Self::Batch(batch) => Some(batch.header().base_offset),
            Self::Legacy(message) if message.is_wrapper() => None,
            Self::Legacy(message) => Some(message.offset()),
        }
    }

    /// The last offset.
    #[inline]
    pub fn last_offset(&self) -> i64 {
        match self {
            Self::Batch(batch) => batch.header().last_offset(),
            Self::Legacy(message) => message.offset(),
        }
    }

    /// The largest timestamp, −1 where there is none.
    #[inline]
    pub fn max_timestamp(&self) -> i64 {
        match self {
            Self::Batch(batch) => batch.header().max_timestamp,
            Self::Legacy(message) => message.timestamp(),
        }
    }

    /// What the timestamps mean.
    #[inline]
    pub fn timestamp_type(&self) -> TimestampType {
        match self {
            Self::Batch(batch) => batch.header().attributes.timestamp_type(),
            Self::Legacy(message) => message.timestamp_type(),
        }
    }

    /// The leader epoch, −1 where there is none.
    #[inline]
    pub fn leader_epoch(&self) -> i32 {
        match self {
            Self::Batch(batch) => batch.header().leader_epoch,
            Self::Legacy(_) => -1,
        }
    }

    /// How the records are compressed.
    #[inline]
    pub fn codec(&self) -> Result<Codec, CorruptKind> {
        match self {
            Self::Batch(batch) => batch.codec(),
            Self::Legacy(message) => Ok(message.codec()),
        }
    }

    /// Number of records; `None` for a wrapper message, which tells it only when inflated.
    #[inline]
    pub fn records_count(&self) -> Option<i32> {
        match self {
            Self::Batch(batch) => Some(batch.header().records_count),
            Self::Legacy(message) if message.is_wrapper() => None,
            Self::Legacy(_) => Some(1),
        }
    }

    /// Checks what the fixed fields alone can show to be wrong.
    #[inline]
    pub fn check(&self) -> Result<(), CorruptKind> {
        match self {
            Self::Batch(batch) => batch.header().check(),
            Self::Legacy(message) if message.offset() < 0 => {
                Err(CorruptKind::OffsetOrder { found: message.offset(), expected: 0 })
            }
            Self::Legacy(_) => Ok(()),
        }
    }

    /// Compares the stored checksum with the bytes.
    #[inline]
    pub fn check_crc(&self) -> Result<(), CorruptKind> {
        match self {
            Self::Batch(batch) => batch.check_crc(),
            Self::Legacy(message) => message.check_crc(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn the_magic_byte_tells_the_versions_apart() {
        let log = [samples::legacy_v0(), samples::legacy_v1_gzip(), samples::batch_b()].concat();
        let mut rest = &log[..];
        let mut seen = Vec::new();
        while !rest.is_empty() {
            let entry = EntryView::parse(rest).unwrap();
            assert_eq!(entry.check_crc(), Ok(()));
            assert_eq!(entry.check(), Ok(()));
            assert_eq!(entry_total_bytes(rest.first_chunk().unwrap()), Ok(entry.total_bytes()));
            seen.push((
                entry.magic(),
                entry.base_offset(),
                entry.last_offset(),
                entry.max_timestamp() - samples::T0,
                entry.leader_epoch(),
                entry.records_count(),
            ));
            rest = &rest[entry.total_bytes()..];
        }
        assert_eq!(
            seen,
            [
                (0, Some(5), 5, -1 - samples::T0, -1, Some(1)),
                (1, None, 11, 7, -1, None),
                (2, Some(100), 102, 5, 7, Some(3)),
            ]
        );
    }

    #[test]
    fn a_size_that_no_entry_can_have_is_damage_even_at_the_end() {
        assert_eq!(EntryView::parse(&[0; 17]).map(|_| ()), Err(CorruptKind::EntrySize(0)));
        let mut batch = samples::batch_b();
        batch[8..12].copy_from_slice(&48_i32.to_be_bytes());
        for bytes in [&batch[..], &batch[..17]] {
            assert_eq!(EntryView::parse(bytes).map(|_| ()), Err(CorruptKind::EntrySize(48)));
        }
        batch[8] = 0x80;
        assert!(matches!(EntryView::parse(&batch), Err(CorruptKind::EntrySize(..0))));
    }

    #[test]
    fn every_cut_is_a_truncated_entry() {
        let batch = samples::batch_b();
        for end in 0..batch.len() {
            assert_eq!(
                EntryView::parse(&batch[..end]).map(|_| ()),
                Err(CorruptKind::TruncatedEntry)
            );
        }
    }

    #[test]
    fn an_unknown_magic_is_named() {
        let mut batch = samples::batch_b();
        for magic in [3, 0x17, 0x80, 0xff] {
            batch[16] = magic;
            assert_eq!(
                EntryView::parse(&batch).map(|_| ()),
                Err(CorruptKind::Magic(i8::from_be_bytes([magic])))
            );
        }
    }

    #[test]
    fn negative_offsets_are_damage_in_every_version() {
        for sample in [samples::legacy_v0(), samples::legacy_v1(), samples::batch_b()] {
            let mut bytes = sample;
            bytes[0] = 0x80;
            let entry = EntryView::parse(&bytes).unwrap();
            assert_eq!(entry.check_crc(), Ok(()), "the checksum cannot see it");
            assert!(entry.check().is_err());
        }
    }
}

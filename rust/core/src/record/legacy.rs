//! A borrowed message of version 0 or 1, as Kafka wrote them before 0.11.
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i64 | offset; of a wrapper, the offset of its last inner message |
//! | 8 | i32 | size: bytes after this field, at least 14 (version 0) or 22 (version 1) |
//! | 12 | u32 | CRC-32 over everything from position 16 |
//! | 16 | i8 | magic, 0 or 1 |
//! | 17 | i8 | attributes: bits 0–2 codec, bit 3 timestamp type (version 1 only) |
//! | 18 | i64 | timestamp, −1 = none (version 1 only) |
//! | 18 or 26 | i32 | key length, −1 = null |
//! | | bytes | key |
//! | | i32 | value length, −1 = null |
//! | | bytes | value |
//!
//! 1. A message with a codec is a *wrapper*: its value inflates to a set of such messages, none of
//!    them compressed. What the set means is in [`LegacyRecords`](super::LegacyRecords).
//! 2. Zstandard is newer than these formats and is refused in them.
//! 3. The CRC covers neither offset nor size. A damaged size shows as a wrong CRC, because it moves
//!    the end of what is summed; a damaged offset shows only against the entries around it.
//! 4. Bytes after the value are ignored, as every Kafka client ignores them.

use super::{Codec, CorruptKind, TimestampType, crc32};
use crate::limits::{ENTRY_SIZE_MIN, HEADER_UP_TO_MAGIC, LEGACY_V1_SIZE_MIN, LOG_OVERHEAD};

const CODEC_BITS: u8 = 0x07;
const TIMESTAMP_TYPE_BIT: u8 = 0x08;

/// A version 0 or 1 message whose length, magic and codec were checked.
#[derive(Debug, Clone, Copy)]
pub struct LegacyView<'a> {
    bytes: &'a [u8],
    offset: i64,
    timestamp: i64,
    attributes: u8,
    magic: i8,
    codec: Codec,
}

impl<'a> LegacyView<'a> {
    /// Takes the message at the start of `bytes`; bytes after it are left alone.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CorruptKind> {
        let head = bytes.first_chunk::<HEADER_UP_TO_MAGIC>().ok_or(CorruptKind::TruncatedEntry)?;
        let [o0, o1, o2, o3, o4, o5, o6, o7, s0, s1, s2, s3, _, _, _, _, magic] = *head;
        let magic = i8::from_be_bytes([magic]);
        let total = legacy_total_bytes(i32::from_be_bytes([s0, s1, s2, s3]), magic)?;
        let bytes = bytes.get(..total).ok_or(CorruptKind::TruncatedEntry)?;
        let attributes =
            bytes.get(HEADER_UP_TO_MAGIC).copied().ok_or(CorruptKind::TruncatedEntry)?;
        Ok(Self {
            bytes,
            offset: i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            timestamp: stored_timestamp(bytes, magic),
            attributes,
            magic,
            codec: legacy_codec(attributes)?,
        })
    }

    /// The offset of the message, for a wrapper that of its last inner message.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// 0 or 1.
    #[inline]
    pub fn magic(&self) -> i8 {
        self.magic
    }

    /// How the value is compressed, if this is a wrapper.
    #[inline]
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Whether the value is a compressed set of messages.
    #[inline]
    pub fn is_wrapper(&self) -> bool {
        self.codec != Codec::None
    }

    /// What the timestamps mean: nothing in version 0. A wrapper speaks for its inner messages.
    #[inline]
    pub fn timestamp_type(&self) -> TimestampType {
        if self.magic == 0 {
            TimestampType::None
        } else if self.attributes & TIMESTAMP_TYPE_BIT == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// The timestamp, −1 in version 0. Of a wrapper it is the largest inner one or the append time.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Bytes of the whole message, framing included.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The whole message, framing included.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The checksum as stored.
    pub fn crc(&self) -> u32 {
        match self.bytes.get(LOG_OVERHEAD..) {
            Some(&[c0, c1, c2, c3, ..]) => u32::from_be_bytes([c0, c1, c2, c3]),
            _ => 0,
        }
    }

    /// Compares the stored checksum with the bytes.
    #[inline]
    pub fn check_crc(&self) -> Result<(), CorruptKind> {
        let stored = self.crc();
        let computed = crc32(self.bytes.get(16..).unwrap_or_default());
        if computed == stored { Ok(()) } else { Err(CorruptKind::Crc { stored, computed }) }
    }

    /// The key, if not null.
    pub fn key(&self) -> Result<Option<&'a [u8]>, CorruptKind> {
        Ok(self.key_and_value()?.0)
    }

    /// The value, if not null; compressed if this is a wrapper.
    pub fn value(&self) -> Result<Option<&'a [u8]>, CorruptKind> {
        Ok(self.key_and_value()?.1)
    }

    /// Both fields, read in one go.
    #[inline]
    pub fn key_and_value(&self) -> Result<KeyAndValue<'a>, CorruptKind> {
        let fields = if self.magic == 0 { 18 } else { 26 };
        let rest = self.bytes.get(fields..).unwrap_or_default();
        let (key, rest) = take_sized(rest)?;
        let (value, _) = take_sized(rest)?;
        Ok((key, value))
    }

    /// The compressed set of a wrapper, which must be there.
    pub fn compressed(&self) -> Result<&'a [u8], CorruptKind> {
        if !self.is_wrapper() {
            return Err(CorruptKind::Wrapper("the message is not compressed"));
        }
        self.value()?.ok_or(CorruptKind::Wrapper("it has no value"))
    }
}

/// Key and value of a message.
pub type KeyAndValue<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Bytes of an entry whose size field and magic byte are these, if they can be a legacy message.
#[inline]
pub(super) fn legacy_total_bytes(size: i32, magic: i8) -> Result<usize, CorruptKind> {
    if size < ENTRY_SIZE_MIN {
        return Err(CorruptKind::EntrySize(size));
    }
    match magic {
        1 if size < LEGACY_V1_SIZE_MIN => return Err(CorruptKind::EntrySize(size)),
        0 | 1 => {}
        _ => return Err(CorruptKind::Magic(magic)),
    }
    usize::try_from(size)
        .ok()
        .and_then(|size| size.checked_add(LOG_OVERHEAD))
        .ok_or(CorruptKind::EntrySize(size))
}

fn legacy_codec(attributes: u8) -> Result<Codec, CorruptKind> {
    let bits = attributes & CODEC_BITS;
    Codec::from_id(bits).filter(|codec| *codec != Codec::Zstd).ok_or(CorruptKind::CodecBits(bits))
}

#[inline]
fn stored_timestamp(bytes: &[u8], magic: i8) -> i64 {
    if magic == 0 {
        return -1;
    }
    bytes.get(18..).and_then(<[u8]>::first_chunk).map_or(-1, |stored| i64::from_be_bytes(*stored))
}

#[inline]
fn take_sized(bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), CorruptKind> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(CorruptKind::FieldLength(4))?;
    let length = i32::from_be_bytes(*length);
    if length < 0 {
        // Kafka takes every negative length for null.
        return Ok((None, rest));
    }
    let (field, rest) = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or(CorruptKind::FieldLength(i64::from(length)))?;
    Ok((Some(field), rest))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn a_version_0_message_has_no_timestamp() {
        let bytes = samples::legacy_v0();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!((view.offset(), view.magic()), (5, 0));
        assert_eq!(view.timestamp_type(), TimestampType::None);
        assert_eq!(view.timestamp(), -1);
        assert_eq!(view.key(), Ok(Some(&b"k"[..])));
        assert_eq!(view.value(), Ok(Some(&b"v0"[..])));
        assert_eq!(view.total_bytes(), bytes.len());
        assert!(!view.is_wrapper());
    }

    #[test]
    fn version_1_tells_create_time_from_append_time_and_null_from_empty() {
        let bytes = samples::legacy_v1();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(view.timestamp_type(), TimestampType::CreateTime);
        assert_eq!(view.timestamp(), samples::T0);
        assert_eq!(view.key_and_value(), Ok((None, Some(&b"v1"[..]))));

        let bytes = samples::legacy_v1_append_time();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(view.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(view.key_and_value(), Ok((Some(&b"k"[..]), None)));
    }

    #[test]
    fn a_wrapper_gives_its_compressed_bytes() {
        let bytes = samples::legacy_v1_gzip();
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(view.codec(), Codec::Gzip);
        assert_eq!(view.compressed().unwrap().len(), 0x3c);
        assert_eq!(view.timestamp(), samples::T0 + 7);

        let plain = samples::legacy_v0();
        let refused = LegacyView::parse(&plain).unwrap().compressed();
        assert!(matches!(refused, Err(CorruptKind::Wrapper(_))));
    }

    #[test]
    fn bytes_after_the_message_are_left_alone() {
        let mut bytes = samples::legacy_v0();
        let total = bytes.len();
        bytes.extend_from_slice(&[0xff; 40]);
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.total_bytes(), total);
        assert_eq!(view.check_crc(), Ok(()));
    }

    #[test]
    fn every_cut_is_a_truncated_entry() {
        for bytes in [samples::legacy_v0(), samples::legacy_v1_gzip()] {
            for end in 0..bytes.len() {
                let cut = LegacyView::parse(&bytes[..end]).map(|_| ());
                assert_eq!(cut, Err(CorruptKind::TruncatedEntry), "cut at {end}");
            }
        }
    }

    #[test]
    fn sizes_below_the_version_s_minimum_are_refused() {
        let mut v0 = samples::legacy_v0();
        v0[11] = 13;
        assert_eq!(LegacyView::parse(&v0).map(|_| ()), Err(CorruptKind::EntrySize(13)));
        let mut v1 = samples::legacy_v1();
        v1[11] = 21;
        assert_eq!(LegacyView::parse(&v1).map(|_| ()), Err(CorruptKind::EntrySize(21)));
        v1[8] = 0xff;
        assert!(matches!(LegacyView::parse(&v1), Err(CorruptKind::EntrySize(..0))));
    }

    #[test]
    fn other_magics_and_codecs_newer_than_the_format_are_refused() {
        let mut bytes = samples::legacy_v1();
        bytes[16] = 2;
        assert_eq!(LegacyView::parse(&bytes).map(|_| ()), Err(CorruptKind::Magic(2)));
        bytes[16] = 1;
        for bits in 4..=7 {
            bytes[17] = bits;
            assert_eq!(LegacyView::parse(&bytes).map(|_| ()), Err(CorruptKind::CodecBits(bits)));
        }
    }

    #[test]
    fn every_bit_flip_after_the_checksum_field_fails_the_checksum() {
        for sample in [samples::legacy_v0(), samples::legacy_v1_gzip()] {
            for bit in 12 * 8..sample.len() * 8 {
                let mut bytes = sample.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let checked = LegacyView::parse(&bytes).and_then(|view| view.check_crc());
                assert!(checked.is_err(), "bit {bit}");
            }
        }
    }

    #[test]
    fn lengths_that_leave_the_message_are_refused() {
        let mut bytes = samples::legacy_v0();
        bytes[21] = 0x7f;
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.key(), Err(CorruptKind::FieldLength(0x7f)));
        bytes[21] = 1;
        bytes[26] = 3;
        let view = LegacyView::parse(&bytes).unwrap();
        assert_eq!(view.value(), Err(CorruptKind::FieldLength(3)));
    }
}

//! Changing the header of a finished batch in place, as a leader does on append.
//!
//! Base offset and leader epoch stand before the part that the checksum covers and change for free.
//! Attributes and max timestamp are covered: they are written, and the checksum taken anew over the
//! whole batch, only when they really change. Records and base timestamp are never touched.

use super::header::put;
use super::{BatchHeader, BatchView, CorruptKind, TimestampType, crc32c};
use crate::error::{Error, Result};
use crate::limits::CRC_COVERS_FROM;

/// The attribute bits that have a meaning; the others fall when attributes are written.
const KNOWN_ATTRIBUTES: i16 = 0x7f;

/// A version 2 batch that can be patched. Its length and magic were checked.
#[derive(Debug)]
pub struct BatchMut<'a> {
    header: BatchHeader,
    bytes: &'a mut [u8],
}

impl<'a> BatchMut<'a> {
    /// Takes the batch at the start of `bytes`; bytes after it are left alone. The caller has
    /// checked its checksum: a new one would hide damage.
    pub fn parse(bytes: &'a mut [u8]) -> std::result::Result<Self, CorruptKind> {
        let view = BatchView::parse(bytes)?;
        let (header, total) = (*view.header(), view.bytes().len());
        let bytes = bytes.get_mut(..total).ok_or(CorruptKind::TruncatedEntry)?;
        Ok(Self { header, bytes })
    }

    /// The header as it stands.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Moves the batch so that it begins at an offset.
    pub fn set_base_offset(&mut self, base_offset: i64) -> Result<()> {
        let last_offset = base_offset.checked_add(i64::from(self.header.last_offset_delta));
        if base_offset < 0 || last_offset.is_none() {
            return Err(Error::Invalid(format!("a batch cannot begin at offset {base_offset}")));
        }
        self.header.base_offset = base_offset;
        put::<0, 8>(self.bytes, base_offset.to_be_bytes());
        Ok(())
    }

    /// Moves the batch so that it ends at an offset.
    pub fn set_last_offset(&mut self, last_offset: i64) -> Result<()> {
        let base_offset = last_offset
            .checked_sub(i64::from(self.header.last_offset_delta))
            .ok_or_else(|| Error::Invalid(format!("a batch cannot end at offset {last_offset}")))?;
        self.set_base_offset(base_offset)
    }

    /// Stamps the epoch of the leader that appends it.
    pub fn set_leader_epoch(&mut self, leader_epoch: i32) {
        self.header.leader_epoch = leader_epoch;
        put::<12, 4>(self.bytes, leader_epoch.to_be_bytes());
    }

    /// Sets the meaning of the timestamps and the largest one.
    pub fn set_max_timestamp(&mut self, kind: TimestampType, max_timestamp: i64) -> Result<()> {
        if kind == TimestampType::None {
            return Err(Error::Invalid("a version 2 batch has timestamps".to_owned()));
        }
        let header = &mut self.header;
        if header.attributes.timestamp_type() == kind && header.max_timestamp == max_timestamp {
            return Ok(());
        }
        header.attributes.0 &= KNOWN_ATTRIBUTES;
        header.attributes = header.attributes.with_timestamp_type(kind);
        header.max_timestamp = max_timestamp;
        put::<21, 2>(self.bytes, header.attributes.0.to_be_bytes());
        put::<35, 8>(self.bytes, max_timestamp.to_be_bytes());
        header.crc = crc32c(self.bytes.get(CRC_COVERS_FROM..).unwrap_or_default());
        put::<17, 4>(self.bytes, header.crc.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{self, T0};
    use super::*;

    #[test]
    fn a_leader_places_a_batch_without_touching_its_checksum() {
        let mut bytes = samples::batch_a();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_last_offset(102).unwrap();
        batch.set_leader_epoch(7);
        assert_eq!(*batch.header(), BatchHeader::read(samples::batch_b().first_chunk().unwrap()));
        assert_eq!(bytes, samples::batch_b());
        BatchMut::parse(&mut bytes).unwrap().set_base_offset(0).unwrap();
        BatchMut::parse(&mut bytes).unwrap().set_leader_epoch(-1);
        assert_eq!(bytes, samples::batch_a());
    }

    #[test]
    fn the_append_time_rewrites_type_time_and_checksum_only() {
        let mut bytes = samples::batch_b();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_max_timestamp(TimestampType::LogAppendTime, T0 + 60_000).unwrap();
        let header = *batch.header();
        assert_eq!(bytes[..61], samples::batch_c_header());
        assert_eq!(bytes[61..], samples::batch_b()[61..]);
        assert_eq!(header, BatchHeader::read(bytes.first_chunk().unwrap()));
        BatchMut::parse(&mut bytes)
            .unwrap()
            .set_max_timestamp(TimestampType::CreateTime, T0 + 5)
            .unwrap();
        assert_eq!(bytes, samples::batch_b());
    }

    #[test]
    fn nothing_is_written_when_nothing_changes() {
        let mut bytes = samples::batch_b();
        bytes[17] ^= 0xff;
        bytes[21] = 0x55;
        let before = bytes.clone();
        BatchMut::parse(&mut bytes)
            .unwrap()
            .set_max_timestamp(TimestampType::CreateTime, T0 + 5)
            .unwrap();
        assert_eq!(bytes, before);
    }

    #[test]
    fn unknown_attribute_bits_fall_when_attributes_are_written() {
        let mut bytes = samples::batch_d();
        bytes[21] = 0x55;
        bytes[22] |= 0x80;
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_max_timestamp(TimestampType::LogAppendTime, T0).unwrap();
        assert_eq!(batch.header().attributes.0, 0x18);
        assert_eq!(BatchView::parse(&bytes).unwrap().check_crc(), Ok(()));
    }

    #[test]
    fn bytes_after_the_batch_stay() {
        let mut bytes = samples::batch_b();
        let total = bytes.len();
        bytes.extend_from_slice(&[0xaa; 50]);
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        batch.set_max_timestamp(TimestampType::LogAppendTime, T0).unwrap();
        assert_eq!(BatchView::parse(&bytes).unwrap().check_crc(), Ok(()));
        assert_eq!(bytes[total..], [0xaa; 50]);
    }

    #[test]
    fn offsets_outside_the_offset_space_are_refused() {
        let mut bytes = samples::batch_b();
        let mut batch = BatchMut::parse(&mut bytes).unwrap();
        assert!(batch.set_base_offset(-1).is_err());
        assert!(batch.set_base_offset(i64::MAX - 1).is_err());
        assert!(batch.set_last_offset(1).is_err());
        assert!(batch.set_last_offset(i64::MIN).is_err());
        assert!(batch.set_last_offset(i64::MAX).is_ok());
        assert!(batch.set_max_timestamp(TimestampType::None, 0).is_err());
        let mut cut = samples::batch_b();
        cut.pop();
        assert!(BatchMut::parse(&mut cut).is_err());
    }
}

//! A borrowed version 2 batch.

use super::{BatchHeader, Codec, CorruptKind, crc32c};
use crate::limits::{BATCH_HEADER_BYTES, CRC_COVERS_FROM, LOG_OVERHEAD};

/// A version 2 batch whose length and magic were checked.
#[derive(Debug, Clone, Copy)]
pub struct BatchView<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// Takes the batch at the start of `bytes`; bytes after it are left alone.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, CorruptKind> {
        let Some(head) = bytes.first_chunk::<BATCH_HEADER_BYTES>() else {
            return Err(CorruptKind::TruncatedEntry);
        };
        let magic = i8::from_be_bytes([head[16]]);
        if magic != 2 {
            return Err(CorruptKind::Magic(magic));
        }
        let header = BatchHeader::read(head);
        let total = usize::try_from(header.batch_length)
            .ok()
            .and_then(|length| length.checked_add(LOG_OVERHEAD))
            .filter(|total| *total >= BATCH_HEADER_BYTES)
            .ok_or(CorruptKind::EntrySize(header.batch_length))?;
        let bytes = bytes.get(..total).ok_or(CorruptKind::TruncatedEntry)?;
        Ok(Self { header, bytes })
    }

    /// The header's fields.
    #[inline]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records as stored, compressed or not.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(BATCH_HEADER_BYTES..).unwrap_or_default()
    }

    /// The codec of the payload. An empty batch left by compaction has nothing to inflate.
    #[inline]
    pub fn codec(&self) -> Result<Codec, CorruptKind> {
        self.header.attributes.codec()
    }

    /// Compares the stored checksum with the bytes.
    #[inline]
    pub fn check_crc(&self) -> Result<(), CorruptKind> {
        let computed = crc32c(self.bytes.get(CRC_COVERS_FROM..).unwrap_or_default());
        if computed == self.header.crc {
            Ok(())
        } else {
            Err(CorruptKind::Crc { stored: self.header.crc, computed })
        }
    }
}

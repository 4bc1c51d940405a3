//! The two checksums of Kafka's formats.

use crc_fast::CrcAlgorithm;

/// CRC-32C (Castagnoli), over version 2 batches and producer snapshots.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// CRC-32 (IEEE), over version 0 and 1 messages.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, bytes))
}

#[inline]
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "a 32-bit CRC")]
fn narrow(crc: u64) -> u32 {
    crc as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_give_their_published_check_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}

//! The two checksums of Kafka's formats.

/// CRC-32C (Castagnoli), over version 2 batches and producer snapshots.
#[inline]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32 (IEEE), over version 0 and 1 messages.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iso_hdlc(bytes)
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

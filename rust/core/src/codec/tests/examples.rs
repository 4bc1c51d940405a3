//! The byte examples of the format specification.

use super::*;
use crate::record::BatchView;

/// Three records with keys `key-0` to `key-2` and 40 times `v`, 156 bytes.
fn three_records() -> Vec<u8> {
    let mut payload = Vec::new();
    for number in 0..3_u8 {
        payload.extend_from_slice(&[0x66, 0, 0, 2 * number, 0x0a]);
        payload.extend_from_slice(&[b'k', b'e', b'y', b'-', b'0' + number, 0x50]);
        payload.extend_from_slice(&[b'v'; 40]);
        payload.push(0);
    }
    payload
}

const ONE_RECORD: &str = "16 00 00 00 02 6b 08 73 6e 61 70 00";

const SNAPPY_ONE: &str = "82 53 4e 41 50 50 59 00 00 00 00 01 00 00 00 01
    00 00 00 0e 0c 2c 16 00 00 00 02 6b 08 73 6e 61 70 00";

const LZ4_ONE: &str = "04 22 4d 18 60 40 82 0c 00 00 80 16 00 00 00 02
    6b 08 73 6e 61 70 00 00 00 00 00";

const LZ4_THREE: &str = "04 22 4d 18 60 40 82 2c 00 00 00 cf 66 00 00 00
    0a 6b 65 79 2d 30 50 76 01 00 14 51 00 66 00 00
    02 34 00 1f 31 34 00 1a 11 04 34 00 1f 32 34 00
    12 50 76 76 76 76 00 00 00 00 00";

const BATCH_HEAD: &str = "02 00 00 01 8b cf e5 68 00 00 00 01 8b cf e5 68 00
    ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 03";

const GZIP_BATCH: &str = "00 00 00 00 00 00 00 c8 00 00 00 63 00 00 00 07
    02 53 bc ff bd 00 01 00 00 00";

const GZIP_THREE: &str = "1f 8b 08 00 00 00 00 00 00 ff 4b 63 60 60 e0 ca 4e ad d4
    35 08 28 23 12 30 a4 31 30 30 81 f5 18 92 a4 87
    05 ac c7 88 78 3d 00 34 46 d9 fa 9c 00 00 00";

const LZ4_BATCH: &str = "00 00 00 00 00 00 00 c8 00 00 00 6c 00 00 00 07
    02 90 37 12 d6 00 03 00 00 00";

const ZSTD_BATCH: &str = "00 00 00 00 00 00 00 c8 00 00 00 5c 00 00 00 07
    02 d3 18 90 c5 00 04 00 00 00";

const ZSTD_THREE: &str = "28 b5 2f fd 00 58 15 01 00 a0 66 00 00 00 0a 6b 65 79 2d
    30 50 76 00 66 00 00 02 31 04 32 05 00 01 08 68
    4f 60 d8 55 c2 53 02 3a";

#[test]
fn the_examples_inflate_to_their_records() {
    for (codec, head, payload) in [
        (Codec::Gzip, GZIP_BATCH, GZIP_THREE),
        (Codec::Lz4, LZ4_BATCH, LZ4_THREE),
        (Codec::Zstd, ZSTD_BATCH, ZSTD_THREE),
    ] {
        let bytes = hex(&[head, BATCH_HEAD, payload].concat());
        let batch = BatchView::parse(&bytes).unwrap();
        assert_eq!(batch.check_crc(), Ok(()));
        assert_eq!(batch.codec(), Ok(codec));
        assert_eq!(inflate(codec, batch.payload()), Ok(three_records()), "{codec:?}");
    }
    assert_eq!(inflate(Codec::Snappy, &hex(SNAPPY_ONE)), Ok(hex(ONE_RECORD)));
    assert_eq!(inflate(Codec::Lz4, &hex(LZ4_ONE)), Ok(hex(ONE_RECORD)));
}

#[test]
fn the_examples_are_written_byte_for_byte() {
    assert_eq!(compress(Codec::Snappy, &hex(ONE_RECORD)), hex(SNAPPY_ONE));
    assert_eq!(compress(Codec::Lz4, &hex(ONE_RECORD)), hex(LZ4_ONE));
    assert_eq!(compress(Codec::Lz4, &three_records()), hex(LZ4_THREE));
    assert_eq!(compress(Codec::Zstd, &three_records()), hex(ZSTD_THREE));
    // Deflate is not reproducible between implementations; header and trailer are.
    let (ours, kafkas) = (compress(Codec::Gzip, &three_records()), hex(GZIP_THREE));
    assert_eq!(ours[..10], kafkas[..10]);
    assert_eq!(ours[ours.len() - 8..], kafkas[kafkas.len() - 8..]);
}

/// The wrapper's value of the version 0 example: the header checksum is the defective `1a`.
const LZ4_VERSION_0: &str = "04 22 4d 18 60 40 1a 38 00 00 80
    00 00 00 00 00 00 00 0a 00 00 00 10 56 cf 20 5f 00 00 00 00 00 01 61 00 00 00 01 31
    00 00 00 00 00 00 00 0b 00 00 00 10 49 52 03 4b 00 00 00 00 00 01 62 00 00 00 01 32
    00 00 00 00";

#[test]
fn only_version_0_lets_a_wrong_lz4_header_checksum_pass() {
    let wrong = hex(LZ4_VERSION_0);
    let mut right = wrong.clone();
    right[6] = 0x82;
    let inner = wrong[11..wrong.len() - 4].to_vec();
    assert_eq!(inner.len(), 0x38);
    for (dialect, takes_wrong) in [(Dialect::V0, true), (Dialect::V1, false), (Dialect::V2, false)]
    {
        assert_eq!(inflate_as(dialect, Codec::Lz4, &right, 7), Ok(inner.clone()));
        assert_eq!(inflate_as(dialect, Codec::Lz4, &wrong, 7).is_ok(), takes_wrong);
    }
}

#[test]
fn zstd_is_refused_in_versions_0_and_1() {
    let input = hex(ZSTD_THREE);
    for dialect in [Dialect::V0, Dialect::V1] {
        assert!(inflate_as(dialect, Codec::Zstd, &input, 7).is_err());
    }
}

#[test]
fn the_gzip_wrapper_example_inflates() {
    let value = hex("1f 8b 08 00 00 00 00 00 00 00 63 60 80 03
        89 02 d6 ea 34 46 20 83 b1 fb fc d3 0c 90 08 63
        22 88 30 84 ca 83 a4 24 dc 16 fb 7e 84 ab 61 07
        31 92 40 84 11 00 11 88 33 54 48 00 00 00");
    let inner = inflate_as(Dialect::V1, Codec::Gzip, &value, 7).unwrap();
    assert_eq!(inner.len(), 0x48);
    assert_eq!(inner[12..16], hex("70 05 7b 66"));
}

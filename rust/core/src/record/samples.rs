//! Bytes that tests of this folder share: the worked examples of the format's description.

use super::{BatchBuilder, BatchHeader, BatchSpec, BatchView, Records, TimestampType, crc32};

/// The timestamp the examples count from.
pub(super) const T0: i64 = 1_700_000_000_000;

/// Bytes from hexadecimal digits; everything else is ignored.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| u8::try_from(digit).unwrap())
        .collect::<Vec<_>>();
    assert_eq!(digits.len() % 2, 0);
    digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect()
}

/// The batch made again from its decoded records, not compressed. The records are read with their
/// own times, also where the log stamped the batch.
pub(super) fn rebuild(batch: &BatchView<'_>, payload: &[u8]) -> Vec<u8> {
    let header = batch.header();
    let own_times = BatchHeader {
        attributes: header.attributes.with_timestamp_type(TimestampType::CreateTime),
        ..*header
    };
    let mut builder = BatchBuilder::new(BatchSpec::of(header)).unwrap();
    for record in Records::new(&own_times, payload) {
        builder.push_view(&record.unwrap()).unwrap();
    }
    let mut output = Vec::new();
    builder.finish(&mut output).unwrap();
    output
}

/// Version 0, offset 5, key `k`, value `v0`.
pub(super) fn legacy_v0() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 05 00 00 00 11 16 57 64 b1
         00 00 00 00 00 01 6b 00 00 00 02 76 30")
}

/// Version 1, create time, offset 6, null key, value `v1`.
pub(super) fn legacy_v1() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 06 00 00 00 18 6a 55 00 fb
         01 00 00 00 01 8b cf e5 68 00 ff ff ff ff 00 00
         00 02 76 31")
}

/// Version 1, append time, offset 6, key `k`, null value.
pub(super) fn legacy_v1_append_time() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 06 00 00 00 17 94 b8 3f ca
         01 08 00 00 01 8b cf e5 68 00 00 00 00 01 6b ff
         ff ff ff")
}

/// Version 1 gzip wrapper at offset 11 with two messages.
pub(super) fn legacy_v1_gzip() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 0b 00 00 00 52 20 4b 3d 27
         01 01 00 00 01 8b cf e5 68 07 ff ff ff ff 00 00
         00 3c 1f 8b 08 00 00 00 00 00 00 00 63 60 80 03
         89 02 d6 ea 34 46 20 83 b1 fb fc d3 0c 90 08 63
         22 88 30 84 ca 83 a4 24 dc 16 fb 7e 84 ab 61 07
         31 92 40 84 11 00 11 88 33 54 48 00 00 00")
}

/// What [`legacy_v1_gzip`] inflates to.
pub(super) fn legacy_v1_gzip_inner() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 00 00 00 00 18 70 05 7b 66
         01 00 00 00 01 8b cf e5 68 00 00 00 00 01 61 00
         00 00 01 31 00 00 00 00 00 00 00 01 00 00 00 18
         46 a3 4d f1 01 00 00 00 01 8b cf e5 68 07 00 00
         00 01 62 00 00 00 01 32")
}

/// Version 0 lz4 wrapper at offset 11, two messages in one stored block.
pub(super) fn legacy_v0_lz4() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 0b 00 00 00 55 07 fb 26 1f
         00 03 ff ff ff ff 00 00 00 47 04 22 4d 18 60 40
         1a 38 00 00 80 00 00 00 00 00 00 00 0a 00 00 00
         10 56 cf 20 5f 00 00 00 00 00 01 61 00 00 00 01
         31 00 00 00 00 00 00 00 0b 00 00 00 10 49 52 03
         4b 00 00 00 00 00 01 62 00 00 00 01 32 00 00 00
         00")
}

/// Builds version 0 and 1 messages, which the engine itself never writes.
#[derive(Clone)]
pub(super) struct Legacy {
    magic: u8,
    offset: i64,
    attributes: u8,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
}

impl Legacy {
    /// A message with the value `v`.
    pub(super) fn new(magic: u8, offset: i64) -> Self {
        Self { magic, offset, attributes: 0, timestamp: T0, key: None, value: Some(b"v".to_vec()) }
    }

    /// With these attribute bits.
    pub(super) fn codec(mut self, attributes: u8) -> Self {
        self.attributes = attributes;
        self
    }

    /// With this timestamp, if the version has one.
    pub(super) fn timestamp(mut self, timestamp: i64) -> Self {
        self.timestamp = timestamp;
        self
    }

    /// With this key.
    pub(super) fn key(mut self, key: Option<&[u8]>) -> Self {
        self.key = key.map(<[u8]>::to_vec);
        self
    }

    /// With this value.
    pub(super) fn value(mut self, value: Option<&[u8]>) -> Self {
        self.value = value.map(<[u8]>::to_vec);
        self
    }

    /// The message with framing and checksum.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut body = vec![self.magic, self.attributes];
        if self.magic > 0 {
            body.extend_from_slice(&self.timestamp.to_be_bytes());
        }
        for field in [&self.key, &self.value] {
            let length = field.as_ref().map_or(-1, |field| i32::try_from(field.len()).unwrap());
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(field.as_deref().unwrap_or_default());
        }
        let mut entry = self.offset.to_be_bytes().to_vec();
        entry.extend_from_slice(&i32::try_from(body.len() + 4).unwrap().to_be_bytes());
        entry.extend_from_slice(&crc32(&body).to_be_bytes());
        entry.extend_from_slice(&body);
        entry
    }
}

/// Version 2 batch of three records at offset 100, epoch 7.
pub(super) fn batch_b() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 64 00 00 00 58 00 00 00 07
         02 be 14 50 16 00 00 00 00 00 02 00 00 01 8b cf
         e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff
         ff ff ff ff ff ff ff ff ff 00 00 00 03 1a 00 00
         00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01
         00 04 04 68 31 02 78 04 68 32 01 10 00 06 04 04
         6b 32 01 00")
}

/// Version 2 batch with one COMMIT marker, producer 4242, coordinator epoch 9.
pub(super) fn batch_e() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 69 00 00 00 42 00 00 00 07
         02 65 a1 d5 f6 00 30 00 00 00 00 00 00 01 8b cf
         e5 68 0a 00 00 01 8b cf e5 68 0a 00 00 00 00 00
         00 10 92 00 03 ff ff ff ff 00 00 00 01 20 00 00
         00 08 00 00 00 01 0c 00 00 00 00 00 09 00")
}

/// Its ABORT twin.
pub(super) fn batch_f() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 69 00 00 00 42 00 00 00 07
         02 91 9f 03 be 00 30 00 00 00 00 00 00 01 8b cf
         e5 68 0a 00 00 01 8b cf e5 68 0a 00 00 00 00 00
         00 10 92 00 03 ff ff ff ff 00 00 00 01 20 00 00
         00 08 00 00 00 00 0c 00 00 00 00 00 09 00")
}

/// The same as its producer sent it.
pub(super) fn batch_a() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 00 00 00 00 58 ff ff ff ff
         02 be 14 50 16 00 00 00 00 00 02 00 00 01 8b cf
         e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff
         ff ff ff ff ff ff ff ff ff 00 00 00 03 1a 00 00
         00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01
         00 04 04 68 31 02 78 04 68 32 01 10 00 06 04 04
         6b 32 01 00")
}

/// Header of the same with append time, 60 s after T0.
pub(super) fn batch_c_header() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 64 00 00 00 58 00 00 00 07
         02 6e b5 76 10 00 08 00 00 00 02 00 00 01 8b cf
         e5 68 00 00 00 01 8b cf e6 52 60 ff ff ff ff ff
         ff ff ff ff ff ff ff ff ff 00 00 00 03")
}

/// Transactional batch of producer 4242 with two records.
pub(super) fn batch_d() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 67 00 00 00 43 00 00 00 07
         02 57 45 2a 9e 00 10 00 00 00 01 00 00 01 8b cf
         e5 68 00 00 00 01 8b cf e5 68 01 00 00 00 00 00
         00 10 92 00 03 00 00 00 0a 00 00 00 02 10 00 00
         00 02 61 02 31 00 10 00 02 02 02 62 02 32 00")
}

/// [`batch_b`] compacted to its tombstone, with delete horizon.
pub(super) fn batch_h() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 64 00 00 00 3d 00 00 00 07
         02 2a 8a 5d 11 00 40 00 00 00 02 00 00 01 8b d5
         0b c7 e8 00 00 01 8b cf e5 68 03 ff ff ff ff ff
         ff ff ff ff ff ff ff ff ff 00 00 00 01 16 00 c9
         ff b2 52 04 04 6b 32 01 00")
}

/// [`batch_d`] compacted to nothing.
pub(super) fn batch_g() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 67 00 00 00 31 00 00 00 07
         02 28 d4 f1 34 00 10 00 00 00 01 ff ff ff ff ff
         ff ff ff 00 00 01 8b cf e5 68 01 00 00 00 00 00
         00 10 92 00 03 00 00 00 0a 00 00 00 00")
}

/// Control batch with one leader change.
pub(super) fn batch_leader_change() -> Vec<u8> {
    hex("00 00 00 00 00 00 00 00 00 00 00 5e 00 00 00 05
         02 ca 70 01 93 00 20 00 00 00 00 00 00 01 8b cf
         e5 68 00 00 00 01 8b cf e5 68 00 ff ff ff ff ff
         ff ff ff ff ff ff ff ff ff 00 00 00 01 58 00 00
         00 08 00 00 00 02 44 00 00 00 00 00 01 04 00 00
         00 01 00 00 00 00 02 00 00 00 00 03 00 03 00 00
         00 01 00 00 00 00 03 00 00 00")
}

/// The value in [`batch_leader_change`]: leader 1, voters 1, 2, 3, granting 1, 3.
pub(super) fn leader_change() -> Vec<u8> {
    hex("00 00 00 00 00 01 04 00 00 00 01 00 00 00 00 02 00 00 00 00 03 00
         03 00 00 00 01 00 00 00 00 03 00 00")
}

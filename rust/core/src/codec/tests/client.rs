//! What Kafka's Java client 4.3.0 takes and refuses, as seen by feeding it these streams; the few
//! things that only the client takes are listed in the module's documentation.

use super::*;

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn an_empty_input_is_refused_and_an_empty_payload_is_not() {
    for codec in COMPRESSING {
        assert_eq!(inflate(codec, b""), Err(InflateError::Corrupt("no compressed bytes")));
        assert_eq!(inflate(codec, &compress(codec, b"")), Ok(vec![]), "{codec:?}");
    }
    assert_eq!(inflate(Codec::Snappy, &[0]), Ok(vec![]), "raw");
}

#[test]
fn gzip_members_follow_each_other_and_other_bytes_are_ignored() {
    let (first, second) = (text(3000), text(500));
    let (a, b) = (compress(Codec::Gzip, &first), compress(Codec::Gzip, &second));
    let both = joined(&[&first, &second]);
    assert_eq!(inflate(Codec::Gzip, &joined(&[&a, &b])), Ok(both.clone()));
    // Two members that cannot be told apart by their trailers.
    assert_eq!(inflate(Codec::Gzip, &joined(&[&a, &a])), Ok(joined(&[&first, &first])));
    let empty = compress(Codec::Gzip, b"");
    assert_eq!(inflate(Codec::Gzip, &joined(&[&empty, &a, &empty, &empty, &b])), Ok(both.clone()));
    for garbage in [1, 3, 8, 18, 19, 40, 200, 70_000] {
        for byte in [0, 0x5a] {
            let input = joined(&[&a, &b, &vec![byte; garbage]]);
            assert_eq!(inflate(Codec::Gzip, &input), Ok(both.clone()));
        }
    }
    // The torn start of a member is ignored up to its header, and an error after it.
    assert_eq!(inflate(Codec::Gzip, &joined(&[&a, &b[..9]])), Ok(first.clone()));
    assert_eq!(inflate(Codec::Gzip, &joined(&[&a, &b[..18]])), Ok(first));
    assert!(inflate(Codec::Gzip, &joined(&[&a, &b[..19]])).is_err());
    assert!(inflate(Codec::Gzip, &joined(&[&a, &b[..b.len() - 1]])).is_err());
}

#[test]
fn gzip_headers_may_hold_anything_their_flags_announce() {
    let payload = text(3000);
    let plain = compress(Codec::Gzip, &payload);
    let with = |flags: u8, fields: &[u8]| {
        let head = [0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 2, 3];
        joined(&[&head, fields, &plain[10..]])
    };
    assert_eq!(inflate(Codec::Gzip, &with(0x04, b"\x03\x00abc")), Ok(payload.clone()));
    assert_eq!(inflate(Codec::Gzip, &with(0x08, b"name\0")), Ok(payload.clone()));
    assert_eq!(inflate(Codec::Gzip, &with(0x10, b"\0")), Ok(payload.clone()));
    assert_eq!(inflate(Codec::Gzip, &with(0x1d, b"\x00\x00name\0comment\0")), Ok(payload.clone()));
    assert_eq!(inflate(Codec::Gzip, &with(0xe1, b"")), Ok(payload.clone()), "reserved");
    let sum = crate::record::crc32(&[0x1f, 0x8b, 8, 0x02, 1, 2, 3, 4, 2, 3]).to_le_bytes();
    assert_eq!(inflate(Codec::Gzip, &with(0x02, &sum[..2])), Ok(payload));
    assert!(inflate(Codec::Gzip, &with(0x02, &[sum[0], sum[1] ^ 1])).is_err());
    let unended = joined(&[&[0x1f, 0x8b, 8, 0x08, 0, 0, 0, 0, 0, 0], &[b'n'; 100]]);
    assert!(inflate(Codec::Gzip, &unended).is_err());
}

#[test]
fn gzip_trailers_are_checked() {
    let good = compress(Codec::Gzip, &text(3000));
    for from_end in 1..=8 {
        let mut bad = good.clone();
        let at = bad.len() - from_end;
        bad[at] ^= 0x40;
        assert!(inflate(Codec::Gzip, &bad).is_err(), "{from_end}");
    }
}

#[test]
fn a_gzip_trailer_stands_right_behind_the_deflate_data() {
    for payload in [text(3000), text(1), vec![]] {
        let good = compress(Codec::Gzip, &payload);
        let (data, trailer) = good.split_at(good.len() - 8);
        for between in [1, 4, 7, 8, 9, 26, 300] {
            for byte in [0x5a, 0xff] {
                let bad = joined(&[data, &vec![byte; between], trailer]);
                let whole = inflate(Codec::Gzip, &bad);
                assert_eq!(whole, Err(InflateError::Corrupt("gzip checksum or length is wrong")));
            }
        }
        // Behind the trailer anything but a header is ignored, a second trailer too.
        for after in [trailer, &[0x5a; 300], &[trailer, &[0x1f, 0x8b], trailer].concat()] {
            let input = joined(&[&good, after]);
            assert_eq!(inflate(Codec::Gzip, &input), Ok(payload.clone()));
        }
        // Bytes between that are the trailer make the rest the ignored part.
        let input = joined(&[data, trailer, &[0x5a; 26], trailer]);
        assert_eq!(inflate(Codec::Gzip, &input), Ok(payload));
    }
}

#[test]
fn framed_snappy_takes_headers_between_chunks() {
    let payload = text(100_000);
    let framed = compress(Codec::Snappy, &payload);
    let twice = joined(&[&payload, &payload]);
    assert_eq!(inflate(Codec::Snappy, &joined(&[&framed, &framed])), Ok(twice));
    let (header, chunks) = framed.split_at(16);
    assert_eq!(
        inflate(Codec::Snappy, &joined(&[header, header, chunks, header])),
        Ok(payload.clone())
    );
    let mut odd = header.to_vec();
    odd[5] = 0;
    assert!(inflate(Codec::Snappy, &joined(&[&framed, &odd, chunks])).is_err());
    let mut newer = header.to_vec();
    (newer[11], newer[15]) = (2, 9);
    assert_eq!(inflate(Codec::Snappy, &joined(&[&newer, chunks])), Ok(payload.clone()));
    newer[11] = 0;
    assert!(inflate(Codec::Snappy, &joined(&[&newer, chunks])).is_err());
    assert!(inflate(Codec::Snappy, &joined(&[&framed, &newer, chunks])).is_err());
    assert!(inflate(Codec::Snappy, &joined(&[&framed, &header[..12]])).is_err());
    let empty_chunk = [0, 0, 0, 1, 0];
    assert_eq!(
        inflate(Codec::Snappy, &joined(&[header, &empty_chunk, chunks, &empty_chunk])),
        Ok(payload)
    );
}

#[test]
fn framed_snappy_ignores_less_than_a_chunk_length_at_its_end() {
    let payload = text(5000);
    let framed = compress(Codec::Snappy, &payload);
    for garbage in 1..=3 {
        let input = joined(&[&framed, &vec![0x5a; garbage]]);
        assert_eq!(inflate(Codec::Snappy, &input), Ok(payload.clone()));
    }
    for tail in ["00000000", "5a5a5a5a", "ffffffff", "20000001", "0000000500"] {
        assert!(inflate(Codec::Snappy, &joined(&[&framed, &hex(tail)])).is_err(), "{tail}");
    }
}

#[test]
fn raw_snappy_is_one_whole_block() {
    let payload = text(100_000);
    let raw = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    assert_eq!(inflate(Codec::Snappy, &raw), Ok(payload));
    assert!(inflate(Codec::Snappy, &joined(&[&raw, &[0]])).is_err());
    let framed = compress(Codec::Snappy, b"x");
    assert!(inflate(Codec::Snappy, &framed[..15]).is_err(), "not framed below 16 bytes");
}

/// A frame with these flags around one stored block; sums are those given.
fn lz4_frame(flags: u8, sizes: u8, block_sum: &[u8], content_sum: &[u8]) -> Vec<u8> {
    let mut descriptor = vec![flags, sizes];
    if flags & 0x08 != 0 {
        descriptor.extend_from_slice(&[9; 8]);
    }
    let sum = crate::codec::lz4::header_checksum(&descriptor);
    joined(&[
        &hex("04224d18"),
        &descriptor,
        &[sum],
        &hex("05000080"),
        b"hello",
        block_sum,
        &[0; 4],
        content_sum,
    ])
}

#[test]
fn lz4_flags_mean_what_the_client_takes_them_for() {
    let hello = Ok(b"hello".to_vec());
    let sum = crate::codec::lz4::xxh32(b"hello").to_le_bytes();
    for sizes in [0x40, 0x50, 0x60, 0x70] {
        assert_eq!(inflate(Codec::Lz4, &lz4_frame(0x60, sizes, &[], &[])), hello);
    }
    for sizes in [0x00, 0x30, 0x41, 0x48, 0x80, 0xc0] {
        assert!(inflate(Codec::Lz4, &lz4_frame(0x60, sizes, &[], &[])).is_err());
    }
    assert_eq!(inflate(Codec::Lz4, &lz4_frame(0x68, 0x40, &[], &[])), hello, "content size");
    assert_eq!(inflate(Codec::Lz4, &lz4_frame(0x70, 0x40, &sum, &[])), hello);
    assert!(inflate(Codec::Lz4, &lz4_frame(0x70, 0x40, &[1; 4], &[])).is_err());
    assert_eq!(inflate(Codec::Lz4, &lz4_frame(0x64, 0x40, &[], &[1; 4])), hello, "not compared");
    assert!(inflate(Codec::Lz4, &lz4_frame(0x64, 0x40, &[], &[1; 2])).is_err());
    assert_eq!(inflate(Codec::Lz4, &lz4_frame(0x7c, 0x40, &sum, &[1; 4])), hello);
    for flags in [0x61, 0x62, 0x20, 0xa0, 0xe0] {
        assert!(inflate(Codec::Lz4, &lz4_frame(flags, 0x40, &[], &[])).is_err());
    }
}

#[test]
fn dependent_lz4_blocks_are_refused() {
    assert_eq!(
        inflate(Codec::Lz4, &lz4_frame(0x40, 0x40, &[], &[])),
        Err(InflateError::Corrupt("lz4 blocks depend on each other"))
    );
}

#[test]
fn an_lz4_block_neither_is_nor_becomes_larger_than_the_block_size() {
    let head = hex("04224d18 604082");
    for (length, fits) in [(65536_u32, true), (65537, false)] {
        let stored = vec![7; usize::try_from(length).unwrap()];
        let word = (length | 1 << 31).to_le_bytes();
        let frame = joined(&[&head, &word, &stored, &[0; 4]]);
        assert_eq!(inflate(Codec::Lz4, &frame).is_ok(), fits, "stored {length}");
        let block = lz4::block::compress(&stored, None, false).unwrap();
        let word = u32::try_from(block.len()).unwrap().to_le_bytes();
        let frame = joined(&[&head, &word, &block, &[0; 4]]);
        assert_eq!(inflate(Codec::Lz4, &frame).is_ok(), fits, "compressed {length}");
    }
}

#[test]
fn nothing_after_the_lz4_end_mark_is_looked_at() {
    let payload = text(100_000);
    let frame = compress(Codec::Lz4, &payload);
    for tail in [&frame[..], &[0], &[0x5a; 200]] {
        assert_eq!(inflate(Codec::Lz4, &joined(&[&frame, tail])), Ok(payload.clone()));
    }
    // A stored block of no bytes is an end mark too; a compressed one is just empty.
    let hello = hex("05000080 68656c6c6f");
    let head = hex("04224d18 604082");
    let early = joined(&[&head, &hello, &hex("00000080"), &hello, &[0; 4]]);
    assert_eq!(inflate(Codec::Lz4, &early), Ok(b"hello".to_vec()));
    let empty = joined(&[&head, &hex("01000000 00"), &hello, &[0; 4]]);
    assert_eq!(inflate(Codec::Lz4, &empty), Ok(b"hello".to_vec()));
}

#[test]
fn lz4_matches_never_reach_into_older_bytes() {
    // The second block copies from before its own start, where the first one stands.
    let input = joined(&[
        &hex("04224d18 604082 08000080"),
        b"secrets!",
        &hex("09000000 10 61 0400 50 6262626262 00000000"),
    ]);
    assert!(inflate(Codec::Lz4, &input).is_err());
}

#[test]
fn zstd_frames_follow_each_other_and_nothing_else_may() {
    let (first, second) = (text(300_000), text(500));
    let (a, b) = (compress(Codec::Zstd, &first), compress(Codec::Zstd, &second));
    let both = joined(&[&first, &second]);
    assert_eq!(inflate(Codec::Zstd, &joined(&[&a, &b])), Ok(both.clone()));
    let skippable = hex("5f2a4d18 04000000 01020304");
    assert_eq!(
        inflate(Codec::Zstd, &joined(&[&skippable, &a, &skippable, &b, &skippable])),
        Ok(both)
    );
    assert_eq!(inflate(Codec::Zstd, &skippable), Ok(vec![]));
    for tail in [&[0][..], &[0x5a], &[0x5a; 40], &b[..6], &b[..12], &skippable[..9]] {
        assert!(inflate(Codec::Zstd, &joined(&[&a, tail])).is_err());
    }
}

/// Compresses with the library's own one-call form, which states the content size.
fn zstd_with(payload: &[u8], has_size: bool, has_checksum: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    for parameter in [
        zstd_safe::CParameter::ContentSizeFlag(has_size),
        zstd_safe::CParameter::ChecksumFlag(has_checksum),
    ] {
        context.set_parameter(parameter).unwrap();
    }
    let mut output = Vec::with_capacity(zstd_safe::compress_bound(payload.len()));
    context.compress2(&mut output, payload).unwrap();
    output
}

#[test]
fn zstd_frames_may_state_their_size_and_checksum() {
    for length in [0, 1, 255, 256, 300, 65_791, 65_792, 400_000] {
        let payload = text(length);
        for (has_size, has_checksum) in [(true, true), (true, false), (false, true)] {
            let input = zstd_with(&payload, has_size, has_checksum);
            assert_eq!(inflate(Codec::Zstd, &input), Ok(payload.clone()), "{length}");
        }
        let mut wrong = zstd_with(&payload, true, true);
        let last = wrong.len() - 1;
        wrong[last] ^= 1;
        assert!(inflate(Codec::Zstd, &wrong).is_err());
    }
}

#[test]
fn a_zstd_window_over_the_limit_is_refused() {
    for (log, fits) in [(10, true), (27, true), (28, false), (31, false), (41, false)] {
        let window = (log - 10) << 3;
        let input = joined(&[&hex("28b52ffd 00"), &[window], &hex("290000 68656c6c6f")]);
        assert_eq!(inflate(Codec::Zstd, &input).is_ok(), fits, "2^{log}");
    }
    // One eighth more than 2^27.
    assert!(inflate(Codec::Zstd, &hex("28b52ffd 00 89 290000 68656c6c6f")).is_err());
    // A single segment is its own window; this one says 2^28 bytes.
    assert!(inflate(Codec::Zstd, &hex("28b52ffd a0 00000010 290000 68656c6c6f")).is_err());
}

//! Cut and flipped streams: no panic, nothing over the budget, one call and stream agree.

use super::*;

/// Small streams of every shape the decoders know.
fn streams() -> Vec<(Codec, Vec<u8>, Vec<u8>)> {
    let mut streams = Vec::new();
    for bytes in [0, 12, 156, 700] {
        let payload = text(bytes);
        for codec in COMPRESSING {
            streams.push((codec, compress(codec, &payload), payload.clone()));
        }
    }
    let payload = text(156);
    let twice = payload.repeat(2);
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Zstd] {
        streams.push((codec, compress(codec, &payload).repeat(2), twice.clone()));
    }
    let raw = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    streams.push((Codec::Snappy, raw, payload.clone()));
    let plain = compress(Codec::Gzip, &payload);
    let named = [&hex("1f8b081c00000000000f 020061626e616d65006300")[..], &plain[10..]].concat();
    streams.push((Codec::Gzip, named, payload.clone()));
    let block = lz4::block::compress(&payload, None, false).unwrap();
    let sum = crate::codec::lz4::xxh32(&block).to_le_bytes();
    let descriptor = [&hex("7c40")[..], &156_u64.to_le_bytes()].concat();
    let frame = [
        &hex("04224d18")[..],
        &descriptor,
        &[crate::codec::lz4::header_checksum(&descriptor)],
        &u32::try_from(block.len()).unwrap().to_le_bytes(),
        &block,
        &sum,
        &hex("00000000 01020304"),
    ]
    .concat();
    streams.push((Codec::Lz4, frame, payload.clone()));
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    let mut frame = Vec::with_capacity(1000);
    context.compress2(&mut frame, &payload[..]).unwrap();
    streams.push((Codec::Zstd, frame, payload));
    streams
}

#[test]
fn the_streams_are_good_before_they_are_damaged() {
    for (codec, input, payload) in streams() {
        assert_eq!(inflate(codec, &input), Ok(payload), "{codec:?}");
    }
}

#[test]
fn a_stream_cut_anywhere_gives_no_wrong_byte() {
    for (codec, input, payload) in streams() {
        for end in 0..input.len() {
            match inflate(codec, &input[..end]) {
                Err(_) => {}
                // Only concatenated members and chunks can end early without a trace.
                Ok(inflated) => {
                    assert!(matches!(codec, Codec::Gzip | Codec::Snappy | Codec::Zstd));
                    assert!(payload.starts_with(&inflated), "{codec:?} cut at {end}");
                    assert!(inflated.len() < payload.len() || payload.is_empty());
                }
            }
        }
    }
}

#[test]
fn no_flipped_bit_panics_or_makes_one_call_and_stream_differ() {
    for (codec, input, _) in streams() {
        let mut decoder = Decoder::new();
        for bit in 0..input.len() * 8 {
            let mut flipped = input.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = inflate(codec, &flipped);
            for budget in [0, 100, 1000] {
                if let Ok(inflated) = decoder.inflate(codec, &flipped, budget) {
                    assert!(inflated.len() <= budget);
                }
            }
        }
    }
}

#[test]
fn no_flipped_bit_of_deflate_data_gives_wrong_bytes() {
    let payload = text(700);
    let gzip = compress(Codec::Gzip, &payload);
    let mut found = 0;
    for bit in 80..gzip.len() * 8 {
        let mut flipped = gzip.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match inflate(Codec::Gzip, &flipped) {
            Err(_) => found += 1,
            Ok(inflated) => assert_eq!(inflated, payload, "bit {bit}"),
        }
    }
    // The bits between the end of the deflate stream and the next byte mean nothing.
    assert!(found >= (gzip.len() - 10) * 8 - 7, "{found}");
}

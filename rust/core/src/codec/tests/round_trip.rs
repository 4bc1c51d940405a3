//! What is compressed inflates to itself, in one call and in any pieces.

use proptest::prelude::*;

use super::*;

/// Payloads from empty to several blocks: noise, runs, and text.
fn payloads() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop_oneof![0..3_usize, 0..2000_usize, 32_000..200_000_usize];
    (sizes, 0..4_u8, any::<u64>()).prop_map(|(bytes, kind, seed)| {
        let mut state = seed | 1;
        let mut noise = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        };
        match kind {
            0 => vec![noise(); bytes],
            1 => text(bytes),
            2 => (0..bytes).map(|_| noise()).collect(),
            _ => (0..bytes).map(|_| noise() & 0x13).collect(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_payload_comes_back(
        payload in payloads(),
        seed in any::<u32>(),
        before in proptest::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new();
        for codec in COMPRESSING {
            let mut output = before.clone();
            encoder.compress(codec, None, &payload, &mut output).unwrap();
            let (kept, input) = output.split_at(before.len());
            prop_assert_eq!(kept, &before[..]);
            let inflated = decoder.inflate(codec, input, payload.len()).unwrap();
            prop_assert!(inflated == payload, "{:?}", codec);

            let mut state = seed;
            let streamed = stream_as(&mut decoder, Dialect::V2, codec, input, || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                usize::try_from(state >> 8).unwrap() % if state & 1 == 0 { 1 + payload.len() / 5 } else { 40_000 }
            });
            prop_assert!(streamed.as_ref() == Ok(&payload), "{:?} streamed", codec);

            if let Some(budget) = payload.len().checked_sub(1) {
                let refused = decoder.inflate(codec, input, budget);
                prop_assert_eq!(refused, Err(InflateError::OverBudget), "{:?}", codec);
            }
        }
    }

    #[test]
    fn every_level_comes_back(payload in payloads(), gzip in 1..=9, lz4 in 1..=17, zstd in -20..=15) {
        let mut encoder = Encoder::new();
        for (codec, level) in [
            (Codec::Gzip, gzip), (Codec::Gzip, -1), (Codec::Lz4, lz4), (Codec::Zstd, zstd),
        ] {
            let mut input = Vec::new();
            encoder.compress(codec, Some(level), &payload, &mut input).unwrap();
            prop_assert!(inflate(codec, &input).as_ref() == Ok(&payload), "{:?} {}", codec, level);
        }
    }

    #[test]
    fn a_decoder_keeps_nothing_of_the_batch_before(payloads in proptest::collection::vec(payloads(), 1..5)) {
        let mut decoder = Decoder::new();
        for (number, payload) in payloads.iter().enumerate() {
            let codec = COMPRESSING[number % 4];
            let input = compress(codec, payload);
            prop_assert!(decoder.inflate(codec, &input, 1 << 20) == Ok(payload));
            // A stream that is given up half-way leaves no trace either.
            let mut stream = decoder.stream(codec, &input).unwrap();
            let _ = stream.read(&mut vec![0; payload.len() / 2]).unwrap();
        }
    }

    #[test]
    fn any_bytes_at_all_are_refused_or_inflated_within_the_budget(
        noise in proptest::collection::vec(any::<u8>(), 0..300),
        head in 0..COMPRESSING.len(),
        keep in 0..40_usize,
        budget in 0..5000_usize,
    ) {
        let codec = COMPRESSING[head];
        let mut input = compress(codec, &text(1000));
        input.truncate(keep);
        input.extend_from_slice(&noise);
        let mut decoder = Decoder::new();
        if let Ok(inflated) = decoder.inflate(codec, &input, budget) {
            prop_assert!(inflated.len() <= budget);
        }
        let _ = stream_as(&mut decoder, Dialect::V2, codec, &input, || 100);
    }
}

#[test]
fn stronger_levels_compress_better() {
    let payload = text(300_000);
    let mut encoder = Encoder::new();
    let mut bytes = |codec, level| {
        let mut output = Vec::new();
        encoder.compress(codec, Some(level), &payload, &mut output).unwrap();
        output.len()
    };
    assert!(bytes(Codec::Gzip, 9) < bytes(Codec::Gzip, 1));
    assert!(bytes(Codec::Zstd, 15) < bytes(Codec::Zstd, -5));
    // Kafka's level 9 is the fast compressor; its neighbours are not.
    assert!(bytes(Codec::Lz4, 8) < bytes(Codec::Lz4, 9));
    assert!(bytes(Codec::Lz4, 10) < bytes(Codec::Lz4, 9));
    assert_eq!(bytes(Codec::Lz4, 12), bytes(Codec::Lz4, 17));
}

#[test]
fn zstd_frames_state_neither_size_nor_checksum() {
    for bytes in [0, 1, 100, 1000, 300_000] {
        let frame = compress(Codec::Zstd, &text(bytes));
        assert_eq!(frame[..6], hex("28b52ffd 00 58"), "{bytes}");
    }
}

#[test]
fn incompressible_lz4_blocks_are_stored() {
    let mut state: u32 = 1;
    let noise: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .collect();
    let frame = compress(Codec::Lz4, &noise);
    assert_eq!(frame.len(), 7 + 4 + 65_536 + 4 + 34_464 + 4);
    assert_eq!(frame[7..11], hex("00000180"));
}

//! Streams that let go of decoder and input between reads.

use super::*;

/// Every shape a stream can have between two reads: inside a block, between blocks, at the end.
fn inputs() -> Vec<(Codec, Vec<u8>, Vec<u8>)> {
    let payload = text(150_000);
    let mut inputs = vec![(Codec::None, payload.clone(), payload.clone())];
    for codec in COMPRESSING {
        inputs.push((codec, compress(codec, &payload), payload.clone()));
    }
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Zstd] {
        inputs.push((codec, compress(codec, &payload).repeat(2), payload.repeat(2)));
    }
    let raw = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    inputs.push((Codec::Snappy, raw, payload));
    inputs
}

#[test]
fn a_stream_paused_after_every_read_gives_the_same_bytes() {
    for (codec, input, payload) in inputs() {
        for read_bytes in [777, 32_768, 65_536, 1_000_000] {
            let mut decoder = Decoder::new();
            let mut paused = decoder.stream(codec, &input).unwrap().pause();
            let mut inflated = Vec::new();
            let mut piece = vec![0; read_bytes];
            loop {
                let mut stream = decoder.resume(paused, &input).unwrap();
                let read = stream.read(&mut piece).unwrap();
                paused = stream.pause();
                inflated.extend_from_slice(&piece[..read]);
                if read == 0 {
                    break;
                }
            }
            assert!(inflated == payload, "{codec:?} {read_bytes}");
        }
    }
}

#[test]
fn a_paused_stream_is_refused_once_its_decoder_was_used() {
    for (codec, input, _) in inputs() {
        let mut decoder = Decoder::new();
        let mut stream = decoder.stream(codec, &input).unwrap();
        stream.read(&mut [0; 1000]).unwrap();
        let paused = stream.pause();
        let mut again = decoder.resume(paused, &input).unwrap();
        again.read(&mut [0; 1000]).unwrap();
        let later = again.pause();
        assert!(decoder.resume(paused, &input).is_err(), "{codec:?} resumed twice");
        let small = compress(Codec::Lz4, b"hello");
        decoder.inflate(Codec::Lz4, &small, 100).unwrap();
        assert!(decoder.resume(later, &input).is_err(), "{codec:?} after another batch");
    }
}

#[test]
fn an_error_outlives_a_pause() {
    let mut input = compress(Codec::Lz4, &text(150_000));
    input.truncate(20_000);
    let mut decoder = Decoder::new();
    let mut stream = decoder.stream(Codec::Lz4, &input).unwrap();
    let error = stream.read(&mut vec![0; 200_000]).unwrap_err();
    let paused = stream.pause();
    let mut stream = decoder.resume(paused, &input).unwrap();
    assert_eq!(stream.read(&mut [0; 10]), Err(error));
}

#[test]
fn nothing_of_a_failed_or_finished_batch_is_left_to_be_read() {
    let payload = text(1000);
    let good = compress(Codec::Gzip, &payload);
    let mut bad = compress(Codec::Gzip, &text(2000));
    let last = bad.len() - 1;
    bad[last] ^= 1;
    let mut decoder = Decoder::new();
    decoder.inflate(Codec::Gzip, &good, MIB).unwrap();
    assert_eq!(decoder.inflated(), payload);
    decoder.inflate(Codec::Gzip, &bad, MIB).unwrap_err();
    assert_eq!(decoder.inflated(), b"");
    for codec in Codec::ALL {
        decoder.inflate(Codec::Gzip, &good, MIB).unwrap();
        let _ = decoder.inflate(codec, b"", MIB);
        assert_eq!(decoder.inflated(), b"", "{codec:?}");
    }
}

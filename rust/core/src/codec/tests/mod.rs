mod bombs;
mod client;
mod corpus;
mod damage;
mod examples;
mod pause;
mod round_trip;

use super::{Decoder, Dialect, Encoder, InflateError};
use crate::record::Codec;

const COMPRESSING: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
const MIB: usize = 1 << 20;

fn compress(codec: Codec, input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut encoder = Encoder::new();
    encoder.compress(codec, None, input, &mut output).unwrap();
    output
}

/// Inflates in one call and as a stream, in reads of `read_bytes`, and demands the same answer.
fn inflate_as(
    dialect: Dialect,
    codec: Codec,
    input: &[u8],
    read_bytes: usize,
) -> Result<Vec<u8>, InflateError> {
    let mut decoder = Decoder::new();
    let whole = decoder.inflate_as(dialect, codec, input, 64 * MIB).map(<[u8]>::to_vec);
    let streamed = stream_as(&mut decoder, dialect, codec, input, || read_bytes);
    match (&whole, &streamed) {
        (Ok(whole), Ok(streamed)) => assert!(whole == streamed, "one call and stream differ"),
        (Err(_), Err(_)) => {}
        _ => panic!("one call: {whole:?}, stream: {streamed:?}"),
    }
    whole
}

fn inflate(codec: Codec, input: &[u8]) -> Result<Vec<u8>, InflateError> {
    inflate_as(Dialect::V2, codec, input, 1000)
}

fn stream_as(
    decoder: &mut Decoder,
    dialect: Dialect,
    codec: Codec,
    input: &[u8],
    mut read_bytes: impl FnMut() -> usize,
) -> Result<Vec<u8>, InflateError> {
    let mut stream = decoder.stream_as(dialect, codec, input)?;
    let mut inflated = Vec::new();
    loop {
        let mut piece = vec![0xa5; read_bytes().max(1)];
        let read = stream.read(&mut piece)?;
        if read == 0 {
            assert_eq!(stream.read(&mut piece), Ok(0), "the end stays the end");
            return Ok(inflated);
        }
        inflated.extend_from_slice(&piece[..read]);
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| u8::try_from(digit).unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Bytes that look like records: numbered, repetitive, and not quite the same.
fn text(bytes: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut number: u32 = 1;
    while text.len() < bytes {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(format!("{{\"user\":{number},\"event\":\"view\"}}").as_bytes());
    }
    text.truncate(bytes);
    text
}

#[test]
fn a_decoder_and_an_encoder_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Decoder>();
    is_send::<Encoder>();
}

#[test]
fn uncompressed_bytes_are_handed_back_and_spend_no_budget() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.inflate(Codec::None, b"abc", 0), Ok(&b"abc"[..]));
    assert_eq!(decoder.inflate(Codec::None, b"", 0), Ok(&b""[..]));
    assert_eq!(decoder.held_bytes(), 0);
    let streamed = stream_as(&mut decoder, Dialect::V0, Codec::None, b"abc", || 2);
    assert_eq!(streamed, Ok(b"abc".to_vec()));
}

#[test]
fn a_failed_stream_keeps_failing() {
    let mut input = compress(Codec::Gzip, &text(100_000));
    let last = input.len() - 1;
    input[last] ^= 1;
    let mut decoder = Decoder::new();
    let mut stream = decoder.stream(Codec::Gzip, &input).unwrap();
    let mut piece = vec![0; 200_000];
    let error = stream.read(&mut piece).unwrap_err();
    assert_eq!(stream.read(&mut piece), Err(error));
}

#[test]
fn levels_are_checked_against_kafkas_ranges() {
    let allowed = [
        (Codec::Gzip, vec![-1, 1, 9], vec![-2, 0, 10]),
        (Codec::Lz4, vec![1, 9, 17], vec![-1, 0, 18]),
        (Codec::Zstd, vec![-131_072, 0, 22], vec![-131_073, 23]),
        (Codec::Snappy, vec![], vec![-1, 0, 1]),
        (Codec::None, vec![], vec![-1, 0, 1]),
    ];
    for (codec, good, bad) in allowed {
        assert!(Encoder::check_level(codec, None).is_ok());
        for level in good {
            assert!(Encoder::check_level(codec, Some(level)).is_ok(), "{codec:?} {level}");
        }
        for level in bad {
            let mut output = vec![7];
            let refused = Encoder::new().compress(codec, Some(level), b"x", &mut output);
            assert!(matches!(refused, Err(crate::Error::Invalid(_))), "{codec:?} {level}");
            assert_eq!(output, [7], "nothing is written");
        }
    }
}

//! Small inputs that inflate without limit: refused within the budget in one call, and streamed in
//! bounded memory.

use super::*;

const GIB: u64 = 1 << 30;
const BUDGET: usize = 8 * MIB;

/// zstd's own tables; everything else a decoder holds is its buffers.
const CONTEXT_BYTES: usize = 256 << 10;

/// Refuses in one call; returns what the stream gives and what the decoder holds afterwards.
fn defuse(codec: Codec, bomb: &[u8]) -> (u64, usize) {
    let mut decoder = Decoder::new();
    for budget in [0, 1000, BUDGET] {
        let refused = decoder.inflate(codec, bomb, budget);
        assert_eq!(refused, Err(InflateError::OverBudget), "{codec:?} {budget}");
        assert!(decoder.held_bytes() <= budget + CONTEXT_BYTES, "{codec:?} {budget}");
    }
    let mut decoder = Decoder::new();
    let mut stream = decoder.stream(codec, bomb).unwrap();
    let mut piece = vec![0; 256 << 10];
    let mut total = 0;
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            read => total += u64::try_from(read).unwrap(),
        }
    }
    (total, decoder.held_bytes())
}

/// One member of a GiB of zeros: a MiB of them, repeated between full flushes.
fn gzip_bomb() -> Vec<u8> {
    let mut compressor = flate2::Compress::new(flate2::Compression::best(), false);
    let mut mebibyte = Vec::with_capacity(MIB);
    compressor.compress_vec(&vec![0; MIB], &mut mebibyte, flate2::FlushCompress::Full).unwrap();
    let mut bomb = hex("1f8b08000000000000ff");
    for _ in 0..1024 {
        bomb.extend_from_slice(&mebibyte);
    }
    bomb.extend_from_slice(&[3, 0]);
    let mut crc = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc);
    for _ in 0..1024 {
        crc.update(&vec![0; MIB]);
    }
    bomb.extend_from_slice(&crc.finalize().to_le_bytes()[..4]);
    bomb.extend_from_slice(&u32::try_from(GIB).unwrap().to_le_bytes());
    bomb
}

#[test]
fn a_gzip_bomb_is_refused_and_streamed() {
    let bomb = gzip_bomb();
    assert!(bomb.len() < 11 * MIB / 10, "{}", bomb.len());
    assert_eq!(defuse(Codec::Gzip, &bomb), (GIB, 0));
}

#[test]
fn a_gzip_bomb_that_lies_about_its_length_is_refused() {
    let mut bomb = gzip_bomb();
    let at = bomb.len() - 4;
    bomb[at..].copy_from_slice(&[1, 0, 0, 0]);
    let mut decoder = Decoder::new();
    assert_eq!(decoder.inflate(Codec::Gzip, &bomb, BUDGET), Err(InflateError::OverBudget));
    assert!(decoder.held_bytes() <= BUDGET);
    // Many small members are as bad as a large one.
    let members = compress(Codec::Gzip, &vec![0; MIB]).repeat(1024);
    assert_eq!(defuse(Codec::Gzip, &members).0, GIB);
}

#[test]
fn a_gzip_length_that_its_bytes_cannot_make_allocates_nothing_like_it() {
    let mut input = compress(Codec::Gzip, b"hello");
    let at = input.len() - 4;
    input[at..].copy_from_slice(&[0xff; 4]);
    let mut decoder = Decoder::new();
    assert!(decoder.inflate(Codec::Gzip, &input, usize::MAX).is_err());
    assert!(decoder.held_bytes() <= MIB);
}

#[test]
fn a_zstd_bomb_of_runs_is_refused_at_sight() {
    // 250,000 blocks of four bytes, each a run of 128 KiB: 30 GiB from 1 MB.
    let mut bomb = hex("28b52ffd 00 58");
    bomb.extend_from_slice(&hex("020010 00").repeat(250_000));
    bomb.extend_from_slice(&hex("010000"));
    let mut decoder = Decoder::new();
    assert_eq!(decoder.inflate(Codec::Zstd, &bomb, BUDGET), Err(InflateError::OverBudget));
    assert_eq!(decoder.held_bytes(), 0);
    let mut smaller = hex("28b52ffd 00 58");
    smaller.extend_from_slice(&hex("020010 00").repeat(8192));
    smaller.extend_from_slice(&hex("010000"));
    let (total, held) = defuse(Codec::Zstd, &smaller);
    assert_eq!(total, GIB);
    assert!(held < 3 * MIB, "the window of 2 MiB: {held}");
}

#[test]
fn a_zstd_bomb_of_matches_is_refused_and_streamed() {
    let frame = compress(Codec::Zstd, &b"ab".repeat(8 * MIB));
    let bomb = frame.repeat(64);
    assert!(bomb.len() < MIB, "{}", bomb.len());
    let (total, held) = defuse(Codec::Zstd, &bomb);
    assert_eq!(total, GIB);
    assert!(held < 3 * MIB, "{held}");
}

#[test]
fn an_lz4_bomb_is_refused_and_streamed() {
    // 255 is the best ratio of the format, so that a GiB takes 4 MB.
    let block = lz4::block::compress(&vec![0; 4 * MIB], None, false).unwrap();
    let mut bomb = hex("04224d18 6070 73");
    for _ in 0..256 {
        bomb.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
        bomb.extend_from_slice(&block);
    }
    bomb.extend_from_slice(&[0; 4]);
    assert!(bomb.len() < 5 * MIB, "{}", bomb.len());
    let (total, held) = defuse(Codec::Lz4, &bomb);
    assert_eq!(total, GIB);
    assert!(held <= 5 * MIB, "one block of 4 MiB: {held}");
}

#[test]
fn a_snappy_bomb_is_refused_and_streamed() {
    // 21 is the best ratio of the format, so that a GiB takes 50 MB.
    let chunks = &compress(Codec::Snappy, &vec![0; MIB])[16..].to_vec();
    let bomb = [&compress(Codec::Snappy, b"")[..], &chunks.repeat(1024)].concat();
    assert!(bomb.len() < 60 * MIB, "{}", bomb.len());
    let (total, held) = defuse(Codec::Snappy, &bomb);
    assert_eq!(total, GIB);
    assert!(held <= 64 << 10, "one chunk: {held}");
}

#[test]
fn a_snappy_length_that_its_bytes_cannot_make_allocates_nothing() {
    let mut lie = hex("ffffffff0f");
    lie.resize(MIB, 0xfe);
    let framed =
        [&compress(Codec::Snappy, b"")[..], &u32::try_from(lie.len()).unwrap().to_be_bytes(), &lie]
            .concat();
    for input in [lie, framed] {
        let mut decoder = Decoder::new();
        let refused = decoder.inflate(Codec::Snappy, &input, usize::MAX);
        assert!(matches!(refused, Err(InflateError::Corrupt(_))));
        let streamed =
            decoder.stream(Codec::Snappy, &input).and_then(|mut stream| stream.read(&mut [0; 100]));
        assert!(matches!(streamed, Err(InflateError::Corrupt(_))));
        assert_eq!(decoder.held_bytes(), 0);
    }
}

#[test]
fn a_zstd_content_size_that_its_blocks_cannot_make_allocates_nothing() {
    // Says 100 MiB, holds one block of five bytes.
    let input = hex("28b52ffd a0 00004006 290000 68656c6c6f");
    let mut decoder = Decoder::new();
    let refused = decoder.inflate(Codec::Zstd, &input, usize::MAX);
    assert!(matches!(refused, Err(InflateError::Corrupt(_))));
    assert_eq!(decoder.held_bytes(), 0);
}

#[test]
fn a_giant_window_is_given_back_at_the_next_batch() {
    // A frame with a window of 128 MiB that is half read.
    let mut input = hex("28b52ffd 00 88");
    input.extend_from_slice(&hex("020010 00").repeat(64));
    input.extend_from_slice(&hex("010000"));
    let mut decoder = Decoder::new();
    let mut stream = decoder.stream(Codec::Zstd, &input).unwrap();
    stream.read(&mut vec![0; MIB]).unwrap();
    assert!(decoder.held_bytes() > 100 * MIB);
    let small = compress(Codec::Zstd, b"hello");
    assert_eq!(decoder.inflate(Codec::Zstd, &small, MIB), Ok(&b"hello"[..]));
    assert!(decoder.held_bytes() < MIB);
}

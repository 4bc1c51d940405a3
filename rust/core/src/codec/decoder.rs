//! Decoder state that is kept between batches.

use std::fmt;

use super::output::{Output, Window};
use super::stream::{Paused, Source};
use super::{InflateError, InflateStream, gzip, lz4, snappy, zstd};
use crate::limits::INFLATE_WINDOW_BYTES;
use crate::record::Codec;

/// The version of the format that holds the compressed bytes. Two rules depend on it: producers of
/// version 0 wrote a wrong LZ4 header checksum, and zstd came with version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A version 0 message.
    V0,
    /// A version 1 message.
    V1,
    /// A version 2 batch.
    V2,
}

impl Dialect {
    /// The dialect of a magic byte.
    pub fn from_magic(magic: i8) -> Option<Self> {
        match magic {
            0 => Some(Self::V0),
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    fn check(self, codec: Codec) -> Result<(), InflateError> {
        if codec == Codec::Zstd && self != Self::V2 {
            return Err(InflateError::Corrupt("zstd in a version 0 or 1 message"));
        }
        Ok(())
    }

    fn header_checksum(self) -> lz4::HeaderChecksum {
        if self == Self::V0 { lz4::HeaderChecksum::Ignored } else { lz4::HeaderChecksum::Verified }
    }
}

/// Reusable decoder state: one per reader thread. Contexts are made when a codec is first met;
/// they and the output buffer are kept between batches. Starts no thread, touches no global.
#[derive(Default)]
pub struct Decoder {
    /// What [`Decoder::inflate`] hands out.
    output: Output,
    /// One block on its way through a stream.
    block: Output,
    gzip: gzip::Gzip,
    snappy: snappy::Snappy,
    zstd: zstd::Zstd,
    /// Counts the uses, to tell a paused stream whose state was overwritten since.
    turn: u64,
}

impl Decoder {
    /// A decoder that holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inflates all of a version 2 payload. The bytes stand in a buffer of the decoder that the
    /// next call overwrites: nothing is copied and, once the buffer has met its largest batch,
    /// nothing is allocated or zeroed.
    ///
    /// [`InflateError::OverBudget`] as soon as the output would exceed `budget` bytes; no buffer
    /// larger than that is made for it. [`Codec::None`] hands `input` back and spends no budget.
    #[inline]
    pub fn inflate<'a>(
        &'a mut self,
        codec: Codec,
        input: &'a [u8],
        budget: usize,
    ) -> Result<&'a [u8], InflateError> {
        self.inflate_as(Dialect::V2, codec, input, budget)
    }

    /// [`Decoder::inflate`] for any version: `Dialect::V0` ignores the LZ4 header checksum, and
    /// zstd is refused in versions 0 and 1.
    pub fn inflate_as<'a>(
        &'a mut self,
        dialect: Dialect,
        codec: Codec,
        input: &'a [u8],
        budget: usize,
    ) -> Result<&'a [u8], InflateError> {
        self.begin(dialect, codec, input)?;
        let output = &mut self.output;
        let inflated = match codec {
            Codec::None => return Ok(input),
            Codec::Gzip => self.gzip.inflate(input, output, budget),
            Codec::Snappy => self.snappy.inflate(input, output, budget),
            Codec::Lz4 => lz4::inflate(input, dialect.header_checksum(), output, budget),
            Codec::Zstd => self.zstd.inflate(input, output, budget),
        };
        if inflated.is_err() {
            self.output.set_used(0);
        }
        inflated.map(|()| self.output.used())
    }

    /// Inflates a version 2 payload bit by bit, in constant memory whatever the ratio.
    pub fn stream<'d, 'i>(
        &'d mut self,
        codec: Codec,
        input: &'i [u8],
    ) -> Result<InflateStream<'d, 'i>, InflateError> {
        self.stream_as(Dialect::V2, codec, input)
    }

    /// [`Decoder::stream`] for any version, with the rules of [`Decoder::inflate_as`].
    pub fn stream_as<'d, 'i>(
        &'d mut self,
        dialect: Dialect,
        codec: Codec,
        input: &'i [u8],
    ) -> Result<InflateStream<'d, 'i>, InflateError> {
        self.begin(dialect, codec, input)?;
        let window = Window::over(&mut self.block);
        let source = match codec {
            Codec::None => Source::Plain(input),
            Codec::Gzip => Source::Gzip(self.gzip.stream(input)?),
            Codec::Snappy => Source::Snappy(self.snappy.stream(input, window)?),
            Codec::Lz4 => Source::Lz4(lz4::Stream::new(input, dialect.header_checksum(), window)?),
            Codec::Zstd => Source::Zstd(self.zstd.stream(input)?),
        };
        Ok(InflateStream::new(source, self.turn))
    }

    /// Goes on with a stream that was paused; `input` is the same as at its start. Refused when the
    /// decoder was used since: the state that the stream left in it is gone.
    pub fn resume<'d, 'i>(
        &'d mut self,
        paused: Paused,
        input: &'i [u8],
    ) -> Result<InflateStream<'d, 'i>, InflateError> {
        const NOT_BEGUN: InflateError = InflateError::Corrupt("the paused stream is gone");
        let Paused { codec, place, failed, turn } = paused;
        if turn != self.turn {
            return Err(NOT_BEGUN);
        }
        self.turn = self.turn.wrapping_add(1);
        let window = Window::again(&mut self.block, place.taken);
        let source = match codec {
            Codec::None => Source::Plain(place.rest(input)),
            Codec::Gzip => Source::Gzip(self.gzip.resume(input, place).ok_or(NOT_BEGUN)?),
            Codec::Snappy => Source::Snappy(self.snappy.resume(input, window, place)?),
            Codec::Lz4 => Source::Lz4(lz4::Stream::resume(input, window, place)?),
            Codec::Zstd => Source::Zstd(self.zstd.resume(input, place).ok_or(NOT_BEGUN)?),
        };
        Ok(InflateStream::new(source, self.turn).after(failed))
    }

    /// The bytes that the last [`Decoder::inflate`] left in the decoder: none after an error, after
    /// [`Codec::None`], and once a stream was begun.
    #[inline]
    pub fn inflated(&self) -> &[u8] {
        self.output.used()
    }

    /// Bytes of memory the decoder holds between calls: its buffers and zstd's window.
    pub fn held_bytes(&self) -> usize {
        self.output
            .held_bytes()
            .saturating_add(self.block.held_bytes())
            .saturating_add(self.zstd.held_bytes())
    }

    fn begin(&mut self, dialect: Dialect, codec: Codec, input: &[u8]) -> Result<(), InflateError> {
        self.turn = self.turn.wrapping_add(1);
        self.output.set_used(0);
        dialect.check(codec)?;
        if input.is_empty() && codec != Codec::None {
            return Err(InflateError::Corrupt("no compressed bytes"));
        }
        // One rare giant block does not pin its memory for the life of the reader.
        self.block.trim(INFLATE_WINDOW_BYTES);
        self.zstd.trim(INFLATE_WINDOW_BYTES);
        Ok(())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").finish_non_exhaustive()
    }
}

//! Inflating in constant memory.

use std::fmt;

use super::output::copy_some;
use super::{InflateError, gzip, lz4, snappy, zstd};
use crate::record::Codec;

/// Compressed bytes being inflated bit by bit. Made by [`super::Decoder::stream`].
pub struct InflateStream<'d, 'i> {
    source: Source<'d, 'i>,
    turn: u64,
    failed: Option<InflateError>,
}

/// One stream per codec.
pub(super) enum Source<'d, 'i> {
    Plain(&'i [u8]),
    Gzip(gzip::Stream<'d, 'i>),
    Snappy(snappy::Stream<'d, 'i>),
    Lz4(lz4::Stream<'d, 'i>),
    Zstd(zstd::Stream<'d, 'i>),
}

impl InflateStream<'_, '_> {
    /// Fills `output` with the next inflated bytes and returns how many they are. Fewer than asked
    /// means that the end follows; 0 (for an `output` that is not empty) is the end: the stream was
    /// complete and its checksums, where its format has them, were right.
    ///
    /// After an error every further call returns the same error.
    pub fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut filled = 0;
        while let Some(target) = output.get_mut(filled..).filter(|target| !target.is_empty()) {
            match self.source.read(target) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) => {
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
        Ok(filled)
    }
}

/// Where a stream stopped. Goes on with [`super::Decoder::resume`], once, as long as the decoder it
/// came from was not used meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Paused {
    pub(super) codec: Codec,
    pub(super) place: Place,
    pub(super) failed: Option<InflateError>,
    pub(super) turn: u64,
}

/// What a stream knows beside the contexts that stay in the decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Compressed bytes still to be read.
    pub(super) left: usize,
    /// Bytes handed out of the inflated block.
    pub(super) taken: usize,
    /// The last frame, member or block was complete.
    pub(super) ended: bool,
}

impl Place {
    /// The compressed bytes still to be read.
    pub(super) fn rest(self, input: &[u8]) -> &[u8] {
        input.get(input.len().saturating_sub(self.left)..).unwrap_or_default()
    }
}

impl<'d, 'i> InflateStream<'d, 'i> {
    pub(super) fn new(source: Source<'d, 'i>, turn: u64) -> Self {
        Self { source, turn, failed: None }
    }
}

impl InflateStream<'_, '_> {
    /// Lets go of decoder and input, to go on later.
    pub fn pause(self) -> Paused {
        let (codec, place) = match &self.source {
            Source::Plain(rest) => {
                (Codec::None, Place { left: rest.len(), taken: 0, ended: false })
            }
            Source::Gzip(stream) => (Codec::Gzip, stream.place()),
            Source::Snappy(stream) => (Codec::Snappy, stream.place()),
            Source::Lz4(stream) => (Codec::Lz4, stream.place()),
            Source::Zstd(stream) => (Codec::Zstd, stream.place()),
        };
        Paused { codec, place, failed: self.failed, turn: self.turn }
    }

    pub(super) fn after(mut self, failed: Option<InflateError>) -> Self {
        self.failed = failed;
        self
    }
}

impl Source<'_, '_> {
    /// 0 is the end; `output` is not empty.
    fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        match self {
            Self::Plain(rest) => Ok(copy_some(rest, output)),
            Self::Gzip(stream) => stream.read(output),
            Self::Snappy(stream) => stream.read(output),
            Self::Lz4(stream) => stream.read(output),
            Self::Zstd(stream) => stream.read(output),
        }
    }
}

impl fmt::Debug for InflateStream<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InflateStream").finish_non_exhaustive()
    }
}

//! Zstandard frames, RFC 8878.
//!
//! | bytes | field of a frame |
//! |---|---|
//! | 4 | magic `28 b5 2f fd` |
//! | 1 | descriptor: bits 7–6 size of the content size, 5 single segment, 3 reserved, 2 checksum, 1–0 size of the dictionary id |
//! | 1 | window, unless single segment: exponent (5 bits) over 2^10, mantissa (3 bits) in eighths |
//! | 0, 1, 2, 4 | dictionary id |
//! | 0, 1, 2, 4, 8 | content size |
//! | … | blocks: u24 LE with bit 0 last, bits 2–1 kind, then the size; then data |
//! | 4 | checksum, if flagged |
//!
//! A skippable frame is `5x 2a 4d 18`, a u32 LE length and so many bytes.
//!
//! 1. Frames follow each other to the end of the input; anything else there is refused.
//! 2. A window above [`ZSTD_WINDOW_LOG_MAX`] is refused, by the Java client too. The content of a
//!    single segment is its window.
//! 3. Java and librdkafka state no content size. A walk over the block headers bounds what the
//!    frames inflate to, so that they too go through one call over a buffer that is large enough.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use super::InflateError;
use super::output::Output;
use super::stream::Place;
use crate::limits::ZSTD_WINDOW_LOG_MAX;

const CUT_SHORT: InflateError = InflateError::Corrupt("zstd ends too early");

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// No block inflates to more, whatever the window.
const BLOCK_BYTES_MAX: u64 = 128 << 10;

/// `ZSTD_error_dstSize_tooSmall`; the numbers of these errors are fixed by the library.
const OUTPUT_TOO_SMALL: usize = 70;

/// The decoding context, made when first needed.
#[derive(Default)]
pub(super) struct Zstd {
    context: Option<DCtx<'static>>,
}

impl Zstd {
    pub(super) fn inflate(
        &mut self,
        input: &[u8],
        output: &mut Output,
        budget: usize,
    ) -> Result<(), InflateError> {
        let bounds = Bounds::of(input)?;
        let budget_bytes = u64::try_from(budget).unwrap_or(u64::MAX);
        if bounds.least > budget_bytes {
            return Err(InflateError::OverBudget);
        }
        let room = usize::try_from(bounds.most).map_or(budget, |most| most.min(budget));
        let context = self.context.get_or_insert_with(DCtx::create);
        match context.decompress(output.room(room, budget), input) {
            Ok(written) => {
                output.set_used(written);
                Ok(())
            }
            Err(code) if code.wrapping_neg() == OUTPUT_TOO_SMALL && bounds.most > budget_bytes => {
                Err(InflateError::OverBudget)
            }
            Err(code) => Err(InflateError::Corrupt(get_error_name(code))),
        }
    }

    pub(super) fn stream<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
    ) -> Result<Stream<'d, 'i>, InflateError> {
        // The same walk as for one call, so that both refuse the same inputs.
        Bounds::of(input)?;
        let context = self.context.get_or_insert_with(DCtx::create);
        context
            .reset(ResetDirective::SessionAndParameters)
            .and_then(|_| context.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX)))
            .map_err(|code| InflateError::Corrupt(get_error_name(code)))?;
        Ok(Stream { context, input: InBuffer::around(input), frame_ended: false })
    }

    /// A stream that was paused; `None` when none was begun.
    pub(super) fn resume<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
        place: Place,
    ) -> Option<Stream<'d, 'i>> {
        let context = self.context.as_mut()?;
        let input = InBuffer::around(place.rest(input));
        Some(Stream { context, input, frame_ended: place.ended })
    }

    /// Bytes of memory held.
    pub(super) fn held_bytes(&self) -> usize {
        self.context.as_ref().map_or(0, DCtx::sizeof)
    }

    /// Gives the window of a stream back if more than `keep` bytes are held.
    pub(super) fn trim(&mut self, keep: usize) {
        if self.held_bytes() > keep {
            self.context = None;
        }
    }
}

/// Frames being inflated piece by piece.
pub(super) struct Stream<'d, 'i> {
    context: &'d mut DCtx<'static>,
    input: InBuffer<'i>,
    frame_ended: bool,
}

impl Stream<'_, '_> {
    pub(super) fn place(&self) -> Place {
        let left = self.input.src.len().saturating_sub(self.input.pos());
        Place { left, taken: 0, ended: self.frame_ended }
    }

    pub(super) fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        loop {
            let before = self.input.pos();
            if self.frame_ended && before == self.input.src.len() {
                return Ok(0);
            }
            let mut target = OutBuffer::around(output);
            let hint = self
                .context
                .decompress_stream(&mut target, &mut self.input)
                .map_err(|code| InflateError::Corrupt(get_error_name(code)))?;
            self.frame_ended = hint == 0;
            let written = target.pos();
            if written > 0 {
                return Ok(written);
            }
            if !self.frame_ended && self.input.pos() == before {
                return Err(CUT_SHORT);
            }
        }
    }
}

/// What frames inflate to, as far as their headers show.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds {
    least: u64,
    most: u64,
}

impl Bounds {
    fn of(mut input: &[u8]) -> Result<Self, InflateError> {
        let mut bounds = Self::default();
        while !input.is_empty() {
            let frame = match take::<4>(&mut input)? {
                MAGIC => Self::of_frame(&mut input)?,
                [kind, 0x2a, 0x4d, 0x18] if kind >> 4 == 5 => {
                    let length = u32::from_le_bytes(take(&mut input)?);
                    skip(&mut input, u64::from(length))?;
                    Self::default()
                }
                _ => return Err(InflateError::Corrupt("not a zstd frame")),
            };
            bounds.least = bounds.least.saturating_add(frame.least);
            bounds.most = bounds.most.saturating_add(frame.most);
        }
        Ok(bounds)
    }

    fn of_frame(input: &mut &[u8]) -> Result<Self, InflateError> {
        let header = Header::take(input)?;
        if header.window > 1 << ZSTD_WINDOW_LOG_MAX {
            return Err(InflateError::Corrupt("zstd window is over the limit"));
        }
        let blocks = Self::of_blocks(input, header.window.min(BLOCK_BYTES_MAX))?;
        if header.has_checksum {
            take::<4>(input)?;
        }
        match header.content {
            None => Ok(blocks),
            Some(content) if (blocks.least..=blocks.most).contains(&content) => {
                Ok(Self { least: content, most: content })
            }
            Some(_) => Err(InflateError::Corrupt("zstd content size cannot be right")),
        }
    }

    fn of_blocks(input: &mut &[u8], block_bytes_max: u64) -> Result<Self, InflateError> {
        let mut bounds = Self::default();
        loop {
            let [a, b, c] = take(input)?;
            let word = u32::from_le_bytes([a, b, c, 0]);
            let length = u64::from(word >> 3);
            if length > block_bytes_max {
                return Err(InflateError::Corrupt("zstd block is over the block size"));
            }
            let (stored, least, most) = match (word >> 1) & 3 {
                0 => (length, length, length),
                1 => (1, length, length),
                // Two bytes, for no literals and no sequences, are the least.
                2 if length >= 2 => (length, 0, block_bytes_max),
                2 => return Err(InflateError::Corrupt("zstd block is too short")),
                _ => return Err(InflateError::Corrupt("zstd block of an unknown kind")),
            };
            skip(input, stored)?;
            bounds.least = bounds.least.saturating_add(least);
            bounds.most = bounds.most.saturating_add(most);
            if word & 1 != 0 {
                return Ok(bounds);
            }
        }
    }
}

/// What a frame header says.
#[derive(Debug, Clone, Copy)]
struct Header {
    window: u64,
    content: Option<u64>,
    has_checksum: bool,
}

impl Header {
    /// Takes a header after its magic.
    fn take(input: &mut &[u8]) -> Result<Self, InflateError> {
        let [descriptor] = take(input)?;
        let is_single_segment = descriptor & 0x20 != 0;
        if descriptor & 0x08 != 0 {
            return Err(InflateError::Corrupt("zstd frame of an unknown version"));
        }
        let window = if is_single_segment {
            None
        } else {
            let [window] = take(input)?;
            let base = 1_u64 << (10 + (window >> 3));
            Some(base + (base >> 3) * u64::from(window & 7))
        };
        skip(input, [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied().unwrap_or(0))?;
        let content = match descriptor >> 6 {
            0 if is_single_segment => Some(u64::from(u8::from_le_bytes(take(input)?))),
            0 => None,
            1 => Some(u64::from(u16::from_le_bytes(take(input)?)) + 256),
            2 => Some(u64::from(u32::from_le_bytes(take(input)?))),
            _ => Some(u64::from_le_bytes(take(input)?)),
        };
        Ok(Self {
            window: window.or(content).unwrap_or(0),
            content,
            has_checksum: descriptor & 0x04 != 0,
        })
    }
}

fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], InflateError> {
    let (bytes, rest) = input.split_first_chunk::<N>().ok_or(CUT_SHORT)?;
    *input = rest;
    Ok(*bytes)
}

fn skip(input: &mut &[u8], length: u64) -> Result<(), InflateError> {
    let length = usize::try_from(length).map_err(|_| CUT_SHORT)?;
    *input = input.get(length..).ok_or(CUT_SHORT)?;
    Ok(())
}

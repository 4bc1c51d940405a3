//! Snappy, in snappy-java's framing or as one raw block.
//!
//! | bytes | field of the framing |
//! |---|---|
//! | 8 | magic `82 53 4e 41 50 50 59 00` |
//! | 4 | version, i32 BE, at least 1 |
//! | 4 | smallest version that can read it, i32 BE: not looked at |
//! | … | chunks: i32 BE length, then a raw block: uvarint inflated length, elements |
//!
//! 1. Input of 16 bytes or more that starts with the magic is framed; any other input is one block.
//! 2. Where a chunk's length should stand, a further header of 16 bytes may stand. (The Java client
//!    compares half of its magic at first, and what it does when the other half is wrong depends
//!    on the sizes of its reads; that is refused here.)
//! 3. Chunks are 1 to 2^29 bytes long. There is no end mark: one to three last bytes cannot be a
//!    chunk and are ignored, as in the Java client.
//! 4. A block states what it inflates to. That is checked against what its bytes can make and
//!    against the budget before anything is allocated.

use snap::raw::{Decoder, decompress_len};

use super::InflateError;
use super::output::{Output, Window};
use super::stream::Place;
use crate::limits::RECORD_BYTES_MAX;

pub(super) const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];

/// snappy-java's own bound on a chunk.
const CHUNK_BYTES_MAX: usize = 1 << 29;

/// Snappy's best ratio, rounded up: three bytes for a copy of 64.
const EXPANSION_MAX: usize = 22;

const CUT_SHORT: InflateError = InflateError::Corrupt("snappy ends too early");
const BAD_BLOCK: InflateError = InflateError::Corrupt("malformed snappy block");

/// The block decoder.
#[derive(Default)]
pub(super) struct Snappy {
    decoder: Decoder,
}

impl Snappy {
    pub(super) fn inflate(
        &mut self,
        input: &[u8],
        output: &mut Output,
        budget: usize,
    ) -> Result<(), InflateError> {
        let mut blocks = Blocks::parse(input)?;
        let mut total: usize = 0;
        let mut ahead = blocks.clone();
        while let Some(block) = ahead.next_block()? {
            total = total.saturating_add(inflated_bytes(block)?);
        }
        if total > budget {
            return Err(InflateError::OverBudget);
        }
        let mut room = output.room(total, budget);
        while let Some(block) = blocks.next_block()? {
            let length = inflated_bytes(block)?;
            let (target, rest) = room.split_at_mut_checked(length).ok_or(BAD_BLOCK)?;
            room = rest;
            self.inflate_block(block, target)?;
        }
        output.set_used(total);
        Ok(())
    }

    pub(super) fn stream<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
        window: Window<'d>,
    ) -> Result<Stream<'d, 'i>, InflateError> {
        Ok(Stream { snappy: self, blocks: Blocks::parse(input)?, window, ended: false })
    }

    /// A stream that was paused.
    pub(super) fn resume<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
        window: Window<'d>,
        place: Place,
    ) -> Result<Stream<'d, 'i>, InflateError> {
        let rest = place.rest(input);
        let blocks = match Blocks::parse(input)? {
            Blocks::Raw(_) => Blocks::Raw((!rest.is_empty()).then_some(rest)),
            Blocks::Framed(_) => Blocks::Framed(rest),
        };
        Ok(Stream { snappy: self, blocks, window, ended: place.ended })
    }

    /// Inflates a block into a target of exactly its stated length.
    fn inflate_block(&mut self, block: &[u8], target: &mut [u8]) -> Result<usize, InflateError> {
        match self.decoder.decompress(block, target) {
            Ok(written) if written == target.len() => Ok(written),
            _ => Err(BAD_BLOCK),
        }
    }
}

/// What a block says it inflates to, if its bytes can make that much.
fn inflated_bytes(block: &[u8]) -> Result<usize, InflateError> {
    match decompress_len(block) {
        Ok(length) if length <= block.len().saturating_mul(EXPANSION_MAX) => Ok(length),
        _ => Err(InflateError::Corrupt("snappy length cannot be right")),
    }
}

/// The raw blocks that are still to come.
#[derive(Debug, Clone)]
enum Blocks<'i> {
    Raw(Option<&'i [u8]>),
    Framed(&'i [u8]),
}

impl<'i> Blocks<'i> {
    fn parse(input: &'i [u8]) -> Result<Self, InflateError> {
        match input.strip_prefix(&MAGIC) {
            Some(versions) if versions.len() >= 8 => Ok(Self::Framed(after_versions(versions)?)),
            _ => Ok(Self::Raw(Some(input))),
        }
    }

    fn next_block(&mut self) -> Result<Option<&'i [u8]>, InflateError> {
        let rest = match self {
            Self::Raw(block) => return Ok(block.take()),
            Self::Framed(rest) => rest,
        };
        while let Some((word, tail)) = rest.split_first_chunk::<4>() {
            if let Some(versions) = rest.strip_prefix(&MAGIC) {
                *rest = after_versions(versions)?;
                continue;
            }
            let length = usize::try_from(i32::from_be_bytes(*word))
                .ok()
                .filter(|length| (1..=CHUNK_BYTES_MAX).contains(length))
                .ok_or(InflateError::Corrupt("snappy chunk length cannot be right"))?;
            let (block, tail) = tail.split_at_checked(length).ok_or(CUT_SHORT)?;
            *rest = tail;
            return Ok(Some(block));
        }
        Ok(None)
    }
}

/// Checks the version after a magic, and returns what follows the header.
fn after_versions(bytes: &[u8]) -> Result<&[u8], InflateError> {
    let (version, rest) = bytes.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
    if i32::from_be_bytes(*version) < 1 {
        return Err(InflateError::Corrupt("snappy framing of an unknown version"));
    }
    rest.get(4..).ok_or(CUT_SHORT)
}

/// Blocks being inflated one by one.
pub(super) struct Stream<'d, 'i> {
    snappy: &'d mut Snappy,
    blocks: Blocks<'i>,
    window: Window<'d>,
    ended: bool,
}

impl Stream<'_, '_> {
    pub(super) fn place(&self) -> Place {
        let left = match &self.blocks {
            Blocks::Raw(block) => block.map_or(0, <[u8]>::len),
            Blocks::Framed(rest) => rest.len(),
        };
        Place { left, taken: self.window.taken(), ended: self.ended }
    }

    pub(super) fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        loop {
            let taken = self.window.take(output);
            if taken > 0 || self.ended {
                return Ok(taken);
            }
            match self.blocks.next_block()? {
                None => self.ended = true,
                Some(block) => self.load(block)?,
            }
        }
    }

    /// A block is one piece: snappy has no window, so all of it is held.
    fn load(&mut self, block: &[u8]) -> Result<(), InflateError> {
        let length = inflated_bytes(block)?;
        if length > RECORD_BYTES_MAX {
            return Err(InflateError::OverBudget);
        }
        self.window.refill(length, |target| self.snappy.inflate_block(block, target))
    }
}

//! The LZ4 frame, as narrow as Kafka reads it.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | magic `04 22 4d 18` |
//! | 1 | FLG: bits 7–6 version 1, 5 independent blocks, 4 block checksums, 3 content size, 2 content checksum, 1–0 zero |
//! | 1 | BD: bits 6–4 block size 4…7 (64 KiB, 256 KiB, 1 MiB, 4 MiB), the others zero |
//! | 8 | content size, if flagged |
//! | 1 | HC: second byte of the xxh32 of everything from FLG to here |
//! | … | blocks: u32 LE length (top bit: stored as it is), data, u32 LE xxh32 of the data if flagged |
//! | 4 | end mark: a length of 0 |
//! | 4 | content checksum, if flagged |
//!
//! 1. Blocks that need the block before them are refused, as the Java client refuses them.
//! 2. HC must be right but for version 0 messages, whose producers put the magic into the sum too.
//! 3. The content size is skipped and the content checksum is not compared: the client doesn't
//!    either, and the checksum of the batch covers both.
//! 4. Neither the data of a block nor what it inflates to is longer than the block size of BD.
//! 5. What follows the end mark is not looked at.

use lz4::block::decompress_to_buffer;
use twox_hash::XxHash32;

use super::InflateError;
use super::output::{Output, Window};
use super::stream::Place;

pub(super) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

const CUT_SHORT: InflateError = InflateError::Corrupt("lz4 ends too early");
const BAD_BLOCK: InflateError = InflateError::Corrupt("malformed lz4 block");

/// The top bit of a block's length: the data is stored as it is.
pub(super) const STORED: u32 = 1 << 31;

/// LZ4's best ratio: each byte of a match length stands for 255 bytes.
const EXPANSION_MAX: usize = 255;

/// What to do about the header checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderChecksum {
    Verified,
    Ignored,
}

pub(super) fn inflate(
    input: &[u8],
    checksum: HeaderChecksum,
    output: &mut Output,
    budget: usize,
) -> Result<(), InflateError> {
    let mut frame = Frame::parse(input, checksum)?;
    let mut bound: usize = 0;
    let mut ahead = frame.clone();
    while let Some(block) = ahead.next_block()? {
        bound = bound.saturating_add(block.bytes_max);
    }
    let room = output.room(bound.min(budget), budget);
    let mut used = 0;
    while let Some(block) = frame.next_block()? {
        block.check()?;
        let end = used + block.bytes_max.min(room.len() - used);
        let target = room.get_mut(used..end).unwrap_or_default();
        let is_narrow = target.len() < block.bytes_max;
        used += block.inflate(target).map_err(|error| {
            // The budget cut the room: the block may be good, and the stream will tell.
            if is_narrow { InflateError::OverBudget } else { error }
        })?;
    }
    output.set_used(used);
    Ok(())
}

/// The blocks of a frame that are still to come.
#[derive(Debug, Clone)]
struct Frame<'i> {
    rest: &'i [u8],
    block_bytes_max: usize,
    has_block_checksums: bool,
    has_content_checksum: bool,
}

impl<'i> Frame<'i> {
    fn parse(input: &'i [u8], checksum: HeaderChecksum) -> Result<Self, InflateError> {
        let (magic, descriptor) = input.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
        if *magic != MAGIC {
            return Err(InflateError::Corrupt("not an lz4 frame"));
        }
        let (&[flags, sizes], _) = descriptor.split_first_chunk::<2>().ok_or(CUT_SHORT)?;
        if flags >> 6 != 1 || flags & 0x03 != 0 {
            return Err(InflateError::Corrupt("lz4 frame of an unknown version"));
        }
        if flags & 0x20 == 0 {
            return Err(InflateError::Corrupt("lz4 blocks depend on each other"));
        }
        let block_bytes_max = match sizes {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return Err(InflateError::Corrupt("lz4 block size is not allowed")),
        };
        let length = if flags & 0x08 == 0 { 2 } else { 10 };
        let (descriptor, rest) = descriptor.split_at_checked(length).ok_or(CUT_SHORT)?;
        let (&stored, rest) = rest.split_first().ok_or(CUT_SHORT)?;
        if checksum == HeaderChecksum::Verified && stored != header_checksum(descriptor) {
            return Err(InflateError::Corrupt("lz4 header checksum is wrong"));
        }
        Ok(Self {
            rest,
            block_bytes_max,
            has_block_checksums: flags & 0x10 != 0,
            has_content_checksum: flags & 0x04 != 0,
        })
    }

    /// The next block; `None` at the end mark.
    fn next_block(&mut self) -> Result<Option<Block<'i>>, InflateError> {
        let word = take_u32(&mut self.rest)?;
        let length = usize::try_from(word & !STORED).map_err(|_| CUT_SHORT)?;
        if length == 0 {
            if self.has_content_checksum {
                take_u32(&mut self.rest)?;
            }
            return Ok(None);
        }
        if length > self.block_bytes_max {
            return Err(InflateError::Corrupt("lz4 block is over the block size"));
        }
        let (data, rest) = self.rest.split_at_checked(length).ok_or(CUT_SHORT)?;
        self.rest = rest;
        let checksum =
            if self.has_block_checksums { Some(take_u32(&mut self.rest)?) } else { None };
        let is_stored = word & STORED != 0;
        let expansion = if is_stored { 1 } else { EXPANSION_MAX };
        Ok(Some(Block {
            data,
            is_stored,
            checksum,
            bytes_max: length.saturating_mul(expansion).min(self.block_bytes_max),
        }))
    }
}

#[derive(Debug, Clone, Copy)]
struct Block<'i> {
    data: &'i [u8],
    is_stored: bool,
    checksum: Option<u32>,
    /// What the block inflates to at most.
    bytes_max: usize,
}

impl Block<'_> {
    fn check(&self) -> Result<(), InflateError> {
        match self.checksum {
            Some(stored) if stored != xxh32(self.data) => {
                Err(InflateError::Corrupt("lz4 block checksum is wrong"))
            }
            _ => Ok(()),
        }
    }

    /// Inflates into the start of `target`, and returns how many bytes that made.
    fn inflate(&self, target: &mut [u8]) -> Result<usize, InflateError> {
        if self.is_stored {
            let target = target.get_mut(..self.data.len()).ok_or(BAD_BLOCK)?;
            target.copy_from_slice(self.data);
            return Ok(self.data.len());
        }
        // The slice begins where the block does, so that no match reaches into older bytes.
        let room = i32::try_from(target.len()).map_err(|_| BAD_BLOCK)?;
        decompress_to_buffer(self.data, Some(room), target).map_err(|_| BAD_BLOCK)
    }
}

/// A frame being inflated block by block.
pub(super) struct Stream<'d, 'i> {
    frame: Frame<'i>,
    window: Window<'d>,
    ended: bool,
}

impl<'d, 'i> Stream<'d, 'i> {
    pub(super) fn new(
        input: &'i [u8],
        checksum: HeaderChecksum,
        window: Window<'d>,
    ) -> Result<Self, InflateError> {
        Ok(Self { frame: Frame::parse(input, checksum)?, window, ended: false })
    }

    /// A stream that was paused; its header was checked when it began.
    pub(super) fn resume(
        input: &'i [u8],
        window: Window<'d>,
        place: Place,
    ) -> Result<Self, InflateError> {
        let mut frame = Frame::parse(input, HeaderChecksum::Ignored)?;
        frame.rest = place.rest(input);
        Ok(Self { frame, window, ended: place.ended })
    }

    pub(super) fn place(&self) -> Place {
        Place { left: self.frame.rest.len(), taken: self.window.taken(), ended: self.ended }
    }

    pub(super) fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        loop {
            let taken = self.window.take(output);
            if taken > 0 || self.ended {
                return Ok(taken);
            }
            match self.frame.next_block()? {
                None => self.ended = true,
                Some(block) => {
                    block.check()?;
                    self.window.refill(block.bytes_max, |target| block.inflate(target))?;
                }
            }
        }
    }
}

/// The header checksum of a descriptor, which is FLG, BD and the content size if there is one.
pub(super) fn header_checksum(descriptor: &[u8]) -> u8 {
    let [_, second, ..] = xxh32(descriptor).to_le_bytes();
    second
}

pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(0, bytes)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, InflateError> {
    let (word, tail) = rest.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
    *rest = tail;
    Ok(u32::from_le_bytes(*word))
}

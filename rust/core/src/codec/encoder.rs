//! Compressing the records of a batch, laid out as Kafka's producers do.
//!
//! | codec | layout | levels |
//! |---|---|---|
//! | gzip | one member, no time, system 255 | 1 to 9, −1 (default) = 6 |
//! | snappy | snappy-java's framing, version 1, chunks of 32 KiB | none |
//! | lz4 | frame of independent 64 KiB blocks without checksums (FLG 60, BD 40) | 1 to 17, default 9 |
//! | zstd | one frame without content size and checksum | −131072 to 22, default 3 |
//!
//! The levels are those of Kafka's `compression.<codec>.level`. As in Kafka, lz4 level 9 is the fast
//! compressor and every other level the one for high compression, whose strongest level is 12:
//! 13 to 17 do the same.

use std::fmt;

use libdeflater::{CompressionLvl, Compressor};
use lz4::block::{CompressionMode, compress_to_buffer};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use super::{gzip, lz4 as lz4_frame, snappy};
use crate::error::{Error, Result};
use crate::record::Codec;

/// Bytes of a snappy chunk and of an lz4 block before compression, as the Java producer cuts them.
const SNAPPY_CHUNK_BYTES: usize = 32 << 10;
const LZ4_BLOCK_BYTES: usize = 64 << 10;

/// Reusable encoder state: one per writer thread. Contexts are made when a codec is first used and
/// kept between batches. Starts no thread, touches no global.
#[derive(Default)]
pub struct Encoder {
    gzip: Option<(i32, Compressor)>,
    snappy: Option<snap::raw::Encoder>,
    zstd: Option<CCtx<'static>>,
    /// Room for compressed bytes at its high-water length, so that nothing is zeroed per batch.
    room: Vec<u8>,
}

impl Encoder {
    /// An encoder that holds nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks a compression level against Kafka's range for the codec.
    pub fn check_level(codec: Codec, level: Option<i32>) -> Result<()> {
        let Some(level) = level else { return Ok(()) };
        let is_allowed = match codec {
            Codec::None | Codec::Snappy => false,
            Codec::Gzip => level == -1 || (1..=9).contains(&level),
            Codec::Lz4 => (1..=17).contains(&level),
            Codec::Zstd => (-131_072..=22).contains(&level),
        };
        if is_allowed {
            return Ok(());
        }
        let name = codec.name();
        Err(Error::Invalid(match codec {
            Codec::None | Codec::Snappy => format!("{name} has no compression levels"),
            _ => format!("compression level {level} is out of the range of {name}"),
        }))
    }

    /// Appends the compressed form of `input` to `output`; `None` is the codec's default level.
    pub fn compress(
        &mut self,
        codec: Codec,
        level: Option<i32>,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<()> {
        Self::check_level(codec, level)?;
        match codec {
            Codec::None => output.extend_from_slice(input),
            Codec::Gzip => self.gzip(level.unwrap_or(-1), input, output)?,
            Codec::Snappy => self.snappy(input, output)?,
            Codec::Lz4 => self.lz4(level.unwrap_or(9), input, output)?,
            Codec::Zstd => self.zstd(level.unwrap_or(3), input, output)?,
        }
        Ok(())
    }

    fn gzip(&mut self, level: i32, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let level = if level == -1 { 6 } else { level };
        let compressor = match &mut self.gzip {
            Some((made_for, compressor)) if *made_for == level => compressor,
            slot => {
                let allowed = CompressionLvl::new(level).map_err(|_| failed("gzip level"))?;
                &mut slot.insert((level, Compressor::new(allowed))).1
            }
        };
        let bound = compressor.deflate_compress_bound(input.len());
        let room = grown(&mut self.room, bound);
        let written = compressor.deflate_compress(input, room).map_err(|_| failed("gzip"))?;
        output.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);
        output.extend_from_slice(room.get(..written).unwrap_or_default());
        output.extend_from_slice(&gzip::trailer_of(input));
        Ok(())
    }

    fn snappy(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let encoder = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
        output.extend_from_slice(&snappy::MAGIC);
        output.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
        let room = grown(&mut self.room, snap::raw::max_compress_len(SNAPPY_CHUNK_BYTES));
        for chunk in input.chunks(SNAPPY_CHUNK_BYTES) {
            let written = encoder.compress(chunk, room).map_err(|_| failed("snappy"))?;
            let length = u32::try_from(written).map_err(|_| failed("snappy"))?;
            output.extend_from_slice(&length.to_be_bytes());
            output.extend_from_slice(room.get(..written).unwrap_or_default());
        }
        Ok(())
    }

    fn lz4(&mut self, level: i32, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let descriptor = [0x60, 0x40];
        output.extend_from_slice(&lz4_frame::MAGIC);
        output.extend_from_slice(&descriptor);
        output.push(lz4_frame::header_checksum(&descriptor));
        let mode = if level == 9 {
            CompressionMode::DEFAULT
        } else {
            CompressionMode::HIGHCOMPRESSION(level)
        };
        let bound = lz4::block::compress_bound(LZ4_BLOCK_BYTES).map_err(|_| failed("lz4"))?;
        let room = grown(&mut self.room, bound);
        for block in input.chunks(LZ4_BLOCK_BYTES) {
            let written =
                compress_to_buffer(block, Some(mode), false, room).map_err(|_| failed("lz4"))?;
            let compressed = room.get(..written).unwrap_or_default();
            let (data, stored) =
                if written < block.len() { (compressed, 0) } else { (block, lz4_frame::STORED) };
            let length = u32::try_from(data.len()).map_err(|_| failed("lz4"))?;
            output.extend_from_slice(&(length | stored).to_le_bytes());
            output.extend_from_slice(data);
        }
        output.extend_from_slice(&[0; 4]);
        Ok(())
    }

    fn zstd(&mut self, level: i32, input: &[u8], output: &mut Vec<u8>) -> Result<()> {
        let context = self.zstd.get_or_insert_with(CCtx::create);
        let room = grown(&mut self.room, zstd_safe::compress_bound(input.len()));
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(room);
        let mut step = || {
            context.reset(ResetDirective::SessionOnly)?;
            context.set_parameter(CParameter::CompressionLevel(level))?;
            context.set_parameter(CParameter::ContentSizeFlag(false))?;
            // All input goes in before the end is announced: the frame gets the window of an
            // unknown length, as from the Java producer, which compresses while records come in.
            let go_on = ZSTD_EndDirective::ZSTD_e_continue;
            context.compress_stream2(&mut target, &mut source, go_on)?;
            while source.pos() < input.len() {
                context.compress_stream2(&mut target, &mut source, go_on)?;
            }
            let end = ZSTD_EndDirective::ZSTD_e_end;
            while context.compress_stream2(&mut target, &mut source, end)? != 0 {}
            Ok(target.pos())
        };
        let written = step().map_err(|code| failed(get_error_name(code)))?;
        output.extend_from_slice(room.get(..written).unwrap_or_default());
        Ok(())
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// A buffer of at least `wanted` bytes with arbitrary content.
fn grown(room: &mut Vec<u8>, wanted: usize) -> &mut [u8] {
    if room.len() < wanted {
        room.resize(wanted, 0);
    }
    room
}

/// What compressors say only when they are given too little room or memory.
fn failed(what: &str) -> Error {
    Error::Invalid(format!("cannot compress: {what}"))
}

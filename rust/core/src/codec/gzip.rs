//! gzip, RFC 1952: members one after another.
//!
//! | bytes | field of a member |
//! |---|---|
//! | 2 | `1f 8b` |
//! | 1 | method, 8 = deflate |
//! | 1 | flags: 02 header CRC, 04 extra field, 08 name, 10 comment |
//! | 4, 1, 1 | modification time, extra flags, system: not looked at |
//! | … | extra field (u16 LE length), name (to 0), comment (to 0), header CRC (u16 LE), as flagged |
//! | … | deflate stream |
//! | 4 | CRC-32 of the inflated bytes, LE |
//! | 4 | their number modulo 2^32, LE |
//!
//! Reserved flags are not looked at, as in the Java client. Writers put one member in a batch.
//!
//! As the Java client does it: the trailer stands right behind the deflate data and must be right;
//! what follows it is a further member if it begins with a header, and ignored otherwise.
//!
//! The common case, one member, goes through libdeflate in one call. Its binding does not say how
//! much input it used; that the member is the only one is known because nothing in the input could
//! be the header of a further one. Everything else goes through the stream: further members, a
//! buffer that the last bytes made too small because they are no trailer, reserved flags, which
//! libdeflate refuses, and whatever it calls bad, so that one place names what is wrong.

use crc_fast::{CrcAlgorithm, Digest};
use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{DecompressionError, Decompressor};
use memchr::{memchr, memmem};

use super::InflateError;
use super::output::Output;
use super::stream::Place;
use crate::record::crc32;

const CUT_SHORT: InflateError = InflateError::Corrupt("gzip ends too early");
const BAD_DEFLATE: InflateError = InflateError::Corrupt("gzip holds malformed deflate data");
const BAD_TRAILER: InflateError = InflateError::Corrupt("gzip checksum or length is wrong");
const BAD_HEADER: InflateError = InflateError::Corrupt("not a gzip header");

/// What every member begins with.
const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 8];

/// Deflate's best ratio: two bits for a match of 258 bytes.
const EXPANSION_MAX: usize = 1032;

/// Fewer bytes after a member are not looked at: the Java client seeks no member in 18 or less.
const NEXT_MEMBER_BYTES_MIN: usize = 19;

/// Both inflaters, made when first needed.
#[derive(Default)]
pub(super) struct Gzip {
    whole: Option<Decompressor>,
    piecewise: Option<Piecewise>,
}

struct Piecewise {
    inflater: Decompress,
    crc: Digest,
}

impl Gzip {
    pub(super) fn inflate(
        &mut self,
        input: &[u8],
        output: &mut Output,
        budget: usize,
    ) -> Result<(), InflateError> {
        let body = after_header(input)?;
        let (deflate, [_, _, _, _, length @ ..]) = body.split_last_chunk::<8>().ok_or(CUT_SHORT)?;
        // The length in the trailer sizes the buffer and proves nothing.
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let room = length.min(deflate.len().saturating_mul(EXPANSION_MAX)).min(budget);
        let whole = self.whole.get_or_insert_with(Decompressor::new);
        match whole.gzip_decompress(input, output.room(room, budget)) {
            Ok(written) if memmem::find(body, &MEMBER_START).is_none() => {
                output.set_used(written);
                return Ok(());
            }
            Err(DecompressionError::InsufficientSpace) if room == budget => {
                return Err(InflateError::OverBudget);
            }
            _ => {}
        }
        let mut stream = self.stream(input)?;
        output.fill(budget, |target| stream.read(target))
    }

    /// A stream that was paused; `None` when none was begun.
    pub(super) fn resume<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
        place: Place,
    ) -> Option<Stream<'d, 'i>> {
        let member = self.piecewise.as_mut()?;
        Some(Stream { member, rest: place.rest(input), ended: place.ended })
    }

    pub(super) fn stream<'d, 'i>(
        &'d mut self,
        input: &'i [u8],
    ) -> Result<Stream<'d, 'i>, InflateError> {
        let rest = after_header(input)?;
        let member = self.piecewise.get_or_insert_with(|| Piecewise {
            inflater: Decompress::new(false),
            crc: Digest::new(CrcAlgorithm::Crc32IsoHdlc),
        });
        member.inflater.reset(false);
        member.crc.reset();
        Ok(Stream { member, rest, ended: false })
    }
}

/// Members being inflated piece by piece.
pub(super) struct Stream<'d, 'i> {
    member: &'d mut Piecewise,
    rest: &'i [u8],
    ended: bool,
}

impl Stream<'_, '_> {
    pub(super) fn place(&self) -> Place {
        Place { left: self.rest.len(), taken: 0, ended: self.ended }
    }

    pub(super) fn read(&mut self, output: &mut [u8]) -> Result<usize, InflateError> {
        while !self.ended {
            let (consumed, written, status) = self.step(output)?;
            if status == Status::StreamEnd {
                self.end_member()?;
            } else if consumed == 0 && written == 0 {
                return Err(CUT_SHORT);
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }

    fn step(&mut self, output: &mut [u8]) -> Result<(usize, usize, Status), InflateError> {
        let Piecewise { inflater, crc } = &mut *self.member;
        let (total_in, total_out) = (inflater.total_in(), inflater.total_out());
        let status = inflater
            .decompress(self.rest, output, FlushDecompress::None)
            .map_err(|_| BAD_DEFLATE)?;
        let consumed = difference(inflater.total_in(), total_in);
        let written = difference(inflater.total_out(), total_out);
        self.rest = self.rest.get(consumed..).unwrap_or_default();
        crc.update(output.get(..written).unwrap_or_default());
        Ok((consumed, written, status))
    }

    /// Checks the trailer and goes to the next member, if there is one.
    fn end_member(&mut self) -> Result<(), InflateError> {
        let (trailer, rest) = self.rest.split_first_chunk::<8>().ok_or(CUT_SHORT)?;
        let crc = self.member.crc.finalize_reset();
        if *trailer != trailer_bytes(crc, self.member.inflater.total_out()) {
            return Err(BAD_TRAILER);
        }
        match after_header(rest) {
            Ok(body) if rest.len() >= NEXT_MEMBER_BYTES_MIN => {
                self.rest = body;
                self.member.inflater.reset(false);
            }
            _ => self.ended = true,
        }
        Ok(())
    }
}

/// What stands after the header of the member at the start of `input`.
fn after_header(input: &[u8]) -> Result<&[u8], InflateError> {
    let (fixed, mut rest) = input.split_first_chunk::<10>().ok_or(CUT_SHORT)?;
    let [id1, id2, method, flags, ..] = *fixed;
    if [id1, id2, method] != MEMBER_START {
        return Err(BAD_HEADER);
    }
    if flags & 0x04 != 0 {
        let (length, tail) = rest.split_first_chunk::<2>().ok_or(CUT_SHORT)?;
        let length = usize::from(u16::from_le_bytes(*length));
        rest = tail.get(length..).ok_or(CUT_SHORT)?;
    }
    for text in [0x08, 0x10] {
        if flags & text != 0 {
            let end = memchr(0, rest).ok_or(CUT_SHORT)?;
            rest = rest.get(end + 1..).ok_or(CUT_SHORT)?;
        }
    }
    if flags & 0x02 != 0 {
        let header = input.get(..input.len() - rest.len()).unwrap_or_default();
        let [low, high, ..] = crc32(header).to_le_bytes();
        rest = match rest.split_first_chunk::<2>() {
            Some((stored, tail)) if *stored == [low, high] => tail,
            Some(_) => return Err(BAD_HEADER),
            None => return Err(CUT_SHORT),
        };
    }
    Ok(rest)
}

/// The trailer of a member that inflates to `bytes`.
pub(super) fn trailer_of(bytes: &[u8]) -> [u8; 8] {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    trailer_bytes(u64::from(crc32(bytes)), length)
}

fn trailer_bytes(crc: u64, length: u64) -> [u8; 8] {
    (crc | length << 32).to_le_bytes()
}

fn difference(now: u64, before: u64) -> usize {
    usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX)
}

//! Finding the next good entry after a damaged one.

use super::{EntryHead, Window};
use crate::error::Result;
use crate::fs::File;
use crate::limits::HEADER_UP_TO_MAGIC;
use crate::record::{crc32, crc32c};

/// Bytes searched at a time.
const SEARCH_BYTES: usize = 256 << 10;

/// How often the remaining bytes may be checksummed in all before the search gives up: bytes made
/// to look like headers at every position would otherwise take quadratic time.
const CHECKSUM_ROUNDS: u64 = 16;

/// The offsets a good entry may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plausible {
    pub(super) from: i64,
    pub(super) below: i64,
}

/// Position of the first whole, valid entry after the one at the window's position.
/// `declared` is where the damaged entry says it ends: a good entry there is believed before one
/// that stands inside it, since a record's value may itself hold a batch.
pub(super) fn next_good<F: File>(
    window: &Window<F>,
    declared: Option<u64>,
    plausible: Plausible,
) -> Result<Option<u64>> {
    let mut budget = window.remaining().saturating_mul(CHECKSUM_ROUNDS).max(1 << 20);
    if let Some(position) = declared
        && is_good(window, position, plausible, &mut budget)?
    {
        return Ok(Some(position));
    }
    let mut buffer = vec![0; SEARCH_BYTES + EntryHead::BYTES];
    let mut from = window.position().saturating_add(1);
    while from < window.limit() && budget > 0 {
        let read = window.peek_at(from, &mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        let starts = read.min(SEARCH_BYTES);
        for start in 0..starts {
            let candidate = bytes.get(start..).unwrap_or_default();
            if !looks_like_an_entry(candidate) {
                continue;
            }
            let position = from.saturating_add(u64::try_from(start).unwrap_or(0));
            let left = window.limit().saturating_sub(position);
            let head = candidate.get(..EntryHead::BYTES.min(candidate.len())).unwrap_or_default();
            if is_plausible(head, left, plausible).is_some()
                && is_good(window, position, plausible, &mut budget)?
            {
                return Ok(Some(position));
            }
        }
        if starts == 0 {
            break;
        }
        from = from.saturating_add(u64::try_from(starts).unwrap_or(0));
    }
    Ok(None)
}

/// A cheap look before the head is parsed: magic, and the sign and zero of the size.
#[inline]
fn looks_like_an_entry(bytes: &[u8]) -> bool {
    let Some(start) = bytes.first_chunk::<HEADER_UP_TO_MAGIC>() else {
        return false;
    };
    let [first, _, _, _, _, _, _, _, s0, s1, s2, s3, _, _, _, _, magic] = *start;
    magic <= 2 && first < 0x80 && s0 < 0x80 && (s0 | s1 | s2 | s3) != 0
}

fn is_plausible(head: &[u8], left: u64, plausible: Plausible) -> Option<EntryHead> {
    let head = EntryHead::read(head, left).ok()?;
    let first = head.base_offset().unwrap_or_else(|| head.last_offset());
    (first >= plausible.from && head.last_offset() < plausible.below).then_some(head)
}

fn is_good<F: File>(
    window: &Window<F>,
    position: u64,
    plausible: Plausible,
    budget: &mut u64,
) -> Result<bool> {
    let mut start = [0; EntryHead::BYTES];
    let read = window.peek_at(position, &mut start)?;
    let left = window.limit().saturating_sub(position);
    let Some(head) = is_plausible(start.get(..read).unwrap_or_default(), left, plausible) else {
        return Ok(false);
    };
    let total = head.total_bytes();
    *budget = budget.saturating_sub(u64::try_from(total).unwrap_or(u64::MAX));
    let mut bytes = vec![0; total];
    Ok(window.peek_at(position, &mut bytes)? == total && crc_is_right(&head, &bytes))
}

fn crc_is_right(head: &EntryHead, bytes: &[u8]) -> bool {
    match head {
        EntryHead::Batch(header) => bytes.get(21..).map(crc32c) == Some(header.crc),
        EntryHead::Message(_) => {
            let stored = bytes.get(12..).and_then(|rest| rest.first_chunk()).copied();
            bytes.get(16..).map(crc32) == stored.map(u32::from_be_bytes)
        }
    }
}

//! Finding the next good entry after a damaged one.

use std::ops::Range;

use super::{EntryHead, Window};
use crate::error::Result;
use crate::fs::File;
use crate::limits::{CRC_COVERS_FROM, HEADER_UP_TO_MAGIC};
use crate::record::{crc32, crc32c};

/// Bytes searched at a time, at first and at most: the next good entry is near as a rule.
const SEARCH_BYTES_MIN: usize = 4 << 10;
const SEARCH_BYTES_MAX: usize = 256 << 10;

/// How often the bytes of a walk may be checksummed in all before its searches give up: bytes made
/// to look like headers at every position would otherwise take quadratic time.
const CHECKSUM_ROUNDS: u64 = 16;

/// How far behind a good entry another is looked for that proves the length of the damaged one
/// wrong: more than a broker takes for a batch unless it is told to.
const LENGTH_LOOKAHEAD: u64 = 4 << 20;

/// Bytes that the searches of one walk may still checksum.
#[derive(Debug)]
pub(super) struct SearchBudget(u64);

impl SearchBudget {
    pub(super) fn over(remaining: u64) -> Self {
        Self(remaining.saturating_mul(CHECKSUM_ROUNDS).max(1 << 20))
    }
}

/// The offsets a good entry may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plausible {
    pub(super) from: i64,
    pub(super) below: i64,
}

/// Position of the first whole, valid entry after the one at the window's position.
///
/// `declared` is where the damaged entry says it ends: a good entry there is believed before one
/// that stands inside it, since a record's value may itself hold a batch. Better still is a good
/// entry up to which the damaged one has the checksum it stores: then its length is what was
/// damaged.
pub(super) fn next_good<F: File>(
    window: &Window<F>,
    declared: Option<u64>,
    plausible: Plausible,
    budget: &mut SearchBudget,
    pulse: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<u64>> {
    let checksum = checksum_of(window)?;
    let mut found = None;
    if let Some(position) = declared
        && is_good(window, position, plausible, budget)?
    {
        found = Some(position);
    }
    if let Some(position) = found
        && (checksum.is_none() || sum_up_to(window, position)? == checksum)
    {
        return Ok(found);
    }
    let mut end = found.unwrap_or(window.limit());
    let mut from = window.position().saturating_add(1);
    while let Some(position) = search(window, from..end, plausible, budget, pulse)? {
        if checksum.is_none() {
            return Ok(Some(position));
        }
        if spend(budget, position.saturating_sub(window.position()))
            && sum_up_to(window, position)? == checksum
        {
            return Ok(Some(position));
        }
        if found.is_none() {
            found = Some(position);
            end = end.min(position.saturating_add(LENGTH_LOOKAHEAD));
        }
        from = position.saturating_add(1);
    }
    Ok(found)
}

/// The checksum that the damaged entry stores, if it is of the current version.
fn checksum_of<F: File>(window: &Window<F>) -> Result<Option<u32>> {
    let mut start = [0; CRC_COVERS_FROM];
    let read = window.peek_at(window.position(), &mut start)?;
    let [.., magic, c0, c1, c2, c3] = start;
    Ok((read == start.len() && magic == 2).then(|| u32::from_be_bytes([c0, c1, c2, c3])))
}

/// The checksum of the damaged entry if it ended at a position.
fn sum_up_to<F: File>(window: &Window<F>, position: u64) -> Result<Option<u32>> {
    let bytes = position.saturating_sub(window.position());
    let mut entry = vec![0; usize::try_from(bytes).unwrap_or(0)];
    window.peek_at(window.position(), &mut entry)?;
    Ok(entry.get(CRC_COVERS_FROM..).map(crc32c))
}

/// Takes bytes from the budget; false when it is spent.
fn spend(budget: &mut SearchBudget, bytes: u64) -> bool {
    budget.0 = budget.0.saturating_sub(bytes);
    budget.0 > 0
}

/// Position of the first whole, valid entry that starts in a range.
fn search<F: File>(
    window: &Window<F>,
    range: Range<u64>,
    plausible: Plausible,
    budget: &mut SearchBudget,
    pulse: &mut dyn FnMut() -> Result<()>,
) -> Result<Option<u64>> {
    let mut buffer = Vec::new();
    let mut search_bytes = SEARCH_BYTES_MIN;
    let mut from = range.start;
    while from < range.end && budget.0 > 0 {
        pulse()?;
        buffer.resize(search_bytes + EntryHead::BYTES, 0);
        let read = window.peek_at(from, &mut buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        let in_range = usize::try_from(range.end.saturating_sub(from)).unwrap_or(usize::MAX);
        let starts = read.min(search_bytes).min(in_range);
        for start in 0..starts {
            let candidate = bytes.get(start..).unwrap_or_default();
            if !looks_like_an_entry(candidate) {
                continue;
            }
            let position = from.saturating_add(u64::try_from(start).unwrap_or(0));
            let left = window.limit().saturating_sub(position);
            let head = candidate.get(..EntryHead::BYTES.min(candidate.len())).unwrap_or_default();
            if is_plausible(head, left, plausible).is_some() {
                pulse()?;
                if is_good(window, position, plausible, budget)? {
                    return Ok(Some(position));
                }
            }
        }
        if starts == 0 {
            break;
        }
        from = from.saturating_add(u64::try_from(starts).unwrap_or(0));
        search_bytes = search_bytes.saturating_mul(4).min(SEARCH_BYTES_MAX);
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
    budget: &mut SearchBudget,
) -> Result<bool> {
    let mut start = [0; EntryHead::BYTES];
    let read = window.peek_at(position, &mut start)?;
    let left = window.limit().saturating_sub(position);
    let Some(head) = is_plausible(start.get(..read).unwrap_or_default(), left, plausible) else {
        return Ok(false);
    };
    let total = head.total_bytes();
    spend(budget, u64::try_from(total).unwrap_or(u64::MAX));
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

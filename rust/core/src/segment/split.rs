//! Splitting a segment whose offsets do not fit its base, as old releases could leave one.
//!
//! The parts are written as `.cleaned`, synced, and renamed to `.swap` from the last to the first. A
//! crash before the last rename leaves a `.cleaned` file below every `.swap`, and the parts are
//! thrown away; after it there are only `.swap` files, and they replace the original. Either way
//! that is done by whoever looks at the directory next (`log/leftovers.rs`), which makes the
//! indexes of the parts anew.
//!
//! 1. The first part has the base offset of the original, also where no entry fits it and it stays
//!    empty: that is how the original is known to be replaced.
//! 2. The first part gets its `.swap` last, when those of the others are on the device. A `.swap`
//!    without `.cleaned` therefore means that all parts are there.

use super::active::to_u64;
use super::name;
use super::read::Heads;
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::fs::{Create, File, WriteDir, WriteFile};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::names::{FileKind, FileState, SegmentFile};

/// Bytes copied at once.
const COPY_BYTES: usize = 1 << 20;

/// A part of the segment: its base offset and where its bytes begin and end.
struct Part {
    base_offset: i64,
    from: u64,
    to: u64,
}

/// Writes the parts of a segment and gives them the names under which they replace it.
pub(crate) fn split<D: WriteDir>(dir: &D, base_offset: i64, config: &LogConfig) -> Result<()> {
    debug_assert!(config.segment_index_bytes > 0, "indexes are made by the recovery that follows");
    let file = dir.open(&name(base_offset, FileKind::Log))?;
    let bytes = file.facts()?.bytes;
    let parts = parts(&file, base_offset, bytes)?;
    if parts.len() < 2 {
        return Err(Error::Invalid(format!(
            "{} has an offset that does not fit it and cannot be split",
            file.path().display()
        )));
    }
    for part in &parts {
        copy(dir, &file, part)?;
    }
    dir.sync()?;
    let promote = |part: &Part| {
        let named = |state| {
            SegmentFile { base_offset: part.base_offset, kind: FileKind::Log, state }.to_string()
        };
        dir.rename(&named(FileState::Cleaned), &named(FileState::Swap))
    };
    let (first, others) = (parts.first(), parts.get(1..).unwrap_or_default());
    others.iter().rev().try_for_each(promote)?;
    dir.sync()?;
    first.into_iter().try_for_each(promote)?;
    dir.sync()
}

/// Where each part begins: with the first entry that does not fit the part before.
fn parts<F: File>(file: &F, base_offset: i64, bytes: u64) -> Result<Vec<Part>> {
    let mut parts = vec![Part { base_offset, from: 0, to: 0 }];
    let mut heads = Heads::new(file, 0, bytes);
    let mut next_offset = base_offset;
    loop {
        let (position, head) = match heads.next() {
            Ok(Some(found)) => found,
            // What is damaged stays at the end of the last part, for the recovery to judge.
            Ok(None) | Err(Error::Corrupt { .. }) => break,
            Err(error) => return Err(error),
        };
        let last_offset = head.last_offset();
        let end = position.saturating_add(to_u64(head.total_bytes()));
        let fits = parts.last().is_some_and(|part| {
            last_offset.saturating_sub(part.base_offset) <= i64::from(i32::MAX)
                && end.saturating_sub(part.from) <= SEGMENT_BYTES_MAX
        });
        if !fits {
            // A compressed set of an old format tells only its last offset. Its first one is not
            // below the end of the set before.
            let lowest = last_offset.saturating_sub(i64::from(i32::MAX)).max(next_offset);
            let base_offset = head.base_offset().unwrap_or(lowest);
            parts.push(Part { base_offset, from: position, to: position });
        }
        if let Some(part) = parts.last_mut() {
            part.to = end;
        }
        next_offset = last_offset.saturating_add(1);
    }
    if let Some(last) = parts.last_mut() {
        last.to = bytes;
    }
    Ok(parts)
}

fn copy<D: WriteDir>(dir: &D, file: &D::File, part: &Part) -> Result<()> {
    let state = FileState::Cleaned;
    let to = SegmentFile { base_offset: part.base_offset, kind: FileKind::Log, state }.to_string();
    let output = dir.open_write(&to, Create::IfMissing)?;
    output.set_len(0)?;
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = part.from;
    while at < part.to {
        let ask = usize::try_from(part.to - at).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read_at(buffer.get_mut(..ask).unwrap_or_default(), at)?;
        let Some(read) = buffer.get(..read).filter(|read| !read.is_empty()) else { break };
        output.write_at(read, at - part.from)?;
        at = at.saturating_add(to_u64(read.len()));
    }
    output.set_modified(file.facts()?.modified_ms)?;
    output.sync()
}

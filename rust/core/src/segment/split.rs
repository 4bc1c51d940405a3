//! Splitting a segment whose offsets do not fit its base, as old releases could leave one.
//!
//! The parts are written as `.cleaned`, synced, and renamed to `.swap` from the last to the first. A
//! crash before the last rename leaves a `.cleaned` file below every `.swap`, and the parts are
//! thrown away; after it there are only `.swap` files, and they replace the original. Either way
//! that is done by whoever looks at the directory next (`log/leftovers.rs`), which makes the
//! indexes of the parts anew.

use super::active::to_u64;
use super::name;
use super::read::Heads;
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::fs::{Create, File, WriteDir, WriteFile};
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
    let parts = parts(&file, bytes)?;
    if parts.len() < 2 && parts.first().is_none_or(|part| part.base_offset == base_offset) {
        return Err(Error::Invalid(format!(
            "{} has an offset that does not fit it and cannot be split",
            file.path().display()
        )));
    }
    for part in &parts {
        copy(dir, &file, part)?;
    }
    dir.sync()?;
    for part in parts.iter().rev() {
        let named = |state| {
            SegmentFile { base_offset: part.base_offset, kind: FileKind::Log, state }.to_string()
        };
        dir.rename(&named(FileState::Cleaned), &named(FileState::Swap))?;
    }
    dir.sync()
}

/// Where each part begins: with the first batch whose offsets do not fit the part before.
fn parts<F: File>(file: &F, bytes: u64) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    let mut heads = Heads::new(file, 0, bytes);
    loop {
        let (position, head) = match heads.next() {
            Ok(Some(found)) => found,
            // What is damaged stays at the end of the last part, for the recovery to judge.
            Ok(None) | Err(Error::Corrupt { .. }) => break,
            Err(error) => return Err(error),
        };
        let first = head.base_offset().unwrap_or_else(|| head.last_offset());
        let fits = parts.last().is_some_and(|part| {
            head.last_offset().saturating_sub(part.base_offset) <= i64::from(i32::MAX)
        });
        if !fits {
            parts.push(Part { base_offset: first, from: position, to: position });
        }
        if let Some(part) = parts.last_mut() {
            part.to = position.saturating_add(to_u64(head.total_bytes()));
        }
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

//! Finishing or undoing what a crash interrupted, told by the names in the directory.
//!
//! | found | means | done |
//! |---|---|---|
//! | `x.deleted` | the file waited for its removal | removed |
//! | `x.cleaned` | a compaction or split had not finished its output | removed |
//! | `x.swap`, base below every `.cleaned` | its output was complete; the old files may be there or not | old files removed, renamed |
//! | `x.swap`, base at or above a `.cleaned` | a split was renaming its parts, last one first | removed: the original is whole |
//! | an index without its log | a removal was under way | removed |
//! | `x.tmp` | a replacement was being written | left: it is overwritten by the next one |
//!
//! Every step can be interrupted and begun again: what a later step needs is still there until that
//! step is done. A power cut keeps any selection of names that were not synced, so the directory is
//! synced wherever one name gives the others their meaning:
//!
//! 1. A `.cleaned` says that the `.swap` files above it are incomplete. It goes after them.
//! 2. A `.log.swap` says that the old files of its range are replaced. It gets its name after they
//!    are gone, before its indexes do (so that they are not taken for old ones), and from the lowest
//!    up (so that a finished one never lies inside the range of those that are left).

use std::collections::BTreeSet;

use super::recovery::{Leftover, Recovery};
use crate::error::{Error, Result};
use crate::fs::{Dir, EntryKind, File, WriteDir};
use crate::names::{FileKind, FileState, SegmentFile};
use crate::segment::{EntryHead, Window};

/// Makes the directory consist of final names only, and gives the base offsets of its segments.
pub(super) fn settle<D: WriteDir>(dir: &D, recovery: &mut Recovery) -> Result<BTreeSet<i64>> {
    let before = recovery.leftovers.len();
    let files = files_of(dir)?;
    remove(dir, recovery, files.iter().filter(|file| file.state == FileState::Deleted))?;
    let cleaned = || files.iter().filter(|file| file.state == FileState::Cleaned);
    let first_cleaned = cleaned().map(|file| file.base_offset).min().unwrap_or(i64::MAX);
    let (undone, complete): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|file| file.state == FileState::Swap)
        .partition(|file| file.base_offset >= first_cleaned);
    if !undone.is_empty() {
        remove(dir, recovery, undone)?;
        dir.sync()?;
    }
    remove(dir, recovery, cleaned())?;
    complete_swaps(dir, recovery, &files, &complete)?;
    let files = files_of(dir)?;
    let bases = bases_of(&files);
    remove_orphans(dir, recovery, &files, &bases)?;
    if recovery.leftovers.len() > before {
        dir.sync()?;
    }
    Ok(bases)
}

fn files_of<D: Dir>(dir: &D) -> Result<Vec<SegmentFile>> {
    let mut files = Vec::new();
    for entry in dir.list()? {
        let Some(file) = SegmentFile::parse(&entry.name) else { continue };
        match entry.kind {
            EntryKind::File => files.push(file),
            // Without it the log would go on as if its records had never been.
            _ if file.kind == FileKind::Log && file.state != FileState::Deleted => {
                let path = dir.path().join(entry.name);
                return Err(Error::Invalid(format!("{} is not a regular file", path.display())));
            }
            _ => {}
        }
    }
    files.sort_unstable_by_key(|file| (file.base_offset, file.kind));
    Ok(files)
}

fn bases_of(files: &[SegmentFile]) -> BTreeSet<i64> {
    let logs = files.iter().filter(|f| f.kind == FileKind::Log && f.state == FileState::Live);
    logs.map(|file| file.base_offset).collect()
}

fn remove<'a, D: WriteDir>(
    dir: &D,
    recovery: &mut Recovery,
    files: impl IntoIterator<Item = &'a SegmentFile>,
) -> Result<()> {
    for file in files {
        let name = file.to_string();
        dir.unlink(&name)?;
        recovery.leftovers.push((dir.path().join(name), Leftover::Removed));
    }
    Ok(())
}

/// Removes the files that swaps replace, then gives the swaps their names.
fn complete_swaps<D: WriteDir>(
    dir: &D,
    recovery: &mut Recovery,
    files: &[SegmentFile],
    swaps: &[&SegmentFile],
) -> Result<()> {
    let (logs, others): (Vec<&SegmentFile>, Vec<_>) =
        swaps.iter().copied().partition(|file| file.kind == FileKind::Log);
    let mut ends = Vec::new();
    for log in &logs {
        ends.push(next_offset(dir, log)?);
    }
    let from = logs.iter().map(|log| log.base_offset).min();
    if let (Some(from), Some(to)) = (from, ends.into_iter().max()) {
        // A swap that is empty still replaces the segment of its name.
        let range = from..to.max(from.saturating_add(1));
        let replaced = |file: &&SegmentFile| {
            file.state == FileState::Live
                && range.contains(&file.base_offset)
                // A snapshot tells of what lies before its offset, which is not replaced.
                && !(file.kind == FileKind::Snapshot && file.base_offset == from)
        };
        remove(dir, recovery, files.iter().filter(replaced))?;
        dir.sync()?;
    }
    for log in logs {
        complete(dir, recovery, log)?;
        dir.sync()?;
    }
    others.into_iter().try_for_each(|file| complete(dir, recovery, file))
}

/// Gives a swap its final name.
fn complete<D: WriteDir>(dir: &D, recovery: &mut Recovery, file: &SegmentFile) -> Result<()> {
    let live = SegmentFile { state: FileState::Live, ..*file };
    dir.rename(&file.to_string(), &live.to_string())?;
    recovery.leftovers.push((dir.path().join(file.to_string()), Leftover::Completed));
    Ok(())
}

/// The offset after the last entry of a file that was complete and synced before it got its suffix.
fn next_offset<D: Dir>(dir: &D, log: &SegmentFile) -> Result<i64> {
    let file = dir.open(&log.to_string())?;
    let bytes = file.facts()?.bytes;
    let mut window = Window::new(file, 0, bytes, 8 << 10);
    let mut next = log.base_offset;
    while window.remaining() > 0 {
        let left = window.remaining();
        let Ok(head) = EntryHead::read(window.ensure(EntryHead::BYTES)?, left) else { break };
        next = head.last_offset().saturating_add(1);
        window.skip(head.total_bytes());
    }
    Ok(next)
}

fn remove_orphans<D: WriteDir>(
    dir: &D,
    recovery: &mut Recovery,
    files: &[SegmentFile],
    bases: &BTreeSet<i64>,
) -> Result<()> {
    let is_index =
        |kind| matches!(kind, FileKind::Index | FileKind::TimeIndex | FileKind::TxnIndex);
    let orphans = files.iter().filter(|file| {
        file.state == FileState::Live && is_index(file.kind) && !bases.contains(&file.base_offset)
    });
    remove(dir, recovery, orphans)
}

//! Finding batch starts inside a segment through its offset index.
//!
//! An index is a cache that nothing protects, so an entry is believed only when a whole batch with
//! a right checksum stands where it points. The checksum does not cover the batch's offset and
//! epoch, and a reader that starts there has nothing before it to hold them against; so they are
//! held against the batches since the index entry before, as a reader that comes from there would.

use kafkaseg_core::fs::{Dir, File, Fs};
use kafkaseg_core::index::OffsetIndexView;
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::record::EntryView;
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{Error, Result};

use crate::plan::{Chunk, Plan};
use crate::reader::HEAD_READ_BYTES;
use crate::snapshot::{Partition, Segment};

/// Entries tried before the index counts as wrong.
const TRIES_MAX: usize = 8;

/// Bytes that are looked at to confirm an index entry, before it and in it.
const CONFIRM_BYTES_MAX: u64 = 64 << 20;

/// Cuts chunks; keeps the index of the segment it cut last.
#[derive(Default)]
pub(crate) struct Cutter {
    loaded: Option<((usize, usize), Vec<u64>)>,
}

/// A batch start that was confirmed.
struct BatchStart {
    position: u64,
    head: EntryHead,
}

impl Cutter {
    /// Cuts a chunk at the batch start nearest behind `target`.
    pub(crate) fn cut<S: Fs>(
        &mut self,
        fs: &S,
        plan: &Plan,
        chunk: Chunk,
        target: u64,
    ) -> Result<Option<(Chunk, Chunk)>> {
        let Some(partition) = plan.partitions.get(chunk.partition) else { return Ok(None) };
        let partition = &partition.snapshot;
        let Some(segment) = partition.segments.get(chunk.segment) else { return Ok(None) };
        let Some(file) = unless_changed(partition.open_segment(fs, segment))? else {
            return Ok(None);
        };
        let target = target.clamp(chunk.start + 1, chunk.end);
        let positions = self.positions(fs, partition, segment, &chunk)?;
        let from = positions.partition_point(|position| *position < target);
        let later = (from..positions.len()).take(TRIES_MAX);
        let earlier = (0..from).rev().take(TRIES_MAX);
        for index in later.chain(earlier) {
            let Some(position) = positions.get(index).copied() else { continue };
            if position <= chunk.start || position >= chunk.end {
                continue;
            }
            let before = index.checked_sub(1).and_then(|index| positions.get(index));
            let before = before.copied().filter(|before| *before > chunk.start);
            let start = unless_changed(confirm(&file, partition, &chunk, before, position))?;
            if let Some(start) = start.flatten() {
                return Ok(Some(halves(chunk, &start)));
            }
        }
        if positions.is_empty() {
            return Ok(unless_changed(walk_to(file, partition, chunk, target))?.flatten());
        }
        Ok(None)
    }

    /// Moves a chunk's start to a batch at or before `offset`.
    pub(crate) fn seek<S: Fs>(
        fs: &S,
        partition: &Partition,
        chunk: &mut Chunk,
        offset: i64,
    ) -> Result<()> {
        let Some(segment) = partition.segments.get(chunk.segment) else { return Ok(()) };
        let Some(bytes) = read_index(fs, partition, segment)? else { return Ok(()) };
        let view = OffsetIndexView::new(segment.base_offset, &bytes);
        let Some(entry) = view.lookup(offset) else { return Ok(()) };
        let position = u64::from(entry.position);
        let before = view.lookup(entry.offset.saturating_sub(1));
        let before = before.map(|before| u64::from(before.position)).filter(|at| *at < position);
        if position <= chunk.start || position >= chunk.end {
            return Ok(());
        }
        let Some(file) = unless_changed(partition.open_segment(fs, segment))? else {
            return Ok(());
        };
        let start = unless_changed(confirm(&file, partition, chunk, before, position))?;
        if let Some(start) = start.flatten() {
            let first = start.head.base_offset().unwrap_or_else(|| start.head.last_offset());
            if first <= offset {
                chunk.start = start.position;
                chunk.expected = lowest(&start.head, chunk.expected);
            }
        }
        Ok(())
    }

    fn positions<S: Fs>(
        &mut self,
        fs: &S,
        partition: &Partition,
        segment: &Segment,
        chunk: &Chunk,
    ) -> Result<&[u64]> {
        let key = (chunk.partition, chunk.segment);
        if self.loaded.as_ref().is_none_or(|(loaded, _)| *loaded != key) {
            let bytes = read_index(fs, partition, segment)?.unwrap_or_default();
            let view = OffsetIndexView::new(segment.base_offset, &bytes);
            let mut positions: Vec<u64> =
                view.iter().map(|entry| u64::from(entry.position)).collect();
            if !positions.is_sorted() {
                positions.clear();
            }
            self.loaded = Some((key, positions));
        }
        Ok(self.loaded.as_ref().map_or(&[], |(_, positions)| positions))
    }
}

/// The batch or message that holds an offset, found through the index, if its checksum is right.
/// What an index without checksums says of the entry can be held against it. Nothing where that
/// would cost more than a look.
pub(crate) fn entry_at<S: Fs>(
    fs: &S,
    partition: &Partition,
    offset: i64,
) -> Result<Option<(EntryHead, Vec<u8>)>> {
    let after = partition.segments.partition_point(|segment| segment.base_offset <= offset);
    let Some(number) = after.checked_sub(1) else { return Ok(None) };
    let Some(segment) = partition.segments.get(number) else { return Ok(None) };
    let mut chunk = Chunk::of(0, number, segment);
    Cutter::seek(fs, partition, &mut chunk, offset)?;
    chunk.end = chunk.end.min(chunk.start.saturating_add(CONFIRM_BYTES_MAX));
    let Some(file) = unless_changed(partition.open_segment(fs, segment))? else {
        return Ok(None);
    };
    let window = Window::new(file, chunk.start, chunk.end, HEAD_READ_BYTES);
    let mut walker = Walker::new(window, partition.span_of(&chunk), Depth::Heads);
    while let Step::Entry(head) = walker.step()? {
        if head.last_offset() < offset {
            continue;
        }
        let bytes = walker.load()?.to_vec();
        let is_right = head.base_offset().is_none_or(|base| base <= offset)
            && EntryView::parse(&bytes).is_ok_and(|entry| entry.check_crc().is_ok());
        return Ok(is_right.then_some((head, bytes)));
    }
    Ok(None)
}

/// Nothing where the file changed under the look: the reader will meet the same and knows what to
/// do about it.
fn unless_changed<T>(looked: Result<T>) -> Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(Error::Changed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_index<S: Fs>(fs: &S, partition: &Partition, segment: &Segment) -> Result<Option<Vec<u8>>> {
    let name = SegmentFile::live(segment.base_offset, FileKind::Index).to_string();
    let directory = match partition.open_dir(fs) {
        Ok(directory) => directory,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    directory.read_small(&name)
}

/// The entry at a position inside a chunk, if it is whole, its checksum right, and nothing between
/// `before`, or the chunk's start, and the entry after it speaks against it.
fn confirm<F: File>(
    file: &F,
    partition: &Partition,
    chunk: &Chunk,
    before: Option<u64>,
    position: u64,
) -> Result<Option<BatchStart>> {
    let from = before.unwrap_or(chunk.start);
    if position.saturating_sub(from) > CONFIRM_BYTES_MAX || !is_whole(file, chunk, position)? {
        return Ok(None);
    }
    let mut span = partition.span_of(chunk);
    if before.is_some() {
        span.expected = span.segment_base;
    }
    let window = Window::new(file, from, chunk.end, HEAD_READ_BYTES);
    let mut walker = Walker::new(window, span, Depth::Heads);
    while let Step::Entry(head) = walker.step()? {
        if walker.position() == position {
            return Ok(Some(BatchStart { position, head }));
        }
    }
    Ok(None)
}

/// Whether an entry with a right checksum stands at a position.
fn is_whole<F: File>(file: &F, chunk: &Chunk, position: u64) -> Result<bool> {
    let mut start = [0; EntryHead::BYTES];
    let read = file.read_at(&mut start, position)?;
    let left = chunk.end.saturating_sub(position).min(CONFIRM_BYTES_MAX);
    let Ok(head) = EntryHead::read(start.get(..read).unwrap_or_default(), left) else {
        return Ok(false);
    };
    let mut bytes = vec![0; head.total_bytes()];
    if file.read_at(&mut bytes, position)? < bytes.len() {
        return Ok(false);
    }
    Ok(EntryView::parse(&bytes).is_ok_and(|entry| entry.check_crc().is_ok()))
}

/// Without an index, the heads lead to a batch start as well.
fn walk_to<F: File>(
    file: F,
    partition: &Partition,
    chunk: Chunk,
    target: u64,
) -> Result<Option<(Chunk, Chunk)>> {
    let span = partition.span_of(&chunk);
    let window = Window::new(file, chunk.start, chunk.end, HEAD_READ_BYTES);
    let mut walker = Walker::new(window, span, Depth::Heads);
    while let Step::Entry(head) = walker.step()? {
        let position = walker.position();
        if position >= target && position > chunk.start {
            return Ok(Some(halves(chunk, &BatchStart { position, head })));
        }
    }
    Ok(None)
}

fn halves(chunk: Chunk, start: &BatchStart) -> (Chunk, Chunk) {
    let first = start.head.base_offset().unwrap_or_else(|| start.head.last_offset());
    let head = Chunk { end: start.position, below: Some(first), ..chunk };
    let tail =
        Chunk { start: start.position, expected: lowest(&start.head, chunk.expected), ..chunk };
    (head, tail)
}

/// The smallest offset that may stand in an entry: of a compressed old-format set it is unknown.
fn lowest(head: &EntryHead, before: i64) -> i64 {
    head.base_offset().unwrap_or(before)
}

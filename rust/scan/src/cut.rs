//! Finding batch starts inside a segment through its offset index.
//!
//! An index is a cache that nothing protects, so an entry is believed only when a whole batch with
//! a right checksum stands where it points.

use kafkaseg_core::fs::{Dir, File, Fs};
use kafkaseg_core::index::OffsetIndexView;
use kafkaseg_core::names::{FileKind, SegmentFile};
use kafkaseg_core::record::EntryView;
use kafkaseg_core::segment::{Depth, EntryHead, Step, Walker, Window};
use kafkaseg_core::{Error, Result};

use crate::plan::{Chunk, Plan};
use crate::snapshot::{Partition, Segment};

/// Entries tried before the index counts as wrong.
const TRIES_MAX: usize = 8;

/// Largest batch that is checked to confirm an index entry.
const CONFIRM_BYTES_MAX: usize = 64 << 20;

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
        let file = match partition.open_segment(fs, segment) {
            Ok(file) => file,
            // The reader will meet the same and knows what to do about it.
            Err(Error::Changed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let target = target.clamp(chunk.start + 1, chunk.end);
        let positions = self.positions(fs, partition, segment, &chunk)?;
        let from = positions.partition_point(|position| *position < target);
        let later = positions.iter().skip(from).take(TRIES_MAX);
        let earlier = positions.iter().take(from).rev().take(TRIES_MAX);
        for position in later.chain(earlier) {
            if *position <= chunk.start || *position >= chunk.end {
                continue;
            }
            if let Some(start) = confirm(&file, *position, segment.bytes)? {
                return Ok(Some(halves(chunk, &start)));
            }
        }
        if positions.is_empty() {
            return walk_to(file, partition, chunk, target);
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
        let file = match partition.open_segment(fs, segment) {
            Ok(file) => file,
            Err(Error::Changed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(start) = confirm(&file, u64::from(entry.position), segment.bytes)? {
            let first = start.head.base_offset().unwrap_or_else(|| start.head.last_offset());
            if first <= offset && start.position < chunk.end {
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

fn read_index<S: Fs>(fs: &S, partition: &Partition, segment: &Segment) -> Result<Option<Vec<u8>>> {
    let name = SegmentFile::live(segment.base_offset, FileKind::Index).to_string();
    let directory = match partition.open_dir(fs) {
        Ok(directory) => directory,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    directory.read_small(&name)
}

/// The entry at a position, if it is whole and its checksum right.
fn confirm<F: File>(file: &F, position: u64, file_bytes: u64) -> Result<Option<BatchStart>> {
    let mut start = [0; EntryHead::BYTES];
    let read = file.read_at(&mut start, position)?;
    let left = file_bytes.saturating_sub(position);
    let Ok(head) = EntryHead::read(start.get(..read).unwrap_or_default(), left) else {
        return Ok(None);
    };
    if head.total_bytes() > CONFIRM_BYTES_MAX {
        return Ok(None);
    }
    let mut bytes = vec![0; head.total_bytes()];
    if file.read_at(&mut bytes, position)? < bytes.len() {
        return Ok(None);
    }
    let is_right = EntryView::parse(&bytes).is_ok_and(|entry| entry.check_crc().is_ok());
    Ok(is_right.then_some(BatchStart { position, head }))
}

/// Without an index, the heads lead to a batch start as well.
fn walk_to<F: File>(
    file: F,
    partition: &Partition,
    chunk: Chunk,
    target: u64,
) -> Result<Option<(Chunk, Chunk)>> {
    let mut span = partition.span(chunk.segment);
    span.expected = chunk.expected;
    let window = Window::new(file, chunk.start, chunk.end, 8 << 10);
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

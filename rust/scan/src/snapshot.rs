//! A partition's segments at one moment.
//!
//! A live broker appends, rolls, deletes and replaces files while we look. The snapshot fixes which
//! files there are and how long each is; whatever is appended later is not read, and a file that is
//! gone or another by the time it is opened is noticed by its serial number.

use std::path::PathBuf;
use std::sync::Arc;

use kafkaseg_core::fs::{Dir, EntryKind, File, Fs};
use kafkaseg_core::names::{FileKind, FileState, SegmentFile};
use kafkaseg_core::segment::{Depth, Span, Step, Surroundings, Walker, Window};
use kafkaseg_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::discover::{Found, epochs_of};
use crate::plan::Chunk;

/// How often a directory that changes under the listing is listed again.
const LISTINGS_MAX: usize = 20;

/// One segment file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Segment {
    /// Base offset that names it.
    pub base_offset: i64,
    /// Its name at the snapshot.
    pub name: String,
    /// Its length at the snapshot.
    pub bytes: u64,
    inode: u64,
    /// Last modification, milliseconds since 1970.
    pub modified_ms: i64,
}

/// One partition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Partition {
    root: PathBuf,
    directory: Option<String>,
    /// The topic.
    pub topic: Arc<str>,
    /// The partition's number.
    pub partition: i32,
    /// Segments, by base offset.
    pub segments: Vec<Segment>,
    /// First offset that a consumer may read.
    pub log_start: i64,
    /// Whether the log was closed cleanly.
    pub is_clean: bool,
    /// The offset after the last record, where a clean close recorded it.
    pub recorded_end: Option<i64>,
    /// Leader epochs and their first offsets.
    pub epochs: Arc<Vec<(i32, i64)>>,
    /// Offsets of the producer snapshots.
    pub producer_snapshots: Vec<i64>,
}

type DirOf<S> = <S as Fs>::Dir;
pub(crate) type FileOf<S> = <DirOf<S> as Dir>::File;

impl Partition {
    /// Takes the snapshot of one partition.
    pub fn take<S: Fs>(fs: &S, found: &Found) -> Result<Self> {
        let mut partition = Self {
            root: found.root.clone(),
            directory: found.directory.clone(),
            topic: Arc::clone(&found.topic),
            partition: found.partition,
            segments: Vec::new(),
            log_start: 0,
            is_clean: found.facts.is_clean,
            recorded_end: None,
            epochs: Arc::default(),
            producer_snapshots: Vec::new(),
        };
        let directory = partition.open_dir(fs)?;
        partition.epochs = epochs_of(&directory)?;
        partition.list(&directory, found.file.as_deref())?;
        let first = partition.segments.first().map_or(0, |segment| segment.base_offset);
        partition.log_start = found.facts.log_start.unwrap_or(first).max(first);
        partition.recorded_end = partition.find_recorded_end(found);
        Ok(partition)
    }

    /// The partition's path, for messages.
    pub fn path(&self) -> PathBuf {
        match &self.directory {
            Some(name) => self.root.join(name),
            None => self.root.clone(),
        }
    }

    /// Opens the partition's directory.
    pub(crate) fn open_dir<S: Fs>(&self, fs: &S) -> Result<DirOf<S>> {
        let root = fs.open_dir(&self.root)?;
        match &self.directory {
            Some(name) => root.open_dir(name),
            None => Ok(root),
        }
    }

    /// Opens a segment of the snapshot, under the name it has now.
    pub(crate) fn open_segment<S: Fs>(&self, fs: &S, segment: &Segment) -> Result<FileOf<S>> {
        let directory = self.open_dir(fs).map_err(|error| self.gone(error, segment))?;
        let live = SegmentFile::live(segment.base_offset, FileKind::Log).to_string();
        let deleted = format!("{live}.deleted");
        // Retention and compaction rename a file before they remove it.
        for name in [segment.name.as_str(), live.as_str(), deleted.as_str()] {
            match directory.open(name) {
                Ok(file) => {
                    let facts = file.facts()?;
                    if facts.inode != segment.inode {
                        continue;
                    }
                    if facts.bytes < segment.bytes {
                        let path = file.path().to_owned();
                        return Err(Error::Changed { path, what: "was cut short" });
                    }
                    return Ok(file);
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let path = self.path().join(&segment.name);
        Err(Error::Changed { path, what: "was deleted or replaced" })
    }

    fn gone(&self, error: Error, segment: &Segment) -> Error {
        if error.is_not_found() {
            Error::Changed { path: self.path().join(&segment.name), what: "was deleted" }
        } else {
            error
        }
    }

    /// What surrounds the entries of a segment.
    pub(crate) fn span(&self, index: usize) -> Span {
        let base = self.segments.get(index).map_or(0, |segment| segment.base_offset);
        let next = self.segments.get(index + 1);
        Span {
            segment_base: base,
            expected: base,
            is_last: next.is_none(),
            is_clean: self.is_clean,
            around: Surroundings {
                next_base: next.map(|segment| segment.base_offset),
                recorded_end: self.recorded_end,
                is_end_exact: self.is_clean,
                epochs: Arc::clone(&self.epochs),
            },
        }
    }

    /// What surrounds the entries of a part of a segment.
    pub(crate) fn span_of(&self, chunk: &Chunk) -> Span {
        let mut span = self.span(chunk.segment);
        span.expected = chunk.expected;
        if let Some(below) = chunk.below {
            span.is_last = false;
            span.around.next_base = Some(below);
        }
        span
    }

    fn list<D: Dir>(&mut self, directory: &D, only: Option<&str>) -> Result<()> {
        for _ in 0..LISTINGS_MAX {
            if self.list_once(directory, only)? {
                return Ok(());
            }
        }
        Err(Error::Changed { path: self.path(), what: "changed at every listing" })
    }

    /// Lists the files; false when one vanished between the listing and the look at it.
    fn list_once<D: Dir>(&mut self, directory: &D, only: Option<&str>) -> Result<bool> {
        self.segments.clear();
        self.producer_snapshots.clear();
        let mut swaps = Vec::new();
        let mut first_cleaned = i64::MAX;
        for entry in directory.list()? {
            let Some(file) = SegmentFile::parse(&entry.name) else { continue };
            if only.is_some_and(|only| only != entry.name) {
                continue;
            }
            match (file.kind, file.state) {
                (FileKind::Snapshot, FileState::Live) => {
                    self.producer_snapshots.push(file.base_offset);
                }
                (FileKind::Log, FileState::Cleaned) => {
                    first_cleaned = first_cleaned.min(file.base_offset);
                }
                (FileKind::Log, state) if state != FileState::Deleted || only.is_some() => {
                    refuse_links(directory, &entry.name, entry.kind)?;
                    let Some(segment) = look_at(directory, file.base_offset, entry.name)? else {
                        return Ok(false);
                    };
                    let list =
                        if state == FileState::Swap { &mut swaps } else { &mut self.segments };
                    list.push(segment);
                }
                _ => {}
            }
        }
        self.producer_snapshots.sort_unstable();
        self.segments.sort_by_key(|segment| segment.base_offset);
        for swap in swaps.into_iter().filter(|swap| swap.base_offset < first_cleaned) {
            if !self.complete_swap(directory, swap)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A `.swap` segment is complete and stands for all it covers, as a broker that starts has it.
    fn complete_swap<D: Dir>(&mut self, directory: &D, swap: Segment) -> Result<bool> {
        let file = match directory.open(&swap.name) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
        let span = Span {
            segment_base: swap.base_offset,
            expected: swap.base_offset,
            is_last: false,
            is_clean: false,
            around: Surroundings::default(),
        };
        let window = Window::new(file, 0, swap.bytes, 8 << 10);
        let mut walker = Walker::new(window, span, Depth::Heads);
        while let Step::Entry(_) = walker.step()? {}
        let covered = swap.base_offset..walker.expected().max(swap.base_offset + 1);
        self.segments.retain(|segment| !covered.contains(&segment.base_offset));
        self.segments.push(swap);
        self.segments.sort_by_key(|segment| segment.base_offset);
        Ok(true)
    }

    fn find_recorded_end(&self, found: &Found) -> Option<i64> {
        if found.facts.is_clean && found.facts.recovery_point.is_some() {
            return found.facts.recovery_point;
        }
        // A close writes a producer snapshot at the end of the log; the others stand at the bases
        // of segments.
        let base = self.segments.last()?.base_offset;
        self.producer_snapshots.last().copied().filter(|offset| *offset > base)
    }
}

fn refuse_links<D: Dir>(directory: &D, name: &str, kind: EntryKind) -> Result<()> {
    if kind == EntryKind::File {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} is not a regular file; links below a scanned directory are not followed: \
         name its target as a path of its own",
        directory.path().join(name).display()
    )))
}

fn look_at<D: Dir>(directory: &D, base_offset: i64, name: String) -> Result<Option<Segment>> {
    let file = match directory.open(&name) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let facts = file.facts()?;
    Ok(Some(Segment {
        base_offset,
        name,
        bytes: facts.bytes,
        inode: facts.inode,
        modified_ms: facts.modified_ms,
    }))
}

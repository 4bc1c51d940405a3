//! Segments: the files one part of a log is kept in.
//!
//! [`Segment`] is the engine's handle on one: its `.log` file, its indexes and what is known of
//! them. One writer appends to the last segment of a log, any number of readers look beside it:
//!
//! 1. Bytes below a published position never change, except that a truncation drops them. It raises
//!    the segment's generation first, so that a reader who read beside it notices afterwards.
//! 2. The files are opened when they are first needed and stay open until the last user lets go: a
//!    segment that was deleted can be read to its end by whoever holds it.
//! 3. A segment that left its log is retired before its files are renamed. From then on nothing of
//!    it is opened by name, because the name may belong to another segment soon.
//!
//! The rest of this module reads segment files from front to back, with every check their bytes
//! allow. A batch's checksum does not cover its offset, length, epoch and magic. [`Walker`]
//! therefore judges each entry against what surrounds it as well: the entries before and after, the
//! base of the next segment, the leader-epoch checkpoint and the recorded end of the log.

pub(crate) mod active;
mod continuity;
mod head;
pub(crate) mod read;
pub(crate) mod recover;
mod resync;
pub(crate) mod sealed;
pub(crate) mod split;
mod walk;
mod window;

pub use continuity::Surroundings;
pub use head::{EntryHead, MessageHead};
pub use walk::{Depth, Span, Step, Walker};
pub use window::Window;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use crate::config::LogConfig;
use crate::error::Result;
use crate::fs::{Create, Dir, Fs, WriteDir, WriteFile, WriteFs};
use crate::index::{IndexMode, OffsetIndex, TimeEntry, TimeIndex, TxnIndex};
use crate::names::{FileKind, SegmentFile};

/// The open files of a file system.
pub(crate) type FileOf<S> = <<S as Fs>::Dir as Dir>::File;

/// One segment of a log.
pub struct Segment<S: WriteFs> {
    base_offset: i64,
    dir: Arc<S::Dir>,
    file: OnceLock<FileOf<S>>,
    /// Held while the file is opened, so that it is opened once.
    opening: Mutex<()>,
    pub(crate) offset_index: Arc<OffsetIndex<S::Dir>>,
    pub(crate) time_index: Arc<TimeIndex<S::Dir>>,
    pub(crate) txn_index: Arc<TxnIndex<S::Dir>>,
    size: AtomicU64,
    generation: AtomicU64,
    /// The end of what sendfile was asked to send: sockets may still hold these pages.
    sent: AtomicU64,
    /// Read by a sendfile call, written by a truncation: the bytes do not go while they are sent.
    cut: RwLock<()>,
    is_retired: AtomicBool,
    times: Mutex<Times>,
}

/// What a segment knows of its timestamps.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// The largest one so far and the last offset of the first batch that has it; `None` before it
    /// was looked up in the time index.
    largest: Option<TimeEntry>,
    /// The max timestamp of the first batch; `None` before it was read, or without a batch.
    first: Option<i64>,
    /// When the segment was made or opened in this process, or last emptied.
    created_ms: i64,
}

impl<S: WriteFs> Segment<S> {
    /// Makes an empty segment. No files of these names may be there.
    pub(crate) fn create(
        dir: &Arc<S::Dir>,
        base_offset: i64,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Self> {
        let file = dir.open_write(&name(base_offset, FileKind::Log), Create::New)?;
        if config.preallocate {
            file.allocate(u64::from(config.initial_file_bytes()))?;
        }
        let segment = Self::with(dir, base_offset, 0, IndexMode::Active, config, now_ms)?;
        // Nobody else has the segment yet, so the cell is empty.
        let _ = segment.file.set(file);
        segment.times_mut().largest = Some(TimeEntry { timestamp: -1, offset: base_offset });
        Ok(segment)
    }

    /// A segment whose files are there. `size` is the length of its good entries. Opens nothing
    /// before it is needed; [`Self::activate`] makes it ready for appends.
    pub(crate) fn open(
        dir: &Arc<S::Dir>,
        base_offset: i64,
        size: u64,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Self> {
        Self::with(dir, base_offset, size, IndexMode::Sealed, config, now_ms)
    }

    /// An empty segment that holds nothing open until it is used. One whose file is preallocated
    /// stays as it is: that must not be lost.
    pub(crate) fn asleep(self, config: &LogConfig, now_ms: i64) -> Result<Self> {
        if config.preallocate {
            return Ok(self);
        }
        self.offset_index.trim()?;
        self.time_index.trim()?;
        self.offset_index.close()?;
        self.time_index.close()?;
        Self::open(&self.dir, self.base_offset, 0, config, now_ms)
    }

    fn with(
        dir: &Arc<S::Dir>,
        base_offset: i64,
        size: u64,
        mode: IndexMode,
        config: &LogConfig,
        now_ms: i64,
    ) -> Result<Self> {
        let index_bytes = u64::from(config.segment_index_bytes);
        Ok(Self {
            base_offset,
            dir: Arc::clone(dir),
            file: OnceLock::new(),
            opening: Mutex::new(()),
            offset_index: Arc::new(OffsetIndex::open(
                Arc::clone(dir),
                base_offset,
                index_bytes,
                mode,
            )?),
            time_index: Arc::new(TimeIndex::open(Arc::clone(dir), base_offset, index_bytes, mode)?),
            txn_index: Arc::new(TxnIndex::open(Arc::clone(dir), base_offset)),
            size: AtomicU64::new(size),
            generation: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            cut: RwLock::new(()),
            is_retired: AtomicBool::new(false),
            times: Mutex::new(Times { largest: None, first: None, created_ms: now_ms }),
        })
    }

    /// The offset that names it.
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of its entries.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Raised whenever entries of the segment are dropped.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether it left its log.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// The `.log` file, opened now if it was not.
    pub(crate) fn file(&self) -> Result<&FileOf<S>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let _opening = self.opening.lock();
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let file = self.dir.open_write(&name(self.base_offset, FileKind::Log), Create::No)?;
        // The name may have passed to another segment between the decision and the open.
        if self.is_retired() {
            return Err(self.changed("was deleted"));
        }
        Ok(self.file.get_or_init(|| file))
    }

    /// Whether the `.log` file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.file.get().is_some()
    }
}

/// The name of a segment's file.
pub(crate) fn name(base_offset: i64, kind: FileKind) -> String {
    SegmentFile::live(base_offset, kind).to_string()
}

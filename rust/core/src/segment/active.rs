//! The segment that is written: when it is full, how bytes and index entries go in, how it is cut
//! and how it is closed for writing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use super::{EntryHead, Segment, Times, name};
use crate::config::LogConfig;
use crate::error::{Error, Result};
use crate::fs::{Create, File, WriteDir, WriteFile, WriteFs};
use crate::index::TimeEntry;
use crate::limits::SEGMENT_BYTES_MAX;
use crate::names::FileKind;

/// How much is copied at once when a cut needs another file.
const COPY_BYTES: usize = 1 << 20;

/// What the writer remembers of the segment it writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tail {
    /// Bytes written since the last index entry.
    pub(crate) since_index: u64,
    /// The largest timestamp and the last offset of the first batch that has it.
    pub(crate) largest: TimeEntry,
    /// What this segment's age limit is shortened by, so that not all logs roll at once.
    pub(crate) jitter_ms: i64,
}

/// A set of batches that is about to be appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming {
    pub(crate) bytes: u64,
    pub(crate) max_timestamp: i64,
    pub(crate) last_offset: i64,
    pub(crate) now_ms: i64,
}

/// A write that failed.
#[derive(Debug)]
pub(crate) struct WriteFailed {
    pub(crate) error: Error,
    /// Whether bytes of it may be left behind the segment's end.
    pub(crate) left_bytes: bool,
}

impl<S: WriteFs> Segment<S> {
    /// Makes the segment ready for appends: its indexes get their full length again.
    pub(crate) fn activate(&self, config: &LogConfig) -> Result<Tail> {
        let index_bytes = u64::from(config.segment_index_bytes);
        self.offset_index.extend(index_bytes)?;
        self.time_index.extend(index_bytes)?;
        Ok(Tail { since_index: 0, largest: self.largest()?, jitter_ms: jitter(config) })
    }

    /// Whether the set belongs into a new segment. An empty segment takes everything whose offsets
    /// it can express: a fresh one could not do more.
    pub(crate) fn is_full_for(
        &self,
        set: &Incoming,
        tail: &Tail,
        config: &LogConfig,
    ) -> Result<bool> {
        let spans = set.last_offset.checked_sub(self.base_offset);
        if !spans.is_some_and(|distance| (0..=i64::from(i32::MAX)).contains(&distance)) {
            return Ok(true);
        }
        let size = self.size();
        if size == 0 {
            return Ok(false);
        }
        if size.saturating_add(set.bytes) > u64::from(config.segment_size())
            || self.offset_index.is_full()
            || self.time_index.is_full()
        {
            return Ok(true);
        }
        let waited = match self.first_timestamp()? {
            Some(first) if first >= 0 => set.max_timestamp.saturating_sub(first),
            _ => set.now_ms.saturating_sub(self.times().created_ms),
        };
        Ok(waited > config.max_segment_ms().saturating_sub(tail.jitter_ms))
    }

    /// Writes bytes behind the segment's end. Nobody sees them before [`Self::grow`].
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), WriteFailed> {
        let size = self.size();
        let untouched = |error| WriteFailed { error, left_bytes: false };
        let file = self.file().map_err(untouched)?;
        let end = size.saturating_add(to_u64(bytes.len()));
        if end > SEGMENT_BYTES_MAX {
            let limit = SEGMENT_BYTES_MAX;
            return Err(untouched(Error::TooLarge { what: "segment", size: end, limit }));
        }
        file.write_at(bytes, size).map_err(|error| {
            // Whole batches of a failed set must not stay where a recovery would take them for
            // good ones behind the next append.
            WriteFailed { error, left_bytes: file.set_len(size).is_err() }
        })
    }

    /// Counts bytes that were written as part of the segment.
    pub(crate) fn grow(&self, bytes: u64) {
        self.size.fetch_add(bytes, Ordering::Release);
    }

    /// Makes the index entries for batches that were written at a position.
    pub(crate) fn index(
        &self,
        tail: &mut Tail,
        position: u64,
        bytes: &[u8],
        interval: u64,
    ) -> Result<()> {
        let mut at = position;
        let mut rest = bytes;
        let mut first = None;
        while !rest.is_empty() {
            let head = EntryHead::read(rest, to_u64(rest.len()))
                .map_err(|kind| Error::corrupt(self.dir_path(), at, kind))?;
            let last_offset = head.last_offset();
            first.get_or_insert(head.max_timestamp());
            if head.max_timestamp() > tail.largest.timestamp {
                tail.largest = TimeEntry { timestamp: head.max_timestamp(), offset: last_offset };
            }
            if tail.since_index > interval {
                self.index_entry(tail, last_offset, at)?;
            }
            let total = head.total_bytes();
            tail.since_index = tail.since_index.saturating_add(to_u64(total));
            at = at.saturating_add(to_u64(total));
            rest = rest.get(total..).unwrap_or_default();
        }
        let mut times = self.times_mut();
        times.largest = Some(tail.largest);
        if position == 0 {
            times.first = first;
        }
        Ok(())
    }

    /// A set of many batches can fill an index that had room for one entry. Entries are hints, so
    /// the ones without room are left out.
    fn index_entry(&self, tail: &mut Tail, last_offset: i64, position: u64) -> Result<()> {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        if !self.offset_index.is_full() {
            self.offset_index.append(last_offset, position)?;
        }
        if !self.time_index.is_full() {
            self.time_index.maybe_append(tail.largest, false)?;
        }
        tail.since_index = 0;
        Ok(())
    }

    /// Ends the segment: the last time-index entry, indexes and file cut to what they hold.
    pub(crate) fn seal(&self, largest: TimeEntry) -> Result<()> {
        self.time_index.maybe_append(largest, true)?;
        self.offset_index.trim()?;
        self.time_index.trim()?;
        let file = self.file()?;
        if file.facts()?.bytes > self.size() {
            file.set_len(self.size())?;
        }
        Ok(())
    }

    /// Says that the bytes from here on are going: readers that began before find out, and no
    /// sendfile call is under way when this returns.
    pub(crate) fn raise_generation(&self) {
        let _alone = self.cut.write().unwrap_or_else(PoisonError::into_inner);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Keeps truncations out for as long as the guard lives.
    pub(crate) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.cut.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that sockets may hold pages of the file up to a position.
    pub(crate) fn note_sent(&self, end: u64) {
        self.sent.fetch_max(end, Ordering::AcqRel);
    }

    /// Drops everything from an offset on. `position` is where the batch begins that holds it.
    /// The generation was raised and the view that shows the bytes is gone.
    ///
    /// sendfile puts pages of the file into sockets, not copies. Cutting a file zeroes the rest of
    /// its last page, and appending fills it again, also in the sockets. So when bytes behind the
    /// cut were sent, the segment goes on in a copy of the file, which is given back.
    pub(crate) fn cut_at(&self, offset: i64, position: u64, now_ms: i64) -> Result<Option<Self>> {
        self.offset_index.truncate_to(offset)?;
        self.time_index.truncate_to(offset)?;
        self.txn_index.truncate_to(offset)?;
        let copy = if self.sent.load(Ordering::Acquire) > position {
            Some(self.copied(position, now_ms)?)
        } else {
            let file = self.file()?;
            file.set_len(position)?;
            file.sync()?;
            self.size.store(position, Ordering::Release);
            None
        };
        let segment = copy.as_ref().unwrap_or(self);
        if position == 0 {
            *segment.times_mut() = Times { largest: None, first: None, created_ms: now_ms };
        }
        let largest = segment.find_largest(position)?;
        segment.times_mut().largest = Some(largest);
        Ok(copy)
    }

    /// The segment with the first bytes of its file in another file of the same name.
    fn copied(&self, bytes: u64, now_ms: i64) -> Result<Self> {
        let name = name(self.base_offset, FileKind::Log);
        let temporary = format!("{name}.tmp");
        let source = self.file()?;
        let file = self.dir.open_write(&temporary, Create::IfMissing)?;
        file.set_len(0)?;
        let mut buffer = vec![0; COPY_BYTES];
        let mut at = 0;
        while at < bytes {
            let wanted = usize::try_from(bytes - at).unwrap_or(usize::MAX).min(COPY_BYTES);
            let part = buffer.get_mut(..wanted).unwrap_or_default();
            if source.read_at(part, at)? < wanted {
                return Err(self.changed("was cut short"));
            }
            file.write_at(part, at)?;
            at = at.saturating_add(to_u64(wanted));
        }
        file.sync()?;
        drop(file);
        self.dir.rename(&temporary, &name)?;
        self.dir.sync()?;
        Ok(Self {
            base_offset: self.base_offset,
            dir: Arc::clone(&self.dir),
            file: OnceLock::from(self.dir.open_write(&name, Create::No)?),
            opening: Mutex::new(()),
            offset_index: Arc::clone(&self.offset_index),
            time_index: Arc::clone(&self.time_index),
            txn_index: Arc::clone(&self.txn_index),
            size: AtomicU64::new(bytes),
            generation: AtomicU64::new(self.generation()),
            sent: AtomicU64::new(0),
            cut: RwLock::new(()),
            is_retired: AtomicBool::new(false),
            times: Mutex::new(Times { created_ms: now_ms, ..self.times() }),
        })
    }
}

/// Kafka's random jitter of one segment.
fn jitter(config: &LogConfig) -> i64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = RandomState::new().build_hasher().finish() >> 33;
    config.random_segment_jitter(i32::try_from(random).unwrap_or(0))
}

pub(crate) fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

//! The transaction index of a segment in a directory that we own.
//!
//! The layout of the file is that of [`TxnIndexView`](super::TxnIndexView). The file is made by the
//! first abort whose marker is in the segment, grows entry by entry and is neither preallocated nor
//! mapped: most segments have none, and nothing but `read_committed` looks at it.
//!
//! One writer at a time (the holder of the log's lock), any number of readers. Readers see whole
//! entries only: bytes are written first, then counted. Truncation waits for readers under way.
//! A missing file is an empty index. A failed append leaves nothing that counts, and the next one
//! overwrites it; so does the first one after a stop that tore the last entry.
//!
//! Losing entries means handing aborted records to `read_committed` readers, so flushing also syncs
//! the directory when the file is new, and sanity is checked whenever a segment is loaded.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{AbortedTxn, TXN_ENTRY_BYTES};
use crate::error::{Error, Result};
use crate::fs::{Create, Dir, File, WriteDir, WriteFile as _};
use crate::names::{FileKind, FileState, SegmentFile};
use crate::record::CorruptKind;

const ENTRY_BYTES: u64 = 34;
/// Entries that are read in one go, about 4 KiB.
const CHUNK: usize = 120;
const CHUNK_ENTRIES: u64 = 120;
const TORN: &str = "transaction index ends inside an entry";

/// The aborted transactions whose marker is in a segment.
pub struct TxnIndex<D: WriteDir> {
    dir: Arc<D>,
    base_offset: i64,
    /// Bytes of whole entries; says nothing before the file was looked for.
    bytes: AtomicU64,
    unsynced: AtomicBool,
    is_new: AtomicBool,
    state: RwLock<State<D>>,
}

struct State<D: WriteDir> {
    name: SegmentFile,
    file: Found<<D as Dir>::File>,
}

enum Found<F> {
    Unknown,
    Missing,
    Open(Arc<F>),
}

impl<D: WriteDir> TxnIndex<D> {
    /// The index of the segment with this base offset. Touches no file.
    pub fn open(dir: Arc<D>, base_offset: i64) -> Self {
        Self::open_as(dir, base_offset, FileState::Live)
    }

    /// The same for a file that the cleaner or a deletion has named otherwise.
    pub fn open_as(dir: Arc<D>, base_offset: i64, state: FileState) -> Self {
        let name = SegmentFile { base_offset, kind: FileKind::TxnIndex, state };
        Self {
            dir,
            base_offset,
            bytes: AtomicU64::new(0),
            unsynced: AtomicBool::new(false),
            is_new: AtomicBool::new(false),
            state: RwLock::new(State { name, file: Found::Unknown }),
        }
    }

    /// Appends an entry; the first one makes the file. Last offsets increase strictly.
    pub fn append(&self, aborted: &AbortedTxn) -> Result<()> {
        let mut state = self.exclusive();
        let file = match self.found(&mut state)? {
            Some(file) => file,
            None => self.make(&mut state)?,
        };
        let bytes = self.bytes.load(Ordering::Relaxed);
        if let Some(last) = bytes.checked_sub(ENTRY_BYTES) {
            let last = read_one(&*file, last)?.last_offset;
            if last >= aborted.last_offset {
                let path = file.path().display();
                let after = aborted.last_offset;
                let why = format!("{path} ends with offset {last}, so {after} cannot follow");
                return Err(Error::Invalid(why));
            }
        }
        let mut entry = Vec::with_capacity(TXN_ENTRY_BYTES);
        aborted.encode(&mut entry);
        self.unsynced.store(true, Ordering::Relaxed);
        file.write_at(&entry, bytes)?;
        self.bytes.store(bytes + ENTRY_BYTES, Ordering::Release);
        Ok(())
    }

    /// The aborted transactions that a reader of offsets from `fetch_offset` up to `upper` needs,
    /// in the order of the index, and whether that is all: if not, the next segment's index goes
    /// on. May name some that have no record in between.
    pub fn aborted_between(
        &self,
        fetch_offset: i64,
        upper: i64,
    ) -> Result<(Vec<AbortedTxn>, bool)> {
        let mut found = Vec::new();
        let complete = self.collect_aborted(fetch_offset, upper, &mut found)?;
        Ok((found, complete))
    }

    /// The same, added to what other segments gave. Allocates nothing when there is nothing.
    pub fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        let mut complete = false;
        // Markers increase, so transactions that ended before the reader's offset stand first.
        let first = |file: &_, bytes| first_from(file, bytes, fetch_offset, CHUNK_ENTRIES);
        self.walk(first, |entry| {
            if entry.last_offset >= fetch_offset && entry.first_offset < upper {
                found.push(entry);
            }
            complete = entry.last_stable_offset >= upper;
            Ok(!complete)
        })?;
        Ok(complete)
    }

    /// Number of entries.
    pub fn entries(&self) -> Result<u64> {
        let mut entries = 0;
        self.with_file(|_, bytes| {
            entries = bytes / ENTRY_BYTES;
            Ok(())
        })?;
        Ok(entries)
    }

    /// Drops the entries whose marker is at this offset or later.
    pub fn truncate_to(&self, offset: i64) -> Result<()> {
        let mut state = self.exclusive();
        let Some(file) = self.found(&mut state)? else {
            return Ok(());
        };
        let bytes = self.bytes.load(Ordering::Relaxed);
        let kept = first_from(&*file, bytes, offset, 1)?;
        self.unsynced.store(true, Ordering::Relaxed);
        self.bytes.store(kept, Ordering::Release);
        file.set_len(kept)
    }

    /// Forgets every entry, for a rebuild. A file that is there stays, empty, as with Kafka.
    pub fn reset(&self) -> Result<()> {
        let mut state = self.exclusive();
        let Some(file) = self.found(&mut state)? else {
            return Ok(());
        };
        self.unsynced.store(true, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Release);
        file.set_len(0)
    }

    /// Checks what every index written by Kafka keeps; Kafka rebuilds the segment's indexes when
    /// one does not.
    pub fn sanity(&self) -> Result<()> {
        self.with_file(|file, bytes| {
            if file.facts()?.bytes == bytes {
                return Ok(());
            }
            Err(Error::corrupt(file.path(), bytes, CorruptKind::Side(TORN)))
        })?;
        let mut previous = None;
        self.walk(
            |_, _| Ok(0),
            |entry| {
                entry.check_after(previous, self.base_offset)?;
                previous = Some(entry.last_offset);
                Ok(true)
            },
        )
    }

    /// Lets the next flush sync the file: an earlier process may have left it in the page cache.
    pub(crate) fn distrust(&self) {
        self.unsynced.store(true, Ordering::Relaxed);
    }

    /// Makes entries durable, and the name of a new file.
    pub fn flush(&self) -> Result<()> {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.sync();
        if synced.is_err() {
            self.unsynced.store(true, Ordering::Relaxed);
        }
        synced
    }

    fn sync(&self) -> Result<()> {
        let held = self.found(&mut self.exclusive())?;
        let Some(file) = held else {
            return Ok(());
        };
        file.sync()?;
        if self.is_new.load(Ordering::Relaxed) {
            self.dir.sync()?;
            self.is_new.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives up the descriptor; the next use opens the file again.
    pub fn close(&self) {
        self.exclusive().file = Found::Unknown;
    }

    /// Renames the file for another state. Fine when there is none.
    pub fn rename(&self, to: FileState) -> Result<()> {
        let mut state = self.exclusive();
        let name = SegmentFile { state: to, ..state.name };
        match self.dir.rename(&state.name.to_string(), &name.to_string()) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => state.name = name,
        }
        Ok(())
    }

    /// Closes the index and removes its file; `false` when there was none.
    pub fn remove(&self) -> Result<bool> {
        let mut state = self.exclusive();
        state.file = Found::Unknown;
        self.unsynced.store(false, Ordering::Relaxed);
        self.dir.unlink(&state.name.to_string())
    }

    /// Where the file is, or would be.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(self.shared().name.to_string())
    }

    /// Visits the entries from where `first` says until the visitor has enough.
    fn walk(
        &self,
        first: impl FnOnce(&D::File, u64) -> Result<u64>,
        mut visit: impl FnMut(AbortedTxn) -> Result<bool, CorruptKind>,
    ) -> Result<()> {
        self.with_file(|file, bytes| {
            let mut at = first(file, bytes)?;
            let mut chunk = [[0; TXN_ENTRY_BYTES]; CHUNK];
            while at < bytes {
                let left = usize::try_from((bytes - at) / ENTRY_BYTES).unwrap_or(CHUNK);
                let entries = chunk.get_mut(..left.min(CHUNK)).unwrap_or_default();
                fill(file, entries.as_flattened_mut(), at)?;
                for raw in entries {
                    let more = AbortedTxn::decode(raw).and_then(&mut visit);
                    if !more.map_err(|kind| Error::corrupt(file.path(), at, kind))? {
                        return Ok(());
                    }
                    at += ENTRY_BYTES;
                }
            }
            Ok(())
        })
    }

    /// Runs with the file and the bytes of its whole entries, if there is one.
    fn with_file(&self, run: impl FnOnce(&D::File, u64) -> Result<()>) -> Result<()> {
        let state = self.shared();
        match &state.file {
            Found::Missing => return Ok(()),
            Found::Open(file) => return run(file, self.bytes.load(Ordering::Acquire)),
            Found::Unknown => {}
        }
        drop(state);
        let mut state = self.exclusive();
        match self.found(&mut state)? {
            Some(file) => run(&file, self.bytes.load(Ordering::Acquire)),
            None => Ok(()),
        }
    }

    fn found(&self, state: &mut State<D>) -> Result<Option<Arc<D::File>>> {
        match &state.file {
            Found::Missing => return Ok(None),
            Found::Open(file) => return Ok(Some(Arc::clone(file))),
            Found::Unknown => {}
        }
        match self.dir.open_write(&state.name.to_string(), Create::No) {
            Ok(file) => {
                let bytes = file.facts()?.bytes;
                self.bytes.store(bytes - bytes % ENTRY_BYTES, Ordering::Release);
                let file = Arc::new(file);
                state.file = Found::Open(Arc::clone(&file));
                Ok(Some(file))
            }
            Err(error) if error.is_not_found() => {
                state.file = Found::Missing;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn make(&self, state: &mut State<D>) -> Result<Arc<D::File>> {
        let file = Arc::new(self.dir.open_write(&state.name.to_string(), Create::IfMissing)?);
        self.is_new.store(true, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Release);
        state.file = Found::Open(Arc::clone(&file));
        Ok(file)
    }

    fn shared(&self) -> RwLockReadGuard<'_, State<D>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State<D>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the first entry with this last offset or a later one stands, or up to `slack` − 1 entries
/// before it.
fn first_from(file: &impl File, bytes: u64, offset: i64, slack: u64) -> Result<u64> {
    let (mut first, mut count) = (0, bytes / ENTRY_BYTES);
    while count >= slack {
        let half = count / 2;
        if read_one(file, (first + half) * ENTRY_BYTES)?.last_offset < offset {
            first += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    Ok(first * ENTRY_BYTES)
}

fn read_one(file: &impl File, at: u64) -> Result<AbortedTxn> {
    let mut raw = [0; TXN_ENTRY_BYTES];
    fill(file, &mut raw, at)?;
    AbortedTxn::decode(&raw).map_err(|kind| Error::corrupt(file.path(), at, kind))
}

fn fill(file: &impl File, buffer: &mut [u8], at: u64) -> Result<()> {
    if file.read_at(buffer, at)? == buffer.len() {
        return Ok(());
    }
    Err(Error::Changed { path: file.path().to_owned(), what: "was cut short" })
}

//! What the offset index and the time index share: one mapped file of fixed-size entries.
//!
//! # Who may do what
//!
//! One writer at a time (the holder of the log's lock) and any number of readers. Appending and
//! searching share a lock that neither waits for: an entry's cells are stored first, then the
//! count is published, so a reader sees whole entries only. Whatever moves the ground under a
//! reader — truncation, another file length, another map, closing — waits until the searches that
//! are under way have ended and keeps new ones out for its own duration. So no reader ever touches
//! a page that the file has lost, nor an entry that is being written again.
//!
//! The answer of a search is a hint all the same: the log can be truncated between the answer and
//! its use. Who reads the `.log` file with it checks what is there.
//!
//! # The file
//!
//! 1. While active the file is `max_bytes` long, rounded down to whole entries, and zero after the
//!    last entry. Its length is set at once, as Kafka does; disk blocks are reserved a little ahead
//!    of the writer, because a store into a page without a block kills the process when the disk
//!    is full.
//! 2. The number of entries is known to the writer only. Whoever opens the file takes its length
//!    for it; so it is cut to its entries on roll and on close, and after an unclean stop it is
//!    rebuilt.
//! 3. A sealed file is opened and mapped by the first search, once, however many searches race for
//!    it, and holds no descriptor. A missing one counts as empty: searches then start at the
//!    segment's start.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::{Error, Result};
use crate::fs::{Create, File as _, Map, WriteDir, WriteFile};
use crate::names::{FileState, SegmentFile};
use crate::record::CorruptKind;

/// Disk blocks are reserved this many bytes at a time: one call for some 8 MiB of log.
const RESERVE_BYTES: u64 = 16 * 1024;

/// Kafka keeps the length of an index in an i32.
const INDEX_BYTES_MAX: u64 = 0x7fff_ffff;

/// Whether an index takes entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    /// Of the segment that is written: made when missing, mapped at once, at full length.
    Active,
    /// Of any other: untouched until the first search.
    Sealed,
}

type FileOf<D> = <D as crate::fs::Dir>::File;
type MapOf<D> = <FileOf<D> as WriteFile>::Map;

/// A mapped file of entries of `CELLS` big-endian 32-bit cells.
pub(super) struct Mapped<D: WriteDir, const CELLS: usize> {
    dir: Arc<D>,
    /// Entries that readers may see; says nothing while the file is closed.
    entries: AtomicUsize,
    unsynced: AtomicBool,
    state: RwLock<State<D>>,
}

struct State<D: WriteDir> {
    name: SegmentFile,
    mode: IndexMode,
    open: Option<Open<D>>,
}

struct Open<D: WriteDir> {
    /// None when the file is missing.
    map: Option<MapOf<D>>,
    /// Held while the file may be resized or is not synced.
    file: Option<Arc<FileOf<D>>>,
    /// Length of the file.
    bytes: u64,
    /// How much of it the disk has promised to take.
    reserved: AtomicU64,
}

/// What stays open after a file was opened to be mapped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Map,
    MapAndFile,
}

/// What an entry about to be appended finds.
pub(super) struct Tail<const CELLS: usize> {
    pub(super) last: Option<[u32; CELLS]>,
    pub(super) entries: usize,
    pub(super) capacity: usize,
}

/// The cells of one entry.
#[inline]
pub(super) fn load<const CELLS: usize>(map: &impl Map, entry: usize) -> [u32; CELLS] {
    let first = entry * CELLS;
    std::array::from_fn(|cell| map.load(first + cell))
}

impl<D: WriteDir, const CELLS: usize> Mapped<D, CELLS> {
    pub(super) const ENTRY_BYTES: usize = CELLS * size_of::<u32>();

    pub(super) fn open(
        dir: Arc<D>,
        name: SegmentFile,
        max_bytes: u64,
        mode: IndexMode,
    ) -> Result<Self> {
        let state = State { name, mode: IndexMode::Sealed, open: None };
        let index = Self {
            dir,
            entries: AtomicUsize::new(0),
            unsynced: AtomicBool::new(false),
            state: RwLock::new(state),
        };
        if mode == IndexMode::Active {
            index.extend(max_bytes)?;
        }
        Ok(index)
    }

    /// Runs a search; `None` when the file is missing. Opens and maps the file if it is not.
    #[inline]
    pub(super) fn search<R>(&self, run: impl FnOnce(&MapOf<D>, usize) -> R) -> Result<Option<R>> {
        let state = self.shared();
        if let Some(open) = &state.open {
            let entries = self.entries.load(Ordering::Acquire);
            return Ok(open.map.as_ref().map(|map| run(map, entries)));
        }
        drop(state);
        self.search_closed(run)
    }

    #[cold]
    fn search_closed<R>(&self, run: impl FnOnce(&MapOf<D>, usize) -> R) -> Result<Option<R>> {
        let mut state = self.exclusive();
        let open = self.opened(&mut state, Keep::Map)?;
        let entries = self.entries.load(Ordering::Acquire);
        Ok(open.map.as_ref().map(|map| run(map, entries)))
    }

    /// Number of entries. Leaves a closed file closed.
    pub(super) fn entries(&self) -> Result<usize> {
        let state = self.shared();
        if state.open.is_some() {
            return Ok(self.entries.load(Ordering::Acquire));
        }
        let file = self.find(state.name)?;
        let bytes = file.map_or(Ok(0), |file| Ok(file.facts()?.bytes))?;
        Ok(Self::whole_entries(bytes))
    }

    /// The last entry. Leaves a closed file closed, so that asking every segment of a log for its
    /// largest timestamp maps none of them.
    pub(super) fn last(&self) -> Result<Option<[u32; CELLS]>> {
        let state = self.shared();
        if let Some(open) = &state.open {
            let last = self.entries.load(Ordering::Acquire).checked_sub(1);
            return Ok(last.and_then(|last| Some(load(open.map.as_ref()?, last))));
        }
        let Some(file) = self.find(state.name)? else {
            return Ok(None);
        };
        let Some(last) = Self::whole_entries(file.facts()?.bytes).checked_sub(1) else {
            return Ok(None);
        };
        let mut cells = [[0; 4]; CELLS];
        let bytes = cells.as_flattened_mut();
        let wanted = bytes.len();
        let read = file.read_at(bytes, Self::bytes_of(last))?;
        Ok((read == wanted).then(|| cells.map(u32::from_be_bytes)))
    }

    /// Whether fewer than `spare` + 1 entries fit; a file that is not active takes none.
    pub(super) fn is_full(&self, spare: usize) -> bool {
        let state = self.shared();
        let capacity = state.writable().map_or(0, |open| Self::whole_entries(open.bytes));
        self.entries.load(Ordering::Relaxed) >= capacity.saturating_sub(spare)
    }

    /// Appends what `decide` makes of the tail; `false` when it makes nothing of it.
    pub(super) fn append(
        &self,
        decide: impl FnOnce(&Tail<CELLS>) -> Result<Option<[u32; CELLS]>, String>,
    ) -> Result<bool> {
        let state = self.shared();
        let Some((open, map)) = state.writable().and_then(|open| Some((open, open.map.as_ref()?)))
        else {
            return Err(self.refusal(&state, "is not open for appending"));
        };
        let entries = self.entries.load(Ordering::Relaxed);
        let last = entries.checked_sub(1).map(|last| load(map, last));
        let capacity = Self::whole_entries(open.bytes);
        let decided = decide(&Tail { last, entries, capacity });
        let Some(cells) = decided.map_err(|why| self.refusal(&state, &why))? else {
            return Ok(false);
        };
        if entries >= capacity {
            return Err(self.refusal(&state, "has no room for another entry"));
        }
        open.reserve(Self::bytes_of(entries + 1))?;
        let first = entries * CELLS;
        for (cell, value) in cells.into_iter().enumerate() {
            map.store(first + cell, value);
        }
        self.unsynced.store(true, Ordering::Release);
        self.entries.store(entries + 1, Ordering::Release);
        Ok(true)
    }

    /// Keeps the first entries, as many as `keep` says of the map and the count, and zeroes the
    /// others, so that nobody who looks at the file alone takes them for entries.
    pub(super) fn truncate(&self, keep: impl FnOnce(&MapOf<D>, usize) -> usize) -> Result<()> {
        let mut state = self.exclusive();
        let open = self.opened(&mut state, Keep::MapAndFile)?;
        let Some(map) = &open.map else {
            return Ok(());
        };
        let entries = self.entries.load(Ordering::Relaxed);
        let kept = keep(map, entries).min(entries);
        for cell in kept * CELLS..entries * CELLS {
            // What an unclean stop left can be a hole; a store there needs a disk block.
            if map.load(cell) != 0 {
                map.store(cell, 0);
            }
        }
        if kept != entries {
            self.unsynced.store(true, Ordering::Relaxed);
            self.entries.store(kept, Ordering::Release);
        }
        Ok(())
    }

    /// Forgets every entry and makes the index active, at full length; makes a missing file.
    pub(super) fn reset(&self, max_bytes: u64) -> Result<()> {
        let mut state = self.exclusive();
        let file = self.attach(&state)?;
        state.open = None;
        self.unsynced.store(true, Ordering::Relaxed);
        // Cut to nothing first, so that what follows is zeros and no remains.
        file.set_len(0)?;
        self.entries.store(0, Ordering::Release);
        self.remap(&mut state, file, max_bytes, IndexMode::Active)
    }

    /// Makes the index active, at full length but never below its entries; makes a missing file.
    pub(super) fn extend(&self, max_bytes: u64) -> Result<()> {
        let mut state = self.exclusive();
        let file = self.attach(&state)?;
        self.remap(&mut state, file, max_bytes, IndexMode::Active)
    }

    /// Cuts the file to its entries and seals the index.
    pub(super) fn trim(&self) -> Result<()> {
        let mut state = self.exclusive();
        self.trim_locked(&mut state)
    }

    fn trim_locked(&self, state: &mut State<D>) -> Result<()> {
        if state.open.as_ref().is_none_or(|open| open.map.is_none()) {
            state.mode = IndexMode::Sealed;
            return Ok(());
        }
        let file = self.attach(state)?;
        self.remap(state, file, 0, IndexMode::Sealed)
    }

    /// Lets the next flush sync the file whatever this process has done to it: an earlier one may
    /// have left it in the page cache alone.
    pub(super) fn distrust(&self) {
        self.unsynced.store(true, Ordering::Relaxed);
    }

    /// Makes entries and length durable. Searches and appends go on meanwhile.
    pub(super) fn flush(&self) -> Result<()> {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.sync_file();
        if synced.is_err() {
            self.unsynced.store(true, Ordering::Relaxed);
        }
        synced
    }

    fn sync_file(&self) -> Result<()> {
        let state = self.shared();
        let held = state.open.as_ref().and_then(|open| open.file.clone());
        let name = state.name;
        drop(state);
        let file = match held {
            Some(file) => file,
            None => match self.find(name)? {
                Some(file) => Arc::new(file),
                None => return Ok(()),
            },
        };
        file.sync()?;
        let mut state = self.exclusive();
        if state.mode == IndexMode::Sealed
            && !self.unsynced.load(Ordering::Relaxed)
            && let Some(open) = &mut state.open
        {
            open.file = None;
        }
        Ok(())
    }

    /// Trims an active index and lets go of map and descriptor; the next search opens it again.
    pub(super) fn close(&self) -> Result<()> {
        let mut state = self.exclusive();
        let trimmed = match state.mode {
            IndexMode::Active => self.trim_locked(&mut state),
            IndexMode::Sealed => Ok(()),
        };
        state.open = None;
        state.mode = IndexMode::Sealed;
        trimmed
    }

    /// Gives the file the name of another state. Fine when there is no file.
    pub(super) fn rename(&self, to: FileState) -> Result<()> {
        let mut state = self.exclusive();
        let name = SegmentFile { state: to, ..state.name };
        match self.dir.rename(&state.name.to_string(), &name.to_string()) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => state.name = name,
        }
        Ok(())
    }

    /// Closes the index and removes its file; `false` when there was none.
    pub(super) fn remove(&self) -> Result<bool> {
        let mut state = self.exclusive();
        state.open = None;
        state.mode = IndexMode::Sealed;
        self.unsynced.store(false, Ordering::Relaxed);
        self.dir.unlink(&state.name.to_string())
    }

    /// Whether a map is held.
    pub(super) fn is_mapped(&self) -> bool {
        self.shared().open.as_ref().is_some_and(|open| open.map.is_some())
    }

    /// Fails when the file does not end with a whole entry.
    pub(super) fn check_length(&self, torn: CorruptKind) -> Result<()> {
        let mut state = self.exclusive();
        let bytes = self.opened(&mut state, Keep::Map)?.bytes;
        let whole = Self::bytes_of(Self::whole_entries(bytes));
        if bytes == whole { Ok(()) } else { Err(Error::corrupt(&self.path(&state), whole, torn)) }
    }

    /// Damage of an entry.
    pub(super) fn corrupt(&self, entry: usize, kind: CorruptKind) -> Error {
        Error::corrupt(&self.path(&self.shared()), Self::bytes_of(entry), kind)
    }

    /// Where the file is.
    pub(super) fn file_path(&self) -> PathBuf {
        self.path(&self.shared())
    }

    fn refusal(&self, state: &State<D>, why: &str) -> Error {
        Error::Invalid(format!("{} {why}", self.path(state).display()))
    }

    fn path(&self, state: &State<D>) -> PathBuf {
        self.dir.path().join(state.name.to_string())
    }

    fn shared(&self) -> RwLockReadGuard<'_, State<D>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State<D>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: SegmentFile) -> Result<Option<FileOf<D>>> {
        match self.dir.open_write(&name.to_string(), Create::No) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The open file, opened and mapped at its own length if it is not.
    fn opened<'a>(&self, state: &'a mut State<D>, keep: Keep) -> Result<&'a Open<D>> {
        let open = match state.open.take() {
            Some(open) => open,
            None => self.map_found(state.name, keep)?,
        };
        Ok(state.open.insert(open))
    }

    fn map_found(&self, name: SegmentFile, keep: Keep) -> Result<Open<D>> {
        let Some(file) = self.find(name)? else {
            self.entries.store(0, Ordering::Release);
            return Ok(Open { map: None, file: None, bytes: 0, reserved: AtomicU64::new(0) });
        };
        let bytes = file.facts()?.bytes;
        let entries = Self::whole_entries(bytes);
        let map = file.map(Self::bytes_of(entries))?;
        self.entries.store(entries, Ordering::Release);
        let file = (keep == Keep::MapAndFile).then(|| Arc::new(file));
        Ok(Open { map: Some(map), file, bytes, reserved: AtomicU64::new(0) })
    }

    /// The held file, or the one of this name, made when it is missing. If the index was closed,
    /// the file's length says how many entries it has.
    fn attach(&self, state: &State<D>) -> Result<Arc<FileOf<D>>> {
        if let Some(file) = state.open.as_ref().and_then(|open| open.file.clone()) {
            return Ok(file);
        }
        let file = self.dir.open_write(&state.name.to_string(), Create::IfMissing)?;
        if state.open.is_none() {
            let entries = Self::whole_entries(file.facts()?.bytes);
            self.entries.store(entries, Ordering::Release);
        }
        Ok(Arc::new(file))
    }

    /// Gives the file another length, not below its entries, and a map of that length. What fails
    /// before the length has changed leaves everything as it was.
    fn remap(
        &self,
        state: &mut State<D>,
        file: Arc<FileOf<D>>,
        bytes: u64,
        mode: IndexMode,
    ) -> Result<()> {
        let entries = self.entries.load(Ordering::Relaxed);
        let full = Self::bytes_of(Self::whole_entries(bytes));
        if mode == IndexMode::Active && full == 0 {
            let why = format!("needs at least {} bytes, {bytes} are allowed", Self::ENTRY_BYTES);
            return Err(self.refusal(state, &why));
        }
        let length = full.max(Self::bytes_of(entries));
        let held = state.open.as_ref().filter(|open| open.file.is_some());
        if held.is_some_and(|open| open.bytes == length) {
            state.mode = mode;
            return Ok(());
        }
        let was_held = held.is_some();
        self.unsynced.store(true, Ordering::Relaxed);
        file.set_len(length)?;
        let before = state.open.take();
        state.mode = IndexMode::Sealed;
        // Without a map the length alone tells the number of entries.
        let map = file.map(length).inspect_err(|_| drop(file.set_len(Self::bytes_of(entries))))?;
        let old = before.and_then(|open| open.map).filter(|_| !was_held);
        if let Some(old) = old {
            file.allocate(Self::bytes_of(entries))?;
            carry_over(&old, &map, entries * CELLS);
        }
        let reserved = AtomicU64::new(0);
        state.open = Some(Open { map: Some(map), file: Some(file), bytes: length, reserved });
        state.mode = mode;
        Ok(())
    }

    /// Whole entries in that many bytes, no more than Kafka can count.
    fn whole_entries(bytes: u64) -> usize {
        usize::try_from(bytes.min(INDEX_BYTES_MAX)).unwrap_or(0) / Self::ENTRY_BYTES
    }

    fn bytes_of(entries: usize) -> u64 {
        u64::try_from(entries * Self::ENTRY_BYTES).unwrap_or(INDEX_BYTES_MAX)
    }
}

impl<D: WriteDir> State<D> {
    fn writable(&self) -> Option<&Open<D>> {
        self.open.as_ref().filter(|_| self.mode == IndexMode::Active)
    }
}

impl<D: WriteDir> Open<D> {
    /// Makes sure that a store before `bytes` finds a disk block.
    fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes <= self.reserved.load(Ordering::Relaxed) {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(RESERVE_BYTES).min(self.bytes);
        if let Some(file) = &self.file {
            file.allocate(wanted)?;
        }
        self.reserved.store(wanted, Ordering::Relaxed);
        Ok(())
    }
}

/// Makes the new map hold what the old one held. They show the same file unless somebody has
/// removed or replaced it by hand; then the content is what counts, not the name.
fn carry_over(old: &impl Map, new: &impl Map, cells: usize) {
    for cell in 0..cells {
        let value = old.load(cell);
        if new.load(cell) != value {
            new.store(cell, value);
        }
    }
}

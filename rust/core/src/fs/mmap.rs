//! A file mapped as big-endian 32-bit cells: the only `unsafe` code of this crate.
//!
//! Only files of a directory whose lock we hold are mapped. A cell is an atomic, so readers beside
//! the writer see either the old value or the new and never a data race. What no type can prevent
//! is that somebody cuts the file under the map; then touching a page past the file's end kills
//! the process with SIGBUS. The owner therefore never touches cells past the size that it has set.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::Map;
use crate::error::{Error, Result};

const CELL_BYTES: usize = size_of::<AtomicU32>();

/// A shared, writable map of a real file.
#[derive(Debug)]
pub struct RealMap {
    raw: MmapRaw,
    cells: usize,
    path: PathBuf,
}

impl RealMap {
    pub(super) fn new(handle: &OwnedFd, bytes: u64, path: &Path) -> Result<Self> {
        let too_large = || Error::TooLarge { what: "map", size: bytes, limit: u64::from(u32::MAX) };
        let length = usize::try_from(bytes).map_err(|_| too_large())?;
        let raw = MmapOptions::new()
            .len(length)
            .map_raw(handle)
            .map_err(|error| Error::io("map", path, error))?;
        Ok(Self { raw, cells: length / CELL_BYTES, path: path.to_owned() })
    }

    #[expect(unsafe_code, reason = "an atomic over mapped memory cannot be had otherwise")]
    fn cell(&self, cell: usize) -> Option<&AtomicU32> {
        if cell >= self.cells {
            return None;
        }
        let cells: *mut AtomicU32 = self.raw.as_mut_ptr().cast();
        // SAFETY: the map starts on a page, which is aligned for any cell; `cell` is below the
        // count of whole cells in it; the map lives as long as `self`, which the reference
        // borrows; and nobody in this process reaches the memory but through these atomics.
        Some(unsafe { &*cells.add(cell) })
    }
}

impl Map for RealMap {
    fn cells(&self) -> usize {
        self.cells
    }

    fn load(&self, cell: usize) -> u32 {
        self.cell(cell).map_or(0, |cell| u32::from_be(cell.load(Ordering::Relaxed)))
    }

    fn store(&self, cell: usize, value: u32) {
        debug_assert!(cell < self.cells, "cell {cell} of {}", self.cells);
        if let Some(cell) = self.cell(cell) {
            cell.store(value.to_be(), Ordering::Relaxed);
        }
    }

    fn flush(&self) -> Result<()> {
        if self.cells == 0 {
            return Ok(());
        }
        self.raw.flush().map_err(|error| Error::io("sync map of", &self.path, error))
    }
}

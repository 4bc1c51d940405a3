//! A sliding window over a file, filled by `pread`.
//!
//! The kernel copies fastest into page-aligned memory; a large allocation starts sixteen bytes past
//! a page, which costs a third of the speed. So the window reads into an aligned place of its
//! buffer and puts what was left of the last read right before it.

use crate::error::{Error, Result};
use crate::fs::File;

const PAGE: usize = 4096;

/// A large buffer grows in such steps, so that tails of slightly different lengths share one.
const STEP: usize = 256 << 10;

/// Contiguous bytes of a file from a moving position on.
#[derive(Debug)]
pub struct Window<F> {
    file: F,
    storage: Vec<u8>,
    /// First and end index of the valid bytes in `storage`.
    start: usize,
    end: usize,
    /// File position of `start`.
    position: u64,
    /// File position where reading ends.
    limit: u64,
    read_bytes: usize,
}

impl<F: File> Window<F> {
    /// A window over `file` from `position` to `limit` that reads `read_bytes` at a time.
    pub fn new(file: F, position: u64, limit: u64, read_bytes: usize) -> Self {
        Self { file, storage: Vec::new(), start: 0, end: 0, position, limit, read_bytes }
    }

    /// The same window over another file; the buffer is kept.
    #[must_use]
    pub fn reopen(self, file: F, position: u64, limit: u64) -> Self {
        Self { file, start: 0, end: 0, position, limit, ..self }
    }

    /// The file under the window.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// File position of the first byte of the window.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// File position where reading ends.
    #[inline]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes from the position to the limit.
    #[inline]
    pub fn remaining(&self) -> u64 {
        self.limit.saturating_sub(self.position)
    }

    /// The next `bytes` bytes, or as many as there are before the limit.
    #[inline]
    pub fn ensure(&mut self, bytes: usize) -> Result<&[u8]> {
        if self.end - self.start < bytes {
            self.refill(bytes)?;
        }
        Ok(self.held(bytes))
    }

    /// The bytes already in memory, at most `bytes` of them.
    #[inline]
    pub fn held(&self, bytes: usize) -> &[u8] {
        let end = self.end.min(self.start.saturating_add(bytes));
        self.storage.get(self.start..end).unwrap_or_default()
    }

    /// Moves on by `bytes`.
    #[inline]
    pub fn skip(&mut self, bytes: usize) {
        self.start = self.start.saturating_add(bytes).min(self.end);
        self.position = self.position.saturating_add(to_u64(bytes));
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Bytes at any position, read past the window; fewer where the limit comes first.
    pub fn peek_at(&self, position: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = to_usize(self.limit.saturating_sub(position)).min(buffer.len());
        let Some(buffer) = buffer.get_mut(..left) else {
            return Ok(0);
        };
        let read = self.file.read_at(buffer, position)?;
        if read < left { Err(self.was_cut()) } else { Ok(read) }
    }

    /// The file ends before the limit, which it did not when the limit was taken.
    #[cold]
    fn was_cut(&self) -> Error {
        Error::Changed { path: self.file.path().to_owned(), what: "was cut short" }
    }

    fn refill(&mut self, bytes: usize) -> Result<()> {
        let tail = self.end - self.start;
        let left = to_usize(self.remaining()).saturating_sub(tail);
        let wanted = (bytes - tail).max(self.read_bytes).min(left);
        if wanted == 0 {
            return Ok(());
        }
        let at = self.make_room(tail, wanted);
        let from = self.position.saturating_add(to_u64(tail));
        let place = self.storage.get_mut(at..at.saturating_add(wanted)).unwrap_or_default();
        let read = self.file.read_at(place, from)?;
        self.start = at - tail;
        self.end = at + read;
        if read < wanted { Err(self.was_cut()) } else { Ok(()) }
    }

    /// Makes `wanted` aligned bytes follow the `tail` bytes still held; returns where they start.
    fn make_room(&mut self, tail: usize, wanted: usize) -> usize {
        let needed = tail + wanted + 2 * PAGE;
        if self.storage.len() < needed {
            let mut grown = vec![0; needed.next_multiple_of(STEP.min(needed.next_power_of_two()))];
            let at = aligned(&grown, tail);
            if let (Some(to), Some(from)) =
                (grown.get_mut(at - tail..at), self.storage.get(self.start..self.end))
            {
                to.copy_from_slice(from);
            }
            self.storage = grown;
            return at;
        }
        let at = aligned(&self.storage, tail);
        self.storage.copy_within(self.start..self.end, at - tail);
        at
    }
}

/// The first index at or after `index` that lies on a page.
fn aligned(storage: &[u8], index: usize) -> usize {
    let past = storage.as_ptr().addr().wrapping_add(index) % PAGE;
    if past == 0 { index } else { index + PAGE - past }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

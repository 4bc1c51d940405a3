//! Finding entries in a segment: an index gives a place to begin, heads lead from there.

use super::{EntryHead, Segment};
use crate::error::{Error, Result};
use crate::fs::{File, WriteFs};

/// Where an entry stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Located {
    /// Its first offset, where its head tells it, else its last.
    pub(crate) base_offset: i64,
    /// Its place in the file.
    pub(crate) position: u64,
    /// Its length.
    pub(crate) bytes: u64,
}

impl<S: WriteFs> Segment<S> {
    /// The first entry that reaches an offset, of those that begin before `limit`.
    pub(crate) fn locate(&self, target: i64, limit: u64) -> Result<Option<Located>> {
        let hint = self.hint(target, limit)?;
        match self.locate_from(hint, target, limit) {
            // A hint that leads astray is an index that does not belong to the file.
            Err(Error::Corrupt { .. }) if hint > 0 => self.locate_from(0, target, limit),
            located => located,
        }
    }

    fn locate_from(&self, from: u64, target: i64, limit: u64) -> Result<Option<Located>> {
        let mut heads = Heads::new(self.file()?, from, limit);
        while let Some((position, head)) = heads.next()? {
            if head.last_offset() >= target {
                return Ok(Some(Located {
                    base_offset: head.base_offset().unwrap_or(head.last_offset()),
                    position,
                    bytes: u64::try_from(head.total_bytes()).unwrap_or(u64::MAX),
                }));
            }
        }
        Ok(None)
    }

    /// Where a search for an offset begins.
    pub(crate) fn hint(&self, target: i64, limit: u64) -> Result<u64> {
        let position = u64::from(self.offset_index.lookup(target)?.position);
        Ok(if position < limit { position } else { 0 })
    }
}

/// The most that is read at once to find heads.
const BUFFER: usize = 4096;
/// The first read: it finds the head of a large batch and the next ones of small batches.
const FIRST: usize = 1024;

/// Walks the heads of entries with as few reads as their sizes allow.
pub(crate) struct Heads<'a, F> {
    file: &'a F,
    /// Where the next entry begins.
    position: u64,
    limit: u64,
    buffer: [u8; BUFFER],
    /// File position of the buffer's first byte, and bytes in it.
    held_from: u64,
    held: usize,
    /// Bytes that the next read asks for.
    ask: usize,
}

impl<'a, F: File> Heads<'a, F> {
    pub(crate) fn new(file: &'a F, position: u64, limit: u64) -> Self {
        let buffer = [0; BUFFER];
        Self { file, position, limit, buffer, held_from: position, held: 0, ask: FIRST }
    }

    /// The next head with its position; `None` at the limit.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, EntryHead)>> {
        let left = self.limit.saturating_sub(self.position);
        if left == 0 {
            return Ok(None);
        }
        let position = self.position;
        let bytes = self.bytes(left)?;
        let head = EntryHead::read(bytes, left)
            .map_err(|kind| Error::corrupt(self.file.path(), position, kind))?;
        let total = head.total_bytes();
        self.position = position.saturating_add(u64::try_from(total).unwrap_or(u64::MAX));
        self.ask = if total > FIRST { EntryHead::BYTES } else { BUFFER };
        Ok(Some((position, head)))
    }

    /// The bytes at the position, as many as a head needs.
    fn bytes(&mut self, left: u64) -> Result<&[u8]> {
        let needed = usize::try_from(left).unwrap_or(usize::MAX).min(EntryHead::BYTES);
        let from = usize::try_from(self.position - self.held_from).unwrap_or(usize::MAX);
        if self.held.saturating_sub(from) < needed {
            let ask = usize::try_from(left).unwrap_or(usize::MAX).min(self.ask);
            let buffer = self.buffer.get_mut(..ask).unwrap_or_default();
            self.held = self.file.read_at(buffer, self.position)?;
            self.held_from = self.position;
            return Ok(self.buffer.get(..self.held.min(needed)).unwrap_or_default());
        }
        Ok(self.buffer.get(from..from.saturating_add(needed)).unwrap_or_default())
    }
}

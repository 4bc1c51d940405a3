//! Finding entries in a segment: an index gives a place to begin, heads lead from there.

use super::active::to_u64;
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

impl Located {
    fn new(position: u64, head: &EntryHead) -> Self {
        Self {
            base_offset: head.base_offset().unwrap_or(head.last_offset()),
            position,
            bytes: to_u64(head.total_bytes()),
        }
    }
}

impl<S: WriteFs> Segment<S> {
    /// The first entry that reaches an offset, of those that begin before `limit`.
    pub(crate) fn locate(&self, target: i64, limit: u64) -> Result<Option<Located>> {
        let (entry, next) = self.offset_index.lookup_pair(target)?;
        let hint = Some(u64::from(entry.position)).filter(|hint| *hint < limit).unwrap_or(0);
        let next = next.map(|next| u64::from(next.position)).filter(|next| *next < limit);
        let span = next.map_or(0, |next| next.saturating_sub(hint));
        if let Some(next) = next
            && span > to_u64(BUFFER)
            && let Some(located) = self.locate_at(next, target, limit)?
        {
            return Ok(Some(located));
        }
        match self.locate_from(hint, span, target, limit) {
            // A hint that leads astray is an index that does not belong to the file.
            Err(Error::Corrupt { .. }) if hint > 0 => self.locate_from(0, 0, target, limit),
            located => located,
        }
    }

    /// The entry at a position, if it holds the offset. Large batches have an index entry each: the
    /// one after the greatest that is not above the offset is then that of its own batch.
    fn locate_at(&self, position: u64, target: i64, limit: u64) -> Result<Option<Located>> {
        let mut heads = Heads::asking(self.file()?, position, limit, EntryHead::BYTES);
        let head = match heads.next() {
            Ok(Some((_, head))) => head,
            Ok(None) | Err(Error::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let holds = head.base_offset().is_some_and(|base| base <= target);
        Ok((holds && target <= head.last_offset()).then(|| Located::new(position, &head)))
    }

    /// The first entry from a position on that reaches an offset; it is likely within `span` bytes.
    fn locate_from(
        &self,
        from: u64,
        span: u64,
        target: i64,
        limit: u64,
    ) -> Result<Option<Located>> {
        let ask = match usize::try_from(span) {
            Ok(span @ 1..=BUFFER) => span.saturating_add(EntryHead::BYTES),
            _ => FIRST,
        };
        let mut heads = Heads::asking(self.file()?, from, limit, ask);
        while let Some((position, head)) = heads.next()? {
            if head.last_offset() >= target {
                return Ok(Some(Located::new(position, &head)));
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
const BUFFER: usize = 8192;
/// The first read: it finds the head of a large batch and the next ones of small batches.
const FIRST: usize = 1024;
/// Batches up to this size are read together, larger ones head by head.
const SMALL: usize = 2048;

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
        Self::asking(file, position, limit, FIRST)
    }

    /// The same with another size of the first read.
    fn asking(file: &'a F, position: u64, limit: u64, ask: usize) -> Self {
        let (buffer, ask) = ([0; BUFFER], ask.min(BUFFER));
        Self { file, position, limit, buffer, held_from: position, held: 0, ask }
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
        self.ask = if total > SMALL { EntryHead::BYTES } else { BUFFER / 2 };
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

//! Walking the entries of a segment.

use super::continuity::{Continuity, Surroundings};
use super::resync::{Plausible, SearchBudget, next_good};
use super::{EntryHead, Window};
use crate::error::Result;
use crate::fs::File;
use crate::record::{CorruptKind, crc32, crc32c};

/// How much of each entry is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Heads only: the bodies are skipped, unseen.
    Heads,
    /// Whole entries, trusted as they are.
    Bodies,
    /// Whole entries, checked against their checksums.
    Checked,
}

/// The part of a segment file to walk.
#[derive(Debug, Clone)]
pub struct Span {
    /// Base offset that names the segment.
    pub segment_base: i64,
    /// The smallest offset that may stand at the start.
    pub expected: i64,
    /// Whether this is the last segment of its log, whose end may be torn.
    pub is_last: bool,
    /// Whether the log was closed cleanly, after which nothing may be torn.
    pub is_clean: bool,
    /// What is known around it.
    pub around: Surroundings,
}

/// What a step found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A good entry; its bytes are held until the next step.
    Entry(EntryHead),
    /// Bytes that are damaged; good entries, or the end of a sealed segment, follow.
    Damage {
        /// Where they start.
        position: u64,
        /// How many they are.
        bytes: u64,
        /// The check that the entry there failed.
        kind: CorruptKind,
    },
    /// The end of an open log: what follows was never a whole entry.
    Torn {
        /// Where the good entries end.
        position: u64,
        /// Bytes after it.
        bytes: u64,
        /// The check that the entry there failed.
        kind: CorruptKind,
    },
    /// The end.
    End,
}

/// Walks the entries of a segment file.
#[derive(Debug)]
pub struct Walker<F> {
    window: Window<F>,
    span: Span,
    depth: Depth,
    continuity: Continuity,
    /// Bytes of the entry handed out last, skipped by the next step.
    current: usize,
    /// What searches behind damage may still spend, once there was any.
    search: Option<SearchBudget>,
    /// The end was reached.
    is_done: bool,
}

impl<F: File> Walker<F> {
    /// A walker over `window`.
    pub fn new(window: Window<F>, span: Span, depth: Depth) -> Self {
        let continuity = Continuity::starting_at(span.expected);
        Self { window, span, depth, continuity, current: 0, search: None, is_done: false }
    }

    /// Gives the window back for the next segment.
    pub fn into_window(self) -> Window<F> {
        self.window
    }

    /// The file.
    pub fn file(&self) -> &F {
        self.window.file()
    }

    /// Position of the entry handed out last.
    #[inline]
    pub fn position(&self) -> u64 {
        self.window.position()
    }

    /// The smallest offset that may follow.
    pub fn expected(&self) -> i64 {
        self.continuity.expected
    }

    /// Bytes of the entry handed out last.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.window.held(self.current)
    }

    /// Reads the body of the entry handed out last, where only its head was read.
    pub fn load(&mut self) -> Result<&[u8]> {
        self.window.ensure(self.current)
    }

    /// The next entry, damage or end.
    #[inline]
    pub fn step(&mut self) -> Result<Step> {
        self.step_with(&mut || Ok(()))
    }

    /// The same with a chance to stop: `pulse` is called often while a search for good entries
    /// behind damage goes on, and an error of it ends the search.
    #[inline]
    pub fn step_with(&mut self, pulse: &mut dyn FnMut() -> Result<()>) -> Result<Step> {
        self.window.skip(std::mem::take(&mut self.current));
        if self.window.remaining() == 0 {
            return Ok(self.end());
        }
        match self.next_entry()? {
            Ok(head) => {
                self.current = head.total_bytes();
                Ok(Step::Entry(head))
            }
            Err(kind) => self.pass_damage(kind, pulse),
        }
    }

    /// The end; before it, once, what a cleanly closed log lacks.
    #[cold]
    fn end(&mut self) -> Step {
        let was_done = std::mem::replace(&mut self.is_done, true);
        let expected = self.span.around.exact_end().filter(|_| self.span.is_last);
        match expected {
            // Damage before the end explains a lack already.
            Some(expected)
                if expected > self.continuity.expected && !was_done && self.search.is_none() =>
            {
                let kind = CorruptKind::EarlyEnd { found: self.continuity.expected, expected };
                Step::Damage { position: self.window.position(), bytes: 0, kind }
            }
            _ => Step::End,
        }
    }

    /// Whether the rest of the entry handed out last turned out bad after its checksum was right.
    /// It counts as damage of its own; the walk goes on behind it.
    pub fn reject(&self, kind: CorruptKind) -> Step {
        let bytes = u64::try_from(self.current).unwrap_or(u64::MAX);
        Step::Damage { position: self.position(), bytes, kind }
    }

    #[inline]
    fn next_entry(&mut self) -> Result<Result<EntryHead, CorruptKind>> {
        let left = self.window.remaining();
        let head = match EntryHead::read(self.window.ensure(EntryHead::BYTES)?, left) {
            Ok(head) => head,
            Err(kind) => return Ok(Err(kind)),
        };
        let total = head.total_bytes();
        if self.depth != Depth::Heads {
            let bytes = self.window.ensure(total)?;
            if self.depth == Depth::Checked
                && let Err(kind) = check_crc(&head, bytes)
            {
                return Ok(Err(kind));
            }
        }
        let window = &self.window;
        let ahead = |bytes: usize| head_at(window, bytes);
        let judged = self.continuity.accept(&head, &self.span.around, ahead)?;
        Ok(judged.map(|()| head))
    }

    #[cold]
    fn pass_damage(
        &mut self,
        kind: CorruptKind,
        pulse: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Step> {
        let position = self.window.position();
        let plausible = Plausible {
            from: self.continuity.expected,
            below: self.span.around.next_base.unwrap_or_else(|| {
                self.span.segment_base.saturating_add(i64::from(i32::MAX)).saturating_add(1)
            }),
        };
        let declared = self.declared_end()?;
        let remaining = self.window.remaining();
        let budget = self.search.get_or_insert_with(|| SearchBudget::over(remaining));
        let good = next_good(&self.window, declared, plausible, budget, pulse)?;
        let end = good.unwrap_or(self.window.limit());
        let bytes = end.saturating_sub(position);
        self.window.skip(usize::try_from(bytes).unwrap_or(usize::MAX));
        if good.is_none() && self.span.is_last && !self.span.is_clean {
            return Ok(Step::Torn { position, bytes, kind });
        }
        let kind = if good.is_none() && self.span.is_last && kind == CorruptKind::TruncatedEntry {
            CorruptKind::Tail
        } else {
            kind
        };
        Ok(Step::Damage { position, bytes, kind })
    }

    /// Where the entry at the window's position says it ends, if it says anything sensible.
    fn declared_end(&mut self) -> Result<Option<u64>> {
        let position = self.window.position();
        let mut start = [0; EntryHead::BYTES];
        let read = self.window.peek_at(position, &mut start)?;
        let head = EntryHead::read(start.get(..read).unwrap_or_default(), self.window.remaining());
        Ok(head.ok().map(|head| {
            position.saturating_add(u64::try_from(head.total_bytes()).unwrap_or(u64::MAX))
        }))
    }
}

/// The head that stands `bytes` after the window's position.
fn head_at<F: File>(window: &Window<F>, bytes: usize) -> Result<Option<EntryHead>> {
    let position = window.position().saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    let left = window.limit().saturating_sub(position);
    let held = window.held(bytes.saturating_add(EntryHead::BYTES)).get(bytes..).unwrap_or_default();
    if held.len() == EntryHead::BYTES {
        return Ok(EntryHead::read(held, left).ok());
    }
    let mut start = [0; EntryHead::BYTES];
    let read = window.peek_at(position, &mut start)?;
    Ok(EntryHead::read(start.get(..read).unwrap_or_default(), left).ok())
}

#[inline]
fn check_crc(head: &EntryHead, bytes: &[u8]) -> Result<(), CorruptKind> {
    let (stored, computed) = match head {
        EntryHead::Batch(header) => (header.crc, crc32c(bytes.get(21..).unwrap_or_default())),
        EntryHead::Message(_) => {
            let field = bytes.get(12..).and_then(|rest| rest.first_chunk::<4>());
            let stored = field.map_or(0, |field| u32::from_be_bytes(*field));
            (stored, crc32(bytes.get(16..).unwrap_or_default()))
        }
    };
    if stored == computed { Ok(()) } else { Err(CorruptKind::Crc { stored, computed }) }
}

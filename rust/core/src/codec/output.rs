//! A buffer that is kept between batches.

use super::InflateError;

/// Buffers grow in such steps, so that batches of slightly different sizes share one.
const STEP: usize = 64 << 10;

/// A reusable buffer. It stays at its high-water length and counts what is in use, so that a batch
/// is inflated over the bytes of the one before without zeroing anything first.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    used: usize,
}

impl Output {
    /// The bytes in use.
    pub(super) fn used(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    /// Says how much of the buffer is in use.
    pub(super) fn set_used(&mut self, used: usize) {
        self.used = used.min(self.bytes.len());
    }

    /// Bytes of memory held.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives memory back if more than `keep` bytes are held.
    pub(super) fn trim(&mut self, keep: usize) {
        if self.bytes.capacity() > keep {
            *self = Self::default();
        }
    }

    /// `wanted` writable bytes with arbitrary content. Never allocates more than `budget`, which is
    /// not below `wanted`.
    pub(super) fn room(&mut self, wanted: usize, budget: usize) -> &mut [u8] {
        self.used = 0;
        if self.bytes.len() < wanted {
            // The old buffer goes first: both at once would hold more than the budget.
            self.bytes = Vec::new();
            self.bytes = vec![0; step_up(wanted, budget)];
        }
        self.bytes.get_mut(..wanted).unwrap_or_default()
    }

    /// Fills the buffer from a reader of unknown length, up to `budget` bytes.
    pub(super) fn fill(
        &mut self,
        budget: usize,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, InflateError>,
    ) -> Result<(), InflateError> {
        self.used = 0;
        loop {
            if self.used == budget {
                return match read(&mut [0])? {
                    0 => Ok(()),
                    _ => Err(InflateError::OverBudget),
                };
            }
            if self.used == self.bytes.len() {
                let target = step_up(self.used.saturating_mul(2).max(1), budget);
                self.bytes.reserve_exact(target - self.used);
                self.bytes.resize(target, 0);
            }
            let limit = self.bytes.len().min(budget);
            match read(self.bytes.get_mut(self.used..limit).unwrap_or_default())? {
                0 => return Ok(()),
                read => self.used += read,
            }
        }
    }
}

/// One inflated block that a stream hands out piece by piece.
pub(super) struct Window<'d> {
    block: &'d mut Output,
    taken: usize,
}

impl<'d> Window<'d> {
    /// An empty window over a kept buffer.
    pub(super) fn over(block: &'d mut Output) -> Self {
        block.set_used(0);
        Self { block, taken: 0 }
    }

    /// A window over what a paused stream left in the buffer.
    pub(super) fn again(block: &'d mut Output, taken: usize) -> Self {
        Self { block, taken }
    }

    /// Bytes handed out of the block.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Moves what fits to `output`; 0 when the block is used up.
    pub(super) fn take(&mut self, output: &mut [u8]) -> usize {
        let mut rest = self.block.used().get(self.taken..).unwrap_or_default();
        let moved = copy_some(&mut rest, output);
        self.taken += moved;
        moved
    }

    /// Replaces the block: `inflate` gets `room` bytes and returns how many it wrote.
    pub(super) fn refill(
        &mut self,
        room: usize,
        inflate: impl FnOnce(&mut [u8]) -> Result<usize, InflateError>,
    ) -> Result<(), InflateError> {
        self.taken = 0;
        let written = inflate(self.block.room(room, usize::MAX))?;
        self.block.set_used(written);
        Ok(())
    }
}

/// Moves what fits from the start of `rest` to `output`.
pub(super) fn copy_some(rest: &mut &[u8], output: &mut [u8]) -> usize {
    let length = rest.len().min(output.len());
    let (now, later) = rest.split_at_checked(length).unwrap_or_default();
    if let Some(target) = output.get_mut(..length) {
        target.copy_from_slice(now);
    }
    *rest = later;
    length
}

fn step_up(wanted: usize, budget: usize) -> usize {
    wanted.checked_next_multiple_of(STEP).unwrap_or(wanted).min(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_never_passes_the_budget() {
        let mut output = Output::default();
        assert_eq!(output.room(10, 100).len(), 10);
        assert_eq!(output.held_bytes(), 100);
        assert_eq!(output.room(STEP + 1, 1 << 30).len(), STEP + 1);
        assert_eq!(output.held_bytes(), 2 * STEP);
    }

    #[test]
    fn filling_stops_one_byte_over_the_budget() {
        for budget in [0, 1, STEP - 1, STEP, STEP + 1, 3 * STEP] {
            for source in [budget.saturating_sub(1), budget, budget + 1, budget + STEP] {
                let mut output = Output::default();
                let mut left = source;
                let filled = output.fill(budget, |target| {
                    let read = target.len().min(left);
                    left -= read;
                    Ok(read)
                });
                assert!(output.held_bytes() <= budget);
                if source > budget {
                    assert_eq!(filled, Err(InflateError::OverBudget));
                } else {
                    assert_eq!(filled, Ok(()));
                    assert_eq!(output.used().len(), source);
                }
            }
        }
    }

    #[test]
    fn trimming_frees_only_what_is_over_the_keep() {
        let mut output = Output::default();
        output.room(1000, 1000);
        output.trim(1000);
        assert_eq!(output.held_bytes(), 1000);
        output.trim(999);
        assert_eq!(output.held_bytes(), 0);
    }
}

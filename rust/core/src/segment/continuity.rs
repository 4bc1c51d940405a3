//! Judging an entry by what surrounds it.
//!
//! The checksum covers neither offset nor epoch, so damage there shows only against neighbours:
//!
//! 1. Offsets rise. An entry below the end of the one before it, or below the segment's base, is
//!    damaged.
//! 2. An entry must end below the next segment's base.
//! 3. A gap before an entry is normal in a compacted log. It is damage when the entry after it
//!    claims offsets inside the entry: then the gap came from a changed base offset. The last entry
//!    of a log is held against the recorded end of the log instead.
//! 4. Leader epochs never fall, and agree with the leader-epoch checkpoint where it covers them.
//! 5. Two entries that contradict each other are told apart by a third witness: the offset without
//!    the gap, or the entry after both. Where none speaks, neither is believed.
//!
//! What escapes: in a compacted log, a base offset changed to another value inside the gap around
//! its batch; without the checkpoint, an epoch changed at the very edge of the log. Nothing in the
//! files tells those from the truth.

use std::sync::Arc;

use super::EntryHead;
use crate::record::CorruptKind;

/// What is known around the entries of one segment.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Base offset of the next segment, if there is one.
    pub next_base: Option<i64>,
    /// The offset after the last record of the log, when a shutdown recorded it.
    pub recorded_end: Option<i64>,
    /// Whether nothing was appended since it was recorded: the shutdown was the last thing done.
    pub is_end_exact: bool,
    /// Leader epochs and their first offsets, ascending, from the checkpoint.
    pub epochs: Arc<Vec<(i32, i64)>>,
}

impl Surroundings {
    fn epoch_at(&self, offset: i64) -> Option<i32> {
        let after = self.epochs.partition_point(|(_, start)| *start <= offset);
        after.checked_sub(1).and_then(|last| self.epochs.get(last)).map(|(epoch, _)| *epoch)
    }

    /// Where the checkpoint says that the epoch after the one at `offset` begins.
    fn epoch_ends(&self, offset: i64) -> i64 {
        let after = self.epochs.partition_point(|(_, start)| *start <= offset);
        self.epochs.get(after).map_or(i64::MAX, |(_, start)| *start)
    }

    /// The end of the log, where it is known for certain.
    pub(super) fn exact_end(&self) -> Option<i64> {
        self.recorded_end.filter(|_| self.is_end_exact && self.next_base.is_none())
    }

    fn begins_after(&self, epoch: i32, offset: i64) -> bool {
        self.epochs.iter().any(|(known, start)| *known == epoch && *start > offset)
    }
}

/// Why an entry cannot be believed.
enum Doubt {
    /// It is damaged.
    This(CorruptKind),
    /// It or the one after it is damaged: they contradict each other.
    ThisOrNext(CorruptKind),
}

/// What the entries so far say about the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Continuity {
    /// The smallest offset the next entry may hold.
    pub(super) expected: i64,
    /// Epoch of the entry before, once one was seen.
    epoch: Option<i32>,
    /// Where the checkpoint lets that epoch end.
    epoch_ends: i64,
    /// The entry with this last offset is not believed, for this reason.
    doubted: Option<(i64, CorruptKind)>,
}

impl Continuity {
    pub(super) fn starting_at(expected: i64) -> Self {
        Self { expected, epoch: None, epoch_ends: i64::MAX, doubted: None }
    }

    /// Checks `head` and, if it is good, moves past it. `ahead` reads the head that stands a number
    /// of bytes after it.
    #[inline]
    pub(super) fn accept(
        &mut self,
        head: &EntryHead,
        around: &Surroundings,
        ahead: impl Fn(usize) -> crate::Result<Option<EntryHead>>,
    ) -> crate::Result<Result<(), CorruptKind>> {
        let usual = head.base_offset() == Some(self.expected)
            && head.leader_epoch() == self.epoch
            && head.last_offset() < self.epoch_ends
            && self.doubted.is_none()
            && around.next_base.is_none_or(|limit| head.last_offset() < limit);
        if !usual {
            if let Err(kind) = self.look_closely(head, around, ahead)? {
                return Ok(Err(kind));
            }
            self.epoch_ends = around.epoch_ends(head.last_offset());
        }
        self.expected = head.last_offset().saturating_add(1);
        if let Some(epoch) = head.leader_epoch() {
            self.epoch = Some(epoch);
        }
        Ok(Ok(()))
    }

    fn look_closely(
        &mut self,
        head: &EntryHead,
        around: &Surroundings,
        ahead: impl Fn(usize) -> crate::Result<Option<EntryHead>>,
    ) -> crate::Result<Result<(), CorruptKind>> {
        if let Some((last, kind)) = self.doubted.take()
            && last == head.last_offset()
        {
            return Ok(Err(kind));
        }
        let next = ahead(head.total_bytes())?;
        let kind = match self.judge(head, around, next.as_ref()) {
            Ok(()) => return Ok(Ok(())),
            Err(Doubt::This(kind)) => return Ok(Err(kind)),
            Err(Doubt::ThisOrNext(kind)) => kind,
        };
        let Some(next) = next else { return Ok(Err(kind)) };
        let third = ahead(head.total_bytes().saturating_add(next.total_bytes()))?;
        let next_is_good = match kind {
            CorruptKind::LeaderEpoch { .. } => {
                third.as_ref().is_some_and(|third| third.leader_epoch() < head.leader_epoch())
            }
            _ => Self::overlap_is_of(head, &next, third.as_ref(), around),
        };
        if !next_is_good {
            self.doubted = Some((next.last_offset(), kind));
        }
        Ok(Err(kind))
    }

    /// `head` follows a gap and overlaps `next`: whether it is `head` that was moved. So it is when
    /// it overlaps the third too, or when what comes third begins where `next` ends: an entry that
    /// was moved down onto another ends before that.
    fn overlap_is_of(
        head: &EntryHead,
        next: &EntryHead,
        third: Option<&EntryHead>,
        around: &Surroundings,
    ) -> bool {
        let ends = next.last_offset().saturating_add(1);
        match third.map(first_offset) {
            Some(third) => third == ends || third <= head.last_offset(),
            None => around.next_base.or_else(|| around.exact_end()) == Some(ends),
        }
    }

    /// Where the entry would end without the gap before it.
    fn closed(&self, head: &EntryHead) -> i64 {
        let delta = head.last_offset().saturating_sub(first_offset(head));
        self.expected.saturating_add(delta).saturating_add(1)
    }

    fn judge(
        &self,
        head: &EntryHead,
        around: &Surroundings,
        next: Option<&EntryHead>,
    ) -> Result<(), Doubt> {
        self.judge_offset(head, around, next)?;
        match head.leader_epoch() {
            Some(epoch) => self.judge_epoch(epoch, head.last_offset(), around, next),
            None => Ok(()),
        }
    }

    fn judge_offset(
        &self,
        head: &EntryHead,
        around: &Surroundings,
        next: Option<&EntryHead>,
    ) -> Result<(), Doubt> {
        let expected = self.expected;
        let last = head.last_offset();
        let found = first_offset(head);
        if found < expected {
            return Err(Doubt::This(CorruptKind::OffsetOrder { found, expected }));
        }
        let jump = CorruptKind::OffsetJump { found, expected };
        if around.next_base.is_some_and(|limit| last >= limit) {
            return Err(Doubt::This(jump));
        }
        // Without a gap, an entry that claims the same offsets is the one that is wrong.
        if found == expected {
            return Ok(());
        }
        match next {
            Some(next) if (expected..=last).contains(&first_offset(next)) => {
                Err(Doubt::ThisOrNext(jump))
            }
            Some(_) => Ok(()),
            None => {
                let end = last.saturating_add(1);
                let is_moved = match (around.exact_end(), around.recorded_end) {
                    (Some(exact), _) => end != exact,
                    (None, Some(recorded)) => {
                        around.next_base.is_none() && recorded == self.closed(head)
                    }
                    (None, None) => false,
                };
                if is_moved { Err(Doubt::This(jump)) } else { Ok(()) }
            }
        }
    }

    fn judge_epoch(
        &self,
        found: i32,
        last_offset: i64,
        around: &Surroundings,
        next: Option<&EntryHead>,
    ) -> Result<(), Doubt> {
        let recorded = around.epoch_at(last_offset);
        // Tools that write segments themselves leave −1.
        if found == -1 || recorded == Some(found) {
            return Ok(());
        }
        let wrong = |expected| CorruptKind::LeaderEpoch { found, expected };
        let before = self.epoch.unwrap_or(-1);
        if found < before {
            return Err(Doubt::This(wrong(before)));
        }
        let after = next.and_then(EntryHead::leader_epoch).unwrap_or(-1);
        let falls = (before.max(0)..found).contains(&after);
        match recorded {
            // A broker that adopts a log forgets the epochs above its own, so a neighbour of the
            // same epoch outweighs the checkpoint, unless that knows when the epoch began.
            Some(recorded) if after != found || around.begins_after(found, last_offset) => {
                Err(Doubt::This(wrong(recorded)))
            }
            None if falls => Err(Doubt::ThisOrNext(wrong(after))),
            _ => Ok(()),
        }
    }
}

/// The first offset; of a compressed old-format set, whose first is inside, the last.
fn first_offset(head: &EntryHead) -> i64 {
    head.base_offset().unwrap_or_else(|| head.last_offset())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Attributes, BatchHeader};

    fn batch(base_offset: i64, count: i32, leader_epoch: i32) -> EntryHead {
        EntryHead::Batch(BatchHeader {
            base_offset,
            batch_length: 100,
            leader_epoch,
            crc: 0,
            attributes: Attributes(0),
            last_offset_delta: count - 1,
            base_timestamp: 0,
            max_timestamp: 0,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            records_count: count,
        })
    }

    fn judge(entries: &[EntryHead], around: &Surroundings) -> Result<(), (usize, CorruptKind)> {
        let mut continuity = Continuity::starting_at(0);
        for (index, head) in entries.iter().enumerate() {
            // Every entry of these tests has the same size.
            let ahead = |bytes: usize| Ok(entries.get(index + bytes / head.total_bytes()).copied());
            continuity.accept(head, around, ahead).unwrap().map_err(|kind| (index, kind))?;
        }
        Ok(())
    }

    #[test]
    fn every_bit_of_every_base_offset_of_a_contiguous_log_shows_when_it_flips() {
        let around = Surroundings { recorded_end: Some(40), ..Surroundings::default() };
        let good: Vec<_> = (0..4).map(|index| batch(index * 10, 10, 0)).collect();
        assert_eq!(judge(&good, &around), Ok(()));
        for victim in 0..4 {
            for bit in 0..63 {
                let mut entries = good.clone();
                let base = (i64::try_from(victim).unwrap() * 10) ^ (1 << bit);
                entries[victim] = batch(base, 10, 0);
                assert!(judge(&entries, &around).is_err(), "batch {victim}, bit {bit}");
            }
        }
    }

    #[test]
    fn gaps_of_a_compacted_log_are_no_damage() {
        let entries = [batch(3, 2, 0), batch(10, 5, 0), batch(15, 1, 2), batch(90, 1, 2)];
        let around = Surroundings { next_base: Some(100), ..Surroundings::default() };
        assert_eq!(judge(&entries, &around), Ok(()));
    }

    #[test]
    fn an_epoch_is_held_against_its_neighbours_and_the_checkpoint() {
        let epochs = Arc::new(vec![(0, 0), (4, 20)]);
        let around = Surroundings { epochs, ..Surroundings::default() };
        let good = [batch(0, 10, 0), batch(10, 10, 0), batch(20, 10, 4), batch(30, 10, 4)];
        assert_eq!(judge(&good, &around), Ok(()));
        for victim in 0..4 {
            for bit in 0..32 {
                let mut entries = good;
                let EntryHead::Batch(header) = &mut entries[victim] else { unreachable!() };
                header.leader_epoch ^= 1 << bit;
                assert!(judge(&entries, &around).is_err(), "batch {victim}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_checkpoint_that_another_broker_rewrote_does_not_condemn_agreeing_batches() {
        let epochs = Arc::new(vec![(0, 0)]);
        let around = Surroundings { epochs, ..Surroundings::default() };
        assert_eq!(judge(&[batch(0, 10, 5), batch(10, 10, 5), batch(20, 10, 5)], &around), Ok(()));
    }
}

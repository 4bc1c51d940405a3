//! Giving batches that this engine built their place in a log.

use super::fault::corrupt;
use super::{BatchHeader, BatchMut};
use crate::error::Result;

/// Where a run of batches came to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Batches of the run.
    pub batches: usize,
    /// The offset after the last.
    pub next_offset: i64,
    /// The largest timestamp of their headers, −1 when there is none.
    pub max_timestamp: i64,
}

/// Moves version 2 batches, one behind the other in `bytes`, to the offsets from `next_offset` on
/// and stamps them with the epoch of the leader. No checksum changes, so that batches can be built
/// before the log is locked. `each` sees every header with the bytes of its batch.
///
/// The batches are trusted: they come from a builder and not from a client.
pub fn place_batches(
    bytes: &mut [u8],
    next_offset: i64,
    leader_epoch: i32,
    mut each: impl FnMut(&BatchHeader, &[u8]),
) -> Result<Placed> {
    let mut placed = Placed { batches: 0, next_offset, max_timestamp: -1 };
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut batch = BatchMut::parse(rest).map_err(corrupt)?;
        batch.set_base_offset(placed.next_offset)?;
        batch.set_leader_epoch(leader_epoch);
        let header = *batch.header();
        let (batch, after) = rest.split_at_mut(header.total_bytes());
        each(&header, batch);
        rest = after;
        placed.batches += 1;
        placed.next_offset = header.last_offset().saturating_add(1);
        placed.max_timestamp = placed.max_timestamp.max(header.max_timestamp);
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::super::BatchView;
    use super::super::samples::{self, T0};
    use super::*;

    #[test]
    fn batches_follow_each_other_and_keep_their_checksums() {
        let mut bytes = [samples::batch_a(), samples::batch_d(), samples::batch_a()].concat();
        let mut seen = Vec::new();
        let placed = place_batches(&mut bytes, 100, 7, |header, batch| {
            assert_eq!(BatchView::parse(batch).unwrap().check_crc(), Ok(()));
            seen.push((header.base_offset, header.last_offset(), header.leader_epoch));
        });
        let expected = Placed { batches: 3, next_offset: 108, max_timestamp: T0 + 5 };
        assert_eq!(placed.unwrap(), expected);
        assert_eq!(seen, [(100, 102, 7), (103, 104, 7), (105, 107, 7)]);
        assert_eq!(bytes[..100], samples::batch_b());
    }

    #[test]
    fn nothing_is_placed_nowhere() {
        let placed = place_batches(&mut [], 5, 0, |_, _| ()).unwrap();
        assert_eq!(placed, Placed { batches: 0, next_offset: 5, max_timestamp: -1 });
        let mut cut = samples::batch_a();
        cut.pop();
        assert!(place_batches(&mut cut, 5, 0, |_, _| ()).is_err());
    }
}

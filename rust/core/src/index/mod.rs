//! The three indexes beside a `.log` file.
//!
//! All are arrays of fixed-size entries without a header. The offset and time index of an active
//! segment are preallocated with zeros and cut to their entries at roll and clean close; after a
//! crash the zeros stay.
//!
//! Each has two readers. The views borrow a file's bytes and serve directories that somebody else
//! owns; [`OffsetIndex`], [`TimeIndex`] and [`TxnIndex`] write and search the files of a directory
//! whose lock we hold. Neither allocates to search.

mod mapped;
mod offset;
mod offset_index;
mod search;
mod time;
mod time_index;
mod txn;
mod txn_index;

#[cfg(test)]
mod corpus;

pub use mapped::IndexMode;
pub use offset::{OFFSET_ENTRY_BYTES, OffsetEntry, OffsetIndexView};
pub use offset_index::OffsetIndex;
pub use time::{TIME_ENTRY_BYTES, TimeEntry, TimeIndexView};
pub use time_index::TimeIndex;
pub use txn::{AbortedTxn, TXN_ENTRY_BYTES, TxnIndexView};
pub use txn_index::TxnIndex;

/// Number of entries before the zeros that end a preallocated index.
fn without_zero_tail<const N: usize>(entries: &[[u8; N]]) -> usize {
    let last = entries.iter().rposition(|entry| *entry != [0; N]);
    last.map_or(0, |last| last.saturating_add(1))
}

/// The offset at a distance from the base, if an index can hold it.
fn relative_to(base_offset: i64, offset: i64) -> Option<i32> {
    let distance = offset.checked_sub(base_offset)?;
    i32::try_from(distance).ok().filter(|distance| *distance >= 0)
}

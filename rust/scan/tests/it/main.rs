//! Damage, hostile input and change under the scanner's feet, on a disk in memory.
//!
//! `KAFKASEG_LONG=1` runs every case where the usual run takes a sample.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod chaos;
mod committed;
mod faults;
mod flips;
mod hostile;
mod log;
mod memory;
mod model;
mod random;
mod rows;
mod splits;
mod tails;

/// Whether to run everything instead of a sample.
fn is_long() -> bool {
    std::env::var_os("KAFKASEG_LONG").is_some_and(|value| value == "1")
}

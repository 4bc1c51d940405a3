//! Crashes and faults of the disk at every call, on the simulated disk.
//!
//! `KAFKASEG_CRASH_SEED` repeats a run, `KAFKASEG_LONG=1` tries everything and not a sample.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub,
    reason = "a test fails by panicking and says what it did"
)]

mod crash;
mod fault;
mod model;
mod random;
mod subject;
mod verify;
mod workload;

//! Kafka's log on disk: records, codecs, indexes, checkpoints and names.
//!
//! This crate knows bytes and files, and nothing of Python, Arrow or sockets. Bytes that come from
//! a file are never trusted: every length is checked against what is left before it is used.

mod bytes;
pub mod checkpoint;
pub mod clock;
pub mod codec;
pub mod config;
pub mod dir;
pub mod epoch;
pub mod error;
pub mod fs;
#[cfg(test)]
mod fuzz_seeds;
#[doc(hidden)]
pub mod fuzzing;
pub mod index;
pub mod internal;
pub mod limits;
pub mod log;
pub mod names;
pub mod producer;
pub mod record;
pub mod segment;
#[cfg(test)]
mod testing;
pub mod uuid;

pub use error::{Error, Result};
pub use record::CorruptKind;

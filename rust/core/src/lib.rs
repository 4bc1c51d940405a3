//! Kafka's log on disk: records, codecs, indexes, checkpoints and names.
//!
//! This crate knows bytes and files, and nothing of Python, Arrow or sockets. Bytes that come from
//! a file are never trusted: every length is checked against what is left before it is used.

pub mod error;
pub mod fs;
pub mod limits;
pub mod record;
pub mod segment;

pub use error::{Error, Result};
pub use record::CorruptKind;

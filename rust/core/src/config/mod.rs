//! Configuration under Kafka's names: what a topic sets for its logs and what a broker sets for a
//! log directory.
//!
//! 1. Every name, default and range is Kafka's (4.x). A value is trimmed before it is read, as in
//!    Kafka.
//! 2. A topic's name is stronger than the broker's names for the same thing; among those the one
//!    that is listed first wins (`log.retention.ms`, then `.minutes`, then `.hours`).
//! 3. A name that is not known is an error that offers the nearest known one. Only
//!    [`DirConfig::from_server_properties`] passes over names, because that file also configures
//!    listeners, quorums and the like.

mod choice;
mod dir;
mod dir_keys;
mod key;
mod log;
mod log_keys;
mod suggest;
#[cfg(test)]
mod tests;

pub use choice::{CleanupPolicy, CompressionType, Fsync};
pub use dir::DirConfig;
pub use log::LogConfig;

//! Which leader wrote which part of a log.

mod cache;
#[cfg(test)]
mod tests;

pub use crate::checkpoint::EpochEntry;
pub use cache::EpochCache;

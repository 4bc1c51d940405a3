//! What a log knows of the producers that write to it.

mod snapshot;

pub use snapshot::{ProducerEntry, ProducerSnapshot};

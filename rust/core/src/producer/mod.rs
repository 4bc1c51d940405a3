//! What a log knows of the producers that write to it.

mod facts;
mod java_order;
mod sequence;
mod snapshot;
mod snapshots;
mod state;
mod states;
#[cfg(test)]
mod tests;
mod verification;

pub use facts::{BatchFacts, Marker};
pub use sequence::Sequence;
pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use snapshots::Snapshots;
pub use state::{BATCHES_KEPT, BatchMeta, CompletedTxn, ProducerState};
pub use states::{Analysis, Changes, ProducerStates, TxnOutcome};
pub use verification::{Announced, VerificationGuard};

//! Who hands batches to a log.

/// Where appended batches come from. It decides which checks apply and who assigns offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A producing client: every check applies, offsets are assigned.
    Client,
    /// A group or transaction coordinator of this broker: its batches carry no sequences.
    Coordinator,
    /// The leader of the metadata log, whose batches are made right by construction.
    RaftLeader,
    /// Another replica, or the log itself while it is loaded: what the leader accepted is kept as
    /// it is.
    Replication,
}

impl Origin {
    /// Whether this log decides about the batches, instead of repeating a decision made elsewhere.
    pub fn is_leader(self) -> bool {
        self != Self::Replication
    }
}

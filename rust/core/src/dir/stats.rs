//! What a directory holds, in numbers.

use super::LogDir;
use crate::fs::WriteFs;
use crate::log::LogStats;

/// What a directory holds. The sums are over the partitions that are open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DirStats {
    /// Open partitions.
    pub partitions: u64,
    /// Partitions that could not be opened.
    pub offline: u64,
    /// Partition directories that were not loaded.
    pub unloaded: u64,
    /// Sums over the open partitions.
    pub logs: LogStats,
}

impl<S: WriteFs> LogDir<S> {
    /// What the directory holds.
    pub fn stats(&self) -> DirStats {
        let state = self.state();
        let mut sums = DirStats {
            partitions: count(state.logs.len()),
            offline: count(state.offline.len()),
            unloaded: count(state.unloaded.len()),
            logs: LogStats::default(),
        };
        for log in state.logs.values() {
            // A log that was closed on its own holds nothing.
            if let Ok(figures) = log.stats() {
                sums.logs.add(&figures);
            }
        }
        sums
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

//! What a scan met.

use std::path::PathBuf;

use kafkaseg_core::CorruptKind;

/// Places listed in a report; what is over is only counted.
const LISTED_MAX: usize = 10_000;

/// Bytes of a segment file that gave no records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// Where the bytes start.
    pub position: u64,
    /// How many they are.
    pub bytes: u64,
    /// The check that failed there.
    pub kind: CorruptKind,
}

/// What a scan met, summed up while it runs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Batches that were good, whether or not any record of them was selected.
    pub batches: u64,
    /// Records given out.
    pub records: u64,
    /// Bytes of segment files passed.
    pub bytes: u64,
    /// Damaged places.
    pub damage: Vec<Place>,
    /// Number of damaged places, listed or not.
    pub damage_count: u64,
    /// Torn or preallocated ends of open logs; these are no damage.
    pub tails: Vec<Place>,
    /// Segment files that vanished or were replaced since the snapshot.
    pub missing: Vec<PathBuf>,
}

impl Report {
    pub(crate) fn add_damage(&mut self, place: Place) {
        self.damage_count += 1;
        if self.damage.len() < LISTED_MAX {
            self.damage.push(place);
        }
    }

    pub(crate) fn add_tail(&mut self, place: Place) {
        if self.tails.len() < LISTED_MAX {
            self.tails.push(place);
        }
    }

    pub(crate) fn absorb(&mut self, other: Self) {
        self.batches += other.batches;
        self.records += other.records;
        self.bytes += other.bytes;
        self.damage_count += other.damage_count;
        let room = LISTED_MAX.saturating_sub(self.damage.len());
        self.damage.extend(other.damage.into_iter().take(room));
        let room = LISTED_MAX.saturating_sub(self.tails.len());
        self.tails.extend(other.tails.into_iter().take(room));
        self.missing.extend(other.missing);
    }
}

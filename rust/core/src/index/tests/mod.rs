//! What the indexes promise, on real files in a directory of their own.

mod corpus;
mod faults;
mod lifecycle;
mod offset;
mod rule;
mod speed;
mod threads;
mod time;
mod txn;

use std::path::Path;
use std::sync::Arc;

use crate::fs::{Fs as _, RealDir, RealFs};
use crate::index::{IndexMode, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex, TxnIndex};
use crate::testing::Random;

/// A directory that is gone after the test.
struct Room {
    root: tempfile::TempDir,
    dir: Arc<RealDir>,
}

impl Room {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = Arc::new(RealFs.open_dir(root.path()).unwrap());
        Self { root, dir }
    }

    fn path(&self) -> &Path {
        self.root.path()
    }

    fn offset(&self, base_offset: i64, max_bytes: u64, mode: IndexMode) -> OffsetIndex<RealDir> {
        OffsetIndex::open(Arc::clone(&self.dir), base_offset, max_bytes, mode).unwrap()
    }

    fn time(&self, base_offset: i64, max_bytes: u64, mode: IndexMode) -> TimeIndex<RealDir> {
        TimeIndex::open(Arc::clone(&self.dir), base_offset, max_bytes, mode).unwrap()
    }

    fn txn(&self, base_offset: i64) -> TxnIndex<RealDir> {
        TxnIndex::open(Arc::clone(&self.dir), base_offset)
    }

    fn file(&self, name: &str) -> Vec<u8> {
        read(&self.path().join(name))
    }

    #[expect(clippy::disallowed_methods, reason = "a test looks behind the index")]
    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test looks behind the index")]
    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            crate::fs::Dir::list(&*self.dir).unwrap().into_iter().map(|entry| entry.name).collect();
        names.sort();
        names
    }
}

#[expect(clippy::disallowed_methods, reason = "a test looks behind the index")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn at(offset: i64, position: u32) -> OffsetEntry {
    OffsetEntry { offset, position }
}

fn when(timestamp: i64, offset: i64) -> TimeEntry {
    TimeEntry { timestamp, offset }
}

fn random_i64(random: &mut Random, bound: usize) -> i64 {
    i64::try_from(random.below(bound)).unwrap()
}

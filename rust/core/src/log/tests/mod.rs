//! The log as its users see it, on the real file system and on the simulated one.
#![allow(clippy::disallowed_methods, reason = "tests look at files directly")]

mod append;
mod concurrent;
mod flush;
mod read;
mod retain;
mod roll;
mod truncate;

use std::sync::Arc;

use super::{Isolation, Log, LogOptions, Parts};
use crate::clock::ManualClock;
use crate::config::LogConfig;
use crate::epoch::EpochCache;
use crate::error::Result;
use crate::fs::{Fs, RealFs, WriteFs};
use crate::producer::{ProducerStates, Snapshots};
use crate::record::{BatchBuilder, BatchSpec, BatchView, EntryRecords, EntryView, Origin};
use crate::segment::Segment;

pub(super) const T0: i64 = 1_700_000_000_000;

/// A log in a directory of its own, with a clock that stands still.
pub(super) struct Bench<S: WriteFs = RealFs> {
    pub(super) log: Log<S>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) root: Option<tempfile::TempDir>,
}

impl Bench {
    pub(super) fn new(pairs: &[(&str, &str)]) -> Self {
        Self::with(pairs, |_| ())
    }

    pub(super) fn with(pairs: &[(&str, &str)], change: impl FnOnce(&mut LogOptions)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = RealFs.open_dir(root.path()).unwrap();
        let (log, clock) = fresh::<RealFs>(dir, pairs, change).unwrap();
        Self { log, clock, root: Some(root) }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.as_ref().unwrap().path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.root.as_ref().unwrap().path().join(name)).unwrap()
    }
}

/// An empty log.
pub(super) fn fresh<S: WriteFs>(
    dir: S::Dir,
    pairs: &[(&str, &str)],
    change: impl FnOnce(&mut LogOptions),
) -> Result<(Log<S>, Arc<ManualClock>)> {
    let clock = Arc::new(ManualClock::new(T0));
    let config = LogConfig::parse(pairs.iter().copied())?;
    let mut options = LogOptions::new("t", 0, config);
    options.clock = Arc::<ManualClock>::clone(&clock);
    change(&mut options);
    let dir = Arc::new(dir);
    let segment = Segment::create(&dir, 0, &options.config, T0)?;
    let log = Log::assemble(Parts {
        snapshots: Snapshots::new(Arc::clone(&dir)),
        dir,
        options,
        segments: vec![Arc::new(segment)],
        start: 0,
        end: 0,
        recovery_point: 0,
        producers: ProducerStates::new(0),
        epochs: EpochCache::default(),
        epochs_stale: false,
        unsynced_snapshots: Vec::new(),
        damage: None,
    })?;
    Ok((log, clock))
}

/// A batch of records, each with this value and one millisecond after the one before.
pub(super) fn batch(records: usize, value: &[u8]) -> Vec<u8> {
    batch_at(T0, records, value)
}

pub(super) fn batch_at(timestamp: i64, records: usize, value: &[u8]) -> Vec<u8> {
    let spec = BatchSpec::at(0);
    built(spec, timestamp, records, value)
}

pub(super) fn built(spec: BatchSpec, timestamp: i64, records: usize, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(spec).unwrap();
    for index in 0..records {
        let timestamp = timestamp + i64::try_from(index).unwrap();
        builder.push(timestamp, Some(b"k"), Some(value), []).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

pub(super) fn client<S: WriteFs>(log: &Log<S>, batch: &[u8]) -> Result<super::AppendInfo> {
    log.append_leader(&mut batch.to_vec(), Origin::Client, 0)
}

/// Every offset that reading from an offset to the bound gives, checked batch by batch.
pub(super) fn offsets<S: WriteFs>(log: &Log<S>, from: i64, isolation: Isolation) -> Vec<i64> {
    let mut next = from;
    let mut offsets = Vec::new();
    let mut bytes = Vec::new();
    loop {
        let fetch = log.read_into(next, 1 << 20, isolation, true, &mut bytes).unwrap();
        if fetch.is_empty() {
            return offsets;
        }
        let mut rest = &bytes[..];
        while let Ok(batch) = BatchView::parse(rest) {
            batch.check_crc().unwrap();
            let entry = EntryView::Batch(batch);
            let mut decoder = crate::codec::Decoder::new();
            let records = EntryRecords::open(&entry, &mut decoder, 1 << 20).unwrap().unwrap();
            offsets.extend(records.map(|record| record.unwrap().offset).filter(|at| *at >= from));
            next = batch.header().last_offset() + 1;
            rest = &rest[batch.bytes().len()..];
        }
    }
}

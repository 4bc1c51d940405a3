//! Log directories as their users see them, on the simulated disk.
#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "names are ours")]

mod corpus;
mod recover;
mod topics;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{DirOptions, LogDir};
use crate::clock::ManualClock;
use crate::config::DirConfig;
use crate::fs::SimFs;
use crate::log::{Isolation, Log};
use crate::record::{BatchBuilder, BatchSpec, EntryRecords, EntryView, Origin};

pub(super) const T0: i64 = 1_700_000_000_000;
pub(super) const ROOT: &str = "/data";

pub(super) fn options(pairs: &[(&str, &str)]) -> DirOptions {
    DirOptions {
        config: DirConfig::parse(pairs.iter().copied()).unwrap(),
        clock: Arc::new(ManualClock::new(T0)),
        ..DirOptions::default()
    }
}

pub(super) fn open(fs: &SimFs, pairs: &[(&str, &str)]) -> LogDir<SimFs> {
    LogDir::open(fs, Path::new(ROOT), options(pairs)).unwrap()
}

/// A directory with a topic `t` of one partition.
pub(super) fn with_topic(fs: &SimFs, pairs: &[(&str, &str)]) -> LogDir<SimFs> {
    let dir = open(fs, pairs);
    dir.create_topic("t", 1, &BTreeMap::new(), None).unwrap();
    dir
}

/// Appends batches of ten records whose values are their offsets.
pub(super) fn fill(log: &Log<SimFs>, batches: usize) {
    for _ in 0..batches {
        let next = log.end_offset().unwrap();
        let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        for index in 0..10 {
            let value = (next + index).to_string().repeat(5);
            builder.push(T0 + next + index, Some(b"k"), Some(value.as_bytes()), []).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish(&mut bytes).unwrap();
        log.append_leader(&mut bytes, Origin::Client, 0).unwrap();
    }
}

/// The offsets of a log, each of which must hold its own value.
pub(super) fn offsets(log: &Log<SimFs>) -> Vec<i64> {
    let (mut next, mut found, mut bytes) = (log.start_offset().unwrap(), Vec::new(), Vec::new());
    loop {
        let fetch = log.read_into(next, 1 << 20, Isolation::LogEnd, true, &mut bytes).unwrap();
        if fetch.is_empty() {
            return found;
        }
        let mut rest = bytes.as_slice();
        while let Ok(entry) = EntryView::parse(rest) {
            let mut decoder = crate::codec::Decoder::new();
            let records = EntryRecords::open(&entry, &mut decoder, 1 << 20).unwrap().unwrap();
            for record in records.map(Result::unwrap) {
                assert_eq!(record.value, Some(record.offset.to_string().repeat(5).as_bytes()));
                if record.offset >= next {
                    found.push(record.offset);
                }
            }
            next = entry.last_offset() + 1;
            rest = &rest[entry.total_bytes()..];
        }
    }
}

/// Everything on the disk but the file that only says that the directory is in use.
pub(super) fn tree(fs: &SimFs) -> BTreeMap<String, Option<Vec<u8>>> {
    fs.tree().into_iter().filter(|(name, _)| !name.ends_with(".lock")).collect()
}

//! The indexes of real brokers, held against the batches they point at and against what Kafka's
//! own dump tool printed.

use std::path::Path;

use super::read;
use crate::index::*;
use crate::names::{FileKind, SegmentFile};
use crate::testing::{Case, at_least, cases, dump_sections, labelled, name_of};

/// What an index needs to know of a batch, in any version of the format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    pub(super) position: u32,
    pub(super) bytes: usize,
    pub(super) base_offset: i64,
    pub(super) last_offset: i64,
    pub(super) max_timestamp: i64,
    pub(super) producer_id: i64,
    pub(super) is_control: bool,
    pub(super) is_legacy: bool,
}

pub(super) fn base_of(path: &Path) -> i64 {
    SegmentFile::parse(name_of(path)).unwrap().base_offset
}

/// Walks a `.log` file by its framing alone; preallocated zeros end it.
pub(super) fn batches(log: &[u8]) -> Vec<Batch> {
    let i64_at = |at: usize| i64::from_be_bytes(log[at..at + 8].try_into().unwrap());
    let i32_at = |at: usize| i32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    let mut at = 0;
    while at + 17 <= log.len() && i32_at(at + 8) > 0 {
        let total = 12 + usize::try_from(i32_at(at + 8)).unwrap();
        let is_v2 = log[at + 16] == 2;
        found.push(Batch {
            position: u32::try_from(at).unwrap(),
            bytes: total,
            base_offset: i64_at(at),
            last_offset: i64_at(at) + if is_v2 { i64::from(i32_at(at + 23)) } else { 0 },
            max_timestamp: match log[at + 16] {
                0 => -1,
                1 => i64_at(at + 18),
                _ => i64_at(at + 35),
            },
            producer_id: if is_v2 { i64_at(at + 43) } else { -1 },
            is_control: is_v2 && log[at + 22] & 0x20 != 0,
            is_legacy: !is_v2,
        });
        at += total;
    }
    found
}

/// Every file of a kind in the cleanly stopped cases, with the batches of its segment.
fn for_each_index(ending: &str, mut check: impl FnMut(&Case, &Path, &[u8], &[Batch])) {
    for case in cases().iter().filter(|case| case.is_clean()) {
        for path in case.files(ending) {
            let log = read(&path.with_extension("log"));
            check(case, &path, &read(&path), &batches(&log));
        }
    }
}

/// What the offset of an entry is to the batch at its position.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Last,
    First,
    EndOfAppend,
}

/// Finds the meaning of an entry; legacy batches begin where the one before them ends.
fn meaning(entry: OffsetEntry, batches: &[Batch], at: usize) -> Option<Meaning> {
    let (before, from) = batches.split_at(at);
    let batch = from[0];
    let first = match before.last() {
        Some(previous) if batch.is_legacy => previous.last_offset + 1,
        _ => batch.base_offset,
    };
    if entry.offset == batch.last_offset {
        Some(Meaning::Last)
    } else if entry.offset == first {
        Some(Meaning::First)
    } else {
        let ends_there = |batch: &Batch| batch.last_offset == entry.offset;
        from.iter().any(ends_there).then_some(Meaning::EndOfAppend)
    }
}

/// What the brokers of a case may store besides the last offset of the batch at the position.
fn other_meaning(case: &str) -> Option<Meaning> {
    match case {
        "legacy-v0" | "legacy-v1" | "oldest-v2-1.1.1" | "upgraded-v0-v1-v2" => Some(Meaning::First),
        "compacted-2.8.2" | "downconverted-v0" | "downconverted-v1" => Some(Meaning::EndOfAppend),
        _ => None,
    }
}

#[test]
fn every_offset_entry_leads_to_a_batch_that_a_scan_can_start_from() {
    let (mut entries, mut last) = (0, 0);
    for_each_index(".index", |case, path, bytes, batches| {
        let view = OffsetIndexView::new(base_of(path), bytes);
        assert_eq!(view.sanity(), Ok(()), "{}", path.display());
        assert_eq!(view.valid_entries(), view.len(), "{}", path.display());
        for entry in view.iter() {
            let at = batches.binary_search_by_key(&entry.position, |batch| batch.position);
            let at = at.unwrap_or_else(|_| panic!("{}: {entry:?}", path.display()));
            let passed = batches[..at].iter().all(|batch| batch.last_offset < entry.offset);
            let found = meaning(entry, batches, at);
            let is_last = found == Some(Meaning::Last);
            let is_known = is_last || found.is_some() && found == other_meaning(case.name());
            assert!(passed && is_known, "{}: {entry:?} is {found:?}", path.display());
            entries += 1;
            last += usize::from(is_last);
        }
    });
    assert!(entries >= at_least(970), "{entries} entries");
    assert!(last >= at_least(910), "{last} are the last offset of their batch");
}

#[test]
fn every_time_entry_bounds_the_batches_before_it_and_the_last_is_the_largest() {
    let (mut files, mut entries) = (0, 0);
    for_each_index(".timeindex", |_, path, bytes, batches| {
        let view = TimeIndexView::new(base_of(path), bytes);
        assert_eq!(view.sanity(), Ok(()), "{}", path.display());
        for entry in view.iter() {
            let mut before = batches.iter().filter(|batch| batch.last_offset <= entry.offset);
            assert!(
                before.all(|batch| batch.max_timestamp <= entry.timestamp),
                "{}: {entry:?}",
                path.display()
            );
            entries += 1;
        }
        let last = view.iter().next_back().map(|entry| entry.timestamp);
        let largest = batches.iter().map(|batch| batch.max_timestamp).max();
        assert_eq!(last, largest.filter(|time| *time >= 0), "{}", path.display());
        files += 1;
    });
    assert!(files >= at_least(550), "{files} files");
    assert!(entries >= at_least(1280), "{entries} entries");
}

#[test]
fn every_aborted_transaction_runs_from_its_first_batch_to_a_marker() {
    let (mut entries, mut starts) = (0, 0);
    for_each_index(".txnindex", |case, path, bytes, batches| {
        let base = base_of(path);
        let view = TxnIndexView::new(base, bytes);
        assert_eq!(view.sanity(), Ok(()), "{}", path.display());
        for entry in view.iter().map(Result::unwrap) {
            let of_producer = |batch: &&Batch| batch.producer_id == entry.producer_id;
            let marker = batches.iter().find(|batch| batch.last_offset == entry.last_offset);
            let ends = marker.filter(of_producer).is_some_and(|batch| batch.is_control);
            assert!(ends, "{}: {entry:?}", path.display());
            let first = batches.iter().find(|batch| batch.base_offset == entry.first_offset);
            let begins = first.filter(of_producer).is_some_and(|batch| !batch.is_control);
            // It may begin in an earlier segment, and compaction drops aborted batches.
            let elsewhere = entry.first_offset < base || case.name().starts_with("compacted");
            assert!(begins || first.is_none() && elsewhere, "{}: {entry:?}", path.display());
            entries += 1;
            starts += usize::from(begins);
        }
    });
    assert!(entries >= at_least(93), "{entries} entries");
    assert!(starts >= at_least(59), "{starts} begin in their segment");
}

/// The numbers of every entry, in the order of the labels of the dump tool.
fn entries_of(
    kind: FileKind,
    base: i64,
    bytes: &[u8],
) -> Option<(&'static [&'static str], Vec<Vec<i64>>)> {
    match kind {
        FileKind::Index => {
            let entries = OffsetIndexView::new(base, bytes).iter();
            let numbers = entries.map(|entry| vec![entry.offset, entry.position.into()]);
            Some((&["offset", "position"], numbers.collect()))
        }
        FileKind::TimeIndex => {
            let entries = TimeIndexView::new(base, bytes).iter();
            let numbers = entries.map(|entry| vec![entry.timestamp, entry.offset]);
            Some((&["timestamp", "offset"], numbers.collect()))
        }
        FileKind::TxnIndex => {
            let entries = TxnIndexView::new(base, bytes).iter().map(Result::unwrap);
            let numbers = entries.map(|entry| {
                let bounds = [entry.first_offset, entry.last_offset, entry.last_stable_offset];
                [vec![entry.producer_id], bounds.to_vec()].concat()
            });
            let labels = &["producerId", "firstOffset", "lastOffset", "lastStableOffset"];
            Some((labels, numbers.collect()))
        }
        FileKind::Log | FileKind::Snapshot => None,
    }
}

#[test]
fn the_dump_tool_sees_the_same_entries() {
    let (mut files, mut entries) = (0, 0);
    for case in cases() {
        for (file, lines) in dump_sections(&case.dump().unwrap_or_default()) {
            let path = case.log().join(file);
            let Some(name) = SegmentFile::parse(name_of(&path)) else {
                continue;
            };
            let base = name.base_offset;
            let Some((labels, mut ours)) = entries_of(name.kind, base, &read(&path)) else {
                continue;
            };
            let numbers = |line: &&str| labels.iter().map(|label| labelled(line, label)).collect();
            let mut theirs: Vec<Vec<i64>> = lines.iter().filter_map(numbers).collect();
            if !case.is_clean() {
                // The tool gives up at the first damaged batch, and prints one entry of zeros.
                theirs.retain(|entry| *entry != [base, 0] && *entry != [0, base]);
                ours.truncate(theirs.len());
            }
            assert_eq!(ours, theirs, "{} {file}", case.name());
            files += 1;
            entries += ours.len();
        }
    }
    assert!(files >= at_least(1368), "{files} files");
    assert!(entries >= at_least(3280), "{entries} entries");
}

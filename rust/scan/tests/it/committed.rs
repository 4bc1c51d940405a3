//! `read_committed` over damage: no aborted record is ever shown, and nothing is left out unsaid.

use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::ControlType;
use kafkaseg_scan::{Isolation, OnCorrupt};

use crate::is_long;
use crate::log::{Batch, Log, Placed};
use crate::memory::MemoryFs;
use crate::model::{committed, marker, with_segments};
use crate::random::Random;
use crate::rows::{Ask, Row, assert_no_wrong_row, is_corrupt};

fn ask(on_corrupt: OnCorrupt) -> Ask {
    let mut ask = Ask::on_corrupt(on_corrupt);
    ask.options.isolation = Isolation::ReadCommitted;
    ask
}

/// Batches of producers 1, 2 and 3, written as `1 2 1C 2A`: data by number, then markers.
fn script(words: &str) -> Vec<Batch> {
    let mut random = Random::new(70);
    let mut offset = 0;
    words
        .split_whitespace()
        .map(|word| {
            let producer = i64::from(word.as_bytes()[0] - b'0');
            let batch = match &word[1..] {
                "C" => marker(producer, ControlType::Commit, offset),
                "A" => marker(producer, ControlType::Abort, offset),
                _ => {
                    let records = (offset..offset + 3).map(|at| random.record(at)).collect();
                    let mut batch = Batch::of(0, records);
                    batch.transaction = (producer > 0).then_some(producer);
                    batch
                }
            };
            offset = batch.last_offset + 1;
            batch
        })
        .collect()
}

/// All transactions end, so that all of the log is stable.
const STORY: &str = "0 1 2 1 1C 0 2 2A 1 3 2 0 1A 1 0 1C 3 2C 3A 0 2 2C 0";

fn damaged(fs: &MemoryFs, log: &Log, batch: &Placed, byte: usize, bit: u8) -> MemoryFs {
    let path = log.path_of(batch.segment, FileKind::Log);
    let mut bytes = fs.read(&path);
    bytes[batch.position + byte] ^= 1 << bit;
    fs.with(&path, bytes)
}

#[test]
fn every_flip_in_a_log_of_transactions_is_seen_and_shows_no_aborted_record() {
    for (segments, has_indexes) in [(1, false), (3, true), (3, false)] {
        let mut log = with_segments(script(STORY), segments);
        log.has_indexes = has_indexes;
        let (fs, placed) = log.write();
        let truth = committed(&log);
        assert_eq!(ask(OnCorrupt::Error).rows(&fs).unwrap().0, truth);
        assert!(truth.len() < log.rows().len());
        for batch in &placed {
            for byte in 0..batch.header.total_bytes() {
                let bits = if is_long() || byte < 17 { 0..8 } else { 0..1 };
                for bit in bits {
                    let bit =
                        if byte < 17 { bit } else { (bit + u8::try_from(byte % 8).unwrap()) % 8 };
                    let fs = damaged(&fs, &log, batch, byte, bit);
                    let context = format!("byte {byte} bit {bit} of {:?}", batch.header);
                    match ask(OnCorrupt::Error).rows(&fs) {
                        Err(error) => assert!(is_corrupt(&error), "{context}: {error}"),
                        Ok((rows, _)) => panic!("{context}: {} rows", rows.len()),
                    }
                    let (rows, report) = ask(OnCorrupt::Skip).rows(&fs).unwrap();
                    assert!(report.damage_count > 0, "{context}");
                    assert_no_wrong_row(&rows, &truth, &context);
                    let (rows, report) = ask(OnCorrupt::Stop).rows(&fs).unwrap();
                    assert_eq!(report.damage_count, 1, "{context}");
                    assert_no_wrong_row(&rows, &truth, &context);
                }
            }
        }
    }
}

/// The offsets that a scan gives over a script in which one batch is damaged in its body.
fn shown(words: &str, victim: usize) -> (Vec<Row>, u64, Vec<Batch>) {
    let log = Log::of(0, script(words));
    let (fs, placed) = log.write();
    let fs = damaged(&fs, &log, &placed[victim], 65, 0);
    let (rows, report) = ask(OnCorrupt::Skip).rows(&fs).unwrap();
    (rows, report.damage_count, log.batches().cloned().collect())
}

fn shows(rows: &[Row], batch: &Batch) -> bool {
    rows.iter().any(|row| row.offset == batch.base_offset)
}

#[test]
fn a_transaction_whose_marker_is_lost_is_hidden_and_what_follows_is_not() {
    // The second transaction of producer 1 commits; of the first nobody knows.
    let (rows, damage, batches) = shown("1 0 1A 1 0 1C 0", 2);
    assert_eq!(damage, 1);
    let visible: Vec<_> = batches.iter().map(|batch| shows(&rows, batch)).collect();
    assert_eq!(visible, [false, true, false, true, true, false, true]);
}

#[test]
fn a_lost_marker_at_the_end_is_reported_and_holds_nothing_back() {
    let (rows, damage, batches) = shown("0 1 0 1C 0 0", 3);
    assert_eq!(damage, 1);
    let visible: Vec<_> = batches.iter().map(|batch| shows(&rows, batch)).collect();
    assert_eq!(visible, [true, false, true, false, true, true]);
}

#[test]
fn a_lost_batch_of_data_takes_no_other_with_it() {
    let (rows, damage, batches) = shown("1 1 0 2 1C 2 2C 0", 1);
    assert_eq!(damage, 1);
    let visible: Vec<_> = batches.iter().map(|batch| shows(&rows, batch)).collect();
    // Three offsets are lost with one batch, so it was no marker: producer 1 did commit.
    assert_eq!(visible, [true, false, true, true, false, true, false, true]);
}

/// Goal: a length that is wrong by just what follows does not hide that a marker follows.
#[test]
fn a_marker_swallowed_by_the_length_of_the_batch_before_it_is_lost_all_the_same() {
    let log = Log::of(0, script("0 1 1 1A 0 0"));
    let (fs, placed) = log.write();
    let path = log.path_of(0, FileKind::Log);
    let mut bytes = fs.read(&path);
    let length =
        placed[2].header.batch_length + i32::try_from(placed[3].header.total_bytes()).unwrap();
    bytes[placed[2].position + 8..][..4].copy_from_slice(&length.to_be_bytes());
    // With a body that is good, the checksum would tell that only the length is wrong.
    bytes[placed[2].position + 70] ^= 1;
    let (rows, report) = ask(OnCorrupt::Skip).rows(&fs.with(&path, bytes)).unwrap();
    assert_eq!(report.damage_count, 1);
    let visible: Vec<_> = log.batches().map(|batch| shows(&rows, batch)).collect();
    assert_eq!(visible, [true, false, false, false, true, true]);
}

/// Goal: a scan that stops at damage shows what a broker would that cuts the log there, and says so;
/// one that begins behind it is not the poorer for it.
#[test]
fn a_scan_that_stops_holds_back_what_is_open_at_the_damage() {
    let log = Log::of(0, script("0 1 1C 2 0 0 2C 0 1 1A 0"));
    let (fs, placed) = log.write();
    let fs = damaged(&fs, &log, &placed[5], 65, 0);
    let visible = |ask: Ask| {
        let (rows, report) = ask.rows(&fs).unwrap();
        let shown: Vec<_> = log.batches().map(|batch| shows(&rows, batch)).collect();
        (shown.iter().map(|is| if *is { 'x' } else { '.' }).collect::<String>(), report)
    };
    let (shown, report) = visible(ask(OnCorrupt::Stop));
    assert_eq!((shown.as_str(), report.damage_count), ("xx.........", 1));
    let (shown, report) = visible(ask(OnCorrupt::Skip));
    assert_eq!((shown.as_str(), report.damage_count), ("xx.xx..x..x", 1));
    // There is no index to seek by in a segment this small, so the damage is met; with a segment
    // of its own it is not.
    let log = with_segments(script("0 1 0 0 1A 0 0 1 0 1A 0 0"), 2);
    let (fs, placed) = log.write();
    let fs = damaged(&fs, &log, &placed[3], 65, 0);
    let start = log.segments[1].1[0].base_offset;
    let (rows, report) = ask(OnCorrupt::Stop).between(Some(start), None).rows(&fs).unwrap();
    assert_eq!(report.damage_count, 0);
    let truth: Vec<_> = committed(&log).into_iter().filter(|row| row.offset >= start).collect();
    assert!(!truth.is_empty() && rows == truth);
}

#[test]
fn an_empty_transaction_index_proves_nothing() {
    let log = with_segments(script(STORY), 3);
    let (fs, _) = log.write();
    let mut emptied = fs;
    let mut count = 0;
    for segment in 0..3 {
        let path = log.path_of(segment, FileKind::TxnIndex);
        if emptied.paths().contains(&path) {
            emptied = emptied.with(&path, vec![]);
            count += 1;
        }
    }
    assert!(count > 0);
    assert_eq!(ask(OnCorrupt::Error).rows(&emptied).unwrap().0, committed(&log));
}

#[test]
fn an_empty_control_batch_that_compaction_left_decides_nothing() {
    let mut log = Log::of(0, script("0 1 1C 0 2 2A 0"));
    let truth = committed(&log);
    // As if producer 3 had written there once: its marker is gone, the range of offsets is not.
    let mut random = Random::new(71);
    let end = log.end();
    let mut left = Batch::of(0, vec![random.record(end)]);
    left.transaction = Some(3);
    left.records.clear();
    left.is_control = true;
    log.segments[0].1.push(left);
    let (fs, _) = log.write();
    for on_corrupt in [OnCorrupt::Error, OnCorrupt::Skip, OnCorrupt::Stop] {
        let (rows, report) = ask(on_corrupt).rows(&fs).unwrap();
        assert_eq!((rows, report.damage_count), (truth.clone(), 0));
    }
}

/// Goal: the transaction index is a cache that nothing protects. Method: every bit of it flipped.
#[test]
fn flips_in_the_transaction_index_change_nothing() {
    let mut log = with_segments(script(&[STORY, STORY].join(" ")), 4);
    log.index_interval = 128;
    let (fs, _) = log.write();
    let truth = committed(&log);
    let mut flipped = 0;
    for segment in 0..4 {
        let path = log.path_of(segment, FileKind::TxnIndex);
        if !fs.paths().contains(&path) {
            continue;
        }
        let bytes = fs.read(&path);
        for byte in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[byte] ^= 1 << bit;
                let (rows, _) = ask(OnCorrupt::Error).rows(&fs.with(&path, changed)).unwrap();
                assert!(rows == truth, "segment {segment}, byte {byte} bit {bit}");
                flipped += 1;
            }
        }
    }
    assert!(flipped > 500, "{flipped}");
}

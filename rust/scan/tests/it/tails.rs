//! Logs that end badly: cut anywhere in the last batches, or with bytes appended that are no batch.

use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::Codec;
use kafkaseg_core::{CorruptKind, Error};
use kafkaseg_scan::OnCorrupt;

use crate::log::{Close, Log, Placed};
use crate::memory::MemoryFs;
use crate::random::Random;
use crate::rows::{Ask, Row};

fn log(close: Close) -> (Log, MemoryFs, Vec<Placed>) {
    let mut log = Log::of(1000, Random::new(20).batches(1000, 8 << 10, &Codec::ALL));
    log.close = close;
    let (fs, placed) = log.write();
    (log, fs, placed)
}

/// The same content with another last segment.
fn with_bytes(fs: &MemoryFs, log: &Log, bytes: &[u8]) -> MemoryFs {
    fs.with(log.path_of(0, FileKind::Log), bytes.to_vec())
}

/// The records of the batches that lie whole in the first bytes of the file.
fn whole_prefix(log: &Log, placed: &[Placed], bytes: usize) -> Vec<Row> {
    let whole = placed.iter().filter(|batch| batch.end() <= bytes);
    let end = whole.map(|batch| batch.header.last_offset() + 1).max().unwrap_or(0);
    log.rows().into_iter().filter(|row| row.offset < end).collect()
}

#[test]
fn a_log_cut_at_any_byte_gives_its_whole_batches() {
    let (log, fs, placed) = log(Close::Open);
    let bytes = fs.read(log.path_of(0, FileKind::Log));
    let from = placed[placed.len() - 2].position;
    for cut in from..bytes.len() {
        for on_corrupt in [OnCorrupt::Error, OnCorrupt::Skip, OnCorrupt::Stop] {
            let ask = Ask::on_corrupt(on_corrupt);
            let (rows, report) = ask.rows(&with_bytes(&fs, &log, &bytes[..cut])).unwrap();
            assert_eq!(rows, whole_prefix(&log, &placed, cut), "cut at {cut}");
            assert_eq!(report.damage_count, 0, "cut at {cut}");
            let is_boundary = placed.iter().any(|batch| batch.position == cut);
            let left: Vec<_> = report.tails.iter().map(|tail| tail.bytes).collect();
            let whole = placed.iter().map(Placed::end).filter(|end| *end <= cut).max().unwrap();
            let torn = u64::try_from(cut - whole).unwrap();
            let expected = if is_boundary { vec![] } else { vec![torn] };
            assert_eq!(left, expected, "cut at {cut}");
        }
    }
}

#[test]
fn a_cleanly_closed_log_cut_at_any_byte_is_damaged() {
    for close in [Close::Clean, Close::CleanBySnapshot] {
        let (log, fs, placed) = log(close);
        let bytes = fs.read(log.path_of(0, FileKind::Log));
        let from = placed[placed.len() - 2].position;
        for cut in (from..bytes.len()).chain([0]) {
            let cut_fs = with_bytes(&fs, &log, &bytes[..cut]);
            match Ask::on_corrupt(OnCorrupt::Error).rows(&cut_fs) {
                Err(Error::Corrupt { .. }) => {}
                other => panic!("cut at {cut}: {other:?}"),
            }
            let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&cut_fs).unwrap();
            assert_eq!(rows, whole_prefix(&log, &placed, cut), "cut at {cut}");
            assert_eq!(report.damage_count, 1, "cut at {cut}: {:?}", report.damage);
            assert_eq!(report.tails, [], "cut at {cut}");
        }
    }
}

#[test]
fn a_missing_last_segment_of_a_cleanly_closed_log_is_damage() {
    let mut random = Random::new(21);
    let batches = random.batches(1000, 4 << 10, &[Codec::None]);
    let (first, second) = batches.split_at(batches.len() / 2);
    let mut log = Log::of(1000, first.to_vec());
    log.segments.push((second[0].base_offset, second.to_vec()));
    let (fs, _) = log.write();
    assert_eq!(Ask::default().rows(&fs).unwrap().0, log.rows());
    fs.remove(log.path_of(1, FileKind::Log));
    match Ask::default().rows(&fs) {
        Err(Error::Corrupt { kind: CorruptKind::EarlyEnd { found, expected }, .. }) => {
            assert_eq!((found, expected), (second[0].base_offset, log.end()));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_log_that_was_closed_cleanly_is_no_damage() {
    let log = Log::of(1000, vec![]);
    let (fs, _) = log.write();
    let (rows, report) = Ask::default().rows(&fs).unwrap();
    assert_eq!((rows, report.damage_count), (vec![], 0));
}

/// Zeros as a preallocated or half-written file has them, and garbage.
fn appendices(count: usize) -> [(&'static str, Vec<u8>); 2] {
    let mut garbage = Random::new(u64::try_from(count).unwrap()).bytes(count);
    // A first byte of an offset that no log reaches, so that no garbage is a batch by chance.
    garbage[0] = 0x55;
    [("zeros", vec![0; count]), ("garbage", garbage)]
}

#[test]
fn bytes_after_the_last_batch_of_an_open_log_are_a_tail() {
    let (log, fs, _) = log(Close::Open);
    let bytes = fs.read(log.path_of(0, FileKind::Log));
    let truth = Ask::default().batches(&fs).unwrap().0;
    for count in 1..=4096 {
        for (what, appendix) in appendices(count) {
            let longer = with_bytes(&fs, &log, &[bytes.clone(), appendix].concat());
            let (batches, report) = Ask::default().batches(&longer).unwrap();
            assert!(batches == truth, "{count} bytes of {what}");
            let [tail] = report.tails.as_slice() else { panic!("{count} bytes of {what}") };
            let found = (tail.position, tail.bytes, report.damage_count);
            let end = u64::try_from(bytes.len()).unwrap();
            assert_eq!(found, (end, u64::try_from(count).unwrap(), 0), "{count} bytes of {what}");
        }
    }
}

#[test]
fn bytes_after_the_last_batch_of_a_closed_log_are_damage() {
    let (log, fs, _) = log(Close::Clean);
    let bytes = fs.read(log.path_of(0, FileKind::Log));
    let truth = Ask::default().batches(&fs).unwrap().0;
    for count in 1..=4096 {
        for (what, appendix) in appendices(count) {
            let longer = with_bytes(&fs, &log, &[bytes.clone(), appendix].concat());
            let (batches, report) = Ask::on_corrupt(OnCorrupt::Skip).batches(&longer).unwrap();
            assert!(batches == truth, "{count} bytes of {what}");
            assert_eq!(report.damage_count, 1, "{count} bytes of {what}");
            assert_eq!(report.tails, [], "{count} bytes of {what}");
            if count % 64 < 3 {
                let error = Ask::default().batches(&longer).unwrap_err();
                assert!(matches!(error, Error::Corrupt { .. }), "{count} bytes of {what}: {error}");
            }
        }
    }
}

#[test]
fn bytes_after_the_last_batch_of_a_sealed_segment_are_damage() {
    let mut random = Random::new(22);
    let batches = random.batches(1000, 4 << 10, &[Codec::None]);
    let (first, second) = batches.split_at(batches.len() / 2);
    let mut log = Log::of(1000, first.to_vec());
    log.segments.push((second[0].base_offset, second.to_vec()));
    log.close = Close::Open;
    let (fs, _) = log.write();
    let bytes = fs.read(log.path_of(0, FileKind::Log));
    for count in (1..=64).chain([4096]) {
        for (what, appendix) in appendices(count) {
            let longer = with_bytes(&fs, &log, &[bytes.clone(), appendix].concat());
            let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&longer).unwrap();
            assert_eq!(rows, log.rows(), "{count} bytes of {what}");
            assert_eq!((report.damage_count, report.tails.len()), (1, 0), "{count} of {what}");
        }
    }
}

/// Goal: a good batch behind damage makes it damage, even at the end of an open log.
#[test]
fn damage_before_a_good_batch_is_no_torn_tail() {
    let (log, fs, placed) = log(Close::Open);
    let mut bytes = fs.read(log.path_of(0, FileKind::Log));
    let victim = placed[placed.len() - 2];
    bytes[victim.position + 70] ^= 1;
    let damaged = with_bytes(&fs, &log, &bytes);
    let error = Ask::default().rows(&damaged).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let (rows, report) = Ask::on_corrupt(OnCorrupt::Stop).rows(&damaged).unwrap();
    assert_eq!(rows, whole_prefix(&log, &placed, victim.position));
    assert_eq!((report.damage_count, report.tails.len()), (1, 0));
}

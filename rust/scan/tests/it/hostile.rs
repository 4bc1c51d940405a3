//! Files made to cost time or memory, or to pass as something they are not.

use std::sync::Arc;

use kafkaseg_core::Error;
use kafkaseg_core::names::FileKind;
use kafkaseg_core::record::{Codec, CorruptKind};
use kafkaseg_scan::{Column, OnCorrupt, Reader};

use crate::is_long;
use crate::log::{Batch, Log, Record, T0, compressed_batch, sealed_batch};
use crate::memory::{EIO, Event, MemoryFs};
use crate::random::Random;
use crate::rows::{Ask, calm, rows_of};

/// A log of one file with these bytes, not closed.
fn log_of(bytes: Vec<u8>) -> MemoryFs {
    let fs = MemoryFs::default();
    fs.write("logs/t-0/00000000000000000000.log", bytes);
    fs
}

fn records(count: i64, value_bytes: usize) -> Vec<Record> {
    let record = |offset| Record {
        offset,
        timestamp: T0 + offset,
        key: None,
        value: Some(vec![u8::try_from(offset % 251).unwrap(); value_bytes]),
        headers: vec![],
    };
    (0..count).map(record).collect()
}

/// A good batch of a few records, not compressed.
fn good_batch(base_offset: i64) -> Vec<u8> {
    let mut random = Random::new(u64::try_from(base_offset).unwrap());
    let batch = Batch::of(0, vec![random.record(base_offset), random.record(base_offset + 1)]);
    Log::of(base_offset, vec![batch]).encode().0.remove(0)
}

#[test]
fn a_header_that_claims_endless_records_takes_no_memory() {
    let (_, placed) = Log::of(0, vec![Batch::of(0, records(3, 10))]).write();
    let mut header = placed[0].header;
    header.records_count = i32::MAX;
    header.last_offset_delta = i32::MAX;
    let mut bytes = Vec::new();
    compressed_batch(header, Codec::Lz4, b"no records at all", &mut bytes);
    let fs = log_of(bytes);
    for columns in [vec![Column::Topic], vec![Column::Partition, Column::IsControl]] {
        let mut ask = Ask::default();
        ask.options.columns = columns;
        ask.options.batch_bytes = 64 << 10;
        let mut reader = Reader::new(fs.clone(), Arc::new(ask.plan(&fs).unwrap()));
        for _ in 0..20 {
            let batch = reader.next_batch(&mut calm).unwrap().unwrap();
            assert!(batch.get_array_memory_size() < 1 << 20, "{}", batch.get_array_memory_size());
        }
    }
    assert_eq!(Ask::default().count(&fs).unwrap(), u64::from(i32::MAX.unsigned_abs()));
    let error = Ask::default().rows(&fs).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn bytes_that_look_like_headers_everywhere_are_read_a_few_times_only() {
    // Magic 0 and a size that reaches far, whatever position one starts at.
    let mut bytes: Vec<u8> = (0..256 << 10).map(|_| 0).collect();
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from(index % 4 == 3);
    }
    let fs = log_of(bytes.clone());
    let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&fs).unwrap();
    assert_eq!((rows.len(), report.tails.len()), (0, 1));
    let limit = u64::try_from(bytes.len()).unwrap() * 64;
    assert!(fs.bytes_read() < limit, "{} of {limit}", fs.bytes_read());
}

/// Goal: no pattern of good and bad makes each search pay anew for the whole rest of the file.
#[test]
fn many_damaged_places_are_passed_without_reading_the_file_for_each() {
    let mut bytes = Vec::new();
    let mut batches = 0;
    while bytes.len() < 512 << 10 {
        let mut batch = good_batch(batches * 2);
        if batches % 2 == 0 {
            batch[16] = 9;
        }
        bytes.extend(batch);
        batches += 1;
    }
    let fs = log_of(bytes.clone());
    let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&fs).unwrap();
    let half = usize::try_from(batches / 2).unwrap();
    assert_eq!(rows.len(), half * 2);
    assert!(report.damage_count >= u64::try_from(half).unwrap());
    let limit = u64::try_from(bytes.len()).unwrap() * 64;
    assert!(fs.bytes_read() < limit, "{} of {limit}", fs.bytes_read());
}

/// Goal: a batch inside a record's value is never taken for a batch of the log. Method: the outer
/// batch is damaged in its body, its length or its magic, and the inner one would fit.
#[test]
fn a_batch_inside_a_value_is_not_served_when_the_outer_one_is_damaged() {
    let mut carrier = Random::new(61).record(10);
    carrier.value = Some([good_batch(10), good_batch(12), vec![7; 40]].concat());
    let batches = vec![
        Batch::of(0, (0..10).map(|at| Random::new(60).record(at)).collect()),
        Batch::of(0, vec![carrier]),
        Batch::of(0, (11..30).map(|at| Random::new(62).record(at)).collect()),
        Batch::of(0, (30..40).map(|at| Random::new(63).record(at)).collect()),
    ];
    let log = Log::of(0, batches);
    let (fs, placed) = log.write();
    let path = log.path_of(0, FileKind::Log);
    let bytes = fs.read(&path);
    let truth: Vec<_> = log.rows().into_iter().filter(|row| row.offset != 10).collect();
    let start = placed[1].position;
    let body = (start + 61..start + 64).chain(placed[1].end() - 3..placed[1].end());
    for byte in (start + 8..start + 12).chain(body) {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 1 << bit;
            let fs = fs.with(&path, damaged);
            let (rows, report) = Ask::on_corrupt(OnCorrupt::Skip).rows(&fs).unwrap();
            assert!(rows == truth, "byte {} bit {bit}: {:?}", byte - start, report.damage);
            assert_eq!(report.damage_count, 1);
        }
    }
}

#[test]
fn a_search_behind_damage_can_be_stopped() {
    let mut bytes = good_batch(0);
    let good = bytes.len();
    bytes.extend(vec![0; 8 << 20]);
    let fs = log_of(bytes);
    let plan = Arc::new(Ask::default().plan(&fs).unwrap());
    let mut pulses = 0;
    let mut reader = Reader::new(fs.clone(), Arc::clone(&plan));
    let mut pulse = || {
        pulses += 1;
        if pulses == 10 { Err(Error::Interrupted) } else { Ok(()) }
    };
    let stopped = reader.next_batch(&mut pulse);
    assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
    assert!(fs.bytes_read() < u64::try_from(good).unwrap() + (6 << 20), "{}", fs.bytes_read());
}

/// A batch that inflates to more than is ever held.
fn large_batch(codec: Codec) -> (MemoryFs, usize) {
    let count = 80_000;
    let (files, placed) = Log::of(0, vec![Batch::of(0, records(count, 1000))]).encode();
    assert!(files[0].len() > 64 << 20);
    let mut bytes = Vec::new();
    compressed_batch(placed[0].header, codec, &files[0][61..], &mut bytes);
    (log_of(bytes), usize::try_from(count).unwrap())
}

#[test]
fn a_batch_of_many_megabytes_is_read_whole_and_can_be_stopped() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let (fs, count) = large_batch(codec);
        let mut ask = Ask::default();
        let (batches, _) = ask.batches(&fs).unwrap();
        let mut rows = 0;
        for batch in &batches {
            assert!(batch.get_array_memory_size() < 16 << 20, "{}", batch.num_rows());
            for row in rows_of(&[batch.slice(0, 1), batch.slice(batch.num_rows() - 1, 1)]) {
                let byte = u8::try_from(row.offset % 251).unwrap();
                assert_eq!(row.value, Some(vec![byte; 1000]));
            }
            rows += batch.num_rows();
        }
        assert_eq!(rows, count, "{codec:?}");
        // Nothing is wanted of it, so that nothing but the pulse interrupts the inflating.
        ask.options.start_timestamp = Some(T0);
        ask.options.end_timestamp = Some(T0);
        let plan = Arc::new(ask.plan(&fs).unwrap());
        let mut pulses = 0;
        let mut reader = Reader::new(fs.clone(), plan);
        let mut pulse = || {
            pulses += 1;
            Ok(())
        };
        assert!(reader.next_batch(&mut pulse).unwrap().is_none());
        assert!(pulses >= 6, "{codec:?} paused {pulses} times");
    }
}

#[test]
fn a_reader_that_failed_does_not_go_on_behind_the_failure() {
    let log = Log::of(0, Random::new(64).batches(0, 8 << 10, &[Codec::None]));
    let (fs, placed) = log.write();
    let path = log.path_of(0, FileKind::Log);
    let mut bytes = fs.read(&path);
    bytes[placed[3].position + 80] ^= 1;
    let damaged = fs.with(&path, bytes);
    let ask = Ask::default();
    let mut reader = Reader::new(damaged.clone(), Arc::new(ask.plan(&damaged).unwrap()));
    assert!(matches!(reader.next_batch(&mut calm), Err(Error::Corrupt { .. })));
    assert!(reader.next_batch(&mut calm).is_err(), "what follows would look like everything");

    let plan = Arc::new(ask.plan(&fs).unwrap());
    fs.at_call(1, Event::Fail(EIO));
    let mut reader = Reader::new(fs.clone(), plan);
    assert!(matches!(reader.next_batch(&mut calm), Err(Error::Io { .. })));
    assert!(reader.next_batch(&mut calm).is_err(), "the file that failed would be left out");
}

#[test]
fn a_record_over_the_limit_is_refused_and_not_cut() {
    if !is_long() {
        return;
    }
    let value = vec![5; (1 << 30) + 100];
    let record =
        Record { offset: 0, timestamp: T0, key: None, value: Some(value), headers: vec![] };
    let (files, placed) = Log::of(0, vec![Batch::of(0, vec![record])]).encode();
    let mut bytes = Vec::new();
    sealed_batch(placed[0].header, &files[0][61..], &mut bytes);
    let fs = log_of(bytes);
    match Ask::default().batches(&fs) {
        Err(Error::Corrupt { kind: CorruptKind::RecordTooLarge(_), .. }) => {}
        other => panic!("{:?}", other.map(|(batches, _)| batches.len())),
    }
}

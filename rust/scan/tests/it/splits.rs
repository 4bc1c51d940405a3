//! Splits and threads give exactly the whole, in order, and batches keep to their size.

use arrow_array::RecordBatch;
use kafkaseg_core::record::Codec;
use kafkaseg_scan::{Column, Isolation, Plan};

use crate::log::{Log, T0};
use crate::memory::MemoryFs;
use crate::model::{transactions, with_segments};
use crate::random::{Random, compacted};
use crate::rows::{Ask, calm, read, rows_of};

/// Logs of different make: one segment and many, with and without indexes, compacted, in
/// transactions.
fn logs() -> Vec<(&'static str, Log)> {
    let mut random = Random::new(50);
    let plain = Log::of(1000, random.batches(1000, 40 << 10, &[Codec::None]));
    let mut unindexed = Log::of(0, random.batches(0, 20 << 10, &Codec::ALL));
    unindexed.has_indexes = false;
    let mut fine = Log::of(5, random.batches(5, 20 << 10, &[Codec::Lz4]));
    fine.index_interval = 0;
    let many = with_segments(random.batches(77, 40 << 10, &Codec::ALL), 7);
    let holes = with_segments(compacted(random.batches(0, 30 << 10, &Codec::ALL), &mut random), 3);
    let mut txn = with_segments(transactions(&mut random, 300), 4);
    txn.index_interval = 256;
    let one = Log::of(9, random.batches(9, 1, &[Codec::None]));
    let empty = Log::of(9, vec![]);
    vec![
        ("one segment", plain),
        ("no index", unindexed),
        ("every batch indexed", fine),
        ("many segments", many),
        ("compacted", holes),
        ("transactions", txn),
        ("one batch", one),
        ("empty", empty),
    ]
}

/// The whole log, and parts of it by offset, time and isolation.
fn asks(log: &Log) -> Vec<Ask> {
    let rows = log.rows();
    let at = |part: usize| rows.get(rows.len() * part / 7).map_or(0, |row| row.offset);
    let mut asks = vec![
        Ask::default(),
        Ask::default().between(Some(at(2)), None),
        Ask::default().between(None, Some(at(5))),
        Ask::default().between(Some(at(3)), Some(at(4) + 1)),
        Ask::default().between(Some(log.end() + 10), None),
    ];
    let mut timed = Ask::default();
    timed.options.start_timestamp = Some(T0 + at(2) * 10);
    timed.options.end_timestamp = Some(T0 + at(5) * 10);
    asks.push(timed);
    let mut committed = Ask::default().between(Some(at(1)), Some(at(6)));
    committed.options.isolation = Isolation::ReadCommitted;
    asks.push(committed);
    asks
}

#[test]
fn splits_of_any_number_are_the_whole() {
    for (name, log) in logs() {
        let (fs, _) = log.write();
        for ask in asks(&log) {
            let (whole, report) = ask.rows(&fs).unwrap();
            assert_eq!(report.damage_count, 0);
            for parts in 1..=40 {
                let (rows, reports) = ask.split_reports(&fs, parts).unwrap();
                assert!(reports.len() <= parts, "{name}: {} of {parts}", reports.len());
                assert!(rows == whole, "{name} in {parts}, {ask:?}");
                let records: u64 = reports.iter().map(|report| report.records).sum();
                assert_eq!(records, report.records, "{name} in {parts}");
            }
        }
    }
}

#[test]
fn splits_survive_a_journey_to_another_process() {
    for (name, log) in logs() {
        let (fs, _) = log.write();
        let mut ask = Ask::default();
        ask.options.isolation = Isolation::ReadCommitted;
        let whole = ask.rows(&fs).unwrap().0;
        let splits = ask.plan(&fs).unwrap().splits(&fs, 5, &mut calm).unwrap();
        let mut rows = Vec::new();
        for split in splits {
            let arrived = Plan::decode(&split.encode().unwrap()).unwrap();
            rows.extend(rows_of(&read(&fs, arrived).unwrap().0));
        }
        assert!(rows == whole, "{name}");
    }
}

#[test]
fn splits_are_of_about_the_same_size() {
    let log = Log::of(0, Random::new(51).batches(0, 256 << 10, &[Codec::None]));
    let (fs, _) = log.write();
    let plan = Ask::default().plan(&fs).unwrap();
    for parts in [2, 3, 5, 8] {
        let splits = plan.splits(&fs, parts, &mut calm).unwrap();
        let sizes: Vec<u64> = splits.iter().map(Plan::bytes).collect();
        assert_eq!(sizes.len(), parts);
        assert_eq!(sizes.iter().sum::<u64>(), plan.bytes());
        let share = plan.bytes() / u64::try_from(parts).unwrap();
        // An index entry is never farther than the interval and the largest batch.
        assert!(sizes.iter().all(|size| size.abs_diff(share) < 12 << 10), "{sizes:?}");
    }
}

/// Several partitions, so that a reader comes from one to the next.
fn two_partitions() -> (MemoryFs, usize) {
    let (first, second) = (
        with_segments(Random::new(52).batches(0, 600 << 10, &[Codec::None]), 2),
        with_segments(Random::new(53).batches(0, 300 << 10, &[Codec::Lz4]), 2),
    );
    let (fs, _) = first.write();
    let (other, _) = second.write();
    for path in other.paths() {
        if let Ok(name) = path.strip_prefix("logs/t-0") {
            fs.write(std::path::Path::new("logs/t-1").join(name), other.read(&path));
        }
    }
    // What the root says fits the first partition only.
    fs.remove("logs/.kafka_cleanshutdown");
    (fs, first.rows().len() + second.rows().len())
}

#[test]
fn several_threads_give_what_one_does_in_the_same_order() {
    let (fs, count) = two_partitions();
    for ask in [Ask::default(), Ask::default().between(Some(300), Some(1500))] {
        let whole = ask.rows(&fs).unwrap();
        if ask.selection.topics.is_none() && whole.0.len() > 3000 {
            assert_eq!(whole.0.len(), count);
        }
        for threads in 2..=4 {
            let mut ask = ask.clone();
            ask.options.threads = threads;
            ask.options.batch_bytes = 32 << 10;
            let (rows, report) = ask.rows(&fs).unwrap();
            assert!(rows == whole.0, "{threads} threads");
            assert_eq!(report.records, whole.1.records);
            assert!(report.batches >= whole.1.batches);
        }
    }
}

#[test]
fn a_batch_is_hardly_larger_than_asked() {
    let log = with_segments(Random::new(54).batches(0, 400 << 10, &Codec::ALL), 2);
    let (fs, placed) = log.write();
    let rows = log.rows();
    let largest = placed.iter().map(|batch| batch.header.last_offset_delta).max().unwrap();
    for threads in [1, 3] {
        let mut ask = Ask::default();
        ask.options.batch_bytes = 4 << 10;
        ask.options.threads = threads;
        let (batches, _) = ask.batches(&fs).unwrap();
        assert_eq!(rows_of(&batches).len(), rows.len());
        for batch in &batches {
            let bytes: usize = (0..batch.num_columns())
                .map(|column| batch.column(column).to_data().get_slice_memory_size().unwrap())
                .sum();
            // One Kafka batch more than asked, at most, and headers and bitmaps beside it.
            let batch_bytes = usize::try_from(largest + 1).unwrap() * 220;
            assert!(bytes < (4 << 10) + batch_bytes, "{bytes} bytes in {}", batch.num_rows());
        }
    }
}

/// Goal: a long topic name counts too. Method: a scan of the topic alone.
#[test]
fn columns_of_text_keep_to_the_size_of_a_batch() {
    let log = Log::of(0, Random::new(55).batches(0, 300 << 10, &[Codec::None]));
    let (fs, _) = log.write();
    let topic = "n".repeat(249);
    for path in fs.paths() {
        if let Ok(name) = path.strip_prefix("logs/t-0") {
            fs.write(format!("logs/{topic}-0/{}", name.display()), fs.read(&path));
            fs.remove(&path);
        }
    }
    for columns in [vec![Column::Topic], vec![Column::Topic, Column::Offset, Column::Codec]] {
        let mut ask = Ask::default();
        ask.selection.topics = Some(vec![topic.clone()]);
        ask.options.columns = columns;
        ask.options.batch_bytes = 16 << 10;
        let (batches, _) = ask.batches(&fs).unwrap();
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(count, log.rows().len());
        for batch in &batches {
            let bytes = batch.column(0).to_data().get_slice_memory_size().unwrap();
            assert!(bytes < 32 << 10, "{bytes} bytes of topic in {} rows", batch.num_rows());
        }
    }
}

//! Random logs against a model of what Kafka means by them.

use std::collections::BTreeMap;

use kafkaseg_core::record::{Codec, ControlType};
use kafkaseg_scan::{Isolation, OnCorrupt};
use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::is_long;
use crate::log::{Batch, Close, Log, T0};
use crate::random::Random;
use crate::rows::{Ask, Row};

/// The batches in a number of segments.
#[expect(clippy::needless_pass_by_value, reason = "a log is made of its batches")]
pub(crate) fn with_segments(batches: Vec<Batch>, count: usize) -> Log {
    let base = batches.first().map_or(0, |batch| batch.base_offset);
    let mut log = Log::of(base, vec![]);
    let size = batches.len().div_ceil(count).max(1);
    log.segments = batches.chunks(size).map(|part| (part[0].base_offset, part.to_vec())).collect();
    log
}

/// Batches of several producers: some in transactions that end either way or not at all.
pub(crate) fn transactions(random: &mut Random, count: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut offset = 0;
    let mut open: BTreeMap<i64, i64> = BTreeMap::new();
    for _ in 0..count {
        let producer = i64::try_from(random.below(5)).unwrap();
        if open.contains_key(&producer) && random.one_in(3) {
            open.remove(&producer);
            let kind = if random.one_in(2) { ControlType::Abort } else { ControlType::Commit };
            batches.push(marker(producer, kind, offset));
            offset += 1;
            continue;
        }
        let records = 1 + i64::try_from(random.below(4)).unwrap();
        let records = (offset..offset + records).map(|at| random.record(at)).collect();
        let mut batch = Batch::of(0, records);
        offset = batch.last_offset + 1;
        // The fifth producer writes outside of transactions.
        if producer < 4 {
            open.entry(producer).or_insert(batch.base_offset);
            batch.transaction = Some(producer);
        }
        batches.push(batch);
    }
    // All but one end, so that the last stable offset lies near the end as a rule.
    for producer in open.into_keys().skip(usize::from(random.one_in(2))) {
        batches.push(marker(producer, ControlType::Commit, offset));
        offset += 1;
    }
    batches
}

pub(crate) fn marker(producer: i64, kind: ControlType, offset: i64) -> Batch {
    Batch {
        base_offset: offset,
        last_offset: offset,
        leader_epoch: 0,
        codec: Codec::None,
        transaction: Some(producer),
        marker: Some(kind),
        is_control: true,
        records: vec![],
    }
}

/// The rows that `read_committed` shows.
pub(crate) fn committed(log: &Log) -> Vec<Row> {
    let mut open: BTreeMap<i64, (i64, Vec<usize>)> = BTreeMap::new();
    let batches: Vec<_> = log.batches().collect();
    let mut is_aborted = vec![false; batches.len()];
    for (index, batch) in batches.iter().enumerate() {
        let Some(producer) = batch.transaction else { continue };
        match batch.marker {
            None => open.entry(producer).or_insert((batch.base_offset, vec![])).1.push(index),
            Some(ControlType::Abort) => {
                for index in open.remove(&producer).map(|(_, written)| written).unwrap_or_default()
                {
                    is_aborted[index] = true;
                }
            }
            Some(_) => drop(open.remove(&producer)),
        }
    }
    let stable = open.values().map(|(first, _)| *first).min().unwrap_or(i64::MAX);
    let seen = batches.iter().zip(is_aborted).filter(|(_, aborted)| !aborted);
    seen.flat_map(|(batch, _)| batch.records.iter().map(|record| Row::of(record, batch)))
        .filter(|row| row.offset < stable)
        .collect()
}

/// Any log that Kafka may write.
fn any_log() -> impl Strategy<Value = Log> {
    let shape = (any::<u64>(), 0..120_usize, 1..6_usize, 0..5_u8, 0..3_u8);
    (shape, prop_oneof![Just(0_usize), Just(200), Just(4096)]).prop_map(
        |((seed, count, segments, make, close), index_interval)| {
            let mut random = Random::new(seed);
            let first = i64::try_from(random.below(3)).unwrap() * 1_000_000_007;
            let mut batches = transactions(&mut random, count);
            let mut epoch = 0;
            for batch in &mut batches {
                shift(batch, first);
                if batch.marker.is_none() && make > 0 {
                    batch.codec = Codec::ALL[random.below(Codec::ALL.len())];
                }
                epoch += i32::from(random.one_in(30));
                batch.leader_epoch = epoch;
            }
            if make >= 3 {
                compact(&mut batches, &mut random);
            }
            let mut log = with_segments(batches, segments);
            if log.segments.is_empty() {
                log.segments.push((first, vec![]));
            }
            log.index_interval = index_interval;
            log.has_indexes = make != 2;
            log.has_epochs = make != 1;
            log.close = [Close::Clean, Close::CleanBySnapshot, Close::Open][usize::from(close)];
            log
        },
    )
}

fn shift(batch: &mut Batch, by: i64) {
    batch.base_offset += by;
    batch.last_offset += by;
    for record in &mut batch.records {
        record.offset += by;
    }
}

/// Removes records, and data batches of which none is left; markers stay, as does the last batch.
fn compact(batches: &mut Vec<Batch>, random: &mut Random) {
    let last = batches.len().saturating_sub(1);
    for batch in batches.iter_mut() {
        batch.records.retain(|_| !random.one_in(3));
    }
    let mut index = 0;
    batches.retain(|batch| {
        let keep = batch.marker.is_some() || !batch.records.is_empty() || index == last;
        index += 1;
        keep || random.one_in(4)
    });
}

fn config() -> Config {
    let cases = if is_long() { 20_000 } else { 1_500 };
    Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_scan_gives_what_the_model_says(
        log in any_log(),
        from in 0..=120_usize,
        to in 0..=120_usize,
        batch_bytes in prop_oneof![Just(1_usize << 10), Just(8 << 10), Just(4 << 20)],
        parts in 1..9_usize,
        threads in prop_oneof![9 => Just(1_usize), 1 => Just(2)],
    ) {
        let (fs, _) = log.write();
        for isolation in [Isolation::ReadUncommitted, Isolation::ReadCommitted] {
            let truth =
                if isolation == Isolation::ReadCommitted { committed(&log) } else { log.rows() };
            let mut ask = Ask::on_corrupt(OnCorrupt::Error);
            ask.options.isolation = isolation;
            ask.options.batch_bytes = batch_bytes;
            ask.options.threads = threads;
            check(&ask, &fs, &truth, parts)?;

            let all = log.rows();
            let at = |part: usize| all.get(all.len() * part / 120);
            let (start, end) = (at(from).map(|row| row.offset), at(to).map(|row| row.offset));
            let is_in = |row: &Row| {
                start.is_none_or(|start| row.offset >= start)
                    && end.is_none_or(|end| row.offset < end)
            };
            let part: Vec<_> = truth.iter().filter(|row| is_in(row)).cloned().collect();
            check(&ask.clone().between(start, end), &fs, &part, parts)?;

            let early = at(from).map_or(T0, |row| row.timestamp);
            let late = at(to).map_or(i64::MAX, |row| row.timestamp);
            let is_in = |row: &&Row| row.timestamp >= early && row.timestamp < late;
            let part: Vec<_> = truth.iter().filter(is_in).cloned().collect();
            let mut timed = ask.clone();
            timed.options.start_timestamp = Some(early);
            timed.options.end_timestamp = Some(late);
            check(&timed, &fs, &part, parts)?;
        }
    }
}

/// A scan, its splits and its count against the rows they must give.
fn check(
    ask: &Ask,
    fs: &crate::memory::MemoryFs,
    truth: &[Row],
    parts: usize,
) -> Result<(), TestCaseError> {
    let (rows, report) = ask.rows(fs).unwrap();
    prop_assert_eq!(report.damage_count, 0, "{:?}", report.damage);
    prop_assert!(rows == truth, "{} rows for {} of {:?}", rows.len(), truth.len(), ask);
    let split = ask.split_rows(fs, parts).unwrap().0;
    prop_assert!(split == truth, "{} rows in splits for {}", split.len(), truth.len());
    let count = usize::try_from(ask.count(fs).unwrap()).unwrap();
    prop_assert_eq!(count, truth.len(), "count of {:?}", ask);
    Ok(())
}

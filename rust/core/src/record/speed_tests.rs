//! How fast batches are checked and built. Run with
//! `cargo test --release -p kafkaseg-core record::speed_tests -- --ignored --nocapture`.
#![expect(clippy::print_stdout, reason = "the figures are what these tests are for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::samples::T0;
use super::{
    AnalyzeLimits, BatchSpec, BatchView, BatcherOptions, BytesColumn, Codec, Columns,
    ColumnsBatcher, Offsets, Origin, Placement, Rules, TimestampType, Timestamps, Validator,
    analyze, place_batches,
};

/// Keys, values and times of so many records of a size, of which 8 bytes are key.
struct Table {
    key_ends: Vec<i32>,
    keys: Vec<u8>,
    value_ends: Vec<i32>,
    values: Vec<u8>,
    times: Vec<i64>,
}

impl Table {
    fn new(record_bytes: usize, total_bytes: usize, with_keys: bool) -> Self {
        let rows = total_bytes / record_bytes;
        let key_bytes = if with_keys { 8 } else { 0 };
        let ends = |each: usize| {
            (0..=rows).map(|row| i32::try_from(row * each).unwrap()).collect::<Vec<_>>()
        };
        let mut random = crate::testing::Random::new(1);
        let mut noise = |bytes: usize| {
            (0..=bytes / 8).flat_map(|_| random.next().to_be_bytes()).take(bytes).collect()
        };
        Self {
            key_ends: ends(key_bytes),
            keys: noise(rows * key_bytes),
            value_ends: ends(record_bytes - key_bytes),
            values: noise(rows * (record_bytes - key_bytes)),
            times: (0..rows).map(|row| T0 + i64::try_from(row / 50).unwrap()).collect(),
        }
    }

    fn columns(&self) -> Columns<'_> {
        let keys = BytesColumn::new(Offsets::Short(&self.key_ends), &self.keys, None).unwrap();
        let values =
            BytesColumn::new(Offsets::Short(&self.value_ends), &self.values, None).unwrap();
        let columns = Columns::new(self.times.len(), Timestamps::Each(&self.times)).unwrap();
        let columns = columns.with_values(values).unwrap();
        if self.keys.is_empty() { columns } else { columns.with_keys(keys).unwrap() }
    }
}

/// The best of some rounds, in GB/s.
fn rate(bytes: usize, mut round: impl FnMut()) -> f64 {
    let mut best = Duration::MAX;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        let start = Instant::now();
        round();
        best = best.min(start.elapsed());
    }
    f64::from(u32::try_from(bytes).unwrap()) / best.as_secs_f64() / 1e9
}

fn options(target_bytes: usize) -> BatcherOptions {
    BatcherOptions { target_bytes, max_bytes: 2 << 20, codec: Codec::None, level: None }
}

#[test]
#[ignore = "a measurement"]
fn building_from_columns() {
    for (record_bytes, with_keys) in [(100, false), (100, true), (1_000, false), (1_000, true)] {
        let table = Table::new(record_bytes, 16 << 20, with_keys);
        let columns = table.columns();
        for target in [16 << 10, 1 << 20] {
            let mut batcher = ColumnsBatcher::new(options(target)).unwrap();
            let mut output = Vec::new();
            let gigabytes = rate(16 << 20, || {
                // In steps of 1 MiB, as an append that writes each step does.
                let (mut row, mut spec) = (0, BatchSpec::at(0));
                while row < columns.rows() {
                    output.clear();
                    let built = batcher.append(&columns, row, spec, &mut output, 1 << 20).unwrap();
                    (row, spec) = (built.next_row, built.next_spec);
                    black_box(place_batches(&mut output, 77, 3, |_, _| ()).unwrap());
                }
            });
            println!(
                "build {record_bytes:>5} B, keys {with_keys:<5}, batches of {target:>7}: \
                 {gigabytes:.2} GB/s"
            );
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn validating_in_place() {
    let at = Placement {
        origin: Origin::Client,
        next_offset: 1_000,
        leader_epoch: 3,
        now_ms: T0 + 60_000_000,
    };
    let limits = AnalyzeLimits { max_message_bytes: 2 << 20, leader_epoch: 3 };
    for record_bytes in [100, 1_000] {
        let table = Table::new(record_bytes, 16 << 20, true);
        for target in [16 << 10, 1 << 20] {
            let mut built = Vec::new();
            let mut maker = ColumnsBatcher::new(options(target)).unwrap();
            maker.append(&table.columns(), 0, BatchSpec::at(0), &mut built, usize::MAX).unwrap();
            let mut batches = Vec::new();
            let mut rest = &built[..];
            while let Ok(batch) = BatchView::parse(rest) {
                let mut bytes = batch.bytes().to_vec();
                bytes[..8].fill(0);
                batches.push(bytes);
                rest = &rest[batch.bytes().len()..];
            }
            for kind in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
                let rules = Rules { timestamp_type: kind, compacted: true, ..Rules::default() };
                let mut validator = Validator::new();
                let mut buffer = Vec::new();
                let (mut copying, mut crc, mut walking) = (0.0, 0.0, 0.0);
                for (what, slot) in [(0, &mut copying), (1, &mut crc), (2, &mut walking)] {
                    *slot = rate(built.len(), || {
                        for batch in &batches {
                            buffer.clear();
                            buffer.extend_from_slice(batch);
                            if what == 0 {
                                black_box(&mut buffer);
                                continue;
                            }
                            let facts = analyze(&buffer, Origin::Client, limits).unwrap();
                            if what == 2 {
                                let done = validator.validate(&mut buffer, &facts, &rules, &at);
                                assert!(!done.unwrap().rebuilt);
                            }
                            black_box(&mut buffer);
                        }
                    });
                }
                println!(
                    "validate {record_bytes:>5} B, batches of {target:>7}, {kind:?}: copy alone \
                     {copying:.1}, + analyze {crc:.2}, + validate {walking:.2} GB/s",
                );
            }
        }
    }
}

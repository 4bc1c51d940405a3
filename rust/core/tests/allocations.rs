//! Iterating records allocates nothing, whatever their number.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::hint::black_box;

use allocation_counter::measure;
use kafkaseg_core::record::{
    AnalyzeLimits, BatchBuilder, BatchSpec, BatcherOptions, BytesColumn, Codec, Columns,
    ColumnsBatcher, EntryView, Header, LegacyRecords, LegacyView, Offsets, Origin, Placement,
    Records, Rules, Timestamps, Validator, analyze, crc32,
};

#[test]
fn the_counter_counts() {
    assert_eq!(measure(|| drop(black_box(Vec::<u8>::with_capacity(9)))).count_total, 1);
}

#[test]
fn records_of_a_batch_are_slices_of_it() {
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    let headers = [Header { key: b"h", value: Some(b"1") }, Header { key: b"h", value: None }];
    for time in 0..1000 {
        builder.push(time, Some(b"key"), Some(b"value"), headers).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    let mut taken = 0;
    let allocations = measure(|| {
        let Ok(EntryView::Batch(batch)) = EntryView::parse(&bytes) else { return };
        assert!(batch.check_crc().is_ok());
        for record in Records::new(batch.header(), batch.payload()) {
            taken += record.map_or(0, |record| black_box(record).headers.iter().count());
        }
    });
    assert_eq!((taken, allocations.count_total), (2000, 0));
}

/// A version 1 message without key.
fn message(offset: i64, attributes: u8, value: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| i32::try_from(bytes).unwrap().to_be_bytes();
    let body = [&[1, attributes][..], &[0; 8], &[0xff; 4], &length(value.len()), value].concat();
    let crc = crc32(&body).to_be_bytes();
    [&offset.to_be_bytes()[..], &length(body.len() + 4), &crc, &body].concat()
}

#[test]
fn records_of_a_legacy_set_are_slices_of_it() {
    let set: Vec<u8> = (0..1000).flat_map(|offset| message(offset, 0, b"value")).collect();
    let wrapper = message(5000, 1, b"");
    let wrapper = LegacyView::parse(&wrapper).unwrap();
    let mut taken = 0;
    let allocations = measure(|| {
        let Ok(records) = LegacyRecords::wrapped(&wrapper, &set, true) else { return };
        for record in records {
            taken += usize::from(black_box(record).is_ok());
        }
    });
    assert_eq!((taken, allocations.count_total), (1000, 0));
}

#[test]
fn a_batch_that_stays_in_place_is_validated_without_allocating() {
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    let none: [Header<'_>; 0] = [];
    for time in 0..1000 {
        builder.push(time, Some(b"key"), Some(b"value"), none).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    let limits = AnalyzeLimits { max_message_bytes: 1 << 20, leader_epoch: 3 };
    let at =
        Placement { origin: Origin::Client, next_offset: 77, leader_epoch: 3, now_ms: 1 << 40 };
    let mut validator = Validator::new();
    let mut last_offset = 0;
    let allocations = measure(|| {
        let Ok(facts) = analyze(&bytes, Origin::Client, limits) else { return };
        let validated = validator.validate(&mut bytes, &facts, &Rules::default(), &at);
        last_offset = validated.map_or(0, |validated| validated.header.last_offset());
    });
    assert_eq!((last_offset, allocations.count_total), (1076, 0));
}

#[test]
fn columns_become_batches_without_allocating() {
    let data = [7; 100_000];
    let ends = (0..=1000).map(|row| row * 100).collect::<Vec<i32>>();
    let values = BytesColumn::new(Offsets::Short(&ends), &data, None).unwrap();
    let columns = Columns::new(1000, Timestamps::All(5)).unwrap().with_values(values).unwrap();
    let options = BatcherOptions {
        target_bytes: 16_384,
        max_bytes: 1 << 20,
        codec: Codec::None,
        level: None,
    };
    let mut batcher = ColumnsBatcher::new(options).unwrap();
    let mut output = Vec::with_capacity(256 << 10);
    let mut batches = 0;
    let allocations = measure(|| {
        let built = batcher.append(&columns, 0, BatchSpec::at(0), &mut output, usize::MAX);
        batches = built.map_or(0, |built| built.batches);
    });
    assert_eq!((batches, allocations.count_total), (7, 0));
}

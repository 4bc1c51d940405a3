//! Iterating records allocates nothing, whatever their number.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::hint::black_box;

use allocation_counter::measure;
use kafkaseg_core::record::{
    BatchBuilder, BatchSpec, EntryView, Header, LegacyRecords, LegacyView, Records, crc32,
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

use super::*;
use crate::index::{OffsetIndexView, TimeIndexView};

/// A batch of exactly this many bytes with one record.
pub(super) fn sized(bytes: usize) -> Vec<u8> {
    sized_at(T0, bytes)
}

pub(super) fn sized_at(timestamp: i64, bytes: usize) -> Vec<u8> {
    for value in 0..bytes {
        let made = batch_at(timestamp, 1, &vec![7; value]);
        if made.len() == bytes {
            return made;
        }
    }
    panic!("no batch has {bytes} bytes");
}

fn bases(bench: &Bench) -> Vec<i64> {
    bench.log.segments().unwrap().iter().map(|segment| segment.base_offset).collect()
}

#[test]
fn an_exact_fit_stays_and_one_byte_more_rolls() {
    let bench = Bench::new(&[("internal.segment.bytes", "1000")]);
    client(&bench.log, &sized(900)).unwrap();
    client(&bench.log, &sized(100)).unwrap();
    assert_eq!(bases(&bench), [0]);
    client(&bench.log, &sized(100)).unwrap();
    assert_eq!(bases(&bench), [0, 2]);
    client(&bench.log, &sized(800)).unwrap();
    client(&bench.log, &sized(101)).unwrap();
    assert_eq!(bases(&bench), [0, 2, 4]);
}

#[test]
fn record_time_rolls_and_old_records_do_not() {
    let bench = Bench::new(&[("segment.ms", "1000")]);
    for (timestamp, expected) in [(5000, 1), (6000, 1), (4000, 1), (6001, 2), (6001, 2), (8000, 3)]
    {
        client(&bench.log, &batch_at(timestamp, 1, b"v")).unwrap();
        assert_eq!(bases(&bench).len(), expected, "{timestamp}");
    }
}

#[test]
fn records_without_time_roll_by_the_clock() {
    let bench = Bench::new(&[("segment.ms", "1000")]);
    client(&bench.log, &batch_at(-1, 1, b"v")).unwrap();
    bench.clock.advance(1000);
    client(&bench.log, &batch_at(-1, 1, b"v")).unwrap();
    assert_eq!(bases(&bench), [0]);
    bench.clock.advance(1);
    client(&bench.log, &batch_at(-1, 1, b"v")).unwrap();
    assert_eq!(bases(&bench), [0, 2]);
}

#[test]
fn jitter_makes_a_segment_roll_earlier() {
    let bench = Bench::new(&[("segment.ms", "1000000"), ("segment.jitter.ms", "1000000")]);
    client(&bench.log, &batch_at(T0, 1, b"v")).unwrap();
    client(&bench.log, &batch_at(T0 + 1_000_001, 1, b"v")).unwrap();
    assert_eq!(bases(&bench), [0, 1]);
}

#[test]
fn a_full_index_rolls() {
    // Three entries of the offset index, two of the time index, of which the last is kept free.
    let pairs = [("segment.index.bytes", "24"), ("index.interval.bytes", "0")];
    let bench = Bench::new(&pairs);
    for timestamp in 0..6 {
        client(&bench.log, &batch_at(T0 + timestamp, 1, b"v")).unwrap();
    }
    // The first batch gets no entry; the second fills the time index, so the third rolls.
    assert_eq!(bases(&bench), [0, 2, 4]);
    let bench = Bench::new(&pairs);
    for _ in 0..9 {
        client(&bench.log, &batch_at(-1, 1, b"v")).unwrap();
    }
    assert_eq!(bases(&bench), [0, 4, 8], "only the offset index fills");
}

#[test]
fn offsets_that_an_index_cannot_express_roll() {
    let bench = Bench::new(&[]);
    bench.log.append_follower(&built(BatchSpec::at(0), T0, 1, b"v"), 0).unwrap();
    let far = i64::from(i32::MAX);
    bench.log.append_follower(&built(BatchSpec::at(far), T0, 1, b"v"), 0).unwrap();
    assert_eq!(bases(&bench), [0]);
    bench.log.append_follower(&built(BatchSpec::at(far + 1), T0, 1, b"v"), 0).unwrap();
    assert_eq!(bases(&bench), [0, far + 1]);
    bench.log.append_follower(&built(BatchSpec::at(9 * far), T0, 2, b"v"), 0).unwrap();
    assert_eq!(bases(&bench), [0, far + 1, 9 * far]);
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), [0, far, far + 1, 9 * far, 9 * far + 1]);
}

#[test]
fn index_entries_stand_where_kafka_puts_them() {
    let bench = Bench::new(&[("index.interval.bytes", "4096")]);
    for index in 0..11 {
        client(&bench.log, &sized_at(T0 + index, 2000)).unwrap();
    }
    bench.log.close().unwrap();
    let index = bench.file("00000000000000000000.index");
    let entries: Vec<_> = OffsetIndexView::new(0, &index)
        .iter()
        .map(|entry| (entry.offset, entry.position))
        .collect();
    assert_eq!(entries, [(3, 6000), (6, 12000), (9, 18000)]);
    assert_eq!(index.len(), 24, "the index was cut to its entries");
    let time = bench.file("00000000000000000000.timeindex");
    let entries: Vec<_> = TimeIndexView::new(0, &time)
        .iter()
        .map(|entry| (entry.timestamp - T0, entry.offset))
        .collect();
    assert_eq!(entries, [(3, 3), (6, 6), (9, 9), (10, 10)], "the last one came with the close");
}

#[test]
fn an_explicit_roll_of_an_empty_segment_does_nothing() {
    let bench = Bench::new(&[]);
    assert_eq!(bench.log.roll().unwrap(), 0);
    client(&bench.log, &batch(1, b"v")).unwrap();
    assert_eq!(bench.log.roll().unwrap(), 1);
    assert_eq!(bench.log.roll().unwrap(), 1);
    assert_eq!(bases(&bench), [0, 1]);
    assert_eq!(bench.log.recovery_point(), 1, "the closed segment was flushed");
}

#[test]
fn preallocated_space_goes_with_roll_and_close() {
    let bench = Bench::new(&[("preallocate", "true"), ("internal.segment.bytes", "4096")]);
    client(&bench.log, &sized(500)).unwrap();
    assert_eq!(bench.file("00000000000000000000.log").len(), 4096);
    bench.log.roll().unwrap();
    assert_eq!(bench.file("00000000000000000000.log").len(), 500);
    client(&bench.log, &sized(300)).unwrap();
    bench.log.close().unwrap();
    assert_eq!(bench.file("00000000000000000001.log").len(), 300);
}

use super::roll::{sized, sized_at};
use super::*;

fn bases(bench: &Bench) -> Vec<i64> {
    bench.log.segments().unwrap().iter().map(|segment| segment.base_offset).collect()
}

#[test]
fn size_keeps_at_least_what_it_promises() {
    let bench = Bench::new(&[("internal.segment.bytes", "200"), ("retention.bytes", "400")]);
    for bytes in [200, 200, 200, 100] {
        client(&bench.log, &sized(bytes)).unwrap();
    }
    let done = bench.log.apply_retention(T0).unwrap();
    assert_eq!((done.segments, done.bytes, done.log_start), (1, 200, 1));
    assert_eq!(bases(&bench), [1, 2, 3]);
    assert_eq!(bench.log.start_offset().unwrap(), 1);
}

#[test]
fn age_is_that_of_the_newest_record_and_the_bound_is_exclusive() {
    let pairs = [("internal.segment.bytes", "100"), ("retention.ms", "1000")];
    let bench = Bench::new(&pairs);
    for timestamp in [8999, 9000, 20000] {
        client(&bench.log, &sized_at(timestamp, 100)).unwrap();
    }
    bench.log.apply_retention(10_000).unwrap();
    assert_eq!(bases(&bench), [1, 2]);
    // One future record pins its segment and all after it.
    let bench = Bench::new(&pairs);
    for timestamp in [T0 + 1000, 9000] {
        client(&bench.log, &sized_at(timestamp, 100)).unwrap();
    }
    bench.log.apply_retention(10_000_000).unwrap();
    assert_eq!(bases(&bench), [0, 1]);
}

#[test]
fn the_written_segment_can_expire_but_an_empty_one_stays() {
    let bench = Bench::new(&[("retention.ms", "1000"), ("file.delete.delay.ms", "500")]);
    client(&bench.log, &batch_at(1, 3, b"v")).unwrap();
    bench.log.apply_retention(10_000).unwrap();
    assert_eq!(bases(&bench), [3]);
    assert_eq!(bench.log.apply_retention(10_000).unwrap().segments, 0);
    assert_eq!(bench.log.start_offset().unwrap(), 3);
    assert_eq!(client(&bench.log, &batch(1, b"v")).unwrap().base_offset, 3);
    assert!(bench.names().contains(&"00000000000000000000.log.deleted".to_owned()));
    bench.log.purge(10_499).unwrap();
    assert!(bench.names().contains(&"00000000000000000000.log.deleted".to_owned()));
    assert_eq!(bench.log.purge(10_500).unwrap(), 0);
    assert!(!bench.names().iter().any(|name| name.ends_with(".deleted")), "{:?}", bench.names());
}

#[test]
fn nothing_goes_above_the_high_watermark() {
    let pairs = [("internal.segment.bytes", "100"), ("retention.ms", "1")];
    let bench = Bench::with(&pairs, |options| options.replicated = true);
    for _ in 0..4 {
        client(&bench.log, &sized_at(1, 100)).unwrap();
    }
    bench.log.apply_retention(T0).unwrap();
    assert_eq!(bases(&bench), [0, 1, 2, 3]);
    bench.log.set_high_watermark(2).unwrap();
    bench.log.apply_retention(T0).unwrap();
    assert_eq!(bases(&bench), [2, 3]);
}

#[test]
fn records_below_the_log_start_go_with_their_segments() {
    let bench = Bench::new(&[("internal.segment.bytes", "100"), ("retention.ms", "-1")]);
    for _ in 0..4 {
        client(&bench.log, &sized(100)).unwrap();
    }
    assert_eq!(bench.log.delete_records(2).unwrap(), 2);
    assert_eq!(bench.log.delete_records(1).unwrap(), 2, "it never goes back");
    assert!(bench.log.read(1, 10, Isolation::LogEnd, true).is_err());
    assert_eq!(bases(&bench), [0, 1, 2, 3]);
    bench.log.apply_retention(T0).unwrap();
    assert_eq!(bases(&bench), [2, 3]);
    assert!(bench.log.delete_records(5).is_err(), "above the high watermark");
    assert_eq!(bench.log.delete_records(-1).unwrap(), 4);
    bench.log.apply_retention(T0).unwrap();
    assert_eq!(bases(&bench), [3], "the written segment has no next one that covers it");
    let compacted = Bench::new(&[("cleanup.policy", "compact")]);
    let refused = compacted.log.delete_records(-1).unwrap_err();
    assert_eq!(refused.rejection(), Some("POLICY_VIOLATION"));
}

#[test]
fn a_reader_keeps_the_segment_it_has() {
    let bench = Bench::new(&[("internal.segment.bytes", "100"), ("retention.bytes", "0")]);
    for _ in 0..3 {
        client(&bench.log, &sized(100)).unwrap();
    }
    let fetch = bench.log.read(0, 1000, Isolation::LogEnd, true).unwrap();
    bench.log.apply_retention(T0).unwrap();
    bench.log.purge(i64::MAX).unwrap();
    let mut bytes = Vec::new();
    fetch.read(&mut bytes).unwrap();
    assert_eq!(BatchView::parse(&bytes).unwrap().header().base_offset, 0);
}

#[test]
fn a_name_that_waits_for_removal_is_never_one_in_use() {
    let bench = Bench::new(&[("file.delete.delay.ms", "10")]);
    client(&bench.log, &batch(1, b"old")).unwrap();
    bench.log.truncate_fully_and_start_at(0, None).unwrap();
    client(&bench.log, &batch(1, b"new")).unwrap();
    bench.log.truncate_fully_and_start_at(0, None).unwrap();
    client(&bench.log, &batch(2, b"newest")).unwrap();
    bench.log.purge(i64::MAX).unwrap();
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), [0, 1]);
    assert!(bench.names().contains(&"00000000000000000000.log".to_owned()));
    bench.log.close().unwrap();
    assert!(!bench.names().iter().any(|name| name.ends_with(".deleted")));
}

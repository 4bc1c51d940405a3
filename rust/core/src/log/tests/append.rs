use super::*;
use crate::error::Error;

#[test]
fn a_leader_gives_offsets_and_a_reader_gets_the_records() {
    let bench = Bench::new(&[]);
    let first = client(&bench.log, &batch(3, b"a")).unwrap();
    let second = client(&bench.log, &batch(2, b"b")).unwrap();
    assert_eq!((first.base_offset, first.last_offset, first.log_append_time), (0, 2, -1));
    assert_eq!((second.base_offset, second.last_offset), (3, 4));
    assert_eq!(second.max_timestamp, T0 + 1);
    assert_eq!(offsets(&bench.log, 0, Isolation::HighWatermark), [0, 1, 2, 3, 4]);
    assert_eq!(offsets(&bench.log, 4, Isolation::LogEnd), [4]);
    assert_eq!(bench.log.high_watermark().unwrap(), 5);
    assert_eq!(bench.log.end_offset().unwrap(), 5);
}

#[test]
fn a_follower_keeps_offsets_and_refuses_what_does_not_follow() {
    let bench = Bench::new(&[]);
    let mut spec = BatchSpec::at(10);
    spec.leader_epoch = 3;
    let bytes = built(spec, T0, 2, b"v");
    let info = bench.log.append_follower(&bytes, 3).unwrap();
    assert_eq!((info.base_offset, info.last_offset), (10, 11));
    let again = bench.log.append_follower(&bytes, 3).unwrap_err();
    assert_eq!(again.rejection(), Some("UNEXPECTED_APPEND_OFFSET"));
    spec = BatchSpec { base_offset: 20, leader_epoch: 4, ..spec };
    let later = built(spec, T0, 1, b"v");
    let info = bench.log.append_follower(&later, 3).unwrap();
    assert_eq!(info.bytes, 0, "the epoch is not known yet");
    assert_eq!(bench.log.end_offset().unwrap(), 12);
    bench.log.append_follower(&later, 4).unwrap();
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), [10, 11, 20]);
}

#[test]
fn batches_built_here_are_placed_by_the_dozen() {
    let bench = Bench::new(&[("index.interval.bytes", "0")]);
    let mut bytes: Vec<u8> = (0..12).flat_map(|_| batch(3, b"value")).collect();
    let info = bench.log.append_built(&mut bytes, 7).unwrap();
    assert_eq!((info.base_offset, info.last_offset), (0, 35));
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), (0..36).collect::<Vec<_>>());
    assert_eq!(bench.log.segments().unwrap()[0].offset_index_entries, 11);
}

#[test]
fn an_idempotent_producer_is_answered_with_the_first_offsets() {
    let bench = Bench::new(&[]);
    let spec = |sequence| BatchSpec {
        producer_id: 5,
        producer_epoch: 0,
        base_sequence: sequence,
        ..BatchSpec::at(0)
    };
    for sequence in 0..7 {
        let info = client(&bench.log, &built(spec(sequence), T0, 1, b"v")).unwrap();
        assert_eq!((info.base_offset, info.is_duplicate), (i64::from(sequence), false));
    }
    for sequence in 2..7 {
        let info = client(&bench.log, &built(spec(sequence), T0, 1, b"v")).unwrap();
        assert_eq!((info.base_offset, info.is_duplicate), (i64::from(sequence), true));
    }
    let lost = client(&bench.log, &built(spec(1), T0, 1, b"v")).unwrap_err();
    assert_eq!(lost.rejection(), Some("OUT_OF_ORDER_SEQUENCE_NUMBER"));
    assert_eq!(bench.log.end_offset().unwrap(), 7);
}

#[test]
fn a_set_larger_than_a_segment_is_refused_and_leaves_nothing() {
    let bench = Bench::new(&[("internal.segment.bytes", "200")]);
    let error = client(&bench.log, &batch(1, &[0; 200])).unwrap_err();
    assert_eq!(error.rejection(), Some("RECORD_LIST_TOO_LARGE"));
    assert_eq!(bench.file("00000000000000000000.log").len(), 0);
    client(&bench.log, &batch(1, b"fits")).unwrap();
}

#[test]
fn a_cut_off_batch_at_the_end_is_no_error_and_nothing_is_appended() {
    let bench = Bench::new(&[]);
    let mut cut = batch(1, b"v");
    cut.pop();
    let info = client(&bench.log, &cut).unwrap();
    assert_eq!((info.bytes, bench.log.end_offset().unwrap()), (0, 0));
}

#[test]
fn a_closed_log_says_so() {
    let bench = Bench::new(&[]);
    client(&bench.log, &batch(1, b"v")).unwrap();
    bench.log.close().unwrap();
    let closed = |error: Error| assert_eq!(error.to_string(), "the log is closed");
    closed(bench.log.close().unwrap_err());
    closed(client(&bench.log, &batch(1, b"v")).unwrap_err());
    closed(bench.log.read(0, 1, Isolation::LogEnd, true).map(|_| ()).unwrap_err());
    closed(bench.log.flush().unwrap_err());
    closed(bench.log.truncate_to(0).unwrap_err());
    closed(bench.log.segments().unwrap_err());
}

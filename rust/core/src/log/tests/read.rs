use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::super::{
    EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, MAX_TIMESTAMP,
    SendWay,
};
use super::roll::sized;
use super::*;
use crate::error::Error;
use crate::record::{ControlType, EndTxnMarker};

#[test]
fn limits_cut_the_slice_and_the_first_batch_comes_whole_when_asked() {
    let bench = Bench::new(&[("internal.segment.bytes", "1000")]);
    for _ in 0..12 {
        client(&bench.log, &sized(100)).unwrap();
    }
    let read = |offset, max, min_one| {
        let fetch = bench.log.read(offset, max, Isolation::LogEnd, min_one).unwrap();
        (fetch.segment(), fetch.position(), fetch.bytes(), fetch.first_entry_incomplete)
    };
    assert_eq!(read(0, 250, false), (Some(0), 0, 250, false));
    assert_eq!(read(3, 10_000, false), (Some(0), 300, 700, false), "a slice ends with its segment");
    assert_eq!(read(3, 10, false), (Some(0), 300, 10, true));
    assert_eq!(read(3, 10, true), (Some(0), 300, 100, false));
    assert_eq!(read(3, 0, false), (Some(0), 300, 0, true));
    assert_eq!(read(11, 10_000, false), (Some(10), 100, 100, false));
    assert_eq!(read(12, 10_000, true), (None, 0, 0, false));
    for asked in [-1, 13] {
        let error = bench.log.read(asked, 1, Isolation::LogEnd, true).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { start: 0, end: 12, .. }), "{error}");
    }
}

#[test]
fn every_offset_is_found_with_any_batch_size_and_index_interval() {
    for (records, value, interval) in
        [(1, 10, "4096"), (3, 700, "4096"), (2, 3000, "0"), (5, 40, "100"), (1, 9000, "4096")]
    {
        let bench =
            Bench::new(&[("index.interval.bytes", interval), ("internal.segment.bytes", "100000")]);
        for _ in 0..100 {
            client(&bench.log, &batch(records, &vec![3; value])).unwrap();
        }
        let end = bench.log.end_offset().unwrap();
        for offset in 0..end {
            let fetch = bench.log.read(offset, 1, Isolation::LogEnd, true).unwrap();
            let records = i64::try_from(records).unwrap();
            assert_eq!(fetch.base_offset, offset / records * records);
        }
    }
}

#[test]
fn the_high_watermark_bounds_readers() {
    let bench = Bench::with(&[("internal.segment.bytes", "300")], |options| {
        options.replicated = true;
    });
    for _ in 0..9 {
        client(&bench.log, &sized(100)).unwrap();
    }
    assert_eq!(offsets(&bench.log, 0, Isolation::HighWatermark), [0; 0]);
    for watermark in 0..=9 {
        assert_eq!(bench.log.set_high_watermark(watermark).unwrap(), watermark);
        let seen = offsets(&bench.log, 0, Isolation::HighWatermark);
        assert_eq!(seen, (0..watermark).collect::<Vec<_>>());
    }
    assert_eq!(bench.log.set_high_watermark(100).unwrap(), 9, "clamped to the end");
    assert_eq!(bench.log.set_high_watermark(-5).unwrap(), 0, "clamped to the start");
    assert_eq!(bench.log.maybe_raise_high_watermark(4).unwrap(), Some(0));
    assert_eq!(bench.log.maybe_raise_high_watermark(3).unwrap(), None);
    assert!(bench.log.maybe_raise_high_watermark(10).is_err());
    assert_eq!(bench.log.high_watermark().unwrap(), 4);
    assert!(bench.log.read(7, 1, Isolation::HighWatermark, true).unwrap().is_empty());
}

#[test]
fn a_high_watermark_inside_a_batch_hides_the_batch() {
    let bench = Bench::with(&[], |options| options.replicated = true);
    for _ in 0..2 {
        client(&bench.log, &batch(4, b"v")).unwrap();
    }
    bench.log.set_high_watermark(6).unwrap();
    assert_eq!(offsets(&bench.log, 0, Isolation::HighWatermark), [0, 1, 2, 3]);
    assert!(bench.log.read(5, 100, Isolation::HighWatermark, true).unwrap().is_empty());
}

fn transactional(producer_id: i64, sequence: i32, records: usize) -> Vec<u8> {
    let spec = BatchSpec {
        producer_id,
        producer_epoch: 0,
        base_sequence: sequence,
        transactional: true,
        ..BatchSpec::at(0)
    };
    built(spec, T0, records, b"v")
}

fn marker(producer_id: i64, kind: ControlType) -> Vec<u8> {
    let spec = BatchSpec {
        producer_id,
        producer_epoch: 0,
        transactional: true,
        control: true,
        ..BatchSpec::at(0)
    };
    let mut builder = BatchBuilder::new(spec).unwrap();
    let value = EndTxnMarker { coordinator_epoch: 0 }.to_value();
    builder.push(T0, Some(&kind.to_key()), Some(&value), []).unwrap();
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

#[test]
fn transactions_bound_readers_of_committed_records_until_the_marker_is_replicated() {
    let bench = Bench::with(&[], |options| options.replicated = true);
    let log = &bench.log;
    let mark = |offset| {
        log.set_high_watermark(offset).unwrap();
        log.last_stable_offset().unwrap()
    };
    let coordinator = |bytes: &[u8]| {
        log.append_leader(&mut bytes.to_vec(), Origin::Coordinator, 0).unwrap();
    };
    log.truncate_fully_and_start_at(103, None).unwrap();
    client(log, &transactional(1, 0, 2)).unwrap();
    assert_eq!(mark(105), 103);
    client(log, &transactional(2, 0, 1)).unwrap();
    coordinator(&marker(1, ControlType::Abort));
    assert_eq!(mark(106), 103);
    assert_eq!(mark(107), 105);
    coordinator(&marker(2, ControlType::Commit));
    assert_eq!(mark(107), 105);
    assert_eq!(mark(108), 108);
    let fetch = log.read(103, 10_000, Isolation::Committed, true).unwrap();
    let aborted = fetch.aborted.unwrap();
    assert_eq!(aborted.len(), 1);
    let entry = aborted[0];
    assert_eq!((entry.producer_id, entry.first_offset, entry.last_offset), (1, 103, 106));
    assert_eq!(entry.last_stable_offset, 105);
    assert!(log.read(103, 10_000, Isolation::LogEnd, true).unwrap().aborted.is_none());
    let after = log.read(107, 10_000, Isolation::Committed, true).unwrap();
    assert_eq!(after.aborted.unwrap(), []);
}

#[test]
fn an_aborted_transaction_over_many_segments_is_told_to_every_reader_of_it() {
    let bench = Bench::new(&[("internal.segment.bytes", "200")]);
    for sequence in 0..8 {
        client(&bench.log, &transactional(7, sequence, 1)).unwrap();
    }
    assert_eq!(bench.log.last_stable_offset().unwrap(), 0);
    let mut abort = marker(7, ControlType::Abort);
    bench.log.append_leader(&mut abort, Origin::Coordinator, 0).unwrap();
    assert_eq!(bench.log.last_stable_offset().unwrap(), 9);
    assert!(bench.log.segments().unwrap().len() > 3);
    for offset in 0..9 {
        let fetch = bench.log.read(offset, 1, Isolation::Committed, true).unwrap();
        assert_eq!(fetch.aborted.unwrap().len(), 1, "{offset}");
    }
    bench.log.truncate_to(8).unwrap();
    assert_eq!(bench.log.last_stable_offset().unwrap(), 0, "the transaction is open again");
}

#[test]
fn times_lead_to_the_first_record_at_or_after_them() {
    let pairs = [("internal.segment.bytes", "250"), ("index.interval.bytes", "0")];
    let bench = Bench::new(&pairs);
    // Offsets 0.. in batches of two, ten milliseconds apart, with one batch that is late.
    for at in [0, 20, 40, 10, 60, 80, 100, 120, 140] {
        client(&bench.log, &batch_at(T0 + at, 2, b"v")).unwrap();
    }
    let times = [0, 1, 20, 21, 40, 41, 10, 11, 60, 61, 80, 81, 100, 101, 120, 121, 140, 141];
    assert!(bench.log.segments().unwrap().len() > 2);
    for target in -5..150 {
        let first = times.iter().position(|at| *at >= target);
        let expected = first.map(|index| (T0 + times[index], i64::try_from(index).unwrap()));
        let found = bench.log.offset_for_time(T0 + target, Isolation::LogEnd).unwrap();
        assert_eq!(found.map(|found| (found.timestamp, found.offset)), expected, "{target}");
    }
    let special = |timestamp| {
        let found = bench.log.offset_for_time(timestamp, Isolation::LogEnd).unwrap();
        found.map(|found| (found.timestamp, found.offset))
    };
    assert_eq!(special(LATEST), Some((-1, 18)));
    assert_eq!(special(EARLIEST), Some((-1, 0)));
    assert_eq!(special(EARLIEST_LOCAL), Some((-1, 0)));
    assert_eq!(special(MAX_TIMESTAMP), Some((T0 + 141, 17)));
    assert_eq!(special(LATEST_TIERED), None);
    assert_eq!(special(EARLIEST_PENDING_UPLOAD), None);
    assert!(bench.log.offset_for_time(-7, Isolation::LogEnd).is_err());
    bench.log.delete_records(5).unwrap();
    assert_eq!(special(EARLIEST), Some((-1, 5)));
    assert_eq!(special(0), Some((T0 + 41, 5)));
}

#[test]
fn a_time_beyond_the_bound_of_the_reader_is_not_found() {
    let bench = Bench::with(&[], |options| options.replicated = true);
    for at in 0..4 {
        client(&bench.log, &batch_at(T0 + at, 1, b"v")).unwrap();
    }
    bench.log.set_high_watermark(2).unwrap();
    let find = |at| bench.log.offset_for_time(T0 + at, Isolation::HighWatermark).unwrap();
    assert_eq!(find(1).map(|found| found.offset), Some(1));
    assert_eq!(find(2), None);
    assert_eq!(
        bench.log.offset_for_time(LATEST, Isolation::HighWatermark).unwrap().unwrap().offset,
        2
    );
    let empty = Bench::new(&[]);
    assert_eq!(empty.log.offset_for_time(MAX_TIMESTAMP, Isolation::LogEnd).unwrap(), None);
    assert_eq!(empty.log.offset_for_time(5, Isolation::LogEnd).unwrap(), None);
}

/// A log whose first segment is some megabytes long, and its bytes.
fn megabytes() -> (Bench, Vec<u8>) {
    let bench = Bench::new(&[]);
    for index in 0..40_u8 {
        client(&bench.log, &batch(1, &vec![index; 100_000])).unwrap();
    }
    let bytes = bench.file("00000000000000000000.log");
    (bench, bytes)
}

#[test]
fn a_blocking_socket_gets_everything() {
    let (bench, expected) = megabytes();
    let (sender, mut receiver) = UnixStream::pair().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        receiver.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let fetch = bench.log.read(0, u64::MAX, Isolation::LogEnd, true).unwrap();
    let report = fetch.send(sender.as_fd(), 0, None).unwrap();
    assert!(report.is_complete);
    assert_eq!(report.way, SendWay::Sendfile);
    assert_eq!(usize::try_from(report.bytes).unwrap(), expected.len());
    let flags = rustix::fs::fcntl_getfl(&sender).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK), "the socket blocks again");
    drop(sender);
    assert!(reading.join().unwrap() == expected);
}

#[test]
fn a_full_socket_ends_a_send_that_goes_on_later() {
    let (bench, expected) = megabytes();
    let (sender, mut receiver) = UnixStream::pair().unwrap();
    sender.set_nonblocking(true).unwrap();
    let fetch = bench.log.read(0, u64::MAX, Isolation::LogEnd, true).unwrap();
    let mut from = 0;
    let mut received = Vec::new();
    let mut parts = 0;
    while from < fetch.bytes() {
        let report = fetch.send(sender.as_fd(), from, None).unwrap();
        assert_eq!(report.is_complete, from + report.bytes == fetch.bytes());
        from += report.bytes;
        parts += 1;
        let at = received.len();
        received.resize(at + usize::try_from(report.bytes).unwrap(), 0);
        receiver.read_exact(&mut received[at..]).unwrap();
    }
    assert!(parts > 1, "the socket was never full");
    assert!(received == expected);
}

#[test]
fn a_blocking_send_gives_up_when_its_time_is_over() {
    let (bench, _) = megabytes();
    let (sender, _receiver) = UnixStream::pair().unwrap();
    let fetch = bench.log.read(0, u64::MAX, Isolation::LogEnd, true).unwrap();
    let report = fetch.send(sender.as_fd(), 0, Some(Duration::from_millis(20))).unwrap();
    assert!(!report.is_complete && report.bytes > 0);
    let nothing = bench.log.read(40, 10, Isolation::LogEnd, true).unwrap();
    let report = nothing.send(sender.as_fd(), 0, None).unwrap();
    assert_eq!((report.bytes, report.is_complete), (0, true));
}

#[test]
fn a_send_meets_a_truncation_with_an_error() {
    let (bench, expected) = megabytes();
    let (sender, mut receiver) = UnixStream::pair().unwrap();
    sender.set_nonblocking(true).unwrap();
    let fetch = bench.log.read(0, u64::MAX, Isolation::LogEnd, true).unwrap();
    let sent = fetch.send(sender.as_fd(), 0, None).unwrap();
    bench.log.truncate_to(1).unwrap();
    client(&bench.log, &batch(1, &vec![255; 100_000])).unwrap();
    let mut received = vec![0; usize::try_from(sent.bytes).unwrap()];
    receiver.read_exact(&mut received).unwrap();
    assert!(expected.starts_with(&received), "what was sent was right");
    let error = fetch.send(sender.as_fd(), sent.bytes, None).unwrap_err();
    assert!(matches!(error, Error::Changed { what: "was truncated", .. }), "{error}");
}

#[test]
fn a_closed_peer_is_an_error_and_no_signal() {
    let (bench, _) = megabytes();
    let (sender, receiver) = UnixStream::pair().unwrap();
    drop(receiver);
    let fetch = bench.log.read(0, u64::MAX, Isolation::LogEnd, true).unwrap();
    assert!(matches!(fetch.send(sender.as_fd(), 0, None), Err(Error::Io { .. })));
}

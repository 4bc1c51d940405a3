use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::error::Error;
use crate::testing::Random;

/// What the record at an offset holds.
fn content(offset: i64) -> Vec<u8> {
    let length = usize::try_from(offset % 97).unwrap() + 1;
    let mut random = Random::new(offset.cast_unsigned());
    (0..length).map(|_| random.next().to_be_bytes()[0]).collect()
}

/// A batch of records that belong to these offsets.
fn batch_for(first: i64, records: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    for offset in first..first + records {
        builder.push(T0, Some(b"k"), Some(&content(offset)), []).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

/// Checks every whole batch of a slice; gives the offset after the last and how many records.
fn check(bytes: &[u8], asked: i64) -> (i64, u64) {
    let (mut next, mut count) = (asked, 0);
    let mut rest = bytes;
    while let Ok(batch) = BatchView::parse(rest) {
        batch.check_crc().unwrap();
        let header = batch.header();
        assert!(header.last_offset() >= next, "{} < {next}", header.last_offset());
        for record in crate::record::Records::new(header, batch.payload()) {
            let record = record.unwrap();
            assert_eq!(record.value.unwrap(), content(record.offset), "offset {}", record.offset);
            count += 1;
        }
        next = header.last_offset() + 1;
        rest = &rest[batch.bytes().len()..];
    }
    (next, count)
}

fn read_for(log: &Log, stop: &AtomicBool, seed: u64, records: &AtomicU64) {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let isolation = *random.pick(&[Isolation::LogEnd, Isolation::HighWatermark]);
        let max = u64::try_from(random.below(20_000)).unwrap();
        match log.read_into(next, max, isolation, true, &mut bytes) {
            Ok(fetch) if fetch.is_empty() => {
                next = log.start_offset().unwrap();
            }
            Ok(_) => {
                let (after, count) = check(&bytes, next);
                records.fetch_add(count, Ordering::Relaxed);
                next = after;
            }
            Err(Error::OutOfRange { start, end, .. }) => {
                let span = usize::try_from(end - start).unwrap() + 1;
                next = start + i64::try_from(random.below(span)).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
        if random.below(50) == 0 {
            let found = log.offset_for_time(T0, Isolation::LogEnd).unwrap();
            assert!(found.is_none_or(|found| found.timestamp == T0));
            log.segments().unwrap();
        }
    }
}

/// Sends slices through a socket, little by little, and checks what comes out.
fn send_for(log: &Log, stop: &AtomicBool, records: &AtomicU64) {
    let mut random = Random::new(7);
    let mut next = 0;
    while !stop.load(Ordering::Relaxed) {
        let (sender, mut peer) = UnixStream::pair().unwrap();
        sender.set_nonblocking(true).unwrap();
        let fetch = match log.read(next, 1 << 20, Isolation::LogEnd, true) {
            Ok(fetch) => fetch,
            Err(Error::OutOfRange { start, .. }) => {
                next = start;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let mut bytes = Vec::new();
        while u64::try_from(bytes.len()).unwrap() < fetch.bytes() {
            let from = u64::try_from(bytes.len()).unwrap();
            let sent = fetch.send(sender.as_fd(), from, None);
            // The pages wait in the socket while the log goes on.
            std::thread::sleep(Duration::from_micros(random.next() % 2000));
            match sent {
                Ok(report) => {
                    let at = bytes.len();
                    bytes.resize(at + usize::try_from(report.bytes).unwrap(), 0);
                    peer.read_exact(&mut bytes[at..]).unwrap();
                }
                Err(Error::Changed { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let (after, count) = check(&bytes, next);
        records.fetch_add(count, Ordering::Relaxed);
        next = if fetch.is_empty() { log.start_offset().unwrap() } else { after };
    }
}

#[test]
fn readers_beside_a_writer_that_rolls_truncates_and_deletes_see_only_right_records() {
    let pairs = [
        ("internal.segment.bytes", "20000"),
        ("index.interval.bytes", "500"),
        ("segment.index.bytes", "4096"),
        ("retention.bytes", "200000"),
        ("file.delete.delay.ms", "0"),
        ("fsync", "never"),
    ];
    let bench = Bench::with(&pairs, |options| options.background_flush = true);
    let (log, stop, records) = (&bench.log, AtomicBool::new(false), AtomicU64::new(0));
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (stop, records) = (&stop, &records);
            scope.spawn(move || read_for(log, stop, seed, records));
        }
        let sent = &sent;
        for _ in 0..2 {
            let stop = &stop;
            scope.spawn(move || send_for(log, stop, sent));
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                log.apply_retention(T0).unwrap();
                log.flush().unwrap();
                std::thread::sleep(Duration::from_millis(3));
            }
        });
        let mut random = Random::new(99);
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            let next = log.end_offset().unwrap();
            let many = i64::try_from(random.below(30)).unwrap() + 1;
            let info = client(log, &batch_for(next, many)).unwrap();
            assert_eq!(info.base_offset, next);
            if random.below(60) == 0 {
                let span = usize::try_from(next - log.start_offset().unwrap()).unwrap() + 1;
                let back = i64::try_from(random.below(span.min(400))).unwrap();
                log.truncate_to(next - back).unwrap();
            }
            if random.below(3000) == 0 {
                log.truncate_fully_and_start_at(next + 5, None).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let seen = records.load(Ordering::Relaxed);
    assert!(seen > 10_000, "{seen} records were read");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent > 1_000, "{sent} records were sent");
    log.close().unwrap();
}

#[test]
fn threads_that_append_with_fsync_share_their_syncs() {
    let bench = Bench::new(&[("fsync", "always")]);
    let log = &bench.log;
    let (threads, each) = (8, 50);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || {
                for _ in 0..each {
                    let info = client(log, &batch(1, b"value")).unwrap();
                    assert!(log.recovery_point() > info.last_offset, "answered before it was safe");
                    assert!(log.high_watermark().unwrap() > info.last_offset);
                }
            });
        }
    });
    let stats = log.stats().unwrap();
    assert_eq!(stats.offsets, threads * each);
    assert!(stats.flushes < threads * each, "{} syncs for {}", stats.flushes, threads * each);
    assert_eq!(offsets(log, 0, Isolation::HighWatermark).len(), 400);
    log.close().unwrap();
}

#[test]
fn a_close_beside_appends_answers_every_one() {
    for _ in 0..20 {
        let bench = Bench::new(&[("fsync", "always")]);
        let log = &bench.log;
        let acknowledged: i64 = std::thread::scope(|scope| {
            let appends: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(move || {
                        let mut count = 0;
                        while client(log, &batch(1, b"v")).is_ok() {
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_millis(2));
            log.close().unwrap();
            appends.into_iter().map(|append| append.join().unwrap()).sum()
        });
        assert!(log.recovery_point() >= acknowledged);
    }
}

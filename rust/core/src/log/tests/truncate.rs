use super::roll::sized;
use super::*;
use crate::error::Error;

fn bases(bench: &Bench) -> Vec<i64> {
    bench.log.segments().unwrap().iter().map(|segment| segment.base_offset).collect()
}

#[test]
fn a_cut_inside_a_batch_takes_the_batch_and_leaves_a_gap() {
    let bench = Bench::new(&[]);
    for _ in 0..3 {
        client(&bench.log, &batch(4, b"v")).unwrap();
    }
    assert!(!bench.log.truncate_to(12).unwrap());
    assert!(bench.log.truncate_to(6).unwrap());
    assert_eq!(bench.log.end_offset().unwrap(), 6);
    assert_eq!(bench.log.high_watermark().unwrap(), 6);
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), [0, 1, 2, 3]);
    assert_eq!(client(&bench.log, &batch(1, b"w")).unwrap().base_offset, 6);
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), [0, 1, 2, 3, 6]);
    assert_eq!(offsets(&bench.log, 4, Isolation::LogEnd), [6], "a gap is passed over");
}

#[test]
fn segments_above_the_cut_go_and_the_one_with_it_is_written_again() {
    let bench = Bench::new(&[("internal.segment.bytes", "300"), ("index.interval.bytes", "0")]);
    for _ in 0..9 {
        client(&bench.log, &sized(100)).unwrap();
    }
    assert_eq!(bases(&bench), [0, 3, 6]);
    bench.log.truncate_to(4).unwrap();
    assert_eq!(bases(&bench), [0, 3]);
    assert_eq!(bench.file("00000000000000000003.log").len(), 100);
    assert!(bench.names().contains(&"00000000000000000006.log.deleted".to_owned()));
    let info = &bench.log.segments().unwrap()[1];
    assert_eq!((info.bytes, info.offset_index_entries), (100, 0));
    for _ in 0..4 {
        client(&bench.log, &sized(100)).unwrap();
    }
    assert_eq!(offsets(&bench.log, 0, Isolation::LogEnd), (0..8).collect::<Vec<_>>());
    assert_eq!(bases(&bench), [0, 3, 6]);
    bench.log.truncate_to(3).unwrap();
    assert_eq!(bases(&bench), [0, 3], "a cut at a base leaves that segment empty");
    assert!(bench.log.recovery_point() <= 3);
}

#[test]
fn everything_goes_and_the_log_begins_elsewhere() {
    let bench = Bench::new(&[("internal.segment.bytes", "300")]);
    for _ in 0..7 {
        client(&bench.log, &sized(100)).unwrap();
    }
    bench.log.truncate_fully_and_start_at(50, Some(40)).unwrap();
    assert_eq!((bench.log.start_offset().unwrap(), bench.log.end_offset().unwrap()), (40, 50));
    assert_eq!(bench.log.high_watermark().unwrap(), 50);
    assert_eq!(client(&bench.log, &sized(100)).unwrap().base_offset, 50);
    assert_eq!(offsets(&bench.log, 50, Isolation::LogEnd), [50]);
    assert_eq!(bases(&bench), [50]);
    bench.log.truncate_to(10).unwrap();
    assert_eq!(bases(&bench), [10], "below the first segment is a new beginning");
    assert!(bench.log.truncate_to(-1).is_err());
}

#[test]
fn a_slice_of_bytes_that_were_cut_is_an_error_and_never_other_bytes() {
    let bench = Bench::new(&[]);
    client(&bench.log, &batch(1, b"kept")).unwrap();
    client(&bench.log, &batch(1, b"old")).unwrap();
    let fetch = bench.log.read(1, 1000, Isolation::LogEnd, true).unwrap();
    bench.log.truncate_to(1).unwrap();
    client(&bench.log, &batch(1, b"new")).unwrap();
    let mut bytes = Vec::new();
    let error = fetch.read(&mut bytes).unwrap_err();
    assert!(matches!(error, Error::Changed { what: "was truncated", .. }), "{error}");
    bench.log.read_into(1, 1000, Isolation::LogEnd, true, &mut bytes).unwrap();
    assert!(bytes.windows(3).any(|window| window == b"new"));
}

#[test]
fn a_lower_recovery_point_is_recorded_before_anything_is_cut() {
    let recorded = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = Arc::clone(&recorded);
    let bench = Bench::with(&[], |options| {
        options.on_recovery_point_lowered = Some(Arc::new(move |offset| {
            keep.lock().unwrap().push(offset);
            Ok(())
        }));
    });
    for _ in 0..4 {
        client(&bench.log, &batch(1, b"v")).unwrap();
    }
    bench.log.truncate_to(3).unwrap();
    assert!(recorded.lock().unwrap().is_empty(), "nothing was flushed yet");
    bench.log.flush().unwrap();
    assert_eq!(bench.log.recovery_point(), 3);
    bench.log.truncate_to(1).unwrap();
    assert_eq!((bench.log.recovery_point(), &*recorded.lock().unwrap()), (1, &vec![1]));
}

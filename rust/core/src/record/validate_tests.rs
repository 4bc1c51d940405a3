//! The rules of an append, one by one.

use super::samples::{self, Legacy, T0};
use super::{
    AnalyzeLimits, BatchBuilder, BatchHeader, BatchSpec, BatchView, Codec, ControlType, Header,
    Origin, Placement, RecordError, RecordFault, Records, Rules, TimestampType, Validated,
    Validator, analyze, crc32c,
};
use crate::codec::{Decoder, Encoder};
use crate::error::{Error, Result};

const NONE: [Header<'static>; 0] = [];
const NOW: i64 = T0 + 60_000;
const AT: Placement =
    Placement { origin: Origin::Client, next_offset: 100, leader_epoch: 7, now_ms: NOW };
const COORDINATOR: Placement = Placement { origin: Origin::Coordinator, ..AT };

fn rules() -> Rules {
    Rules::default()
}

fn stamping() -> Rules {
    Rules { timestamp_type: TimestampType::LogAppendTime, ..rules() }
}

fn compacted() -> Rules {
    Rules { compacted: true, ..rules() }
}

fn compressing(codec: Codec) -> Rules {
    Rules { compression: Some(codec), ..rules() }
}

fn validate(bytes: &mut Vec<u8>, rules: &Rules, at: &Placement) -> Result<Validated> {
    let limits = AnalyzeLimits { max_message_bytes: 1_048_588, leader_epoch: at.leader_epoch };
    let facts = analyze(bytes, at.origin, limits)?;
    let validated = Validator::new().validate(bytes, &facts, rules, at)?;
    let batch = BatchView::parse(bytes).unwrap();
    assert_eq!(*batch.header(), validated.header);
    assert_eq!(batch.bytes().len(), bytes.len());
    assert_eq!(batch.check_crc(), Ok(()));
    assert_eq!(validated.header.base_offset, at.next_offset);
    assert_eq!(validated.header.leader_epoch, at.leader_epoch);
    Ok(validated)
}

fn refused(mut bytes: Vec<u8>, rules: &Rules, at: &Placement) -> &'static str {
    let before = bytes.clone();
    let refusal = validate(&mut bytes, rules, at).unwrap_err();
    assert_eq!(bytes, before, "a refusal changes nothing");
    refusal.rejection().unwrap()
}

fn failing(mut bytes: Vec<u8>, rules: &Rules, at: &Placement) -> (&'static str, Vec<RecordError>) {
    match validate(&mut bytes, rules, at) {
        Err(Error::RejectedRecords { code, records, .. }) => (code, records),
        other => panic!("{other:?}"),
    }
}

/// A batch with changed header fields and a right checksum.
fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut BatchHeader)) -> Vec<u8> {
    let mut header = BatchHeader::read(bytes.first_chunk().unwrap());
    change(&mut header);
    bytes[..61].copy_from_slice(&header.write());
    sealed(bytes)
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// A batch of one record per time, at offset 0.
fn batch(spec: BatchSpec, times: &[i64], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(spec).unwrap();
    for time in times {
        builder.push(*time, Some(b"key"), Some(b"value"), NONE).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_compressed(codec, None, &mut Encoder::new(), &mut bytes).unwrap();
    bytes
}

/// Offset, time, key and value of each record.
type Row = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn rows(bytes: &[u8]) -> Vec<Row> {
    let batch = BatchView::parse(bytes).unwrap();
    let mut decoder = Decoder::new();
    let payload = decoder.inflate(batch.codec().unwrap(), batch.payload(), 1 << 24).unwrap();
    Records::new(batch.header(), payload)
        .map(|record| {
            let record = record.unwrap();
            let own = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
            (record.offset, record.timestamp, own(record.key), own(record.value))
        })
        .collect()
}

#[test]
fn offset_and_epoch_are_assigned_without_touching_the_checksum() {
    let mut bytes = samples::batch_a();
    let validated = validate(&mut bytes, &rules(), &AT).unwrap();
    assert_eq!(bytes, samples::batch_b());
    assert!(!validated.rebuilt);
    assert_eq!(validated.log_append_time, -1);
    assert_eq!(validated.header.max_timestamp, T0 + 5);
}

#[test]
fn the_append_time_goes_into_the_header_with_a_new_checksum() {
    let mut bytes = samples::batch_a();
    let validated = validate(&mut bytes, &stamping(), &AT).unwrap();
    assert_eq!(bytes[..61], samples::batch_c_header());
    assert_eq!(bytes[61..], samples::batch_b()[61..]);
    assert_eq!((validated.rebuilt, validated.log_append_time), (false, NOW));
}

#[test]
fn a_wrong_max_timestamp_is_corrected() {
    for wrong in [0, T0 + 4, i64::MAX] {
        let mut bytes = changed(samples::batch_a(), |header| header.max_timestamp = wrong);
        validate(&mut bytes, &rules(), &AT).unwrap();
        assert_eq!(bytes, samples::batch_b());
    }
}

#[test]
fn a_cut_off_entry_after_the_batch_is_cut() {
    let mut bytes = [samples::batch_a(), samples::batch_a()[..70].to_vec()].concat();
    validate(&mut bytes, &rules(), &AT).unwrap();
    assert_eq!(bytes, samples::batch_b());
}

#[test]
fn a_set_is_one_batch() {
    let twice = [samples::batch_a(), samples::batch_a()].concat();
    assert_eq!(refused(twice, &rules(), &AT), "INVALID_RECORD");
    assert_eq!(refused(Vec::new(), &rules(), &AT), "INVALID_RECORD");
    let wrappers = [samples::legacy_v1_gzip(), samples::legacy_v1_gzip()].concat();
    assert_eq!(refused(wrappers, &rules(), &AT), "INVALID_RECORD");
    let mixed = [samples::legacy_v0(), samples::legacy_v1()].concat();
    assert_eq!(refused(mixed, &rules(), &AT), "INVALID_RECORD");
    let mixed = [samples::legacy_v0(), samples::batch_a()].concat();
    assert_eq!(refused(mixed, &rules(), &AT), "INVALID_RECORD");
}

#[test]
fn a_client_s_counts_agree() {
    for (count, last_delta) in [(0, -1), (-1, 2), (3, 3), (3, 1), (2, 2), (4, 2), (3, -1)] {
        let bytes = changed(samples::batch_a(), |header| {
            (header.records_count, header.last_offset_delta) = (count, last_delta);
        });
        assert_eq!(refused(bytes, &rules(), &AT), "INVALID_RECORD", "{count}, {last_delta}");
    }
}

#[test]
fn a_count_that_the_records_belie_is_refused() {
    for (count, last_delta) in [(2, 1), (4, 3), (i32::MAX, i32::MAX - 1)] {
        let bytes = changed(samples::batch_a(), |header| {
            (header.records_count, header.last_offset_delta) = (count, last_delta);
        });
        assert_eq!(refused(bytes, &rules(), &AT), "INVALID_RECORD", "{count}");
    }
}

#[test]
fn clients_write_no_control_records_and_coordinators_do() {
    let marker = |at: i64| {
        changed(samples::batch_e(), |header| (header.base_offset, header.leader_epoch) = (at, -1))
    };
    assert_eq!(refused(marker(0), &rules(), &AT), "INVALID_RECORD");
    let mut bytes = marker(0);
    let at = Placement { next_offset: 105, ..COORDINATOR };
    validate(&mut bytes, &rules(), &at).unwrap();
    assert_eq!(bytes, samples::batch_e());
}

#[test]
fn markers_are_never_compressed() {
    let mut bytes = changed(samples::batch_e(), |header| header.base_offset = 0);
    let at = Placement { next_offset: 105, ..COORDINATOR };
    let validated = validate(&mut bytes, &compressing(Codec::Zstd), &at).unwrap();
    assert!(!validated.rebuilt);
    assert_eq!(bytes, samples::batch_e());
    let batch = BatchView::parse(&bytes).unwrap();
    let record = Records::new(batch.header(), batch.payload()).next().unwrap().unwrap();
    assert_eq!(ControlType::from_key(record.key), Ok(ControlType::Commit));
}

#[test]
fn a_producer_sends_sequences() {
    let bytes = changed(samples::batch_d(), |header| {
        (header.base_offset, header.base_sequence) = (0, -1);
    });
    assert_eq!(refused(bytes, &rules(), &AT), "INVALID_RECORD");
}

#[test]
fn compacted_topics_refuse_records_without_key() {
    let (code, records) = failing(samples::batch_a(), &compacted(), &AT);
    assert_eq!(code, "INVALID_RECORD");
    assert_eq!(records, [RecordError { index: 1, fault: RecordFault::NullKey }]);
    let mut keyed = changed(samples::batch_d(), |header| header.base_offset = 0);
    assert!(validate(&mut keyed, &compacted(), &AT).is_ok());
}

#[test]
fn every_time_out_of_range_is_listed() {
    let strict = Rules { timestamp_before_max_ms: 1_000, timestamp_after_max_ms: 500, ..rules() };
    let times = [NOW - 1_000, NOW - 1_001, NOW + 500, NOW + 501, -1];
    let (code, records) = failing(batch(BatchSpec::at(0), &times, Codec::None), &strict, &AT);
    assert_eq!(code, "INVALID_TIMESTAMP");
    assert_eq!(records.iter().map(|error| error.index).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(
        records[0].fault,
        RecordFault::Timestamp { found: NOW - 1_001, earliest: NOW - 1_000, latest: NOW + 500 }
    );
    let mut good = batch(BatchSpec::at(0), &[NOW - 1_000, NOW + 500, -1], Codec::None);
    assert!(validate(&mut good, &strict, &AT).is_ok());
    let stamping = Rules { timestamp_type: TimestampType::LogAppendTime, ..strict };
    let mut any = batch(BatchSpec::at(0), &times, Codec::None);
    assert!(validate(&mut any, &stamping, &AT).is_ok(), "nobody will read these times");
}

#[test]
fn one_bad_time_beside_a_missing_key_is_a_bad_time() {
    let far = batch(BatchSpec::at(0), &[NOW, NOW + 3_600_001], Codec::None);
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    builder.push(NOW, None, None, NONE).unwrap();
    builder.push(NOW + 3_600_001, Some(b"k"), None, NONE).unwrap();
    let mut both = Vec::new();
    builder.finish(&mut both).unwrap();
    let (code, records) = failing(both, &compacted(), &AT);
    assert_eq!((code, records.len()), ("INVALID_TIMESTAMP", 2));
    assert_eq!(failing(far, &compacted(), &AT).1.len(), 1);
}

#[test]
fn a_client_cannot_claim_the_append_time() {
    let spec = BatchSpec { append_time: Some(NOW), ..BatchSpec::at(0) };
    let claiming = batch(spec, &[T0, T0], Codec::None);
    let (code, records) = failing(claiming.clone(), &stamping(), &AT);
    assert_eq!((code, records.len()), ("INVALID_TIMESTAMP", 2));
    assert_eq!(records[0].fault, RecordFault::AppendTime);
    let mut taken = claiming;
    let validated = validate(&mut taken, &rules(), &AT).unwrap();
    let attributes = validated.header.attributes;
    assert_eq!(attributes.timestamp_type(), TimestampType::CreateTime, "the claim is dropped");
}

#[test]
fn malformed_records_are_invalid_and_broken_compression_is_corrupt() {
    let mut bytes = samples::batch_a();
    bytes[61] = 0x40;
    assert_eq!(refused(sealed(bytes), &rules(), &AT), "INVALID_RECORD");
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut bytes = batch(BatchSpec::at(0), &[T0; 50], codec);
        bytes[61] ^= 0xff;
        assert_eq!(refused(sealed(bytes), &rules(), &AT), "CORRUPT_MESSAGE", "{codec:?}");
        let empty = changed(samples::batch_a()[..61].to_vec(), |header| {
            header.batch_length = 49;
            header.attributes.0 = i16::from(codec.id());
        });
        assert_eq!(refused(empty, &rules(), &AT), "CORRUPT_MESSAGE", "{codec:?}");
    }
}

#[test]
fn a_compressed_batch_of_the_topic_s_codec_stays_as_it_is() {
    for codec in Codec::ALL {
        let mut bytes = batch(BatchSpec::at(0), &[T0; 50], codec);
        let before = bytes.clone();
        for rules in [rules(), compressing(codec)] {
            let mut bytes = bytes.clone();
            assert!(!validate(&mut bytes, &rules, &AT).unwrap().rebuilt);
            assert_eq!(bytes[16..], before[16..], "{codec:?}");
        }
        assert!(!validate(&mut bytes, &stamping(), &AT).unwrap().rebuilt);
        assert_eq!(bytes[61..], before[61..], "{codec:?}");
        assert!(rows(&bytes).iter().all(|row| row.1 == NOW));
    }
}

#[test]
fn another_codec_than_the_topic_s_is_built_anew() {
    let spec = BatchSpec {
        producer_id: 9,
        producer_epoch: 2,
        base_sequence: 77,
        transactional: true,
        ..BatchSpec::at(0)
    };
    for from in Codec::ALL {
        for to in Codec::ALL.into_iter().filter(|to| *to != from) {
            let sent = batch(spec, &[T0, T0 + 9, T0 - 4], from);
            let mut bytes = sent.clone();
            let validated = validate(&mut bytes, &compressing(to), &AT).unwrap();
            assert!(validated.rebuilt);
            let placed = BatchSpec { base_offset: 100, leader_epoch: 7, ..spec };
            assert_eq!(bytes, batch(placed, &[T0, T0 + 9, T0 - 4], to), "{from:?} to {to:?}");
            let offsets = rows(&bytes).iter().map(|row| row.0).collect::<Vec<_>>();
            assert_eq!(offsets, [100, 101, 102]);
        }
    }
}

#[test]
fn the_level_of_the_topic_is_used() {
    let spec = BatchSpec::at(0);
    let mut builder =
        BatchBuilder::new(BatchSpec { leader_epoch: 7, ..BatchSpec::at(100) }).unwrap();
    let times = (0..500).map(|step| T0 + step * step % 97).collect::<Vec<_>>();
    for time in &times {
        builder.push(*time, Some(b"key"), Some(b"value"), NONE).unwrap();
    }
    let mut sizes = Vec::new();
    for level in [1, 19] {
        let mut bytes = batch(spec, &times, Codec::None);
        let rules = Rules { compression_level: Some(level), ..compressing(Codec::Zstd) };
        validate(&mut bytes, &rules, &AT).unwrap();
        let mut expected = Vec::new();
        let encoder = &mut Encoder::new();
        builder.finish_compressed(Codec::Zstd, Some(level), encoder, &mut expected).unwrap();
        assert_eq!(bytes, expected);
        sizes.push(bytes.len());
    }
    assert_ne!(sizes[0], sizes[1]);
}

#[test]
fn records_that_do_not_count_up_by_one_are_given_new_offsets() {
    for codec in Codec::ALL {
        let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
        for (offset, time) in [(0, T0), (2, T0 + 1), (5, T0 + 2)] {
            builder.push_at(offset, time, Some(b"k"), None, NONE).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_compressed(codec, None, &mut Encoder::new(), &mut bytes).unwrap();
        let mut bytes = changed(bytes, |header| header.last_offset_delta = 2);
        let validated = validate(&mut bytes, &rules(), &AT).unwrap();
        assert!(validated.rebuilt, "{codec:?}");
        assert_eq!(BatchView::parse(&bytes).unwrap().codec(), Ok(codec));
        let offsets = rows(&bytes).iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(offsets, [100, 101, 102]);
        assert_eq!(validated.header.last_offset(), 102);
    }
}

#[test]
fn a_batch_that_grows_beyond_the_limit_when_built_anew_is_refused() {
    let bytes = batch(BatchSpec::at(0), &[T0; 2_000], Codec::Gzip);
    let rules = Rules { max_message_bytes: bytes.len(), ..compressing(Codec::None) };
    assert_eq!(refused(bytes.clone(), &rules, &AT), "MESSAGE_TOO_LARGE");
    let mut same = bytes;
    assert!(validate(&mut same, &Rules { compression: None, ..rules }, &AT).is_ok());
}

#[test]
fn a_bomb_is_refused_without_inflating_it() {
    let zeros = vec![0; 40 << 20];
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    builder.push(T0, None, Some(&zeros), NONE).unwrap();
    for codec in [Codec::Gzip, Codec::Zstd] {
        let mut bomb = Vec::new();
        builder.finish_compressed(codec, None, &mut Encoder::new(), &mut bomb).unwrap();
        assert!(bomb.len() < 100_000, "{codec:?}");
        let ratio = zeros.len() / bomb.len();
        assert_eq!(ratio > 1_000, refused_as_bomb(&bomb, &rules()), "{codec:?}, ratio {ratio}");
        let tight = Rules { inflated_bytes_max: 20 << 20, ..rules() };
        assert!(refused_as_bomb(&bomb, &tight), "{codec:?}");
    }
}

fn refused_as_bomb(bytes: &[u8], rules: &Rules) -> bool {
    let mut bytes = bytes.to_vec();
    let facts = analyze(
        &bytes,
        Origin::Client,
        AnalyzeLimits { max_message_bytes: 1 << 20, leader_epoch: 7 },
    )
    .unwrap();
    let mut validator = Validator::new();
    match validator.validate(&mut bytes, &facts, rules, &AT) {
        Ok(_) => false,
        Err(refusal) => {
            assert_eq!(refusal.rejection(), Some("MESSAGE_TOO_LARGE"));
            true
        }
    }
}

#[test]
fn small_batches_may_compress_as_well_as_they_like() {
    let zeros = vec![0; 900_000];
    let mut builder = BatchBuilder::new(BatchSpec::at(0)).unwrap();
    builder.push(T0, None, Some(&zeros), NONE).unwrap();
    let mut bytes = Vec::new();
    let encoder = &mut Encoder::new();
    builder.finish_compressed(Codec::Zstd, None, encoder, &mut bytes).unwrap();
    assert!(zeros.len() / bytes.len() > 1_000);
    assert!(validate(&mut bytes, &rules(), &AT).is_ok());
}

#[test]
fn old_messages_become_one_batch() {
    let set = [
        Legacy::new(1, 0).timestamp(T0 + 3).key(Some(b"a")).bytes(),
        Legacy::new(1, 1).timestamp(T0 + 1).value(None).bytes(),
    ]
    .concat();
    let own = |text: &[u8]| Some(text.to_vec());
    for codec in Codec::ALL {
        let mut bytes = set.clone();
        let validated = validate(&mut bytes, &compressing(codec), &AT).unwrap();
        assert!(validated.rebuilt);
        assert_eq!(BatchView::parse(&bytes).unwrap().codec(), Ok(codec));
        assert_eq!(rows(&bytes), [(100, T0 + 3, own(b"a"), own(b"v")), (101, T0 + 1, None, None)]);
        assert_eq!(validated.header.max_timestamp, T0 + 3);
        assert_eq!((validated.header.producer_id, validated.header.base_sequence), (-1, -1));
    }
}

#[test]
fn a_wrapper_keeps_its_codec_when_it_becomes_a_batch() {
    for (wrapper, codec) in
        [(samples::legacy_v1_gzip(), Codec::Gzip), (samples::legacy_v0_lz4(), Codec::Lz4)]
    {
        let mut bytes = wrapper;
        validate(&mut bytes, &rules(), &AT).unwrap();
        assert_eq!(BatchView::parse(&bytes).unwrap().codec(), Ok(codec));
        let keys = rows(&bytes).into_iter().map(|row| (row.0, row.2)).collect::<Vec<_>>();
        assert_eq!(keys, [(100, Some(b"a".to_vec())), (101, Some(b"b".to_vec()))]);
    }
}

#[test]
fn messages_without_time_get_none_or_the_append_time() {
    let mut bytes = samples::legacy_v0();
    validate(&mut bytes, &rules(), &AT).unwrap();
    assert_eq!(rows(&bytes)[0].1, -1);
    let mut bytes = samples::legacy_v0();
    let validated = validate(&mut bytes, &stamping(), &AT).unwrap();
    assert_eq!((rows(&bytes)[0].1, validated.log_append_time), (NOW, NOW));
}

#[test]
fn the_rules_hold_for_old_messages_too() {
    let keyless = [
        Legacy::new(1, 0).key(Some(b"a")).bytes(),
        Legacy::new(1, 1).bytes(),
        Legacy::new(1, 2).bytes(),
    ]
    .concat();
    let (code, records) = failing(keyless, &compacted(), &AT);
    assert_eq!(code, "INVALID_RECORD");
    assert_eq!(records.iter().map(|error| error.index).collect::<Vec<_>>(), [1, 2]);
    let far = Legacy::new(1, 0).timestamp(NOW + 3_600_001).bytes();
    assert_eq!(failing(far, &rules(), &AT).0, "INVALID_TIMESTAMP");
    let (_, records) = failing(samples::legacy_v1_append_time(), &stamping(), &AT);
    assert_eq!(records[0].fault, RecordFault::AppendTime);
}

/// A wrapper of version 1 around these messages.
fn wrapper(inner: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    Encoder::new().compress(Codec::Gzip, None, inner, &mut compressed).unwrap();
    Legacy::new(1, 0).codec(1).value(Some(&compressed)).bytes()
}

#[test]
fn damage_and_nesting_inside_a_wrapper_are_told_apart() {
    let good = Legacy::new(1, 0).bytes();
    let mut damaged = good.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(refused(wrapper(&damaged), &rules(), &AT), "CORRUPT_MESSAGE");
    assert_eq!(refused(wrapper(&wrapper(&good)), &rules(), &AT), "INVALID_RECORD");
    let other = [good, Legacy::new(0, 1).bytes()].concat();
    let (code, records) = failing(wrapper(&other), &rules(), &AT);
    assert_eq!(code, "INVALID_RECORD");
    let fault = RecordFault::Magic { found: 0, wrapper: 1 };
    assert_eq!(records, [RecordError { index: 1, fault }]);
}

#[test]
fn a_negative_time_is_kept_in_place_and_refused_when_built_anew() {
    let mut bytes = samples::batch_d();
    bytes[..8].fill(0);
    let negative = changed(bytes, |header| header.base_timestamp = -50);
    let mut placed = negative.clone();
    validate(&mut placed, &rules(), &AT).unwrap();
    assert_eq!(rows(&placed)[0].1, -50, "as Kafka does");
    assert_eq!(refused(negative, &compressing(Codec::Lz4), &AT), "INVALID_TIMESTAMP");
}

#[test]
fn who_keeps_its_offsets_is_not_validated() {
    for origin in [Origin::Replication, Origin::RaftLeader] {
        let mut bytes = samples::batch_b();
        let limits = AnalyzeLimits { max_message_bytes: 1 << 20, leader_epoch: 7 };
        let facts = analyze(&bytes, origin, limits).unwrap();
        let at = Placement { origin, ..AT };
        let refusal = Validator::new().validate(&mut bytes, &facts, &rules(), &at).unwrap_err();
        assert!(matches!(refusal, Error::Invalid(_)));
    }
}

#[test]
fn one_validator_serves_one_set_after_the_other() {
    let limits = AnalyzeLimits { max_message_bytes: 1 << 20, leader_epoch: 7 };
    let mut validator = Validator::new();
    let mut next_offset = 0;
    for round in 0..20 {
        let rules = compressing(Codec::ALL[round % 5]);
        let mut bytes = batch(BatchSpec::at(0), &[T0; 3], Codec::ALL[round % 4]);
        let facts = analyze(&bytes, Origin::Client, limits).unwrap();
        let at = Placement { next_offset, ..AT };
        let header = validator.validate(&mut bytes, &facts, &rules, &at).unwrap().header;
        assert_eq!(
            rows(&bytes).iter().map(|row| row.0).collect::<Vec<_>>(),
            [next_offset, next_offset + 1, next_offset + 2]
        );
        next_offset = header.last_offset() + 1;
    }
}

//! Promises of an append that hold for every set.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::samples::T0;
use super::{
    AnalyzeLimits, BatchBuilder, BatchSpec, BatchView, Codec, Header, Origin, Placement, Records,
    Rules, TimestampType, Validator, analyze,
};
use crate::codec::{Decoder, Encoder};
use crate::error::Result;

const LIMITS: AnalyzeLimits = AnalyzeLimits { max_message_bytes: 1 << 20, leader_epoch: 3 };
const NOW: i64 = T0 + 50;

type Bytes = Option<Vec<u8>>;
type Record = (i64, Bytes, Bytes, Vec<(Vec<u8>, Bytes)>);

fn bytes() -> impl Strategy<Value = Bytes> {
    option::weighted(0.8, vec(any::<u8>(), 0..40))
}

fn record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![8 => T0..T0 + 100, 1 => Just(-1_i64)];
    (time, bytes(), bytes(), vec((vec(any::<u8>(), 0..5), bytes()), 0..3))
}

fn codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(Codec::ALL.to_vec())
}

fn build(spec: BatchSpec, records: &[Record], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(spec).unwrap();
    for (time, key, value, headers) in records {
        let headers = headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        builder.push(*time, key.as_deref(), value.as_deref(), headers).unwrap();
    }
    let mut output = Vec::new();
    builder.finish_compressed(codec, None, &mut Encoder::new(), &mut output).unwrap();
    output
}

fn rules() -> impl Strategy<Value = Rules> {
    (any::<bool>(), any::<bool>(), option::of(codec()), 0..60_i64, 0..60_i64).prop_map(
        |(stamps, compacted, compression, before, after)| Rules {
            timestamp_type: if stamps {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            compacted,
            compression,
            timestamp_before_max_ms: before,
            timestamp_after_max_ms: after,
            ..Rules::default()
        },
    )
}

/// The indexes of the records that break a rule, told in the plainest way.
fn failing(records: &[Record], rules: &Rules) -> Vec<u32> {
    let (stamps, before, after) = (
        rules.timestamp_type == TimestampType::LogAppendTime,
        rules.timestamp_before_max_ms,
        rules.timestamp_after_max_ms,
    );
    let breaks = |(time, key, _, _): &Record| {
        (rules.compacted && key.is_none())
            || (!stamps && *time != -1 && (NOW - time > before || time - NOW > after))
    };
    let failing = records.iter().enumerate().filter(|(_, record)| breaks(record));
    failing.map(|(index, _)| u32::try_from(index).unwrap()).collect()
}

fn append(bytes: &mut Vec<u8>, rules: &Rules, next_offset: i64) -> Result<bool> {
    let facts = analyze(bytes, Origin::Client, LIMITS)?;
    let at = Placement { origin: Origin::Client, next_offset, leader_epoch: 3, now_ms: NOW };
    Ok(Validator::new().validate(bytes, &facts, rules, &at)?.rebuilt)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_validated_set_holds_the_same_records_at_the_next_offsets(
        records in vec(record(), 1..12),
        source in codec(),
        rules in rules(),
        next_offset in 0..1_000_000_i64,
    ) {
        let mut bytes = build(BatchSpec::at(0), &records, source);
        let sent = bytes.clone();
        let expected = failing(&records, &rules);
        match append(&mut bytes, &rules, next_offset) {
            Err(crate::Error::RejectedRecords { records: listed, .. }) => {
                let listed = listed.iter().map(|error| error.index).collect::<Vec<_>>();
                prop_assert_eq!(listed, expected);
                prop_assert_eq!(bytes, sent);
                return Ok(());
            }
            other => {
                prop_assert_eq!(expected, Vec::<u32>::new());
                prop_assert_eq!(other.unwrap(), rules.compression.is_some_and(|to| to != source));
            }
        }
        let batch = BatchView::parse(&bytes).unwrap();
        prop_assert_eq!(batch.check_crc(), Ok(()));
        prop_assert_eq!(batch.header().check(), Ok(()));
        let mut decoder = Decoder::new();
        let payload = decoder.inflate(batch.codec().unwrap(), batch.payload(), 1 << 20).unwrap();
        let mut read = Records::new(batch.header(), payload);
        let stamps = rules.timestamp_type == TimestampType::LogAppendTime;
        for (offset, (time, key, value, headers)) in (next_offset..).zip(&records) {
            let record = read.next_record().unwrap().unwrap();
            prop_assert_eq!(record.offset, offset);
            prop_assert_eq!(record.timestamp, if stamps { NOW } else { *time });
            prop_assert_eq!((record.key, record.value), (key.as_deref(), value.as_deref()));
            let read = record.headers.iter().map(|header| (header.key, header.value));
            prop_assert!(read.eq(headers.iter().map(|(key, value)| (&key[..], value.as_deref()))));
        }
        prop_assert!(read.next_record().unwrap().is_none());
        let spec = BatchSpec {
            leader_epoch: 3,
            append_time: stamps.then_some(NOW),
            ..BatchSpec::at(next_offset)
        };
        let codec = rules.compression.unwrap_or(source);
        prop_assert_eq!(bytes, build(spec, &records, codec), "as if built so at first");
    }

    #[test]
    fn damaged_sets_are_refused_or_appended_without_harm(
        records in vec(record(), 1..5),
        source in codec(),
        rules in rules(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        reseal in any::<bool>(),
    ) {
        let mut bytes = build(BatchSpec::at(0), &records, source);
        *at.get_mut(&mut bytes) = byte;
        if reseal {
            let crc = super::crc32c(&bytes[21..]);
            bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        if append(&mut bytes, &rules, 5).is_ok() {
            let batch = BatchView::parse(&bytes).unwrap();
            prop_assert_eq!(batch.check_crc(), Ok(()));
            prop_assert_eq!(batch.header().base_offset, 5);
        }
    }
}

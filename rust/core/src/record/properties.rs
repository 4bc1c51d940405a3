//! Promises that hold for every batch, not only for the examples.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::samples::{Legacy, rebuild};
use super::varint::{
    read_varint, read_varlong, varint_bytes, varlong_bytes, write_varint, write_varlong,
};
use super::{
    BatchBuilder, BatchHeader, BatchMut, BatchSpec, BatchView, Codec, Header, LegacyRecords,
    LegacyView, Records, TimestampType,
};
use crate::codec::{Decoder, Encoder};
use crate::fuzzing;

/// A record with everything it owns; the offset is a distance from the record before.
#[derive(Debug, Clone)]
struct Record {
    gap: u8,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::weighted(0.8, vec(any::<u8>(), 0..40))
}

fn timestamp() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => 1_700_000_000_000_i64..1_700_000_100_000,
        1 => Just(-1_i64),
        1 => 0..i64::MAX,
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let gap = prop_oneof![9 => Just(0_u8), 1 => any::<u8>()];
    let headers =
        prop_oneof![3 => Just(Vec::new()), 1 => vec((vec(any::<u8>(), 0..6), bytes()), 1..4)];
    (gap, timestamp(), bytes(), bytes(), headers).prop_map(
        |(gap, timestamp, key, value, headers)| Record { gap, timestamp, key, value, headers },
    )
}

fn spec() -> impl Strategy<Value = BatchSpec> {
    let offset = prop_oneof![Just(0), 0..1_000_000_i64, 0..i64::MAX / 2];
    let producer = option::of((0..i64::MAX, 0..i16::MAX, 0..=i32::MAX));
    let times = (option::weighted(0.2, timestamp()), option::weighted(0.2, timestamp()));
    (offset, any::<i32>(), producer, any::<(bool, bool)>(), times).prop_map(
        |(base_offset, leader_epoch, producer, (transactional, control), times)| {
            let (producer_id, producer_epoch, base_sequence) = producer.unwrap_or((-1, -1, -1));
            BatchSpec {
                leader_epoch,
                producer_id,
                producer_epoch,
                base_sequence,
                transactional: transactional && producer.is_some(),
                control,
                append_time: times.0,
                delete_horizon: times.1,
                ..BatchSpec::at(base_offset)
            }
        },
    )
}

/// A batch and the records in it. A record whose time lies too far from the first is left out, as
/// the builder refuses it.
fn build(spec: BatchSpec, records: &[Record]) -> (BatchBuilder, Vec<(i64, Record)>) {
    let mut builder = BatchBuilder::new(spec).unwrap();
    let mut kept = Vec::new();
    let mut next = spec.base_offset;
    for record in records {
        let offset = next + i64::from(record.gap);
        let headers =
            record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        if builder.push_at(offset, record.timestamp, key, value, headers).is_ok() {
            kept.push((offset, record.clone()));
            next = offset + 1;
        }
    }
    (builder, kept)
}

fn finished(builder: &BatchBuilder) -> Vec<u8> {
    let mut output = Vec::new();
    builder.finish(&mut output).unwrap();
    output
}

fn assert_same(header: &BatchHeader, payload: &[u8], expected: &[(i64, Record)]) {
    let mut records = Records::new(header, payload);
    for (offset, expected) in expected {
        let record = records.next_record().unwrap().unwrap();
        assert_eq!(record.offset, *offset);
        let stamped = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        let timestamp = if stamped { header.max_timestamp } else { expected.timestamp };
        assert_eq!(record.timestamp, timestamp);
        assert_eq!(record.key, expected.key.as_deref());
        assert_eq!(record.value, expected.value.as_deref());
        let headers = record.headers.iter().map(|header| (header.key, header.value));
        let expected = expected.headers.iter().map(|(key, value)| (&key[..], value.as_deref()));
        assert!(headers.eq(expected));
    }
    assert!(records.next_record().unwrap().is_none());
}

/// Damage of the kinds that disks and bad writers do.
#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Length(i32),
    Copy(prop::sample::Index, prop::sample::Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => at().prop_map(Damage::Cut),
        1 => any::<i32>().prop_map(Damage::Length),
        1 => (at(), at(), 1..30_u8).prop_map(|(from, to, count)| Damage::Copy(from, to, count)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        match self {
            Self::Flip(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
            Self::Set(at, byte) => *at.get_mut(bytes) = *byte,
            Self::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Self::Length(length) if bytes.len() >= 12 => {
                bytes[8..12].copy_from_slice(&length.to_be_bytes());
            }
            Self::Length(_) => {}
            Self::Copy(from, to, count) => {
                let from = from.index(bytes.len());
                let piece: Vec<u8> =
                    bytes[from..].iter().take(usize::from(*count)).copied().collect();
                let to = to.index(bytes.len());
                bytes.splice(to..to, piece);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn what_is_written_is_read_and_written_again_alike(
        spec in spec(),
        records in vec(record(), 0..8),
    ) {
        let (builder, kept) = build(spec, &records);
        let batch = finished(&builder);
        let view = BatchView::parse(&batch).unwrap();
        prop_assert_eq!(view.check_crc(), Ok(()));
        prop_assert_eq!(view.header().check(), Ok(()));
        prop_assert_eq!(view.bytes().len(), batch.len());
        assert_same(view.header(), view.payload(), &kept);

        prop_assert_eq!(rebuild(&view, view.payload()), batch);
    }

    #[test]
    fn damaged_batches_are_read_without_harm(
        spec in spec(),
        records in vec(record(), 0..5),
        damage in vec(damage(), 1..4),
    ) {
        let (builder, _) = build(spec, &records);
        let mut bytes = finished(&builder);
        for damage in damage {
            damage.apply(&mut bytes);
        }
        fuzzing::batch(&bytes);
        fuzzing::records(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn any_bytes_are_read_without_harm(mut bytes in vec(any::<u8>(), 0..200), magic in 0..4_u8) {
        if let Some(byte) = bytes.get_mut(16) {
            *byte = magic;
        }
        if let Some(size) = bytes.get_mut(8..11) {
            size.fill(0);
        }
        fuzzing::batch(&bytes);
        fuzzing::records(&bytes);
        fuzzing::legacy_set(&bytes);
    }

    #[test]
    fn a_patched_batch_keeps_its_records(
        spec in spec(),
        records in vec(record(), 0..5),
        last_offset in 5_000..i64::MAX,
        leader_epoch in any::<i32>(),
        append_time in option::of(timestamp()),
    ) {
        let (builder, kept) = build(spec, &records);
        let mut batch = finished(&builder);
        let mut patch = BatchMut::parse(&mut batch).unwrap();
        patch.set_last_offset(last_offset).unwrap();
        patch.set_leader_epoch(leader_epoch);
        if let Some(time) = append_time {
            patch.set_max_timestamp(TimestampType::LogAppendTime, time).unwrap();
        }
        let view = BatchView::parse(&batch).unwrap();
        prop_assert_eq!(view.check_crc(), Ok(()));
        prop_assert_eq!(view.header().last_offset(), last_offset);
        prop_assert_eq!(view.header().leader_epoch, leader_epoch);
        let moved = view.header().base_offset - spec.base_offset;
        let expected: Vec<_> =
            kept.into_iter().map(|(offset, record)| (offset + moved, record)).collect();
        assert_same(view.header(), view.payload(), &expected);
    }

    #[test]
    fn varints_survive_and_take_the_bytes_announced(short in any::<i32>(), long in any::<i64>()) {
        let mut bytes = Vec::new();
        write_varint(short, &mut bytes);
        prop_assert_eq!(bytes.len(), varint_bytes(short));
        prop_assert_eq!(read_varint(&bytes), Ok((short, bytes.len())));
        bytes.clear();
        write_varlong(long, &mut bytes);
        prop_assert_eq!(bytes.len(), varlong_bytes(long));
        prop_assert_eq!(read_varlong(&bytes), Ok((long, bytes.len())));
    }

    #[test]
    fn a_legacy_set_gives_back_what_was_put_in(
        magic in 0..2_u8,
        append_time in any::<bool>(),
        first in 0..1_000_000_i64,
        messages in vec((0..3_i64, timestamp(), bytes(), bytes()), 1..8),
    ) {
        let mut set = Vec::new();
        let mut expected = Vec::new();
        let mut inner = if magic == 0 { first } else { 0 };
        for (gap, timestamp, key, value) in &messages {
            inner += gap;
            let message = Legacy::new(magic, inner)
                .timestamp(*timestamp)
                .key(key.as_deref())
                .value(value.as_deref());
            set.extend_from_slice(&message.bytes());
            expected.push((inner, *timestamp, key.as_deref(), value.as_deref()));
            inner += 1;
        }
        let last = expected.last().unwrap().0 + if magic == 0 { 0 } else { first };
        let attributes = 1 | if append_time { 8 } else { 0 };
        let wrapper = Legacy::new(magic, last).codec(attributes).timestamp(77).bytes();
        let wrapper = LegacyView::parse(&wrapper).unwrap();
        let read: Vec<_> = LegacyRecords::wrapped(&wrapper, &set, true)
            .unwrap()
            .map(|record| {
                let record = record.unwrap();
                (record.offset, record.timestamp, record.key, record.value)
            })
            .collect();
        // A wrapper at offset 0 says that inner offsets count from 0.
        let base = if magic == 0 || last == 0 { 0 } else { first };
        for (offset, timestamp, _, _) in &mut expected {
            *offset += base;
            *timestamp = match (magic, append_time) {
                (0, _) => -1,
                (_, true) => 77,
                (_, false) => *timestamp,
            };
        }
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn damaged_legacy_sets_are_read_without_harm(
        magic in 0..2_u8,
        offsets in vec(0..50_i64, 1..6),
        damage in vec(damage(), 0..4),
    ) {
        let set: Vec<u8> =
            offsets.iter().flat_map(|offset| Legacy::new(magic, *offset).bytes()).collect();
        let mut bytes = Legacy::new(magic, 60).codec(1).value(Some(&set)).bytes();
        for damage in damage {
            damage.apply(&mut bytes);
        }
        fuzzing::legacy_set(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_compressed_is_read_and_written_again_alike(
        spec in spec(),
        records in vec(record(), 0..30),
        (codec, level) in prop_oneof![
            (prop_oneof![Just(Codec::Gzip), Just(Codec::Snappy), Just(Codec::Lz4), Just(Codec::Zstd)],
             Just(None)),
            (Just(Codec::Gzip), (1..=9).prop_map(Some)),
            (Just(Codec::Lz4), (1..=17).prop_map(Some)),
            (Just(Codec::Zstd), (-5..=8).prop_map(Some)),
        ],
    ) {
        let (builder, kept) = build(spec, &records);
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        let mut batch = Vec::new();
        builder.finish_compressed(codec, level, &mut encoder, &mut batch).unwrap();
        let view = BatchView::parse(&batch).unwrap();
        prop_assert_eq!(view.check_crc(), Ok(()));
        prop_assert_eq!(view.header().check(), Ok(()));
        let stored = if kept.is_empty() { Codec::None } else { codec };
        prop_assert_eq!(view.codec(), Ok(stored));
        let payload = decoder.inflate(stored, view.payload(), 1 << 20).unwrap();
        assert_same(view.header(), payload, &kept);

        let mut again = Vec::new();
        builder.finish_compressed(codec, level, &mut encoder, &mut again).unwrap();
        prop_assert!(again == batch, "the same records make the same bytes");
        prop_assert_eq!(rebuild(&view, payload), finished(&builder));
    }
}

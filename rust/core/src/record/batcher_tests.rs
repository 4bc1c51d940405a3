//! Batches from columns are those that records one by one would make.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::samples::T0;
use super::{
    BatchBuilder, BatchHeader, BatchSpec, BatchView, BatcherOptions, BytesColumn, Codec, Columns,
    ColumnsBatcher, Header, HeadersColumn, Offsets, Timestamps, Validity,
};
use crate::codec::{Decoder, Encoder};
use crate::error::Error;

const PLAIN: BatcherOptions =
    BatcherOptions { target_bytes: 16_384, max_bytes: 1_048_588, codec: Codec::None, level: None };

type Bytes = Option<Vec<u8>>;

#[derive(Debug, Clone)]
struct Record {
    time: i64,
    key: Bytes,
    value: Bytes,
    headers: Vec<(Vec<u8>, Bytes)>,
}

/// A column that owns its parts.
struct Owned {
    short: Vec<i32>,
    long: Vec<i64>,
    data: Vec<u8>,
    bits: Vec<u8>,
}

impl Owned {
    /// Some bytes and bits stand before the first row, as in a slice of an array.
    fn new<'a>(fields: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        let mut owned = Self { short: vec![3], long: vec![3], data: vec![9; 3], bits: vec![] };
        for (row, field) in fields.enumerate() {
            owned.data.extend_from_slice(field.unwrap_or_default());
            owned.short.push(i32::try_from(owned.data.len()).unwrap());
            owned.long.push(i64::try_from(owned.data.len()).unwrap());
            owned.bits.resize((row + 5) / 8 + 1, 0);
            owned.bits[(row + 5) / 8] |= u8::from(field.is_some()) << ((row + 5) % 8);
        }
        owned
    }

    fn column(&self, long: bool) -> BytesColumn<'_> {
        let offsets = if long { Offsets::Long(&self.long) } else { Offsets::Short(&self.short) };
        let rows = self.short.len() - 1;
        let is_set = |row: usize| self.bits[(row + 5) / 8] >> ((row + 5) % 8) & 1 == 1;
        let full = (0..rows).all(is_set);
        let validity = (!full).then(|| Validity::new(&self.bits, 5));
        BytesColumn::new(offsets, &self.data, validity).unwrap()
    }
}

/// Hands the records over as columns.
fn with_columns<T>(records: &[Record], long: bool, then: impl FnOnce(&Columns<'_>) -> T) -> T {
    let times = records.iter().map(|record| record.time).collect::<Vec<_>>();
    let keys = Owned::new(records.iter().map(|record| record.key.as_deref()));
    let values = Owned::new(records.iter().map(|record| record.value.as_deref()));
    let all = || records.iter().flat_map(|record| &record.headers);
    let names = Owned::new(all().map(|(name, _)| Some(&name[..])));
    let contents = Owned::new(all().map(|(_, value)| value.as_deref()));
    let mut lists = vec![0_i32];
    for record in records {
        lists.push(lists.last().unwrap() + i32::try_from(record.headers.len()).unwrap());
    }
    let same = times.iter().all(|time| *time == times[0]);
    let times = if same { Timestamps::All(times[0]) } else { Timestamps::Each(&times) };
    let mut columns = Columns::new(records.len(), times).unwrap();
    if records.iter().any(|record| record.key.is_some()) {
        columns = columns.with_keys(keys.column(long)).unwrap();
    }
    if records.iter().any(|record| record.value.is_some()) {
        columns = columns.with_values(values.column(long)).unwrap();
    }
    if records.iter().any(|record| !record.headers.is_empty()) {
        let headers =
            HeadersColumn::new(Offsets::Short(&lists), names.column(long), contents.column(long));
        columns = columns.with_headers(headers.unwrap()).unwrap();
    }
    then(&columns)
}

/// The batches that a builder makes of the records, closed before the target is exceeded.
fn one_by_one(records: &[Record], spec: BatchSpec, options: &BatcherOptions) -> Vec<u8> {
    let mut output = Vec::new();
    let mut rest = records;
    let mut spec = spec;
    while !rest.is_empty() {
        let mut builder = BatchBuilder::new(spec).unwrap();
        let mut taken = 0;
        for record in rest {
            let before = builder.clone();
            let headers = &record.headers;
            let headers =
                headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            builder.push(record.time, key, value, headers).unwrap();
            if taken > 0 && builder.encoded_bytes() > options.target_bytes {
                builder = before;
                break;
            }
            taken += 1;
        }
        let (codec, level) = (options.codec, options.level);
        builder.finish_compressed(codec, level, &mut Encoder::new(), &mut output).unwrap();
        rest = &rest[taken..];
        spec.base_offset += i64::try_from(taken).unwrap();
        if spec.base_sequence >= 0 {
            let sum = i64::from(spec.base_sequence) + i64::try_from(taken).unwrap();
            spec.base_sequence = i32::try_from(sum % (1 << 31)).unwrap();
        }
    }
    output
}

fn all(records: &[Record], spec: BatchSpec, options: BatcherOptions) -> Result<Vec<u8>, Error> {
    with_columns(records, false, |columns| {
        let mut output = vec![7];
        let mut batcher = ColumnsBatcher::new(options).unwrap();
        let built = batcher.append(columns, 0, spec, &mut output, usize::MAX);
        assert_eq!(output.remove(0), 7);
        if built.is_err() {
            assert!(output.is_empty(), "on an error the output is as it was");
        }
        built.map(|_| output)
    })
}

fn record(value: &[u8]) -> Record {
    Record { time: T0, key: None, value: Some(value.to_vec()), headers: Vec::new() }
}

fn headers(bytes: &[u8]) -> Vec<BatchHeader> {
    let mut rest = bytes;
    let mut headers = Vec::new();
    while !rest.is_empty() {
        let batch = BatchView::parse(rest).unwrap();
        assert_eq!(batch.check_crc(), Ok(()));
        headers.push(*batch.header());
        rest = &rest[batch.bytes().len()..];
    }
    headers
}

fn bytes() -> impl Strategy<Value = Bytes> {
    let lengths = prop_oneof![6 => 0..50_usize, 2 => 60..70_usize, 1 => 8_180..8_200_usize];
    option::weighted(0.8, (lengths, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]))
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let time = prop_oneof![
        8 => T0..T0 + 200,
        1 => Just(-1_i64),
        1 => T0 - (1 << 40)..T0 + (1 << 40)
    ];
    let one_headers = prop_oneof![
        3 => Just(Vec::new()),
        1 => vec((vec(any::<u8>(), 0..6), bytes()), 1..4)
    ];
    let record = (time, bytes(), bytes(), one_headers)
        .prop_map(|(time, key, value, headers)| Record { time, key, value, headers });
    (vec(record, 1..60), any::<(bool, bool, bool, bool)>()).prop_map(|(mut records, no)| {
        for record in &mut records {
            record.key = record.key.take().filter(|_| !no.0);
            record.value = record.value.take().filter(|_| !no.1);
            record.headers.retain(|_| !no.2);
            record.time = if no.3 { T0 } else { record.time };
        }
        records
    })
}

fn spec() -> impl Strategy<Value = BatchSpec> {
    let producer = option::of((0..i64::MAX, 0..i16::MAX, 0..=i32::MAX, any::<bool>()));
    (0..i64::MAX / 2, any::<i32>(), producer, option::weighted(0.2, 0..i64::MAX)).prop_map(
        |(base_offset, leader_epoch, producer, append_time)| {
            let (producer_id, producer_epoch, base_sequence, transactional) =
                producer.unwrap_or((-1, -1, -1, false));
            BatchSpec {
                leader_epoch,
                producer_id,
                producer_epoch,
                base_sequence,
                transactional,
                append_time,
                ..BatchSpec::at(base_offset)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn columns_make_the_bytes_that_single_records_make(
        records in records(),
        spec in spec(),
        target_bytes in prop_oneof![0..400_usize, 0..20_000_usize],
        codec in prop::sample::select(vec![
            Codec::None, Codec::None, Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd,
        ]),
        long in any::<bool>(),
        enough in 1..5_000_usize,
    ) {
        let options = BatcherOptions { target_bytes, codec, ..PLAIN };
        let expected = one_by_one(&records, spec, &options);
        let whole = with_columns(&records, long, |columns| {
            let mut batcher = ColumnsBatcher::new(options).unwrap();
            let mut output = Vec::new();
            let built = batcher.append(columns, 0, spec, &mut output, usize::MAX).unwrap();
            assert_eq!(built.next_row, records.len());
            // The same in steps.
            let (mut steps, mut row, mut next) = (Vec::new(), 0, spec);
            while row < columns.rows() {
                let mut piece = Vec::new();
                let built = batcher.append(columns, row, next, &mut piece, enough).unwrap();
                assert!(built.next_row > row);
                (row, next) = (built.next_row, built.next_spec);
                steps.extend_from_slice(&piece);
            }
            assert!(steps == output);
            output
        });
        prop_assert!(whole == expected);
        prop_assert_eq!(headers(&whole).last().unwrap().records_count > 0, true);
    }
}

#[test]
fn a_batch_closes_before_the_record_that_would_exceed_the_target() {
    // 61 bytes of header and 100 of each record.
    let records = vec![record(&[1; 91]); 7];
    for (target_bytes, expected) in
        [(261, vec![2, 2, 2, 1]), (260, vec![1; 7]), (360, vec![2, 2, 2, 1]), (361, vec![3, 3, 1])]
    {
        let options = BatcherOptions { target_bytes, ..PLAIN };
        let batches = headers(&all(&records, BatchSpec::at(5), options).unwrap());
        let counts = batches.iter().map(|header| header.records_count).collect::<Vec<_>>();
        assert_eq!(counts, expected, "{target_bytes}");
        let mut next = 5;
        for header in batches {
            assert_eq!(header.base_offset, next);
            next = header.last_offset() + 1;
        }
    }
}

#[test]
fn sequences_wrap_from_batch_to_batch() {
    let spec = BatchSpec {
        producer_id: 1,
        producer_epoch: 0,
        base_sequence: i32::MAX - 2,
        ..BatchSpec::at(0)
    };
    let options = BatcherOptions { target_bytes: 261, ..PLAIN };
    let batches = headers(&all(&vec![record(&[1; 91]); 6], spec, options).unwrap());
    let sequences = batches.iter().map(|header| header.base_sequence).collect::<Vec<_>>();
    assert_eq!(sequences, [i32::MAX - 2, i32::MAX, 1]);
}

#[test]
fn a_record_over_the_limit_is_refused_and_named() {
    let records = [record(&[1; 10]), record(&[1; 10]), record(&[1; 920])];
    for codec in [Codec::None, Codec::Lz4] {
        let incompressible: Vec<u8> =
            (0..1_000_u32).map(|step| step.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        let mut records = records.to_vec();
        records[2].value = Some(incompressible);
        let options = BatcherOptions { codec, target_bytes: 300, max_bytes: 1_000, ..PLAIN };
        let refusal = all(&records, BatchSpec::at(0), options).unwrap_err();
        assert_eq!(refusal.rejection(), Some("MESSAGE_TOO_LARGE"), "{codec:?}");
    }
    let exact = BatcherOptions { max_bytes: 61 + 929, ..PLAIN };
    assert!(all(&records[2..], BatchSpec::at(0), exact).is_ok());
    let below = BatcherOptions { max_bytes: 61 + 928, ..PLAIN };
    assert!(all(&records[2..], BatchSpec::at(0), below).is_err());
}

#[test]
fn what_compresses_to_more_than_the_limit_is_split() {
    let noise = |seed: u32| {
        let mut random = crate::testing::Random::new(seed.into());
        (0..100).map(|_| random.next().to_be_bytes()[0]).collect::<Vec<_>>()
    };
    let records = (0..40).map(|seed| record(&noise(seed))).collect::<Vec<_>>();
    let options =
        BatcherOptions { codec: Codec::Lz4, target_bytes: 1 << 20, max_bytes: 1_500, level: None };
    let output = all(&records, BatchSpec::at(0), options).unwrap();
    let batches = headers(&output);
    assert!(batches.len() > 2);
    assert!(batches.iter().all(|header| header.total_bytes() <= 1_500));
    let total = batches.iter().map(|header| header.records_count).sum::<i32>();
    assert_eq!(total, 40);
    let mut decoder = Decoder::new();
    let first = BatchView::parse(&output).unwrap();
    assert!(decoder.inflate(Codec::Lz4, first.payload(), 1 << 20).is_ok());
}

#[test]
fn times_that_no_batch_can_hold_are_refused() {
    let at = |time| Record { time, ..record(b"v") };
    for times in [[T0, -2], [-1, i64::MAX]] {
        assert!(all(&times.map(at), BatchSpec::at(0), PLAIN).is_err());
    }
    assert!(all(&[0, i64::MAX].map(at), BatchSpec::at(0), PLAIN).is_ok());
}

#[test]
fn what_no_batch_can_be_is_refused() {
    let one = [record(b"v")];
    for spec in [
        BatchSpec::at(-1),
        BatchSpec::at(i64::MAX),
        BatchSpec { transactional: true, ..BatchSpec::at(0) },
        BatchSpec { last_offset: Some(9), ..BatchSpec::at(0) },
        BatchSpec { delete_horizon: Some(9), ..BatchSpec::at(0) },
    ] {
        assert!(all(&one, spec, PLAIN).is_err());
    }
    assert!(ColumnsBatcher::new(BatcherOptions { level: Some(3), ..PLAIN }).is_err());
    let columns = Columns::new(0, Timestamps::All(0)).unwrap();
    let mut batcher = ColumnsBatcher::new(PLAIN).unwrap();
    let mut output = Vec::new();
    assert!(batcher.append_one(&columns, 0, BatchSpec::at(0), &mut output).is_err());
    let built = batcher.append(&columns, 0, BatchSpec::at(0), &mut output, 9).unwrap();
    assert_eq!((built.batches, built.next_row), (0, 0));
}

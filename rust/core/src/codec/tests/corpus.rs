//! Every compressed version 2 batch that real clients wrote.

use std::collections::BTreeMap;

use super::*;
use crate::record::{BatchView, Records};
use crate::testing::{cases, files, read};

#[test]
fn every_batch_of_every_client_inflates_the_same_in_one_call_and_as_a_stream() {
    let mut seen: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let cases = cases("codecs-");
    assert!(!cases.is_empty(), "no codecs cases in the corpus");
    let mut decoder = Decoder::new();
    for case in &cases {
        let client = case.file_name().unwrap().to_string_lossy().into_owned();
        for log in files(&case.join("log"), ".log") {
            let bytes = read(&log);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let batch = BatchView::parse(rest).unwrap();
                check(&mut decoder, &batch);
                *seen.entry((client.clone(), batch.codec().unwrap().name())).or_default() += 1;
                rest = &rest[batch.bytes().len()..];
            }
        }
    }
    for case in &cases {
        let client = case.file_name().unwrap().to_string_lossy().into_owned();
        for codec in COMPRESSING {
            let batches = seen.get(&(client.clone(), codec.name()));
            assert!(batches.is_some(), "{client} has no {} batch", codec.name());
        }
    }
}

fn check(decoder: &mut Decoder, batch: &BatchView<'_>) {
    batch.check_crc().unwrap();
    let (codec, payload) = (batch.codec().unwrap(), batch.payload());
    if codec == Codec::None {
        return;
    }
    let whole = decoder.inflate(codec, payload, 8 * MIB).unwrap().to_vec();
    for read_bytes in [1000, 65_536] {
        let streamed = stream_as(decoder, Dialect::V2, codec, payload, || read_bytes);
        assert!(streamed.as_ref() == Ok(&whole));
    }
    let records: Result<Vec<_>, _> = Records::new(batch.header(), &whole).collect();
    let count = records.unwrap().len();
    assert_eq!(i32::try_from(count), Ok(batch.header().records_count));

    let exact = decoder.inflate(codec, payload, whole.len()).unwrap();
    assert!(exact == whole);
    let refused = decoder.inflate(codec, payload, whole.len() - 1);
    assert_eq!(refused, Err(InflateError::OverBudget));
    let again = compress(codec, &whole);
    assert!(decoder.inflate(codec, &again, 8 * MIB) == Ok(&whole));
}

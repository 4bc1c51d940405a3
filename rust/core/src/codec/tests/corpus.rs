//! Every compressed version 2 batch that real clients and brokers wrote.

use std::collections::BTreeMap;

use super::*;
use crate::record::{BatchView, Records};
use crate::testing::{at_least, corpus_files};

#[test]
fn every_batch_of_every_client_inflates_the_same_in_one_call_and_as_a_stream() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut decoder = Decoder::new();
    for (_, bytes) in corpus_files(".log") {
        let mut rest = &bytes[..];
        // Old formats and damage end the walk; both are the business of other tests.
        while let Ok(batch) = BatchView::parse(rest) {
            if batch.check_crc().is_err() {
                break;
            }
            check(&mut decoder, &batch);
            *seen.entry(batch.codec().unwrap().name()).or_default() += 1;
            rest = &rest[batch.bytes().len()..];
        }
    }
    for codec in COMPRESSING {
        let batches = seen.get(codec.name()).copied().unwrap_or_default();
        assert!(batches >= at_least(100), "{codec:?}: {seen:?}");
    }
}

fn check(decoder: &mut Decoder, batch: &BatchView<'_>) {
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

mod corpus;
mod model;
mod rules;
mod snapshots;
mod txns;

use super::{Analysis, BatchFacts, Marker, ProducerStates, TxnOutcome};
use crate::Result;
use crate::record::Origin;

/// A time that the batches of tests count from.
const T0: i64 = 1_700_000_000_000;

/// A data batch of so many records.
fn data(id: i64, epoch: i16, sequence: i32, records: i32, offset: i64) -> BatchFacts {
    let space = i64::from(i32::MAX) + 1;
    let last_sequence = (i64::from(sequence) + i64::from(records) - 1) % space;
    BatchFacts {
        producer_id: id,
        producer_epoch: epoch,
        base_sequence: sequence,
        last_sequence: if sequence < 0 { -1 } else { i32::try_from(last_sequence).unwrap() },
        base_offset: offset,
        last_offset: offset + i64::from(records) - 1,
        max_timestamp: T0 + offset,
        is_transactional: false,
        is_control: false,
        marker: None,
    }
}

/// The same, in a transaction.
fn txn(id: i64, epoch: i16, sequence: i32, records: i32, offset: i64) -> BatchFacts {
    BatchFacts { is_transactional: true, ..data(id, epoch, sequence, records, offset) }
}

/// A marker of coordinator epoch 0.
fn end(id: i64, epoch: i16, offset: i64, aborted: bool) -> BatchFacts {
    let marker =
        Marker { aborted, coordinator_epoch: 0, timestamp: T0 + offset, transaction_version: 0 };
    BatchFacts { is_control: true, marker: Some(marker), ..txn(id, epoch, -1, 1, offset) }
}

/// The same with a change to the marker.
fn end_with(facts: BatchFacts, change: impl FnOnce(&mut Marker)) -> BatchFacts {
    let mut marker = facts.marker.unwrap();
    change(&mut marker);
    BatchFacts { marker: Some(marker), ..facts }
}

/// Appends one batch.
fn append(
    states: &mut ProducerStates,
    facts: &BatchFacts,
    origin: Origin,
) -> Result<(Analysis, Vec<TxnOutcome>)> {
    let mut changes = states.begin(origin);
    let analysis = states.add(&mut changes, facts)?;
    let outcomes = if analysis == Analysis::New { states.commit(changes) } else { Vec::new() };
    Ok((analysis, outcomes))
}

/// Appends one batch of a client that is neither refused nor a duplicate.
fn client(states: &mut ProducerStates, facts: &BatchFacts) -> Vec<TxnOutcome> {
    let (analysis, outcomes) = append(states, facts, Origin::Client).unwrap();
    assert_eq!(analysis, Analysis::New);
    outcomes
}

/// The refusal of a batch.
fn refused(states: &ProducerStates, facts: &BatchFacts, origin: Origin) -> String {
    states.analyze(facts, origin).unwrap_err().to_string()
}

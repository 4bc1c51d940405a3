//! `__transaction_state`: one record per change of a transactional id.

use super::schema::{Field, Kind, Message};
use super::{Keyed, keyed};

const PARTITIONS: &[Field] =
    &[Field::new("topic", Kind::Text), Field::new("partitionIds", Kind::List(&Kind::Int32))];

const VALUE: &[Field] = &[
    Field::new("producerId", Kind::Int64),
    Field::new("previousProducerId", Kind::Int64).since(1).tagged(0),
    Field::new("nextProducerId", Kind::Int64).since(1).tagged(1),
    Field::new("producerEpoch", Kind::Int16),
    Field::new("nextProducerEpoch", Kind::Int16).since(1).tagged(3),
    Field::new("transactionTimeoutMs", Kind::Int32),
    Field::new("transactionStatus", Kind::Int8),
    Field::new("transactionPartitions", Kind::List(&Kind::Struct(PARTITIONS))).nullable(),
    Field::new("transactionLastUpdateTimestampMs", Kind::Int64),
    Field::new("transactionStartTimestampMs", Kind::Int64),
    Field::new("clientTransactionVersion", Kind::Int16).since(1).tagged(2),
];

/// Record types by the number that starts the key.
pub(super) const TYPES: &[Keyed] = &[keyed(
    0,
    "TransactionLog",
    &[Field::new("transactionalId", Kind::Text)],
    Message::flexible_since(1, 1, VALUE),
)];

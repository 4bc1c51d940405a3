//! `__share_group_state`: delivery state of share groups.

use super::schema::{Field, Kind, Message};
use super::{Keyed, keyed};

const KEY: &[Field] = &[
    Field::new("groupId", Kind::Text),
    Field::new("topicId", Kind::Uuid),
    Field::new("partition", Kind::Int32),
];

const BATCH: &[Field] = &[
    Field::new("firstOffset", Kind::Int64),
    Field::new("lastOffset", Kind::Int64),
    Field::new("deliveryState", Kind::Int8),
    Field::new("deliveryCount", Kind::Int16),
];

const SNAPSHOT: &[Field] = &[
    Field::new("snapshotEpoch", Kind::Int32),
    Field::new("stateEpoch", Kind::Int32),
    Field::new("leaderEpoch", Kind::Int32),
    Field::new("startOffset", Kind::Int64),
    Field::new("deliveryCompleteCount", Kind::Int32).tagged(0),
    Field::new("createTimestamp", Kind::Int64),
    Field::new("writeTimestamp", Kind::Int64),
    Field::new("stateBatches", Kind::List(&Kind::Struct(BATCH))),
];

const UPDATE: &[Field] = &[
    Field::new("snapshotEpoch", Kind::Int32),
    Field::new("leaderEpoch", Kind::Int32),
    Field::new("startOffset", Kind::Int64),
    Field::new("deliveryCompleteCount", Kind::Int32).tagged(0),
    Field::new("stateBatches", Kind::List(&Kind::Struct(BATCH))),
];

/// Record types by the number that starts the key.
pub(super) const TYPES: &[Keyed] = &[
    keyed(0, "ShareSnapshot", KEY, Message::flexible(0, SNAPSHOT)).unsettled(),
    keyed(1, "ShareUpdate", KEY, Message::flexible(0, UPDATE)).unsettled(),
];

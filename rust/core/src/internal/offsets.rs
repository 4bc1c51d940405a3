//! `__consumer_offsets`: committed offsets and the state of groups.
//!
//! The key starts with a number that says what the record is; releases before 4.0 call it the
//! version of the key. Classic groups keep everything in one `GroupMetadata` record, the groups of
//! KIP-848 and its successors one record per fact.

use super::group_types::{STREAMS_AND_SHARE, group_key, member_key};
use super::schema::{Field, Kind, Message};
use super::{Keyed, Value, keyed};
use crate::record::CorruptKind;

const COMMIT_KEY: &[Field] = &[
    Field::new("group", Kind::Text),
    Field::new("topic", Kind::Text),
    Field::new("partition", Kind::Int32),
];

const COMMIT: Message = Message::flexible_since(
    4,
    4,
    &[
        Field::new("offset", Kind::Int64),
        Field::new("leaderEpoch", Kind::Int32).since(3),
        Field::new("metadata", Kind::Text),
        Field::new("commitTimestamp", Kind::Int64),
        Field::new("expireTimestamp", Kind::Int64).since(1).until(1),
        Field::new("topicId", Kind::Uuid).since(4).tagged(0),
    ],
);

const MEMBER: &[Field] = &[
    Field::new("memberId", Kind::Text),
    Field::new("groupInstanceId", Kind::Text).since(3).nullable(),
    Field::new("clientId", Kind::Text),
    Field::new("clientHost", Kind::Text),
    Field::new("rebalanceTimeout", Kind::Int32).since(1),
    Field::new("sessionTimeout", Kind::Int32),
    Field::new("subscription", Kind::Bytes),
    Field::new("assignment", Kind::Bytes),
];

const GROUP: Message = Message::flexible_since(
    4,
    4,
    &[
        Field::new("protocolType", Kind::Text),
        Field::new("generation", Kind::Int32),
        Field::new("protocol", Kind::Text).nullable(),
        Field::new("leader", Kind::Text).nullable(),
        Field::new("currentStateTimestamp", Kind::Int64).since(2),
        Field::new("members", Kind::List(&Kind::Struct(MEMBER))),
    ],
);

const PROTOCOL: &[Field] = &[Field::new("name", Kind::Text), Field::new("metadata", Kind::Bytes)];

const CLASSIC_MEMBER: &[Field] = &[
    Field::new("sessionTimeoutMs", Kind::Int32),
    Field::new("supportedProtocols", Kind::List(&Kind::Struct(PROTOCOL))),
];

const CONSUMER_MEMBER: &[Field] = &[
    Field::new("instanceId", Kind::Text).nullable(),
    Field::new("rackId", Kind::Text).nullable(),
    Field::new("clientId", Kind::Text),
    Field::new("clientHost", Kind::Text),
    Field::new("subscribedTopicNames", Kind::List(&Kind::Text)),
    Field::new("subscribedTopicRegex", Kind::Text).nullable(),
    Field::new("rebalanceTimeoutMs", Kind::Int32),
    Field::new("serverAssignor", Kind::Text).nullable(),
    Field::new("classicMemberMetadata", Kind::Struct(CLASSIC_MEMBER)).nullable().tagged(0),
];

pub(super) const TOPIC_PARTITIONS: &[Field] =
    &[Field::new("topicId", Kind::Uuid), Field::new("partitions", Kind::List(&Kind::Int32))];

const OWNED_PARTITIONS: &[Field] = &[
    Field::new("topicId", Kind::Uuid),
    Field::new("partitions", Kind::List(&Kind::Int32)),
    Field::new("assignmentEpochs", Kind::List(&Kind::Int32)).nullable().tagged(0),
];

const CURRENT_ASSIGNMENT: &[Field] = &[
    Field::new("memberEpoch", Kind::Int32),
    Field::new("previousMemberEpoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("assignedPartitions", Kind::List(&Kind::Struct(OWNED_PARTITIONS))),
    Field::new("partitionsPendingRevocation", Kind::List(&Kind::Struct(OWNED_PARTITIONS))),
];

const PARTITION_RACKS: &[Field] =
    &[Field::new("partition", Kind::Int32), Field::new("racks", Kind::List(&Kind::Text))];

const SUBSCRIBED_TOPIC: &[Field] = &[
    Field::new("topicId", Kind::Uuid),
    Field::new("topicName", Kind::Text),
    Field::new("numPartitions", Kind::Int32),
    Field::new("partitionMetadata", Kind::List(&Kind::Struct(PARTITION_RACKS))),
];

pub(super) const PARTITION_METADATA: &[Field] =
    &[Field::new("topics", Kind::List(&Kind::Struct(SUBSCRIBED_TOPIC)))];

pub(super) const TARGET_METADATA: &[Field] = &[
    Field::new("assignmentEpoch", Kind::Int32),
    Field::new("assignmentTimestamp", Kind::Int64).tagged(0),
];

pub(super) const TARGET_MEMBER: &[Field] =
    &[Field::new("topicPartitions", Kind::List(&Kind::Struct(TOPIC_PARTITIONS)))];

/// Record types by the number that starts the key.
pub(super) const TYPES: &[Keyed] = &[
    keyed(0, "OffsetCommit", COMMIT_KEY, COMMIT),
    keyed(1, "OffsetCommit", COMMIT_KEY, COMMIT),
    keyed(2, "GroupMetadata", &[Field::new("group", Kind::Text)], GROUP),
    group_key(
        3,
        "ConsumerGroupMetadata",
        &[Field::new("epoch", Kind::Int32), Field::new("metadataHash", Kind::Int64).tagged(0)],
    ),
    group_key(4, "ConsumerGroupPartitionMetadata", PARTITION_METADATA),
    member_key(5, "ConsumerGroupMemberMetadata", CONSUMER_MEMBER),
    group_key(6, "ConsumerGroupTargetAssignmentMetadata", TARGET_METADATA),
    member_key(7, "ConsumerGroupTargetAssignmentMember", TARGET_MEMBER),
    member_key(8, "ConsumerGroupCurrentMemberAssignment", CURRENT_ASSIGNMENT),
    keyed(
        16,
        "ConsumerGroupRegularExpression",
        &[Field::new("groupId", Kind::Text), Field::new("regularExpression", Kind::Text)],
        Message::flexible(
            0,
            &[
                Field::new("topics", Kind::List(&Kind::Text)),
                Field::new("version", Kind::Int64),
                Field::new("timestamp", Kind::Int64),
            ],
        ),
    ),
];

/// The type of a number.
pub(super) fn by_id(id: i16) -> Option<&'static Keyed> {
    let mut types = TYPES.iter().chain(STREAMS_AND_SHARE);
    types.find(|keyed| keyed.id == id)
}

const OWNED: &[Field] =
    &[Field::new("topic", Kind::Text), Field::new("partitions", Kind::List(&Kind::Int32))];

const SUBSCRIPTION: Message = Message::plain(
    3,
    &[
        Field::new("topics", Kind::List(&Kind::Text)),
        Field::new("userData", Kind::Bytes).nullable(),
        Field::new("ownedPartitions", Kind::List(&Kind::Struct(OWNED))).since(1),
        Field::new("generationId", Kind::Int32).since(2),
        Field::new("rackId", Kind::Text).since(3).nullable(),
    ],
);

const ASSIGNMENT: Message = Message::plain(
    3,
    &[
        Field::new("assignedPartitions", Kind::List(&Kind::Struct(OWNED))),
        Field::new("userData", Kind::Bytes).nullable(),
    ],
);

/// Opens what the members of a classic consumer group keep in bytes. Groups of other protocols
/// (Connect, Streams) put other things there, and clients may: what does not fit stays as it is.
pub(super) fn open_consumer_protocol(group: &mut Value) {
    if group.get("protocolType") != Some(&Value::Text("consumer".to_owned())) {
        return;
    }
    let Value::Record(fields) = group else { return };
    for (_, value) in fields.iter_mut().filter(|(name, _)| *name == "members") {
        let Value::List(members) = value else { continue };
        for member in members {
            let Value::Record(fields) = member else { continue };
            for (name, value) in fields {
                let message = match *name {
                    "subscription" => SUBSCRIPTION,
                    "assignment" => ASSIGNMENT,
                    _ => continue,
                };
                if let Value::Bytes(bytes) = value
                    && let Ok(opened) = versioned(message, bytes)
                {
                    *value = opened;
                }
            }
        }
    }
}

/// Reads a version and the message after it. A newer version starts like the latest known one.
fn versioned(message: Message, bytes: &[u8]) -> Result<Value, CorruptKind> {
    let (version, body) = super::split_number(bytes)?;
    if version < 0 {
        return Err(CorruptKind::Message("its version is negative"));
    }
    let (value, _) = message.decode_prefix(version.min(message.latest), body)?;
    Ok(value)
}

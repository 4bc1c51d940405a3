//! Records of share and streams groups in `__consumer_offsets`.
//!
//! Their layouts changed between early releases without a new version, so a value that does not
//! fit its table is given as bytes.

use super::offsets::{PARTITION_METADATA, TARGET_MEMBER, TARGET_METADATA, TOPIC_PARTITIONS};
use super::schema::{Field, Kind, Message};
use super::{Keyed, keyed};

/// A type whose key is a group and whose value is flexible from the start.
pub(super) const fn group_key(id: i16, kind: &'static str, value: &'static [Field]) -> Keyed {
    const KEY: &[Field] = &[Field::new("groupId", Kind::Text)];
    keyed(id, kind, KEY, Message::flexible(0, value))
}

/// A type whose key is a member of a group and whose value is flexible from the start.
pub(super) const fn member_key(id: i16, kind: &'static str, value: &'static [Field]) -> Keyed {
    const KEY: &[Field] = &[Field::new("groupId", Kind::Text), Field::new("memberId", Kind::Text)];
    keyed(id, kind, KEY, Message::flexible(0, value))
}

const SHARE_MEMBER: &[Field] = &[
    Field::new("rackId", Kind::Text).nullable(),
    Field::new("clientId", Kind::Text),
    Field::new("clientHost", Kind::Text),
    Field::new("subscribedTopicNames", Kind::List(&Kind::Text)),
];

const SHARE_CURRENT_ASSIGNMENT: &[Field] = &[
    Field::new("memberEpoch", Kind::Int32),
    Field::new("previousMemberEpoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("assignedPartitions", Kind::List(&Kind::Struct(TOPIC_PARTITIONS))),
];

const NAMED_PARTITIONS: &[Field] = &[
    Field::new("topicId", Kind::Uuid),
    Field::new("topicName", Kind::Text),
    Field::new("partitions", Kind::List(&Kind::Int32)),
];

const NAMED_TOPIC: &[Field] =
    &[Field::new("topicId", Kind::Uuid), Field::new("topicName", Kind::Text)];

const SHARE_STATE: &[Field] = &[
    Field::new("initializingTopics", Kind::List(&Kind::Struct(NAMED_PARTITIONS))),
    Field::new("initializedTopics", Kind::List(&Kind::Struct(NAMED_PARTITIONS))),
    Field::new("deletingTopics", Kind::List(&Kind::Struct(NAMED_TOPIC))),
];

const EARLY_SHARE_STATE: &[Field] = &[
    Field::new("initializedTopics", Kind::List(&Kind::Struct(NAMED_PARTITIONS))),
    Field::new("deletingTopics", Kind::List(&Kind::Struct(NAMED_TOPIC))),
];

const KEY_VALUE: &[Field] = &[Field::new("key", Kind::Text), Field::new("value", Kind::Text)];

const ENDPOINT: &[Field] = &[Field::new("host", Kind::Text), Field::new("port", Kind::Uint16)];

const STREAMS_METADATA: &[Field] = &[
    Field::new("epoch", Kind::Int32),
    Field::new("metadataHash", Kind::Int64),
    Field::new("validatedTopologyEpoch", Kind::Int32).tagged(0),
    Field::new("lastAssignmentConfigs", Kind::List(&Kind::Struct(KEY_VALUE))).nullable().tagged(1),
];

const STREAMS_MEMBER: &[Field] = &[
    Field::new("instanceId", Kind::Text).nullable(),
    Field::new("rackId", Kind::Text).nullable(),
    Field::new("clientId", Kind::Text),
    Field::new("clientHost", Kind::Text),
    Field::new("rebalanceTimeoutMs", Kind::Int32),
    Field::new("topologyEpoch", Kind::Int32),
    Field::new("processId", Kind::Text),
    Field::new("userEndpoint", Kind::Struct(ENDPOINT)).nullable(),
    Field::new("clientTags", Kind::List(&Kind::Struct(KEY_VALUE))),
];

const TASKS: &[Field] =
    &[Field::new("subtopologyId", Kind::Text), Field::new("partitions", Kind::List(&Kind::Int32))];

const OWNED_TASKS: &[Field] = &[
    Field::new("subtopologyId", Kind::Text),
    Field::new("partitions", Kind::List(&Kind::Int32)),
    Field::new("assignmentEpochs", Kind::List(&Kind::Int32)).nullable().tagged(0),
];

const STREAMS_TARGET_MEMBER: &[Field] = &[
    Field::new("activeTasks", Kind::List(&Kind::Struct(TASKS))),
    Field::new("standbyTasks", Kind::List(&Kind::Struct(TASKS))),
    Field::new("warmupTasks", Kind::List(&Kind::Struct(TASKS))),
];

const STREAMS_CURRENT_ASSIGNMENT: &[Field] = &[
    Field::new("memberEpoch", Kind::Int32),
    Field::new("previousMemberEpoch", Kind::Int32),
    Field::new("state", Kind::Int8),
    Field::new("activeTasks", Kind::List(&Kind::Struct(OWNED_TASKS))),
    Field::new("standbyTasks", Kind::List(&Kind::Struct(OWNED_TASKS))),
    Field::new("warmupTasks", Kind::List(&Kind::Struct(OWNED_TASKS))),
    Field::new("activeTasksPendingRevocation", Kind::List(&Kind::Struct(OWNED_TASKS))),
    Field::new("standbyTasksPendingRevocation", Kind::List(&Kind::Struct(OWNED_TASKS))),
    Field::new("warmupTasksPendingRevocation", Kind::List(&Kind::Struct(OWNED_TASKS))),
];

const INTERNAL_TOPIC: &[Field] = &[
    Field::new("name", Kind::Text),
    Field::new("partitions", Kind::Int32),
    Field::new("replicationFactor", Kind::Int16),
    Field::new("topicConfigs", Kind::List(&Kind::Struct(KEY_VALUE))),
];

const COPARTITION_GROUP: &[Field] = &[
    Field::new("sourceTopics", Kind::List(&Kind::Int16)),
    Field::new("sourceTopicRegex", Kind::List(&Kind::Int16)),
    Field::new("repartitionSourceTopics", Kind::List(&Kind::Int16)),
];

const SUBTOPOLOGY: &[Field] = &[
    Field::new("subtopologyId", Kind::Text),
    Field::new("sourceTopics", Kind::List(&Kind::Text)),
    Field::new("sourceTopicRegex", Kind::List(&Kind::Text)),
    Field::new("stateChangelogTopics", Kind::List(&Kind::Struct(INTERNAL_TOPIC))),
    Field::new("repartitionSinkTopics", Kind::List(&Kind::Text)),
    Field::new("repartitionSourceTopics", Kind::List(&Kind::Struct(INTERNAL_TOPIC))),
    Field::new("copartitionGroups", Kind::List(&Kind::Struct(COPARTITION_GROUP))),
];

const STREAMS_TOPOLOGY: &[Field] = &[
    Field::new("epoch", Kind::Int32),
    Field::new("subtopologies", Kind::List(&Kind::Struct(SUBTOPOLOGY))),
];

const RESOLVED_TOPICS: &[Field] =
    &[Field::new("subtopologyId", Kind::Text), Field::new("topicIds", Kind::List(&Kind::Uuid))];

const STREAMS_RESOLVED: &[Field] = &[
    Field::new("assignmentEpoch", Kind::Int32),
    Field::new("resolvedTopicIdsBySubtopology", Kind::List(&Kind::Struct(RESOLVED_TOPICS))),
];

const SHARE_METADATA: &[Field] =
    &[Field::new("epoch", Kind::Int32), Field::new("metadataHash", Kind::Int64)];

/// Record types by the number that starts the key.
pub(super) const STREAMS_AND_SHARE: &[Keyed] = &[
    group_key(9, "ShareGroupPartitionMetadata", EARLY_SHARE_STATE).unsettled(),
    member_key(10, "ShareGroupMemberMetadata", SHARE_MEMBER).unsettled(),
    group_key(11, "ShareGroupMetadata", SHARE_METADATA).unsettled(),
    group_key(12, "ShareGroupTargetAssignmentMetadata", TARGET_METADATA).unsettled(),
    member_key(13, "ShareGroupTargetAssignmentMember", TARGET_MEMBER).unsettled(),
    member_key(14, "ShareGroupCurrentMemberAssignment", SHARE_CURRENT_ASSIGNMENT).unsettled(),
    group_key(15, "ShareGroupStatePartitionMetadata", SHARE_STATE).unsettled(),
    group_key(17, "StreamsGroupMetadata", STREAMS_METADATA).unsettled(),
    group_key(18, "StreamsGroupPartitionMetadata", PARTITION_METADATA).unsettled(),
    member_key(19, "StreamsGroupMemberMetadata", STREAMS_MEMBER).unsettled(),
    group_key(20, "StreamsGroupTargetAssignmentMetadata", TARGET_METADATA).unsettled(),
    member_key(21, "StreamsGroupTargetAssignmentMember", STREAMS_TARGET_MEMBER).unsettled(),
    member_key(22, "StreamsGroupCurrentMemberAssignment", STREAMS_CURRENT_ASSIGNMENT).unsettled(),
    group_key(23, "StreamsGroupTopology", STREAMS_TOPOLOGY).unsettled(),
    group_key(24, "StreamsGroupTargetAssignmentResolvedTopicIds", STREAMS_RESOLVED).unsettled(),
];

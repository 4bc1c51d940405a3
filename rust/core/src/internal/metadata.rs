//! `__cluster_metadata`: what the controllers know, as a log of changes.
//!
//! A record has no key. Its value is a frame: uvarint frame version (1), uvarint type, uvarint
//! version of the record, then the message in flexible encoding and nothing after it.

use super::schema::{Field, Kind, Message};

/// A record type.
#[derive(Debug)]
pub(super) struct RecordType {
    pub(super) id: u32,
    pub(super) kind: &'static str,
    pub(super) message: Message,
}

const fn record(id: u32, kind: &'static str, latest: i16, fields: &'static [Field]) -> RecordType {
    RecordType { id, kind, message: Message::flexible(latest, fields) }
}

const ENDPOINT: &[Field] = &[
    Field::new("name", Kind::Text),
    Field::new("host", Kind::Text),
    Field::new("port", Kind::Uint16),
    Field::new("securityProtocol", Kind::Int16),
];

const FEATURE: &[Field] = &[
    Field::new("name", Kind::Text),
    Field::new("minSupportedVersion", Kind::Int16),
    Field::new("maxSupportedVersion", Kind::Int16),
];

const REGISTER_BROKER: &[Field] = &[
    Field::new("brokerId", Kind::Int32),
    Field::new("isMigratingZkBroker", Kind::Bool).since(2),
    Field::new("incarnationId", Kind::Uuid),
    Field::new("brokerEpoch", Kind::Int64),
    Field::new("endPoints", Kind::List(&Kind::Struct(ENDPOINT))),
    Field::new("features", Kind::List(&Kind::Struct(FEATURE))),
    Field::new("rack", Kind::Text).nullable(),
    Field::new("fenced", Kind::Bool),
    Field::new("inControlledShutdown", Kind::Bool).since(1),
    Field::new("logDirs", Kind::List(&Kind::Uuid)).since(3).tagged(0),
    Field::new("cordonedLogDirs", Kind::List(&Kind::Uuid)).since(4).nullable().tagged(1),
];

const REGISTER_CONTROLLER: &[Field] = &[
    Field::new("controllerId", Kind::Int32),
    Field::new("incarnationId", Kind::Uuid),
    Field::new("zkMigrationReady", Kind::Bool),
    Field::new("endPoints", Kind::List(&Kind::Struct(ENDPOINT))),
    Field::new("features", Kind::List(&Kind::Struct(FEATURE))),
];

const BROKER_CHANGE: &[Field] = &[
    Field::new("brokerId", Kind::Int32),
    Field::new("brokerEpoch", Kind::Int64),
    Field::new("fenced", Kind::Int8).tagged(0),
    Field::new("inControlledShutdown", Kind::Int8).since(1).tagged(1),
    Field::new("logDirs", Kind::List(&Kind::Uuid)).since(2).tagged(2),
    Field::new("cordonedLogDirs", Kind::List(&Kind::Uuid)).since(3).nullable().tagged(3),
];

const BROKER_AND_EPOCH: &[Field] =
    &[Field::new("brokerId", Kind::Int32), Field::new("brokerEpoch", Kind::Int64)];

const FENCED_BROKER: &[Field] = &[Field::new("id", Kind::Int32), Field::new("epoch", Kind::Int64)];

const PARTITION: &[Field] = &[
    Field::new("partitionId", Kind::Int32),
    Field::new("topicId", Kind::Uuid),
    Field::new("replicas", Kind::List(&Kind::Int32)),
    Field::new("isr", Kind::List(&Kind::Int32)),
    Field::new("removingReplicas", Kind::List(&Kind::Int32)),
    Field::new("addingReplicas", Kind::List(&Kind::Int32)),
    Field::new("leader", Kind::Int32),
    Field::new("leaderRecoveryState", Kind::Int8).tagged(0),
    Field::new("leaderEpoch", Kind::Int32),
    Field::new("partitionEpoch", Kind::Int32),
    Field::new("directories", Kind::List(&Kind::Uuid)).since(1),
    Field::new("eligibleLeaderReplicas", Kind::List(&Kind::Int32)).since(2).nullable().tagged(1),
    Field::new("lastKnownElr", Kind::List(&Kind::Int32)).since(2).nullable().tagged(2),
];

const PARTITION_CHANGE: &[Field] = &[
    Field::new("partitionId", Kind::Int32),
    Field::new("topicId", Kind::Uuid),
    Field::new("isr", Kind::List(&Kind::Int32)).nullable().tagged(0),
    Field::new("leader", Kind::Int32).tagged(1),
    Field::new("replicas", Kind::List(&Kind::Int32)).nullable().tagged(2),
    Field::new("removingReplicas", Kind::List(&Kind::Int32)).nullable().tagged(3),
    Field::new("addingReplicas", Kind::List(&Kind::Int32)).nullable().tagged(4),
    Field::new("leaderRecoveryState", Kind::Int8).tagged(5),
    Field::new("eligibleLeaderReplicas", Kind::List(&Kind::Int32)).since(2).nullable().tagged(6),
    Field::new("lastKnownElr", Kind::List(&Kind::Int32)).since(2).nullable().tagged(7),
    Field::new("directories", Kind::List(&Kind::Uuid)).since(1).nullable().tagged(8),
];

const CONFIG: &[Field] = &[
    Field::new("resourceType", Kind::Int8),
    Field::new("resourceName", Kind::Text),
    Field::new("name", Kind::Text),
    Field::new("value", Kind::Text).nullable(),
];

const QUOTA_ENTITY: &[Field] =
    &[Field::new("entityType", Kind::Text), Field::new("entityName", Kind::Text).nullable()];

const CLIENT_QUOTA: &[Field] = &[
    Field::new("entity", Kind::List(&Kind::Struct(QUOTA_ENTITY))),
    Field::new("key", Kind::Text),
    Field::new("value", Kind::Float64),
    Field::new("remove", Kind::Bool),
];

const DELEGATION_TOKEN: &[Field] = &[
    Field::new("owner", Kind::Text),
    Field::new("requester", Kind::Text),
    Field::new("renewers", Kind::List(&Kind::Text)),
    Field::new("issueTimestamp", Kind::Int64),
    Field::new("maxTimestamp", Kind::Int64),
    Field::new("expirationTimestamp", Kind::Int64),
    Field::new("tokenId", Kind::Text),
];

const SCRAM_CREDENTIAL: &[Field] = &[
    Field::new("name", Kind::Text),
    Field::new("mechanism", Kind::Int8),
    Field::new("salt", Kind::Bytes),
    Field::new("storedKey", Kind::Bytes),
    Field::new("serverKey", Kind::Bytes),
    Field::new("iterations", Kind::Int32),
];

const ACCESS_CONTROL: &[Field] = &[
    Field::new("id", Kind::Uuid),
    Field::new("resourceType", Kind::Int8),
    Field::new("resourceName", Kind::Text),
    Field::new("patternType", Kind::Int8),
    Field::new("principal", Kind::Text),
    Field::new("host", Kind::Text),
    Field::new("operation", Kind::Int8),
    Field::new("permissionType", Kind::Int8),
];

const TOPIC: &[Field] = &[Field::new("name", Kind::Text), Field::new("topicId", Kind::Uuid)];

const FEATURE_LEVEL: &[Field] =
    &[Field::new("name", Kind::Text), Field::new("featureLevel", Kind::Int16)];

const PRODUCER_IDS: &[Field] = &[
    Field::new("brokerId", Kind::Int32),
    Field::new("brokerEpoch", Kind::Int64),
    Field::new("nextProducerId", Kind::Int64),
];

const SCRAM_USER: &[Field] = &[Field::new("name", Kind::Text), Field::new("mechanism", Kind::Int8)];

const TOPIC_ID: &[Field] = &[Field::new("topicId", Kind::Uuid)];
const ENTRY_ID: &[Field] = &[Field::new("id", Kind::Uuid)];
const TOKEN_ID: &[Field] = &[Field::new("tokenId", Kind::Text)];
const TOPIC_NAME: &[Field] = &[Field::new("topicName", Kind::Text)];
const CONTROLLER_ID: &[Field] = &[Field::new("controllerId", Kind::Int32)];
const MIGRATION_STATE: &[Field] = &[Field::new("zkMigrationState", Kind::Int8)];
const TRANSACTION_NAME: &[Field] = &[Field::new("name", Kind::Text).nullable().tagged(0)];
const ABORT_REASON: &[Field] = &[Field::new("reason", Kind::Text).nullable().tagged(0)];

/// Record types by the number in the frame.
pub(super) const TYPES: &[RecordType] = &[
    record(0, "RegisterBroker", 4, REGISTER_BROKER),
    record(1, "UnregisterBroker", 0, BROKER_AND_EPOCH),
    record(2, "Topic", 0, TOPIC),
    record(3, "Partition", 2, PARTITION),
    record(4, "Config", 0, CONFIG),
    record(5, "PartitionChange", 2, PARTITION_CHANGE),
    record(7, "FenceBroker", 0, FENCED_BROKER),
    record(8, "UnfenceBroker", 0, FENCED_BROKER),
    record(9, "RemoveTopic", 0, TOPIC_ID),
    record(10, "DelegationToken", 0, DELEGATION_TOKEN),
    record(11, "UserScramCredential", 0, SCRAM_CREDENTIAL),
    record(12, "FeatureLevel", 0, FEATURE_LEVEL),
    record(14, "ClientQuota", 0, CLIENT_QUOTA),
    record(15, "ProducerIds", 0, PRODUCER_IDS),
    record(17, "BrokerRegistrationChange", 3, BROKER_CHANGE),
    record(18, "AccessControlEntry", 0, ACCESS_CONTROL),
    record(19, "RemoveAccessControlEntry", 0, ENTRY_ID),
    record(20, "NoOp", 0, &[]),
    record(21, "ZkMigrationState", 0, MIGRATION_STATE),
    record(22, "RemoveUserScramCredential", 0, SCRAM_USER),
    record(23, "BeginTransaction", 0, TRANSACTION_NAME),
    record(24, "EndTransaction", 0, &[]),
    record(25, "AbortTransaction", 0, ABORT_REASON),
    record(26, "RemoveDelegationToken", 0, TOKEN_ID),
    record(27, "RegisterController", 0, REGISTER_CONTROLLER),
    record(28, "ClearElr", 0, TOPIC_NAME),
    record(29, "UnregisterController", 0, CONTROLLER_ID),
];

//! Control records in the form of the other internal records, under the names that Kafka prints.

use std::borrow::Cow;

use super::{InternalRecord, Value};
use crate::record::{
    ControlRecord, ControlType, CorruptKind, Endpoint, Headers, KRaftVoter, RecordView, Voter,
};

/// Decodes a record of a control batch: transaction markers of any topic, and what the quorum
/// writes to the metadata log and its snapshots. The key is the number of its type.
pub fn decode_control(
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<InternalRecord, CorruptKind> {
    let view = RecordView { offset: 0, timestamp: 0, key, value, headers: Headers::default() };
    let kind = ControlType::from_key(key)?;
    let record = ControlRecord::decode(&view)?;
    // Every control value starts with its version.
    let version = match (kind, value.and_then(<[u8]>::first_chunk)) {
        (ControlType::Unknown(_), _) | (_, None) => -1,
        (_, Some(version)) => i16::from_be_bytes(*version),
    };
    Ok(InternalRecord {
        kind: match kind {
            ControlType::Unknown(id) => Cow::Owned(format!("unknown({id})")),
            known => Cow::Borrowed(known.name()),
        },
        version,
        key: Value::Record(vec![("type", Value::Int(kind.id().into()))]),
        value: match record {
            ControlRecord::Unknown(_) => super::raw(value),
            known => Value::Record(fields(&known)),
        },
    })
}

type Fields = Vec<(&'static str, Value)>;

fn fields(record: &ControlRecord) -> Fields {
    match record {
        ControlRecord::Abort(marker) | ControlRecord::Commit(marker) => {
            vec![("coordinatorEpoch", Value::Int(marker.coordinator_epoch.into()))]
        }
        ControlRecord::LeaderChange(change) => vec![
            ("leaderId", Value::Int(change.leader_id.into())),
            ("voters", list(&change.voters, voter)),
            ("grantingVoters", list(&change.granting_voters, voter)),
        ],
        ControlRecord::SnapshotHeader { last_contained_log_timestamp } => {
            vec![("lastContainedLogTimestamp", Value::Int(*last_contained_log_timestamp))]
        }
        ControlRecord::KRaftVersion(version) => {
            vec![("kRaftVersion", Value::Int((*version).into()))]
        }
        ControlRecord::KRaftVoters(voters) => vec![("voters", list(voters, kraft_voter))],
        ControlRecord::SnapshotFooter | ControlRecord::Unknown(_) => Vec::new(),
    }
}

fn list<T>(items: &[T], fields: impl Fn(&T) -> Fields) -> Value {
    Value::List(items.iter().map(|item| Value::Record(fields(item))).collect())
}

fn voter(voter: &Voter) -> Fields {
    let mut fields = vec![("voterId", Value::Int(voter.id.into()))];
    fields.extend(voter.directory_id.map(|id| ("voterDirectoryId", Value::Uuid(id))));
    fields
}

fn kraft_voter(voter: &KRaftVoter) -> Fields {
    let versions = vec![
        ("minSupportedVersion", Value::Int(voter.kraft_version_min.into())),
        ("maxSupportedVersion", Value::Int(voter.kraft_version_max.into())),
    ];
    vec![
        ("voterId", Value::Int(voter.id.into())),
        ("voterDirectoryId", Value::Uuid(voter.directory_id)),
        ("endpoints", list(&voter.endpoints, endpoint)),
        ("kRaftVersionFeature", Value::Record(versions)),
    ]
}

fn endpoint(endpoint: &Endpoint) -> Fields {
    vec![
        ("name", Value::Text(endpoint.name.clone())),
        ("host", Value::Text(endpoint.host.clone())),
        ("port", Value::Int(endpoint.port.into())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_its_type_version_and_epoch() {
        let decoded = decode_control(Some(&[0, 0, 0, 1]), Some(&[0, 3, 0, 0, 0, 9])).unwrap();
        assert_eq!(decoded.kind, "COMMIT");
        assert_eq!(decoded.version, 3);
        assert_eq!(decoded.key.get("type"), Some(&Value::Int(1)));
        assert_eq!(decoded.value.get("coordinatorEpoch"), Some(&Value::Int(9)));
    }

    #[test]
    fn an_unknown_type_keeps_its_bytes() {
        let decoded = decode_control(Some(&[0, 0, 0, 77]), Some(&[1, 2, 3])).unwrap();
        assert_eq!(decoded.kind, "unknown(77)");
        assert_eq!((decoded.version, decoded.value), (-1, Value::Bytes(vec![1, 2, 3])));
        assert_eq!(decode_control(Some(&[0, 0, 0, 77]), None).unwrap().value, Value::Null);
    }

    #[test]
    fn what_the_control_decoder_refuses_is_refused() {
        assert!(decode_control(None, Some(&[0; 6])).is_err());
        assert!(decode_control(Some(&[0, 0, 0, 1]), None).is_err());
        assert!(decode_control(Some(&[0, 0, 0, 1]), Some(&[0; 5])).is_err());
    }
}

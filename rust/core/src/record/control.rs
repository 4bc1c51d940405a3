//! Control records: what brokers and controllers write between the records of applications.
//!
//! The key says what the value is:
//!
//! | position | type | field |
//! |---|---|---|
//! | 0 | i16 | version: 0; higher ones are read alike, negative ones refused |
//! | 2 | i16 | type |
//!
//! | type | name | value |
//! |---|---|---|
//! | 0, 1 | ABORT, COMMIT | i16 version, i32 coordinator epoch |
//! | 2 | `LEADER_CHANGE` | i16 version, i32 leader, voters, granting voters |
//! | 3 | `SNAPSHOT_HEADER` | i16 version, i64 timestamp of the last record contained |
//! | 4 | `SNAPSHOT_FOOTER` | i16 version |
//! | 5 | `KRAFT_VERSION` | i16 version, i16 `kraft.version` |
//! | 6 | `KRAFT_VOTERS` | i16 version, voters with directory id, endpoints and versions |
//!
//! 1. Types 0 and 1 stand alone in a transactional control batch; the others stand in control
//!    batches of the metadata log and of its snapshots, several to a batch.
//! 2. Types 2 to 6 use the flexible encoding of [`Flexible`] and end with tagged fields.
//! 3. Readers pass over types they do not know. Bytes after what is known are ignored.

use super::flexible::Flexible;
use super::{CorruptKind, RecordView};
use crate::uuid::Uuid;

/// What a control record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlType {
    /// The transaction of this producer was aborted.
    Abort,
    /// The transaction of this producer was committed.
    Commit,
    /// A controller became leader of the metadata log.
    LeaderChange,
    /// First record of a metadata snapshot.
    SnapshotHeader,
    /// Last record of a metadata snapshot.
    SnapshotFooter,
    /// The `kraft.version` in force.
    KRaftVersion,
    /// The voters in force.
    KRaftVoters,
    /// A type this release does not know.
    Unknown(i16),
}

impl ControlType {
    /// The type in the key of a control record.
    pub fn from_key(key: Option<&[u8]>) -> Result<Self, CorruptKind> {
        let Some(&[v0, v1, t0, t1, ..]) = key else {
            return Err(CorruptKind::Control("its key is shorter than 4 bytes"));
        };
        if i16::from_be_bytes([v0, v1]) < 0 {
            return Err(CorruptKind::Control("its key has a negative version"));
        }
        Ok(Self::from_id(i16::from_be_bytes([t0, t1])))
    }

    /// The type of an id.
    pub fn from_id(id: i16) -> Self {
        match id {
            0 => Self::Abort,
            1 => Self::Commit,
            2 => Self::LeaderChange,
            3 => Self::SnapshotHeader,
            4 => Self::SnapshotFooter,
            5 => Self::KRaftVersion,
            6 => Self::KRaftVoters,
            other => Self::Unknown(other),
        }
    }

    /// The id of the type.
    pub fn id(self) -> i16 {
        match self {
            Self::Abort => 0,
            Self::Commit => 1,
            Self::LeaderChange => 2,
            Self::SnapshotHeader => 3,
            Self::SnapshotFooter => 4,
            Self::KRaftVersion => 5,
            Self::KRaftVoters => 6,
            Self::Unknown(id) => id,
        }
    }

    /// Kafka's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Abort => "ABORT",
            Self::Commit => "COMMIT",
            Self::LeaderChange => "LEADER_CHANGE",
            Self::SnapshotHeader => "SNAPSHOT_HEADER",
            Self::SnapshotFooter => "SNAPSHOT_FOOTER",
            Self::KRaftVersion => "KRAFT_VERSION",
            Self::KRaftVoters => "KRAFT_VOTERS",
            Self::Unknown(_) => "UNKNOWN",
        }
    }

    /// The key of a control record of this type.
    pub fn to_key(self) -> [u8; 4] {
        let [t0, t1] = self.id().to_be_bytes();
        [0, 0, t0, t1]
    }
}

/// The value of an ABORT or COMMIT record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTxnMarker {
    /// Epoch of the transaction coordinator that decided.
    pub coordinator_epoch: i32,
}

impl EndTxnMarker {
    /// Reads the value.
    pub fn decode(value: &[u8]) -> Result<Self, CorruptKind> {
        let mut fields = Flexible::new(value);
        not_negative(fields.i16()?)?;
        Ok(Self { coordinator_epoch: fields.i32()? })
    }

    /// The value as brokers write it.
    pub fn to_value(self) -> [u8; 6] {
        let [e0, e1, e2, e3] = self.coordinator_epoch.to_be_bytes();
        [0, 0, e0, e1, e2, e3]
    }
}

/// A voter of a leader election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Voter {
    /// Node id.
    pub id: i32,
    /// Id of its metadata directory, from version 1 on.
    pub directory_id: Option<Uuid>,
}

/// The value of a `LEADER_CHANGE` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderChange {
    /// Version of the value.
    pub version: i16,
    /// Node id of the new leader.
    pub leader_id: i32,
    /// All voters.
    pub voters: Vec<Voter>,
    /// The voters that voted for the leader.
    pub granting_voters: Vec<Voter>,
}

/// Where a voter listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Name of the listener.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A voter of a `KRAFT_VOTERS` record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KRaftVoter {
    /// Node id.
    pub id: i32,
    /// Id of its metadata directory.
    pub directory_id: Uuid,
    /// Where it listens.
    pub endpoints: Vec<Endpoint>,
    /// Lowest `kraft.version` it speaks.
    pub kraft_version_min: i16,
    /// Highest `kraft.version` it speaks.
    pub kraft_version_max: i16,
}

/// A decoded control record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRecord {
    /// The transaction of this producer was aborted.
    Abort(EndTxnMarker),
    /// The transaction of this producer was committed.
    Commit(EndTxnMarker),
    /// A controller became leader of the metadata log.
    LeaderChange(LeaderChange),
    /// First record of a metadata snapshot.
    SnapshotHeader {
        /// Append time of the last record the snapshot contains.
        last_contained_log_timestamp: i64,
    },
    /// Last record of a metadata snapshot.
    SnapshotFooter,
    /// The `kraft.version` in force.
    KRaftVersion(i16),
    /// The voters in force.
    KRaftVoters(Vec<KRaftVoter>),
    /// A type this release does not know.
    Unknown(i16),
}

impl ControlRecord {
    /// Decodes a record of a control batch.
    pub fn decode(record: &RecordView<'_>) -> Result<Self, CorruptKind> {
        let kind = ControlType::from_key(record.key)?;
        if let ControlType::Unknown(id) = kind {
            return Ok(Self::Unknown(id));
        }
        let value = record.value.ok_or(CorruptKind::Control("it has no value"))?;
        if matches!(kind, ControlType::Abort | ControlType::Commit) {
            let marker = EndTxnMarker::decode(value)?;
            return Ok(match kind {
                ControlType::Abort => Self::Abort(marker),
                _ => Self::Commit(marker),
            });
        }
        let mut fields = Flexible::new(value);
        let version = not_negative(fields.i16()?)?;
        let decoded = match kind {
            ControlType::LeaderChange => Self::LeaderChange(leader_change(version, &mut fields)?),
            ControlType::SnapshotHeader => {
                Self::SnapshotHeader { last_contained_log_timestamp: fields.i64()? }
            }
            ControlType::KRaftVersion => Self::KRaftVersion(fields.i16()?),
            ControlType::KRaftVoters => {
                Self::KRaftVoters(fields.array(KRAFT_VOTER_BYTES_MIN, kraft_voter)?)
            }
            _ => Self::SnapshotFooter,
        };
        fields.skip_tags()?;
        Ok(decoded)
    }
}

/// Node id and tagged-field count.
const VOTER_BYTES_MIN: usize = 5;
/// Node id, directory id, endpoint count, two versions and two tagged-field counts.
const KRAFT_VOTER_BYTES_MIN: usize = 27;
/// Two string lengths, port and tagged-field count.
const ENDPOINT_BYTES_MIN: usize = 5;

fn leader_change(version: i16, fields: &mut Flexible<'_>) -> Result<LeaderChange, CorruptKind> {
    let voter = |fields: &mut Flexible<'_>| {
        let id = fields.i32()?;
        let directory_id = if version >= 1 { Some(Uuid(fields.uuid()?)) } else { None };
        fields.skip_tags()?;
        Ok(Voter { id, directory_id })
    };
    Ok(LeaderChange {
        version,
        leader_id: fields.i32()?,
        voters: fields.array(VOTER_BYTES_MIN, voter)?,
        granting_voters: fields.array(VOTER_BYTES_MIN, voter)?,
    })
}

fn kraft_voter(fields: &mut Flexible<'_>) -> Result<KRaftVoter, CorruptKind> {
    let id = fields.i32()?;
    let directory_id = Uuid(fields.uuid()?);
    let endpoints = fields.array(ENDPOINT_BYTES_MIN, endpoint)?;
    let (kraft_version_min, kraft_version_max) = (fields.i16()?, fields.i16()?);
    // The two versions are a structure of their own inside the voter.
    fields.skip_tags()?;
    fields.skip_tags()?;
    Ok(KRaftVoter { id, directory_id, endpoints, kraft_version_min, kraft_version_max })
}

fn endpoint(fields: &mut Flexible<'_>) -> Result<Endpoint, CorruptKind> {
    let endpoint = Endpoint {
        name: fields.string()?.to_owned(),
        host: fields.string()?.to_owned(),
        port: fields.u16()?,
    };
    fields.skip_tags()?;
    Ok(endpoint)
}

fn not_negative(version: i16) -> Result<i16, CorruptKind> {
    if version < 0 {
        return Err(CorruptKind::Control("its value has a negative version"));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::super::{BatchView, Headers, Records, samples};
    use super::*;

    fn decode(key: &[u8], value: Option<&[u8]>) -> Result<ControlRecord, CorruptKind> {
        ControlRecord::decode(&RecordView {
            offset: 0,
            timestamp: 0,
            key: Some(key),
            value,
            headers: Headers::default(),
        })
    }

    fn decode_type(id: i16, value: &str) -> Result<ControlRecord, CorruptKind> {
        decode(&ControlType::from_id(id).to_key(), Some(&samples::hex(value)))
    }

    fn voter(id: i32) -> Voter {
        Voter { id, directory_id: None }
    }

    const VOTERS: &str = "00 00 02 00 00 00 01 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 02
         0b 43 4f 4e 54 52 4f 4c 4c 45 52 06 68 6f 73 74 31 23 85 00 00 00 00 01 00 00 00";

    #[test]
    fn transaction_markers_decode_and_encode() {
        let marker = EndTxnMarker { coordinator_epoch: 9 };
        assert_eq!(decode_type(0, "000000000009"), Ok(ControlRecord::Abort(marker)));
        assert_eq!(decode_type(1, "000000000009"), Ok(ControlRecord::Commit(marker)));
        assert_eq!(marker.to_value().to_vec(), samples::hex("000000000009"));
        assert_eq!(ControlType::Commit.to_key(), [0, 0, 0, 1]);
        assert_eq!(
            decode_type(0, "0005 00000009 ffff"),
            Ok(ControlRecord::Abort(marker)),
            "a higher version is read like version 0"
        );
    }

    #[test]
    fn a_marker_batch_gives_its_marker() {
        for (bytes, kind) in
            [(samples::batch_e(), ControlType::Commit), (samples::batch_f(), ControlType::Abort)]
        {
            let batch = BatchView::parse(&bytes).unwrap();
            let mut records = Records::new(batch.header(), batch.payload());
            let record = records.next_record().unwrap().unwrap();
            assert_eq!(ControlType::from_key(record.key), Ok(kind));
            assert!(matches!(
                ControlRecord::decode(&record),
                Ok(ControlRecord::Abort(marker) | ControlRecord::Commit(marker))
                    if marker.coordinator_epoch == 9
            ));
        }
    }

    #[test]
    fn a_leader_change_names_leader_and_voters() {
        let expected = LeaderChange {
            version: 0,
            leader_id: 1,
            voters: vec![voter(1), voter(2), voter(3)],
            granting_voters: vec![voter(1), voter(3)],
        };
        assert_eq!(
            decode(&ControlType::LeaderChange.to_key(), Some(&samples::leader_change())),
            Ok(ControlRecord::LeaderChange(expected))
        );
        let version_1 =
            "00 01 00 00 00 07 02 00 00 00 07 000102030405060708090a0b0c0d0e0f 00 01 00";
        let directory_id = Uuid(std::array::from_fn(|at| u8::try_from(at).unwrap()));
        assert_eq!(
            decode_type(2, version_1),
            Ok(ControlRecord::LeaderChange(LeaderChange {
                version: 1,
                leader_id: 7,
                voters: vec![Voter { id: 7, directory_id: Some(directory_id) }],
                granting_voters: vec![],
            }))
        );
    }

    #[test]
    fn snapshot_and_version_records_decode() {
        assert_eq!(
            decode_type(3, "00 00 00 00 01 8b cf e5 68 00 00"),
            Ok(ControlRecord::SnapshotHeader { last_contained_log_timestamp: samples::T0 })
        );
        assert_eq!(decode_type(4, "00 00 00"), Ok(ControlRecord::SnapshotFooter));
        assert_eq!(decode_type(5, "00 00 00 01 00"), Ok(ControlRecord::KRaftVersion(1)));
    }

    #[test]
    fn voters_come_with_their_endpoints() {
        let expected = KRaftVoter {
            id: 1,
            directory_id: Uuid(std::array::from_fn(|at| u8::try_from(at).unwrap())),
            endpoints: vec![Endpoint {
                name: "CONTROLLER".to_owned(),
                host: "host1".to_owned(),
                port: 9093,
            }],
            kraft_version_min: 0,
            kraft_version_max: 1,
        };
        assert_eq!(decode_type(6, VOTERS), Ok(ControlRecord::KRaftVoters(vec![expected])));
    }

    #[test]
    fn unknown_types_pass_and_bad_keys_do_not() {
        assert_eq!(decode(&[0, 0, 0, 9], None), Ok(ControlRecord::Unknown(9)));
        assert_eq!(decode(&[0, 1, 0xff, 0xff, 3], None), Ok(ControlRecord::Unknown(-1)));
        assert!(decode(&[0, 0, 0], Some(&[])).is_err());
        assert!(decode(&[0x80, 0, 0, 1], Some(&[0; 6])).is_err());
        assert!(decode(&[0, 0, 0, 1], None).is_err());
        assert!(decode_type(1, "ffff 00000000").is_err());
        assert!(decode_type(5, "ffff 0001 00").is_err());
        assert!(ControlType::from_key(None).is_err());
    }

    #[test]
    fn every_cut_of_every_value_is_refused() {
        for (id, whole) in [
            (1, samples::hex("000000000009")),
            (2, samples::leader_change()),
            (3, samples::hex("00 00 00 00 01 8b cf e5 68 00 00")),
            (4, samples::hex("00 00 00")),
            (5, samples::hex("00 00 00 01 00")),
            (6, samples::hex(VOTERS)),
        ] {
            for end in 0..whole.len() {
                let cut = decode(&ControlType::from_id(id).to_key(), Some(&whole[..end]));
                assert!(cut.is_err(), "type {id} cut at {end}");
            }
        }
    }
}

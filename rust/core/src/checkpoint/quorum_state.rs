//! `quorum-state` beside the metadata log: who leads the quorum and whom this node voted for.
//!
//! ```text
//! {"clusterId":"","leaderId":1,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}
//! {"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"…","data_version":1}
//! ```
//!
//! Replaced, with fsync, before a vote is given or a new epoch is entered.

use super::json::Json;
use crate::record::CorruptKind;
use crate::uuid::Uuid;

const FIELD: CorruptKind = CorruptKind::Side("quorum-state lacks a field or holds a wrong one");

/// What the file says; −1 stands for "none", as in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumState {
    /// Format version, 0 or 1.
    pub version: i16,
    /// The leader.
    pub leader_id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Whom this node voted for.
    pub voted_id: i32,
    /// The directory of that candidate (version 1).
    pub voted_directory_id: Option<Uuid>,
    /// The voters (version 0; in version 1 they are in the log).
    pub voters: Vec<i32>,
}

impl QuorumState {
    /// Reads the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let json = Json::parse(bytes)?;
        let version: i16 = integer(&json, "data_version")?;
        if !(0..=1).contains(&version) {
            return Err(CorruptKind::Side("quorum-state version is not 0 or 1"));
        }
        let voted_directory_id = match json.get("votedDirectoryId") {
            Some(Json::Text(id)) => Some(Uuid::parse(id).ok_or(FIELD)?),
            Some(_) => return Err(FIELD),
            None => None,
        };
        let voters = match json.get("currentVoters") {
            Some(Json::List(voters)) => {
                let ids = voters.iter().map(|voter| integer(voter, "voterId"));
                ids.collect::<Result<_, _>>()?
            }
            Some(Json::Null) | None => Vec::new(),
            Some(_) => return Err(FIELD),
        };
        Ok(Self {
            version,
            leader_id: integer(&json, "leaderId")?,
            leader_epoch: integer(&json, "leaderEpoch")?,
            voted_id: integer(&json, "votedId")?,
            voted_directory_id,
            voters,
        })
    }
}

fn integer<T: std::str::FromStr>(json: &Json, name: &str) -> Result<T, CorruptKind> {
    json.get(name).and_then(Json::integer).ok_or(FIELD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_least, corpus_files};

    #[test]
    fn both_versions_of_the_corpus_read() {
        let files = corpus_files(crate::names::QUORUM_STATE);
        let mut seen = Vec::new();
        for (path, bytes) in &files {
            let state = QuorumState::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            assert_eq!((state.leader_id, state.leader_epoch, state.voted_id), (1, 1, -1));
            assert_eq!(state.voters.is_empty(), state.version == 1);
            seen.push(state.version);
        }
        seen.sort_unstable();
        assert!(files.len() >= at_least(2) && (files.len() < 2 || seen == [0, 1]), "{seen:?}");
    }

    #[test]
    fn missing_fields_and_other_versions_are_refused() {
        for text in [
            "{}",
            r#"{"leaderId":1,"leaderEpoch":5,"votedId":-1}"#,
            r#"{"leaderId":1,"leaderEpoch":5,"votedId":-1,"data_version":2}"#,
            r#"{"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"x","data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":"5","votedId":-1,"data_version":1}"#,
        ] {
            assert!(QuorumState::decode(text.as_bytes()).is_err(), "{text}");
        }
    }
}

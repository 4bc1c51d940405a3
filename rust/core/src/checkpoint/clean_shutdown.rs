//! `.kafka_cleanshutdown`: every log of the directory was closed cleanly.
//!
//! ```text
//! {"version":0,"brokerEpoch":13}       no line end
//! ```
//!
//! 1. The file's presence is the message. Older brokers (2.8 and before) write it empty; the epoch
//!    is then unknown, and so it is when the content does not parse: the logs still are clean.
//! 2. Unknown fields are ignored.
//!
//! Written last at shutdown, read and deleted first at start, so that a crash while loading is
//! an unclean stop.

use super::json::Json;
use crate::record::CorruptKind;

/// What the marker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanShutdown {
    /// Epoch of the broker that stopped, if known.
    pub broker_epoch: Option<i64>,
}

impl CleanShutdown {
    /// Reads the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        let json = Json::parse(bytes)?;
        let Json::Object(_) = json else {
            return Err(CorruptKind::Side("clean-shutdown marker is no JSON object"));
        };
        let broker_epoch = match json.get("brokerEpoch") {
            None | Some(Json::Null) => None,
            Some(epoch) => Some(epoch.integer().ok_or(CorruptKind::Side(
                "broker epoch of the clean-shutdown marker is no integer",
            ))?),
        };
        Ok(Self { broker_epoch })
    }

    /// The file; empty when the epoch is unknown.
    pub fn encode(&self) -> Vec<u8> {
        match self.broker_epoch {
            Some(epoch) => format!("{{\"version\":0,\"brokerEpoch\":{epoch}}}").into_bytes(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_least, corpus_files};

    fn epoch(text: &str) -> Option<i64> {
        CleanShutdown::decode(text.as_bytes()).unwrap().broker_epoch
    }

    #[test]
    fn unknown_fields_and_an_empty_file_are_fine() {
        assert_eq!(epoch(""), None);
        assert_eq!(epoch("\n"), None);
        assert_eq!(epoch(r#"{"version":0,"brokerEpoch":-1}"#), Some(-1));
        assert_eq!(
            epoch(r#"{"x":[{"brokerEpoch":1}],"brokerEpoch":9223372036854775807}"#),
            Some(i64::MAX)
        );
        assert_eq!(epoch(r#"{"version":3}"#), None);
    }

    #[test]
    fn other_content_is_refused() {
        for text in
            ["x", "[]", "{", r#"{"brokerEpoch":"1"}"#, r#"{"brokerEpoch":9223372036854775808}"#]
        {
            assert!(CleanShutdown::decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_marker_of_the_corpus_is_written_back_byte_for_byte() {
        let files = corpus_files(crate::names::CLEAN_SHUTDOWN);
        let mut with_epoch = 0;
        for (path, bytes) in &files {
            let marker = CleanShutdown::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            assert_eq!(&marker.encode(), bytes, "{}", path.display());
            with_epoch += usize::from(marker.broker_epoch.is_some());
        }
        assert!(files.len() >= at_least(36), "{} files", files.len());
        assert!(with_epoch >= at_least(20), "{with_epoch} with an epoch");
    }
}

//! `meta.properties`: the identity of a log directory.
//!
//! | version | keys |
//! |---|---|
//! | 0, or no `version` | `broker.id` (i32), `cluster.id`; both optional |
//! | 1 | `node.id` (i32, not negative), `cluster.id`; `directory.id` (optional) |
//!
//! 1. Unknown keys are ignored, and lost when the file is written again.
//! 2. A directory id is none of the reserved ones and differs from that of every other directory
//!    of the node; node and cluster are the same in all of them.
//!
//! Written when a directory is formatted. A missing file means a new, empty directory.

use super::Properties;
use crate::record::CorruptKind;
use crate::uuid::Uuid;

/// Who a log directory belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaProperties {
    /// Format version, 0 or 1.
    pub version: u8,
    /// The cluster.
    pub cluster_id: Option<String>,
    /// The node: `broker.id` in version 0, `node.id` in version 1.
    pub node_id: Option<i32>,
    /// The directory.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// Reads the file.
    pub fn decode(bytes: &[u8]) -> Result<Self, CorruptKind> {
        let properties = Properties::decode(bytes)?;
        let version = match properties.get("version") {
            None | Some("0") => 0,
            Some("1") => 1,
            Some(_) => return Err(CorruptKind::Side("meta.properties version is not 0 or 1")),
        };
        let meta = Self {
            version,
            cluster_id: properties.get("cluster.id").map(str::to_owned),
            node_id: node_id(&properties, version)?,
            directory_id: directory_id(&properties)?,
        };
        if version == 1 && (meta.cluster_id.is_none() || meta.node_id.is_none()) {
            return Err(CorruptKind::Side("meta.properties lacks cluster.id or node.id"));
        }
        Ok(meta)
    }

    /// The file, with the moment of writing in its comment.
    pub fn encode(&self, written_ms: i64) -> Vec<u8> {
        let mut properties = Properties::default();
        properties.insert("version", self.version.to_string());
        if let Some(cluster_id) = &self.cluster_id {
            properties.insert("cluster.id", cluster_id.as_str());
        }
        if let Some(node_id) = self.node_id {
            properties.insert(node_key(self.version), node_id.to_string());
        }
        if let Some(directory_id) = self.directory_id {
            properties.insert("directory.id", directory_id.to_string());
        }
        properties.encode(written_ms)
    }
}

fn node_key(version: u8) -> &'static str {
    if version == 0 { "broker.id" } else { "node.id" }
}

fn node_id(properties: &Properties, version: u8) -> Result<Option<i32>, CorruptKind> {
    let Some(text) = properties.get(node_key(version)) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(id) if version == 0 || id >= 0 => Ok(Some(id)),
        _ => Err(CorruptKind::Side("meta.properties node id is not a number of a node")),
    }
}

fn directory_id(properties: &Properties) -> Result<Option<Uuid>, CorruptKind> {
    let Some(text) = properties.get("directory.id") else {
        return Ok(None);
    };
    let id = Uuid::parse(text).filter(|id| !id.is_reserved());
    id.map(Some)
        .ok_or(CorruptKind::Side("meta.properties directory.id is not the id of a directory"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at_least, corpus_files};

    const EXAMPLE: &str = "#\n#Tue Nov 14 22:13:20 UTC 2023\ncluster.id=5L6g3nShT-eMCtK--X86sw\n\
        directory.id=AAECAwQFBgcICQoLDA0ODw\nnode.id=1\nversion=1\n";

    #[test]
    fn the_published_example_reads_and_writes() {
        let meta = MetaProperties::decode(EXAMPLE.as_bytes()).unwrap();
        assert_eq!(meta.version, 1);
        assert_eq!(meta.cluster_id.as_deref(), Some("5L6g3nShT-eMCtK--X86sw"));
        assert_eq!(meta.node_id, Some(1));
        assert_eq!(meta.directory_id.unwrap().to_string(), "AAECAwQFBgcICQoLDA0ODw");
        assert_eq!(meta.encode(1_700_000_000_000), EXAMPLE.as_bytes());
    }

    #[test]
    fn version_0_needs_nothing_and_version_1_needs_both_ids() {
        let empty = MetaProperties::decode(b"").unwrap();
        assert_eq!(empty, MetaProperties::default());
        let old = MetaProperties::decode(b"broker.id=-1\nother=x\nnode.id=y\n").unwrap();
        assert_eq!((old.version, old.node_id), (0, Some(-1)));
        for text in [
            "version=1\nnode.id=1",
            "version=1\ncluster.id=c",
            "version=1\ncluster.id=c\nnode.id=-1",
            "version=1\ncluster.id=c\nnode.id=one",
            "version=1\ncluster.id=c\nbroker.id=1",
            "version=2\ncluster.id=c\nnode.id=1",
            "version=01\ncluster.id=c\nnode.id=1",
            "broker.id=x",
            "directory.id=AAAAAAAAAAAAAAAAAAAAAQ",
            "directory.id=short",
        ] {
            assert!(MetaProperties::decode(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn every_file_of_the_corpus_reads_and_keeps_its_lines() {
        let files = corpus_files(crate::names::META_PROPERTIES);
        let sorted = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let mut lines: Vec<String> = text.lines().skip(2).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        for (path, bytes) in &files {
            let meta = MetaProperties::decode(bytes)
                .unwrap_or_else(|kind| panic!("{}: {kind}", path.display()));
            assert_eq!(sorted(&meta.encode(0)), sorted(bytes), "{}", path.display());
        }
        assert!(files.len() >= at_least(56), "{} files", files.len());
    }
}

use std::collections::BTreeMap;
use std::path::Path;

use super::{ROOT, T0, fill, offsets, open, options, tree, with_topic};
use crate::dir::LogDir;
use crate::error::Error;
use crate::fs::SimFs;

fn code(refused: Result<impl Sized, Error>) -> &'static str {
    match refused.err().unwrap() {
        Error::Rejected { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[test]
fn a_topic_has_its_partitions_its_id_and_its_configuration_after_reopening() {
    let fs = SimFs::new();
    let dir = open(&fs, &[]);
    let config = BTreeMap::from([("segment.bytes".to_owned(), "2097152".to_owned())]);
    let id = dir.create_topic("a.b", 3, &config, None).unwrap();
    fill(&dir.partition("a.b", 2).unwrap(), 2);
    dir.close().unwrap();
    let dir = open(&fs, &[]);
    assert!(dir.recovery().is_clean);
    assert_eq!(dir.topics(), BTreeMap::from([("a.b".to_owned(), 3)]));
    assert_eq!(dir.topic_id("a.b").unwrap(), Some(id));
    assert_eq!(dir.topic_config("a.b").unwrap().segment_bytes, 2_097_152);
    assert_eq!(dir.partition("a.b", 2).unwrap().config().segment_bytes, 2_097_152);
    assert_eq!(offsets(&dir.partition("a.b", 2).unwrap()), (0..20).collect::<Vec<_>>());
    dir.close().unwrap();
}

#[test]
fn names_and_counts_are_held_to_the_rules_of_kafka() {
    let dir = open(&SimFs::new(), &[]);
    let none = BTreeMap::new();
    dir.create_topic("a_b", 1, &none, None).unwrap();
    let make = |name: &str, partitions| code(dir.create_topic(name, partitions, &none, None));
    assert_eq!(make("a.b", 1), "INVALID_TOPIC_EXCEPTION");
    assert_eq!(make("a_b", 1), "TOPIC_ALREADY_EXISTS");
    assert_eq!(make("..", 1), "INVALID_TOPIC_EXCEPTION");
    assert_eq!(make("a/b", 1), "INVALID_TOPIC_EXCEPTION");
    assert_eq!(make(&"n".repeat(250), 1), "INVALID_TOPIC_EXCEPTION");
    assert_eq!(make("__cluster_metadata", 1), "INVALID_TOPIC_EXCEPTION");
    assert_eq!(make("c", 0), "INVALID_PARTITIONS");
    assert_eq!(make("c", 10_001), "POLICY_VIOLATION");
    assert_eq!(dir.partitions(), [("a_b".to_owned(), 0)]);
}

#[test]
fn a_topic_grows_and_never_shrinks() {
    let fs = SimFs::new();
    let dir = with_topic(&fs, &[]);
    dir.grow_topic("t", 3).unwrap();
    assert_eq!(code(dir.grow_topic("t", 3)), "INVALID_PARTITIONS");
    assert_eq!(code(dir.grow_topic("t", 2)), "INVALID_PARTITIONS");
    assert_eq!(code(dir.grow_topic("u", 2)), "UNKNOWN_TOPIC_OR_PARTITION");
    let id = dir.topic_id("t").unwrap().unwrap();
    dir.close().unwrap();
    let metadata: Vec<_> =
        tree(&fs).into_iter().filter(|(name, _)| name.ends_with("partition.metadata")).collect();
    assert_eq!(metadata.len(), 3);
    for (_, content) in metadata {
        let text = String::from_utf8(content.unwrap()).unwrap();
        assert_eq!(text, format!("version: 0\ntopic_id: {id}"));
    }
}

#[test]
fn a_deleted_topic_is_renamed_at_once_and_removed_later() {
    let fs = SimFs::new();
    let dir = with_topic(&fs, &[("log.segment.delete.delay.ms", "1000")]);
    let log = dir.partition("t", 0).unwrap();
    fill(&log, 3);
    dir.delete_topic("t").unwrap();
    assert!(log.is_closed());
    assert!(dir.partition("t", 0).is_err());
    assert_eq!(dir.topics(), BTreeMap::new());
    let has = |ending: &str| tree(&fs).keys().any(|name| name.contains(ending));
    assert!(has("-delete"));
    assert!(!has("/t-0/"));
    assert_eq!(dir.purge(T0 + 999).unwrap(), 0);
    assert_eq!(dir.purge(T0 + 1000).unwrap(), 1);
    assert!(!has("-delete"));
    dir.create_topic("t", 1, &BTreeMap::new(), None).unwrap();
    assert!(offsets(&dir.partition("t", 0).unwrap()).is_empty());
    dir.close().unwrap();
}

#[test]
fn what_waited_for_its_removal_goes_when_the_directory_is_opened_again() {
    let fs = SimFs::new();
    let dir = with_topic(&fs, &[]);
    dir.delete_topic("t").unwrap();
    dir.close().unwrap();
    let dir = open(&fs, &[]);
    assert_eq!(dir.partitions(), []);
    assert_eq!(dir.purge(T0).unwrap(), 1);
    dir.close().unwrap();
    assert!(!tree(&fs).keys().any(|name| name.contains("-delete")));
}

#[test]
fn a_directory_is_locked_while_it_is_open_and_closes_once() {
    let fs = SimFs::new();
    let dir = with_topic(&fs, &[]);
    let again = || LogDir::open(&fs, Path::new(ROOT), options(&[]));
    assert!(matches!(again().err().unwrap(), Error::Locked { .. }));
    dir.close().unwrap();
    assert!(matches!(dir.close(), Err(Error::Invalid(_))));
    assert!(matches!(dir.partition("t", 0), Err(Error::Invalid(_))));
    again().unwrap().close().unwrap();
}

#[test]
fn a_directory_that_must_exist_is_not_made() {
    let fs = SimFs::new();
    let options = crate::dir::DirOptions { create: false, ..options(&[]) };
    let missing = LogDir::open(&fs, Path::new(ROOT), options);
    assert!(missing.err().unwrap().is_not_found());
    assert!(!fs.tree().keys().any(|name| name.contains("data")));
}

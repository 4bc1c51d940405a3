use super::*;
use crate::testing::{self, Random, cases};

const HEX: &str = "0123456789abcdef0123456789abcdef";

fn topic(name: &str) -> TopicName {
    TopicName::parse(name).unwrap()
}

fn parse_dir(name: &str) -> Option<(String, i32, DirState)> {
    let dir = PartitionDir::parse(name)?;
    Some((dir.topic.into(), dir.partition, dir.state))
}

#[test]
fn topic_names_follow_kafkas_rule() {
    let longest = "t".repeat(249);
    for good in ["a", "...", "-", "_", "a.b-c_D9", "....", &longest] {
        assert_eq!(topic(good).as_str(), good);
    }
    let too_long = "t".repeat(250);
    for bad in ["", ".", "..", "a/b", "../x", "a b", "ä", "a\0", "a\n", "a\\b", &too_long] {
        assert_eq!(TopicName::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn the_partition_starts_after_the_last_dash() {
    let id = Uuid::parse_hex(HEX).unwrap();
    for (name, topic, partition, state) in [
        ("orders-0", "orders", 0, DirState::Live),
        ("dash-dash-1-0", "dash-dash-1", 0, DirState::Live),
        ("--7", "-", 7, DirState::Live),
        ("...-1", "...", 1, DirState::Live),
        ("foo-delete-0", "foo-delete", 0, DirState::Live),
        ("x-2147483647", "x", i32::MAX, DirState::Live),
        (&format!("a.b-3.{HEX}-delete"), "a.b", 3, DirState::Delete(id)),
        (&format!("a.b-3.{HEX}-future"), "a.b", 3, DirState::Future(id)),
        (&format!("a.b-3.{HEX}-stray"), "a.b", 3, DirState::Stray(id)),
        (&format!("b.{HEX}-delete-0"), &format!("b.{HEX}-delete"), 0, DirState::Live),
    ] {
        assert_eq!(parse_dir(name), Some((topic.to_owned(), partition, state)), "{name}");
    }
}

#[test]
fn names_that_no_broker_writes_are_no_partitions() {
    let upper = HEX.to_uppercase();
    for name in [
        "",
        "-",
        "-0",
        "a-",
        "a",
        "a-b",
        "a-+1",
        "a-01",
        "a-00",
        "a--1-",
        "a-2147483648",
        "..-0",
        ".-0",
        "a/b-0",
        "../a-0",
        "a-0.x-delete",
        "a-0-delete",
        "a-delete",
        REMOTE_INDEX_CACHE,
        META_PROPERTIES,
        &format!("a-0.{upper}-delete"),
        &format!("a-0.{HEX}0-stray"),
        &format!("a.{HEX}-future"),
        &format!("a-0 .{HEX}-stray"),
        &format!("{}-0", "t".repeat(250)),
    ] {
        assert_eq!(parse_dir(name), None, "{name:?}");
    }
}

#[test]
fn long_names_under_deletion_lose_the_end_of_the_topic() {
    let id = Uuid::parse_hex(HEX).unwrap();
    for (state, cut) in
        [(DirState::Delete(id), true), (DirState::Stray(id), true), (DirState::Future(id), false)]
    {
        let dir = PartitionDir { topic: topic(&"t".repeat(249)), partition: 12, state };
        let name = dir.to_string();
        assert_eq!(name.len() == 255, cut, "{name}");
        assert!(name.starts_with("ttt") && name.contains(&format!("t-12.{HEX}-")));
        let read = PartitionDir::parse(&name).unwrap();
        assert_eq!(read.topic_may_be_cut(), cut);
        assert_eq!(read.to_string(), name);
        assert_eq!(read == dir, !cut);
    }
    let short = PartitionDir { topic: topic("t"), partition: 0, state: DirState::Delete(id) };
    assert!(!short.topic_may_be_cut());
    let exact = "t".repeat(255 - "-0.-delete".len() - 32);
    let longer = format!("{exact}t-0.{HEX}-delete");
    assert_eq!(PartitionDir::parse(&longer), None, "256 characters");
    assert!(PartitionDir::parse(longer.get(1..).unwrap()).unwrap().topic_may_be_cut());
}

#[test]
fn segment_files_have_exactly_twenty_digits() {
    let file =
        |name| SegmentFile::parse(name).map(|file| (file.base_offset, file.kind, file.state));
    assert_eq!(file("00000000000000000000.log.swap"), Some((0, FileKind::Log, FileState::Swap)));
    assert_eq!(
        file("09223372036854775807.timeindex"),
        Some((i64::MAX, FileKind::TimeIndex, FileState::Live))
    );
    assert_eq!(
        file("00000000000000000042.snapshot.deleted"),
        Some((42, FileKind::Snapshot, FileState::Deleted))
    );
    for name in [
        "",
        ".log",
        "0.log",
        "0000000000000000000.log",
        "000000000000000000000.log",
        "09223372036854775808.log",
        "+0000000000000000001.log",
        "-0000000000000000001.log",
        "00000000000000000000",
        "00000000000000000000.LOG",
        "00000000000000000000.log.tmp",
        "00000000000000000000.log.swap.deleted",
        "00000000000000000000.snapshot.swap",
        "00000000000000000000.log.",
        "0000000000000000000١.log",
        "leader-epoch-checkpoint",
    ] {
        assert_eq!(file(name), None, "{name:?}");
    }
}

#[test]
fn metadata_snapshots_carry_end_offset_and_epoch() {
    for (name, end_offset, epoch, state) in [
        ("00000000000000000087-0000000001.checkpoint", 87, 1, SnapshotState::Live),
        ("00000000000000000087-0000000001.checkpoint.deleted", 87, 1, SnapshotState::Deleted),
        (
            "00000000000000000087-2147483647-1844674407.checkpoint.part",
            87,
            i32::MAX,
            SnapshotState::Partial(1_844_674_407),
        ),
    ] {
        let expected = MetadataSnapshotFile { end_offset, epoch, state };
        assert_eq!(MetadataSnapshotFile::parse(name), Some(expected));
        assert_eq!(expected.to_string(), name);
    }
    for name in [
        BOOTSTRAP_CHECKPOINT,
        "00000000000000000087-2147483648.checkpoint",
        "00000000000000000087-0000000001-5.checkpoint",
        "00000000000000000087-0000000001.checkpoint.part",
        "00000000000000000087.checkpoint",
    ] {
        assert_eq!(MetadataSnapshotFile::parse(name), None, "{name}");
    }
}

/// Builds names from pieces of the grammar and spoils half of them, so that most strings reach
/// deep into the parsers.
fn random_name(random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "-",
        ".",
        "..",
        "/",
        "a",
        "Z",
        "_",
        "0",
        "7",
        "42",
        "-0",
        "-1",
        "delete",
        "-delete",
        "-future",
        "-stray",
        ".log",
        ".index",
        ".timeindex",
        ".txnindex",
        ".snapshot",
        ".deleted",
        ".cleaned",
        ".swap",
        ".checkpoint",
        ".part",
        HEX,
        "00000000000000000000",
        "0000000001",
        "09223372036854775807",
        "2147483647",
        "2147483648",
        "+",
        " ",
        "\0",
        "ä",
        "topic",
    ];
    const WHOLE: &[&str] = &[
        "00000000000000000042.log.swap",
        "00000000000000000042.snapshot",
        "00000000000000000087-0000000001.checkpoint",
        "00000000000000000087-0000000001-77.checkpoint.part",
        "a.b-3.0123456789abcdef0123456789abcdef-delete",
    ];
    let mut name = String::new();
    if random.below(4) == 0 {
        name.push_str(WHOLE[random.below(WHOLE.len())]);
    } else {
        for _ in 0..random.below(8) {
            name.push_str(PIECES[random.below(PIECES.len())]);
        }
    }
    if random.below(16) == 0 {
        name.insert_str(0, &"l".repeat(random.below(260)));
    }
    if random.below(2) == 0 && !name.is_empty() {
        let at = random.below(name.len());
        if name.is_char_boundary(at) {
            let byte = u8::try_from(random.below(128)).unwrap();
            name.insert(at, char::from(byte));
        }
    }
    name
}

#[test]
fn a_million_random_names_never_escape_and_print_as_they_were() {
    let mut random = Random::new(47);
    let mut parsed = [0; 4];
    for _ in 0..1_500_000 {
        let name = random_name(&mut random);
        if let Some(dir) = PartitionDir::parse(&name) {
            let topic = dir.topic.as_str();
            assert!(topic != "." && topic != ".." && !topic.contains(['/', '\0']), "{name:?}");
            assert!(dir.partition >= 0 && !name.contains('/'));
            assert_eq!(dir.to_string(), name);
            parsed[0] += 1;
        }
        if let Some(file) = SegmentFile::parse(&name) {
            assert_eq!(file.to_string(), name);
            parsed[1] += 1;
        }
        if let Some(file) = MetadataSnapshotFile::parse(&name) {
            assert_eq!(file.to_string(), name);
            parsed[2] += 1;
        }
        if let Some(topic) = TopicName::parse(&name) {
            assert!(!topic.contains('/') && topic.len() <= 249);
            parsed[3] += 1;
        }
    }
    // The generator reaches every grammar, or the assertions above would hold for nothing.
    assert!(parsed.iter().all(|count| *count > 100), "{parsed:?}");
}

#[test]
fn every_built_name_reads_back_as_what_it_was_built_from() {
    let mut random = Random::new(48);
    for _ in 0..100_000 {
        let length = 1 + random.below(249);
        let letters: String =
            (0..length).map(|_| *random.pick(&['a', '.', '-', '_', 'Z', '9'])).collect();
        let Some(topic) = TopicName::parse(&letters) else {
            continue;
        };
        let id = Uuid((u128::from(random.next()) << 64 | u128::from(random.next())).to_be_bytes());
        let state = *random.pick(&[
            DirState::Live,
            DirState::Delete(id),
            DirState::Future(id),
            DirState::Stray(id),
        ]);
        let partition = i32::try_from(random.next() >> 33).unwrap();
        let dir = PartitionDir { topic, partition, state };
        let read = PartitionDir::parse(&dir.to_string()).unwrap();
        assert_eq!((read.partition, read.state), (dir.partition, dir.state));
        assert!(
            read.topic == dir.topic
                || read.topic_may_be_cut() && dir.topic.starts_with(&*read.topic)
        );

        let base_offset = i64::try_from(random.next() >> 1).unwrap();
        for kind in FileKind::ALL {
            let file = SegmentFile {
                base_offset,
                kind,
                state: *random.pick(&[FileState::Live, FileState::Deleted]),
            };
            assert_eq!(SegmentFile::parse(&file.to_string()), Some(file));
        }
        for state in FileState::SUFFIXED {
            let file = SegmentFile { base_offset, kind: FileKind::Log, state };
            assert_eq!(SegmentFile::parse(&file.to_string()), Some(file));
        }
        let partial = SnapshotState::Partial(random.next());
        let state = *random.pick(&[SnapshotState::Live, SnapshotState::Deleted, partial]);
        let file = MetadataSnapshotFile { end_offset: base_offset, epoch: partition, state };
        assert_eq!(MetadataSnapshotFile::parse(&file.to_string()), Some(file));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test lists the corpus directly")]
fn every_name_in_the_corpus_is_known() {
    let (mut dirs, mut files) = (0, 0);
    for case in cases() {
        for entry in std::fs::read_dir(case.log()).unwrap() {
            let path = entry.unwrap().path();
            let name = testing::name_of(&path);
            if !path.is_dir() {
                let known = [
                    META_PROPERTIES,
                    LOCK,
                    CLEAN_SHUTDOWN,
                    RECOVERY_POINT_CHECKPOINT,
                    HIGH_WATERMARK_CHECKPOINT,
                    LOG_START_CHECKPOINT,
                    CLEANER_CHECKPOINT,
                    BOOTSTRAP_CHECKPOINT,
                ];
                assert!(known.contains(&name), "{name}");
                continue;
            }
            assert_eq!(PartitionDir::parse(name).unwrap().to_string(), name);
            dirs += 1;
            for entry in std::fs::read_dir(&path).unwrap() {
                let path = entry.unwrap().path();
                let name = testing::name_of(&path);
                let segment = SegmentFile::parse(name).map(|file| file.to_string());
                let snapshot = MetadataSnapshotFile::parse(name).map(|file| file.to_string());
                let fixed = [LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, QUORUM_STATE];
                assert!(
                    segment.as_deref() == Some(name)
                        || snapshot.as_deref() == Some(name)
                        || fixed.contains(&name),
                    "{name}"
                );
                files += 1;
            }
        }
    }
    assert!(dirs >= testing::at_least(200), "{dirs} directories");
    assert!(files >= testing::at_least(3000), "{files} files");
}

"""A log directory: topics, identity, checkpoints, upkeep, damage that stays where it is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, SMALL, abandon, consume, expected_values, fill, names, values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_topics_are_made_found_again_and_listed(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        identifier = logs.create_topic("orders", partitions=3, config={"retention.ms": 5})
        logs.create_topic("users", 1, cleanup_policy="compact")
        assert logs.topics() == {"orders": 3, "users": 1}
        assert logs.partitions() == [("orders", 0), ("orders", 1), ("orders", 2), ("users", 0)]
        fill(logs.partition("orders", 1), 10)
        assert repr(logs) == f"<LogDir {path} 4 partitions>"
    assert repr(logs) == f"<LogDir {path} closed>"
    with kafkaseg.LogDir.open(path) as logs:
        assert logs.recovery.clean
        assert logs.topics() == {"orders": 3, "users": 1}
        assert logs.topic_id("orders") == identifier
        assert logs.topic_id("absent") is None
        assert logs.topic_config("orders")["retention.ms"] == "5"
        assert logs.partition("users", 0).config["cleanup.policy"] == "compact"
        assert values(consume(logs.partition("orders", 1))) == expected_values(0, 10)


def test_the_number_of_partitions_has_a_default(path: Path) -> None:
    with kafkaseg.LogDir.open(path, num_partitions=4) as logs:
        logs.create_topic("orders")
        assert logs.topics() == {"orders": 4}


def test_an_identifier_can_be_given(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        given = logs.create_topic("a", 1)
        logs.delete_topic("a")
        assert logs.create_topic("b", 1, topic_id=given) == given
        assert given in (path / "b-0" / "partition.metadata").read_text()
        with pytest.raises(kafkaseg.InvalidArgumentError, match="identifier"):
            logs.create_topic("c", 1, topic_id="nonsense")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "ä", "x" * 250, "__cluster_metadata"])
def test_names_that_kafka_refuses_are_refused(path: Path, name: str) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        with pytest.raises(kafkaseg.RejectedError) as caught:
            logs.create_topic(name, 1)
        assert caught.value.code == "INVALID_TOPIC_EXCEPTION"
        assert logs.topics() == {}


def test_names_must_differ_in_more_than_dots(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("a.b", 1)
        for name, code in (("a.b", "TOPIC_ALREADY_EXISTS"), ("a_b", "INVALID_TOPIC_EXCEPTION")):
            with pytest.raises(kafkaseg.RejectedError) as caught:
                logs.create_topic(name, 1)
            assert caught.value.code == code


@pytest.mark.parametrize(
    ("count", "code"), [(0, "INVALID_PARTITIONS"), (-1, "INVALID_PARTITIONS"), (10_001, "POLICY_VIOLATION")]
)
def test_a_topic_has_one_to_ten_thousand_partitions_at_once(path: Path, count: int, code: str) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        with pytest.raises(kafkaseg.RejectedError) as caught:
            logs.create_topic("orders", count)
        assert caught.value.code == code
        assert names(path, "-0") == []


def test_a_topic_grows_and_never_shrinks(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 2, retention_ms=5)
        logs.grow_topic("orders", 4)
        assert logs.topics() == {"orders": 4}
        assert logs.partition("orders", 3).config["retention.ms"] == "5"
        for count in (4, 3, 0):
            with pytest.raises(kafkaseg.RejectedError) as caught:
                logs.grow_topic("orders", count)
            assert caught.value.code == "INVALID_PARTITIONS"
        with pytest.raises(kafkaseg.RejectedError) as caught:
            logs.grow_topic("absent", 4)
        assert caught.value.code == "UNKNOWN_TOPIC_OR_PARTITION"


def test_a_deleted_topic_is_gone_at_once_and_its_files_later(path: Path) -> None:
    clock = kafkaseg.ManualClock(NOW)
    with kafkaseg.LogDir.open(path, clock=clock, file_delete_delay_ms=1000) as logs:
        logs.create_topic("orders", 2)
        log = logs.partition("orders", 0)
        fill(log, 10)
        held = log.slice(0)
        logs.delete_topic("orders")
        assert logs.topics() == {}
        assert log.closed
        assert len(held.read()) == held.bytes
        assert len(names(path, "-delete")) == 2
        assert logs.upkeep().directories_removed == 0
        clock.advance(1000)
        assert logs.upkeep().directories_removed == 2
        assert names(path, "-delete") == []
        logs.create_topic("orders", 1)
        assert logs.partition("orders", 0).end_offset == 0
        with pytest.raises(kafkaseg.RejectedError):
            logs.delete_topic("absent")


def test_directories_that_waited_for_removal_go_after_a_restart(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 1)
        logs.delete_topic("orders")
    assert len(names(path, "-delete")) == 1
    with kafkaseg.LogDir.open(path) as logs:
        assert logs.topics() == {}
        assert logs.upkeep().directories_removed == 1


def test_partitions_that_are_not_there_are_named(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 1)
        for topic, partition in (("orders", 1), ("users", 0), ("orders", -1)):
            with pytest.raises(kafkaseg.InvalidArgumentError, match=f"{topic}-{partition}"):
                logs.partition(topic, partition)


def test_a_directory_knows_whom_it_belongs_to(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        assert logs.meta is None
    with kafkaseg.LogDir.open(path, cluster_id="c1", node_id=7) as logs:
        meta = logs.meta
        assert (meta.cluster_id, meta.node_id, len(meta.directory_id)) == ("c1", 7, 22)
    with kafkaseg.LogDir.open(path, cluster_id="other") as logs:
        assert logs.meta == meta, "what it says already is not changed"
    assert "node.id=7" in (path / "meta.properties").read_text()


def test_checkpoints_and_flushes_are_written_on_request(path: Path) -> None:
    with kafkaseg.LogDir.open(path, fsync="never") as logs:
        logs.create_topic("orders", 1)
        log = logs.partition("orders", 0)
        fill(log, 10)
        logs.checkpoint()
        assert (path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 10\n"
        assert (path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 0\n"
        logs.flush()
        assert (path / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 10\n"
        assert not (path / ".kafka_cleanshutdown").exists()
    assert (path / ".kafka_cleanshutdown").exists()


def test_upkeep_runs_in_the_background_only_when_asked(path: Path) -> None:
    config = SMALL | {"retention.bytes": 3000, "log.initial.task.delay.ms": 0, "file.delete.delay.ms": 0}
    with kafkaseg.LogDir.open(path, config) as logs:
        logs.create_topic("orders", 1)
        log = logs.partition("orders", 0)
        fill(log, 300)
        assert not logs.started
        time.sleep(0.05)
        assert log.start_offset == 0
        logs.start()
        logs.start()
        assert logs.started
        deadline = time.monotonic() + 20
        while log.start_offset == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert log.start_offset > 0
        logs.stop()
        assert not logs.started


def test_upkeep_by_hand_says_what_it_did(path: Path) -> None:
    with kafkaseg.LogDir.open(path, SMALL | {"retention.bytes": 3000}) as logs:
        logs.create_topic("orders", 1)
        fill(logs.partition("orders", 0), 300)
        done = logs.upkeep()
        assert done.segments_deleted > 1
        assert (done.directories_removed, done.failed) == (0, {})


def test_a_closed_directory_refuses_every_use(path: Path) -> None:
    logs = kafkaseg.LogDir.open(path)
    logs.create_topic("orders", 1)
    log = logs.partition("orders", 0)
    logs.close()
    assert logs.closed
    assert log.closed
    uses = [
        logs.close,
        logs.flush,
        logs.start,
        logs.upkeep,
        logs.checkpoint,
        lambda: logs.partition("orders", 0),
        lambda: logs.create_topic("t", 1),
        lambda: logs.grow_topic("orders", 2),
        lambda: logs.delete_topic("orders"),
        lambda: logs.topic_id("orders"),
        lambda: log.read(0),
    ]
    for use in uses:
        with pytest.raises(kafkaseg.InvalidArgumentError, match="closed"):
            use()
    with kafkaseg.LogDir.open(path) as logs:
        logs.close()


def test_an_open_directory_is_not_opened_again(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 1)
        for opening in (kafkaseg.LogDir.open, lambda p: kafkaseg.Log.open(p / "orders-0")):
            with pytest.raises(kafkaseg.DirectoryLockedError):
                opening(path)


def test_a_missing_directory_is_refused_when_none_is_to_be_made(path: Path) -> None:
    with pytest.raises(kafkaseg.LogFileNotFoundError):
        kafkaseg.LogDir.open(path, create=False)
    assert not path.exists()


def test_one_bad_partition_does_not_stop_the_others(path: Path) -> None:
    logs = kafkaseg.LogDir.open(path, num_recovery_threads_per_data_dir=4)
    logs.create_topic("orders", 8)
    for number in range(8):
        fill(logs.partition("orders", number), 10)
    abandon(logs)
    bad = path / "orders-3" / f"{0:020}.log"
    bad.unlink()
    bad.mkdir()
    with kafkaseg.LogDir.open(path, num_recovery_threads_per_data_dir=4) as logs:
        offline = logs.offline()
        assert list(offline) in ([("orders", 3)], [])
        for number in set(range(8)) - {3}:
            assert values(consume(logs.partition("orders", number))) == expected_values(0, 10)
        if offline:
            with pytest.raises(kafkaseg.InvalidArgumentError, match="offline"):
                logs.partition("orders", 3)
            assert logs.stats()["offline"] == 1


def test_strays_and_replicas_on_the_move_are_left_alone(path: Path) -> None:
    kafkaseg.LogDir.open(path).close()
    moving = [
        "orders-0.0123456789abcdef0123456789abcdef-future",
        "orders-1.0123456789abcdef0123456789abcdef-stray",
        "no partition",
    ]
    for name in moving:
        (path / name).mkdir()
    with kafkaseg.LogDir.open(path) as logs:
        assert logs.partitions() == []
        assert sorted(logs.recovery.ignored) == sorted(moving)
    assert all((path / name).is_dir() for name in moving)


def test_checkpoints_that_make_no_sense_count_as_empty(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 1)
        fill(logs.partition("orders", 0), 10)
    (path / "recovery-point-offset-checkpoint").write_text("nonsense")
    with kafkaseg.LogDir.open(path) as logs:
        ((file, why),) = logs.recovery.unreadable
        assert file.endswith("recovery-point-offset-checkpoint")
        assert why
        assert len(consume(logs.partition("orders", 0))) == 10


def test_figures_are_sums_over_partitions(path: Path) -> None:
    with kafkaseg.LogDir.open(path) as logs:
        logs.create_topic("orders", 3)
        for number in range(3):
            fill(logs.partition("orders", number), 10)
        stats = logs.stats()
        assert (stats["partitions"], stats["offline"], stats["segments"]) == (3, 0, 3)
        assert (stats["offsets"], stats["appends"]) == (30, 6)

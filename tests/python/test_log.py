"""A log is opened, written, described and closed; every misuse has an error that says what is wrong."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, abandon, consume, expected_values, fill, names, python, record, records, values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "orders-0"


def test_a_missing_directory_is_made_with_everything_above_it(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        assert (log.topic, log.partition, log.path) == ("orders", 0, os.fspath(path))
        assert (log.start_offset, log.end_offset) == (0, 0)
    assert names(path.parent, "checkpoint") == [
        "log-start-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    ]
    assert (path.parent / ".kafka_cleanshutdown").exists()
    assert (path / "partition.metadata").read_text().startswith("version: 0\ntopic_id: ")


def test_a_missing_directory_is_refused_when_none_is_to_be_made(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        kafkaseg.Log.open(path, create=False)
    assert not path.parent.exists()
    kafkaseg.Log.open(path.with_name("other-0")).close()
    with pytest.raises(kafkaseg.LogFileNotFoundError, match="orders-0"):
        kafkaseg.Log.open(path, create=False)
    assert not path.exists()
    assert (path.parent / ".kafka_cleanshutdown").exists(), "nothing was touched"


@pytest.mark.parametrize(
    "name", ["orders", "orders-x", "orders-0.0123456789abcdef0123456789abcdef-delete", "-0"]
)
def test_a_directory_must_be_named_topic_and_number(tmp_path: Path, name: str) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match="<topic>-<number>"):
        kafkaseg.Log.open(tmp_path / name)


def test_records_come_back_as_they_went_in(path: Path) -> None:
    written = [
        kafkaseg.Record(b"k", b"v", headers=[("h", b"1"), ("h", None), ("", b"")], timestamp=NOW),
        kafkaseg.Record(None, b"", timestamp=NOW + 1),
        kafkaseg.Record(b"", None, timestamp=-1),
    ]
    with kafkaseg.Log.open(path) as log:
        info = log.append(written)
        assert (info.base_offset, info.last_offset, info.max_timestamp) == (0, 2, NOW + 1)
        assert (info.log_append_time, info.log_start_offset, info.duplicate) == (-1, 0, False)
        found = consume(log)
    assert [(r.key, r.value, list(r.headers), r.timestamp) for r in found] == [
        (r.key, r.value, list(r.headers), r.timestamp) for r in written
    ]


def test_a_log_goes_on_where_it_was_closed(path: Path) -> None:
    for round_ in range(3):
        with kafkaseg.Log.open(path) as log:
            assert log.end_offset == round_ * 10
            assert log.recovery == kafkaseg.Recovery(
                clean=True,
                segments_recovered=(),
                bytes_checked=0,
                bytes_truncated=0,
                cuts=(),
                indexes_rebuilt=(),
                leftovers=(),
                segments_split=(),
                skipped=(),
            )
            fill(log, 10)
    with kafkaseg.Log.open(path) as log:
        assert values(consume(log)) == expected_values(0, 30)


def test_an_empty_append_is_refused(path: Path) -> None:
    with kafkaseg.Log.open(path) as log, pytest.raises(kafkaseg.KafkasegError):
        log.append([])


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_kept_when_the_topic_leaves_it_to_producers(path: Path, codec: str) -> None:
    with kafkaseg.Log.open(path) as log:
        log.append(records(50), compression=codec)
        (batch,) = log.read(0).batches()
        assert batch.compression == codec
        assert values(batch.records) == expected_values(0, 50)


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_the_topic_can_choose_the_codec(path: Path, codec: str) -> None:
    with kafkaseg.Log.open(path, compression_type=codec) as log:
        for given in ("none", "zstd", "lz4"):
            log.append(records(50, log.end_offset), compression=given)
        stored = {batch.compression for batch in log.read(0).batches()}
        assert stored == {"none" if codec == "uncompressed" else codec}
        assert values(consume(log)) == expected_values(0, 150)


def test_a_log_can_stamp_its_records_itself(path: Path) -> None:
    clock = kafkaseg.ManualClock(NOW)
    with kafkaseg.Log.open(path, message_timestamp_type="LogAppendTime", clock=clock) as log:
        info = log.append([record(0, timestamp=5), record(1, timestamp=7)])
        assert (info.log_append_time, info.max_timestamp) == (NOW, NOW)
        clock.advance(1000)
        assert log.append(records(1)).log_append_time == clock.now_ms == NOW + 1000
        assert [r.timestamp for r in consume(log)] == [NOW, NOW, NOW + 1000]
        assert next(log.read(0).batches()).timestamp_type == "append"


def test_the_epoch_of_the_leader_is_written_and_found(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        fill(log, 10)
        log.append(records(5), leader_epoch=3)
        log.assign_epoch(7)
        log.append(records(5), leader_epoch=7)
        assert [batch.leader_epoch for batch in log.read(0).batches()] == [0, 0, 3, 7]
        assert log.end_offset_for_epoch(0) == (0, 10)
        assert log.end_offset_for_epoch(5) == (3, 15)
        assert log.end_offset_for_epoch(7) == (7, 20)
        assert log.end_offset_for_epoch(9) is None
    assert (path / "leader-epoch-checkpoint").read_text() == "0\n3\n0 0\n3 10\n7 15\n"


def test_a_leader_that_was_followed_is_fenced_and_the_latest_is_the_default(path: Path) -> None:
    """Epochs that go back would pass for damage when the log is recovered."""
    log = kafkaseg.Log.open(path)
    log.append(records(5), leader_epoch=3)
    with pytest.raises(kafkaseg.RejectedError) as caught:
        log.append(records(5), leader_epoch=2)
    assert caught.value.code == "FENCED_LEADER_EPOCH"
    fill(log, 5)
    log.append_arrow(kafkaseg.scan(path, columns=["value"]))
    assert {batch.leader_epoch for batch in log.read(0).batches()} == {3}
    abandon(log)
    with kafkaseg.Log.open(path) as log:
        assert (log.damage, log.end_offset) == (None, 20)


def test_a_follower_leaves_out_what_a_later_leader_wrote(path: Path, tmp_path: Path) -> None:
    with kafkaseg.Log.open(path) as leader, kafkaseg.Log.open(tmp_path / "b" / "orders-0") as follower:
        leader.append(records(5), leader_epoch=1)
        leader.append(records(5), leader_epoch=2)
        assert follower.append_follower(leader.read(0).data, leader_epoch=1).last_offset == 4
        assert follower.append_follower(leader.read(5).data).last_offset == 9


def test_a_follower_keeps_the_offsets_of_its_leader(path: Path, tmp_path: Path) -> None:
    with kafkaseg.Log.open(path) as leader, kafkaseg.Log.open(tmp_path / "b" / "orders-0") as follower:
        fill(leader, 20)
        leader.delete_records(10)
        data = leader.read(10).data
        info = follower.append_follower(data)
        assert (info.base_offset, info.last_offset, follower.end_offset) == (10, 19, 20)
        assert follower.read(10).data == data
        with pytest.raises(kafkaseg.RejectedError, match="cannot follow the log's end 20") as caught:
            follower.append_follower(data)
        assert caught.value.code == "UNEXPECTED_APPEND_OFFSET"


def test_what_an_append_survives_is_told(path: Path) -> None:
    with kafkaseg.Log.open(path, fsync="always") as log:
        assert log.durability == kafkaseg.Durability("always", True, True)  # noqa: FBT003
        fill(log, 5)
        assert log.recovery_point == 5
    with kafkaseg.Log.open(path, fsync="never") as log:
        assert not log.durability.survives_power_loss
        fill(log, 5)
        assert log.recovery_point == 5
        log.flush()
        assert log.recovery_point == 10


def test_figures_add_up(path: Path) -> None:
    with kafkaseg.Log.open(path, {"internal.segment.bytes": 1500, "index.interval.bytes": 200}) as log:
        fill(log, 200)
        segments, stats = log.segments(), log.stats()
        assert stats["segments"] == len(segments) > 3
        assert stats["bytes"] == sum(segment.bytes for segment in segments)
        assert (stats["offsets"], stats["appends"]) == (200, 40)
        assert stats["appended_bytes"] == stats["bytes"]
        assert stats["flushes"] == len(segments) - 1, "one when a segment is full"
        log.flush()
        assert log.stats()["flushes"] == len(segments)
        assert [s.next_offset for s in segments[:-1]] == [s.base_offset for s in segments[1:]]
        assert [s.is_active for s in segments] == [False] * (len(segments) - 1) + [True]
        assert all(s.offset_index_entries > 0 for s in segments[:-1])
        assert segments[-1].largest_timestamp == NOW + 199
        assert "SegmentInfo(base_offset=0" in repr(segments[0])
    assert names(path, ".log") == [f"{s.base_offset:020}.log" for s in segments]


def test_rolling_by_hand_begins_a_segment(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        fill(log, 10)
        assert log.roll() == 10
        assert log.roll() == 10, "an empty segment is not followed by another"
        fill(log, 10)
        assert [segment.base_offset for segment in log.segments()] == [0, 10]


def test_a_closed_log_refuses_every_use(path: Path) -> None:
    log = kafkaseg.Log.open(path)
    fill(log, 5)
    held = log.slice(0)
    log.close()
    assert log.closed
    assert repr(log) == f"<Log {path} closed>"
    assert len(held.read()) == held.bytes, "what was found before can still be read"
    uses = [
        log.close,
        log.flush,
        log.roll,
        log.segments,
        log.stats,
        log.apply_retention,
        log.purge,
        log.expire_producers,
        lambda: log.append(records(1)),
        lambda: log.append_batch(kafkaseg.encode_batch(records(1))),
        lambda: log.read(0),
        lambda: log.slice(0),
        lambda: log.offset_for_time(-1),
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully_and_start_at(0),
        lambda: log.delete_records(0),
        lambda: log.end_offset_for_epoch(0),
        lambda: log.assign_epoch(1),
        lambda: log.end_offset,
        lambda: setattr(log, "high_watermark", 0),
    ]
    for use in uses:
        with pytest.raises(kafkaseg.InvalidArgumentError, match="closed"):
            use()


def test_leaving_the_block_closes_once(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        log.close()
    assert log.closed
    with pytest.raises(ZeroDivisionError), kafkaseg.Log.open(path) as log:
        _ = 1 / 0
    assert log.closed


def test_a_log_that_is_open_is_not_opened_again(path: Path) -> None:
    with kafkaseg.Log.open(path):
        with pytest.raises(kafkaseg.DirectoryLockedError, match="orders-0"):
            kafkaseg.Log.open(path)
        with pytest.raises(kafkaseg.DirectoryLockedError):
            kafkaseg.LogDir.open(path.parent)
        with kafkaseg.Log.open(path.with_name("orders-1")) as other:
            fill(other, 5)


def test_a_log_of_another_process_is_refused_until_that_ends(path: Path) -> None:
    code = """
        import sys, kafkaseg
        log = kafkaseg.Log.open(sys.argv[1])
        print("open")
        sys.stdin.read()
    """
    with python(code, path) as child:
        assert child.stdout.readline() == "open\n"
        with pytest.raises(kafkaseg.DirectoryLockedError) as caught:
            kafkaseg.Log.open(path)
        assert os.fspath(path.parent) in caught.value.path
        child.stdin.close()
        child.wait(10)
        with kafkaseg.Log.open(path) as log:
            assert log.recovery.clean is False, "the other process did not close it"


def test_a_lock_as_java_takes_it_is_honoured(path: Path) -> None:
    kafkaseg.Log.open(path).close()
    code = """
        import fcntl, sys
        with open(sys.argv[1], "r+b") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            print("locked")
            sys.stdin.read()
    """
    with python(code, path.parent / ".lock") as child:
        assert child.stdout.readline() == "locked\n"
        for opened in (kafkaseg.Log.open, lambda p: kafkaseg.LogDir.open(p.parent)):
            with pytest.raises(kafkaseg.DirectoryLockedError):
                opened(path)
        child.stdin.close()
    with kafkaseg.Log.open(path) as log:
        assert log.recovery.clean
        attempt = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        with python(attempt, path.parent / ".lock", stderr=subprocess.DEVNULL) as child:
            assert child.wait(10) != 0, "and Java's attempt fails while ours is held"


def test_a_log_that_is_dropped_frees_its_lock_and_is_recovered(path: Path) -> None:
    log = kafkaseg.Log.open(path)
    fill(log, 10)
    abandon(log)
    with kafkaseg.Log.open(path) as log:
        assert not log.recovery.clean
        assert log.recovery.segments_recovered == (0,)
        assert values(consume(log)) == expected_values(0, 10)

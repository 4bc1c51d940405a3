"""Truncation, deletion of records, retention, and the files that wait for their removal."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, SMALL, abandon, consume, expected_values, fill, names, record, records, values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "orders-0"


@pytest.mark.parametrize("offset", [0, 3, 5, 60, 123, 299])
def test_truncation_drops_everything_from_the_batch_of_the_offset_on(path: Path, offset: int) -> None:
    with kafkaseg.Log.open(path, SMALL) as log:
        fill(log, 300)
        assert log.truncate_to(offset)
        assert log.end_offset == log.high_watermark == offset
        kept = offset - offset % 5
        assert values(consume(log)) == expected_values(0, kept)
        log.append([record(number) for number in range(1000, 1003)])
        assert [r.offset for r in consume(log)][-3:] == [offset, offset + 1, offset + 2]
        after = consume(log)
    with kafkaseg.Log.open(path) as log:
        assert log.recovery.clean
        assert consume(log) == after
        assert names(path, ".deleted") == []


def test_truncation_at_the_end_and_beyond_does_nothing(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        fill(log, 10)
        assert not log.truncate_to(10)
        assert not log.truncate_to(11)
        assert log.end_offset == 10
        with pytest.raises(kafkaseg.InvalidArgumentError, match="-1"):
            log.truncate_to(-1)


def test_truncation_takes_epochs_and_producers_back(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        log.append(records(5), producer_id=1, producer_epoch=0, base_sequence=0)
        log.append(records(5, 5), producer_id=1, producer_epoch=0, base_sequence=5, leader_epoch=3)
        log.append(records(5, 10), leader_epoch=4)
        log.truncate_to(5)
        assert log.end_offset_for_epoch(4) is None or log.end_offset_for_epoch(4)[0] == 0
        again = log.append(records(5, 5), producer_id=1, producer_epoch=0, base_sequence=5, leader_epoch=9)
        assert (again.duplicate, again.base_offset) == (False, 5)
    assert (path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n9 5\n"


def test_truncation_survives_a_crash(path: Path) -> None:
    log = kafkaseg.Log.open(path, SMALL)
    fill(log, 300)
    log.flush()
    log.truncate_to(100)
    log.append([record(number) for number in range(7000, 7005)])
    abandon(log)
    with kafkaseg.Log.open(path) as log:
        assert values(consume(log)) == expected_values(0, 100) + expected_values(7000, 7005)


def test_a_log_can_begin_again_elsewhere(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL) as log:
        fill(log, 300)
        log.truncate_fully_and_start_at(1000)
        assert (log.start_offset, log.end_offset, len(log.segments())) == (1000, 1000, 1)
        assert fill(log, 10) == 1010
        log.truncate_fully_and_start_at(2000, 1990)
        assert (log.start_offset, log.end_offset) == (1990, 2000)
        with pytest.raises(kafkaseg.OffsetOutOfRangeError):
            log.read(1995)
        for offset, start in ((-1, None), (10, 11), (10, -1)):
            with pytest.raises(kafkaseg.InvalidArgumentError):
                log.truncate_fully_and_start_at(offset, start)
        assert fill(log, 10) == 2010
    with kafkaseg.Log.open(path) as log:
        assert (log.start_offset, log.end_offset) == (2000, 2010), "there is no segment from 1990 on"
        assert [r.offset for r in consume(log)] == list(range(2000, 2010))


def test_deleted_records_are_gone_also_after_a_close(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL) as log:
        fill(log, 100)
        assert log.delete_records(42) == log.start_offset == 42
        assert log.delete_records(10) == 42, "a start never goes back"
        assert [r.offset for r in consume(log)] == list(range(42, 100))
    assert "orders 0 42" in (path.parent / "log-start-offset-checkpoint").read_text()
    with kafkaseg.Log.open(path) as log:
        assert log.start_offset == 42
        assert log.delete_records(-1) == 100
        assert consume(log) == []


def test_records_cannot_be_deleted_where_there_are_none(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        fill(log, 10)
        for offset in (11, -2):
            with pytest.raises(kafkaseg.OffsetOutOfRangeError):
                log.delete_records(offset)
    with kafkaseg.Log.open(path.with_name("compacted-0"), cleanup_policy="compact") as log:
        fill(log, 10)
        with pytest.raises(kafkaseg.RejectedError, match="compacted") as caught:
            log.delete_records(5)
        assert caught.value.code == "POLICY_VIOLATION"


def test_segments_below_the_start_go_at_the_next_retention(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL) as log:
        fill(log, 300)
        bases = [segment.base_offset for segment in log.segments()]
        log.delete_records(bases[2] + 1)
        done = log.apply_retention()
        assert (done.segments, done.log_start_offset) == (2, bases[2] + 1)
        assert [segment.base_offset for segment in log.segments()] == bases[2:]


def test_retention_by_size_keeps_at_least_that_much(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL | {"retention.bytes": 9000}) as log:
        fill(log, 300)
        before = log.segments()
        done = log.apply_retention()
        left = log.stats()["bytes"]
        assert 9000 <= left < 9000 + before[done.segments - 1].bytes
        assert done.bytes == sum(segment.bytes for segment in before[: done.segments])
        assert log.start_offset == before[done.segments].base_offset == done.log_start_offset
        assert log.apply_retention().segments == 0


def test_retention_by_time_judges_the_newest_record_of_a_segment(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL | {"retention.ms": 1000}) as log:
        fill(log, 300)
        first, second = log.segments()[:2]
        assert log.apply_retention(first.largest_timestamp + 1000).segments == 0
        assert log.apply_retention(first.largest_timestamp + 1001).segments == 1
        assert log.start_offset == second.base_offset


def test_when_everything_is_too_old_an_empty_segment_remains(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL | {"retention.ms": 1000}) as log:
        fill(log, 100)
        log.apply_retention(NOW + 1_000_000)
        assert (log.start_offset, log.end_offset, log.stats()["bytes"]) == (100, 100, 0)
        assert fill(log, 5) == 105
    with kafkaseg.Log.open(path) as log:
        assert (log.start_offset, log.end_offset) == (100, 105)


def test_retention_does_not_touch_a_compacted_topic(path: Path) -> None:
    config = SMALL | {"retention.ms": 1, "retention.bytes": 1, "cleanup.policy": "compact"}
    with kafkaseg.Log.open(path, config) as log:
        fill(log, 100)
        assert log.apply_retention(NOW + 1_000_000).segments == 0


def test_retention_stays_below_the_high_watermark(path: Path) -> None:
    with kafkaseg.Log.open(path, SMALL | {"retention.bytes": 0}, replicated=True) as log:
        fill(log, 300)
        assert log.apply_retention().segments == 0
        log.high_watermark = log.segments()[2].base_offset
        assert log.apply_retention().segments == 2


def test_files_wait_under_another_name_before_they_are_removed(path: Path) -> None:
    clock = kafkaseg.ManualClock(NOW)
    config = SMALL | {"retention.bytes": 9000, "file.delete.delay.ms": 500}
    with kafkaseg.Log.open(path, config, clock=clock) as log:
        fill(log, 300)
        done = log.apply_retention()
        waiting = names(path, ".deleted")
        assert len([name for name in waiting if name.endswith(".log.deleted")]) == done.segments
        assert log.stats()["waiting_files"] == len(waiting)
        clock.advance(499)
        assert log.purge() == len(waiting)
        clock.advance(1)
        assert log.purge() == 0
        assert names(path, ".deleted") == []

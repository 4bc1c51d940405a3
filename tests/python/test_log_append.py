"""What a log refuses to append, by Kafka's names, and that a refusal leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, consume, expected_values, fill, record, records, values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "orders-0"


@pytest.fixture
def log(path: Path) -> Iterator[kafkaseg.Log]:
    with kafkaseg.Log.open(path) as log:
        fill(log, 5)
        yield log
        assert values(consume(log)) == expected_values(0, 5), "whatever was refused is not there"
        fill(log, 5)
        assert log.end_offset == 10


def test_a_batch_over_the_topic_s_limit_is_refused(path: Path) -> None:
    with kafkaseg.Log.open(path, max_message_bytes=1000) as log:
        fill(log, 5)
        with pytest.raises(kafkaseg.RejectedError, match=r"max\.message\.bytes") as caught:
            log.append([kafkaseg.Record(None, bytes(1000), timestamp=NOW)])
        assert caught.value.code == "MESSAGE_TOO_LARGE"
        log.append([kafkaseg.Record(None, bytes(1000), timestamp=NOW)], compression="zstd")


def test_a_batch_that_no_segment_holds_is_refused(path: Path) -> None:
    with kafkaseg.Log.open(path, {"internal.segment.bytes": 1000}) as log:
        with pytest.raises(kafkaseg.RejectedError) as caught:
            log.append([kafkaseg.Record(None, bytes(1000), timestamp=NOW)])
        assert caught.value.code == "RECORD_LIST_TOO_LARGE"
        assert log.end_offset == 0


def test_a_compacted_topic_refuses_records_without_a_key(path: Path) -> None:
    with kafkaseg.Log.open(path, cleanup_policy="compact") as log:
        log.append(records(2))
        batch = [record(2), record(3, key=None), record(4), record(5, key=None)]
        with pytest.raises(kafkaseg.RejectedError) as caught:
            log.append(batch)
        assert caught.value.code == "INVALID_RECORD"
        assert [index for index, _ in caught.value.records] == [1, 3]
        assert "key" in caught.value.records[0][1]
        assert log.end_offset == 2


def test_times_too_far_from_now_are_refused(path: Path) -> None:
    config = {"message.timestamp.before.max.ms": 1000, "message.timestamp.after.max.ms": 500}
    with kafkaseg.Log.open(path, config, clock=kafkaseg.ManualClock(NOW)) as log:
        for time in (NOW - 1000, NOW + 500):
            log.append([record(0, time)])
        for time in (NOW - 1001, NOW + 501):
            with pytest.raises(kafkaseg.RejectedError) as caught:
                log.append([record(0, NOW), record(1, time)])
            assert caught.value.code == "INVALID_TIMESTAMP"
            assert [index for index, _ in caught.value.records] == [1]
            assert str(time) in caught.value.records[0][1]


def test_damaged_batches_are_refused(log: kafkaseg.Log) -> None:
    good = kafkaseg.encode_batch(records(3))
    flipped = bytearray(good)
    flipped[-1] ^= 1
    with pytest.raises(kafkaseg.KafkasegError) as caught:
        log.append_batch(bytes(flipped))
    assert getattr(caught.value, "code", "CORRUPT_MESSAGE") == "CORRUPT_MESSAGE"
    for data in (b"", good[:-1], good[:40], b"nonsense" * 10):
        with pytest.raises(kafkaseg.KafkasegError):
            log.append_batch(data)


def test_a_client_sends_one_batch_at_a_time(log: kafkaseg.Log) -> None:
    with pytest.raises(kafkaseg.RejectedError) as caught:
        log.append_batch(kafkaseg.encode_batch(records(2)) + kafkaseg.encode_batch(records(2)))
    assert caught.value.code == "INVALID_RECORD"


def test_a_client_s_offsets_begin_at_zero_and_have_no_holes(log: kafkaseg.Log) -> None:
    for data in (
        kafkaseg.encode_batch(records(2), base_offset=7),
        kafkaseg.encode_batch(records(2), last_offset=5),
        kafkaseg.encode_batch(records(2), offset_deltas=[0, 2]),
    ):
        with pytest.raises(kafkaseg.KafkasegError):
            log.append_batch(data)


def test_a_client_may_not_stamp_for_the_log(path: Path) -> None:
    with kafkaseg.Log.open(path, message_timestamp_type="LogAppendTime") as log:
        with pytest.raises(kafkaseg.RejectedError) as caught:
            log.append_batch(kafkaseg.encode_batch(records(2), timestamp_type="append", append_time=NOW))
        assert caught.value.code == "INVALID_TIMESTAMP"
        assert log.end_offset == 0


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_client_s_batch_is_kept_byte_for_byte_but_for_offset_and_epoch(path: Path, codec: str) -> None:
    batch = kafkaseg.encode_batch(records(20, 5), compression=codec)
    with kafkaseg.Log.open(path) as log:
        fill(log, 5)
        info = log.append_batch(batch, leader_epoch=4)
        stored = log.read(5).data
    assert (info.base_offset, info.last_offset, info.bytes) == (5, 24, len(batch))
    assert stored == kafkaseg.patch_batch(batch, base_offset=5, leader_epoch=4)


def test_arguments_of_the_wrong_kind_are_refused(log: kafkaseg.Log) -> None:
    with pytest.raises((TypeError, AttributeError)):
        log.append([b"not a record"])
    with pytest.raises(TypeError):
        log.append_batch("text")
    with pytest.raises(ValueError, match=r"codec|compression"):
        log.append(records(1), compression="brotli")
    with pytest.raises(ValueError, match="level"):
        log.append(records(1), compression="gzip", level=99)


def test_an_index_that_is_full_begins_a_segment(path: Path) -> None:
    config = {"segment.index.bytes": 80, "index.interval.bytes": 0, "segment.bytes": 1 << 20}
    with kafkaseg.Log.open(path, config) as log:
        fill(log, 200, each=1)
        assert len(log.segments()) > 10
        assert values(consume(log)) == expected_values(0, 200)


def test_record_time_begins_a_segment(path: Path) -> None:
    with kafkaseg.Log.open(path, {"segment.ms": 100, "retention.ms": -1}) as log:
        for number in range(10):
            log.append([record(number, NOW + number * 60)])
        bases = [segment.base_offset for segment in log.segments()]
        assert bases == [0, 2, 4, 6, 8]

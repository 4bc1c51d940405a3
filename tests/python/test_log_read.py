"""Reading by offset and by time: bounds, byte limits, isolation and what a slice promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, SMALL, consume, expected_values, fill, record, records, values


@pytest.fixture
def log(tmp_path: Path) -> Iterator[kafkaseg.Log]:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", SMALL) as log:
        yield log


def test_every_offset_leads_to_its_batch(log: kafkaseg.Log) -> None:
    end = fill(log, 300)
    assert len(log.segments()) > 3
    for offset in range(end):
        fetched = log.read(offset, 1)
        assert fetched.base_offset == offset - offset % 5
        assert next(fetched.records()).offset == offset
        assert next(fetched.records()).value == f"value-{offset}".encode()


def test_a_consumer_sees_everything_once_and_in_order(log: kafkaseg.Log) -> None:
    end = fill(log, 300)
    for max_bytes in (1, 100, 1000, 1 << 20):
        found = consume(log, max_bytes=max_bytes)
        assert [r.offset for r in found] == list(range(end))
        assert values(found) == expected_values(0, end)


def test_offsets_outside_are_refused_and_the_end_is_empty(log: kafkaseg.Log) -> None:
    end = fill(log, 20)
    log.delete_records(7)
    for offset in (-1, 0, 6, end + 1, 1 << 62):
        with pytest.raises(kafkaseg.OffsetOutOfRangeError) as caught:
            log.read(offset)
        assert (caught.value.asked, caught.value.start, caught.value.end) == (offset, 7, end)
    empty = log.read(end)
    assert (empty.data, empty.segment, len(empty), list(empty.records())) == (b"", None, 0, [])
    assert [r.offset for r in log.read(7).records()][:2] == [7, 8], "a start inside a batch"


def test_numbers_that_make_no_sense_are_refused(log: kafkaseg.Log) -> None:
    fill(log, 5)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="max_bytes"):
        log.read(0, -1)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="max_bytes"):
        log.slice(0, -1)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="isolation"):
        log.read(0, isolation="read_dirty")
    with pytest.raises(kafkaseg.InvalidArgumentError, match="isolation"):
        log.offset_for_time(0, isolation="read_dirty")


def test_the_first_batch_comes_whole_unless_that_is_not_wanted(log: kafkaseg.Log) -> None:
    fill(log, 10)
    whole = log.read(0, 1)
    assert [batch.last_offset for batch in whole.batches()] == [4]
    assert not whole.first_entry_incomplete
    cut = log.read(0, 10, min_one=False)
    assert (len(cut.data), cut.first_entry_incomplete, list(cut.batches())) == (10, True, [])
    part = log.read(0, whole.bytes + 20)
    assert [batch.base_offset for batch in part.batches()] == [0], "a cut last batch is left out"
    assert len(part.data) == whole.bytes + 20


def test_a_read_ends_with_its_segment(log: kafkaseg.Log) -> None:
    fill(log, 300)
    first, second = log.segments()[:2]
    fetched = log.read(0, 1 << 30)
    assert (fetched.segment, fetched.position, fetched.bytes) == (0, 0, first.bytes)
    assert log.read(first.next_offset).segment == second.base_offset


def test_a_slice_names_bytes_of_a_file(log: kafkaseg.Log) -> None:
    fill(log, 50)
    slice_ = log.slice(12, 200)
    path = Path(log.path) / f"{slice_.segment:020}.log"
    data = path.read_bytes()[slice_.position : slice_.position + slice_.bytes]
    assert slice_.read() == data == log.read(12, 200).data
    assert (slice_.offset, slice_.base_offset, slice_.aborted) == (12, 10, None)
    assert (slice_.log_start_offset, slice_.high_watermark, slice_.last_stable_offset) == (0, 50, 50)
    assert repr(slice_) == f"Slice(offset=12, segment=0, position={slice_.position}, bytes={slice_.bytes})"


def test_a_slice_outlives_deletion_and_notices_truncation(log: kafkaseg.Log) -> None:
    fill(log, 300)
    old = log.slice(0, 500)
    before = old.read()
    log.delete_records(log.segments()[1].base_offset)
    assert log.apply_retention().segments == 1
    assert old.read() == before
    newest = log.slice(295)
    log.truncate_to(295)
    with pytest.raises(kafkaseg.LogChangedError):
        newest.read()
    fill(log, 5)
    with pytest.raises(kafkaseg.LogChangedError):
        newest.read()


def test_readers_stop_at_the_high_watermark_that_a_replica_layer_moves(tmp_path: Path) -> None:
    with kafkaseg.Log.open(tmp_path / "r" / "orders-0", replicated=True) as log:
        fill(log, 20)
        assert (log.high_watermark, log.end_offset) == (0, 20)
        assert consume(log) == []
        assert len(consume(log, "log_end")) == 20
        log.high_watermark = 10
        assert log.high_watermark == log.last_stable_offset == 10
        assert [r.offset for r in consume(log)] == list(range(10))
        log.high_watermark = 1000
        assert log.high_watermark == 20, "as near as the log reaches"
    with kafkaseg.Log.open(tmp_path / "r" / "orders-0", replicated=True) as log:
        assert log.high_watermark == 20, "from the checkpoint"


def test_times_lead_to_offsets(log: kafkaseg.Log) -> None:
    end = fill(log, 300)
    assert log.offset_for_time(-1) == kafkaseg.OffsetAndTimestamp(end, -1, 0)
    assert log.offset_for_time(-2) == kafkaseg.OffsetAndTimestamp(0, -1, 0)
    assert log.offset_for_time(-3) == kafkaseg.OffsetAndTimestamp(end - 1, NOW + end - 1, 0)
    assert log.offset_for_time(-4).offset == 0
    assert log.offset_for_time(-5) is None
    assert log.offset_for_time(0) == kafkaseg.OffsetAndTimestamp(0, NOW, 0)
    for offset in (0, 1, 77, 150, end - 1):
        assert log.offset_for_time(NOW + offset) == kafkaseg.OffsetAndTimestamp(offset, NOW + offset, 0)
    assert log.offset_for_time(NOW + end) is None
    with pytest.raises(kafkaseg.InvalidArgumentError, match="7 is no timestamp"):
        log.offset_for_time(-7)


def test_times_out_of_order_find_the_first_that_is_late_enough(log: kafkaseg.Log) -> None:
    log.append([record(0, NOW + 10), record(1, NOW + 50), record(2, NOW + 20)])
    log.append([record(3, NOW), record(4, NOW + 50), record(5, NOW + 60)])
    assert log.offset_for_time(NOW + 15).offset == 1
    assert log.offset_for_time(NOW + 51).offset == 5
    log.delete_records(2)
    assert log.offset_for_time(NOW + 15).offset == 2
    assert log.offset_for_time(-2).offset == 2


def test_a_replica_answers_for_times_below_its_high_watermark_only(tmp_path: Path) -> None:
    with kafkaseg.Log.open(tmp_path / "r" / "orders-0", replicated=True) as log:
        log.append(records(10))
        log.high_watermark = 5
        assert log.offset_for_time(NOW + 4).offset == 4
        assert log.offset_for_time(NOW + 5) is None
        assert log.offset_for_time(NOW + 5, isolation="log_end").offset == 5
        assert log.offset_for_time(-1).offset == 5

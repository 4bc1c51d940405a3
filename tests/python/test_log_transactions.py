"""Producers on the log: idempotence, sequences, epochs, transactions and who sees what."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import NOW, SMALL, abandon, consume, expected_values, records, values


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "orders-0"


@pytest.fixture
def log(path: Path) -> Iterator[kafkaseg.Log]:
    with opened(path) as log:
        yield log


def opened(path: Path) -> kafkaseg.Log:
    """At the time of the records: producers that were silent for a day are forgotten."""
    return kafkaseg.Log.open(path, SMALL, clock=kafkaseg.ManualClock(NOW))


def end(log: kafkaseg.Log, producer: int, *, commit: bool, **options: int) -> kafkaseg.AppendInfo:
    return log.end_transaction(producer, 0, commit=commit, timestamp=NOW + log.end_offset, **options)


def send(
    log: kafkaseg.Log, producer: int, sequence: int, count: int = 2, epoch: int = 0, **options: bool
) -> kafkaseg.AppendInfo:
    batch = records(count, log.end_offset)
    return log.append(batch, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)


def in_transaction(
    log: kafkaseg.Log, producer: int, sequence: int, count: int = 2, epoch: int = 0
) -> kafkaseg.AppendInfo:
    return send(log, producer, sequence, count, epoch, transactional=True)


def test_a_batch_sent_again_is_answered_with_its_first_offsets(log: kafkaseg.Log) -> None:
    first = send(log, 1, 0)
    again = send(log, 1, 0)
    assert again.duplicate
    assert (again.base_offset, again.last_offset, again.bytes) == (first.base_offset, first.last_offset, 0)
    assert log.end_offset == 2


def test_the_last_five_batches_are_remembered(log: kafkaseg.Log) -> None:
    sent = [send(log, 1, sequence) for sequence in range(0, 12, 2)]
    end = log.end_offset
    for number in range(1, 6):
        again = send(log, 1, number * 2)
        assert (again.duplicate, again.base_offset) == (True, sent[number].base_offset)
    with pytest.raises(kafkaseg.RejectedError) as caught:
        send(log, 1, 0)
    assert caught.value.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.end_offset == end


def test_duplicates_are_known_after_a_close_and_after_a_crash(path: Path) -> None:
    log = opened(path)
    send(log, 1, 0)
    log.close()
    log = opened(path)
    assert send(log, 1, 0).duplicate
    send(log, 1, 2)
    abandon(log)
    with opened(path) as log:
        assert send(log, 1, 2).duplicate
        assert not send(log, 1, 4).duplicate


def test_a_gap_in_the_sequence_is_refused(log: kafkaseg.Log) -> None:
    send(log, 1, 0)
    with pytest.raises(kafkaseg.RejectedError, match="sequence") as caught:
        send(log, 1, 5)
    assert caught.value.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert caught.value.records == ()
    assert send(log, 2, 5).base_offset == 2, "of a producer that is not known, any sequence is taken"


def test_the_sequence_wraps(log: kafkaseg.Log) -> None:
    last = (1 << 31) - 1
    send(log, 1, last - 1)
    assert not send(log, 1, 0).duplicate
    assert send(log, 1, last - 1).duplicate


def test_an_old_epoch_is_fenced_and_a_new_one_begins_at_zero(log: kafkaseg.Log) -> None:
    send(log, 1, 0, epoch=5)
    with pytest.raises(kafkaseg.RejectedError) as caught:
        send(log, 1, 2, epoch=4)
    assert caught.value.code == "INVALID_PRODUCER_EPOCH"
    with pytest.raises(kafkaseg.RejectedError) as caught:
        send(log, 1, 2, epoch=6)
    assert caught.value.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert not send(log, 1, 0, epoch=6).duplicate


def test_a_silent_producer_is_forgotten(path: Path) -> None:
    clock = kafkaseg.ManualClock(NOW)
    with kafkaseg.Log.open(path, SMALL, clock=clock) as log:
        send(log, 1, 0)
        assert log.stats()["producers"] == 1
        log.expire_producers(NOW + 1000)
        assert log.stats()["producers"] == 1
        log.expire_producers(NOW + 86_400_000 + 10)
        assert log.stats()["producers"] == 0


def test_committed_records_are_seen_by_all_and_aborted_ones_by_few(log: kafkaseg.Log) -> None:
    in_transaction(log, 1, 0)
    in_transaction(log, 2, 0)
    in_transaction(log, 1, 2)
    log.append(records(2, log.end_offset))
    end(log, 1, commit=True)
    end(log, 2, commit=False)
    assert [r.offset for r in consume(log)] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert [r.offset for r in consume(log, "read_committed")] == [0, 1, 4, 5, 6, 7]
    fetched = log.read(0, isolation="read_committed")
    assert fetched.aborted == (kafkaseg.AbortedTransaction(producer_id=2, first_offset=2),)
    assert [batch.control for batch in fetched.batches()] == [False] * 4 + [True] * 2
    assert log.read(0).aborted is None


def test_an_open_transaction_holds_readers_of_committed_records(log: kafkaseg.Log) -> None:
    log.append(records(3))
    in_transaction(log, 1, 0)
    log.append(records(3, log.end_offset))
    assert (log.last_stable_offset, log.high_watermark) == (3, 8)
    assert [r.offset for r in consume(log, "read_committed")] == [0, 1, 2]
    assert len(consume(log)) == 8
    assert log.offset_for_time(-1, isolation="read_committed").offset == 3
    info = end(log, 1, commit=True)
    assert (info.base_offset, log.last_stable_offset) == (8, 9)
    assert len(consume(log, "read_committed")) == 8


def test_an_aborted_transaction_may_span_segments(path: Path) -> None:
    log = opened(path)
    for sequence in range(0, 200, 2):
        in_transaction(log, 1, sequence)
        log.append(records(1, log.end_offset))
    end(log, 1, commit=False)
    log.append(records(1, log.end_offset))
    assert len(log.segments()) > 3
    seen = [r.offset for r in consume(log, "read_committed")]
    assert seen == [*range(2, 300, 3), 301]
    abandon(log)
    with opened(path) as log:
        assert [r.offset for r in consume(log, "read_committed")] == seen
        assert log.read(0, isolation="read_committed").aborted == (kafkaseg.AbortedTransaction(1, 0),)


def test_open_transactions_survive_a_close(path: Path) -> None:
    with opened(path) as log:
        in_transaction(log, 1, 0)
    with opened(path) as log:
        assert log.last_stable_offset == 0
        in_transaction(log, 1, 2)
        end(log, 1, commit=True)
        assert log.last_stable_offset == log.end_offset == 5
        assert values(consume(log, "read_committed")) == expected_values(0, 4)


def test_a_client_may_not_write_markers(log: kafkaseg.Log) -> None:
    marker = kafkaseg.encode_marker(True, 1, 0)  # noqa: FBT003
    with pytest.raises(kafkaseg.RejectedError) as caught:
        log.append_batch(marker)
    assert caught.value.code == "INVALID_RECORD"
    assert log.end_offset == 0


def test_a_marker_of_an_old_coordinator_is_fenced(log: kafkaseg.Log) -> None:
    in_transaction(log, 1, 0)
    end(log, 1, commit=True, coordinator_epoch=5)
    in_transaction(log, 1, 2)
    with pytest.raises(kafkaseg.RejectedError) as caught:
        end(log, 1, commit=True, coordinator_epoch=4)
    assert caught.value.code == "TRANSACTION_COORDINATOR_FENCED"


def test_the_origin_of_a_batch_is_one_of_three(log: kafkaseg.Log) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match=r"no origin .friend."):
        log.append_batch(kafkaseg.encode_batch(records(1)), origin="friend")

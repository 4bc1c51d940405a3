"""Directories that a real broker is writing, has closed, or was killed over, against what a client consumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.arrow import COLUMNS, assert_same_records, by_partition, records_of
from tests.compat.broker import RELEASES, Broker, dumped_offsets, require_kafka
from tests.compat.clients import Workload, Writer, consume
from tests.corpus import Record

pytestmark = [pytest.mark.broker, pytest.mark.slow]

LEVELS = ("read_uncommitted", "read_committed")
SCANS_WHILE_WRITING = 12
SEGMENTS_WHILE_WRITING = 4


@pytest.fixture(params=RELEASES)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    require_kafka(request.param)
    with Broker(request.param, tmp_path) as running:
        yield running


def scan(broker: Broker, topics: Iterable[str], isolation: str = LEVELS[0]) -> list[Record]:
    chosen = kafkaseg.scan(
        broker.data_dir, topics=sorted(topics), columns=COLUMNS, headers=True, isolation=isolation
    )
    return records_of(chosen.to_arrow())


def consume_both(broker: Broker, topics: list[str]) -> dict[str, list[Record]]:
    """The truth in both isolation levels; the two differ, or the workload proves nothing."""
    consumed = {isolation: consume(broker, topics, isolation) for isolation in LEVELS}
    assert len(consumed[LEVELS[0]]) > len(consumed[LEVELS[1]]) > 2_000
    return consumed


def assert_scans_as_consumed(broker: Broker, topics: list[str], consumed: dict[str, list[Record]]) -> None:
    for isolation, records in consumed.items():
        assert assert_same_records(scan(broker, topics, isolation), records) == len(records)


def test_a_running_and_a_stopped_broker_read_as_a_consumer_reads_them(broker: Broker) -> None:
    workload = Workload(broker)
    workload.produce_all()
    consumed = consume_both(broker, workload.topics)
    assert_scans_as_consumed(broker, workload.topics, consumed)

    broker.stop()
    assert (broker.data_dir / ".kafka_cleanshutdown").exists()
    assert_scans_as_consumed(broker, workload.topics, consumed)

    segments = sorted((broker.data_dir / "codec-zstd-0").glob("*.log"))
    assert len(segments) > 1, "the topic rolled"
    offsets = [record.offset for record in by_partition(consumed[LEVELS[0]])["codec-zstd", 0]]
    assert dumped_offsets(broker.dump_log(segments)) == offsets


def test_a_written_then_killed_broker_never_shows_what_is_not_there(broker: Broker) -> None:
    """One broker for both states: starting it is most of the time that this test takes."""
    workload = Workload(broker)
    workload.produce_all()
    assert_every_scan_under_a_writer_is_a_prefix(broker)
    topics = [*workload.topics, "growing"]
    consumed = consume_both(broker, topics)
    broker.kill()
    assert not (broker.data_dir / ".kafka_cleanshutdown").exists()
    assert_scans_as_consumed(broker, topics, consumed)


def assert_every_scan_under_a_writer_is_a_prefix(broker: Broker) -> None:
    """Goal: a live directory never shows a record that is not there, nor a hole.

    Method: scan again and again while a client appends and segments roll; each result, partition by
    partition, is a prefix of what a consumer reads in the end.
    """
    broker.create_topic("growing", partitions=2, segment_bytes=40_000)
    segments = broker.data_dir / "growing-0"
    scans: list[dict[tuple[str, int], list[Record]]] = []
    with Writer(broker, "growing", compression_type="zstd"):
        while len(scans) < SCANS_WHILE_WRITING or len(list(segments.glob("*.log"))) < SEGMENTS_WHILE_WRITING:
            seen = by_partition(scan(broker, ["growing"]))
            if not scans or count(seen) > count(scans[-1]):
                scans.append(seen)
    truth = by_partition(consume(broker, ["growing"], LEVELS[0]))
    for seen in scans:
        for partition, records in seen.items():
            assert_same_records(records, truth[partition][: len(records)])
    assert 0 < count(scans[-2]) < count(scans[-1]) <= count(truth)


def count(partitions: dict[tuple[str, int], list[Record]]) -> int:
    return sum(len(records) for records in partitions.values())

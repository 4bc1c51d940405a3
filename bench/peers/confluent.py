"""A tuned confluent-kafka consumer that makes Arrow tables of what a broker on loopback serves.

The broker adopts the first records of each dataset: its topics are created, it is stopped, their `.log` files
are replaced, and it is started again; it then serves exactly the bytes that the scan reads.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench.timing import UnavailableError
from tests.compat.broker import Broker, KafkaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from bench.data import Dataset

RELEASE = "4.3.0"
# The consumer takes about a second for these; the rest of a dataset would only repeat it.
SAMPLE_RECORDS = 1_000_000
SAMPLE_BYTES = 256 << 20
TIMEOUT_SECONDS = 30.0
# Large fetches, a deep queue and large hand-overs: each measured to help; the defaults reach an eighth.
TUNED = {
    "fetch.message.max.bytes": 16 << 20,
    "fetch.max.bytes": 64 << 20,
    "receive.message.max.bytes": (64 << 20) + 4096,
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1 << 20,
    "fetch.wait.max.ms": 10,
    "socket.receive.buffer.bytes": 4 << 20,
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "log_level": 0,
}
HAND_OVER = 50_000
KINDS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


class ServedDatasets:
    """`with ServedDatasets(datasets, folder) as served: served.round(dataset)`."""

    def __init__(self, datasets: Iterable[Dataset], folder: Path) -> None:
        self.datasets = list(datasets)
        self.records: dict[str, int] = {}
        try:
            self.broker = Broker(RELEASE, folder)
        except KafkaUnavailableError as reason:
            raise UnavailableError(str(reason)) from reason

    def __enter__(self) -> Self:
        broker = self.broker
        try:
            broker.start()
            for dataset in self.datasets:
                broker.create_topic(topic_of(dataset))
            broker.stop()
            for dataset in self.datasets:
                self.adopt(dataset)
            broker.start()
        except BaseException:
            broker.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.kill()

    def adopt(self, dataset: Dataset) -> None:
        """Puts the first batches in the topic's place; the broker rebuilds what stands beside the log."""
        folder = self.broker.data_dir / f"{topic_of(dataset)}-0"
        for file in folder.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        sample, records = first_batches(dataset)
        (folder / f"{0:020}.log").write_bytes(sample)
        self.records[topic_of(dataset)] = records

    def round(self, dataset: Dataset) -> tuple[float, int]:
        """Seconds from the first records to the end of the partition, and the number of records."""
        topic = topic_of(dataset)
        # The timer starts with the first records in hand: meeting the broker is not reading.
        client = Consumer({"bootstrap.servers": self.broker.bootstrap, "group.id": "unused", **TUNED})
        client.assign([TopicPartition(topic, 0, 0)])
        try:
            start, tables = None, []
            while True:
                messages = client.consume(HAND_OVER, timeout=0.05) or client.consume(1, TIMEOUT_SECONDS)
                if not messages:
                    raise RuntimeError(f"the broker serves no end of {topic}")
                start = start or time.perf_counter()
                if is_end(messages[-1]):
                    messages.pop()
                    tables.append(arrow_batch(messages, topic))
                    break
                tables.append(arrow_batch(messages, topic))
            table = pa.Table.from_batches(tables)
            seconds = time.perf_counter() - start
        finally:
            client.close()
        assert table.num_rows == self.records[topic], f"{table.num_rows} rows of {topic}"
        return seconds, table.num_rows


def topic_of(dataset: Dataset) -> str:
    return f"{dataset.codec}-{dataset.value_bytes}"


def first_batches(dataset: Dataset) -> tuple[bytes, int]:
    """The batches that start a dataset, up to the size of a sample, and their records."""
    with dataset.segments[0].open("rb") as file:
        log = file.read(SAMPLE_BYTES)
    position = records = 0
    while position + 61 <= len(log) and records < SAMPLE_RECORDS:
        (length,) = struct.unpack_from(">i", log, position + 8)
        if position + 12 + length > len(log):
            break
        records += struct.unpack_from(">i", log, position + 57)[0]
        position += 12 + length
    return log[:position], records


def is_end(message: object) -> bool:
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:
        return True
    raise RuntimeError(str(error))


def arrow_batch(messages: list[object], topic: str) -> pa.RecordBatch:
    """All columns that the scan gives, each from one comprehension."""
    count = len(messages)
    times = [message.timestamp() for message in messages]
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.repeat(topic, count),
        pa.repeat(pa.scalar(0, pa.int32()), count),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([time for _, time in times], pa.timestamp("ms")),
        pa.array([kind for kind, _ in times], pa.int32()),
    ]
    return pa.record_batch(columns, names=KINDS)

"""librdkafka clients that feed a real broker and read it back."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.compat.broker import Broker
from tests.corpus import Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 2
SEGMENT_BYTES = 6_000
TIMEOUT_SECONDS = 30
# The broker goes away under these clients on purpose; their log would only repeat that.
QUIET = {"log_level": 0}


def producer(broker: Broker, **config: object) -> Producer:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "batch.num.messages": 20, **QUIET, **settings}
    )


def flush(client: Producer) -> None:
    left = client.flush(TIMEOUT_SECONDS)
    assert left == 0, f"{left} records were not delivered"


def produce(client: Producer, topic: str, count: int, seed: int) -> None:
    """Records with null, empty and repeated parts; every field takes all of its shapes."""
    draw = random.Random(seed)
    words = [b"alpha", b"bravo", b"charlie", "naïve 東京".encode()]
    for number in range(count):
        client.produce(
            topic,
            value=draw.choice(
                [None, b"", draw.randbytes(draw.randrange(40)), b" ".join(draw.choices(words, k=30))]
            ),
            key=draw.choice([None, b"", b"key-%d" % draw.randrange(20)]),
            headers=draw.choice(
                [None, [("h", b"1"), ("h", None), ("", b"")], [("naïve", draw.randbytes(5))]]
            ),
            partition=number % PARTITIONS,
            timestamp=1_700_000_000_000 + draw.randrange(100_000),
        )
        if number % 50 == 49:
            client.poll(0)


class Workload:
    """Topics with everything that a client can write; keeps the producer of the open transaction alive."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.topics = [f"codec-{codec}" for codec in CODECS] + ["idempotent", "append-time", "transactions"]
        for topic in self.topics:
            kind = {"message_timestamp_type": "LogAppendTime"} if topic == "append-time" else {}
            broker.create_topic(topic, PARTITIONS, segment_bytes=SEGMENT_BYTES, **kind)
        self.open_transaction: Producer | None = None

    def produce_all(self) -> None:
        for seed, codec in enumerate(CODECS):
            client = producer(self.broker, compression_type=codec)
            produce(client, f"codec-{codec}", 400, seed)
            flush(client)
        for seed, topic in enumerate(["idempotent", "append-time"], start=100):
            client = producer(self.broker, enable_idempotence=True, compression_type="lz4")
            produce(client, topic, 200, seed)
            flush(client)
        self.transact()

    def transact(self) -> None:
        """Overlapping transactions: committed, aborted, and one left open before plain records."""
        topic = "transactions"
        clients = [producer(self.broker, transactional_id=f"t{number}") for number in range(4)]
        for client in clients:
            client.init_transactions(TIMEOUT_SECONDS)
        for turn in range(3):
            for seed, client in enumerate(clients[:3]):
                client.begin_transaction()
                produce(client, topic, 10, 200 + 10 * turn + seed)
            for client in clients[:3]:
                flush(client)
            clients[0].commit_transaction(TIMEOUT_SECONDS)
            clients[1].abort_transaction(TIMEOUT_SECONDS)
            (clients[2].commit_transaction if turn % 2 else clients[2].abort_transaction)(TIMEOUT_SECONDS)
        self.open_transaction = clients[3]
        self.open_transaction.begin_transaction()
        produce(self.open_transaction, topic, 10, 300)
        flush(self.open_transaction)
        plain = producer(self.broker)
        produce(plain, topic, 20, 301)
        flush(plain)


class Writer:
    """Appends to a topic in the background until told to stop."""

    def __init__(self, broker: Broker, topic: str, **config: object) -> None:
        self.client = producer(broker, **config)
        self.topic = topic
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self.thread.join()
        flush(self.client)

    def run(self) -> None:
        seed = 0
        while not self.stopping.is_set():
            produce(self.client, self.topic, 50, seed)
            seed += 1
            time.sleep(0.005)


def consume(
    broker: Broker, topics: Iterable[str], isolation: str, partitions: int = PARTITIONS
) -> list[Record]:
    """Every record of the topics up to the end of each partition, as librdkafka delivers it."""
    client = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            **QUIET,
        }
    )
    pending = {(topic, number) for topic in topics for number in range(partitions)}
    client.assign([TopicPartition(topic, number, 0) for topic, number in pending])
    records: list[Record] = []
    try:
        while pending:
            messages = client.consume(5_000, timeout=0.2) or client.consume(1, timeout=TIMEOUT_SECONDS)
            assert messages, f"no end of {pending}"
            for message in messages:
                if message.error() is None:
                    records.append(as_record(message))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    pending.discard((message.topic(), message.partition()))
                else:
                    raise AssertionError(message.error())
    finally:
        client.close()
    return records


def as_record(message: object) -> Record:
    # librdkafka counts timestamp types from 1 (0 is "none"), Kafka and Spark from 0.
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp,
        kind - 1,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.leader_epoch(),
    )

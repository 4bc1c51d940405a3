"""Partition directories to measure with, made once and kept in .cache/bench.

A pool of distinct batches is encoded as a producer would, then repeated with rising base offsets until the
records fill the wanted bytes: the base offset lies outside the checksum, so a repeat costs a copy.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

import kafkaseg

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# What Java's producer collects at its default batch.size, counted before compression.
BATCH_BYTES = 16 << 10
POOL_BATCHES = 512
SEGMENT_BYTES = 1 << 30
INDEX_INTERVAL_BYTES = 4096
FIRST_TIMESTAMP = 1_750_000_000_000
TOPIC = "orders"
# Part of the cache key: counts up when the same parameters give other bytes.
EDITION = 2

HEADER_BYTES = 61

Record = tuple[int, bytes, bytes]


@dataclass(frozen=True)
class Dataset:
    """A `log.dirs` entry with one partition, and what a reader of it must find."""

    folder: str
    codec: str
    value_bytes: int
    records: int
    batches: int
    key_bytes: int
    all_value_bytes: int
    log_bytes: int
    inflated_bytes: int

    @property
    def directory(self) -> Path:
        return Path(self.folder)

    @property
    def partition(self) -> Path:
        return self.directory / f"{TOPIC}-0"

    @property
    def segments(self) -> list[Path]:
        return sorted(self.partition.glob("*.log"))

    @property
    def ratio(self) -> float:
        return self.inflated_bytes / (self.log_bytes - HEADER_BYTES * self.batches)


def dataset(codec: str, value_bytes: int, total_bytes: int) -> Dataset:
    """Records of `total_bytes` before compression; from the cache when it was made before."""
    name = f"v{EDITION}-{codec}-{value_bytes}-{total_bytes >> 10}k"
    folder = CACHE / name
    facts = folder / "bench.json"
    if facts.exists():
        return Dataset(folder=str(folder), **json.loads(facts.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    made = write_dataset(folder, codec, value_bytes, total_bytes)
    stored = asdict(made)
    del stored["folder"]
    facts.write_text(json.dumps(stored))
    return made


def write_dataset(folder: Path, codec: str, value_bytes: int, total_bytes: int) -> Dataset:
    """Repeats the pool; rolls segments at 1 GiB and indexes them as Kafka does."""
    pool = [
        (encode(records, codec), len(encode(records, "none")) - HEADER_BYTES, records)
        for records in record_pool(value_bytes)
    ]
    writer = SegmentWriter(folder / f"{TOPIC}-0")
    records = batches = key_bytes = all_value_bytes = inflated = 0
    while inflated < total_bytes:
        batch, plain_bytes, content = pool[batches % len(pool)]
        struct.pack_into(">q", batch, 0, records)
        writer.append(batch, records, len(content))
        batches += 1
        records += len(content)
        inflated += plain_bytes
        key_bytes += sum(len(key) for _, key, _ in content)
        all_value_bytes += len(content) * value_bytes
    writer.close()
    return Dataset(
        str(folder),
        codec,
        value_bytes,
        records,
        batches,
        key_bytes,
        all_value_bytes,
        writer.total_bytes,
        inflated,
    )


class SegmentWriter:
    """`.log` and `.index` files of one partition."""

    def __init__(self, partition: Path) -> None:
        partition.mkdir(parents=True)
        self.partition = partition
        self.log = None
        self.index = None
        self.base_offset = self.position = self.since_entry = self.total_bytes = 0

    def append(self, batch: bytearray, offset: int, records: int) -> None:
        if self.log is None or self.position + len(batch) > SEGMENT_BYTES:
            self.roll(offset)
        if self.since_entry > INDEX_INTERVAL_BYTES:
            # An entry names the last offset of the batch it stands for.
            last = offset + records - 1
            self.index.write(struct.pack(">ii", last - self.base_offset, self.position))
            self.since_entry = 0
        self.log.write(batch)
        self.position += len(batch)
        self.since_entry += len(batch)
        self.total_bytes += len(batch)

    def roll(self, offset: int) -> None:
        self.close()
        self.log = (self.partition / f"{offset:020}.log").open("wb")
        self.index = (self.partition / f"{offset:020}.index").open("wb")
        self.base_offset, self.position, self.since_entry = offset, 0, 0

    def close(self) -> None:
        for file in (self.log, self.index):
            if file is not None:
                file.close()


def record_pool(value_bytes: int, batches: int = POOL_BATCHES) -> list[list[Record]]:
    """Batches of (milliseconds, key, value); the same for the same arguments."""
    draw = random.Random(value_bytes)
    # Length, attributes, two deltas, two lengths and the header count stand around key and value.
    per_record = value_bytes + 13 + 9
    count = max(1, (BATCH_BYTES - HEADER_BYTES) // per_record)
    return [
        [(FIRST_TIMESTAMP + number // 4, *draw_pair(draw, value_bytes)) for number in range(count)]
        for _ in range(batches)
    ]


EVENTS = ("view", "click", "add_to_cart", "checkout", "purchase", "refund", "search", "login")
PLACES = ("Berlin", "Paris", "New York", "Tokyo", "Nairobi", "Lima", "Oslo", "Perth", "Austin", "Quito")


def draw_pair(draw: random.Random, value_bytes: int) -> tuple[bytes, bytes]:
    """A key of 10 to 14 bytes and a JSON object of exactly `value_bytes`."""
    user = draw.randrange(10 ** draw.randrange(5, 10))
    parts = [f'{{"user":{user},"event":"{draw.choice(EVENTS)}"']
    size = len(parts[0])
    while size < value_bytes:
        part = (
            f',"item":"{draw.randrange(10**9):09d}","price":{draw.randrange(100_000) / 100}'
            f',"place":"{draw.choice(PLACES)}","session":"{draw.randbytes(6).hex()}"'
        )
        parts.append(part)
        size += len(part)
    value = "".join(parts)[: value_bytes - 2] + '"}'
    return b"user-%05d" % user, value.encode()


def encode(records: list[Record], codec: str) -> bytearray:
    """A version 2 batch at offset 0, as Java's producer compresses it and a leader stores it."""
    content = [kafkaseg.Record(key, value, timestamp=timestamp) for timestamp, key, value in records]
    return bytearray(kafkaseg.encode_batch(content, leader_epoch=0, compression=codec))

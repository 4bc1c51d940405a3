"""Directories that real brokers wrote, and what real clients read from them.

The corpus is looked for in $KAFKASEG_CORPUS, then in ../shared/corpus beside the checkout, then in
tests/data. Under CI=true the small copy in tests/data is not enough: a job that silently tests less than
it promises is worse than one that fails.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "corpus"

#: Spark's numbers for the type of a timestamp.
TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}

TopicPartition = tuple[str, int]


class Record(NamedTuple):
    """One record as a consumer delivers it; `leader_epoch` is None where the client reports none."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int | None

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition


@dataclass(frozen=True)
class Case:
    """One folder of the corpus."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def log_dir(self) -> Path:
        return self.path / "log"

    @property
    def expected(self) -> Path:
        return self.path / "expected"

    @cached_property
    def about(self) -> dict[str, Any]:
        """What produced the case: expected/case.json."""
        return json.loads((self.expected / "case.json").read_text())

    @cached_property
    def records(self) -> list[Record]:
        """What a consumer read with read_uncommitted."""
        return read_records(self.expected / "records.jsonl")

    @cached_property
    def committed(self) -> list[Record]:
        """What a consumer read with read_committed."""
        return read_records(self.expected / "committed.jsonl")

    @property
    def has_committed(self) -> bool:
        return exists(self.expected / "committed.jsonl")

    @cached_property
    def offsets_for_times(self) -> list[dict[str, Any]]:
        """ListOffsets requests and the running broker's answers."""
        return json.loads((self.expected / "offsets_for_times.json").read_text())

    @property
    def has_offsets_for_times(self) -> bool:
        return (self.expected / "offsets_for_times.json").exists()

    @property
    def is_damaged(self) -> bool:
        """Cut or changed on purpose after the broker was killed."""
        return "-torn-" in self.name or "-corrupt-" in self.name

    @property
    def topics(self) -> set[str]:
        """The topics whose truth is recorded, among them those where a consumer finds nothing."""
        ranges = self.about.get("ranges") or {}
        return {name.rpartition("-")[0] for name in ranges} | {record.topic for record in self.records}


def exists(path: Path) -> bool:
    return path.exists() or path.with_name(path.name + ".gz").exists()


def read_records(path: Path) -> list[Record]:
    """Records of a .jsonl file, plain or with .gz appended."""
    if path.exists():
        lines = path.read_text().splitlines()
    else:
        lines = gzip.decompress(path.with_name(path.name + ".gz").read_bytes()).decode().splitlines()
    return [parse_record(json.loads(line)) for line in lines]


def parse_record(line: dict[str, Any]) -> Record:
    return Record(
        line["topic"],
        line["partition"],
        line["offset"],
        line["timestamp"],
        TIMESTAMP_TYPES[line["timestamp_type"]],
        decode(line["key"]),
        decode(line["value"]),
        tuple((name, decode(value)) for name, value in line["headers"]),
        line["leader_epoch"],
    )


def decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def corpus_dir() -> Path:
    """The best corpus at hand; fails where CI expects the whole one and it is not there."""
    if configured := os.environ.get("KAFKASEG_CORPUS"):
        path = Path(configured)
        if not path.is_dir():
            raise FileNotFoundError(f"KAFKASEG_CORPUS={configured} is not a directory")
        return path
    if SHARED.is_dir():
        return SHARED
    if os.environ.get("CI") == "true":
        raise FileNotFoundError("CI=true and no ../shared/corpus: refusing to test against tests/data only")
    return BUNDLED


@cache
def cases() -> dict[str, Case]:
    """Every case of the corpus by name; never empty."""
    folder = corpus_dir()
    found = {path.name: Case(path) for path in sorted(folder.iterdir()) if (path / "log").is_dir()}
    if not found:
        raise FileNotFoundError(f"no case in {folder}")
    return found

"""Logs made, filled, read and compared by the tests of the engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kafkaseg

#: 2023-11-14; clocks of tests start here.
NOW = 1_700_000_000_000

#: Segments of a few batches, index entries at almost every batch.
SMALL: dict[str, Any] = {"internal.segment.bytes": 2000, "index.interval.bytes": 200, "retention.ms": -1}

ROOT = Path(__file__).resolve().parents[1]


def record(number: int, timestamp: int | None = None, key: bytes | None = b"key") -> kafkaseg.Record:
    """A record whose value tells its number."""
    time = NOW + number if timestamp is None else timestamp
    return kafkaseg.Record(key, f"value-{number}".encode(), timestamp=time)


def records(count: int, first: int = 0) -> list[kafkaseg.Record]:
    return [record(number) for number in range(first, first + count)]


def fill(log: kafkaseg.Log, count: int, each: int = 5) -> int:
    """Appends `count` records in batches of `each`; their values are their offsets. Gives the end."""
    for _ in range(0, count, each):
        log.append(records(each, log.end_offset))
    return log.end_offset


def consume(
    log: kafkaseg.Log, isolation: str = "read_uncommitted", start: int | None = None, max_bytes: int = 1 << 20
) -> list[kafkaseg.StoredRecord]:
    """Every record that a consumer of this isolation level would see."""
    found: list[kafkaseg.StoredRecord] = []
    offset = log.start_offset if start is None else start
    while True:
        fetched = log.read(offset, max_bytes, isolation=isolation)
        batches = list(fetched.batches())
        if not batches:
            return found
        found += fetched.records()
        offset = batches[-1].last_offset + 1


def values(found: Iterable[kafkaseg.Record]) -> list[bytes | None]:
    return [record.value for record in found]


def expected_values(first: int, end: int) -> list[bytes]:
    return [f"value-{number}".encode() for number in range(first, end)]


def files(directory: Path) -> dict[str, bytes]:
    """Every file below a directory with its content."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def names(directory: Path, suffix: str = "") -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.endswith(suffix))


def copy_of(source: Path, target: Path) -> Path:
    """A copy that may be changed, whatever the rights of the original are."""
    shutil.copytree(source, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def abandon(log: kafkaseg.Log | kafkaseg.LogDir) -> None:
    """Ends a log as the death of its process would: nothing more is written, the lock is gone."""
    del log._native


def python(code: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Another process that runs this code with kafkaseg at hand."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
        **options,
    )

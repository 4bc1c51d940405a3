"""Scanning partition directories into Arrow."""

from __future__ import annotations

import os
import re
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from kafkaseg import _native
from kafkaseg.errors import InvalidArgumentError
from kafkaseg.info import OffsetAndTimestamp
from kafkaseg.report import Report, from_native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    _Path = str | os.PathLike[str]
    _Offsets = int | Mapping[str, Mapping[int, int]] | None
    _Time = int | datetime | None
    _Isolation = Literal["read_uncommitted", "read_committed"]

__all__ = ["COLUMNS", "Scan", "batches", "offsets_for_time", "scan"]

#: Columns of Spark's Kafka source, which a scan gives when none are named.
_DEFAULT = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

#: Every column that can be asked for.
COLUMNS = (
    *_DEFAULT,
    "headers",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "sequence",
    "batch_base_offset",
    "batch_position",
    "segment",
    "codec",
    "magic",
    "is_transactional",
    "is_control",
)

_BATCH_BYTES_MIN = 1 << 10
_BATCH_BYTES_MAX = 1 << 30
_THREADS_MAX = 1024


def scan(
    path: _Path | Iterable[_Path],
    *,
    topics: str | Sequence[str] | None = None,
    pattern: str | None = None,
    partitions: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    start: _Offsets = None,
    end: _Offsets = None,
    start_timestamp: _Time = None,
    end_timestamp: _Time = None,
    isolation: _Isolation = "read_uncommitted",
    headers: bool = False,
    control: bool = False,
    on_corrupt: Literal["error", "skip", "stop"] = "error",
    on_missing: Literal["error", "skip"] = "error",
    batch_bytes: int = 4 << 20,
    verify: bool = True,
    threads: int = 1,
) -> Scan:
    """Plans a scan of Kafka partition directories; nothing is decoded before the result is used.

    The snapshot is taken here: what a broker appends later is not read. Nothing is ever written.

    Args:
        path: a `log.dirs` entry, a partition directory, a `.log` file, or several of them.
        topics: topics by name. Without it every topic but `__cluster_metadata` is read.
        pattern: topics by regular expression, matched against the whole name.
        partitions: partition numbers.
        columns: names from `COLUMNS`, in the order wanted; what is not named is not built.
        start: first offset, for all partitions or as `{topic: {partition: offset}}`.
        end: offset to end before, in the same forms.
        start_timestamp: records at or after this time, milliseconds or an aware datetime.
        end_timestamp: records before this time. Timestamps need not rise with offsets, so this
            never ends a scan early.
        isolation: "read_committed" hides aborted and still open transactions.
        headers: adds the headers column.
        control: gives control records too (transaction markers, KRaft control records).
        on_corrupt: "error" raises `CorruptLogError`, "skip" reports the damage and goes on behind
            it, "stop" reports it and ends that partition there.
        on_missing: "skip" reports segment files that vanished since the snapshot; "error" raises
            `LogChangedError`.
        batch_bytes: size that an Arrow batch grows to.
        verify: compares every checksum.
        threads: threads that read; output stays in offset order within a partition.

    Raises:
        LogFileNotFoundError: a path does not exist.
        InvalidArgumentError: a path is no Kafka directory, or an argument makes no sense.
    """
    found = _native.Found(_paths(path))
    _check_range("batch_bytes", batch_bytes, _BATCH_BYTES_MIN, _BATCH_BYTES_MAX)
    _check_range("threads", threads, 1, _THREADS_MAX)
    chosen = list(_DEFAULT if columns is None else columns)
    if headers and "headers" not in chosen:
        chosen.append("headers")
    plan = found.plan(
        topics=_topics(found, topics, pattern),
        partitions=_numbers(partitions),
        start=_offsets(start),
        end=_offsets(end),
        columns=chosen,
        start_timestamp=_milliseconds("start_timestamp", start_timestamp),
        end_timestamp=_milliseconds("end_timestamp", end_timestamp),
        isolation=isolation,
        control=control,
        on_corrupt=on_corrupt,
        on_missing=on_missing,
        batch_bytes=batch_bytes,
        verify=verify,
        threads=threads,
    )
    return Scan(plan)


class Scan:
    """A planned scan. It can be read any number of times, each time the same snapshot.

    Any library that reads the Arrow C stream interface takes it as it is, DuckDB and Polars among
    them. It can be pickled and read in another process that sees the same files.
    """

    __slots__ = ("__weakref__", "_plan", "_reader", "_report")

    def __init__(self, plan: _native.ScanPlan) -> None:
        self._plan = plan
        self._reader: _native.ScanReader | None = None
        self._report: Report | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches of about `batch_bytes`."""
        import pyarrow as pa

        reader = self._open()
        while (batch := reader.next_batch()) is not None:
            yield pa.record_batch(batch)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The scan as an Arrow C stream."""
        return self._open().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """The schema as an Arrow C schema."""
        return self._plan.__arrow_c_schema__()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        import pyarrow as pa

        return pa.schema(self)

    def to_arrow(self) -> pa.Table:
        """Everything, as a pyarrow table."""
        import pyarrow as pa

        return pa.Table.from_batches(self, schema=self.schema)

    def to_polars(self) -> pl.DataFrame:
        """Everything, as a Polars frame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """Everything, as a pandas frame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def count(self) -> int:
        """Number of records, from the batch headers.

        No record is decoded unless a bound cuts through a batch, records are chosen by time, or an
        old-format set is compressed.
        """
        count, report = self._plan.count()
        self._reader = None
        self._report = from_native(report, self._plan.passed())
        return count

    def splits(self, parts: int) -> list[Self]:
        """At most `parts` scans of about as many bytes each, together exactly this one.

        Segments are cut where their index knows a batch to start. With `on_corrupt="stop"`
        partitions stay whole, because what ends one is only known by reading it from its start.
        """
        _check_range("parts", parts, 1, 1 << 30)
        return [type(self)(plan) for plan in self._plan.splits(parts)]

    @property
    def report(self) -> Report:
        """What the latest reading of this scan has met so far."""
        if self._reader is not None:
            return from_native(self._reader.report(), self._plan.passed())
        return self._report or Report(passed=tuple((str(p), why) for p, why in self._plan.passed()))

    @property
    def bytes(self) -> int:
        """Bytes of segment files that a reading passes."""
        return self._plan.bytes

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """Topic and number of every partition that is read."""
        return [(topic, partition) for topic, partition, *_ in self._plan.partitions()]

    def _open(self) -> _native.ScanReader:
        self._reader = self._plan.open()
        return self._reader

    def __reduce__(self) -> tuple[type[Self], tuple[_native.ScanPlan]]:
        return type(self), (self._plan,)

    def __repr__(self) -> str:
        return f"<kafkaseg.Scan of {len(self.partitions)} partitions, {self.bytes:,} bytes>"


def batches(
    path: _Path | Iterable[_Path],
    *,
    topics: str | Sequence[str] | None = None,
    pattern: str | None = None,
    partitions: int | Sequence[int] | None = None,
    verify: bool = False,
) -> pa.Table:
    """One row for every batch below a path, from the batch headers alone.

    Takes `topics`, `pattern` and `partitions` as `scan` does. With `verify` the checksums are
    compared and damaged batches left out.
    """
    import pyarrow as pa

    found = _native.Found(_paths(path))
    plan = found.plan(
        topics=_topics(found, topics, pattern),
        partitions=_numbers(partitions),
        start=None,
        end=None,
        columns=[],
        verify=verify,
        on_corrupt="skip",
    )
    batch, _ = plan.batches()
    return pa.Table.from_batches([pa.record_batch(batch)])


def offsets_for_time(
    path: _Path | Iterable[_Path],
    timestamp: int | datetime,
    *,
    topics: str | Sequence[str] | None = None,
    isolation: _Isolation = "read_uncommitted",
) -> dict[tuple[str, int], OffsetAndTimestamp | None]:
    """For each partition the first record at or after a time, as a broker's ListOffsets answers.

    Args:
        path: as `scan` takes it.
        timestamp: milliseconds or an aware datetime; or -1 for the end of the log, -2 and -4 for its
            start, -3 for the record with the largest timestamp.
        topics: topics by name.
        isolation: "read_committed" answers nothing at or beyond the last stable offset.
    """
    found = _native.Found(_paths(path))
    plan = found.plan(
        topics=_topics(found, topics, None),
        partitions=None,
        start=None,
        end=None,
        columns=[],
        isolation=isolation,
        on_corrupt="skip",
    )
    query = _milliseconds("timestamp", timestamp)
    return {
        (topic, partition): None if answer is None else OffsetAndTimestamp(*answer)
        for topic, partition, answer in plan.offsets_for_time(-1 if query is None else query)
    }


def _paths(path: _Path | Iterable[_Path]) -> list[str]:
    if isinstance(path, str | os.PathLike):
        return [os.fspath(path)]
    paths = [os.fspath(each) for each in path]
    if not paths:
        message = "no path to scan"
        raise InvalidArgumentError(message)
    return paths


def _topics(
    found: _native.Found, topics: str | Sequence[str] | None, pattern: str | None
) -> list[str] | None:
    if pattern is None:
        if topics is None:
            return None
        return [topics] if isinstance(topics, str) else list(topics)
    if topics is not None:
        message = "give topics or pattern, not both"
        raise InvalidArgumentError(message)
    try:
        expression = re.compile(pattern)
    except re.error as error:
        message = f"pattern {pattern!r} is no regular expression: {error}"
        raise InvalidArgumentError(message) from error
    return [topic for topic in found.topics() if expression.fullmatch(topic)]


def _numbers(partitions: int | Sequence[int] | None) -> list[int] | None:
    if partitions is None:
        return None
    return [partitions] if isinstance(partitions, int) else list(partitions)


def _offsets(offsets: _Offsets) -> int | dict[str, dict[int, int]] | None:
    if offsets is None or isinstance(offsets, int):
        return offsets
    return {topic: dict(partitions) for topic, partitions in offsets.items()}


def _milliseconds(name: str, time: _Time) -> int | None:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        message = f"{name} {time} has no time zone: give an aware datetime or milliseconds"
        raise InvalidArgumentError(message)
    return int(time.timestamp() * 1000)


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        message = f"{name} must be from {low} to {high}, not {value}"
        raise InvalidArgumentError(message)

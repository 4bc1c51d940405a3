"""What logs and log directories say of themselves and of what they did."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaseg import _native

__all__ = [
    "AbortedTransaction",
    "AppendInfo",
    "Cut",
    "DirectoryRecovery",
    "Durability",
    "MetaProperties",
    "OffsetAndTimestamp",
    "Recovery",
    "Retained",
    "SegmentInfo",
    "TableInfo",
    "Upkeep",
]


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """An answer of `offsets_for_time`; the timestamp is -1 where the answer is not a record."""

    offset: int
    timestamp: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class AppendInfo:
    """What an append did."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    #: The stamp of a topic with `message.timestamp.type=LogAppendTime`, else -1.
    log_append_time: int
    log_start_offset: int
    bytes: int
    #: Whether the batch was there already: its offsets are those of the first time.
    duplicate: bool


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What appending a table did. The offsets are None for a table without rows."""

    records: int
    batches: int
    bytes: int
    base_offset: int | None
    last_offset: int | None


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction whose records a reader of committed records skips, from an offset on."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One segment of a log."""

    base_offset: int
    #: The offset after its last: the base of the next segment, or the end of the log.
    next_offset: int
    bytes: int
    largest_timestamp: int
    offset_index_entries: int
    time_index_entries: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """Bytes that opening a log took out of it."""

    file: str
    position: int
    bytes: int
    #: The check that failed; None for good bytes behind bad ones.
    kind: str | None
    #: Where the bytes are now; None when they were zeros, or there was no space for a copy.
    kept_in: str | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What opening a log found and did."""

    #: Whether the log was closed cleanly.
    clean: bool
    segments_recovered: tuple[int, ...]
    bytes_checked: int
    bytes_truncated: int
    cuts: tuple[Cut, ...]
    indexes_rebuilt: tuple[str, ...]
    #: Files that interrupted work had left.
    leftovers: tuple[str, ...]
    segments_split: tuple[int, ...]
    #: What there was no space for.
    skipped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DirectoryRecovery:
    """What opening a log directory found and did."""

    clean: bool
    #: By topic and partition, without the logs where there was nothing to do.
    logs: dict[tuple[str, int], Recovery]
    #: Files that made no sense and count as empty, with the reason.
    unreadable: tuple[tuple[str, str], ...]
    #: Directories that are no partitions in use.
    ignored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Durability:
    """What an acknowledged append survives."""

    #: "never", "interval" or "always".
    fsync: str
    survives_process_death: bool
    survives_power_loss: bool


@dataclass(frozen=True, slots=True)
class Retained:
    """What retention removed."""

    segments: int
    bytes: int
    log_start_offset: int


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a round of upkeep did."""

    segments_deleted: int
    directories_removed: int
    #: By topic and partition, with the reason.
    failed: dict[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Who a log directory belongs to."""

    cluster_id: str | None
    node_id: int | None
    directory_id: str | None


def recovery_of(facts: _native.RecoveryDict) -> Recovery:
    """A recovery as the engine gives it."""
    cuts = (
        Cut(
            file=os.fspath(cut["file"]),
            position=cut["position"],
            bytes=cut["bytes"],
            kind=cut["kind"],
            kept_in=None if cut["kept_in"] is None else os.fspath(cut["kept_in"]),
        )
        for cut in facts["cuts"]
    )
    return Recovery(
        clean=facts["clean"],
        segments_recovered=tuple(facts["segments_recovered"]),
        bytes_checked=facts["bytes_checked"],
        bytes_truncated=facts["bytes_truncated"],
        cuts=tuple(cuts),
        indexes_rebuilt=tuple(map(os.fspath, facts["indexes_rebuilt"])),
        leftovers=tuple(map(os.fspath, facts["leftovers"])),
        segments_split=tuple(facts["segments_split"]),
        skipped=tuple(facts["skipped"]),
    )

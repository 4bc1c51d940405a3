"""Records of the topics that Kafka keeps for itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkaseg import _native
from kafkaseg.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkaseg._native import _InternalValue

__all__ = ["InternalRecord", "decode_control", "decode_internal", "internal_records"]

_Path = str | os.PathLike[str]

_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")

#: What `InternalReader` decodes from.
_COLUMNS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "key",
    "value",
    "is_control",
    "segment",
    "batch_position",
)

#: Decoded records take many times the memory of the bytes they come from.
_BATCH_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class InternalRecord:
    """A decoded record of an internal topic.

    Messages are dicts with Kafka's own field names; identifiers are text as Kafka prints them.
    """

    #: Kafka's name of the record type, such as "OffsetCommit", "Topic" or, of control records,
    #: "COMMIT"; "unknown(n)" for one that this release does not know.
    kind: str
    #: Version of the value; -1 for a tombstone and for an unknown type.
    version: int
    #: The key; None in the metadata log, bytes for an unknown type.
    key: _InternalValue
    #: The value; None for a tombstone, bytes for an unknown type or version.
    value: _InternalValue
    #: Where `internal_records` found it; a metadata snapshot has no topic.
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    timestamp: int | None = None


def decode_internal(topic: str, key: bytes | None, value: bytes | None) -> InternalRecord:
    """Decodes a record of an internal topic.

    Args:
        topic: "__consumer_offsets", "__transaction_state", "__share_group_state" or
            "__cluster_metadata".
        key: the record's key.
        value: the record's value.
    """
    _check_topic(topic)
    return InternalRecord(*_native.decode_internal(topic, key, value))


def decode_control(key: bytes | None, value: bytes | None) -> InternalRecord:
    """Decodes a control record: a transaction marker, or what a quorum writes between metadata."""
    return InternalRecord(*_native.decode_control(key, value))


def internal_records(path: _Path, topic: str | None = None) -> Iterator[InternalRecord]:
    """Decoded records of internal topics, control records among them, in offset order by partition.

    Only a small part is in memory at any time.

    Args:
        path: a `log.dirs` entry, a partition directory, a `.log` file, or a snapshot of the metadata
            log (`.checkpoint`).
        topic: the one topic to read; all internal topics if not given. A file or directory
            that is not named after its topic is read as of this one.
    """
    if topic is not None:
        _check_topic(topic)
    if os.fspath(path).endswith((".checkpoint", ".checkpoint.deleted")):
        return _rows(_native.InternalReader.of_snapshot(path))
    found = _native.Found([path])
    topics = found.topics()
    if topic is None:
        chosen = [name for name in topics if _native.is_internal(name)]
        if not chosen:
            message = f"{os.fspath(path)} holds no internal topic; those are {', '.join(_TOPICS)}"
            raise InvalidArgumentError(message)
    else:
        chosen = [topic] if topic in topics or len(topics) != 1 else topics
    plan = found.plan(
        topics=chosen,
        partitions=None,
        start=None,
        end=None,
        columns=_COLUMNS,
        control=True,
        batch_bytes=_BATCH_BYTES,
    )
    return _rows(_native.InternalReader.of_plan(plan, topic))


def _rows(reader: _native.InternalReader) -> Iterator[InternalRecord]:
    while (rows := reader.next_rows()) is not None:
        for topic, partition, offset, timestamp, (kind, version, key, value) in rows:
            yield InternalRecord(
                kind,
                version,
                key,
                value,
                topic,
                None if topic is None else partition,
                offset,
                timestamp,
            )


def _check_topic(topic: str) -> None:
    if not _native.is_internal(topic):
        message = f"{topic!r} is no internal topic; those are {', '.join(_TOPICS)}"
        raise InvalidArgumentError(message)

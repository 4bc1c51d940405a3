"""Records, and the batches that Kafka keeps them in."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kafkaseg import _native
from kafkaseg.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "DecodedBatch",
    "Record",
    "StoredRecord",
    "decode_batch",
    "encode_batch",
    "encode_marker",
    "patch_batch",
]

_Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_TimestampType = Literal["create", "append"]

_INT16_MAX = (1 << 15) - 1
_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Record:
    """What a producer sends. A value of None is a tombstone."""

    key: bytes | None
    value: bytes | None
    #: Names and values in their order. Names may repeat and be empty.
    headers: Sequence[tuple[str, bytes | None]] = ()
    #: Milliseconds since 1970, -1 for none; None is the time of writing.
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class StoredRecord(Record):
    """A record as a batch holds it: it has an offset, and its timestamp is never None."""

    offset: int = -1


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """A batch of format 2, or a message of format 0 or 1, with the records in it.

    -1 stands for "none" as in the format; what a format does not have at all is None.
    """

    magic: int
    #: Bytes of the whole batch: the next one starts so far after this one.
    bytes: int
    crc: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    compression: _Compression
    timestamp_type: _TimestampType | None
    max_timestamp: int
    records: tuple[StoredRecord, ...]
    base_timestamp: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional: bool = False
    control: bool = False
    #: When compaction may drop the tombstones and markers of the batch.
    delete_horizon: int | None = None


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    leader_epoch: int = -1,
    compression: _Compression = "none",
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: _TimestampType = "create",
    append_time: int | None = None,
    delete_horizon: int | None = None,
    offset_deltas: Sequence[int] | None = None,
    empty_max_timestamp: int = -1,
) -> bytes:
    """A batch of format 2, byte for byte as Kafka lays it out.

    Args:
        records: the records, in order; any objects with the attributes of `Record` will do.
        base_offset: offset of the first record.
        last_offset: last offset of the batch, where it spans more than its records.
        leader_epoch: epoch of the leader that appends it; -1 as producers send it.
        compression: "none", "gzip", "snappy", "lz4" or "zstd".
        level: compression level, in Kafka's range for the codec.
        producer_id: with `producer_epoch` and `base_sequence`, who sent it.
        producer_epoch: epoch of the producer.
        base_sequence: sequence number of the first record.
        transactional: whether it is part of a transaction.
        control: whether its records are control records.
        timestamp_type: "append" for a log that stamps its records itself.
        append_time: the stamp of timestamp type "append"; now if not given.
        delete_horizon: when compaction may drop tombstones and markers of the batch.
        offset_deltas: distance of each record from `base_offset`, strictly increasing; 0, 1, 2 … if
            not given.
        empty_max_timestamp: largest timestamp of a batch without records.
    """
    now = time.time_ns() // 1_000_000
    _check_timestamp_type(timestamp_type)
    if timestamp_type == "append":
        append_time = now if append_time is None else append_time
    elif append_time is not None:
        message = 'append_time needs timestamp_type="append"'
        raise InvalidArgumentError(message)
    spec = _spec(
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        append_time=append_time,
        delete_horizon=delete_horizon,
        empty_max_timestamp=empty_max_timestamp,
    )
    return _native.encode_batch(
        records, spec=spec, now=now, offset_deltas=offset_deltas, compression=compression, level=level
    )


def encode_marker(
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    *,
    coordinator_epoch: int = 0,
    base_offset: int = 0,
    timestamp: int | None = None,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that commits or aborts a transaction of a producer.

    The timestamp is now if not given.
    """
    _check_range("coordinator_epoch", coordinator_epoch, -1, _INT32_MAX)
    spec = _spec(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    now = time.time_ns() // 1_000_000
    return _native.encode_marker(
        commit, coordinator_epoch, spec=spec, timestamp=now if timestamp is None else timestamp
    )


def patch_batch(
    data: bytes,
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    leader_epoch: int | None = None,
    timestamp_type: _TimestampType | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """The batch at the start of `data` as a leader would append it; bytes after it stay as they are.

    Offsets and epoch stand outside the checksum, which is neither checked nor changed for them:
    this is a copy and a few bytes, whatever the size. Timestamps are under the checksum. It is
    checked before they change, and taken anew.

    Args:
        data: a batch of format 2.
        base_offset: offset of the first record; all others move with it.
        last_offset: the same, by the last offset.
        leader_epoch: epoch of the leader.
        timestamp_type: "append" for the time a log stamps, "create" for the producer's.
        max_timestamp: the largest timestamp, or the stamp.
    """
    if timestamp_type is not None:
        _check_timestamp_type(timestamp_type)
    if base_offset is not None and last_offset is not None:
        message = "give base_offset or last_offset, not both"
        raise InvalidArgumentError(message)
    if leader_epoch is not None:
        _check_range("leader_epoch", leader_epoch, -1, _INT32_MAX)
    return _native.patch_batch(
        data,
        base_offset=base_offset,
        last_offset=last_offset,
        leader_epoch=leader_epoch,
        append_time=None if timestamp_type is None else timestamp_type == "append",
        max_timestamp=max_timestamp,
    )


def decode_batch(data: bytes, position: int = 0, *, max_inflated_bytes: int = 64 << 20) -> DecodedBatch:
    """The batch that starts at a position of `data`, of any format and codec.

    Checksums are checked. Damage raises `CorruptLogError` with the position and the name of the check
    that failed, records that inflate to more than `max_inflated_bytes` raise `LimitExceededError`.
    """
    _check_range("position", position, 0, _INT64_MAX)
    _check_range("max_inflated_bytes", max_inflated_bytes, 0, _INT64_MAX)
    facts, rows = _native.decode_batch(data, position, max_inflated_bytes)
    return DecodedBatch(records=tuple(StoredRecord(*row) for row in rows), **facts)


def _spec(
    *,
    base_offset: int,
    leader_epoch: int,
    producer_id: int,
    producer_epoch: int,
    transactional: bool,
    control: bool,
    last_offset: int | None = None,
    base_sequence: int = -1,
    append_time: int | None = None,
    delete_horizon: int | None = None,
    empty_max_timestamp: int = -1,
) -> _native.SpecDict:
    _check_range("base_offset", base_offset, 0, _INT64_MAX)
    _check_range("leader_epoch", leader_epoch, -1, _INT32_MAX)
    _check_range("producer_id", producer_id, -1, _INT64_MAX)
    _check_range("producer_epoch", producer_epoch, -1, _INT16_MAX)
    _check_range("base_sequence", base_sequence, -1, _INT32_MAX)
    return {
        "base_offset": base_offset,
        "last_offset": last_offset,
        "leader_epoch": leader_epoch,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "transactional": transactional,
        "control": control,
        "append_time": append_time,
        "delete_horizon": delete_horizon,
        "empty_max_timestamp": empty_max_timestamp,
    }


def _check_timestamp_type(timestamp_type: str) -> None:
    if timestamp_type not in {"create", "append"}:
        message = f'timestamp_type must be "create" or "append", not {timestamp_type!r}'
        raise InvalidArgumentError(message)


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        message = f"{name} must be from {low} to {high}, not {value}"
        raise InvalidArgumentError(message)

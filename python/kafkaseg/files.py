"""The files beside the segments of a partition, and what their names say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kafkaseg import _native

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "MetadataSnapshotName",
    "PartitionName",
    "SegmentFileName",
    "index",
    "parse_name",
    "read_checkpoint",
]

_Path = str | os.PathLike[str]

#: Columns of the tables, in the order in which the native module packs them.
_COLUMNS: dict[str, list[tuple[str, str]]] = {
    "index": [("offset", "i8"), ("position", "i4")],
    "timeindex": [("timestamp", "i8"), ("offset", "i8")],
    "txnindex": [
        ("producer_id", "i8"),
        ("first_offset", "i8"),
        ("last_offset", "i8"),
        ("last_stable_offset", "i8"),
    ],
    "snapshot": [
        ("producer_id", "i8"),
        ("producer_epoch", "i2"),
        ("last_sequence", "i4"),
        ("last_offset", "i8"),
        ("offset_delta", "i4"),
        ("timestamp", "i8"),
        ("coordinator_epoch", "i4"),
        ("txn_first_offset", "i8"),
    ],
}


@dataclass(frozen=True, slots=True)
class PartitionName:
    """The name of a partition directory."""

    #: The topic, or its first characters: see `topic_may_be_cut`.
    topic: str
    partition: int
    #: "live"; "delete" waits for removal, "future" is on the move, "stray" does not belong here.
    state: Literal["live", "delete", "future", "stray"]
    #: What tells two directories in one of the other states apart: 32 hexadecimal digits.
    id: str | None = None
    #: Kafka cuts the names of directories that wait for removal to 255 characters.
    topic_may_be_cut: bool = False


@dataclass(frozen=True, slots=True)
class SegmentFileName:
    """The name of a file of a segment."""

    #: The first offset; of a snapshot, the offset after the last that it covers.
    base_offset: int
    kind: Literal["log", "index", "timeindex", "txnindex", "snapshot"]
    #: "live"; "deleted" waits for removal, "cleaned" and "swap" come from compaction.
    state: Literal["live", "deleted", "cleaned", "swap"]


@dataclass(frozen=True, slots=True)
class MetadataSnapshotName:
    """The name of a snapshot of the cluster's metadata log."""

    #: The offset after the last that it covers.
    end_offset: int
    epoch: int
    #: "live"; "deleted" waits for removal, "partial" was never finished.
    state: Literal["live", "deleted", "partial"]


def parse_name(name: str) -> PartitionName | SegmentFileName | MetadataSnapshotName | None:
    """What the name of a file or directory says; None for names that are not of these kinds.

    A name is one part of a path: a slash makes it no name.
    """
    if (partition := _native.parse_partition_name(name)) is not None:
        return PartitionName(*partition)
    if (segment := _native.parse_segment_name(name)) is not None:
        return SegmentFileName(*segment)
    if (snapshot := _native.parse_snapshot_name(name)) is not None:
        return MetadataSnapshotName(*snapshot)
    return None


def index(path: _Path, *, verify: bool = True) -> NDArray[np.void]:
    """The entries of an index or a producer snapshot, as a NumPy structured array.

    | file | fields |
    |---|---|
    | `.index` | offset, position |
    | `.timeindex` | timestamp, offset |
    | `.txnindex` | producer_id, first_offset, last_offset, last_stable_offset |
    | `.snapshot` | producer_id, producer_epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, txn_first_offset |

    Offsets are absolute. The zeros that fill up the index of an active segment are left out.

    Args:
        path: the file; its name says what it is and where its segment starts.
        verify: whether to raise `CorruptLogError` for an index whose entries are out of order. Without
            it they come as they stand. The checksum of a snapshot is always checked.
    """
    try:
        import numpy as np
    except ImportError as error:
        message = "kafkaseg.index gives NumPy arrays: pip install 'kafkaseg[numpy]'"
        raise ImportError(message, name="numpy") from error
    kind, rows = _native.read_index(path, verify)
    return np.frombuffer(rows, dtype=np.dtype(_COLUMNS[kind]))


def read_checkpoint(
    path: _Path,
) -> list[tuple[int, int]] | dict[tuple[str, int], int] | dict[str, object]:
    """What one of the small files of a log or partition directory says, told apart by its name.

    | file | gives |
    |---|---|
    | `leader-epoch-checkpoint` | list of (epoch, first offset) |
    | `recovery-point-offset-checkpoint`, `replication-offset-checkpoint`, `log-start-offset-checkpoint`, `cleaner-offset-checkpoint` | offset by (topic, partition) |
    | `partition.metadata` | version, topic_id |
    | `meta.properties` | version, cluster_id, node_id, directory_id |
    | `.kafka_cleanshutdown` | broker_epoch |
    | `quorum-state` | version, leader_id, leader_epoch, voted_id, voted_directory_id, voters |

    What a file does not say is None.
    """
    return _native.read_checkpoint(path)

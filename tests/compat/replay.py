"""Partition directories of the corpus, appended again batch by batch."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import kafkaseg
from tests.corpus import Case

#: Broker settings of the corpus that a topic inherits.
SYNONYMS = {
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.retention.ms": "retention.ms",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
}
#: baseOffset, length, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
#: maxTimestamp, producerId, producerEpoch, baseSequence, count.
HEADER = struct.Struct(">qiibIhiqqqhii")
ENTRY = struct.Struct(">qi")

LOG_APPEND_TIME = 1 << 3
TRANSACTIONAL = 1 << 4
CONTROL = 1 << 5


@dataclass(frozen=True)
class RawBatch:
    """One v2 batch as it lies in a .log file."""

    data: bytes

    @cached_property
    def fields(self) -> tuple[int, ...]:
        return HEADER.unpack_from(self.data)

    @property
    def base_offset(self) -> int:
        return self.fields[0]

    @property
    def epoch(self) -> int:
        return self.fields[2]

    @property
    def magic(self) -> int:
        return self.fields[3]

    @property
    def is_append_time(self) -> bool:
        return bool(self.fields[5] & LOG_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        return bool(self.fields[5] & CONTROL)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.fields[6]

    @property
    def max_timestamp(self) -> int:
        return self.fields[8]

    @property
    def origin(self) -> str:
        """Who appended it."""
        return "COORDINATOR" if self.is_control else "CLIENT"

    def as_sent(self) -> bytes:
        """As the client sent it: offset 0, no epoch, and its own timestamps."""
        kind = "create" if self.is_append_time else None
        return kafkaseg.patch_batch(self.data, base_offset=0, leader_epoch=-1, timestamp_type=kind)


def batches(segment: Path) -> Iterator[RawBatch]:
    """Every whole batch of a .log file; ends at zeros, as a preallocated file has them, or where it was cut."""
    data = segment.read_bytes()
    position = 0
    while position + ENTRY.size <= len(data):
        _, length = ENTRY.unpack_from(data, position)
        end = position + ENTRY.size + length
        if length <= 0 or end > len(data):
            return
        yield RawBatch(data[position:end])
        position = end


@dataclass(frozen=True)
class Partition:
    """One partition directory of a case, with the settings that it was written under."""

    case: Case
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def topic(self) -> str:
        return self.name.rpartition("-")[0]

    @property
    def config(self) -> dict[str, str]:
        """Topic settings; those of the broker where the topic has none."""
        about = self.case.about
        broker = {
            SYNONYMS[name]: str(value)
            for name, value in about["effective_broker_config"].items()
            if name in SYNONYMS
        }
        topic = {name: str(value) for name, value in about["topics"][self.topic]["config"].items()}
        if "segment.bytes" in topic:
            # Releases before 4.0 had no floor under this setting.
            topic["internal.segment.bytes"] = topic.pop("segment.bytes")
        return broker | topic

    @property
    def segments(self) -> list[Path]:
        return sorted(self.path.glob("*.log"))

    @property
    def start(self) -> int:
        """Base offset of the first segment."""
        return int(self.segments[0].stem)

    @property
    def topic_id(self) -> str | None:
        path = self.path / "partition.metadata"
        if not path.exists():
            return None
        fields = dict(line.split(": ") for line in path.read_text().splitlines())
        return fields["topic_id"]

    @property
    def epochs(self) -> list[tuple[int, int]]:
        """(epoch, start offset) lines of leader-epoch-checkpoint."""
        path = self.path / "leader-epoch-checkpoint"
        rows = path.read_text().splitlines()[2:] if path.exists() else []
        return [(int(row.split()[0]), int(row.split()[1])) for row in rows]

    @property
    def log_start(self) -> int:
        """What DeleteRecords raised the log's start to, or the first segment's base."""
        return self.checkpointed("log-start-offset-checkpoint", self.start)

    @property
    def recovery_point(self) -> int:
        return self.checkpointed("recovery-point-offset-checkpoint", 0)

    def checkpointed(self, name: str, missing: int) -> int:
        """This partition's line of a checkpoint file."""
        path = self.path.parent / name
        rows = path.read_text().splitlines()[2:] if path.exists() else []
        found = [
            int(row.rsplit(" ", 1)[1])
            for row in rows
            if row.rsplit(" ", 1)[0] == " ".join(self.name.rsplit("-", 1))
        ]
        return found[0] if found else missing

    @property
    def is_killed(self) -> bool:
        return not (self.case.log_dir / ".kafka_cleanshutdown").exists()


def partitions(case: Case) -> list[Partition]:
    """Partitions of the case's own topics; internal topics and directories on their way out are left."""
    topics = set(case.about["topics"])
    found = [Partition(case, path) for path in sorted(case.log_dir.iterdir()) if path.is_dir()]
    return [each for each in found if each.topic in topics and each.segments]


def file_differences(found: Path, expected: Path) -> dict[str, str]:
    """Names of files that differ, and how; files on their way out are not compared."""
    ours, theirs = contents(found), contents(expected)
    different = {name: f"missing: {len(theirs[name])} bytes" for name in theirs.keys() - ours.keys()}
    different |= {name: f"not expected: {len(ours[name])} bytes" for name in ours.keys() - theirs.keys()}
    for name in ours.keys() & theirs.keys():
        if ours[name] != theirs[name]:
            different[name] = how_different(ours[name], theirs[name])
    return dict(sorted(different.items()))


def lasting_differences(found: Path, expected: Path) -> dict[str, str]:
    """As `file_differences`, for logs that were not closed.

    What a recovery makes anew is left out: indexes are longer than their entries, with whatever was there
    before behind them, and the file of epochs is written when there is time.
    """
    return {
        name: how
        for name, how in file_differences(found, expected).items()
        if not name.endswith((".index", ".timeindex")) and name != "leader-epoch-checkpoint"
    }


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and path.suffix not in {".deleted", ".tmp"}
    }


def how_different(found: bytes, expected: bytes) -> str:
    first = next(
        (at for at, (left, right) in enumerate(zip(found, expected, strict=False)) if left != right),
        min(len(found), len(expected)),
    )
    return (
        f"{len(found)} bytes, expected {len(expected)}, first difference at {first}: "
        f"{found[first : first + 24].hex()} not {expected[first : first + 24].hex()}"
    )

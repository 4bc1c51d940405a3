"""Kinds of log for a broker to adopt, and who writes them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import kafkaseg
from tests.compat.judge import Judge
from tests.corpus import TIMESTAMP_TYPES, Record

CLEAN_MARKER = ".kafka_cleanshutdown"
CODECS = ("gzip", "snappy", "lz4", "zstd")
#: Far from the ids that the broker gives to its own producers.
FIRST_PRODUCER = 1_000_000


@dataclass(frozen=True)
class Append:
    """One batch as a client or coordinator sends it."""

    batch: bytes
    origin: str = "CLIENT"
    epoch: int = 0


@dataclass
class Kind:
    """A topic of one partition: its settings, what is appended, and what consumers then read."""

    name: str
    config: dict[str, str] = field(default_factory=dict)
    appends: list[Append] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    end: int = 0
    aborted: set[int] = field(default_factory=set)
    #: Offsets of open transactions' first records, by producer.
    open: dict[int, int] = field(default_factory=dict)

    @property
    def directory(self) -> str:
        return f"{self.name}-0"

    @property
    def committed(self) -> list[Record]:
        stable = min(self.open.values(), default=self.end)
        return [
            record for record in self.records if record.offset < stable and record.offset not in self.aborted
        ]

    def add(self, records: list[kafkaseg.Record], epoch: int = 0, **fields: Any) -> list[int]:
        """Appends one batch; returns the offsets that its records get."""
        batch = kafkaseg.encode_batch(records, **fields)
        self.appends.append(Append(batch, epoch=epoch))
        offsets = list(range(self.end, self.end + len(records)))
        for offset, record in zip(offsets, records, strict=True):
            self.records.append(
                Record(
                    self.name,
                    0,
                    offset,
                    record.timestamp,
                    TIMESTAMP_TYPES["CreateTime"],
                    record.key,
                    record.value,
                    tuple(record.headers),
                    epoch,
                )
            )
        self.end += len(records)
        return offsets

    def end_transaction(self, producer_id: int, offsets: list[int], *, commit: bool) -> None:
        marker = kafkaseg.encode_marker(commit, producer_id, 0, timestamp=now_ms())
        self.appends.append(Append(marker, "COORDINATOR"))
        self.open.pop(producer_id, None)
        if not commit:
            self.aborted.update(offsets)
        self.end += 1


def now_ms() -> int:
    """Producers are forgotten a day after their last record, so these logs live in the present."""
    return time.time_ns() // 1_000_000


def some_records(count: int, first: int, value_bytes: int = 60) -> list[kafkaseg.Record]:
    start = now_ms()
    return [
        kafkaseg.Record(
            b"key-%d" % (number % 7),
            (b"value %d " % number).ljust(value_bytes, b"."),
            timestamp=start + number % 5,
        )
        for number in range(first, first + count)
    ]


def kinds() -> list[Kind]:
    """Every kind of log that a broker is to take from us."""
    return [
        plain(),
        *(compressed(codec) for codec in CODECS),
        shapes(),
        idempotent(),
        transactions(),
        epochs(),
        segments(),
    ]


def plain() -> Kind:
    kind = Kind("plain")
    for number in range(40):
        kind.add(some_records(10, number * 10))
    return kind


def compressed(codec: str) -> Kind:
    kind = Kind(f"codec-{codec}", {"internal.segment.bytes": "6000", "index.interval.bytes": "300"})
    for number in range(30):
        kind.add(some_records(20, number * 20), compression=codec)
    return kind


def shapes() -> Kind:
    """Headers, nulls, empties, large values, text of many scripts."""
    kind = Kind("shapes", {"internal.segment.bytes": "30000"})
    parts = [None, b"", b"x", "naïve 東京 🦀".encode(), bytes(range(256))]
    headers = [(), (("h", b"1"), ("h", None), ("", b"")), (("naïve", b"\x00"),)]
    for key in parts:
        for value in [*parts, b"y" * 9_000]:
            kind.add([kafkaseg.Record(key, value, headers=each, timestamp=now_ms()) for each in headers])
    return kind


def idempotent() -> Kind:
    kind = Kind("idempotent", {"internal.segment.bytes": "4000"})
    sequences = dict.fromkeys(range(FIRST_PRODUCER, FIRST_PRODUCER + 5), 0)
    for number in range(60):
        producer_id = FIRST_PRODUCER + number * 7 % 5
        count = 1 + number % 4
        kind.add(
            some_records(count, number),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
        )
        sequences[producer_id] += count
    return kind


def transactions() -> Kind:
    """Overlapping: committed, aborted, and one left open before plain records."""
    kind = Kind("transactions", {"internal.segment.bytes": "3000", "index.interval.bytes": "200"})
    sequences = dict.fromkeys(range(FIRST_PRODUCER, FIRST_PRODUCER + 4), 0)

    def send(producer_id: int, count: int) -> list[int]:
        offsets = kind.add(
            some_records(count, kind.end),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            transactional=True,
        )
        sequences[producer_id] += count
        kind.open.setdefault(producer_id, offsets[0])
        return offsets

    for turn in range(8):
        sent = {each: send(each, 3) for each in range(FIRST_PRODUCER, FIRST_PRODUCER + 3)}
        kind.add(some_records(2, kind.end))
        for each in sent:
            sent[each] += send(each, 2)
        for number, (each, offsets) in enumerate(sent.items()):
            kind.end_transaction(each, offsets, commit=(turn + number) % 2 == 0)
    send(FIRST_PRODUCER + 3, 4)
    kind.add(some_records(5, kind.end))
    return kind


def epochs() -> Kind:
    """A new topic's leader begins with epoch 0, and with 2 after its broker's first restart."""
    kind = Kind("epochs", {"internal.segment.bytes": "4000"})
    for number in range(30):
        kind.add(some_records(5, number * 5), epoch=number // 15)
    return kind


def segments() -> Kind:
    kind = Kind("segments", {"internal.segment.bytes": "1000", "index.interval.bytes": "100"})
    for number in range(200):
        kind.add(some_records(3, number * 3))
    return kind


class Engine(Protocol):
    """Opens partitions of a stopped broker's data folder; `is_clean` says how the broker stopped."""

    def append(self, data_dir: Path, kinds: list[Kind], *, is_clean: bool) -> None:
        """Appends what the kinds hold to their partitions, and leaves the folder as a clean stop does."""


class KafkasegEngine:
    """Ours."""

    def append(self, data_dir: Path, kinds: list[Kind], *, is_clean: bool) -> None:
        assert (data_dir / CLEAN_MARKER).exists() == is_clean
        if not is_clean:
            # Recovers every partition, so that the folder as a whole is clean again.
            kafkaseg.LogDir.open(data_dir).close()
        for kind in kinds:
            with kafkaseg.Log.open(data_dir / kind.directory, kind.config) as log:
                for each in kind.appends:
                    log.append_batch(each.batch, origin=each.origin.lower(), leader_epoch=each.epoch)


class JudgeEngine:
    """Kafka's own log without a broker around it: shows that what the test asks for can be had."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge

    def append(self, data_dir: Path, kinds: list[Kind], *, is_clean: bool) -> None:
        if not is_clean:
            self.recover_others(data_dir, {kind.directory for kind in kinds})
        ends = {}
        for kind in kinds:
            log = self.judge.open(
                data_dir / kind.directory,
                kind.config,
                now=now_ms(),
                clean=is_clean,
                recovery_point=checkpointed(data_dir, kind.directory),
            )
            for each in kind.appends:
                log.append_leader(each.batch, epoch=each.epoch, origin=each.origin, now=now_ms(), follow=True)
            ends[kind.directory] = log.state()["end"]
            log.close()
        self.finish(data_dir, ends)

    def recover_others(self, data_dir: Path, left: set[str]) -> None:
        for path in sorted(data_dir.iterdir()):
            if path.is_dir() and path.name not in left:
                point = checkpointed(data_dir, path.name)
                self.judge.open(path, now=now_ms(), clean=False, recovery_point=point).close()

    def finish(self, data_dir: Path, ends: dict[str, int]) -> None:
        """The high watermark and the marker are the broker's to write, not the log's.

        A marker that is there stays as it is: loading looks only for the file, but the broker shows the
        epoch in it to the controller, which takes another one for an unclean stop and elects uncleanly.
        """
        marker = data_dir / CLEAN_MARKER
        if not marker.exists():
            marker.write_text('{"version":0,"brokerEpoch":-1}')
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            path = data_dir / name
            path.write_text(
                f"0\n{len(ends)}\n"
                + "".join(f"{' '.join(each.rsplit('-', 1))} {end}\n" for each, end in ends.items())
            )


def checkpointed(data_dir: Path, directory: str) -> int:
    path = data_dir / "recovery-point-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    found = dict(line.rsplit(" ", 1) for line in lines)
    return int(found.get(" ".join(directory.rsplit("-", 1)), 0))


#: What a broker's log and its manager say about a partition that they do not take as it is.
SPEAKERS = re.compile(r"org\.apache\.kafka\.storage\.internals|kafka\.log\.")
SUSPICIOUS = re.compile(r"recover|truncat|rebuil|corrupt|stray|invalid|could not|sanity|ERROR", re.IGNORECASE)
#: What they say about every partition that they open, good or not.
USUAL = re.compile(
    r"Skipping recovery of \d+ logs"
    r"|Reloading from producer snapshot and rebuilding producer state"
    r"|Producer state recovery took"
    r"|Completed load of Log"
)


def suspicious_lines(lines: list[str]) -> list[str]:
    """Lines about logs that should not be there; the metadata log is the broker's own business."""
    # The thread comes first, and is called log-recovery-… whatever it does.
    said = [line.split("] ", 1)[-1] for line in lines if "__cluster_metadata" not in line]
    return [
        line for line in said if SPEAKERS.search(line) and SUSPICIOUS.search(line) and not USUAL.search(line)
    ]


def changed_files(before: dict[str, bytes], directory: Path) -> dict[str, str]:
    """How files differ from what they were, but for what every start of a broker does to them.

    It maps the active segment's indexes at their full size, zeros behind the entries, and writes its own
    epoch to leader-epoch-checkpoint.
    """
    after = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    active = max(name for name in before if name.endswith(".log"))[:20]
    changes = dict.fromkeys(before.keys() - after.keys(), "gone")
    changes |= dict.fromkeys(after.keys() - before.keys(), "new")
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if name in {f"{active}.index", f"{active}.timeindex"}:
            new, padding = new[: len(old)], new[len(old) :]
            if padding.strip(b"\0"):
                changes[name] = "new entries"
        if name == "leader-epoch-checkpoint":
            old, new = epoch_lines(old), epoch_lines(new)[: len(epoch_lines(old))]
        if old != new:
            changes[name] = "changed"
    return changes


def epoch_lines(content: bytes) -> list[bytes]:
    return content.splitlines()[2:]


@contextmanager
def log_lines_of_start(broker: Any) -> Iterator[list[str]]:
    """Filled, at the end of the block, with what the broker logged in it."""
    start = broker.log_file.stat().st_size
    lines: list[str] = []
    yield lines
    lines.extend(broker.log_lines(start))

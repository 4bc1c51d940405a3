"""Random scripts of log operations, written by looking at a log that runs them.

A script is a list of steps: an operation as the judge takes it, and the judge's answer. Whoever else runs
the operations from an empty directory must answer the same and end in the same files. What to do next is
drawn from a seed and from the log's state, so that most operations hit something: offsets around the ends
of segments, producers' next and past sequence numbers, transactions that are open.

    python -m tests.compat.scripts FOLDER SEEDS      # scripts, answers and files, for tests without a JVM
"""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import kafkaseg
from tests.compat.judge import Answer, Judge, JudgedLog, JudgeError

START_MS = 1_700_000_000_000
FAR = 2**62
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
DIRECTORY = "orders-0"
#: An embedded log's high watermark follows its end; that of a replica is told.
ROLES = ("embedded", "leader", "follower")
STEPS = 120
CODECS = ("none", "none", "none", "gzip", "snappy", "lz4", "zstd")
FETCHED_BYTES = 8_000
#: Holds an entry for every batch of the largest segment that scripts have.
ROOMY_INDEX = 8_192
#: Places in the header of a batch.
LAST_OFFSET_DELTA = (23, ">i")
MAX_TIMESTAMP = (35, ">q")
BASE_SEQUENCE = (53, ">i")
COUNT = (57, ">i")
ISOLATIONS = ("LOG_END", "HIGH_WATERMARK", "TXN_COMMITTED")


class Subject(Protocol):
    """A log under test: the judge's or ours."""

    def ask(self, operation: str, **arguments: Any) -> Answer:
        """The answer, with "error" in it where the operation was refused."""


class JudgeSubject:
    """The judge's log in a folder; survives "close" and "abandon" for the next "open"."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        self.judge = judge
        self.directory = folder / DIRECTORY
        self.log: JudgedLog | None = None

    def ask(self, operation: str, **arguments: Any) -> Answer:
        try:
            if operation == "open":
                config = arguments.pop("config")
                self.log = self.judge.open(self.directory, config, topic_id=TOPIC_ID, **arguments)
                return self.log.opened
            return self.log.ask(operation, **arguments)
        except JudgeError as error:
            return error.answer


@dataclass(frozen=True)
class Step:
    operation: dict[str, Any]
    answer: Answer

    def run(self, subject: Subject) -> Answer:
        arguments = dict(self.operation)
        return subject.ask(arguments.pop("op"), **arguments)


@dataclass
class Script:
    seed: int
    role: str
    steps: list[Step] = field(default_factory=list)

    @property
    def errors(self) -> set[str]:
        return {step.answer["error"] for step in self.steps if "error" in step.answer}

    @property
    def operations(self) -> set[str]:
        return {step.operation["op"] for step in self.steps}


class Author:
    """Writes one script while `subject` runs it."""

    def __init__(self, seed: int, role: str, subject: Subject) -> None:
        self.draw = random.Random(f"{seed} {role}")
        self.script = Script(seed, role)
        self.subject = subject
        self.now = START_MS
        self.epoch = 0
        self.state: dict[str, Any] = {}
        self.config = self.draw_config()
        self.sent: list[tuple[bytes, str]] = []
        self.follow = role == "embedded"
        #: First offsets of batches.
        self.edges: list[int] = []

    # Settings and the loop.

    def draw_config(self) -> dict[str, str]:
        choose = self.draw.choice
        config = {
            "internal.segment.bytes": choose(self.segment_sizes()),
            "index.interval.bytes": choose([0, 64, 400, 4_096]),
            "segment.index.bytes": self.draw_index_bytes(),
            "segment.ms": choose([5_000, 60_000, FAR]),
            "retention.ms": choose([-1, 10_000, 60_000]),
            "retention.bytes": choose([-1, 3_000, 10_000]),
            "max.message.bytes": choose([2_000, 1_048_588]),
            "message.timestamp.type": choose(["CreateTime", "CreateTime", "LogAppendTime"]),
            "message.timestamp.after.max.ms": choose([3_600_000, 30_000]),
            "message.timestamp.before.max.ms": choose([FAR, 30_000]),
            "compression.type": choose(["producer", "producer", "uncompressed"]),
            "cleanup.policy": choose(["delete", "delete", "delete", "compact"]),
            "preallocate": choose(["false", "false", "true"]),
            "flush.messages": choose([FAR, 50]),
        }
        return {name: str(value) for name, value in config.items()}

    def segment_sizes(self) -> list[int]:
        """Large enough for what a follower appends at once: from 4.4 on, it may be more than a segment."""
        return [FETCHED_BYTES, 40_000] if self.script.role == "follower" else [900, 2_500, 6_000, 40_000]

    def draw_index_bytes(self) -> int:
        """Small, so that full indexes roll segments, where Kafka can live with that.

        It checks for room once an append, and a follower's has many batches: it fails half way, its bytes
        written. And after an unclean stop it may find more entries than it wrote, and cannot open the log.
        """
        return (
            ROOMY_INDEX if self.script.role == "follower" else self.draw.choice([48, 72, 1_024, ROOMY_INDEX])
        )

    def write(self, steps: int = STEPS) -> Script:
        self.open()
        actions = self.actions()
        for _ in range(steps):
            self.now += self.draw.choice([0, 0, 1, 50, 700, 3_000])
            (action,) = self.draw.choices(list(actions), weights=list(actions.values()))
            action()
        self.do("run_tasks", all=True)
        self.do("close")
        return self.script

    def actions(self) -> dict[Callable[[], None], int]:
        common = {
            self.read: 25,
            self.look_up: 12,
            self.delete_records: 2,
            self.apply_retention: 3,
            self.truncate: 3,
            self.flush: 2,
            self.roll: 2,
            self.run_tasks: 2,
            self.expire_producers: 1,
            self.restart: 2,
        }
        if self.config["segment.index.bytes"] == str(ROOMY_INDEX):
            common[self.die] = 2
        if self.script.role == "follower":
            return {**common, self.replicate: 40, self.replicate_wrongly: 3, self.move_high_watermark: 8}
        leader = {
            self.append: 22,
            self.append_sequenced: 14,
            self.append_transactional: 10,
            self.end_transaction: 8,
            self.append_wrongly: 6,
            self.append_again: 4,
        }
        if self.script.role == "leader":
            leader |= {self.move_high_watermark: 10, self.begin_epoch: 2}
        return common | leader

    def do(self, operation: str, **arguments: Any) -> Answer:
        arguments["now"] = self.now
        step = {"op": operation, **arguments}
        answer = self.subject.ask(operation, **arguments)
        self.script.steps.append(Step(step, answer))
        self.state = answer.get("state", self.state)
        if operation.startswith("append_") and "error" not in answer:
            self.edges.append(answer["base_offset"])
        if operation.startswith("truncate_"):
            self.edges = [edge for edge in self.edges if edge < self.state["end"]]
        return answer

    def look(self, operation: str) -> Any:
        """Asks without making it part of the script."""
        answer = self.subject.ask(operation)
        assert "error" not in answer, (answer, self.script.steps[-3:])
        return answer[operation]

    # Life of the log.

    def open(self, **options: Any) -> None:
        self.do("open", config=self.config, follow=self.follow, **options)

    def restart(self) -> None:
        self.do("close")
        self.reopen(clean=True)

    def die(self) -> None:
        flushed = self.state["recovery_point"]
        self.do("abandon")
        self.reopen(clean=False, recovery_point=self.draw.choice([0, flushed, flushed]))

    def reopen(self, **options: Any) -> None:
        self.open(log_start=self.state["start"], high_watermark=self.state["high_watermark"], **options)

    def flush(self) -> None:
        self.do("flush")

    def roll(self) -> None:
        self.do("roll")

    def run_tasks(self) -> None:
        self.now += self.draw.choice([0, 60_000])
        self.do("run_tasks")

    def expire_producers(self) -> None:
        # Rarely a day later: from then on, what came before is old for every rule.
        self.now += self.draw.choice([0, 0, 0, 0, 86_400_000])
        self.do("expire_producers")

    def begin_epoch(self) -> None:
        self.epoch += self.draw.choice([1, 1, 2])
        self.do("assign_epoch", epoch=self.epoch)

    # Moving the ends.

    def offset(self) -> int:
        """Mostly inside the log, now and then just outside."""
        start, end = self.state["start"], self.state["end"]
        near = [start - 1, start, start + 1, end - 1, end, end + 1, self.state["high_watermark"]]
        inside = [self.draw.randint(start, end) for _ in range(7)]
        return max(0, self.draw.choice([*near, *inside]))

    def move_high_watermark(self) -> None:
        """To the first offset of a batch, or to the end.

        A replica never fetches, so never acknowledges, from anywhere else. Put elsewhere, Kafka's mark
        jumps to the first offset of the next batch, or back to that of its own, with the next read.
        """
        mark, end = self.state["high_watermark"], self.state["end"]
        inside = [edge for edge in self.edges if mark <= edge < end]
        self.do("set_high_watermark", offset=self.draw.choice([end, end, *inside[-6:]]))

    def delete_records(self) -> None:
        self.do("delete_records", before=self.draw.choice([-1, -2, *[self.offset() for _ in range(8)]]))

    def apply_retention(self) -> None:
        self.now += self.draw.choice([0, 5_000, 30_000])
        self.do("apply_retention")

    def truncate(self) -> None:
        end = self.state["end"]
        if self.draw.random() < 0.1:
            self.do("truncate_fully", offset=self.draw.choice([end, end + 10, self.offset()]))
        else:
            # Near the end, or little would be left of any script.
            self.do("truncate_to", offset=self.draw.choice(self.truncation_points(end)))

    def truncation_points(self, end: int) -> list[int]:
        """Anywhere, where the high watermark follows the end; else whole batches, see above."""
        if self.follow:
            return [max(0, end - self.draw.randrange(-2, 25))]
        inside = [edge for edge in self.edges if self.state["start"] <= edge < end]
        return [end, end + 2, *inside[-8:]]

    # Looking.

    def read(self) -> None:
        self.do(
            "read",
            offset=self.offset(),
            max_bytes=self.draw.choice([0, 1, 70, 300, 2_000, 1 << 20]),
            isolation=self.draw.choice(ISOLATIONS),
            min_one=self.draw.random() < 0.7,
        )

    def look_up(self) -> None:
        if self.draw.random() < 0.3:
            self.do("end_offset_for_epoch", epoch=self.draw.randrange(-1, self.epoch + 3))
        else:
            near = self.now - self.draw.randrange(-100, 40_000)
            self.do(
                "offset_for_time", timestamp=self.draw.choice([-1, -2, -3, -4, 0, near, near, near, near])
            )

    # Batches.

    def records(self, count: int | None = None) -> list[kafkaseg.Record]:
        draw = self.draw
        count = count or draw.choice([1, 1, 2, 3, 8, 20])
        times = draw.choice(["rising", "rising", "shuffled", "none", "same"])
        is_keyed = self.config["cleanup.policy"] == "compact" or draw.random() < 0.7
        return [
            kafkaseg.Record(
                b"key-%d" % draw.randrange(20) if is_keyed else None,
                draw.choice([None, b"", draw.randbytes(draw.randrange(60)), b"text " * draw.randrange(30)]),
                headers=draw.choice([(), (), (("name", b"1"), ("", None))]),
                timestamp=self.timestamp(times, number),
            )
            for number in range(count)
        ]

    def timestamp(self, times: str, number: int) -> int:
        return {
            "rising": self.now - 100 + number,
            "shuffled": self.now - self.draw.randrange(-5_000, 20_000),
            "none": -1,
            "same": self.now,
        }[times]

    def encode(self, records: Iterable[kafkaseg.Record], **fields: Any) -> bytes:
        return kafkaseg.encode_batch(records, compression=self.draw.choice(CODECS), **fields)

    def send(self, batch: bytes, origin: str = "CLIENT") -> Answer:
        self.sent = [*self.sent[-8:], (batch, origin)]
        return self.do(
            "append_leader",
            bytes=base64.b64encode(batch).decode(),
            origin=origin,
            epoch=self.epoch,
            follow=self.follow,
        )

    def append(self) -> None:
        self.send(self.encode(self.records()))

    def append_again(self) -> None:
        if self.sent:
            self.send(*self.draw.choice(self.sent))

    def producer(self, first: int) -> tuple[int, int, int, bool]:
        """One of a few producers: id, epoch, next sequence number, whether its transaction is open."""
        producer_id = first + self.draw.choice([0, 1, 2, 17, 4_000])
        for entry in self.look("producers"):
            if entry["producer_id"] == producer_id:
                last = entry["batches"][-1][0] if entry["batches"] else -1
                sequence = 0 if last == 2**31 - 1 else last + 1
                return producer_id, entry["epoch"], sequence, entry["transaction_first_offset"] is not None
        return producer_id, 0, self.draw.choice([0, 0, 5, 2**31 - 3]), False

    def append_sequenced(self) -> None:
        producer_id, epoch, sequence, _ = self.producer(first=100)
        self.send_sequenced(producer_id, epoch, sequence, transactional=False)

    def append_transactional(self) -> None:
        producer_id, epoch, sequence, _ = self.producer(first=9_000)
        # Now and then outside a transaction, which is refused while one is open.
        self.send_sequenced(producer_id, epoch, sequence, transactional=self.draw.random() < 0.85)

    def send_sequenced(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> None:
        chance = self.draw.random()
        if chance < 0.05:
            sequence += self.draw.choice([1, 3])
        elif chance < 0.1:
            epoch, sequence = epoch + 1, self.draw.choice([0, 0, 1])
        elif chance < 0.15 and epoch > 0:
            epoch -= 1
        batch = self.encode(
            self.records(),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=min(sequence, 2**31 - 1),
            transactional=transactional,
        )
        self.send(batch)

    def end_transaction(self) -> None:
        producers = [each for each in self.look("producers") if each["producer_id"] >= 9_000]
        is_open = [each for each in producers if each["transaction_first_offset"] is not None]
        if not producers:
            return
        chosen = self.draw.choice(is_open or producers)
        self.send(self.marker(chosen["producer_id"], chosen["epoch"]), "COORDINATOR")

    def marker(self, producer_id: int, epoch: int, **fields: Any) -> bytes:
        return kafkaseg.encode_marker(
            self.draw.random() < 0.5,
            producer_id,
            max(0, epoch + self.draw.choice([0, 0, 0, 1, -1])),
            coordinator_epoch=self.draw.choice([5, 5, 5, 5, 4]),
            timestamp=self.now,
            **fields,
        )

    def append_wrongly(self) -> None:
        """What a leader refuses, one rule at a time."""
        draw = self.draw
        good = self.encode(self.records())
        at = draw.randrange(61, len(good)) if len(good) > 61 else 20
        future = [kafkaseg.Record(b"k", b"v", timestamp=self.now + 7_200_000)]
        self.send(
            draw.choice(
                [
                    lambda: good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :],
                    lambda: kafkaseg.patch_batch(good, base_offset=3),
                    lambda: self.marker(9_000, 0),
                    lambda: good + self.encode(self.records()),
                    lambda: good[:-1],
                    lambda: good[:30],
                    lambda: good + good[:40],
                    lambda: b"",
                    lambda: self.encode([kafkaseg.Record(b"k", draw.randbytes(3_000), timestamp=self.now)]),
                    lambda: self.encode(self.records(3), offset_deltas=[0, 1, 5]),
                    lambda: self.encode(self.records(3), last_offset=9),
                    lambda: poke(self.idempotent(), BASE_SEQUENCE, -1),
                    lambda: poke(good, LAST_OFFSET_DELTA, -1),
                    lambda: poke(good, COUNT, 0),
                    lambda: poke(good, COUNT, 10_000),
                    # Not refused: a leader puts it right.
                    lambda: poke(good, MAX_TIMESTAMP, self.now - 40_000),
                    lambda: self.encode(self.records(), timestamp_type="append", append_time=self.now),
                    lambda: self.encode(future),
                    lambda: self.encode([kafkaseg.Record(None, b"v", timestamp=self.now)]),
                ]
            )()
        )

    def idempotent(self) -> bytes:
        return self.encode(self.records(), producer_id=7, producer_epoch=0, base_sequence=0)

    # A follower's appends: what a leader has, with its offsets and epochs, several batches at a time.

    def fetched(self, base: int) -> bytes:
        draw = self.draw
        if draw.random() < 0.08:
            self.epoch += 1
        kind = draw.random()
        place = {"base_offset": base, "leader_epoch": self.epoch}
        if kind < 0.5:
            return self.encode(self.records(), **place)
        if kind < 0.6:
            # As compaction leaves it: offsets missing inside and at the end.
            return self.encode(self.records(2), offset_deltas=[0, 3], last_offset=base + 5, **place)
        producer_id, epoch, sequence, is_open = self.producer(first=9_000 if kind < 0.9 else 100)
        if is_open and kind < 0.75:
            return self.marker(producer_id, epoch, **place)
        return self.encode(
            self.records(),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=producer_id >= 9_000,
            **place,
        )

    def replicate(self) -> None:
        batches = []
        base = self.state["end"]
        for _ in range(self.draw.choice([1, 1, 2, 4])):
            batches.append(self.fetched(base))
            base = kafkaseg.decode_batch(batches[-1]).last_offset + self.draw.choice([1, 1, 1, 4])
        data = b"".join(batches)
        self.follow_with(data if len(data) <= FETCHED_BYTES else batches[0])

    def replicate_wrongly(self) -> None:
        end = self.state["end"]
        good = self.fetched(end)
        self.follow_with(
            self.draw.choice(
                [
                    lambda: self.fetched(max(0, end - 3)),
                    lambda: good + good,
                    lambda: good[:-1],
                    lambda: good[:-1] + bytes([good[-1] ^ 1]),
                    lambda: good + self.fetched(end + 100)[:50],
                    lambda: b"",
                ]
            )()
        )

    def follow_with(self, data: bytes) -> None:
        self.do("append_follower", bytes=base64.b64encode(data).decode(), epoch=self.epoch)


def poke(batch: bytes, place: tuple[int, str], value: int) -> bytes:
    """The batch with another number in its header, under a checksum that is right."""
    changed = bytearray(batch)
    struct.pack_into(place[1], changed, place[0], value)
    struct.pack_into(">I", changed, 17, crc32c(changed[21:]))
    return bytes(changed)


def crc32c(data: bytes) -> int:
    """Bit by bit: a few hundred bytes at a time is all that this is for."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def write_script(judge: Judge, folder: Path, seed: int, role: str, steps: int = STEPS) -> Script:
    """A script for the seed; the judge's files are then in `folder`."""
    return Author(seed, role, JudgeSubject(judge, folder)).write(steps)


def save(script: Script, path: Path) -> None:
    """One line a step: the operation and the answer."""
    lines = [json.dumps({"operation": step.operation, "answer": step.answer}) for step in script.steps]
    path.write_text("\n".join(lines) + "\n")


def main(folder: Path, seeds: int) -> None:
    with Judge() as judge:
        for role in ROLES:
            for seed in range(seeds):
                place = folder / f"{role}-{seed}"
                place.mkdir(parents=True)
                save(write_script(judge, place, seed, role), place / "script.jsonl")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

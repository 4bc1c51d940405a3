"""Kafka's own log as the judge of ours: `UnifiedLog` of a real release, driven operation by operation.

    with Judge() as judge:
        log = judge.open(folder / "orders-0", {"segment.bytes": "1048576"}, now=ms)
        info = log.append_leader(batch, epoch=0)       # {"base_offset": 0, ..., "state": {...}}
        log.close()                                    # or log.abandon(): as kill -9 leaves it

The clock stands where `now` last put it, and what Kafka schedules runs between operations, so a script
ends in the same files every time. An operation that Kafka refuses raises JudgeError with the protocol's
error name. Every answer carries the log's `state` after it. One process serves many logs.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.compat.broker import ROOT
from tests.compat.javac import class_path, require_class_path

SOURCES = sorted((ROOT / "tests" / "compat" / "java").glob("*.java"))
JVM_OPTIONS = ("-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

Answer = dict[str, Any]


class JudgeError(Exception):
    """Kafka's refusal: `code` is the protocol's name, `kind` the Java class."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer['error']} ({answer['class']}): {answer['message']}")
        self.answer = answer
        self.code: str = answer["error"]
        self.kind: str = answer["class"]
        self.record_errors: list[tuple[int, str]] = [
            (row[0], row[1]) for row in answer.get("record_errors", ())
        ]


def require_judge() -> Judge:
    """A judge, not started yet; skips where Java or Kafka's jars cannot be had (fails in CI)."""
    return Judge(require_class_path("judge", SOURCES))


class Judge:
    """One JVM; `open` gives a log."""

    def __init__(self, classes: str | None = None) -> None:
        self.class_path = classes or class_path("judge", SOURCES)
        self.process: subprocess.Popen[str] | None = None
        self.names = count()
        # Kafka's log lines; a test reads them to see what loading did.
        self.log_file = tempfile.NamedTemporaryFile("w+", prefix="judge-", suffix=".log")  # noqa: SIM115

    def __enter__(self) -> Self:
        command = ["java", *JVM_OPTIONS, "-cp", self.class_path, "LogJudge"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log_file, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        self.log_file.close()

    def open(
        self, directory: Path, config: Mapping[str, object] | None = None, **options: object
    ) -> JudgedLog:
        """Opens or makes a partition directory.

        Options: now, clean (was the last stop clean; True), recovery_point, log_start, high_watermark or
        follow (puts it at the end), topic_id, producer_id_expiration_ms, transaction_verification (False).
        """
        log = JudgedLog(self, f"{next(self.names)}", directory)
        settings = {name: str(value) for name, value in (config or {}).items()}
        log.opened = log.ask("open", dir=str(directory), config=settings, **options)
        return log

    def ask(self, operation: Mapping[str, object]) -> Answer:
        self.process.stdin.write(json.dumps(operation) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the judge is gone:\n{self.log_lines()[-20:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise JudgeError(answer)
        return answer

    def log_lines(self) -> list[str]:
        """What Kafka wrote to its log so far."""
        return Path(self.log_file.name).read_text(errors="replace").splitlines()


class JudgedLog:
    """One open log of a judge. Any operation takes `now` to move the clock first."""

    def __init__(self, judge: Judge, name: str, directory: Path) -> None:
        self.judge = judge
        self.name = name
        self.directory = directory
        self.opened: Answer = {}

    def ask(self, operation: str, **arguments: object) -> Answer:
        return self.judge.ask({"op": operation, "log": self.name, **arguments})

    def append_leader(self, batch: bytes, **options: object) -> Answer:
        """Options: epoch, origin ("CLIENT"), transaction_version, follow (raise the high watermark)."""
        return self.ask("append_leader", bytes=base64.b64encode(batch).decode(), **options)

    def append_follower(self, batch: bytes, **options: object) -> Answer:
        """Options: epoch of the replica (no limit), follow."""
        return self.ask("append_follower", bytes=base64.b64encode(batch).decode(), **options)

    def assign_epoch(self, epoch: int, **options: object) -> Answer:
        """A new leader's epoch begins at the end of the log."""
        return self.ask("assign_epoch", epoch=epoch, **options)

    def roll(self, **options: object) -> Answer:
        return self.ask("roll", **options)

    def flush(self, **options: object) -> Answer:
        return self.ask("flush", **options)

    def set_high_watermark(self, offset: int, **options: object) -> Answer:
        return self.ask("set_high_watermark", offset=offset, **options)

    def delete_records(self, before: int, **options: object) -> Answer:
        return self.ask("delete_records", before=before, **options)

    def apply_retention(self, now: int) -> Answer:
        return self.ask("apply_retention", now=now)

    def truncate_to(self, offset: int, **options: object) -> Answer:
        return self.ask("truncate_to", offset=offset, **options)

    def truncate_fully(self, offset: int, **options: object) -> Answer:
        """Options: log_start."""
        return self.ask("truncate_fully", offset=offset, **options)

    def read(self, offset: int, **options: object) -> Answer:
        """Options: max_bytes, isolation (LOG_END, HIGH_WATERMARK, TXN_COMMITTED), min_one, give_bytes."""
        return self.ask("read", offset=offset, **options)

    def offset_for_time(self, timestamp: int) -> Answer:
        return self.ask("offset_for_time", timestamp=timestamp)

    def end_offset_for_epoch(self, epoch: int) -> Answer:
        return self.ask("end_offset_for_epoch", epoch=epoch)

    def update_config(self, config: Mapping[str, object]) -> Answer:
        return self.ask("update_config", config={name: str(value) for name, value in config.items()})

    def expire_producers(self, now: int) -> Answer:
        return self.ask("expire_producers", now=now)

    def run_tasks(self, **options: object) -> Answer:
        """Does what was scheduled for up to now (all=True: all of it), as the removal of .deleted files."""
        return self.ask("run_tasks", **options)

    def state(self) -> Answer:
        return self.ask("state")["state"]

    def producers(self) -> list[Answer]:
        return self.ask("producers")["producers"]

    def segments(self) -> list[Answer]:
        return self.ask("segments")["segments"]

    def close(self) -> None:
        """Clean: flushed, snapshot taken, indexes trimmed."""
        self.ask("close")

    def abandon(self) -> None:
        """As kill -9: nothing more is written."""
        self.ask("abandon")

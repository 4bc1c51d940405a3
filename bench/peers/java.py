"""Kafka's own classes, each in a JVM that stays up for all rounds."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from bench.data import ROOT
from bench.timing import UnavailableError
from tests.compat.broker import KafkaUnavailableError
from tests.compat.javac import class_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from bench.data import Dataset

SOURCES = sorted((ROOT / "bench" / "java").glob("*.java"))
# One thread works, so the collector without threads of its own serves it best; a young generation that
# holds many batches keeps it rare.
OPTIONS = ("-Xms1g", "-Xmx1g", "-Xmn600m", "-XX:+UseSerialGC")
# Rounds before any counts, enough for the optimising compiler to settle.
WARM_UP_SECONDS = 4.0
WARM_UP_ROUNDS = 3


class JavaPeer:
    """A class of bench/java as a process that answers each line with a line."""

    main = ""

    def __init__(self) -> None:
        try:
            self.class_path = class_path("bench", SOURCES)
        except KafkaUnavailableError as reason:
            raise UnavailableError(str(reason)) from reason
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            ["java", *OPTIONS, "-cp", self.class_path, self.main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def ask(self, line: str) -> str:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.main} gave up on {line}")
        return answer

    def run(self, job: Mapping[str, object]) -> dict[str, Any]:
        return json.loads(self.ask(json.dumps(job)))


class JavaReader(JavaPeer):
    """FileRecords: `with JavaReader() as java: java.round(dataset)`, first call warmed up."""

    main = "ScanLog"

    def warm_up(self, dataset: Dataset) -> None:
        spent, rounds = 0.0, 0
        while rounds < WARM_UP_ROUNDS or spent < WARM_UP_SECONDS:
            spent += self.round(dataset)[0]
            rounds += 1

    def round(self, dataset: Dataset) -> tuple[float, float]:
        """Wall and processor seconds of one reading."""
        wall, cpu, *found = self.ask(str(dataset.partition)).split()
        expected = [dataset.records, dataset.key_bytes, dataset.all_value_bytes]
        assert [int(number) for number in found] == expected, f"java read {found}, not {expected}"
        return float(wall), float(cpu)


@dataclass(frozen=True)
class Appends:
    """What to append: "records" that are built, or ready-made "batches"."""

    kind: str
    value_bytes: int
    batch_bytes: int
    total_bytes: int
    key_bytes: int = 12

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.value_bytes}B-{self.batch_bytes >> 10}KiB"


class JavaAppender(JavaPeer):
    """UnifiedLog.appendAsLeader."""

    main = "AppendLog"

    def round(self, directory: Path, appends: Appends, *, keep: bool = False) -> dict[str, Any]:
        """The answer has seconds, cpu, bytes, records, batches.

        The log is removed afterwards, or closed and kept.
        """
        return self.run({"dir": str(directory), "keep": keep, **asdict(appends)})


@dataclass(frozen=True)
class Lookups:
    """What to look for where.

    Kinds: "index" and "timeindex" (path: the file), "position" and "time" (path: a segment's directory).
    """

    kind: str
    path: Path
    targets: range
    count: int
    base_offset: int = 0


class JavaLookup(JavaPeer):
    """Searches of OffsetIndex, TimeIndex and LogSegment."""

    main = "LookupLog"

    def round(self, lookups: Lookups, seed: int) -> dict[str, Any]:
        """The answer has seconds, cpu and the sum of what was found for `draw_targets` of the same seed."""
        return self.run(
            {
                "kind": lookups.kind,
                "path": str(lookups.path),
                "base_offset": lookups.base_offset,
                "first": lookups.targets.start,
                "span": len(lookups.targets),
                "lookups": lookups.count,
                "seed": seed,
            }
        )


def draw_targets(targets: range, lookups: int, seed: int) -> list[int]:
    """What LookupLog.java looks up."""
    drawn, state = [], seed
    for _ in range(lookups):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        drawn.append(targets.start + (state >> 33) % len(targets))
    return drawn

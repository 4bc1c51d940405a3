"""Kafka's own FileRecords, in a JVM that stays up for all rounds of a dataset."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Self

from bench.data import CACHE, ROOT
from bench.timing import UnavailableError
from tests.compat.broker import KafkaUnavailableError, kafka_libs

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from bench.data import Dataset

RELEASE = "4.3.0"
SOURCE = ROOT / "bench" / "java" / "ScanLog.java"
# One thread works, so the collector without threads of its own serves it best; a young generation that
# holds many batches keeps it rare.
OPTIONS = ("-Xms1g", "-Xmx1g", "-Xmn600m", "-XX:+UseSerialGC")
# Rounds before any counts, enough for the optimising compiler to settle.
WARM_UP_SECONDS = 4.0
WARM_UP_ROUNDS = 3


class JavaReader:
    """`with JavaReader() as java: java.round(dataset)`, first call warmed up."""

    def __init__(self) -> None:
        self.classes = compile_reader()
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        class_path = f"{self.classes}:{kafka_libs(RELEASE)}/*"
        self.process = subprocess.Popen(
            ["java", *OPTIONS, "-cp", class_path, "ScanLog"],
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

    def warm_up(self, dataset: Dataset) -> None:
        spent, rounds = 0.0, 0
        while rounds < WARM_UP_ROUNDS or spent < WARM_UP_SECONDS:
            spent += self.round(dataset)[0]
            rounds += 1

    def round(self, dataset: Dataset) -> tuple[float, float]:
        """Wall and processor seconds of one reading."""
        self.process.stdin.write(f"{dataset.partition}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            raise RuntimeError(f"FileRecords cannot read {dataset.partition}")
        wall, cpu, *found = answer
        expected = [dataset.records, dataset.key_bytes, dataset.all_value_bytes]
        assert [int(number) for number in found] == expected, f"java read {found}, not {expected}"
        return float(wall), float(cpu)


def compile_reader() -> Path:
    """The folder with ScanLog.class, compiled when the source is newer."""
    try:
        libs = kafka_libs(RELEASE)
    except KafkaUnavailableError as reason:
        raise UnavailableError(str(reason)) from reason
    classes = CACHE / "classes"
    compiled = classes / "ScanLog.class"
    if not compiled.exists() or compiled.stat().st_mtime < SOURCE.stat().st_mtime:
        classes.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-cp", f"{libs}/*", "-d", str(classes), str(SOURCE)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except FileNotFoundError as error:
            raise UnavailableError("javac is not installed") from error
    return classes

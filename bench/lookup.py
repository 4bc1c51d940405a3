"""Finding offsets and times against Kafka's own indexes and segments, in one run on one machine.

    .venv/bin/python bench/lookup.py [--quick]

Targets are drawn by the same generator on both sides (java/LookupLog.java), so equal sums show equal answers. All is
measured inside the engines: no interpreter stands between two lookups.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kafkaseg
from bench.data import CACHE
from bench.peers.java import JavaLookup
from bench.peers.javalog import lookup_jobs
from bench.ratios import Ratio, print_ratios, ratio, write
from bench.timing import Timing, UnavailableError
from kafkaseg import _native

if TYPE_CHECKING:
    from bench.peers.java import Lookups

GOALS = {
    "index-random": 1.0,
    "index-warm": 1.0,
    "timeindex-random": 1.0,
    "offset-to-position": 3.0,
    "time-to-offset": 3.0,
}
WARM_UP_ROUNDS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a segment of 128 MiB")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    timings: dict[str, Timing] = {}
    ratios: list[Ratio] = []
    missing: dict[str, str] = {}
    try:
        jobs = lookup_jobs((128 if options.quick else 1_000) << 20)
    except UnavailableError as reason:
        print(f"not measured: the segment is one that Kafka writes, and Kafka cannot run here: {reason}")
        return
    for name, lookups in jobs.items():
        ours, theirs = measure(lookups, options.rounds)
        timings[f"kafkaseg {name}"], timings[f"java {name}"] = ours, theirs
        each = [timing.median / lookups.count * 1e9 for timing in (ours, theirs)]
        print(f"{name:20} ours {each[0]:8.0f} ns   Java {each[1]:8.0f} ns")
        ratios.append(ratio(name, "Java", ours, theirs, GOALS[name]))
    print_ratios(ratios, missing)
    write("lookup", ratios, timings, missing)


def measure(lookups: Lookups, rounds: int) -> tuple[Timing, Timing]:
    ours, theirs = Timing(), Timing()
    with Subject(lookups) as subject, JavaLookup() as java:
        for number in range(WARM_UP_ROUNDS + rounds):
            seconds, found = subject.round(number)
            answer = java.round(lookups, number)
            assert found == answer["sum"], f"{lookups.kind}: {found} is not {answer['sum']}"
            if number >= WARM_UP_ROUNDS:
                ours.add(seconds)
                theirs.add(answer["seconds"])
    return ours, theirs


class Subject:
    """Where our lookups go: a file, or a log that has taken over a copy of Kafka's directory."""

    def __init__(self, lookups: Lookups) -> None:
        self.lookups = lookups
        self.folder = CACHE / "lookup-ours"
        self.log: kafkaseg.Log | None = None

    def __enter__(self) -> Subject:
        if self.lookups.kind in {"position", "time"}:
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(self.lookups.path, self.folder / "ours-0")
            (self.folder / ".kafka_cleanshutdown").touch()
            self.log = kafkaseg.Log.open(self.folder / "ours-0", create=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self.log is not None:
            self.log.close()
            shutil.rmtree(self.folder)

    def round(self, seed: int) -> tuple[float, int]:
        return _native.probe_lookup(
            self.lookups.kind,
            None if self.log else self.lookups.path,
            self.log._native if self.log else None,
            first=self.lookups.targets.start,
            span=len(self.lookups.targets),
            lookups=self.lookups.count,
            seed=seed,
        )


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    main()

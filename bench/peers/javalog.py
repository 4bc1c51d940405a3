"""Kafka's figures for appending and looking up, alone: what ours are compared with.

    .venv/bin/python -m bench.peers.javalog [--total-mb 1024] [--rounds 5]

Prints one JSON object. bench/append.py and bench/lookup.py run the same peers beside ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import struct
from typing import TYPE_CHECKING, Any

from bench.data import CACHE, FIRST_TIMESTAMP
from bench.host import facts
from bench.peers.java import Appends, JavaAppender, JavaLookup, Lookups, draw_targets
from bench.timing import Timing

if TYPE_CHECKING:
    from pathlib import Path

VALUES = (100, 1_000)
BATCHES = (16 << 10, 1 << 20)
KINDS = ("records", "batches")
WARM_UP_ROUNDS = 2
LOOKUPS = 1_000_000
INDEX_BYTES = 10 << 20
#: Kafka searches the last 8 KiB of an index first.
WARM_BYTES = 8 << 10
OFFSETS_AN_ENTRY = 10
POSITIONS_AN_ENTRY = 1_600


def append_figures(total_bytes: int, rounds: int) -> dict[str, Any]:
    """MB/s of log for each kind, size of values and size of batches."""
    figures = {}
    for kind, value_bytes, batch_bytes in itertools.product(KINDS, VALUES, BATCHES):
        appends = Appends(kind, value_bytes, batch_bytes, total_bytes)
        # A JVM of its own: what it compiled for one shape of work does not serve the next.
        with JavaAppender() as java:
            figures[appends.name] = measure_append(java, appends, rounds)
    return figures


def measure_append(java: JavaAppender, appends: Appends, rounds: int) -> dict[str, Any]:
    timing, answer = Timing(), {}
    for number in range(WARM_UP_ROUNDS + rounds):
        answer = java.round(CACHE / "append-0", appends)
        if number >= WARM_UP_ROUNDS:
            timing.add(answer["seconds"], answer["cpu"])
    megabytes = answer["bytes"] / 1e6
    return {
        "mb_s_median": megabytes / timing.median,
        "mb_s_best": megabytes / timing.best,
        "mb_s_cpu": megabytes / timing.cpu_median,
        **timing.summary(),
    }


def full_index(folder: Path) -> Path:
    """An offset index with not one entry more to give."""
    path = folder / f"{0:020}.index"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = range(INDEX_BYTES // 8)
        path.write_bytes(
            b"".join(
                struct.pack(">ii", (row + 1) * OFFSETS_AN_ENTRY, row * POSITIONS_AN_ENTRY) for row in rows
            )
        )
    return path


def full_time_index(folder: Path) -> Path:
    path = folder / f"{0:020}.timeindex"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = range(INDEX_BYTES // 12)
        path.write_bytes(
            b"".join(struct.pack(">qi", FIRST_TIMESTAMP + row * 5, row * OFFSETS_AN_ENTRY) for row in rows)
        )
    return path


def lookup_jobs(total_bytes: int) -> dict[str, Lookups]:
    folder = CACHE / "lookup"
    index, times = full_index(folder), full_time_index(folder)
    offsets = range(OFFSETS_AN_ENTRY, INDEX_BYTES // 8 * OFFSETS_AN_ENTRY)
    warm = range(offsets.stop - WARM_BYTES // 8 * OFFSETS_AN_ENTRY, offsets.stop)
    stamps = range(FIRST_TIMESTAMP, FIRST_TIMESTAMP + INDEX_BYTES // 12 * 5)
    # Short of the size at which a second segment would begin.
    segment = Segment(min(total_bytes, 1_000 << 20))
    return {
        "index-random": Lookups("index", index, offsets, LOOKUPS),
        "index-warm": Lookups("index", index, warm, LOOKUPS),
        "timeindex-random": Lookups("timeindex", times, stamps, LOOKUPS),
        "offset-to-position": Lookups("position", segment.folder, segment.offsets, LOOKUPS // 5),
        "time-to-offset": Lookups("time", segment.folder, segment.times, LOOKUPS // 10),
    }


class Segment:
    """One segment that Kafka wrote: batches of 16 KiB, timestamps that rise by one every four records."""

    def __init__(self, total_bytes: int) -> None:
        self.folder = CACHE / f"lookup-{total_bytes >> 20}m-0"
        times = self.folder / f"{0:020}.timeindex"
        if not times.exists():
            with JavaAppender() as java:
                java.round(self.folder, Appends("records", 100, BATCHES[0], total_bytes), keep=True)
        last_time, last_offset = struct.unpack(">qi", times.read_bytes()[-12:])
        self.offsets = range(last_offset)
        self.times = range(FIRST_TIMESTAMP, last_time)


def lookup_figures(total_bytes: int, rounds: int) -> dict[str, Any]:
    """Nanoseconds a lookup, and the sum of what the last round found."""
    figures = {}
    for name, lookups in lookup_jobs(total_bytes).items():
        timing, answer = Timing(), {}
        with JavaLookup() as java:
            for number in range(WARM_UP_ROUNDS + rounds):
                answer = java.round(lookups, seed=number)
                if number >= WARM_UP_ROUNDS:
                    timing.add(answer["seconds"], answer["cpu"])
        figures[name] = {
            "ns_median": timing.median / lookups.count * 1e9,
            "ns_best": timing.best / lookups.count * 1e9,
            "ns_cpu": timing.cpu_median / lookups.count * 1e9,
            "last_seed": WARM_UP_ROUNDS + rounds - 1,
            "last_sum": answer["sum"],
            **timing.summary(),
        }
    check_index_search(figures["index-random"], rounds)
    return figures


def check_index_search(figure: dict[str, Any], rounds: int) -> None:
    """Kafka's answers, found by arithmetic: the index is regular."""
    targets = range(OFFSETS_AN_ENTRY, INDEX_BYTES // 8 * OFFSETS_AN_ENTRY)
    drawn = draw_targets(targets, LOOKUPS, WARM_UP_ROUNDS + rounds - 1)
    expected = sum((target // OFFSETS_AN_ENTRY - 1) * POSITIONS_AN_ENTRY for target in drawn)
    assert figure["last_sum"] == expected, (figure["last_sum"], expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--total-mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["append", "lookup"])
    options = parser.parse_args()
    total = options.total_mb << 20
    figures: dict[str, Any] = {"host": facts()}
    if options.only != "lookup":
        figures["append"] = append_figures(total, options.rounds)
    if options.only != "append":
        figures["lookup"] = lookup_figures(total, options.rounds)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

"""Appending against Kafka's own log, in one run on one machine.

    .venv/bin/python bench/append.py               # 1 GiB a round; about three minutes
    .venv/bin/python bench/append.py --quick       # 128 MiB a round

Kafka's `UnifiedLog.appendAsLeader` runs in a JVM of its own (java/AppendLog.java): on records that it builds, and
on ready-made batches. Ours builds batches from Arrow columns and appends them, and appends the same kind of
ready-made batches. One thread each, nothing is flushed, rounds alternate. The last table is group commit:
with `fsync=always` every append waits for the device, and threads share what they wait for.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarrow as pa

import kafkaseg
from bench.data import CACHE, FIRST_TIMESTAMP
from bench.peers.java import Appends, JavaAppender
from bench.ratios import Ratio, print_ratios, ratio, write
from bench.timing import Timing, UnavailableError, clock
from kafkaseg import _native

VALUES = (100, 1_000)
BATCHES = (16 << 10, 1 << 20)
GOALS = {"records": 2.0, "batches": 1.5}
RECORD_OVERHEAD = 10
READY_BATCHES = 64
KEY_BYTES = 12
THREADS = 8
THREADS_GOAL = 5.0
LOG = CACHE / "append" / "ours-0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="128 MiB a round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    total = (128 if options.quick else 1024) << 20
    timings: dict[str, Timing] = {}
    ratios: list[Ratio] = []
    missing: dict[str, str] = {}
    for kind, value_bytes, batch_bytes in itertools.product(GOALS, VALUES, BATCHES):
        appends = Appends(kind, value_bytes, batch_bytes, total, KEY_BYTES)
        measure(appends, options.rounds, timings, ratios, missing)
    group_commit(200 if options.quick else 1_000, timings, ratios)
    print_ratios(ratios, missing)
    write("append", ratios, timings, missing)


def measure(
    appends: Appends,
    rounds: int,
    timings: dict[str, Timing],
    ratios: list[Ratio],
    missing: dict[str, str],
) -> None:
    """Alternating rounds; a JVM of its own, because what it compiled for one shape of work does not serve the next."""
    ours, theirs = Timing(), Timing()
    work = Columns(appends) if appends.kind == "records" else Ready(appends)
    size = work.round()[2]
    try:
        with JavaAppender() as java:
            for number in range(2 + rounds):
                seconds, cpu, size = work.round()
                answer = java.round(CACHE / "append" / "theirs-0", appends)
                if number >= 2:
                    ours.add(seconds, cpu)
                    # For as many bytes as ours wrote.
                    share = size / answer["bytes"]
                    theirs.add(answer["seconds"] * share, answer["cpu"] * share)
    except UnavailableError as reason:
        missing["java"] = str(reason)
        for _ in range(rounds):
            ours.add(*work.round()[:2])
    timings[f"kafkaseg {appends.name}"] = ours
    line = f"{appends.name:22} ours {size / ours.median / 1e6:7.0f} MB/s"
    if theirs.wall:
        timings[f"java {appends.name}"] = theirs
        ratios.append(ratio(appends.name, "Java UnifiedLog", ours, theirs, GOALS[appends.kind]))
        line += f"   Java {size / theirs.median / 1e6:7.0f} MB/s"
    print(line)


class Columns:
    """Arrow columns that are built into batches and appended."""

    def __init__(self, appends: Appends) -> None:
        self.appends = appends
        count = appends.total_bytes // (appends.value_bytes + KEY_BYTES + RECORD_OVERHEAD)
        slots = pa.array(range(count)).cast(pa.int32())
        pool = 4_096
        picks = pa.compute.bit_wise_and(slots, pa.scalar(pool - 1, pa.int32()))
        values = pa.array([number.to_bytes(4) * (appends.value_bytes // 4) for number in range(pool)])
        keys = pa.array([b"key-%08d" % number for number in range(pool)])
        times = pa.compute.add(pa.scalar(FIRST_TIMESTAMP, pa.int64()), slots.cast(pa.int64()))
        self.table = pa.table(
            {"key": keys.take(picks), "value": values.take(picks), "timestamp": times}
        ).combine_chunks()

    def round(self) -> tuple[float, float, int]:
        with fresh() as log:
            written = 0

            def append() -> None:
                nonlocal written
                written = log.append_arrow(self.table, batch_bytes=self.appends.batch_bytes).bytes

            wall, cpu = clock(append)
        shutil.rmtree(LOG.parent)
        return wall, cpu, written


class Ready:
    """Batches as a client sends them."""

    def __init__(self, appends: Appends) -> None:
        self.appends = appends
        records = appends.batch_bytes // (appends.value_bytes + KEY_BYTES + RECORD_OVERHEAD)
        self.batches = [self.batch(number, records) for number in range(READY_BATCHES)]

    def batch(self, number: int, count: int) -> bytes:
        value = number.to_bytes(4) * (self.appends.value_bytes // 4)
        records = [
            kafkaseg.Record(b"key-%08d" % row, value, timestamp=FIRST_TIMESTAMP + row // 4) for row in range(count)
        ]
        return kafkaseg.encode_batch(records)

    def round(self) -> tuple[float, float, int]:
        with fresh() as log:
            written = 0

            def append() -> None:
                nonlocal written
                _, written, _ = _native.probe_append(log._native, self.batches, self.appends.total_bytes)

            wall, cpu = clock(append)
        shutil.rmtree(LOG.parent)
        return wall, cpu, written


def fresh(**options: str) -> kafkaseg.Log:
    """An empty log as Kafka's is in its benchmark: nothing is flushed while it is appended to."""
    shutil.rmtree(LOG.parent, ignore_errors=True)
    config = {"fsync": "never", "max.message.bytes": 2 << 20, "message.timestamp.after.max.ms": (1 << 63) - 1}
    return kafkaseg.Log.open(LOG, config, **options)


def group_commit(appends: int, timings: dict[str, Timing], ratios: list[Ratio]) -> None:
    """One thread against several, each append on the device before it is acknowledged."""
    batch = kafkaseg.encode_batch([kafkaseg.Record(b"key", b"v" * 1_000, timestamp=FIRST_TIMESTAMP)])
    alone, together = Timing(), Timing()
    for _ in range(3):
        for threads, timing in ((1, alone), (THREADS, together)):
            with fresh(fsync="always") as log:
                count = appends // threads
                timing.add(_native.probe_threads(log._native, batch, threads, count) / (count * threads))
            shutil.rmtree(LOG.parent)
    timings["fsync always, 1 thread"], timings[f"fsync always, {THREADS} threads"] = alone, together
    print(f"fsync=always: {1 / alone.median:,.0f} appends/s alone, {1 / together.median:,.0f} with {THREADS} threads")
    ratios.append(ratio(f"fsync=always, {THREADS} threads", "one thread", together, alone, THREADS_GOAL))


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    main()

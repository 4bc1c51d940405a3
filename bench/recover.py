"""Opening logs after a crash and after a clean stop, against a real broker, in one run on one machine.

    .venv/bin/python bench/recover.py [--quick]

The broker's figure is its own line "Loaded n logs in m ms": its whole start waits for elections and sessions. Files are
in the page cache on both sides, and both use two threads (`num.recovery.threads.per.data.dir`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kafkaseg
from bench.data import CACHE
from bench.peers import broker_start
from bench.peers.broker_start import CLEAN_MARKER, PARTITIONS, SEGMENTS, large_segment, small_segments
from bench.ratios import Ratio, print_ratios, write
from bench.timing import Timing, UnavailableError

GOALS = {"1 GiB, unclean": 2.0, "1,000 partitions, clean": 5.0, "1,000 partitions, unclean": 5.0}
FOLDER = CACHE / "recover-ours"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of the broker")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    missing: dict[str, str] = {}
    ours = {"1 GiB, unclean": unclean_segment(options.rounds), **many_partitions(options.rounds)}
    try:
        theirs = broker(1 if options.quick else 3)
    except UnavailableError as reason:
        missing["broker"], theirs = str(reason), {}
    ratios = []
    for name, timing in ours.items():
        line = f"{name:28} ours {timing.median * 1e3:8.0f} ms"
        if name in theirs:
            median, best = theirs[name]
            line += f"   broker {median:8.0f} ms"
            ratios.append(
                Ratio(name, "a broker", median / 1e3 / timing.median, best / 1e3 / timing.best, None, GOALS[name])
            )
        print(line)
    print_ratios(ratios, missing)
    write("recover", ratios, ours, missing)


def broker(rounds: int) -> dict[str, tuple[float, float]]:
    """Median and best milliseconds."""
    segment = broker_start.figures("segment", rounds)
    partitions = broker_start.figures("partitions", rounds)
    each = {
        "1 GiB, unclean": segment,
        "1,000 partitions, clean": partitions["clean"],
        "1,000 partitions, unclean": partitions["unclean"],
    }
    return {name: (found["ms_median"], found["ms_best"]) for name, found in each.items()}


def unclean_segment(rounds: int) -> Timing:
    """One segment of a GiB in batches of a MiB, every byte of it checked."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(large_segment(), FOLDER / "loaded-0")
    timing = Timing()
    for number in range(1 + rounds):
        seconds, checked = opened()
        assert checked > 1 << 29, f"{checked} bytes checked"
        if number:
            timing.add(seconds)
    shutil.rmtree(FOLDER)
    return timing


def many_partitions(rounds: int) -> dict[str, Timing]:
    shutil.rmtree(FOLDER, ignore_errors=True)
    template = small_segments()
    for number in range(PARTITIONS):
        shutil.copytree(template, FOLDER / f"loaded-{number}")
    # The first opening makes the indexes and snapshots that the later ones find.
    opened()
    clean, unclean = Timing(), Timing()
    for _ in range(rounds):
        (FOLDER / CLEAN_MARKER).touch()
        clean.add(opened()[0])
        unclean.add(opened()[0])
    shutil.rmtree(FOLDER)
    return {"1,000 partitions, clean": clean, "1,000 partitions, unclean": unclean}


def opened() -> tuple[float, int]:
    """Seconds to open the directory, and bytes checked; then closed, and nothing left of the clean stop."""
    start = time.perf_counter()
    logs = kafkaseg.LogDir.open(FOLDER)
    seconds = time.perf_counter() - start
    recovered = logs.recovery.logs.values()
    assert not logs.offline(), logs.offline()
    assert sum(log.bytes_truncated for log in recovered) == 0
    checked = sum(log.bytes_checked for log in recovered)
    logs.close()
    for path in FOLDER.iterdir():
        if path.is_file():
            path.unlink()
    return seconds, checked


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    assert SEGMENTS > 1
    main()

"""Thousands of partitions: nothing is held for those that nobody touches, and everything is given back."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import consume, fill

PARTITIONS = 10_000 if os.environ.get("KAFKASEG_LONG") else 1_000

SMALL_INDEXES = {"segment.index.bytes": 4096}


def held(path: Path) -> tuple[int, int]:
    """Descriptors and maps of this process that belong to files below a path."""
    gc.collect()
    inside = os.fspath(path)
    links = []
    for link in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.fspath(link.readlink()))
    maps = Path("/proc/self/maps").read_text().splitlines()
    return sum(inside in link for link in links), sum(inside in line for line in maps)


@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_untouched_partitions_hold_nothing_and_closing_returns_everything(tmp_path: Path) -> None:
    path = tmp_path / "data"
    assert held(path) == (0, 0)
    with kafkaseg.LogDir.open(path, SMALL_INDEXES) as logs:
        logs.create_topic("many", PARTITIONS)
        for number in range(0, PARTITIONS, 10):
            fill(logs.partition("many", number), 5)
    assert held(path) == (0, 0), "after close"
    with kafkaseg.LogDir.open(path, SMALL_INDEXES) as logs:
        assert logs.recovery.clean
        stats = logs.stats()
        assert (stats["partitions"], stats["maps"], stats["descriptors"]) == (PARTITIONS, 0, 0)
        descriptors, maps = held(path)
        # The directory itself and its lock are held, and each partition's directory.
        assert maps == 0
        assert descriptors <= PARTITIONS + 4
        untouched = descriptors
        assert len(consume(logs.partition("many", 10))) == 5
        fill(logs.partition("many", 11), 5)
        stats = logs.stats()
        assert 0 < stats["descriptors"] <= 2
        assert stats["maps"] <= 4
        descriptors, maps = held(path)
        assert (descriptors - untouched, maps) <= (4, 4)
    assert held(path) == (0, 0), "after close"
    print(f"{PARTITIONS} partitions: {untouched} descriptors while untouched")

"""Thousands of partitions: nothing is held for those that nobody touches, and everything is given back."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import consume, fill

PARTITIONS = 10_000 if os.environ.get("KAFKASEG_LONG") else 1_000

SMALL_INDEXES = {"segment.index.bytes": 4096}

#: The root and its lock.
ROOT_DESCRIPTORS = 2
#: Its directory, its active segment and the two indexes of that.
TOUCHED_DESCRIPTORS = 4


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
        assert held(path) == (ROOT_DESCRIPTORS, 0), "new partitions are untouched too"
        for number in range(0, PARTITIONS, PARTITIONS // 100):
            fill(logs.partition("many", number), 5)
    assert held(path) == (0, 0), "after close"
    with kafkaseg.LogDir.open(path, SMALL_INDEXES) as logs:
        assert logs.recovery.clean
        stats = logs.stats()
        assert (stats["partitions"], stats["maps"], stats["descriptors"]) == (PARTITIONS, 0, 0)
        assert held(path) == (ROOT_DESCRIPTORS, 0)
        assert len(consume(logs.partition("many", PARTITIONS // 100))) == 5
        fill(logs.partition("many", 1), 5)
        stats = logs.stats()
        assert 0 < stats["descriptors"] <= 2
        assert stats["maps"] <= 4
        descriptors, maps = held(path)
        assert descriptors <= ROOT_DESCRIPTORS + 2 * TOUCHED_DESCRIPTORS
        assert maps <= 4
    assert held(path) == (0, 0), "after close"


def test_a_limit_of_descriptors_refuses_and_harms_nothing(tmp_path: Path) -> None:
    with kafkaseg.LogDir.open(tmp_path / "data", SMALL_INDEXES) as logs:
        logs.create_topic("many", 100)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        refused = []
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        try:
            for number in range(100):
                try:
                    fill(logs.partition("many", number), 5)
                except OSError as error:
                    assert error.errno == errno.EMFILE  # noqa: PT017
                    refused.append(number)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert 0 < len(refused) < 100
        for number in range(100):
            log = logs.partition("many", number)
            assert len(consume(log)) == (0 if number in refused else 5)
            fill(log, 5)
    with kafkaseg.LogDir.open(tmp_path / "data") as logs:
        assert logs.recovery.clean

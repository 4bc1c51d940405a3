"""Searching an offset index."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from kafkaseg import _native

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

SEARCHES = 10_000


@pytest.mark.parametrize("entries", [1_000, 100_000, 1_310_720])
def test_10_000_searches(benchmark: BenchmarkFixture, entries: int) -> None:
    # The largest has as many entries as segment.index.bytes of 10 MiB holds.
    index = b"".join(struct.pack(">ii", 40 * number, 4200 * number % 2**31) for number in range(entries))
    benchmark.extra_info["searches"] = SEARCHES
    benchmark(_native.probe, "index", index, SEARCHES)

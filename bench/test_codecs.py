"""Inflating the payloads of 16 KiB batches, codec by codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.conftest import TOTAL_BYTES
from bench.data import dataset
from bench.limits import whole_batches
from kafkaseg import _native

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.parametrize("codec", ["lz4", "snappy", "zstd", "gzip"])
def test_inflate_32_mib(benchmark: BenchmarkFixture, codec: str, value_bytes: int) -> None:
    stored = dataset(codec, value_bytes, TOTAL_BYTES)
    benchmark.extra_info["inflated_bytes"] = stored.inflated_bytes
    benchmark(_native.probe, "inflate", whole_batches(stored), 1)

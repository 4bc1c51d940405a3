"""Checksums, 16 KiB at a time as batches are checked."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from kafkaseg import _native

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

MEGABYTES = 64


@pytest.fixture(scope="module")
def noise() -> bytes:
    return random.Random(1).randbytes(1 << 20) * MEGABYTES


@pytest.mark.parametrize("kind", ["crc32c", "crc32"])
def test_checksum_64_mib(benchmark: BenchmarkFixture, kind: str, noise: bytes) -> None:
    benchmark.extra_info["bytes"] = len(noise)
    benchmark(_native.probe, kind, noise, 1)


def test_memcpy_64_mib_for_comparison(benchmark: BenchmarkFixture, noise: bytes) -> None:
    benchmark.extra_info["bytes"] = len(noise)
    benchmark(_native.probe, "memcpy", noise, 1)

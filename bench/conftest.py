"""Data and host facts for the micro-benchmarks: small, so that all of them take seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import host
from bench.data import CODECS, dataset
from bench.limits import whole_batches

if TYPE_CHECKING:
    from bench.data import Dataset

# Larger than the second-level cache of any processor, read in a few milliseconds.
TOTAL_BYTES = 32 << 20


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, object]) -> None:  # noqa: ARG001
    machine_info["host"] = host.facts()


@pytest.fixture(params=[100, 1000], ids=["100B", "1000B"])
def value_bytes(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture(params=CODECS)
def stored(request: pytest.FixtureRequest, value_bytes: int) -> Dataset:
    """A partition in each codec."""
    return dataset(request.param, value_bytes, TOTAL_BYTES)


@pytest.fixture
def plain(value_bytes: int) -> Dataset:
    """An uncompressed partition."""
    return dataset("none", value_bytes, TOTAL_BYTES)


@pytest.fixture
def log(stored: Dataset) -> bytes:
    """The whole batches that start the partition."""
    return whole_batches(stored)


@pytest.fixture
def plain_log(plain: Dataset) -> bytes:
    return whole_batches(plain)

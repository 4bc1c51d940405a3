"""Walking records in memory: no file, no checksum, no columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaseg import _native

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from bench.data import Dataset


def test_walk_records_32_mib(benchmark: BenchmarkFixture, plain: Dataset, plain_log: bytes) -> None:
    benchmark.extra_info["records"] = plain.records
    benchmark(_native.probe, "records", plain_log, 1)


def test_inflate_and_walk_records_32_mib(benchmark: BenchmarkFixture, stored: Dataset, log: bytes) -> None:
    benchmark.extra_info["records"] = stored.records
    benchmark(_native.probe, "records", log, 1)

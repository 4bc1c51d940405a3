"""Whole scans through the Python interface, files in the page cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

import kafkaseg

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from bench.data import Dataset


def rows(stored: Dataset, **options: object) -> int:
    return sum(batch.num_rows for batch in kafkaseg.scan(stored.directory, **options))


def test_all_spark_columns(benchmark: BenchmarkFixture, stored: Dataset) -> None:
    benchmark.extra_info.update(records=stored.records, bytes=stored.log_bytes)
    assert benchmark(rows, stored) == stored.records


def test_offsets_and_timestamps_only(benchmark: BenchmarkFixture, plain: Dataset) -> None:
    benchmark.extra_info["records"] = plain.records
    assert benchmark(rows, plain, columns=["offset", "timestamp"]) == plain.records


def test_without_checksums(benchmark: BenchmarkFixture, plain: Dataset) -> None:
    benchmark.extra_info["records"] = plain.records
    assert benchmark(rows, plain, verify=False) == plain.records


def test_two_threads(benchmark: BenchmarkFixture, plain: Dataset) -> None:
    benchmark.extra_info["records"] = plain.records
    assert benchmark(rows, plain, threads=2) == plain.records


def test_count(benchmark: BenchmarkFixture, plain: Dataset) -> None:
    benchmark.extra_info["batches"] = plain.batches
    assert benchmark(lambda: kafkaseg.scan(plain.directory).count()) == plain.records


def test_splits(benchmark: BenchmarkFixture, plain: Dataset) -> None:
    assert len(benchmark(lambda: kafkaseg.scan(plain.directory).splits(8))) == 8

"""pyarrow reading the same rows from Parquet, on one thread."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import kafkaseg
from bench.data import CACHE, EDITION

if TYPE_CHECKING:
    from pathlib import Path

    from bench.data import Dataset

# Of the size pyarrow's writer makes by default: 1 Mi rows of 100 bytes.
ROW_GROUP_BYTES = 128 << 20


def parquet_file(dataset: Dataset, compression: str) -> Path:
    """The rows of an uncompressed dataset with all columns of its scan; from the cache if it was made."""
    name = f"v{EDITION}-{dataset.value_bytes}-{dataset.inflated_bytes >> 10}k-{compression}.parquet"
    path = CACHE / name
    if not path.exists():
        partial = path.with_suffix(".partial")
        scan = kafkaseg.scan(dataset.directory)
        group_rows = max(1, ROW_GROUP_BYTES // dataset.value_bytes)
        with pq.ParquetWriter(partial, scan.schema, compression=compression) as writer:
            waiting: list[pa.RecordBatch] = []
            for batch in scan:
                waiting.append(batch)
                if sum(each.num_rows for each in waiting) >= group_rows:
                    writer.write_table(pa.Table.from_batches(waiting), row_group_size=2 * group_rows)
                    waiting = []
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting), row_group_size=2 * group_rows)
        shutil.move(partial, path)
    return path


def read(path: Path) -> int:
    """Reads every row group without keeping it; the number of rows."""
    rows = 0
    with pq.ParquetFile(path, memory_map=True) as file:
        for group in range(file.num_row_groups):
            rows += file.read_row_group(group, use_threads=False).num_rows
    return rows

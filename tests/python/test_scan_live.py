"""A directory that changes while it is read, and a reader that is interrupted, forked or sent away."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import kafkaseg
from tests.logs import batch, segment_name, write_large, write_partition


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return write_partition(tmp_path)


def test_what_is_appended_later_is_not_read(partition: Path) -> None:
    scan = kafkaseg.scan(partition)
    with (partition / segment_name(80)).open("ab") as log:
        log.write(batch(120))
    assert scan.to_arrow().num_rows == 120
    assert kafkaseg.scan(partition).to_arrow().num_rows == 130


def test_a_half_written_batch_is_not_read_and_no_error(partition: Path) -> None:
    with (partition / segment_name(80)).open("ab") as log:
        log.write(batch(120)[:200])
    scan = kafkaseg.scan(partition)
    assert scan.to_arrow().num_rows == 120
    (tail,) = scan.report.tails
    assert (Path(tail.file).name, tail.bytes) == (segment_name(80), 200)
    assert scan.report.damage == ()


def test_a_segment_waiting_for_deletion_is_still_read(partition: Path) -> None:
    scan = kafkaseg.scan(partition)
    first = partition / segment_name(0)
    first.rename(f"{first}.deleted")
    assert scan.to_arrow().num_rows == 120


@pytest.mark.parametrize("change", ["deleted", "replaced", "cut short"])
def test_a_segment_that_is_gone_or_another_is_said(partition: Path, change: str) -> None:
    scan = kafkaseg.scan(partition)
    lenient = kafkaseg.scan(partition, on_missing="skip")
    segment = partition / segment_name(40)
    if change == "deleted":
        segment.unlink()
    elif change == "replaced":
        other = partition / "other"
        other.write_bytes(segment.read_bytes())
        other.replace(segment)
    else:
        os.truncate(segment, 100)
    with pytest.raises(kafkaseg.LogChangedError, match=segment_name(40)):
        scan.to_arrow()
    assert lenient.to_arrow()["offset"].to_pylist() == [*range(40), *range(80, 120)]
    assert [Path(path) for path in lenient.report.missing] == [segment]


def test_splits_survive_pickling_into_other_processes(partition: Path) -> None:
    splits = kafkaseg.scan(partition).splits(5)
    assert len(splits) > 1
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.map(kafkaseg.Scan.count, splits)
    assert sum(counts) == 120
    again = pickle.loads(pickle.dumps(splits[0]))  # noqa: S301
    assert again.to_arrow().equals(splits[0].to_arrow())


def test_a_forked_child_scans_after_its_parent_did(partition: Path) -> None:
    assert kafkaseg.scan(partition, threads=2).to_arrow().num_rows == 120
    for _ in range(20):
        child = os.fork()
        if child == 0:
            ok = False
            try:
                reader = kafkaseg.scan(partition, threads=2)._plan.open()
                rows = 0
                while (found := reader.next_batch()) is not None:
                    rows += found.num_rows
                ok = rows == 120
            finally:
                os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", ["iterate", "duckdb", "count"])
def test_ctrl_c_ends_a_scan(tmp_path: Path, how: str, threads: int) -> None:
    """Goal: the interrupt arrives inside the scan. Method: a program that scans again and again, and that
    would never end by itself."""
    write_large(tmp_path, 0.2)
    what = {
        "iterate": "for _ in scan: pass",
        "duckdb": "duckdb.sql('select count(value) from scan').fetchall()",
        "count": "scan.count()",
    }[how]
    program = (
        f"import kafkaseg, duckdb\nprint('ready', flush=True)\nwhile True:\n"
        f"    scan = kafkaseg.scan({str(tmp_path / 'large-0')!r}, threads={threads})\n    {what}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=30)
    assert child.returncode != 0
    assert "nterrupt" in errors


def test_other_threads_run_during_a_scan(tmp_path: Path) -> None:
    scan = kafkaseg.scan(write_large(tmp_path, 0.3))
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)

    other = threading.Thread(target=tick)
    other.start()
    for _ in range(3):
        scan.count()
        scan.to_arrow()
    done.set()
    other.join()
    assert ticks > 3


def test_other_libraries_read_a_scan_as_it_is(partition: Path) -> None:
    scan = kafkaseg.scan(partition)
    assert duckdb.sql('select count(*), max("offset") from scan').fetchall() == [(120, 119)]
    assert pl.DataFrame(scan).height == scan.to_polars().height == 120
    assert len(scan.to_pandas()) == 120
    reader = pa.RecordBatchReader.from_stream(scan)
    assert reader.read_all().num_rows == 120
    assert scan.to_arrow().equals(scan.to_arrow())


def test_an_error_inside_a_foreign_stream_keeps_our_words(partition: Path) -> None:
    damaged = bytearray((partition / segment_name(0)).read_bytes())
    damaged[100] ^= 1
    (partition / segment_name(0)).write_bytes(damaged)
    with pytest.raises(Exception, match="is damaged at position 0"):
        pa.RecordBatchReader.from_stream(kafkaseg.scan(partition)).read_all()

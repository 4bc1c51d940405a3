"""Scans a directory that a real Kafka broker wrote: a table, a few records, and the rate of the scan.

make demo                                  # the bundled directory
python examples/demo.py /var/lib/kafka     # any other: a live broker's, a backup, one partition
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import kafkaseg

ROOT = Path(__file__).resolve().parents[1]
BUNDLED = ROOT / "tests" / "data" / "codecs-java-3.9.1" / "log"
#: Copies for the measurement stay inside the checkout.
CACHE = ROOT / ".cache"
RECORDS_SHOWN = 5
#: The rate is measured over about this many bytes, where so many copies reach it.
RATE_BYTES = 30_000_000
COPIES_MAX = 100

Row = tuple[str, ...]


def main() -> None:
    """Prints everything."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLED
    print(f"kafkaseg {kafkaseg.__version__} on {shown(path)}\n")
    partitions, records, size = summarize(path)
    show_table(["topic", "partition", "records", "offsets", "bytes"], partitions)
    print(f"\n{records:,} records, {size:,} bytes of keys and values\n")
    show_table(["topic", "partition", "offset", "timestamp", "key", "value"], first_records(path))
    print(f"\n{rate(path)}")


def shown(path: Path) -> str:
    """The path as short as it can be said from here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def summarize(path: Path) -> tuple[list[Row], int, int]:
    """One row for each partition, the number of records, and the bytes of their keys and values."""
    counts: dict[tuple[str, int], int] = defaultdict(int)
    sizes: dict[tuple[str, int], int] = defaultdict(int)
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for batch in kafkaseg.scan(path, columns=["topic", "partition", "offset", "key", "value"]):
        columns = (column.to_pylist() for column in batch.columns)
        for topic, partition, offset, key, value in zip(*columns, strict=True):
            place = topic, partition
            counts[place] += 1
            sizes[place] += len(key or b"") + len(value or b"")
            spans[place] = spans.get(place, (offset, offset))[0], offset
    rows = [
        (
            topic,
            str(number),
            f"{counts[topic, number]:,}",
            "{} .. {}".format(*spans[topic, number]),
            f"{size:,}",
        )
        for (topic, number), size in sorted(sizes.items())
    ]
    return rows, sum(counts.values()), sum(sizes.values())


def first_records(path: Path) -> list[Row]:
    """The first record of each of the first partitions."""
    rows: dict[tuple[str, int], Row] = {}
    for batch in kafkaseg.scan(path, columns=["topic", "partition", "offset", "timestamp", "key", "value"]):
        for record in batch.to_pylist():
            when = record["timestamp"].strftime("%Y-%m-%d %H:%M:%S")
            place = record["topic"], record["partition"]
            row = (*map(str, place), str(record["offset"]), when, text(record["key"]), text(record["value"]))
            rows.setdefault(place, row)
            if len(rows) >= RECORDS_SHOWN:
                return list(rows.values())
    return list(rows.values())


def text(value: bytes | None, width: int = 36) -> str:
    """Bytes for a terminal: text as it is, everything else in hexadecimal."""
    if value is None:
        return "null"
    try:
        shown = value.decode()
    except UnicodeDecodeError:
        shown = ""
    if not shown.isprintable() or (value and not shown):
        shown = "0x" + value.hex()
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def rate(path: Path) -> str:
    """All of Spark's columns, one thread, checksums verified, the files in the page cache."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="demo-", dir=CACHE) as folder:
        source, note = path, ""
        if kafkaseg.scan(path).bytes < RATE_BYTES:
            source, copies = enlarge(path, Path(folder))
            note = f" ({copies} copies of the above)"
        kafkaseg.scan(source).count()
        start = time.perf_counter()
        scan = kafkaseg.scan(source, headers=True)
        for _ in scan:
            pass
        seconds = time.perf_counter() - start
    report = scan.report
    return (
        f"scanned {report.records:,} records, {report.bytes / 1e6:,.1f} MB of log{note} in {seconds:.3f} s: "
        f"{report.records / seconds / 1e6:.1f} million records/s, {report.bytes / seconds / 1e6:,.0f} MB/s"
    )


def enlarge(path: Path, folder: Path) -> tuple[Path, int]:
    """Copies every partition under further numbers: opening a few small files is no measure of a scan."""
    copies = min(RATE_BYTES // max(kafkaseg.scan(path).bytes, 1) + 1, COPIES_MAX)
    for partition in sorted(path.glob("*-[0-9]*")):
        topic, _, number = partition.name.rpartition("-")
        for copy in range(copies):
            shutil.copytree(partition, folder / f"{topic}-{int(number) + 1000 * copy}")
    return folder, copies


def show_table(header: list[str], rows: list[Row]) -> None:
    """With rich where it is installed, else in plain columns."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        for row in (header, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    table = Table(*header, box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 110, markup=False, highlight=False).print(table)


if __name__ == "__main__":
    main()

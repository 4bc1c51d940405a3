"""Directories and batches made to harm a reader."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

import kafkaseg
from tests.logs import batch, segment_name, write_partition

MIB = 1 << 20


def tree(root: Path) -> dict[str, tuple[str, int, int]]:
    """Content, modification time and mode of every file."""
    return {
        str(path.relative_to(root)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.lstat().st_mtime_ns,
            path.lstat().st_mode,
        )
        for path in sorted(root.rglob("*"))
    }


def test_reading_changes_nothing(bundled: Path) -> None:
    root = bundled / "txn-4.3.0" / "log"
    before = tree(root)
    scan = kafkaseg.scan(root, isolation="read_committed", threads=2)
    scan.to_arrow()
    scan.count()
    scan.splits(3)
    kafkaseg.batches(root, verify=True)
    kafkaseg.offsets_for_time(root, 0)
    assert tree(root) == before
    assert ".lock" not in before


def test_scanned_files_are_never_mapped(tmp_path: Path) -> None:
    partition = write_partition(tmp_path)
    for _ in kafkaseg.scan(partition):
        assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = write_partition(tmp_path / "outside")
    root = tmp_path / "root"
    write_partition(root, "good-0")
    (root / "orders-0").symlink_to(outside)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="symbolic link"):
        kafkaseg.scan(root)
    (root / "orders-0").unlink()
    segment = root / "good-0" / segment_name(120)
    segment.symlink_to(outside / segment_name(0))
    with pytest.raises(kafkaseg.InvalidArgumentError, match="links"):
        kafkaseg.scan(root)


def test_pipes_and_directories_named_like_segments_are_refused(tmp_path: Path) -> None:
    partition = write_partition(tmp_path)
    odd = partition / segment_name(120)
    os.mkfifo(odd)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="regular file"):
        kafkaseg.scan(partition)
    odd.unlink()
    odd.mkdir()
    with pytest.raises(kafkaseg.InvalidArgumentError, match="regular file"):
        kafkaseg.scan(partition)


def crc32c(data: bytes) -> int:
    table = []
    for index in range(256):
        entry = index
        for _ in range(8):
            entry = (entry >> 1) ^ 0x82F63B78 if entry & 1 else entry >> 1
        table.append(entry)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def framed(codec: int, payload: bytes, count: int) -> bytes:
    """A version 2 batch with a right checksum around any payload."""
    tail = struct.pack(">hiqqqhii", codec, max(count - 1, 0), 0, 0, -1, -1, -1, count) + payload
    return struct.pack(">qiibI", 0, len(tail) + 9, 0, 2, crc32c(tail)) + tail


def gzip_bomb() -> bytes:
    return gzip.compress(bytes(700 * MIB), 9)


def zstd_bomb() -> bytes:
    return zstandard.ZstdCompressor(level=3, write_content_size=False).compress(bytes(4096 * MIB))[:MIB]


def lz4_bomb() -> bytes:
    # One literal zero, then a match of all that a 4 MiB block holds; the frame repeats the block.
    run = 4 * MIB - 1 - 4 - 5
    extra, last = divmod(run - 15, 255)
    block = b"\x1f\x00\x01\x00" + b"\xff" * extra + bytes([last]) + b"\x50" + bytes(5)
    header = bytes.fromhex("04224d186070")
    checksum = b"\x73"
    blocks = (struct.pack("<I", len(block)) + block) * (MIB // len(block))
    return header + checksum + blocks + bytes(4)


def snappy_bomb() -> bytes:
    # A raw block that says it inflates to 2 GiB - 1.
    return bytes.fromhex("ffffffff07") + bytes(MIB)


# The high-water mark of the process itself: what getrusage tells is inherited from the parent.
PROBE = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (1500 << 20, 1500 << 20))
import kafkaseg
try:
    reader = kafkaseg.scan(sys.argv[1])._plan.open()
    while reader.next_batch() is not None:
        pass
    outcome = "read"
except kafkaseg.KafkasegError as error:
    outcome = type(error).__name__
status = Path("/proc/self/status").read_text()
print(outcome, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def probe(partition: Path) -> tuple[str, int]:
    """What a scan of a directory ends with, and the memory it took at most, in MiB."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE, str(partition)], capture_output=True, text=True, check=True, timeout=100
    )
    outcome, peak = run.stdout.split()
    return outcome, int(peak)


@pytest.mark.parametrize("count", [1, 2_000_000_000])
@pytest.mark.parametrize(
    ("codec", "payload"), [(1, gzip_bomb), (2, snappy_bomb), (3, lz4_bomb), (4, zstd_bomb)]
)
def test_bombs_are_refused_within_the_budget(tmp_path: Path, codec: int, payload: object, count: int) -> None:
    partition = tmp_path / "bomb-0"
    partition.mkdir()
    (partition / segment_name(0)).write_bytes(framed(codec, payload(), count) + batch(3_000_000))
    outcome, peak = probe(partition)
    assert outcome == "CorruptLogError"
    assert peak < 200


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_a_good_batch_that_inflates_to_much_is_read_whole(tmp_path: Path, compression: str) -> None:
    partition = tmp_path / "wide-0"
    partition.mkdir()
    record = kafkaseg.Record(b"k", bytes(64 << 10), timestamp=1)
    data = kafkaseg.encode_batch([record] * 2_000, compression=compression)
    (partition / segment_name(0)).write_bytes(data)
    scan = kafkaseg.scan(partition)
    rows = 0
    for found in scan:
        rows += found.num_rows
        assert found.nbytes < 32 * MIB
    assert rows == scan.count() == 2_000
    outcome, peak = probe(partition)
    assert outcome == "read"
    assert peak < 300

"""Small partition directories made for a test."""

from __future__ import annotations

from pathlib import Path

import kafkaseg

#: 2023-11-14, a second apart a batch.
START_MS = 1_700_000_000_000


def batch(base: int, count: int = 10, value_bytes: int = 50, compression: str = "none") -> bytes:
    """A batch whose values tell their offset."""
    records = [
        kafkaseg.Record(
            f"key-{offset}".encode(),
            f"{offset}:".encode().ljust(value_bytes, b"."),
            timestamp=START_MS + offset * 100,
        )
        for offset in range(base, base + count)
    ]
    return kafkaseg.encode_batch(records, base_offset=base, leader_epoch=0, compression=compression)


def write_partition(root: Path, name: str = "orders-0", segments: int = 3, batches: int = 4) -> Path:
    """A partition of `segments` segments of `batches` batches of ten records."""
    directory = root / name
    directory.mkdir(parents=True)
    for segment in range(segments):
        base = segment * batches * 10
        content = b"".join(batch(base + number * 10) for number in range(batches))
        (directory / segment_name(base)).write_bytes(content)
    return directory


def segment_name(base: int) -> str:
    return f"{base:020}.log"


def write_large(root: Path, gigabytes: float, compression: str = "none") -> Path:
    """A partition large enough to be interrupted: one batch again and again, its offset patched."""
    directory = root / "large-0"
    directory.mkdir(parents=True)
    template = batch(0, count=1000, value_bytes=200, compression=compression)
    with (directory / segment_name(0)).open("wb") as log:
        base = 0
        while log.tell() < gigabytes * 1e9:
            log.write(kafkaseg.patch_batch(template, base_offset=base))
            base += 1000
    return directory

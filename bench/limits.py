"""What nothing can beat on this machine, on the bytes of a dataset, through the engine's own functions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafkaseg import _native

if TYPE_CHECKING:
    from bench.data import Dataset

# Far beyond any cache, and soon read.
SAMPLE_BYTES = 256 << 20


class Limits:
    """Seconds that parts of a scan would take for the whole dataset with nothing else to do."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.log = whole_batches(dataset)
        self.scale = dataset.log_bytes / len(self.log)
        self.kinds = ["pread", "crc32c", "memcpy"]
        if dataset.codec != "none":
            self.kinds.append("inflate")
        self.kinds.append("records")

    def round(self, kind: str) -> tuple[float, float]:
        """Wall and processor seconds."""
        start = time.thread_time()
        if kind == "pread":
            wall = sum(_native.probe("pread", segment, 1) for segment in self.dataset.segments)
            return wall, time.thread_time() - start
        wall = _native.probe(kind, self.log, 1)
        return self.scale * wall, self.scale * (time.thread_time() - start)


def whole_batches(dataset: Dataset) -> bytes:
    """The start of the first segment, cut between two batches."""
    with dataset.segments[0].open("rb") as file:
        log = file.read(SAMPLE_BYTES)
    position = 0
    while position + 12 <= len(log):
        end = position + 12 + int.from_bytes(log[position + 8 : position + 12], "big")
        if end > len(log):
            break
        position = end
    return log[:position]

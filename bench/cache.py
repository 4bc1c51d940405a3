"""How a file comes to stand in the page cache, which decides how fast any reader can take it from there.

Linux keeps a file in folios. Reading ahead from a disk makes large ones; appending batch by batch, as a broker
does, makes folios of a page or a few, and copying out of those was measured at half the speed or less. Both are
real: a directory that was restored or read before, and a log whose end was just written. Contestants always
share the state.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STATES = ("read", "written")
# Of no round size, as batches are: appends then end within pages.
APPEND_BYTES = 16_001
READ_BYTES = 1 << 20


def settle(files: Iterable[Path], state: str) -> None:
    """Brings files into the page cache in one of the states."""
    for file in files:
        if state == "written":
            rewrite(file)
        else:
            evict(file)
            read(file)


def evict(file: Path) -> None:
    """Drops a file from the cache; only clean pages can be dropped, so it is synced first."""
    handle = os.open(file, os.O_RDONLY)
    try:
        os.fsync(handle)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def read(file: Path) -> None:
    with file.open("rb", buffering=0) as source:
        while source.read(READ_BYTES):
            pass


def rewrite(file: Path) -> None:
    """Writes a file anew in appends of a batch's size, and leaves it where the writes put it."""
    copy = file.with_suffix(".rewritten")
    with file.open("rb", buffering=0) as source, copy.open("wb", buffering=0) as target:
        while piece := source.read(APPEND_BYTES):
            target.write(piece)
        os.fsync(target.fileno())
    copy.replace(file)

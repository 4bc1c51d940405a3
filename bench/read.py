"""Sending and reading a log against the bare system calls, in one run on one machine.

    .venv/bin/python bench/read.py [--quick]

`log.send` is held against a loop of `os.sendfile` over the same bytes of the same file, `log.read` against `os.pread`.
Both go to a socket on the loopback device, which a thread drains. There sendfile shows no gain over reading and
writing: what it saves on a real network is processor time and memory, which this does not measure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kafkaseg
from bench.append import LOG, Columns, fresh
from bench.data import CACHE
from bench.peers.java import Appends
from bench.ratios import Ratio, print_ratios, ratio, write
from bench.timing import Timing, clock

if TYPE_CHECKING:
    from collections.abc import Callable

SLICE = 1 << 20
SEND_GOAL = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="256 MiB")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    total = (256 if options.quick else 1_000) << 20
    with fresh() as log:
        log.append_arrow(Columns(Appends("records", 1_000, 16 << 10, total)).table)
        timings = measure(log, options.rounds)
        size = log.segments()[0].bytes
    shutil.rmtree(LOG.parent)
    for name, timing in timings.items():
        print(f"{name:16} {size / timing.median / 1e6:8.0f} MB/s")
    ratios: list[Ratio] = [
        ratio("log.send", "bare sendfile", timings["log.send"], timings["sendfile"], SEND_GOAL),
        ratio("log.send", "read and send", timings["log.send"], timings["read and send"], None),
        ratio("log.read", "bare pread", timings["log.read"], timings["pread"], None),
    ]
    print_ratios(ratios, {})
    print("loopback shows no gain of sendfile over read and write; on a real network it saves CPU and memory")
    write("read", ratios, timings, {})


def measure(log: kafkaseg.Log, rounds: int) -> dict[str, Timing]:
    path = Path(log.path) / f"{0:020}.log"
    size, slices = log.segments()[0].bytes, positions(log)
    with path.open("rb") as file, Drain(size) as drain:
        contestants: dict[str, Callable[[], None]] = {
            "sendfile": lambda: drain.take(lambda sock: sendfile(sock, file.fileno(), slices)),
            "log.send": lambda: drain.take(lambda sock: send(sock, log, slices)),
            "read and send": lambda: drain.take(lambda sock: copy(sock, file.fileno(), slices)),
            "pread": lambda: pread(file.fileno(), slices),
            "log.read": lambda: read(log, slices),
        }
        timings = {name: Timing() for name in contestants}
        for number in range(1 + rounds):
            for name, run in contestants.items():
                wall, _ = clock(run)
                if number:
                    timings[name].add(wall)
    return timings


def positions(log: kafkaseg.Log) -> list[tuple[int, int, int]]:
    """Offset, position and bytes of slices that end with whole batches."""
    slices, offset = [], 0
    end = log.segments()[0].next_offset
    while offset < end:
        fetched = log.read(offset, SLICE)
        last, whole = offset, 0
        for batch in fetched.batches():
            last, whole = batch.last_offset + 1, whole + batch.bytes
        slices.append((offset, fetched.position, whole))
        offset = last
    return slices


def sendfile(sock: socket.socket, file: int, slices: list[tuple[int, int, int]]) -> None:
    for _, position, size in slices:
        sent = 0
        while sent < size:
            sent += os.sendfile(sock.fileno(), file, position + sent, size - sent)


def send(sock: socket.socket, log: kafkaseg.Log, slices: list[tuple[int, int, int]]) -> None:
    for offset, _, size in slices:
        assert log.send(sock, offset, size).bytes == size


def copy(sock: socket.socket, file: int, slices: list[tuple[int, int, int]]) -> None:
    for _, position, size in slices:
        sock.sendall(os.pread(file, size, position))


def pread(file: int, slices: list[tuple[int, int, int]]) -> None:
    for _, position, size in slices:
        assert len(os.pread(file, size, position)) == size


def read(log: kafkaseg.Log, slices: list[tuple[int, int, int]]) -> None:
    for offset, _, size in slices:
        assert len(log.read(offset, size).data) == size


class Drain:
    """A thread that takes what comes through a loopback connection."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __enter__(self) -> Drain:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.near = socket.create_connection(server.getsockname())
            self.far, _ = server.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self.near.close()
        self.far.close()

    def take(self, work: Callable[[socket.socket], None]) -> None:
        """Returns when the other side has everything."""
        thread = threading.Thread(target=self.drain)
        thread.start()
        work(self.near)
        thread.join()

    def drain(self) -> None:
        buffer, left = bytearray(1 << 20), self.size
        while left:
            left -= self.far.recv_into(buffer)


if __name__ == "__main__":
    CACHE.mkdir(parents=True, exist_ok=True)
    main()

"""Many threads on one log: readers beside appends, rolls, retention and truncation get right bytes only.

The value of every record is made from its offset and from the truncation it was written after, so that
a reader can tell bytes that were dropped from those that took their place.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kafkaseg

CONFIG = {
    "internal.segment.bytes": 30_000,
    "index.interval.bytes": 500,
    "retention.bytes": 200_000,
    "retention.ms": -1,
    "file.delete.delay.ms": 0,
}
SECONDS = 2.0


def value(offset: int, life: int) -> bytes:
    return struct.pack(">qi", offset, life) + random.Random(offset * 31 + life).randbytes(40)


def check(record: kafkaseg.StoredRecord) -> None:
    offset, life = struct.unpack(">qi", record.value[:12])
    assert (offset, record.value) == (record.offset, value(offset, life))


class Crew:
    """Threads that work until the time is up; the first failure of one ends all."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.until = time.monotonic() + seconds
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def add(self, work: Callable[[], object], count: int = 1) -> None:
        self.threads += [threading.Thread(target=self.run, args=(work,)) for _ in range(count)]

    def run(self, work: Callable[[], object]) -> None:
        try:
            while time.monotonic() < self.until and not self.failures:
                work()
        except BaseException as failure:  # noqa: BLE001
            self.failures.append(failure)

    def go(self) -> None:
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join()
        for failure in self.failures:
            raise failure


class Writer:
    """Appends, and now and then drops the end of the log."""

    def __init__(self, log: kafkaseg.Log, truncates: bool) -> None:
        self.log, self.truncates, self.life = log, truncates, 0

    def __call__(self) -> None:
        end = self.log.end_offset
        self.log.append([kafkaseg.Record(None, value(end + n, self.life)) for n in range(5)])
        chance = random.random()
        if self.truncates and chance < 0.02:
            self.life += 1
            self.log.truncate_to(max(self.log.start_offset, end - random.randrange(600)))
        elif chance < 0.04:
            self.log.roll()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[kafkaseg.Log]:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", CONFIG) as log:
        yield log


def anywhere(log: kafkaseg.Log) -> int:
    """An offset that is, or was a moment ago, in the log."""
    return random.randint(log.start_offset, max(log.start_offset, log.end_offset))


@pytest.mark.parametrize("truncates", [False, True], ids=["", "truncation"])
def test_a_storm_of_readers_sees_right_records_only(log: kafkaseg.Log, truncates: bool) -> None:
    read = 0

    def reader() -> None:
        nonlocal read
        offset = anywhere(log)
        with contextlib.suppress(kafkaseg.OffsetOutOfRangeError):
            fetched = log.read(offset, random.choice([1, 1000, 20_000]))
            last = offset - 1
            for record in fetched.records():
                check(record)
                assert record.offset > last
                last = record.offset
                read += 1

    def searcher() -> None:
        log.offset_for_time(random.choice([-1, -2, -3, 0, int(time.time() * 1000) - 500]))
        log.segments()
        log.stats()

    crew = Crew()
    crew.add(Writer(log, truncates))
    crew.add(reader, 6)
    crew.add(searcher)
    crew.add(lambda: (log.apply_retention(), time.sleep(0.005)))
    crew.add(lambda: (log.flush(), time.sleep(0.02)))
    crew.go()
    assert read > 1000
    assert len(log.segments()) > 1


def receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            return bytes(data)
        data += part
    return bytes(data)


def test_what_is_sent_beside_truncation_is_right_or_cut_short(log: kafkaseg.Log) -> None:
    transfers = broken = 0

    def transfer() -> None:
        nonlocal transfers, broken
        ours, theirs = connection()
        with ours, theirs:
            offset = anywhere(log)
            try:
                slice_ = log.slice(offset, 60_000)
            except kafkaseg.OffsetOutOfRangeError:
                return
            received: list[bytes] = []
            receiver = threading.Thread(target=lambda: received.append(receive(theirs, slice_.bytes)))
            receiver.start()
            try:
                slice_.send(ours)
            except kafkaseg.LogChangedError:
                broken += 1
            ours.close()
            receiver.join()
            transfers += 1
            position = 0
            while position < len(received[0]):
                try:
                    batch = kafkaseg.decode_batch(received[0], position)
                except kafkaseg.CorruptLogError as error:
                    assert error.kind == "truncated_entry"  # noqa: PT017
                    break
                for record in batch.records:
                    check(record)
                position += batch.bytes

    server = socket.create_server(("127.0.0.1", 0))

    def connection() -> tuple[socket.socket, socket.socket]:
        with lock:
            ours = socket.create_connection(server.getsockname())
            return ours, server.accept()[0]

    lock = threading.Lock()
    crew = Crew()
    with server:
        crew.add(Writer(log, truncates=True))
        crew.add(transfer, 4)
        crew.add(lambda: (log.apply_retention(), time.sleep(0.01)))
        crew.go()
    assert transfers > 50
    print(f"{transfers} transfers, {broken} of them cut short by a truncation")


def test_appending_threads_share_the_log(log: kafkaseg.Log) -> None:
    counts = dict.fromkeys(range(4), 0)

    def appender(number: int) -> Callable[[], None]:
        def append() -> None:
            text = f"{number} {counts[number]}".encode()
            log.append([kafkaseg.Record(None, text)])
            counts[number] += 1

        return append

    crew = Crew(0.5)
    for number in counts:
        crew.add(appender(number))
    crew.go()
    assert log.end_offset == sum(counts.values()) > 100
    seen: dict[int, int] = {}
    offset = log.start_offset
    while records := list(log.read(offset).records()):
        for record in records:
            number, count = map(int, record.value.split())
            assert count == seen.get(number, -1) + 1, "each thread's records are in its order"
            seen[number] = count
        offset = records[-1].offset + 1
    assert seen == {number: count - 1 for number, count in counts.items()}


def test_closing_beside_appends_is_clean(tmp_path: Path) -> None:
    for round_ in range(10):
        path = tmp_path / "data" / f"t-{round_}"
        log = kafkaseg.Log.open(path)
        acknowledged: list[int] = []

        def append(log: kafkaseg.Log = log, acknowledged: list[int] = acknowledged) -> None:
            acknowledged.append(log.append([kafkaseg.Record(None, b"x")]).last_offset)

        crew = Crew(5)
        crew.add(append)
        closer = threading.Timer(0.01, log.close)
        closer.start()
        with pytest.raises(kafkaseg.InvalidArgumentError, match="closed"):
            crew.go()
        closer.join()
        with kafkaseg.Log.open(path) as log:
            assert log.recovery.clean
            assert list(range(log.end_offset)) == acknowledged

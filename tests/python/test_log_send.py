"""Sending to sockets: blocking, with a timeout, non-blocking, and beside truncation."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import fill, records

MEGABYTES = 8


@pytest.fixture
def log(tmp_path: Path) -> Iterator[kafkaseg.Log]:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", retention_ms=-1) as log:
        yield log


@pytest.fixture
def large(log: kafkaseg.Log) -> kafkaseg.Log:
    for _ in range(MEGABYTES * 2):
        log.append([kafkaseg.Record(None, os.urandom(500_000))])
    return log


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection on this machine."""
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        with theirs:
            theirs.settimeout(20)
            yield ours, theirs


class Receiver(threading.Thread):
    """Takes everything until the other end is closed."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.sock = sock
        self.data = bytearray()
        self.start()

    def run(self) -> None:
        while part := self.sock.recv(1 << 16):
            self.data += part


def test_a_blocking_socket_gets_everything(large: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    receiver = Receiver(theirs)
    sent = large.send(ours, 0, 1 << 30)
    assert (sent.complete, sent.method, sent.bytes) == (True, "sendfile", large.stats()["bytes"])
    assert ours.getblocking()
    assert sent.resume(ours) is sent
    assert repr(sent) == f"Sent(bytes={sent.bytes}, method='sendfile', complete=True)"
    ours.shutdown(socket.SHUT_WR)
    receiver.join()
    assert bytes(receiver.data) == large.read(0, 1 << 30).data


def test_a_non_blocking_socket_gets_what_it_takes_and_the_rest_later(
    large: kafkaseg.Log, pair: tuple[socket.socket, ...]
) -> None:
    ours, theirs = pair
    ours.setblocking(False)  # noqa: FBT003
    sent = large.send(ours, 0, 1 << 30)
    assert 0 < sent.bytes < large.stats()["bytes"]
    assert not sent.complete
    assert sent.resume(ours).bytes == sent.bytes, "nobody has read anything"
    receiver = Receiver(theirs)
    parts = 1
    while not sent.complete:
        time.sleep(0.001)
        sent = sent.resume(ours)
        parts += 1
    assert parts > 1
    ours.shutdown(socket.SHUT_WR)
    receiver.join()
    assert bytes(receiver.data) == large.read(0, 1 << 30).data


def test_a_timeout_ends_the_wait(large: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    ours.settimeout(0.3)
    sent = large.send(ours, 0, 1 << 30)
    assert not sent.complete
    receiver = Receiver(theirs)
    while not sent.complete:
        sent = sent.resume(ours)
    ours.shutdown(socket.SHUT_WR)
    receiver.join()
    assert bytes(receiver.data) == large.read(0, 1 << 30).data


def test_a_part_of_a_slice_can_be_sent(log: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    fill(log, 50)
    slice_ = log.slice(10, 300)
    sent = slice_.send(ours, skip=100)
    assert (sent.bytes, sent.complete) == (slice_.bytes, True)
    assert theirs.recv(1000) == slice_.read()[100:]
    assert slice_.send(ours, skip=slice_.bytes).complete
    with pytest.raises(kafkaseg.InvalidArgumentError, match="skip"):
        slice_.send(ours, skip=-1)


def test_nothing_is_sent_from_the_end(log: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    fill(log, 5)
    sent = log.send(pair[0], 5)
    assert (sent.bytes, sent.complete) == (0, True)
    with pytest.raises(kafkaseg.OffsetOutOfRangeError):
        log.send(pair[0], 6)


def test_isolation_and_limits_hold_for_sends(log: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    log.append(records(3), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    assert log.send(ours, 0, isolation="read_committed").bytes == 0
    assert log.send(ours, 0, 10, min_one=False).bytes == 10
    assert theirs.recv(1000) == log.read(0).data[:10]


def test_a_closed_socket_is_an_error(log: kafkaseg.Log, pair: tuple[socket.socket, ...]) -> None:
    ours, theirs = pair
    fill(log, 50)
    theirs.close()
    with pytest.raises(OSError, match="send"):  # noqa: PT012
        for _ in range(100):
            log.send(ours, 0)
            time.sleep(0.01)
    ours.close()
    with pytest.raises(kafkaseg.InvalidArgumentError, match="closed"):
        log.send(ours, 0)


def test_other_kinds_of_sockets_are_served(log: kafkaseg.Log) -> None:
    fill(log, 50)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sent = log.send(ours, 0)
        assert sent.complete
        assert theirs.recv(sent.bytes, socket.MSG_WAITALL) == log.read(0).data


def test_a_truncation_ends_the_send_of_what_is_gone(
    large: kafkaseg.Log, pair: tuple[socket.socket, ...]
) -> None:
    ours, theirs = pair
    data = large.read(0, 1 << 30).data
    ours.setblocking(False)  # noqa: FBT003
    sent = large.send(ours, 0, 1 << 30)
    large.truncate_to(5)
    with pytest.raises(kafkaseg.LogChangedError):
        sent.resume(ours)
    ours.close()
    receiver = Receiver(theirs)
    receiver.join()
    assert bytes(receiver.data) == data[: sent.bytes], "what was sent was right"


def test_waiting_works_for_high_descriptors(large: kafkaseg.Log) -> None:
    """Servers have more than 1,024 connections."""
    ours, theirs = socket.socketpair()
    high = socket.socket(fileno=os.dup2(ours.fileno(), 1500, inheritable=False))
    ours.close()
    with high, theirs:
        high.settimeout(20)
        receiver = Receiver(theirs)
        assert large.send(high, 0, 1 << 30).complete
        high.shutdown(socket.SHUT_WR)
        receiver.join()
        assert len(receiver.data) == large.stats()["bytes"]

"""An embedded Kafka partition."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Literal

from kafkaseg import _native
from kafkaseg.config import pairs
from kafkaseg.errors import CorruptLogError, InvalidArgumentError
from kafkaseg.info import (
    AbortedTransaction,
    AppendInfo,
    Durability,
    OffsetAndTimestamp,
    Retained,
    SegmentInfo,
    TableInfo,
    recovery_of,
)
from kafkaseg.record import decode_batch, encode_batch, encode_marker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Protocol, Self

    from kafkaseg.config import Config, Value
    from kafkaseg.info import (
        Recovery,
    )
    from kafkaseg.record import DecodedBatch, Record, StoredRecord

    class _ArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


__all__ = ["Fetched", "Log", "Sent", "Slice"]

_Isolation = Literal["read_uncommitted", "read_committed", "log_end"]
_Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
_Origin = Literal["client", "coordinator", "raft"]

#: Searches of `Log.offset_for_time` that ask for no time.
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


class Slice:
    """A part of a segment's file: what a fetch of some bytes from an offset on would send.

    It begins with the whole batch that holds the offset and may end inside a batch. The file stays
    readable while the slice is held, also when retention deletes it; a truncation of the segment is
    noticed, and raises `LogChangedError`.
    """

    __slots__ = (
        "_native",
        "aborted",
        "base_offset",
        "bytes",
        "first_entry_incomplete",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "offset",
        "position",
        "segment",
    )

    def __init__(self, native: _native.NativeFetch, offset: int) -> None:
        facts = native.facts()
        self._native = native
        #: The offset that was asked for.
        self.offset = offset
        #: First offset of the first batch.
        self.base_offset: int = facts["base_offset"]
        #: Base offset of the segment; None when there is nothing to read.
        self.segment: int | None = facts["segment"]
        #: Where the slice begins in the segment's file.
        self.position: int = facts["position"]
        self.bytes: int = facts["bytes"]
        #: Whether the byte limit cuts the first batch.
        self.first_entry_incomplete: bool = facts["first_entry_incomplete"]
        #: For read_committed: whose records in the slice are to be skipped, and from where on.
        self.aborted: tuple[AbortedTransaction, ...] | None = (
            None
            if facts["aborted"] is None
            else tuple(AbortedTransaction(*transaction) for transaction in facts["aborted"])
        )
        self.log_start_offset: int = facts["log_start_offset"]
        self.high_watermark: int = facts["high_watermark"]
        self.last_stable_offset: int = facts["last_stable_offset"]

    def __len__(self) -> int:
        return self.bytes

    def __repr__(self) -> str:
        return f"Slice(offset={self.offset}, segment={self.segment}, position={self.position}, bytes={self.bytes})"

    def read(self) -> bytes:
        """The bytes of the slice."""
        return self._native.read()

    def send(self, sock: socket.socket, skip: int = 0) -> Sent:
        """Sends the slice without its first `skip` bytes, see `Log.send`."""
        _check_not_negative("skip", skip)
        timeout = sock.gettimeout()
        if timeout is None:
            sent, method, complete = self._native.send(sock.fileno(), skip, None)
            return Sent(self, skip + sent, method, complete)
        # Python keeps sockets with a timeout non-blocking and waits itself; so is done here.
        deadline = time.monotonic() + timeout
        done, method = skip, "sendfile"
        while True:
            sent, method, complete = self._native.send(sock.fileno(), done, None)
            done += sent
            left = deadline - time.monotonic()
            if complete or timeout == 0 or left <= 0:
                return Sent(self, done, method, complete)
            # Not select.select, which cannot wait for descriptors from 1024 on.
            waiting = select.poll()
            waiting.register(sock, select.POLLOUT)
            waiting.poll(left * 1000)


class Sent:
    """What a send did."""

    __slots__ = ("_slice", "bytes", "complete", "method")

    def __init__(self, slice_: Slice, sent: int, method: str, complete: bool) -> None:
        self._slice = slice_
        #: Bytes of the slice that are sent.
        self.bytes = sent
        #: "sendfile", or "copy" where that cannot serve.
        self.method = method
        #: Whether the whole slice is sent.
        self.complete = complete

    def __repr__(self) -> str:
        return f"Sent(bytes={self.bytes}, method={self.method!r}, complete={self.complete})"

    def resume(self, sock: socket.socket) -> Sent:
        """Goes on where the socket was full."""
        return self if self.complete else self._slice.send(sock, self.bytes)


class Fetched(Slice):
    """A slice with its bytes."""

    __slots__ = ("data",)

    def __init__(self, native: _native.NativeFetch, offset: int, data: bytes) -> None:
        super().__init__(native, offset)
        self.data = data

    def batches(self) -> Iterator[DecodedBatch]:
        """The whole batches of the slice, aborted ones included."""
        position = 0
        while position < len(self.data):
            try:
                batch = decode_batch(self.data, position)
            except CorruptLogError as error:
                # The last batch may be cut by the byte limit.
                if error.kind == "truncated_entry":
                    return
                raise
            yield batch
            position += batch.bytes

    def records(self) -> Iterator[StoredRecord]:
        """The records that a consumer would see.

        They begin at the offset, control records are left out, and so are those of aborted transactions
        when the slice was read with read_committed.
        """
        waiting = sorted(self.aborted or (), key=lambda transaction: transaction.first_offset)
        aborted: set[int] = set()
        for batch in self.batches():
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            if batch.control:
                aborted.discard(batch.producer_id)
            elif not (batch.transactional and batch.producer_id in aborted):
                yield from (record for record in batch.records if record.offset >= self.offset)


class Log:
    """One partition that this process owns: Kafka's segments, indexes, producer state and epochs.

    A log is opened by `Log.open`, or taken from a `LogDir`. Any number of threads may use it; readers
    never wait for the writer. Close it: what a log does not close is recovered when it is opened next.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.NativeLog) -> None:
        self._native = native

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        config: Config = None,
        *,
        create: bool = True,
        recovery: Literal["safe", "kafka"] = "safe",
        replicated: bool = False,
        progress: Callable[[int, int, int], object] | None = None,
        clock: _native.ManualClock | None = None,
        **options: Value,
    ) -> Self:
        """Opens a partition directory, which is named `<topic>-<partition>`.

        The lock and the checkpoint files are those of the directory above, as Kafka has them: a running
        broker's partition cannot be opened.

        Args:
            path: the partition directory.
            config: Kafka's topic configuration, as a mapping or the path of a `.properties` file.
            create: whether a missing directory is made.
            recovery: what to do about damage that good batches follow. "safe" opens the log for reading
                up to it; "kafka" cuts there, as a broker does.
            replicated: whether the caller moves the high watermark. If not, it follows the end.
            progress: called with (logs loaded, logs, bytes checked) while the log is recovered.
            clock: a clock for tests.
            options: more configuration, with underscores for dots: `segment_bytes=1 << 20`.
        """
        native = _native.NativeLog.open(
            os.fspath(path),
            pairs(config, options),
            create=create,
            kafka_recovery=_is_kafka(recovery),
            replicated=replicated,
            clock=clock,
            progress=progress,
        )
        return cls(native)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.closed:
            self.close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<Log {self.path} closed>"
        return f"<Log {self.path} offsets {self.start_offset} to {self.end_offset}>"

    @property
    def path(self) -> str:
        """The partition directory."""
        return os.fspath(self._native.path)

    @property
    def topic(self) -> str:
        """The topic."""
        return self._native.topic

    @property
    def partition(self) -> int:
        """The number of the partition."""
        return self._native.partition

    @property
    def closed(self) -> bool:
        """Whether the log was closed."""
        return self._native.is_closed

    @property
    def config(self) -> dict[str, str]:
        """The configuration in force, every name with its value."""
        return self._native.config()

    @property
    def durability(self) -> Durability:
        """What an acknowledged append survives."""
        fsync = self._native.config()["fsync"]
        return Durability(fsync, survives_process_death=True, survives_power_loss=fsync == "always")

    @property
    def recovery(self) -> Recovery | None:
        """What opening the log found and did; of a log of a `LogDir`, ask that."""
        facts = self._native.recovery()
        return None if facts is None else recovery_of(facts)

    @property
    def damage(self) -> tuple[str, int, str] | None:
        """File, position and kind of the damage that ends a log which can only be read."""
        damage = self._native.damage()
        return None if damage is None else (os.fspath(damage[0]), damage[1], damage[2])

    @property
    def start_offset(self) -> int:
        """The first offset that can be read."""
        return self._native.bounds()[1]

    @property
    def last_stable_offset(self) -> int:
        """Where readers of committed records stop."""
        return self._native.bounds()[2]

    @property
    def high_watermark(self) -> int:
        """Where readers stop."""
        return self._native.bounds()[3]

    @high_watermark.setter
    def high_watermark(self, offset: int) -> None:
        self._native.set_high_watermark(offset)

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._native.bounds()[4]

    @property
    def recovery_point(self) -> int:
        """Offsets below are on the device."""
        return self._native.recovery_point

    def append(
        self,
        records: Iterable[Record],
        *,
        compression: _Compression = "none",
        level: int | None = None,
        leader_epoch: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> AppendInfo:
        """Appends records as one batch: all of them, or none.

        Args:
            records: the records, in order.
            compression: the codec, where the topic's `compression.type` is "producer".
            level: the level of the codec.
            leader_epoch: epoch of the leader that appends; the latest one of the log if not given.
            producer_id: with `producer_epoch` and `base_sequence`, who sends, so that a batch that is sent
                again is recognised.
            producer_epoch: epoch of the producer.
            base_sequence: sequence number of the first record.
            transactional: whether the records are part of the producer's transaction.
        """
        batch = encode_batch(
            records,
            compression=compression,
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
        )
        return self.append_batch(batch, leader_epoch=leader_epoch)

    def append_batch(
        self, data: bytes, *, leader_epoch: int | None = None, origin: _Origin = "client"
    ) -> AppendInfo:
        """Appends a batch that a client built, after Kafka's checks; it gets offsets and epoch here."""
        info = AppendInfo(**self._native.append_batch(data, origin, leader_epoch))
        if info.bytes == 0 and not info.duplicate:
            message = f"there is no whole batch in {len(data)} bytes"
            raise InvalidArgumentError(message)
        return info

    def append_follower(self, data: bytes, *, leader_epoch: int | None = None) -> AppendInfo:
        """Appends batches of a leader as they are: they keep their offsets, which must not go back.

        Batches of later epochs than `leader_epoch` are left out, where one is given.
        """
        return AppendInfo(**self._native.append_batch(data, "replication", leader_epoch))

    def append_arrow(
        self,
        data: _ArrowStream,
        *,
        batch_bytes: int = 16384,
        compression: _Compression = "none",
        level: int | None = None,
        leader_epoch: int | None = None,
    ) -> TableInfo:
        """Appends the rows of a table: columns key, value, timestamp and headers, all optional.

        Takes everything that speaks the Arrow C stream interface (pyarrow, Polars, DuckDB, pandas with
        pyarrow). Rows go into batches of about `batch_bytes` before compression; a record without a
        timestamp gets the time of the append.
        """
        _check_positive("batch_bytes", batch_bytes)
        records, batches, size, offsets = self._native.append_stream(
            data,
            now_ms=None,
            batch_bytes=batch_bytes,
            compression=compression,
            level=level,
            leader_epoch=leader_epoch,
        )
        first, last = offsets if offsets is not None else (None, None)
        return TableInfo(records, batches, size, first, last)

    def end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        leader_epoch: int | None = None,
        timestamp: int | None = None,
    ) -> AppendInfo:
        """Appends the marker that commits or aborts the transaction of a producer."""
        marker = encode_marker(
            commit,
            producer_id,
            producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=timestamp,
        )
        return self.append_batch(marker, leader_epoch=leader_epoch, origin="coordinator")

    def slice(
        self,
        offset: int,
        max_bytes: int = 1 << 20,
        *,
        isolation: _Isolation = "read_uncommitted",
        min_one: bool = True,
    ) -> Slice:
        """Finds the records from an offset on, without reading them.

        Args:
            offset: where to begin; the end of the log gives an empty slice, beyond it is
                `OffsetOutOfRangeError`.
            max_bytes: the most bytes.
            isolation: "read_uncommitted" ends at the high watermark, "read_committed" at the last stable
                offset, "log_end" at the end.
            min_one: whether the first batch is given whole although it is larger.
        """
        _check_not_negative("max_bytes", max_bytes)
        return Slice(self._native.fetch(offset, max_bytes, isolation, min_one), offset)

    def read(
        self,
        offset: int,
        max_bytes: int = 1 << 20,
        *,
        isolation: _Isolation = "read_uncommitted",
        min_one: bool = True,
    ) -> Fetched:
        """Reads from an offset on, as `slice` finds it."""
        _check_not_negative("max_bytes", max_bytes)
        native, data = self._native.read(offset, max_bytes, isolation, min_one)
        return Fetched(native, offset, data)

    def send(
        self,
        sock: socket.socket,
        offset: int,
        max_bytes: int = 1 << 20,
        *,
        isolation: _Isolation = "read_uncommitted",
        min_one: bool = True,
    ) -> Sent:
        """Sends the bytes from an offset on to a socket, by sendfile where that can serve.

        A blocking socket gets all of it. A socket with a timeout gets what it takes in that time, a
        non-blocking one what it takes at once; `Sent.resume` goes on with the rest.
        """
        return self.slice(offset, max_bytes, isolation=isolation, min_one=min_one).send(sock)

    def offset_for_time(
        self, timestamp: int, *, isolation: _Isolation = "read_uncommitted"
    ) -> OffsetAndTimestamp | None:
        """The first record at or after a time in milliseconds, as Kafka finds it.

        -1 asks for the end, -2 for the start, -3 for the record with the largest timestamp.
        """
        found = self._native.offset_for_time(timestamp, isolation)
        return None if found is None else OffsetAndTimestamp(*found)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest epoch up to this one and the offset where it ends."""
        return self._native.end_offset_for_epoch(epoch)

    def assign_epoch(self, epoch: int) -> None:
        """Notes that a leader epoch begins at the end of the log."""
        self._native.assign_epoch(epoch)

    def truncate_to(self, offset: int) -> bool:
        """Drops everything from an offset on; whether there was anything."""
        return self._native.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int, log_start: int | None = None) -> None:
        """Drops everything; the next record gets this offset."""
        self._native.truncate_fully_and_start_at(offset, log_start)

    def delete_records(self, before: int) -> int:
        """Raises the log start to an offset, -1 for the high watermark; gives the new one."""
        return self._native.delete_records(before)

    def apply_retention(self, now_ms: int | None = None) -> Retained:
        """Takes out the segments that `retention.ms` and `retention.bytes` do not keep."""
        return Retained(*self._native.apply_retention(now_ms))

    def purge(self, now_ms: int | None = None) -> int:
        """Removes deleted files that have waited for `file.delete.delay.ms`; how many still wait."""
        return self._native.purge(now_ms)

    def expire_producers(self, now_ms: int | None = None) -> None:
        """Forgets producers that were silent for `producer.id.expiration.ms`."""
        self._native.expire_producers(now_ms)

    def roll(self) -> int:
        """Begins a new segment; gives its base offset."""
        return self._native.roll()

    def flush(self) -> None:
        """Makes everything that was appended durable."""
        self._native.flush()

    def segments(self) -> list[SegmentInfo]:
        """The segments, oldest first."""
        return [SegmentInfo(**facts) for facts in self._native.segments()]

    def stats(self) -> dict[str, int]:
        """Figures: segments, bytes, appends, flushes, index entries, maps and descriptors held."""
        return self._native.stats()

    def close(self) -> None:
        """Closes the log cleanly: the next opening recovers nothing."""
        self._native.close()


def _is_kafka(recovery: str) -> bool:
    if recovery not in ("safe", "kafka"):
        message = f'recovery is "safe" or "kafka", not {recovery!r}'
        raise InvalidArgumentError(message)
    return recovery == "kafka"


def _check_not_negative(name: str, value: int) -> None:
    if value < 0:
        message = f"{name} must not be negative, not {value}"
        raise InvalidArgumentError(message)


def _check_positive(name: str, value: int) -> None:
    if value <= 0:
        message = f"{name} must be positive, not {value}"
        raise InvalidArgumentError(message)

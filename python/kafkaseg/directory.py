"""A whole `log.dirs` entry."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from kafkaseg import _native
from kafkaseg.config import pairs
from kafkaseg.info import DirectoryRecovery, MetaProperties, Upkeep, recovery_of
from kafkaseg.log import Log, _is_kafka

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from kafkaseg.config import Config, Value

__all__ = ["LogDir"]


class LogDir:
    """A log directory that this process owns: one lock, many partitions, Kafka's checkpoint files.

    Nothing runs in the background until `start` is called.
    """

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: _native.NativeDir) -> None:
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
        cluster_id: str | None = None,
        node_id: int = 0,
        directory_id: str | None = None,
        progress: Callable[[int, int, int], object] | None = None,
        clock: _native.ManualClock | None = None,
        **options: Value,
    ) -> Self:
        """Opens a log directory and loads its partitions, recovering those that need it.

        A partition that cannot be opened does not keep the others from it: see `offline`.

        Args:
            path: the directory.
            config: Kafka's broker configuration, as a mapping or the path of a `.properties` file.
                Topic names (`segment.bytes`) set the defaults of topics.
            create: whether a missing directory is made.
            recovery: what to do about damage that good batches follow, see `Log.open`.
            replicated: whether the caller moves the high watermarks.
            cluster_id: with `node_id` and `directory_id`, who a new directory belongs to; written to
                `meta.properties`.
            node_id: the node.
            directory_id: the directory; a new one if not given.
            progress: called with (partitions loaded, partitions, bytes checked).
            clock: a clock for tests.
            options: more configuration, with underscores for dots.
        """
        meta = None if cluster_id is None else (cluster_id, node_id, directory_id)
        native = _native.NativeDir.open(
            os.fspath(path),
            pairs(config, options),
            create=create,
            kafka_recovery=_is_kafka(recovery),
            replicated=replicated,
            meta=meta,
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
        state = "closed" if self.closed else f"{len(self.partitions())} partitions"
        return f"<LogDir {self.path} {state}>"

    @property
    def path(self) -> str:
        """The directory."""
        return os.fspath(self._native.path)

    @property
    def closed(self) -> bool:
        """Whether the directory was closed."""
        return self._native.is_closed

    @property
    def config(self) -> dict[str, str]:
        """The configuration in force, every name with its value."""
        return self._native.config()

    @property
    def meta(self) -> MetaProperties | None:
        """Who the directory belongs to."""
        meta = self._native.meta()
        return None if meta is None else MetaProperties(*meta)

    @property
    def recovery(self) -> DirectoryRecovery:
        """What opening the directory found and did."""
        facts = self._native.recovery()
        return DirectoryRecovery(
            clean=facts["clean"],
            logs={key: recovery_of(log) for key, log in facts["logs"]},
            unreadable=tuple((os.fspath(path), why) for path, why in facts["unreadable"]),
            ignored=tuple(facts["ignored"]),
        )

    def topics(self) -> dict[str, int]:
        """The topics with their number of partitions."""
        return self._native.topics()

    def partitions(self) -> list[tuple[str, int]]:
        """The open partitions."""
        return self._native.partitions()

    def offline(self) -> dict[tuple[str, int], str]:
        """Partitions that could not be opened, with the reason."""
        return dict(self._native.offline())

    def partition(self, topic: str, partition: int) -> Log:
        """An open partition. It is closed with the directory."""
        return Log(self._native.partition(topic, partition))

    def topic_id(self, topic: str) -> str | None:
        """The identifier of a topic."""
        return self._native.topic_id(topic)

    def topic_config(self, topic: str) -> dict[str, str]:
        """The configuration of a topic, every name with its value."""
        return self._native.topic_config(topic)

    def create_topic(
        self,
        topic: str,
        partitions: int | None = None,
        config: Config = None,
        *,
        topic_id: str | None = None,
        **options: Value,
    ) -> str:
        """Makes a topic, with `num.partitions` partitions if no number is given; gives its id."""
        count = int(self.config["num.partitions"]) if partitions is None else partitions
        return self._native.create_topic(topic, count, pairs(config, options), topic_id)

    def grow_topic(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions. It never gets fewer."""
        self._native.grow_topic(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        """Takes a topic out of service; its files go after `file.delete.delay.ms`."""
        self._native.delete_topic(topic)

    def start(self) -> None:
        """Starts flushes, retention, checkpoints and removals in the background."""
        self._native.start()

    def stop(self) -> None:
        """Ends what `start` began."""
        self._native.stop()

    @property
    def started(self) -> bool:
        """Whether upkeep runs in the background."""
        return self._native.is_started

    def upkeep(self, now_ms: int | None = None) -> Upkeep:
        """One round of retention, removals and checkpoints now."""
        deleted, removed, failed = self._native.upkeep(now_ms)
        return Upkeep(deleted, removed, dict(failed))

    def flush(self) -> None:
        """Makes every log durable and writes the checkpoint files."""
        self._native.flush()

    def checkpoint(self) -> None:
        """Writes the checkpoint files."""
        self._native.checkpoint()

    def stats(self) -> dict[str, int]:
        """Figures over all partitions: segments, bytes, maps and descriptors held, and so on."""
        return self._native.stats()

    def close(self) -> None:
        """Closes every log and writes the marker that spares the next opening a recovery."""
        self._native.close()

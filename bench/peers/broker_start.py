"""How long a real broker takes to load logs: the line "Loaded n logs in m ms" of its start.

    .venv/bin/python -m bench.peers.broker_start [--rounds 3] [--only segment|partitions]

Its whole start waits for elections and sessions; that line is the log manager's own figure. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.data import CACHE
from bench.host import facts
from bench.peers.java import Appends, JavaAppender
from bench.timing import UnavailableError
from tests.compat.broker import Broker, KafkaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

RELEASE = "4.3.0"
LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms")
CHECKPOINTS = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint")
CLEAN_MARKER = ".kafka_cleanshutdown"
# As brokers run: the optimising compiler too, which the short tests do without.
JVM_OPTIONS = ("-Xms1g", "-Xmx1g")
TOPIC = "loaded"
SEGMENT_BYTES = 1 << 30
BATCH_BYTES = 1 << 20
PARTITIONS = 1_000
SEGMENTS = 5


def loaded(broker: Broker, make_unclean: Callable[[], None] | None = None) -> dict[str, Any]:
    """Starts the broker on its folders, stops it cleanly, and says how many logs it loaded how fast."""
    if make_unclean is not None:
        make_unclean()
    before = broker.log_file.stat().st_size
    broker.start()
    lines = [line for line in broker.log_lines(before) if LOADED.search(line)]
    broker.stop()
    # The metadata log is loaded elsewhere; the largest count is that of the data folder.
    counts = [tuple(map(int, LOADED.search(line).groups())) for line in lines]
    logs, milliseconds = max(counts)
    return {"logs": logs, "ms": milliseconds}


def forget_clean_stop(broker: Broker) -> None:
    """As after a kill of a broker that never wrote a checkpoint: everything is recovered.

    The broker itself stopped cleanly, so that its next start waits for no session to end.
    """
    for name in (CLEAN_MARKER, *CHECKPOINTS):
        (broker.data_dir / name).unlink(missing_ok=True)


def segment_figures(broker: Broker, rounds: int) -> dict[str, Any]:
    """Unclean start on one segment of a GiB in batches of a MiB, its pages in the cache."""
    broker.start()
    broker.create_topic(TOPIC)
    broker.stop()
    partition = broker.data_dir / f"{TOPIC}-0"
    source = large_segment()
    for path in source.iterdir():
        if path.suffix != ".snapshot" and path.name != "partition.metadata":
            shutil.copyfile(path, partition / path.name)
    size = (partition / f"{0:020}.log").stat().st_size
    runs = [loaded(broker, lambda: forget_clean_stop(broker))["ms"] for _ in range(rounds)]
    return {"bytes": size, **spread(runs)}


def large_segment() -> Path:
    """Kept in the cache; short of the size at which a second segment would begin."""
    folder = CACHE / "recover-0"
    if not (folder / f"{0:020}.log").exists():
        with JavaAppender() as java:
            java.round(
                folder, Appends("records", 1_000, BATCH_BYTES, SEGMENT_BYTES - 2 * BATCH_BYTES), keep=True
            )
    return folder


def partition_figures(broker: Broker, rounds: int) -> dict[str, Any]:
    """Clean and unclean starts on many partitions of a few small segments."""
    broker.start()
    broker.create_topic(TOPIC, PARTITIONS)
    broker.stop()
    template = small_segments()
    for number in range(PARTITIONS):
        partition = broker.data_dir / f"{TOPIC}-{number}"
        for path in partition.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        for path in template.iterdir():
            shutil.copyfile(path, partition / path.name)
    # The first start makes the indexes and snapshots that the later ones find.
    loaded(broker, lambda: forget_clean_stop(broker))
    clean, unclean = [], []
    for _ in range(rounds):
        clean.append(loaded(broker)["ms"])
        unclean.append(loaded(broker, lambda: forget_clean_stop(broker))["ms"])
    return {
        "partitions": PARTITIONS,
        "segments": SEGMENTS,
        "clean": spread(clean),
        "unclean": spread(unclean),
    }


def small_segments() -> Path:
    """Logs alone, ten records each."""
    import kafkaseg

    folder = CACHE / "small-segments"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(SEGMENTS):
        records = [
            kafkaseg.Record(b"key", b"v" * 100, timestamp=1_750_000_000_000 + row) for row in range(10)
        ]
        batch = kafkaseg.encode_batch(records, base_offset=number * 10, leader_epoch=0)
        (folder / f"{number * 10:020}.log").write_bytes(batch)
    return folder


def spread(milliseconds: list[int]) -> dict[str, Any]:
    return {"ms_median": statistics.median(milliseconds), "ms_best": min(milliseconds), "ms": milliseconds}


FIGURES = {"segment": segment_figures, "partitions": partition_figures}


def figures(name: str, rounds: int) -> dict[str, Any]:
    """One of FIGURES, with a broker of its own."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        try:
            broker = Broker(RELEASE, Path(folder))
        except KafkaUnavailableError as reason:
            raise UnavailableError(str(reason)) from reason
        broker.jvm_options = JVM_OPTIONS
        try:
            return FIGURES[name](broker, rounds)
        finally:
            broker.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=sorted(FIGURES))
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    chosen = [options.only] if options.only else sorted(FIGURES)
    print(json.dumps({"host": facts(), **{name: figures(name, options.rounds) for name in chosen}}, indent=1))


if __name__ == "__main__":
    main()

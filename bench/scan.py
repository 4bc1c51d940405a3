"""The scan against its peers and its limits, in one run on one machine.

    make bench                                     # everything; about eight minutes
    .venv/bin/python bench/scan.py --quick         # 128 MiB a dataset; about a minute and a half
    .venv/bin/python bench/scan.py --values 100 --codecs none,lz4 --rounds 9 --peers java

All on one thread, all files in the page cache, as reading them put them there or (--cache written) as appending
batch by batch did; see cache.py. The rounds of the contestants alternate, so that what disturbs
the machine disturbs all of them. Prints a table of ratios with their goals, and writes every round to
bench/results/scan.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kafkaseg
from bench import cache, host
from bench.data import CACHE, CODECS, ROOT, dataset
from bench.limits import Limits
from bench.peers import parquet
from bench.ratios import Ratio, print_ratios
from bench.timing import Timing, UnavailableError, clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.data import Dataset

RESULTS = ROOT / "bench" / "results" / "scan.json"
PEERS = ("java", "confluent", "parquet")

# Goals: how many times faster than the peer; None where a ratio is only reported.
JAVA_GOALS = {"none": 2.5, "lz4": 1.8, "snappy": 1.8, "zstd": 1.5, "gzip": 2.0}
CODEC_GOALS = {"zstd": 0.8, "gzip": 0.8, "snappy": 0.7, "lz4": 0.6}
CONFLUENT_GOAL = 25.0
PARQUET_ZSTD_GOAL = 1.0
# A reader of cached files waits for nothing: wall time this far above processor time was taken by others.
BUSY = 1.15


def main() -> None:
    options = parse_options()
    missing: dict[str, str] = {}
    measured: list[dict[str, object]] = []
    ratios: list[Ratio] = []
    facts = host.facts()
    print(f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, {facts['kernel']}")
    datasets = prepare(options)
    with contextlib.ExitStack() as stack:
        served = serve(options, datasets, stack, missing)
        for each in datasets:
            found, against = measure(each, options, served, missing)
            measured.append(found)
            ratios.extend(against)
    print_ratios(ratios, missing)
    write_json(options, facts, measured, ratios, missing)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--bytes", type=size, default=size("1GiB"), help="records of a dataset, before compression"
    )
    parser.add_argument("--values", type=numbers, default=[100, 1000], help="bytes of a value, e.g. 100,1000")
    parser.add_argument("--codecs", type=names(CODECS), default=["none", "lz4", "snappy", "zstd", "gzip"])
    parser.add_argument("--peers", type=names(PEERS), default=list(PEERS), help="none of them: --peers ''")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--cache", choices=cache.STATES, default="read", help="how files came into the page cache"
    )
    parser.add_argument("--quick", action="store_true", help="128 MiB a dataset")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    options = parser.parse_args()
    if options.quick:
        options.bytes = size("128MiB")
    return options


def size(text: str) -> int:
    units = {"KiB": 10, "MiB": 20, "GiB": 30}
    for unit, shift in units.items():
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * (1 << shift))
    return int(text)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def names(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = [part for part in text.split(",") if part]
        unknown = set(chosen) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")
        return chosen

    return parse


def prepare(options: argparse.Namespace) -> list[Dataset]:
    """All datasets, made before anything is measured."""
    CACHE.mkdir(parents=True, exist_ok=True)
    made = []
    for value_bytes in options.values:
        for codec in options.codecs:
            each = dataset(codec, value_bytes, options.bytes)
            print(
                f"{label(each):12} {each.records:>10,} records, {each.log_bytes >> 20:>5} MiB, {each.ratio:.2f}:1"
            )
            made.append(each)
    return made


def label(each: Dataset) -> str:
    return f"{each.codec} {each.value_bytes} B"


def serve(
    options: argparse.Namespace,
    datasets: list[Dataset],
    stack: contextlib.ExitStack,
    missing: dict[str, str],
) -> object | None:
    """A broker with the start of every dataset, if one can run here."""
    if "confluent" not in options.peers:
        return None
    try:
        from bench.peers.confluent import ServedDatasets

        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=CACHE))
        return stack.enter_context(ServedDatasets(datasets, Path(folder)))
    except (ImportError, UnavailableError) as reason:
        missing["confluent-kafka"] = str(reason)
        return None


def scan_once(each: Dataset) -> None:
    """Every Arrow batch of the default columns, none kept."""
    rows = 0
    for batch in kafkaseg.scan(each.directory):
        rows += batch.num_rows
    assert rows == each.records, f"{rows} rows, not {each.records}"


def measure(
    each: Dataset, options: argparse.Namespace, served: object | None, missing: dict[str, str]
) -> tuple[dict[str, object], list[Ratio]]:
    """Alternating rounds of all contestants on one dataset."""
    cache.settle(each.segments, options.cache)
    check_content(each)
    timings: dict[str, Timing] = {}
    contestants: dict[str, Callable[[], tuple[float, float | None]]] = {
        "kafkaseg": lambda: clock(lambda: scan_once(each))
    }
    with contextlib.ExitStack() as stack:
        if "java" in options.peers:
            add_java(each, contestants, stack, missing)
        if "parquet" in options.peers:
            plain = dataset("none", each.value_bytes, options.bytes)
            for compression in ("zstd", "none"):
                path = parquet.parquet_file(plain, compression)
                cache.settle([path], options.cache)
                contestants[f"parquet-{compression}"] = lambda path=path: clock(lambda: parquet.read(path))
        limits = Limits(each)
        for kind in limits.kinds:
            contestants[f"limit-{kind}"] = lambda kind=kind: limits.round(kind)
        for run in contestants.values():
            run()
        for _ in range(options.rounds):
            for name, run in contestants.items():
                timings.setdefault(name, Timing()).add(*run())
    if served is not None:
        for number in range(1 + options.rounds // 2):
            seconds, records = served.round(each)
            if number:
                # As if the whole dataset were consumed at this rate.
                timings.setdefault("confluent", Timing()).add(seconds * each.records / records)
    print_dataset(each, timings)
    return dataset_json(each, timings), compare(each, timings)


def check_content(each: Dataset) -> None:
    """One reading that looks at the content, so that no later one is fast by being wrong."""
    import pyarrow.compute as pc

    keys = values = 0
    for batch in kafkaseg.scan(each.directory, columns=["key", "value"]):
        keys += pc.sum(pc.binary_length(batch["key"])).as_py()
        values += pc.sum(pc.binary_length(batch["value"])).as_py()
    assert (keys, values) == (each.key_bytes, each.all_value_bytes)


def add_java(
    each: Dataset, contestants: dict[str, object], stack: contextlib.ExitStack, missing: dict[str, str]
) -> None:
    try:
        from bench.peers.java import JavaReader

        java = stack.enter_context(JavaReader())
    except (ImportError, UnavailableError) as reason:
        missing["java"] = str(reason)
        return
    java.warm_up(each)
    contestants["java"] = lambda: java.round(each)


def compare(each: Dataset, timings: dict[str, Timing]) -> list[Ratio]:
    ours = timings["kafkaseg"]
    ratios = []

    def against(name: str, title: str, goal: float | None) -> None:
        if name in timings:
            theirs = timings[name]
            ratio, best = theirs.median / ours.median, theirs.best / ours.best
            cpu = theirs.cpu_median / ours.cpu_median if theirs.cpu else None
            ratios.append(Ratio(label(each), title, ratio, best, cpu, goal))

    # The goals for lz4 and snappy were set at 100 bytes a value.
    small_only = each.codec in {"lz4", "snappy"} and each.value_bytes != 100
    against("java", "Java FileRecords", None if small_only else JAVA_GOALS[each.codec])
    against("limit-inflate", f"raw {each.codec}", CODEC_GOALS.get(each.codec))
    at_goal = each.codec == "none" and each.value_bytes == 100
    against("confluent", "confluent-kafka, tuned", CONFLUENT_GOAL if at_goal else None)
    against("parquet-zstd", "pyarrow, Parquet zstd", PARQUET_ZSTD_GOAL)
    against("parquet-none", "pyarrow, Parquet plain", None)
    return ratios


def print_dataset(each: Dataset, timings: dict[str, Timing]) -> None:
    print(f"\n{label(each)}: {each.records:,} records, {each.inflated_bytes / 1e9:.2f} GB inflated")
    print(f"  {'':16} {'median s':>9} {'best s':>8} {'cpu s':>8} {'Mrow/s':>8} {'GB/s':>7}")
    for name, timing in timings.items():
        rate = each.records / timing.median / 1e6
        moved = (
            each.log_bytes if name in {"limit-pread", "limit-crc32c", "limit-memcpy"} else each.inflated_bytes
        )
        speed = moved / timing.median / 1e9
        cpu = "" if timing.cpu_median is None else f"{timing.cpu_median:.3f}"
        print(f"  {name:16} {timing.median:9.3f} {timing.best:8.3f} {cpu:>8} {rate:8.2f} {speed:7.2f}")
    ours = timings["kafkaseg"]
    if ours.median > BUSY * ours.cpu_median:
        print("  the machine was busy with other work: wall times and their ratios are not to be trusted")


def dataset_json(each: Dataset, timings: dict[str, Timing]) -> dict[str, object]:
    return {
        "codec": each.codec,
        "value_bytes": each.value_bytes,
        "records": each.records,
        "batches": each.batches,
        "log_bytes": each.log_bytes,
        "inflated_bytes": each.inflated_bytes,
        "seconds": {name: timing.summary() for name, timing in timings.items()},
    }


def write_json(
    options: argparse.Namespace,
    facts: dict[str, object],
    measured: list[dict[str, object]],
    ratios: list[Ratio],
    missing: dict[str, str],
) -> None:
    options.json.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "host": facts,
        "rounds": options.rounds,
        "cache": options.cache,
        "datasets": measured,
        "ratios": [each.json() for each in ratios],
        "not_measured": missing,
    }
    options.json.write_text(json.dumps(report, indent=1))
    print(f"figures: {options.json}")


if __name__ == "__main__":
    main()

"""Opening after a crash: torn tails, damage, lost side files, progress and interruption."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import kafkaseg
from tests.corpus import Case, cases, read_records
from tests.engine import SMALL, abandon, consume, copy_of, expected_values, files, fill, names, record, values
from tests.logs import write_large

#: The configuration that the corpus was made with.
MADE_WITH = {"internal.segment.bytes": 6000, "index.interval.bytes": 400, "segment.index.bytes": 4096}

UNCLEAN = [case for name, case in cases().items() if name.startswith("unclean-")]
#: Cases in which good batches follow the damage: opened for reading up to it.
DAMAGED = [case for case in UNCLEAN if "-corrupt-" in case.name]
#: Where a broker keeps damage (it looks neither below the recovery point nor at every magic), or drops
#: good batches in front of it with their segment. Ours ends where the damage begins.
DIFFERENT = {
    "unclean-corrupt-first-segment",
    "unclean-corrupt-last-magic",
    "unclean-corrupt-last-baseoffset",
}


def recovered_size(case: Case) -> dict[str, int]:
    folder = case.expected / "recovered" / "u-0"
    return {path.name: path.stat().st_size for path in folder.glob("*.log")}


def opened(case: Case, tmp_path: Path, **options: str) -> tuple[kafkaseg.LogDir, Path]:
    path = copy_of(case.log_dir, tmp_path / "log")
    return kafkaseg.LogDir.open(path, MADE_WITH, **options), path


def seen(log: kafkaseg.Log, isolation: str = "read_uncommitted") -> list[tuple]:
    return [(r.offset, r.key, r.value) for r in consume(log, isolation)]


def wanted(case: Case, name: str) -> list[tuple]:
    recovered = case.expected / f"recovered-{name}"
    source = recovered if recovered.with_name(recovered.name + ".gz").exists() else case.expected / name
    return [(r.offset, r.key, r.value) for r in read_records(source) if r.topic == "u"]


def undamaged(case: Case) -> list[tuple]:
    """The records before the damage was done."""
    source = cases()["unclean-2.8.2-kill9" if "2.8.2" in case.name else "unclean-kill9"]
    return wanted(source, "records.jsonl")


@pytest.mark.parametrize("unclean", [c for c in UNCLEAN if c not in DAMAGED], ids=lambda case: case.name)
def test_torn_and_killed_logs_end_where_the_broker_s_recovery_ended(unclean: Case, tmp_path: Path) -> None:
    logs, path = opened(unclean, tmp_path)
    with logs:
        assert not logs.recovery.clean
        log = logs.partition("u", 0)
        assert seen(log) == wanted(unclean, "records.jsonl")
        assert seen(log, "read_committed") == wanted(unclean, "committed.jsonl")
    assert {p.name: p.stat().st_size for p in (path / "u-0").glob("*.log")} == recovered_size(unclean)
    for name in ("index", "timeindex", "txnindex", "log"):
        ours = {p.name: p.read_bytes() for p in (path / "u-0").glob(f"*.{name}")}
        theirs = {p.name: p.read_bytes() for p in (unclean.expected / "recovered" / "u-0").glob(f"*.{name}")}
        assert ours == theirs


@pytest.mark.parametrize("unclean", DAMAGED, ids=lambda case: case.name)
def test_kafka_s_way_of_recovery_ends_where_the_broker_did(unclean: Case, tmp_path: Path) -> None:
    logs, path = opened(unclean, tmp_path, recovery="kafka")
    with logs:
        log = logs.partition("u", 0)
        assert log.damage is None
        assert seen(log) == undamaged(unclean)[: len(seen(log))] or unclean.name in DIFFERENT
        if unclean.name not in DIFFERENT:
            assert seen(log) == wanted(unclean, "records.jsonl")
            sizes = {p.name: p.stat().st_size for p in (path / "u-0").glob("*.log")}
            assert {name: size for name, size in sizes.items() if size} == {
                name: size for name, size in recovered_size(unclean).items() if size
            }
        assert log.append([record(0)]).last_offset == log.end_offset - 1


@pytest.mark.parametrize("unclean", DAMAGED, ids=lambda case: case.name)
def test_damage_in_front_of_good_batches_is_not_cut_unless_asked(unclean: Case, tmp_path: Path) -> None:
    logs, path = opened(unclean, tmp_path)
    before = {name: data for name, data in files(unclean.log_dir).items() if name.endswith(".log")}
    with logs:
        log = logs.partition("u", 0)
        broker = wanted(unclean, "records.jsonl")
        if log.damage is None:
            assert unclean.name == "unclean-corrupt-first-segment", "nobody reads it at the start"
            return
        file, position, kind = log.damage
        assert (path / "u-0" / Path(file).name).exists()
        assert position > 0
        assert kind
        ours = seen(log)
        assert ours == undamaged(unclean)[: len(ours)]
        assert len(ours) >= len(broker) or unclean.name == "unclean-corrupt-last-magic"
        for change in (
            lambda: log.append([record(0)]),
            lambda: log.truncate_to(0),
            lambda: log.delete_records(1),
            log.roll,
        ):
            with pytest.raises(kafkaseg.CorruptLogError) as caught:
                change()
            assert (caught.value.position, caught.value.kind) == (position, kind)
    after = {name: data for name, data in files(path).items() if name.endswith(".log")}
    assert after == before, "evidence is not touched"


def test_a_torn_tail_is_kept_beside_the_log(tmp_path: Path) -> None:
    path = tmp_path / "data" / "orders-0"
    log = kafkaseg.Log.open(path)
    fill(log, 10)
    abandon(log)
    segment = path / f"{0:020}.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[:40])
    with kafkaseg.Log.open(path) as log:
        (cut,) = log.recovery.cuts
        assert (cut.file, cut.position, cut.bytes) == (os.fspath(segment), len(whole), 40)
        assert cut.kind == "truncated_entry"
        assert Path(cut.kept_in).read_bytes() == whole[:40]
        assert log.recovery.bytes_truncated == 40
        assert log.end_offset == 10
        fill(log, 5)
    with kafkaseg.Log.open(path) as log:
        assert log.recovery.clean
        assert values(consume(log)) == expected_values(0, 15)


def test_a_second_opening_finds_nothing_to_do(tmp_path: Path) -> None:
    for case in UNCLEAN:
        logs, path = opened(case, tmp_path / case.name)
        abandon(logs)
        before = files(path)
        again = kafkaseg.LogDir.open(path, MADE_WITH)
        assert not any(recovery.cuts for recovery in again.recovery.logs.values()), case.name
        abandon(again)
        assert files(path) == before, case.name


def clean_directory(path: Path) -> kafkaseg.LogDir:
    logs = kafkaseg.LogDir.open(path, SMALL, clock=kafkaseg.ManualClock(1_700_000_000_000))
    logs.create_topic("t", 1)
    log = logs.partition("t", 0)
    for sequence in range(0, 150, 5):
        fill(log, 5)
        log.append(
            [record(log.end_offset + n) for n in range(5)],
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
            leader_epoch=sequence // 50,
        )
        if sequence % 50 == 45:
            log.end_transaction(
                7, 0, commit=sequence != 45, timestamp=1_700_000_000_000, leader_epoch=sequence // 50
            )
    logs.close()
    return logs


def harms(data: bytes, seed: int) -> dict[str, bytes | None]:
    noise = random.Random(seed)
    return {
        "deleted": None,
        "emptied": b"",
        "truncated": data[: len(data) * 2 // 3],
        "random": noise.randbytes(len(data)),
        "one bit": bytes([*data[:-1], data[-1] ^ 4]) if data else b"\x04",
    }


def test_side_files_may_be_lost_without_losing_a_record(tmp_path: Path) -> None:
    """Every file but the log itself is deleted, emptied, cut and filled with noise."""
    clock = kafkaseg.ManualClock(1_700_000_000_000)
    source = tmp_path / "source"
    clean_directory(source)
    with kafkaseg.LogDir.open(copy_of(source, tmp_path / "first"), SMALL, clock=clock) as logs:
        log = logs.partition("t", 0)
        truth = [seen(log, level) for level in ("read_uncommitted", "read_committed")]
        assert len(truth[0]) > len(truth[1]) > 100
    side = [name for name in files(source) if not name.endswith((".log", "meta.properties", ".lock"))]
    rounds = 0
    for name in side:
        for how, data in harms((source / name).read_bytes(), rounds).items():
            path = copy_of(source, tmp_path / f"{rounds}")
            if data is None:
                (path / name).unlink()
            else:
                (path / name).write_bytes(data)
            rounds += 1
            with kafkaseg.LogDir.open(path, SMALL, clock=clock) as logs:
                assert logs.offline() == {}, (name, how)
                log = logs.partition("t", 0)
                assert log.damage is None, (name, how)
                assert seen(log) == truth[0], (name, how)
                if not name.endswith(".txnindex"):
                    assert seen(log, "read_committed") == truth[1], (name, how)
                assert log.append([record(0)]).base_offset == truth[0][-1][0] + 2, (name, how)
    assert rounds >= 60


def test_leftovers_of_interrupted_work_are_cleared(tmp_path: Path) -> None:
    path = tmp_path / "data" / "orders-0"
    log = kafkaseg.Log.open(path, SMALL)
    fill(log, 100)
    abandon(log)
    for name in (f"{0:020}.log.deleted", f"{500:020}.log.cleaned", f"{999:020}.index"):
        (path / name).write_bytes(b"left")
    with kafkaseg.Log.open(path, SMALL) as log:
        assert sorted(Path(name).name for name in log.recovery.leftovers) == [
            f"{0:020}.log.deleted",
            f"{500:020}.log.cleaned",
            f"{999:020}.index",
        ]
        assert values(consume(log)) == expected_values(0, 100)
    assert names(path, ".deleted") == names(path, ".cleaned") == []


def test_progress_is_told_and_an_exception_in_it_stops_the_opening(tmp_path: Path) -> None:
    path = write_large(tmp_path, 0.05)
    told: list[tuple[int, int, int]] = []

    def stop(*progress: int) -> None:
        told.append(progress)
        if progress[2] > 10_000_000:
            raise LookupError("enough")

    for opening in (
        lambda f: kafkaseg.Log.open(path, progress=f),
        lambda f: kafkaseg.LogDir.open(tmp_path, progress=f),
    ):
        told.clear()
        with pytest.raises(LookupError, match="enough"):
            opening(stop)
        assert told[-1][:2] == (0, 1)
        assert 10_000_000 < told[-1][2] < 50_000_000
    size = path.joinpath(f"{0:020}.log").stat().st_size
    told.clear()
    with kafkaseg.Log.open(path, progress=lambda *progress: told.append(progress)) as log:
        assert told[-1] == (1, 1, size)
        assert [t[2] for t in told] == sorted(t[2] for t in told)
        assert log.recovery.bytes_checked == size


@pytest.mark.parametrize("opening", [kafkaseg.Log.open, lambda path: kafkaseg.LogDir.open(path.parent)])
def test_ctrl_c_ends_a_recovery_at_once(tmp_path: Path, opening: Callable[[Path], object]) -> None:
    path = write_large(tmp_path, 1.5)
    began = time.monotonic()
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        opening(path)
    assert time.monotonic() - began < 10
    (path / f"{0:020}.log").unlink()

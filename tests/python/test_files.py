"""The files beside the segments: every one of the corpus is read, and reads as an independent decoder does."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import kafkaseg
from kafkaseg import MetadataSnapshotName, PartitionName, SegmentFileName
from tests.corpus import Case, cases

BASE = "00000000000000001000"
#: Examples of the format's description.
OFFSET_INDEX = bytes.fromhex("00 00 00 09 00 00 10 36 00 00 00 13 00 00 20 6c")
TIME_INDEX = bytes.fromhex("00 00 01 8b cf e5 68 09 00 00 00 09 00 00 01 8b cf e5 68 13 00 00 00 13")
TXN_INDEX = bytes.fromhex(
    "00 00 00 00 00 00 00 00 10 92 00 00 00 00 00 00 04 67 00 00 00 00 00 00 04 69 00 00 00 00 00 00 04 6a"
)
SNAPSHOT = bytes.fromhex(
    "00 01 28 79 dd 63 00 00 00 02 00 00 00 00 00 00 10 92 00 03 00 00 00 0b 00 00 00 00 00 00 00 68"
    "00 00 00 01 00 00 01 8b cf e5 68 01 ff ff ff ff 00 00 00 00 00 00 00 67 00 00 00 00 00 00 00 4d"
    "00 00 ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 00 04 ff ff"
    "ff ff ff ff ff ff"
)
UUID = "0123456789abcdef0123456789abcdef"
OFFSET_CHECKPOINTS = {
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
}

# Files read in this run, by kind: the last test proves that none was passed over.
read: dict[str, Counter[str]] = {}


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_an_offset_index_has_absolute_offsets(tmp_path: Path) -> None:
    table = kafkaseg.index(write(tmp_path, f"{BASE}.index", OFFSET_INDEX))
    assert table.dtype == np.dtype([("offset", "i8"), ("position", "i4")])
    assert table.tolist() == [(1009, 4150), (1019, 8300)]


def test_the_zeros_of_an_active_index_are_left_out(tmp_path: Path) -> None:
    offsets = kafkaseg.index(write(tmp_path, f"{BASE}.index", OFFSET_INDEX + bytes(8 * 1000)))
    assert offsets["offset"].tolist() == [1009, 1019]
    times = kafkaseg.index(os.fspath(write(tmp_path, f"{BASE}.timeindex", TIME_INDEX + bytes(12 * 1000))))
    assert times.tolist() == [(1_700_000_000_009, 1009), (1_700_000_000_019, 1019)]
    assert kafkaseg.index(write(tmp_path, f"{BASE}.index", bytes(8 * 1000))).shape == (0,)


def test_aborted_transactions_and_producers_are_tables(tmp_path: Path) -> None:
    aborted = kafkaseg.index(write(tmp_path, f"{BASE}.txnindex", TXN_INDEX))
    assert aborted.dtype.names == ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    assert aborted.tolist() == [(4242, 1127, 1129, 1130)]
    producers = kafkaseg.index(write(tmp_path, f"{BASE}.snapshot", SNAPSHOT))
    assert producers["producer_id"].tolist() == [4242, 77]
    assert producers[0].tolist() == (4242, 3, 11, 104, 1, 1_700_000_000_001, -1, 103)
    assert producers[1].tolist() == (77, 0, -1, -1, 0, 1_700_000_000_000, 4, -1)


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        ("index", OFFSET_INDEX[8:] + OFFSET_INDEX[:8]),
        ("index", OFFSET_INDEX[:-1]),
        ("timeindex", TIME_INDEX[12:] + TIME_INDEX[:12]),
        ("txnindex", b"\0\1" + TXN_INDEX[2:]),
        ("snapshot", SNAPSHOT[:-1]),
        ("snapshot", b""),
    ],
)
def test_damage_is_named_with_its_file(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = write(tmp_path, f"{BASE}.{suffix}", data)
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.index(path)
    assert caught.value.file == os.fspath(path)
    assert caught.value.kind in {"side_file", "crc"}


def test_a_damaged_index_can_still_be_looked_at(tmp_path: Path) -> None:
    path = write(tmp_path, f"{BASE}.index", OFFSET_INDEX[8:] + OFFSET_INDEX)
    assert kafkaseg.index(path, verify=False)["offset"].tolist() == [1019, 1009, 1019]


def test_other_files_are_no_indexes(tmp_path: Path) -> None:
    for name in (f"{BASE}.log", "orders.index", "1000.index", "meta.properties"):
        with pytest.raises(kafkaseg.InvalidArgumentError, match="timeindex"):
            kafkaseg.index(write(tmp_path, name, b""))
    with pytest.raises(FileNotFoundError) as caught:
        kafkaseg.index(tmp_path / f"{BASE}.timeindex")
    assert caught.value.filename == os.fspath(tmp_path / f"{BASE}.timeindex")


def test_links_and_special_files_are_refused(tmp_path: Path) -> None:
    target = write(tmp_path, f"{BASE}.index", OFFSET_INDEX)
    link = tmp_path / "00000000000000002000.index"
    link.symlink_to(target)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="symbolic link"):
        kafkaseg.index(link)
    os.mkfifo(tmp_path / "00000000000000003000.index")
    with pytest.raises(kafkaseg.InvalidArgumentError, match="not a regular file"):
        kafkaseg.index(tmp_path / "00000000000000003000.index")
    (tmp_path / "quorum-state").mkdir()
    with pytest.raises(kafkaseg.InvalidArgumentError, match="not a regular file"):
        kafkaseg.read_checkpoint(tmp_path / "quorum-state")
    (tmp_path / "bootstrap.checkpoint").symlink_to(target)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="symbolic link"):
        kafkaseg.internal_records(tmp_path / "bootstrap.checkpoint")


def test_a_file_of_any_size_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(kafkaseg.LimitExceededError) as caught:
        kafkaseg.read_checkpoint(path)
    assert caught.value.size == 1 << 40


def test_numpy_is_asked_for_by_name(tmp_path: Path) -> None:
    """Goal: who lacks NumPy learns what to install. Method: an interpreter where it cannot be imported."""
    path = write(tmp_path, f"{BASE}.index", OFFSET_INDEX)
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "import kafkaseg\n"
        f"try: kafkaseg.index({os.fspath(path)!r})\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert "kafkaseg[numpy]" in run.stdout


def test_checkpoints_are_plain_python(tmp_path: Path) -> None:
    def checkpoint(name: str, text: str) -> object:
        return kafkaseg.read_checkpoint(write(tmp_path, name, text.encode()))

    assert checkpoint("leader-epoch-checkpoint", "0\n2\n0 0\n4 1200\n") == [(0, 0), (4, 1200)]
    for name in OFFSET_CHECKPOINTS:
        offsets = checkpoint(name, "0\n2\norders 0 1234\nto-pay.eu 1 99\n")
        assert offsets == {("orders", 0): 1234, ("to-pay.eu", 1): 99}
    assert checkpoint("partition.metadata", "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw") == {
        "version": 0,
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
    }
    assert checkpoint("meta.properties", "#\nversion=0\nbroker.id=7\n") == {
        "version": 0,
        "cluster_id": None,
        "node_id": 7,
        "directory_id": None,
    }
    assert checkpoint(".kafka_cleanshutdown", '{"version":0,"brokerEpoch":13}') == {"broker_epoch": 13}
    assert checkpoint(".kafka_cleanshutdown", "") == {"broker_epoch": None}
    quorum = '{"leaderId":1,"leaderEpoch":5,"votedId":-1,"currentVoters":[{"voterId":1}],"data_version":0}'
    assert checkpoint("quorum-state", quorum) == {
        "version": 0,
        "leader_id": 1,
        "leader_epoch": 5,
        "voted_id": -1,
        "voted_directory_id": None,
        "voters": [1],
    }


def test_an_unknown_checkpoint_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError) as caught:
        kafkaseg.read_checkpoint(write(tmp_path, "high-watermark", b"0\n0\n"))
    for name in (*OFFSET_CHECKPOINTS, "partition.metadata", "meta.properties", "quorum-state"):
        assert name in str(caught.value)
    damaged = write(tmp_path, "leader-epoch-checkpoint", b"0\n2\n0 0\n")
    with pytest.raises(kafkaseg.CorruptLogError) as caught_damage:
        kafkaseg.read_checkpoint(damaged)
    assert caught_damage.value.kind == "side_file"
    with pytest.raises(FileNotFoundError):
        kafkaseg.read_checkpoint(tmp_path / "absent" / "leader-epoch-checkpoint")


def test_names_say_what_they_name() -> None:
    for name, expected in {
        "orders-0": PartitionName("orders", 0, "live"),
        "a.b_c-d-12": PartitionName("a.b_c-d", 12, "live"),
        "x" * 249 + "-1": PartitionName("x" * 249, 1, "live"),
        f"orders-3.{UUID}-delete": PartitionName("orders", 3, "delete", UUID),
        f"orders-3.{UUID}-future": PartitionName("orders", 3, "future", UUID),
        f"orders-3.{UUID}-stray": PartitionName("orders", 3, "stray", UUID),
        f"{'x' * 213}-0.{UUID}-delete": PartitionName("x" * 213, 0, "delete", UUID, topic_may_be_cut=True),
        f"{BASE}.log": SegmentFileName(1000, "log", "live"),
        f"{BASE}.timeindex.deleted": SegmentFileName(1000, "timeindex", "deleted"),
        f"{BASE}.index.cleaned": SegmentFileName(1000, "index", "cleaned"),
        f"{BASE}.txnindex.swap": SegmentFileName(1000, "txnindex", "swap"),
        f"{BASE}.snapshot": SegmentFileName(1000, "snapshot", "live"),
        f"{BASE}-0000000007.checkpoint": MetadataSnapshotName(1000, 7, "live"),
        f"{BASE}-0000000007.checkpoint.deleted": MetadataSnapshotName(1000, 7, "deleted"),
        f"{BASE}-0000000007-12.checkpoint.part": MetadataSnapshotName(1000, 7, "partial"),
    }.items():
        assert kafkaseg.parse_name(name) == expected


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "orders", "orders-", "-0", "orders-007", "a/b-0", "1000.log", "x" * 250 + "-1", ".lock"],
)
def test_other_names_say_nothing(name: str) -> None:
    assert kafkaseg.parse_name(name) is None


def rows_of(data: bytes, layout: str, base: int | None = None) -> list[tuple[int, ...]]:
    """Fixed-size big-endian entries; zeros at the end are no entries."""
    rows = list(struct.iter_unpack(layout, data))
    while base is not None and len(rows) > 1 and not any(rows[-1]):
        rows.pop()
    return [row for row in rows if base is None or len(rows) > 1 or any(row) or "q" in layout]


def independent(path: Path, base: int, kind: str) -> list[tuple[int, ...]]:
    data = path.read_bytes()
    if kind == "index":
        return [(base + offset, position) for offset, position in rows_of(data, ">ii", base)]
    if kind == "timeindex":
        rows = rows_of(data, ">qi", base)
        only_zeros = len(data) > 12 and not any(data)
        return [] if only_zeros else [(time, base + offset) for time, offset in rows]
    if kind == "txnindex":
        return [row[1:] for row in rows_of(data, ">hqqqq")]
    return rows_of(data[10:], ">qhiqiqiq")


def read_any(path: Path) -> str:
    """Reads one file of a log directory and compares it; gives its kind."""
    name = kafkaseg.parse_name(path.name)
    if isinstance(name, SegmentFileName):
        if name.kind != "log":
            expected = independent(path, name.base_offset, name.kind)
            assert kafkaseg.index(path).tolist() == expected, path
        return name.kind
    if path.name.endswith(".checkpoint"):
        records = list(kafkaseg.internal_records(path))
        assert [record.offset for record in records] == list(range(len(records)))
        return "snapshot of the metadata log"
    if path.name == ".lock":
        return "lock"
    found = kafkaseg.read_checkpoint(path)
    lines = path.read_text().splitlines()
    if path.name in OFFSET_CHECKPOINTS:
        fields = [line.split() for line in lines[2:]]
        assert found == {(topic, int(partition)): int(offset) for topic, partition, offset in fields}
    elif path.name == "leader-epoch-checkpoint":
        assert found[-1:] == [tuple(map(int, line.split())) for line in lines[-1:] if len(lines) > 2]
        assert len(found) <= max(len(lines) - 2, 0)
    elif path.name == "partition.metadata":
        assert found["topic_id"] == lines[1].split()[1]
    elif path.name == "meta.properties":
        stored = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        assert found["cluster_id"] == stored.get("cluster.id")
        assert found["node_id"] == int(stored.get("node.id", stored.get("broker.id")))
        assert found["directory_id"] == stored.get("directory.id")
    elif path.name == ".kafka_cleanshutdown":
        stored = json.loads(path.read_text() or "{}")
        assert found["broker_epoch"] == stored.get("brokerEpoch")
    else:
        assert path.name == "quorum-state"
        assert found["leader_epoch"] == json.loads(path.read_text())["leaderEpoch"]
    return path.name


def test_every_file_of_the_corpus_is_read(case: Case) -> None:
    files = [path for path in case.log_dir.rglob("*") if path.is_file()]
    read[case.name] = Counter(read_any(path) for path in files)
    assert read[case.name].total() == len(files) == len(case.about["files"])


def test_every_directory_of_the_corpus_is_named_as_the_grammar_says(case: Case) -> None:
    folders = [path.name for path in case.log_dir.iterdir() if path.is_dir()]
    parsed = [kafkaseg.parse_name(name) for name in folders]
    assert all(isinstance(name, PartitionName) for name in parsed), folders
    assert case.topics <= {name.topic for name in parsed}


def test_nothing_was_passed_over() -> None:
    """Goal: the comparison above saw files of every kind. Method: sums over the cases that ran."""
    if len(read) < len(cases()):
        pytest.skip("only a part of this file was selected")
    total = sum(read.values(), Counter())
    assert set(total) == {
        *("log", "index", "timeindex", "txnindex", "snapshot", "snapshot of the metadata log", "lock"),
        *OFFSET_CHECKPOINTS,
        *("leader-epoch-checkpoint", "partition.metadata", "meta.properties", ".kafka_cleanshutdown"),
        "quorum-state",
    }
    if len(cases()) >= 56:
        assert total["index"] == 641
        assert total["timeindex"] == 635
        assert total["txnindex"] == 94
        assert total["snapshot"] == 600
        assert total["partition.metadata"] == 187

"""Choosing what a scan reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import kafkaseg
from tests.logs import START_MS, segment_name, write_partition


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("orders-0", "orders-1", "payments-0"):
        write_partition(tmp_path, name)
    (tmp_path / "meta.properties").write_text("version=0\n")
    return tmp_path


def offsets(scan: kafkaseg.Scan) -> list[int]:
    return scan.to_arrow()["offset"].to_pylist()


def test_everything_is_read_when_nothing_is_chosen(root: Path) -> None:
    scan = kafkaseg.scan(root)
    assert scan.partitions == [("orders", 0), ("orders", 1), ("payments", 0)]
    assert scan.count() == scan.to_arrow().num_rows == 360


def test_topics_patterns_and_partitions_choose(root: Path) -> None:
    assert kafkaseg.scan(root, topics="orders").partitions == [("orders", 0), ("orders", 1)]
    assert kafkaseg.scan(root, pattern="pay.*").partitions == [("payments", 0)]
    assert kafkaseg.scan(root, pattern="pay").partitions == []
    assert kafkaseg.scan(root, topics=["orders"], partitions=1).partitions == [("orders", 1)]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topics": ["order"]}, ["'order'", "orders", "payments"]),
        ({"partitions": [7]}, ["partition 7"]),
        ({"columns": ["vaule"]}, ["vaule", "value"]),
        ({"pattern": "("}, ["regular expression"]),
        ({"pattern": "a", "topics": ["orders"]}, ["not both"]),
        ({"isolation": "committed"}, ["isolation", "read_committed"]),
        ({"on_corrupt": "ignore"}, ["on_corrupt", "skip"]),
        ({"batch_bytes": 1}, ["batch_bytes"]),
        ({"threads": 0}, ["threads"]),
        ({"start_timestamp": datetime(2023, 1, 1)}, ["time zone"]),  # noqa: DTZ001
    ],
)
def test_a_wrong_argument_names_itself_and_the_right_form(
    root: Path, arguments: dict[str, object], words: list[str]
) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError) as caught:
        kafkaseg.scan(root, **arguments)
    message = str(caught.value).replace('"', "'")
    assert [word for word in words if word not in message] == []


def test_offset_bounds_cut_through_batches(root: Path) -> None:
    partition = root / "orders-0"
    assert offsets(kafkaseg.scan(partition, start=15, end=53)) == list(range(15, 53))
    assert kafkaseg.scan(partition, start=15, end=53).count() == 38
    each = kafkaseg.scan(root, topics="orders", start={"orders": {0: 118}}, end={"orders": {1: 2}})
    assert offsets(each) == [118, 119, 0, 1]
    assert offsets(kafkaseg.scan(partition, start=1_000)) == []


def test_times_bound_records_not_batches(root: Path) -> None:
    partition = root / "orders-0"
    found = kafkaseg.scan(partition, start_timestamp=START_MS + 1_450, end_timestamp=START_MS + 5_300)
    assert offsets(found) == list(range(15, 53))
    aware = datetime.fromtimestamp((START_MS + 1_500) / 1000, UTC)
    assert offsets(kafkaseg.scan(partition, start_timestamp=aware))[0] == 15


def test_columns_come_as_asked_and_agree_with_the_batch_headers(root: Path) -> None:
    partition = root / "orders-0"
    table = kafkaseg.scan(partition, columns=list(reversed(kafkaseg.COLUMNS))).to_arrow()
    assert table.column_names == list(reversed(kafkaseg.COLUMNS))
    assert kafkaseg.scan(partition, columns=[]).to_arrow().num_rows == 120
    headers = kafkaseg.batches(partition).to_pylist()
    rows = table.to_pylist()
    assert len(headers) == 12
    for header in headers:
        mine = [row for row in rows if row["batch_base_offset"] == header["base_offset"]]
        assert len(mine) == header["records"] == 10
        for row in mine:
            assert (row["segment"], row["batch_position"]) == (header["segment"], header["position"])
            assert (row["codec"], row["magic"], row["leader_epoch"]) == ("none", 2, 0)
            assert (row["producer_id"], row["sequence"], row["is_control"]) == (-1, -1, False)


def test_paths_may_be_lists_files_and_relative(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lone = root / "orders-0" / segment_name(40)
    assert offsets(kafkaseg.scan(lone)) == list(range(40, 80))
    both = kafkaseg.scan([root / "orders-1", f"{root}/payments-0/"])
    assert both.partitions == [("orders", 1), ("payments", 0)]
    monkeypatch.chdir(root / "orders-0")
    assert kafkaseg.scan(".").partitions == [("orders", 0)]
    assert kafkaseg.scan(segment_name(0)).partitions == [("orders", 0)]
    with pytest.raises(kafkaseg.InvalidArgumentError, match="both"):
        kafkaseg.scan([root, root / "orders-0"])


def test_a_log_directory_may_be_named_like_a_partition(tmp_path: Path) -> None:
    write_partition(tmp_path / "kafka-1")
    assert kafkaseg.scan(tmp_path / "kafka-1").partitions == [("orders", 0)]


def test_what_is_no_kafka_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match="no Kafka directory"):
        kafkaseg.scan(tmp_path)
    with pytest.raises(FileNotFoundError):
        kafkaseg.scan(tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(kafkaseg.InvalidArgumentError, match="segment"):
        kafkaseg.scan(tmp_path / "notes.txt")


def test_directories_on_their_way_out_are_passed_and_said(root: Path) -> None:
    (root / "payments-0").rename(root / ("payments-0." + "ab" * 16 + "-delete"))
    scan = kafkaseg.scan(root)
    assert scan.partitions == [("orders", 0), ("orders", 1)]
    assert [why for _, why in scan.report.passed] == ["waits for deletion"]

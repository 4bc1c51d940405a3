"""Every directory of the corpus reads to exactly what a real consumer read from the broker that wrote it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

import kafkaseg
from tests.arrow import COLUMNS, HEADERS, TYPES, assert_same_records, records_of
from tests.corpus import Case, Record, cases

WHOLE_CORPUS_CASES = 56
READ_UNCOMMITTED, READ_COMMITTED = "read_uncommitted", "read_committed"

# Records compared in this run by kind of view: the last test proves that the sums are those of the truth.
compared: dict[str, dict[str, int]] = defaultdict(dict)


def scan_case(case: Case, **options: Any) -> kafkaseg.Scan:
    """A scan of the topics whose truth is known; damage ends a partition as it ends a broker's recovery."""
    options.setdefault("on_corrupt", "stop" if case.is_damaged else "error")
    return kafkaseg.scan(case.log_dir, topics=sorted(case.topics), columns=COLUMNS, headers=True, **options)


def records_in(case: Case, **options: Any) -> list[Record]:
    return records_of(scan_case(case, **options).to_arrow())


def loses_its_last_segment(case: Case) -> bool:
    """A changed base offset: the broker throws a good segment away, and a scan need not."""
    return case.name == "unclean-corrupt-last-baseoffset"


def test_records_are_those_a_consumer_read(case: Case) -> None:
    if loses_its_last_segment(case):
        pytest.skip("compared with the undamaged log in test_damage.py")
    compared["records"][case.name] = assert_same_records(records_in(case), case.records)


def test_the_committed_view_is_that_of_a_consumer(committed_case: Case) -> None:
    if loses_its_last_segment(committed_case):
        pytest.skip("compared with the undamaged log in test_damage.py")
    found = records_in(committed_case, isolation=READ_COMMITTED)
    compared["committed"][committed_case.name] = assert_same_records(found, committed_case.committed)


def test_count_decodes_nothing_and_is_exact(case: Case) -> None:
    if loses_its_last_segment(case):
        pytest.skip("compared with the undamaged log in test_damage.py")
    assert scan_case(case).count() == len(case.records)
    if case.has_committed:
        assert scan_case(case, isolation=READ_COMMITTED).count() == len(case.committed)


def test_columns_have_the_types_of_sparks_kafka_source(case: Case) -> None:
    schema = scan_case(case).to_arrow().schema
    assert schema.names == COLUMNS
    assert {name: schema.field(name).type for name in TYPES} == TYPES
    headers = schema.field("headers").type
    assert pa.types.is_list(headers)
    assert [(field.name, field.type) for field in headers.value_type] == [
        (field.name, field.type) for field in HEADERS.value_type
    ]


def test_small_batches_and_threads_change_nothing(case: Case) -> None:
    whole = scan_case(case).to_arrow()
    assert scan_case(case, batch_bytes=4096).to_arrow().equals(whole)
    assert_same_records(records_of(scan_case(case, threads=2).to_arrow()), records_of(whole))


def test_splits_are_together_the_whole(case: Case) -> None:
    whole = records_in(case)
    parts = [record for split in scan_case(case).splits(4) for record in records_of(split.to_arrow())]
    assert assert_same_records(parts, whole) == len(whole)


def test_offsets_for_times_are_the_brokers_answers(offsets_case: Case) -> None:
    asked, excluded = answerable(offsets_case)
    for (isolation, query), rows in asked.items():
        answers = kafkaseg.offsets_for_time(offsets_case.log_dir, query, isolation=isolation)
        for row in rows:
            answer = answers[row["topic"], row["partition"]]
            assert as_row(offsets_case, answer, row) == row
    count = sum(len(rows) for rows in asked.values())
    assert count + excluded == len(offsets_case.offsets_for_times)
    compared["offsets"][offsets_case.name] = count


def answerable(case: Case) -> tuple[dict[tuple[str, int], list[dict[str, Any]]], int]:
    """Rows by request, and how many are left out: refused by the broker, or answered from a file's
    modification time because the partition has no timestamps.
    """
    timeless = {(r.topic, r.partition) for r in case.records} - {
        (r.topic, r.partition) for r in case.records if r.timestamp >= 0
    }
    asked, excluded = defaultdict(list), 0
    for row in case.offsets_for_times:
        by_time = row["query"] >= 0 or row["query"] == -3
        if "error" in row or (by_time and (row["topic"], row["partition"]) in timeless):
            excluded += 1
        else:
            asked[row["isolation"], row["query"]].append(row)
    return asked, excluded


def as_row(case: Case, answer: kafkaseg.OffsetAndTimestamp | None, row: dict[str, Any]) -> dict[str, Any]:
    """An answer in the form of the truth: -1 for nothing found, no epoch where the broker gave none.

    A log without version 2 batches has no epochs on disk; its broker still knows its own.
    """
    if answer is None:
        return row | {"offset": -1, "timestamp": -1}
    found = {"offset": answer.offset, "timestamp": answer.timestamp}
    known = row["leader_epoch"] is not None and has_epochs(case, row["topic"], row["partition"])
    return row | found | ({"leader_epoch": answer.leader_epoch} if known else {})


def has_epochs(case: Case, topic: str, partition: int) -> bool:
    """The second line of leader-epoch-checkpoint is its number of entries."""
    checkpoint = case.log_dir / f"{topic}-{partition}" / "leader-epoch-checkpoint"
    return checkpoint.exists() and checkpoint.read_text().split()[1] != "0"


def test_everything_was_compared(request: pytest.FixtureRequest) -> None:
    """Goal: no case drops out unseen. Method: the sums of what ran above are those of the truth."""
    ran = {item.name for item in request.session.items if item.fspath == request.node.fspath}
    if len(ran) < 5 * len(cases()):
        pytest.skip("only a part of this file was selected")
    usual = {name: case for name, case in cases().items() if not loses_its_last_segment(case)}
    assert compared["records"] == {name: len(case.records) for name, case in usual.items()}
    assert compared["committed"] == {
        name: len(case.committed) for name, case in usual.items() if case.has_committed
    }
    assert sum(compared["offsets"].values()) == sum(
        "error" not in row
        for case in cases().values()
        if case.has_offsets_for_times
        for row in case.offsets_for_times
    )
    if len(cases()) >= WHOLE_CORPUS_CASES:
        assert sum(compared["records"].values()) > 20_000
        assert sum(compared["offsets"].values()) > 9_000

"""Arrow tables of a scan as the records a consumer would deliver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tests.corpus import Record, TopicPartition

#: Spark's columns and the leader epoch: all that a consumer shows of a record.
COLUMNS = [
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "leader_epoch",
]

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "leader_epoch": pa.int32(),
}


def records_of(table: pa.Table) -> list[Record]:
    """The rows of a table that has COLUMNS."""
    table.validate(full=True)
    milliseconds = [ticks // 1000 for ticks in table["timestamp"].cast(pa.int64()).to_pylist()]
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in COLUMNS if name != "timestamp"}
    return [
        Record(
            columns["topic"][row],
            columns["partition"][row],
            columns["offset"][row],
            timestamp,
            columns["timestampType"][row],
            columns["key"][row],
            columns["value"][row],
            tuple((header["key"], header["value"]) for header in columns["headers"][row] or ()),
            columns["leader_epoch"][row],
        )
        for row, timestamp in enumerate(milliseconds)
    ]


def by_partition(records: Iterable[Record]) -> dict[TopicPartition, list[Record]]:
    partitions = defaultdict(list)
    for record in records:
        partitions[record.topic_partition].append(record)
    return dict(partitions)


def assert_same_records(found: Iterable[Record], expected: Iterable[Record]) -> int:
    """Equal partition by partition, in order; returns how many records were compared.

    A leader epoch is compared only where the client that wrote the expectation reported one.
    """
    found_in, expected_in = by_partition(found), by_partition(expected)
    assert found_in.keys() == expected_in.keys()
    compared = 0
    for partition, wanted in expected_in.items():
        got = found_in[partition]
        assert [record.offset for record in got] == [record.offset for record in wanted], partition
        for have, want in zip(got, wanted, strict=True):
            if want.leader_epoch is None:
                have = have._replace(leader_epoch=None)  # noqa: PLW2901
            assert have == want
            compared += 1
    return compared

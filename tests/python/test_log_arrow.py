"""Tables go into the log as records, from every library that speaks Arrow's stream interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import kafkaseg
from tests.engine import NOW, consume, records

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[kafkaseg.Log]:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", clock=kafkaseg.ManualClock(NOW)) as log:
        yield log


def rows(log: kafkaseg.Log) -> list[tuple]:
    return [(r.key, r.value, r.timestamp, list(r.headers)) for r in consume(log)]


def table(count: int) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "key": pa.array([None if n % 7 == 3 else f"k{n}".encode() for n in numbers], pa.binary()),
            "value": pa.array([None if n % 5 == 2 else b"v" * (n % 50) for n in numbers], pa.binary()),
            "timestamp": pa.array([NOW + n for n in numbers], pa.int64()),
            "headers": pa.array(
                [None if n % 3 == 0 else [("a", b"1"), ("b", None)][: n % 3] for n in numbers], HEADERS
            ),
        }
    )


def expected(data: pa.Table) -> list[tuple]:
    return [
        (row["key"], row["value"], row["timestamp"], [(h["key"], h["value"]) for h in row["headers"] or ()])
        for row in data.to_pylist()
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_nulls_and_headers_come_back_from_every_codec(log: kafkaseg.Log, codec: str) -> None:
    data = table(1000)
    info = log.append_arrow(data, batch_bytes=2000, compression=codec)
    assert (info.records, info.base_offset, info.last_offset) == (1000, 0, 999)
    assert info.batches == len(list(log.read(0).batches())) > 10
    assert info.bytes == log.stats()["bytes"]
    assert next(log.read(0).batches()).compression == codec
    assert rows(log) == expected(data)


def test_slices_of_tables_are_what_they_look_like(log: kafkaseg.Log) -> None:
    data = table(1000)
    log.append_arrow(data.slice(13, 500))
    log.append_arrow(data.combine_chunks().slice(703, 99))
    assert rows(log) == expected(data)[13:513] + expected(data)[703:802]


def test_chunked_tables_and_readers_are_taken(log: kafkaseg.Log) -> None:
    data = table(300)
    chunked = pa.concat_tables([data.slice(0, 7), data.slice(7, 0), data.slice(7, 200), data.slice(207)])
    log.append_arrow(chunked)
    log.append_arrow(pa.RecordBatchReader.from_batches(data.schema, data.to_batches(max_chunksize=11)))
    assert rows(log) == expected(data) * 2


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view()],
)
def test_keys_and_values_may_be_bytes_or_text_of_any_layout(log: kafkaseg.Log, kind: pa.DataType) -> None:
    texts = ["", "short", None, "a longer text that no view holds inline", "ü"]
    data = [text if text is None or "string" in str(kind) else text.encode() for text in texts]
    column = pa.array([None, None, *data], kind).slice(2)
    log.append_arrow(pa.table({"key": column, "value": column}))
    want = [None if text is None else text.encode() for text in texts]
    assert [(r.key, r.value) for r in consume(log)] == [(text, text) for text in want]


@pytest.mark.parametrize(("unit", "per_ms"), [("s", 0.001), ("ms", 1), ("us", 1000), ("ns", 1_000_000)])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_of_every_unit_become_milliseconds(
    log: kafkaseg.Log, unit: str, per_ms: float, zone: str | None
) -> None:
    times = [NOW, NOW + 1000, None]
    ticks = [None if time is None else int(time * per_ms) for time in times]
    column = pa.array(ticks, pa.timestamp(unit, zone))
    log.append_arrow(pa.table({"value": [b"a", b"b", b"c"], "timestamp": column}))
    assert [r.timestamp for r in consume(log)] == [NOW, NOW + 1000, NOW], "no time is the time of the append"


def test_times_before_a_millisecond_are_rounded_down(log: kafkaseg.Log) -> None:
    column = pa.array([1999, 2000, 999], pa.timestamp("us"))
    log.append_arrow(pa.table({"timestamp": column}))
    assert [r.timestamp for r in consume(log)] == [1, 2, 0]


def test_missing_columns_and_rows_are_fine(log: kafkaseg.Log) -> None:
    assert log.append_arrow(table(0)) == kafkaseg.TableInfo(0, 0, 0, None, None)
    log.append_arrow(pa.table({"value": [b"v"]}))
    log.append_arrow(pa.table({"key": [b"k"], "value": pa.nulls(1)}))
    assert rows(log) == [(None, b"v", NOW, []), (b"k", None, NOW, [])]


def test_null_lists_and_null_headers_that_cover_values_stay_null(log: kafkaseg.Log) -> None:
    """Arrow lets a null list or structure have content beneath it, which nobody may see."""
    names = pa.array(["a", "b", "c"])
    contents = pa.array([b"1", b"2", b"3"])
    structs = pa.StructArray.from_arrays([names, contents], names=["key", "value"])
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), structs, mask=pa.array([False, True, False])
    )
    log.append_arrow(pa.table({"value": [b"x", b"y", b"z"], "headers": lists}))
    assert [list(r.headers) for r in consume(log)] == [[("a", b"1")], [], [("c", b"3")]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"values": [b"v"]}, "no place for column .values."),
        ({"value": [1]}, "value holds Int64"),
        ({"timestamp": ["noon"]}, "timestamp holds Utf8"),
        ({"headers": [b"h"]}, "headers holds"),
        ({"headers": [[b"h"]]}, "headers holds"),
    ],
)
def test_columns_that_are_no_records_are_refused_by_name(log: kafkaseg.Log, data: dict, said: str) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match=said):
        log.append_arrow(pa.table(data))
    assert log.end_offset == 0


def test_a_header_needs_a_name(log: kafkaseg.Log) -> None:
    with pytest.raises(kafkaseg.KafkasegError, match="header"):
        log.append_arrow(pa.table({"headers": pa.array([[(None, b"v")]], HEADERS)}))


def test_what_is_no_table_is_refused(log: kafkaseg.Log) -> None:
    with pytest.raises((TypeError, AttributeError)):
        log.append_arrow([1, 2])
    with pytest.raises(kafkaseg.InvalidArgumentError, match="batch_bytes"):
        log.append_arrow(table(1), batch_bytes=0)
    with pytest.raises(kafkaseg.InvalidArgumentError, match="codec"):
        log.append_arrow(table(1), compression="brotli")


def test_an_error_in_the_stream_is_told(log: kafkaseg.Log) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield table(10).to_batches()[0]
        raise RuntimeError("the source failed")

    with pytest.raises(kafkaseg.KafkasegError, match="the source failed"):
        log.append_arrow(pa.RecordBatchReader.from_batches(table(0).schema, batches()))
    assert log.end_offset == 10, "what came before is appended"


def test_a_record_over_the_limit_is_refused_with_nothing_of_its_rows(log: kafkaseg.Log) -> None:
    data = pa.table({"value": [b"small", bytes(2 << 20)]})
    with pytest.raises(kafkaseg.KafkasegError) as caught:
        log.append_arrow(data)
    assert getattr(caught.value, "code", None) == "MESSAGE_TOO_LARGE"
    assert log.end_offset == 0


def test_a_compacted_topic_refuses_rows_without_a_key(tmp_path: Path) -> None:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", cleanup_policy="compact") as log:
        with pytest.raises(kafkaseg.RejectedError) as caught:
            log.append_arrow(table(10))
        assert caught.value.code == "INVALID_RECORD"
        assert [index for index, _ in caught.value.records] == [3]
        assert log.end_offset == 0


def test_the_rules_of_the_topic_hold_for_tables(tmp_path: Path) -> None:
    config = {"message.timestamp.type": "LogAppendTime", "compression.type": "lz4"}
    path = tmp_path / "data" / "orders-0"
    with kafkaseg.Log.open(path, config, clock=kafkaseg.ManualClock(NOW + 5)) as log:
        log.append_arrow(table(100), compression="zstd", leader_epoch=3)
        (batch,) = log.read(0).batches()
        assert (batch.compression, batch.timestamp_type, batch.leader_epoch) == ("lz4", "append", 3)
        assert {r.timestamp for r in batch.records} == {NOW + 5}


def test_tables_roll_segments_as_records_do(tmp_path: Path) -> None:
    with kafkaseg.Log.open(tmp_path / "data" / "orders-0", {"internal.segment.bytes": 20_000}) as log:
        log.append_arrow(table(5000), batch_bytes=1000)
        assert len(log.segments()) > 5
        assert all(segment.bytes <= 20_000 for segment in log.segments())
        assert rows(log) == expected(table(5000))


def test_polars_pandas_and_duckdb_are_taken(log: kafkaseg.Log) -> None:
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    want = [(b"a", b"1"), (None, b"2"), (b"c", None)]
    columns = {"key": [key for key, _ in want], "value": [value for _, value in want]}
    log.append_arrow(polars.DataFrame(columns))
    log.append_arrow(pandas.DataFrame(columns))
    log.append_arrow(polars.DataFrame({"key": ["a", None, "c"], "value": ["1", "2", None]}))
    source = pa.table(columns)
    log.append_arrow(duckdb.sql("select key, value from source").to_arrow_table())
    assert [(r.key, r.value) for r in consume(log)] == want * 4
    assert source.num_rows == 3


def test_a_scan_of_one_log_fills_another(log: kafkaseg.Log, tmp_path: Path) -> None:
    source = tmp_path / "from" / "orders-0"
    with kafkaseg.Log.open(source) as other:
        other.append(records(500))
    scan = kafkaseg.scan(source, columns=["key", "value", "timestamp", "headers"])
    assert log.append_arrow(scan).records == 500
    with kafkaseg.Log.open(source) as other:
        assert rows(log) == rows(other)

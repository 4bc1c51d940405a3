"""Internal topics from Python, held against what Kafka's own dump tool printed for the same files."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkaseg
from tests.corpus import Case, cases

INTERNAL = {"__consumer_offsets", "__transaction_state", "__cluster_metadata"}
TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
#: The dump tool's words for control records, and ours.
CONTROL = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}

# Records compared in this run, by kind: the last test proves that there were enough.
compared: Counter[str] = Counter()


def dump_of(case: Case) -> str:
    plain = case.expected / "dump.txt"
    return plain.read_text() if plain.exists() else gzip.decompress(Path(f"{plain}.gz").read_bytes()).decode()


def printed_records(case: Case) -> Iterator[tuple[Path, dict[int, str]]]:
    """Log and snapshot files of internal topics, with what was printed of key and value by offset."""
    for section in dump_of(case).split("Dumping ")[1:]:
        name, *lines = section.splitlines()
        topic = name.partition("/")[0].rpartition("-")[0]
        if topic in INTERNAL and name.endswith((".log", ".checkpoint")):
            rows = [line.partition(" headerKeys: [] ") for line in lines if line.startswith("| offset: ")]
            yield case.log_dir / name, {int(row[0].split()[2]): row[2] for row in rows}


def same(ours: Any, theirs: Any) -> bool:
    """The tool prints bytes as base64, and null for some tagged fields that are not written."""
    if isinstance(ours, bytes):
        return base64.b64encode(ours).decode() == theirs
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict):
        written = {name: value for name, value in theirs.items() if value is not None}
        return written.keys() <= ours.keys() <= theirs.keys() and all(
            same(value, theirs[name]) for name, value in ours.items()
        )
    return type(ours) is type(theirs) and ours == theirs


def old_transaction(record: kafkaseg.InternalRecord) -> str:
    """Releases before 4.0 print transactions in a form of their own."""
    value = record.value
    partitions = [
        f"{topic['topic']}-{number}"
        for topic in value["transactionPartitions"] or ()
        for number in topic["partitionIds"]
    ]
    return (
        f"key: transaction_metadata::transactionalId={record.key['transactionalId']} "
        f"payload: producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},"
        f"state={TRANSACTION_STATES[value['transactionStatus']]},partitions={sorted(partitions)},"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},"
        f"txnTimeoutMs={value['transactionTimeoutMs']}"
    )


def with_sorted_partitions(printed: str) -> str:
    before, _, rest = printed.partition("partitions=[")
    partitions, _, after = rest.partition("]")
    return f"{before}partitions={sorted(filter(None, partitions.split(',')))}{after}"


def control_agrees(record: kafkaseg.InternalRecord, word: str, rest: str) -> bool:
    if word == "endTxnMarker":
        return rest == f"{record.kind} coordinatorEpoch: {record.value['coordinatorEpoch']}"
    if word == "controlType":
        return rest == f"{record.kind}({record.key['type']})"
    return CONTROL[word] == record.kind and same(
        {"version": record.version, **record.value}, json.loads(rest)
    )


def agrees(record: kafkaseg.InternalRecord, printed: str) -> bool:
    word, _, rest = printed.partition(" ")
    word = word.rstrip(":")
    if word not in {"key", "payload"}:
        return control_agrees(record, word, rest)
    if word == "payload":
        shown = json.loads(rest)
        kind = shown["type"].removesuffix("_RECORD").title().replace("_", "")
        return (record.kind, record.version) == (kind, shown["version"]) and same(record.value, shown["data"])
    if rest.startswith("transaction_metadata::"):
        return old_transaction(record) == with_sorted_partitions(printed)
    key, _, payload = rest.partition(" payload: ")
    if not same(record.key, json.loads(key)["data"]):
        return False
    if payload == "<DELETE>":
        return (record.version, record.value) == (-1, None)
    shown = json.loads(payload)
    return str(record.version) == shown["version"] and same(record.value, shown["data"])


def test_every_internal_record_is_what_the_dump_tool_printed(case: Case) -> None:
    for path, printed in printed_records(case):
        records = list(kafkaseg.internal_records(path))
        assert [record.offset for record in records] == list(printed), path
        for record in records:
            assert agrees(record, printed[record.offset]), (path, record, printed[record.offset])
        compared.update(record.kind for record in records)


def test_a_directory_gives_the_records_of_its_files(corpus: dict[str, Case]) -> None:
    directories = 0
    for case in corpus.values():
        found: dict[tuple[str, int], list[int]] = {}
        for path, printed in printed_records(case):
            if path.suffix == ".log" and printed:
                topic, _, partition = path.parent.name.rpartition("-")
                found.setdefault((topic, int(partition)), []).extend(printed)
        if found:
            whole: dict[tuple[str, int], list[int]] = {}
            for record in kafkaseg.internal_records(case.log_dir):
                whole.setdefault((record.topic, record.partition), []).append(record.offset)
            assert whole == {key: sorted(offsets) for key, offsets in found.items()}, case.name
            directories += len(found)
    assert directories >= 10


def test_enough_was_compared() -> None:
    """Goal: the comparison saw every topic and the records the project names. Method: counts by kind."""
    if "internals-4.3.0" not in cases() or not compared:
        pytest.skip("only a part of this file was selected")
    named = {"Topic", "Partition", "PartitionChange", "Config", "RegisterBroker", "BrokerRegistrationChange"}
    named |= {"OffsetCommit", "GroupMetadata", "TransactionLog", "COMMIT", "ABORT", *CONTROL.values()}
    assert named - set(compared) == set()
    assert compared.total() > (1000 if len(cases()) >= 56 else 300)


def test_internal_records_tell_where_they_stand(corpus: dict[str, Case]) -> None:
    path = corpus["internals-4.3.0"].log_dir
    first = next(kafkaseg.internal_records(path, "__consumer_offsets"))
    assert first == kafkaseg.InternalRecord(
        kind="OffsetCommit",
        version=4,
        key={"group": "group-0", "topic": "input", "partition": 0},
        value={
            "offset": 35,
            "leaderEpoch": 0,
            "metadata": "",
            "commitTimestamp": 1794997181715,
            "topicId": "y1ujFXTXTTiKp9hTicze4g",
        },
        topic="__consumer_offsets",
        partition=0,
        offset=0,
        timestamp=1794997181732,
    )
    header = next(kafkaseg.internal_records(path / "bootstrap.checkpoint"))
    assert (header.kind, header.topic, header.partition, header.offset) == ("SNAPSHOT_HEADER", None, None, 0)
    assert {record.topic for record in kafkaseg.internal_records(path)} == INTERNAL


def test_the_records_of_a_scan_decode_one_by_one(corpus: dict[str, Case]) -> None:
    path = corpus["internals-4.3.0"].log_dir
    table = kafkaseg.scan(path, topics=["__transaction_state"], columns=["key", "value"]).to_arrow()
    rows = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    decoded = [kafkaseg.decode_internal("__transaction_state", key, value) for key, value in rows]
    streamed = list(kafkaseg.internal_records(path, "__transaction_state"))
    assert [record.value for record in decoded] == [record.value for record in streamed]
    assert decoded
    assert {record.offset for record in decoded} == {None}


def test_a_log_outside_its_directory_is_read_as_told(corpus: dict[str, Case], tmp_path: Path) -> None:
    name = "00000000000000000000.log"
    source = corpus["internals-4.3.0"].log_dir / "__transaction_state-0" / name
    copy = shutil.copy(source, tmp_path / name)
    records = list(kafkaseg.internal_records(copy, "__transaction_state"))
    assert [record.value for record in records] == [
        record.value for record in kafkaseg.internal_records(source)
    ]
    with pytest.raises(kafkaseg.InvalidArgumentError, match="no internal topic"):
        kafkaseg.internal_records(copy)
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        list(kafkaseg.internal_records(copy, "__consumer_offsets"))
    assert (caught.value.file, caught.value.kind) == (str(copy), "message")


def test_only_internal_topics_are_decoded(corpus: dict[str, Case]) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match="__cluster_metadata"):
        kafkaseg.decode_internal("orders", b"", b"")
    with pytest.raises(kafkaseg.InvalidArgumentError, match="__consumer_offsets"):
        kafkaseg.internal_records(corpus["internals-4.3.0"].log_dir, "orders")
    with pytest.raises(kafkaseg.InvalidArgumentError, match="holds no internal topic"):
        kafkaseg.internal_records(corpus["names"].log_dir)
    with pytest.raises(FileNotFoundError):
        kafkaseg.internal_records("absent/bootstrap.checkpoint")


def test_the_published_metadata_records_decode() -> None:
    topic = bytes.fromhex("01 02 00 04 66 6f 6f 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00")
    assert kafkaseg.decode_internal("__cluster_metadata", None, topic) == kafkaseg.InternalRecord(
        "Topic", 0, None, {"name": "foo", "topicId": "AAECAwQFBgcICQoLDA0ODw"}
    )
    unknown = bytes.fromhex("01 7f 00 00")
    record = kafkaseg.decode_internal("__cluster_metadata", None, unknown)
    assert (record.kind, record.version, record.value) == ("unknown(127)", -1, unknown)


def test_the_published_control_records_decode() -> None:
    commit = kafkaseg.decode_control(bytes.fromhex("0000 0001"), bytes.fromhex("0000 00000009"))
    assert commit == kafkaseg.InternalRecord("COMMIT", 0, {"type": 1}, {"coordinatorEpoch": 9})
    leader = bytes.fromhex(
        "00 00 00 00 00 01 04 00 00 00 01 00 00 00 00 02 00 00 00 00 03 00 03 00 00 00 01 00 00 00 00 03 00 00"
    )
    assert kafkaseg.decode_control(b"\0\0\0\2", leader).value == {
        "leaderId": 1,
        "voters": [{"voterId": 1}, {"voterId": 2}, {"voterId": 3}],
        "grantingVoters": [{"voterId": 1}, {"voterId": 3}],
    }
    assert kafkaseg.decode_control(b"\0\0\0\x63", b"abc").value == b"abc"


@pytest.mark.parametrize("value", [b"", b"\1", bytes.fromhex("01 02 00 04 66 6f"), b"\0\2\0"])
def test_damaged_messages_are_named(value: bytes) -> None:
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.decode_internal("__cluster_metadata", None, value)
    assert caught.value.kind in {"message", "varint", "field_length"}
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.decode_control(b"\0\0\0\1", value[:5])
    assert (caught.value.file, caught.value.position, caught.value.kind) == ("<bytes>", 0, "message")


def test_damage_of_a_snapshot_names_file_and_position(corpus: dict[str, Case], tmp_path: Path) -> None:
    """Goal: no wrong record. Method: flip one bit of each byte under the checksum, one file at a time."""
    source = corpus["internals-4.3.0"].log_dir / "bootstrap.checkpoint"
    whole, path = source.read_bytes(), tmp_path / "bootstrap.checkpoint"
    for position in range(17, 120):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(kafkaseg.CorruptLogError) as caught:
            list(kafkaseg.internal_records(path))
        assert caught.value.file == str(path)
        assert caught.value.position <= position
    path.write_bytes(whole[:-1])
    with pytest.raises(kafkaseg.CorruptLogError):
        list(kafkaseg.internal_records(path))

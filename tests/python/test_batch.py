"""Batches from Python: the format's worked examples, every batch of the corpus, and any records at all."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafkaseg
from kafkaseg import Record, StoredRecord
from tests.corpus import Case, cases

T0 = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

THREE = [
    Record(b"k1", b"hello", timestamp=T0),
    Record(None, b"", [("h1", b"x"), ("h2", None)], T0 + 5),
    Record(b"k2", None, timestamp=T0 + 3),
]
#: As a producer sends the three records, and at offset 100 in epoch 7.
BATCH_A = bytes.fromhex(
    "00 00 00 00 00 00 00 00 00 00 00 58 ff ff ff ff 02 be 14 50 16 00 00 00 00 00 02 00 00 01 8b cf"
    "e5 68 00 00 00 01 8b cf e5 68 05 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 03 1a 00 00"
    "00 04 6b 31 0a 68 65 6c 6c 6f 00 1e 00 0a 02 01 00 04 04 68 31 02 78 04 68 32 01 10 00 06 04 04"
    "6b 32 01 00"
)
BATCH_B = bytes.fromhex("00 00 00 00 00 00 00 64 00 00 00 58 00 00 00 07") + BATCH_A[16:]
#: Header of the same with the append time T0 + 60000.
BATCH_C_HEADER = bytes.fromhex(
    "00 00 00 00 00 00 00 64 00 00 00 58 00 00 00 07 02 6e b5 76 10 00 08 00 00 00 02 00 00 01 8b cf"
    "e5 68 00 00 00 01 8b cf e6 52 60 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 03"
)
BATCH_D = bytes.fromhex(
    "00 00 00 00 00 00 00 67 00 00 00 43 00 00 00 07 02 57 45 2a 9e 00 10 00 00 00 01 00 00 01 8b cf"
    "e5 68 00 00 00 01 8b cf e5 68 01 00 00 00 00 00 00 10 92 00 03 00 00 00 0a 00 00 00 02 10 00 00"
    "00 02 61 02 31 00 10 00 02 02 02 62 02 32 00"
)
#: The commit marker; the abort marker differs in its type and its checksum.
MARKER_E = bytes.fromhex(
    "00 00 00 00 00 00 00 69 00 00 00 42 00 00 00 07 02 65 a1 d5 f6 00 30 00 00 00 00 00 00 01 8b cf"
    "e5 68 0a 00 00 01 8b cf e5 68 0a 00 00 00 00 00 00 10 92 00 03 ff ff ff ff 00 00 00 01 20 00 00"
    "00 08 00 00 00 01 0c 00 00 00 00 00 09 00"
)
MARKER_F = MARKER_E[:17] + bytes.fromhex("91 9f 03 be") + MARKER_E[21:69] + b"\0" + MARKER_E[70:]
#: What compaction left of D: nothing.
EMPTY_G = bytes.fromhex(
    "00 00 00 00 00 00 00 67 00 00 00 31 00 00 00 07 02 28 d4 f1 34 00 10 00 00 00 01 ff ff ff ff ff"
    "ff ff ff 00 00 01 8b cf e5 68 01 00 00 00 00 00 00 10 92 00 03 00 00 00 0a 00 00 00 00"
)
#: What compaction left of B: the tombstone, with a delete horizon.
HORIZON_H = bytes.fromhex(
    "00 00 00 00 00 00 00 64 00 00 00 3d 00 00 00 07 02 2a 8a 5d 11 00 40 00 00 00 02 00 00 01 8b d5"
    "0b c7 e8 00 00 01 8b cf e5 68 03 ff ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00 00 01 16 00 c9"
    "ff b2 52 04 04 6b 32 01 00"
)
V0 = bytes.fromhex("00 00 00 00 00 00 00 05 00 00 00 11 16 57 64 b1 00 00 00 00 00 01 6b 00 00 00 02 76 30")
V1_APPEND_TIME = bytes.fromhex(
    "00 00 00 00 00 00 00 06 00 00 00 17 94 b8 3f ca 01 08 00 00 01 8b cf e5 68 00 00 00 00 01 6b ff ff ff ff"
)
V1_GZIP = bytes.fromhex(
    "00 00 00 00 00 00 00 0b 00 00 00 52 20 4b 3d 27 01 01 00 00 01 8b cf e5 68 07 ff ff ff ff 00 00"
    "00 3c 1f 8b 08 00 00 00 00 00 00 00 63 60 80 03 89 02 d6 ea 34 46 20 83 b1 fb fc d3 0c 90 08 63"
    "22 88 30 84 ca 83 a4 24 dc 16 fb 7e 84 ab 61 07 31 92 40 84 11 00 11 88 33 54 48 00 00 00"
)
V0_LZ4 = bytes.fromhex(
    "00 00 00 00 00 00 00 0b 00 00 00 55 07 fb 26 1f 00 03 ff ff ff ff 00 00 00 47 04 22 4d 18 60 40"
    "1a 38 00 00 80 00 00 00 00 00 00 00 0a 00 00 00 10 56 cf 20 5f 00 00 00 00 00 01 61 00 00 00 01"
    "31 00 00 00 00 00 00 00 0b 00 00 00 10 49 52 03 4b 00 00 00 00 00 01 62 00 00 00 01 32 00 00 00 00"
)
PRODUCER = {"leader_epoch": 7, "producer_id": 4242, "producer_epoch": 3, "transactional": True}


def test_the_worked_examples_come_out_byte_for_byte() -> None:
    assert kafkaseg.encode_batch(THREE) == BATCH_A
    assert kafkaseg.encode_batch(iter(THREE), base_offset=100, leader_epoch=7) == BATCH_B
    stamped = kafkaseg.encode_batch(
        THREE, base_offset=100, leader_epoch=7, timestamp_type="append", append_time=T0 + 60_000
    )
    assert stamped == BATCH_C_HEADER + BATCH_A[61:]
    pair = [Record(b"a", b"1", timestamp=T0), Record(b"b", b"2", timestamp=T0 + 1)]
    assert kafkaseg.encode_batch(pair, base_offset=103, base_sequence=10, **PRODUCER) == BATCH_D
    tombstone = kafkaseg.encode_batch(
        THREE[2:], base_offset=100, leader_epoch=7, offset_deltas=[2], delete_horizon=1_700_086_401_000
    )
    assert tombstone == HORIZON_H
    empty = kafkaseg.encode_batch(
        [], base_offset=103, last_offset=104, base_sequence=10, empty_max_timestamp=T0 + 1, **PRODUCER
    )
    assert empty == EMPTY_G


def test_markers_come_out_byte_for_byte() -> None:
    options = {"coordinator_epoch": 9, "base_offset": 105, "timestamp": T0 + 10, "leader_epoch": 7}
    assert kafkaseg.encode_marker(commit=True, producer_id=4242, producer_epoch=3, **options) == MARKER_E
    assert kafkaseg.encode_marker(commit=False, producer_id=4242, producer_epoch=3, **options) == MARKER_F
    batch = kafkaseg.decode_batch(MARKER_F)
    assert (batch.control, batch.transactional, batch.records[0].key) == (True, True, bytes(4))


def test_a_decoded_batch_tells_what_its_header_says() -> None:
    batch = kafkaseg.decode_batch(BATCH_D)
    assert batch == kafkaseg.DecodedBatch(
        magic=2,
        bytes=79,
        crc=0x57452A9E,
        base_offset=103,
        last_offset=104,
        leader_epoch=7,
        compression="none",
        timestamp_type="create",
        max_timestamp=T0 + 1,
        records=(StoredRecord(b"a", b"1", (), T0, 103), StoredRecord(b"b", b"2", (), T0 + 1, 104)),
        base_timestamp=T0,
        producer_id=4242,
        producer_epoch=3,
        base_sequence=10,
        transactional=True,
    )
    assert kafkaseg.decode_batch(HORIZON_H).delete_horizon == 1_700_086_401_000
    assert kafkaseg.decode_batch(EMPTY_G).records == ()
    assert kafkaseg.decode_batch(BATCH_B).records[1].headers == (("h1", b"x"), ("h2", None))


def test_old_formats_decode() -> None:
    plain = kafkaseg.decode_batch(V0)
    assert (plain.magic, plain.timestamp_type, plain.base_timestamp, plain.producer_id) == (0, None, None, -1)
    assert plain.records == (StoredRecord(b"k", b"v0", (), -1, 5),)
    stamped = kafkaseg.decode_batch(V1_APPEND_TIME)
    assert (stamped.magic, stamped.timestamp_type) == (1, "append")
    assert stamped.records == (StoredRecord(b"k", None, (), T0, 6),)
    wrapper = kafkaseg.decode_batch(V1_GZIP)
    assert (wrapper.compression, wrapper.base_offset, wrapper.last_offset) == ("gzip", 10, 11)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in wrapper.records] == [
        (10, T0, b"a", b"1"),
        (11, T0 + 7, b"b", b"2"),
    ]
    assert [r.offset for r in kafkaseg.decode_batch(V0_LZ4).records] == [10, 11]


def test_batches_are_read_one_behind_the_other() -> None:
    log, position, offsets = V0 + V1_GZIP + BATCH_B + BATCH_D, 0, []
    while position < len(log):
        batch = kafkaseg.decode_batch(log, position)
        offsets += [record.offset for record in batch.records]
        position += batch.bytes
    assert offsets == [5, 10, 11, 100, 101, 102, 103, 104]
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.decode_batch(log, len(log))
    assert (caught.value.position, caught.value.kind) == (len(log), "truncated_entry")
    with pytest.raises(kafkaseg.InvalidArgumentError):
        kafkaseg.decode_batch(log, len(log) + 1)


def test_a_leader_patches_offsets_and_epoch_but_not_the_checksum() -> None:
    assert kafkaseg.patch_batch(BATCH_A, base_offset=100, leader_epoch=7) == BATCH_B
    assert kafkaseg.patch_batch(BATCH_A, last_offset=102, leader_epoch=7) == BATCH_B
    assert kafkaseg.patch_batch(BATCH_B, base_offset=0, leader_epoch=-1) == BATCH_A
    stamped = kafkaseg.patch_batch(BATCH_B, timestamp_type="append", max_timestamp=T0 + 60_000)
    assert stamped == BATCH_C_HEADER + BATCH_A[61:]
    assert kafkaseg.patch_batch(stamped, timestamp_type="create", max_timestamp=T0 + 5) == BATCH_B
    assert kafkaseg.patch_batch(BATCH_A) == BATCH_A
    assert kafkaseg.patch_batch(BATCH_A + b"tail", base_offset=100, leader_epoch=7) == BATCH_B + b"tail"


def test_patching_never_hides_damage() -> None:
    damaged = BATCH_A[:-1] + b"\1"
    moved = kafkaseg.patch_batch(damaged, base_offset=100)
    for data in (damaged, moved):
        with pytest.raises(kafkaseg.CorruptLogError, match="CRC"):
            kafkaseg.decode_batch(data)
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.patch_batch(damaged, max_timestamp=T0)
    assert caught.value.kind == "crc"
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.patch_batch(V1_GZIP, base_offset=1)
    assert caught.value.kind == "magic"


def test_damage_names_the_position_and_the_check() -> None:
    for data, kind in [
        (BATCH_B[:-1] + b"\1", "crc"),
        (BATCH_B[:-1], "truncated_entry"),
        (BATCH_B[:16] + b"\7" + BATCH_B[17:], "magic"),
        (BATCH_B[:8] + bytes(4) + BATCH_B[12:], "entry_size"),
        (V1_GZIP[:-1] + b"\1", "crc"),
        (b"", "truncated_entry"),
    ]:
        with pytest.raises(kafkaseg.CorruptLogError) as caught:
            kafkaseg.decode_batch(BATCH_A + data, len(BATCH_A))
        error = caught.value
        assert (error.file, error.position, error.kind) == ("<bytes>", 100, kind)
        assert kind == "truncated_entry" or "<bytes> is damaged at position 100" in str(error)


@pytest.mark.parametrize("compression", CODECS[1:])
def test_a_bomb_stops_at_the_budget(compression: str) -> None:
    bomb = kafkaseg.encode_batch([Record(None, bytes(8 << 20))], compression=compression)
    assert len(bomb) < 1 << 20
    with pytest.raises(kafkaseg.LimitExceededError) as caught:
        kafkaseg.decode_batch(bomb, max_inflated_bytes=1 << 20)
    assert caught.value.limit == 1 << 20
    assert caught.value.size > 1 << 20
    assert kafkaseg.decode_batch(bomb).records[0].value == bytes(8 << 20)


def test_levels_change_the_bytes_and_not_the_records() -> None:
    records = [Record(b"%d" % (i % 7), b"%d" % (i * i), timestamp=T0 + i) for i in range(500)]
    for compression, levels in {"gzip": [1, 9], "lz4": [9, 17], "zstd": [-5, 22]}.items():
        low, high = (kafkaseg.encode_batch(records, compression=compression, level=n) for n in levels)
        assert len(high) < len(low)
        assert kafkaseg.decode_batch(low).records == kafkaseg.decode_batch(high).records
    for compression, level in [("gzip", 10), ("zstd", 23), ("lz4", 0), ("snappy", 1), ("none", 1)]:
        with pytest.raises(kafkaseg.InvalidArgumentError, match="level"):
            kafkaseg.encode_batch(records, compression=compression, level=level)


def test_records_without_a_time_get_the_time_of_encoding() -> None:
    batch = kafkaseg.decode_batch(kafkaseg.encode_batch([Record(b"k", b"v"), Record(b"k", b"v")]))
    assert batch.base_timestamp == batch.max_timestamp > T0
    stamped = kafkaseg.decode_batch(kafkaseg.encode_batch(THREE, timestamp_type="append"))
    assert stamped.max_timestamp > T0 + 60_000
    assert {record.timestamp for record in stamped.records} == {stamped.max_timestamp}


@pytest.mark.parametrize(
    "options",
    [
        {"base_offset": -1},
        {"base_offset": 1 << 63},
        {"leader_epoch": 1 << 31},
        {"producer_epoch": 1 << 15},
        {"producer_id": 1},
        {"transactional": True},
        {"compression": "brotli"},
        {"timestamp_type": "other"},
        {"append_time": T0},
        {"offset_deltas": [0, 1]},
        {"offset_deltas": [0, 1, 2, 3]},
        {"offset_deltas": [0, 2, 1]},
        {"offset_deltas": [-1, 0, 1]},
        {"last_offset": 1},
    ],
    ids=str,
)
def test_arguments_that_make_no_batch_are_refused(options: dict) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError):
        kafkaseg.encode_batch(THREE, **options)


def test_fields_of_other_types_are_refused() -> None:
    for record in [Record("text", b""), Record(b"", 1), Record(b"", b"", [("h", "text")])]:
        with pytest.raises(TypeError, match="is bytes or None"):
            kafkaseg.encode_batch([record])
    for headers in [[(b"h", b"")], ["h"], 1]:
        with pytest.raises(TypeError):
            kafkaseg.encode_batch([Record(b"", b"", headers)])
    with pytest.raises(kafkaseg.InvalidArgumentError):
        kafkaseg.patch_batch(BATCH_A, base_offset=1, last_offset=2)
    with pytest.raises(kafkaseg.InvalidArgumentError):
        kafkaseg.patch_batch(BATCH_A, base_offset=-1)


def test_records_are_values() -> None:
    assert Record(b"k", b"v") == Record(b"k", b"v", (), None)
    assert repr(Record(b"k", None)) == "Record(key=b'k', value=None, headers=(), timestamp=None)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Record(b"k", b"v").key = b"x"


nullable = st.none() | st.binary(max_size=40)
records = st.builds(
    StoredRecord,
    nullable,
    nullable,
    st.lists(st.tuples(st.text(max_size=8), nullable), max_size=3).map(tuple),
    st.integers(-1, 1 << 50),
)


@given(
    st.lists(st.tuples(records, st.integers(1, 1 << 20)), max_size=20),
    st.integers(0, 1 << 40),
    st.sampled_from(CODECS),
    st.integers(-1, (1 << 31) - 1),
)
def test_any_records_come_back_as_they_went_in(
    stored: list[tuple[StoredRecord, int]], base_offset: int, compression: str, epoch: int
) -> None:
    """Goal: encode and decode are inverse. Method: records with holes between their offsets, any codec."""
    offset, expected = base_offset - 1, []
    for record, hole in stored:
        offset += hole
        expected.append(dataclasses.replace(record, offset=offset))
    data = kafkaseg.encode_batch(
        expected,
        base_offset=base_offset,
        offset_deltas=[record.offset - base_offset for record in expected],
        compression=compression,
        leader_epoch=epoch,
    )
    batch = kafkaseg.decode_batch(data)
    assert batch.records == tuple(expected)
    assert (batch.base_offset, batch.leader_epoch, batch.bytes) == (base_offset, epoch, len(data))
    assert batch.last_offset == (expected[-1].offset if expected else base_offset)
    assert batch.compression == (compression if expected else "none")


@given(st.binary(min_size=1, max_size=6))
def test_header_names_that_are_no_text_go_back_as_they_were(name: bytes) -> None:
    as_text = name.decode(errors="surrogateescape")
    data = kafkaseg.encode_batch([Record(None, None, [(as_text, None)], T0)])
    assert name in data
    assert kafkaseg.decode_batch(data).records[0].headers == ((as_text, None),)


samples = st.sampled_from([BATCH_B, BATCH_D, MARKER_E, HORIZON_H, V0, V1_GZIP, V0_LZ4])


@given(samples, st.integers(0, 200), st.integers(1, 255))
def test_a_changed_byte_is_damage_or_stands_outside_the_checksum(data: bytes, at: int, change: int) -> None:
    at %= len(data)
    changed = data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]
    outside = at < 8 or (12 <= at < 16 and data[16] == 2)
    try:
        batch = kafkaseg.decode_batch(changed)
    except kafkaseg.CorruptLogError as error:
        assert error.position == 0  # noqa: PT017
    else:
        assert outside
        assert [r.value for r in batch.records] == [r.value for r in kafkaseg.decode_batch(data).records]


@given(st.binary(max_size=200), st.integers(0, 1 << 70))
def test_any_bytes_are_a_batch_or_damage(data: bytes, position: int) -> None:
    with pytest.raises((kafkaseg.CorruptLogError, kafkaseg.InvalidArgumentError)):
        kafkaseg.decode_batch(data, position)
    with pytest.raises(kafkaseg.CorruptLogError):
        kafkaseg.patch_batch(data, base_offset=1)


def batches_of(path: Path) -> Iterator[tuple[bytes, kafkaseg.DecodedBatch]]:
    data, position = path.read_bytes(), 0
    # A preallocated tail is zeros; nothing else follows the last batch of an undamaged log.
    while data[position : position + 12].strip(b"\0"):
        batch = kafkaseg.decode_batch(data, position)
        yield data[position : position + batch.bytes], batch
        position += batch.bytes


def encoded_again(batch: kafkaseg.DecodedBatch) -> bytes:
    return kafkaseg.encode_batch(
        batch.records,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        leader_epoch=batch.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.control,
        delete_horizon=batch.delete_horizon,
        offset_deltas=[record.offset - batch.base_offset for record in batch.records],
        empty_max_timestamp=batch.max_timestamp,
    )


#: What damaged batches give is compared in tests/compat.
WHOLE_CASES = [case for case in cases().values() if not case.is_damaged]


@pytest.mark.parametrize("whole", WHOLE_CASES, ids=[case.name for case in WHOLE_CASES])
def test_every_batch_of_the_corpus_decodes_to_what_consumers_read(whole: Case) -> None:
    """Goal: all formats, codecs and clients. Method: decode each `.log` of a case batch by batch; plain
    batches with the producer's times are also encoded again, and must come out byte for byte.
    """
    found = {}
    for path in whole.log_dir.glob("*-[0-9]*/*.log"):
        topic, _, partition = path.parent.name.rpartition("-")
        if not partition.isdigit():
            continue
        for data, batch in batches_of(path):
            if not batch.control:
                found.update({(topic, int(partition), record.offset): record for record in batch.records})
            if batch.magic == 2 and batch.compression == "none" and batch.timestamp_type == "create":
                assert encoded_again(batch) == data
    assert found or not whole.records
    for truth in whole.records:
        record = found[truth.topic, truth.partition, truth.offset]
        assert (record.key, record.value, record.headers) == (truth.key, truth.value, truth.headers)
        assert record.timestamp == truth.timestamp


def test_the_corpus_holds_every_format_and_codec() -> None:
    wanted = {(2, codec) for codec in CODECS} | {(1, "gzip"), (1, "none"), (0, "none"), (0, "snappy")}
    seen = set()
    for name in ("codecs-java-3.9.1", "upgraded-v0-v1-v2", "compacted-v0", "compacted-v1"):
        for path in cases()[name].log_dir.glob("*/*.log"):
            seen |= {(batch.magic, batch.compression) for _, batch in batches_of(path)}
    assert wanted - seen == set()


def test_a_wrapper_with_trailing_garbage_is_still_only_a_wrapper() -> None:
    """The samples above are real: the gzip member inside is one that Python inflates."""
    inner = gzip.decompress(V1_GZIP[34:])
    assert len(inner) == 72
    assert kafkaseg.decode_batch(V1_GZIP, max_inflated_bytes=72).records
    with pytest.raises(kafkaseg.LimitExceededError):
        kafkaseg.decode_batch(V1_GZIP, max_inflated_bytes=71)

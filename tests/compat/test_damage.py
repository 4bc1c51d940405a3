"""Damaged directories: what is served, what is reported, and where the error points.

The undamaged log is `unclean-kill9` (or its 2.8.2 twin); each damaged case is a copy with one change, and
case.json says which byte of which batch.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kafkaseg
from tests.arrow import COLUMNS, assert_same_records, records_of
from tests.corpus import Case, Record

PARTITION = "u-0"


@dataclass(frozen=True)
class Damage:
    """The batch that was changed, in a segment of the only damaged partition."""

    file: Path
    position: int
    offsets: range


def scan_case(case: Case, on_corrupt: str) -> kafkaseg.Scan:
    return kafkaseg.scan(
        case.log_dir, topics=sorted(case.topics), columns=COLUMNS, headers=True, on_corrupt=on_corrupt
    )


def undamaged(case: Case, corpus: dict[str, Case]) -> Case:
    return corpus["unclean-2.8.2-kill9" if "2.8.2" in case.name else "unclean-kill9"]


def damage_of(case: Case, origin: Case) -> Damage | None:
    """The damaged batch from the words of case.json; None for a torn tail, which is no damage.

    Its offsets come from the undamaged file: base offset at byte 0, last offset delta at byte 23.
    """
    if "-torn-" in case.name:
        return None
    name, position = re.search(r"(\d{20}\.log) .*\(batch at (\d+)\)", " ".join(case.about["steps"])).groups()
    header = (origin.log_dir / PARTITION / name).read_bytes()[int(position) :][:27]
    base, last_delta = struct.unpack(">q15xi", header)
    return Damage(case.log_dir / PARTITION / name, int(position), range(base, base + last_delta + 1))


def damage_in(report: Any) -> list[tuple[Path, int]]:
    return [(Path(met.file), met.position) for met in report.damage]


def outside(records: list[Record], damage: Damage | None) -> list[Record]:
    return [record for record in records if damage is None or record.offset not in damage.offsets]


def test_the_corpus_has_damage_of_both_kinds(corpus: dict[str, Case]) -> None:
    damaged = [case for case in corpus.values() if case.is_damaged]
    assert len([case for case in damaged if damage_of(case, undamaged(case, corpus))]) >= 3
    assert len([case for case in damaged if not damage_of(case, undamaged(case, corpus))]) >= 2


def test_an_error_names_the_batch_and_a_torn_tail_is_none(
    damaged_case: Case, corpus: dict[str, Case]
) -> None:
    damage = damage_of(damaged_case, undamaged(damaged_case, corpus))
    scan = scan_case(damaged_case, "error")
    if damage is None:
        assert_same_records(records_of(scan.to_arrow()), damaged_case.records)
        return
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        scan.to_arrow()
    assert (Path(caught.value.file), caught.value.position) == (damage.file, damage.position)
    assert caught.value.kind
    assert isinstance(caught.value, kafkaseg.KafkasegError)


def test_stop_ends_the_partition_before_the_damage(damaged_case: Case, corpus: dict[str, Case]) -> None:
    origin = undamaged(damaged_case, corpus)
    damage = damage_of(damaged_case, origin)
    scan = scan_case(damaged_case, "stop")
    found = records_of(scan.to_arrow())
    if damaged_case.name == "unclean-corrupt-last-baseoffset":
        # The broker drops the whole last segment; everything before the changed batch is provably good.
        assert len(found) > len(damaged_case.records)
        assert_same_records(found[: len(damaged_case.records)], damaged_case.records)
    else:
        assert_same_records(found, damaged_case.records)
    if damage is not None:
        wanted = [record for record in origin.records if record.offset < damage.offsets.start]
        assert assert_same_records(found, wanted) > 0
        assert damage_in(scan.report) == [(damage.file, damage.position)]


def test_skip_serves_everything_but_the_damaged_batch(damaged_case: Case, corpus: dict[str, Case]) -> None:
    origin = undamaged(damaged_case, corpus)
    damage = damage_of(damaged_case, origin)
    scan = scan_case(damaged_case, "skip")
    found = records_of(scan.to_arrow())
    wanted = damaged_case.records if damage is None else outside(origin.records, damage)
    assert assert_same_records(found, wanted) > 0
    if damage is None:
        return
    # Some of the damaged batches hold records, others a transaction marker that no consumer sees.
    assert len(found) == len(origin.records) - len([r for r in origin.records if r.offset in damage.offsets])
    assert damage_in(scan.report) == [(damage.file, damage.position)]
    (met,) = scan.report.damage
    assert met.bytes > 61, "at least a batch header was passed over"
    assert met.kind

"""What a scan met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaseg._native import ReportDict

__all__ = ["Damage", "Report"]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a segment file that gave no records, and the check that failed there."""

    file: str
    position: int
    bytes: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Sums of a scan, and every place that gave no records."""

    #: Batches that were good, whether or not any record of them was selected.
    batches: int = 0
    #: Records given out.
    records: int = 0
    #: Bytes of segment files passed.
    bytes: int = 0
    #: Damaged places: at most 10,000 are listed, `damage_count` counts them all.
    damage: tuple[Damage, ...] = ()
    damage_count: int = 0
    #: Torn or preallocated ends of logs that were not closed cleanly; these are no damage.
    tails: tuple[Damage, ...] = ()
    #: Segment files that vanished since the snapshot.
    missing: tuple[str, ...] = ()
    #: Directories that are no live partitions, and why.
    passed: tuple[tuple[str, str], ...] = ()


def from_native(native: ReportDict, passed: list[tuple[str, str]]) -> Report:
    """The report that the native reader gives as a plain dict."""
    return Report(
        batches=native["batches"],
        records=native["records"],
        bytes=native["bytes"],
        damage=_places(native["damage"]),
        damage_count=native["damage_count"],
        tails=_places(native["tails"]),
        missing=tuple(native["missing"]),
        passed=tuple((str(path), why) for path, why in passed),
    )


def _places(rows: list[tuple[str, int, int, str, str]]) -> tuple[Damage, ...]:
    return tuple(Damage(*row) for row in rows)

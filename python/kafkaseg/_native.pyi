# Types of the native module; the Python modules beside it say what things mean.

import os
from collections.abc import Sequence
from typing import Self, TypeAlias, TypedDict, final, type_check_only

__all__ = ["ArrowBatch", "Found", "ScanPlan", "ScanReader", "__version__", "raise_sample"]

__version__: str

_PlaceRow: TypeAlias = tuple[str, int, int, str, str]

@type_check_only
class ReportDict(TypedDict):
    batches: int
    records: int
    bytes: int
    damage: list[_PlaceRow]
    damage_count: int
    tails: list[_PlaceRow]
    missing: list[str]

@final
class ArrowBatch:
    @property
    def num_rows(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class Found:
    def __new__(cls, paths: Sequence[str | os.PathLike[str]]) -> Self: ...
    def topics(self) -> list[str]: ...
    def plan(
        self,
        *,
        topics: Sequence[str] | None,
        partitions: Sequence[int] | None,
        start: int | dict[str, dict[int, int]] | None,
        end: int | dict[str, dict[int, int]] | None,
        columns: Sequence[str],
        **options: object,
    ) -> ScanPlan: ...

@final
class ScanPlan:
    def open(self) -> ScanReader: ...
    def count(self) -> tuple[int, ReportDict]: ...
    def splits(self, parts: int) -> list[ScanPlan]: ...
    def batches(self) -> tuple[ArrowBatch, ReportDict]: ...
    def offsets_for_time(self, query: int) -> list[tuple[str, int, tuple[int, int, int | None] | None]]: ...
    def partitions(self) -> list[tuple[str, int, str, int, int, int, int]]: ...
    def passed(self) -> list[tuple[str, str]]: ...
    @property
    def bytes(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class ScanReader:
    def next_batch(self) -> ArrowBatch | None: ...
    def report(self) -> ReportDict: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def raise_sample(variant: str) -> None: ...
def probe(kind: str, data: bytes | bytearray | str | os.PathLike[str], rounds: int) -> float: ...

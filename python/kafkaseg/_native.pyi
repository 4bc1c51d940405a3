# Types of the native module; the Python modules beside it say what things mean.

import os
from collections.abc import Iterable, Sequence
from typing import Literal, NotRequired, Protocol, Self, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "ArrowBatch",
    "Found",
    "InternalReader",
    "ScanPlan",
    "ScanReader",
    "__version__",
    "decode_batch",
    "decode_control",
    "decode_internal",
    "encode_batch",
    "encode_marker",
    "is_internal",
    "parse_partition_name",
    "parse_segment_name",
    "parse_snapshot_name",
    "patch_batch",
    "probe",
    "raise_sample",
    "read_checkpoint",
    "read_index",
]

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

@type_check_only
class SpecDict(TypedDict):
    base_offset: int
    last_offset: int | None
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool
    control: bool
    append_time: int | None
    delete_horizon: int | None
    empty_max_timestamp: int

@type_check_only
class BatchDict(TypedDict):
    magic: int
    bytes: int
    crc: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    timestamp_type: Literal["create", "append"] | None
    max_timestamp: int
    base_timestamp: NotRequired[int]
    producer_id: NotRequired[int]
    producer_epoch: NotRequired[int]
    base_sequence: NotRequired[int]
    transactional: NotRequired[bool]
    control: NotRequired[bool]
    delete_horizon: NotRequired[int | None]

_RecordRow: TypeAlias = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int, int]

_InternalValue: TypeAlias = (
    bool | int | float | str | bytes | list[_InternalValue] | dict[str, _InternalValue] | None
)
_InternalTuple: TypeAlias = tuple[str, int, _InternalValue, _InternalValue]

@type_check_only
class RecordLike(Protocol):
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def timestamp(self) -> int | None: ...

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
class InternalReader:
    @staticmethod
    def of_plan(plan: ScanPlan, decode_as: str | None) -> InternalReader: ...
    @staticmethod
    def of_snapshot(path: str | os.PathLike[str]) -> InternalReader: ...
    def next_rows(self) -> list[tuple[str | None, int, int, int, _InternalTuple]] | None: ...

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

def decode_batch(
    data: bytes, position: int, max_inflated_bytes: int
) -> tuple[BatchDict, list[_RecordRow]]: ...
def decode_control(key: bytes | None, value: bytes | None) -> _InternalTuple: ...
def decode_internal(topic: str, key: bytes | None, value: bytes | None) -> _InternalTuple: ...
def encode_batch(
    records: Iterable[RecordLike],
    *,
    spec: SpecDict,
    now: int,
    offset_deltas: Sequence[int] | None,
    compression: str,
    level: int | None,
) -> bytes: ...
def encode_marker(commit: bool, coordinator_epoch: int, *, spec: SpecDict, timestamp: int) -> bytes: ...
def is_internal(topic: str) -> bool: ...
def parse_partition_name(
    name: str,
) -> tuple[str, int, Literal["live", "delete", "future", "stray"], str | None, bool] | None: ...
def parse_segment_name(
    name: str,
) -> (
    tuple[
        int,
        Literal["log", "index", "timeindex", "txnindex", "snapshot"],
        Literal["live", "deleted", "cleaned", "swap"],
    ]
    | None
): ...
def parse_snapshot_name(
    name: str,
) -> tuple[int, int, Literal["live", "deleted", "partial"]] | None: ...
def patch_batch(
    data: bytes,
    *,
    base_offset: int | None,
    last_offset: int | None,
    leader_epoch: int | None,
    append_time: bool | None,
    max_timestamp: int | None,
) -> bytes: ...
def raise_sample(variant: str) -> None: ...
def probe(kind: str, data: bytes | bytearray | str | os.PathLike[str], rounds: int) -> float: ...
def read_checkpoint(
    path: str | os.PathLike[str],
) -> list[tuple[int, int]] | dict[tuple[str, int], int] | dict[str, object]: ...
def read_index(
    path: str | os.PathLike[str], verify: bool
) -> tuple[Literal["index", "timeindex", "txnindex", "snapshot"], bytes]: ...

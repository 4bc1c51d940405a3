# Types of the native module; the Python modules beside it say what things mean.

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NotRequired, Protocol, Self, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "ArrowBatch",
    "Found",
    "InternalReader",
    "ManualClock",
    "NativeDir",
    "NativeFetch",
    "NativeLog",
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
    "probe_append",
    "probe_lookup",
    "probe_threads",
    "raise_sample",
    "read_checkpoint",
    "read_index",
    "read_properties",
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

@type_check_only
class AppendDict(TypedDict):
    base_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    bytes: int
    duplicate: bool

@type_check_only
class FetchDict(TypedDict):
    base_offset: int
    segment: int | None
    position: int
    bytes: int
    first_entry_incomplete: bool
    aborted: list[tuple[int, int]] | None
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int

@type_check_only
class SegmentDict(TypedDict):
    base_offset: int
    next_offset: int
    bytes: int
    largest_timestamp: int
    offset_index_entries: int
    time_index_entries: int
    is_active: bool

@type_check_only
class CutDict(TypedDict):
    file: os.PathLike[str]
    position: int
    bytes: int
    kind: str | None
    kept_in: os.PathLike[str] | None

@type_check_only
class RecoveryDict(TypedDict):
    clean: bool
    segments_recovered: list[int]
    bytes_checked: int
    bytes_truncated: int
    cuts: list[CutDict]
    indexes_rebuilt: list[os.PathLike[str]]
    leftovers: list[os.PathLike[str]]
    segments_split: list[int]
    skipped: list[str]

@type_check_only
class DirRecoveryDict(TypedDict):
    clean: bool
    logs: list[tuple[tuple[str, int], RecoveryDict]]
    unreadable: list[tuple[os.PathLike[str], str]]
    ignored: list[str]

_Progress: TypeAlias = Callable[[int, int, int], object]

@final
class ManualClock:
    """A clock that stands still until it is told otherwise."""

    def __new__(cls, now_ms: int) -> ManualClock: ...
    @property
    def now_ms(self) -> int: ...
    def set(self, now_ms: int) -> None: ...
    def advance(self, ms: int) -> None: ...

@final
class NativeFetch:
    def facts(self) -> FetchDict: ...
    def read(self) -> bytes: ...
    def send(
        self, fileno: int, skip: int, timeout: float | None
    ) -> tuple[int, Literal["sendfile", "copy"], bool]: ...

@final
class NativeLog:
    @staticmethod
    def open(
        path: str | os.PathLike[str],
        config: dict[str, str],
        *,
        create: bool,
        kafka_recovery: bool,
        replicated: bool,
        clock: ManualClock | None,
        progress: _Progress | None,
    ) -> NativeLog: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def is_poisoned(self) -> bool: ...
    @property
    def recovery_point(self) -> int: ...
    def config(self) -> dict[str, str]: ...
    def recovery(self) -> RecoveryDict | None: ...
    def damage(self) -> tuple[os.PathLike[str], int, str] | None: ...
    def bounds(self) -> tuple[int, int, int, int, int]: ...
    def append_batch(self, data: bytes, origin: str, leader_epoch: int) -> AppendDict: ...
    def append_stream(
        self,
        stream: object,
        *,
        now_ms: int | None,
        batch_bytes: int,
        compression: str,
        level: int | None,
        leader_epoch: int,
    ) -> tuple[int, int, int, tuple[int, int] | None]: ...
    def fetch(self, offset: int, max_bytes: int, isolation: str, min_one: bool) -> NativeFetch: ...
    def read(
        self, offset: int, max_bytes: int, isolation: str, min_one: bool
    ) -> tuple[NativeFetch, bytes]: ...
    def offset_for_time(self, timestamp: int, isolation: str) -> tuple[int, int, int | None] | None: ...
    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None: ...
    def assign_epoch(self, epoch: int) -> None: ...
    def set_high_watermark(self, offset: int) -> int: ...
    def truncate_to(self, offset: int) -> bool: ...
    def truncate_fully_and_start_at(self, offset: int, log_start: int | None) -> None: ...
    def delete_records(self, before: int) -> int: ...
    def apply_retention(self, now_ms: int | None) -> tuple[int, int, int]: ...
    def purge(self, now_ms: int | None) -> int: ...
    def expire_producers(self, now_ms: int | None) -> None: ...
    def roll(self) -> int: ...
    def flush(self) -> None: ...
    def segments(self) -> list[SegmentDict]: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...

@final
class NativeDir:
    @staticmethod
    def open(
        path: str | os.PathLike[str],
        config: dict[str, str],
        *,
        create: bool,
        kafka_recovery: bool,
        replicated: bool,
        meta: tuple[str, int, str | None] | None,
        clock: ManualClock | None,
        progress: _Progress | None,
    ) -> NativeDir: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def is_started(self) -> bool: ...
    def config(self) -> dict[str, str]: ...
    def meta(self) -> tuple[str | None, int | None, str | None] | None: ...
    def topics(self) -> dict[str, int]: ...
    def partitions(self) -> list[tuple[str, int]]: ...
    def offline(self) -> list[tuple[tuple[str, int], str]]: ...
    def topic_id(self, topic: str) -> str | None: ...
    def topic_config(self, topic: str) -> dict[str, str]: ...
    def partition(self, topic: str, partition: int) -> NativeLog: ...
    def create_topic(
        self, topic: str, partitions: int, config: dict[str, str], topic_id: str | None
    ) -> str: ...
    def grow_topic(self, topic: str, partitions: int) -> None: ...
    def delete_topic(self, topic: str) -> None: ...
    def recovery(self) -> DirRecoveryDict: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def upkeep(self, now_ms: int | None) -> tuple[int, int, list[tuple[tuple[str, int], str]]]: ...
    def flush(self) -> None: ...
    def checkpoint(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...

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
def probe_append(log: NativeLog, batches: list[bytes], total_bytes: int) -> tuple[float, int, int]: ...
def probe_lookup(
    kind: str,
    path: str | os.PathLike[str] | None,
    log: NativeLog | None,
    *,
    first: int,
    span: int,
    lookups: int,
    seed: int,
) -> tuple[float, int]: ...
def probe_threads(log: NativeLog, batch: bytes, threads: int, appends: int) -> float: ...
def probe(kind: str, data: bytes | bytearray | str | os.PathLike[str], rounds: int) -> float: ...
def read_checkpoint(
    path: str | os.PathLike[str],
) -> list[tuple[int, int]] | dict[tuple[str, int], int] | dict[str, object]: ...
def read_properties(path: str | os.PathLike[str]) -> dict[str, str]: ...
def read_index(
    path: str | os.PathLike[str], verify: bool
) -> tuple[Literal["index", "timeindex", "txnindex", "snapshot"], bytes]: ...

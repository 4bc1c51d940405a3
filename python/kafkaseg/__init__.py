"""Kafka's log as a library: reads Kafka's own partition directories, no broker needed."""

from __future__ import annotations

from kafkaseg._native import __version__
from kafkaseg.errors import (
    CorruptLogError,
    DirectoryLockedError,
    InvalidArgumentError,
    KafkasegError,
    LimitExceededError,
    LogChangedError,
    LogFileNotFoundError,
    LogIOError,
    LogPermissionError,
    OffsetOutOfRangeError,
    RejectedError,
    StorageFullError,
    StorageOfflineError,
    UnsupportedFormatError,
)
from kafkaseg.files import (
    MetadataSnapshotName,
    PartitionName,
    SegmentFileName,
    index,
    parse_name,
    read_checkpoint,
)
from kafkaseg.internal import InternalRecord, decode_control, decode_internal, internal_records
from kafkaseg.record import (
    DecodedBatch,
    Record,
    StoredRecord,
    decode_batch,
    encode_batch,
    encode_marker,
    patch_batch,
)
from kafkaseg.report import Damage, Report
from kafkaseg.scan import COLUMNS, OffsetAndTimestamp, Scan, batches, offsets_for_time, scan

__all__ = [
    "COLUMNS",
    "CorruptLogError",
    "Damage",
    "DecodedBatch",
    "DirectoryLockedError",
    "InternalRecord",
    "InvalidArgumentError",
    "KafkasegError",
    "LimitExceededError",
    "LogChangedError",
    "LogFileNotFoundError",
    "LogIOError",
    "LogPermissionError",
    "MetadataSnapshotName",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "PartitionName",
    "Record",
    "RejectedError",
    "Report",
    "Scan",
    "SegmentFileName",
    "StorageFullError",
    "StorageOfflineError",
    "StoredRecord",
    "UnsupportedFormatError",
    "__version__",
    "batches",
    "decode_batch",
    "decode_control",
    "decode_internal",
    "encode_batch",
    "encode_marker",
    "index",
    "internal_records",
    "offsets_for_time",
    "parse_name",
    "patch_batch",
    "read_checkpoint",
    "scan",
]

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
    "InvalidArgumentError",
    "KafkasegError",
    "LimitExceededError",
    "LogChangedError",
    "LogFileNotFoundError",
    "LogIOError",
    "LogPermissionError",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "Record",
    "RejectedError",
    "Report",
    "Scan",
    "StorageFullError",
    "StorageOfflineError",
    "StoredRecord",
    "UnsupportedFormatError",
    "__version__",
    "batches",
    "decode_batch",
    "encode_batch",
    "encode_marker",
    "offsets_for_time",
    "patch_batch",
    "scan",
]

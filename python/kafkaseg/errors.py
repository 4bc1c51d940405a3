"""What can go wrong, by what the caller can do about it. Everything derives from `KafkasegError`."""

from __future__ import annotations

__all__ = [
    "CorruptLogError",
    "DirectoryLockedError",
    "InvalidArgumentError",
    "KafkasegError",
    "LimitExceededError",
    "LogChangedError",
    "LogFileNotFoundError",
    "LogIOError",
    "LogPermissionError",
    "OffsetOutOfRangeError",
    "RejectedError",
    "StorageFullError",
    "StorageOfflineError",
    "UnsupportedFormatError",
]


class KafkasegError(Exception):
    """Any error of kafkaseg."""


class LogIOError(KafkasegError, OSError):
    """The operating system refused; nothing was judged or changed because of it."""


class LogFileNotFoundError(LogIOError, FileNotFoundError):
    """A file or directory does not exist."""


class LogPermissionError(LogIOError, PermissionError):
    """A file or directory may not be read."""


class StorageFullError(KafkasegError, OSError):
    """The disk or the quota is full."""


class StorageOfflineError(KafkasegError):
    """An earlier fsync failed; close the log and open it again."""

    path: str


class DirectoryLockedError(KafkasegError):
    """Another process owns the directory."""

    path: str


class CorruptLogError(KafkasegError):
    """Bytes are damaged: `file` at `position` fails the check that `kind` names."""

    file: str
    position: int
    kind: str


class UnsupportedFormatError(KafkasegError):
    """A magic, codec or version that this release does not know."""

    what: str
    found: str


class LimitExceededError(KafkasegError, ValueError):
    """`what` is over a limit. The size is a lower bound where it is not known exactly."""

    what: str
    size: int
    limit: int


class OffsetOutOfRangeError(KafkasegError):
    """The offset is not in the log."""

    asked: int
    start: int
    end: int


class LogChangedError(KafkasegError):
    """A file was deleted, replaced or cut short since the scan took its snapshot."""

    path: str


class RejectedError(KafkasegError):
    """Good bytes in the wrong state; `code` is Kafka's name of the error.

    `records` lists the failing records as (index, message), where single records are to blame.
    """

    code: str
    records: tuple[tuple[int, str], ...] = ()


class InvalidArgumentError(KafkasegError, ValueError):
    """An argument makes no sense."""

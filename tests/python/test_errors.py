"""Every error of the engine arrives in Python as the exception its caller can act on."""

from __future__ import annotations

import errno
import os
import pickle
import re
import signal
import threading
from pathlib import Path

import pytest

import kafkaseg
from kafkaseg import _native
from tests.corpus import BUNDLED

ROOT = Path(__file__).resolve().parents[2]
PATH = "orders-0/00000000000000000000.log"
OS_ATTRIBUTES = {"filename": PATH}

#: For each sample: its class, what else it must be, and the attributes it carries.
SAMPLES: dict[str, tuple[type[BaseException], type[BaseException], dict[str, object]]] = {
    "Io": (kafkaseg.LogIOError, OSError, {"errno": errno.EIO, **OS_ATTRIBUTES}),
    "Io.NotFound": (
        kafkaseg.LogFileNotFoundError,
        FileNotFoundError,
        {"errno": errno.ENOENT, **OS_ATTRIBUTES},
    ),
    "Io.PermissionDenied": (
        kafkaseg.LogPermissionError,
        PermissionError,
        {"errno": errno.EACCES, **OS_ATTRIBUTES},
    ),
    "NoSpace": (kafkaseg.StorageFullError, OSError, {"errno": errno.ENOSPC, **OS_ATTRIBUTES}),
    "Poisoned": (kafkaseg.StorageOfflineError, kafkaseg.KafkasegError, {"path": PATH}),
    "Locked": (kafkaseg.DirectoryLockedError, kafkaseg.KafkasegError, {"path": PATH}),
    "Corrupt": (
        kafkaseg.CorruptLogError,
        kafkaseg.KafkasegError,
        {"file": PATH, "position": 4096, "kind": "crc"},
    ),
    "Unsupported": (
        kafkaseg.UnsupportedFormatError,
        kafkaseg.KafkasegError,
        {"what": "magic", "found": "3"},
    ),
    "TooLarge": (kafkaseg.LimitExceededError, ValueError, {"what": "record", "size": 9, "limit": 8}),
    "OutOfRange": (
        kafkaseg.OffsetOutOfRangeError,
        kafkaseg.KafkasegError,
        {"asked": 7, "start": 10, "end": 20},
    ),
    "Changed": (kafkaseg.LogChangedError, kafkaseg.KafkasegError, {"path": PATH}),
    "Rejected": (kafkaseg.RejectedError, kafkaseg.KafkasegError, {"code": "INVALID_PRODUCER_EPOCH"}),
    "RejectedRecords": (
        kafkaseg.RejectedError,
        kafkaseg.KafkasegError,
        {
            "code": "INVALID_RECORD",
            "records": ((3, "the topic is compacted and the record has no key"),),
        },
    ),
    "Invalid": (kafkaseg.InvalidArgumentError, ValueError, {}),
    "Interrupted": (KeyboardInterrupt, KeyboardInterrupt, {}),
}


def sample(variant: str) -> BaseException:
    try:
        _native.raise_sample(variant)
    except BaseException as error:  # noqa: BLE001
        return error
    raise AssertionError(f"{variant} raised nothing")


@pytest.mark.parametrize("variant", SAMPLES)
def test_a_variant_has_its_class_and_attributes(variant: str) -> None:
    error = sample(variant)
    expected, base, attributes = SAMPLES[variant]
    assert type(error) is expected
    assert isinstance(error, base)
    assert isinstance(error, kafkaseg.KafkasegError) or expected is KeyboardInterrupt
    assert {name: getattr(error, name) for name in attributes} == attributes
    assert str(error) or expected is KeyboardInterrupt


@pytest.mark.parametrize("variant", [name for name in SAMPLES if name != "Interrupted"])
def test_an_error_crosses_processes_whole(variant: str) -> None:
    error = sample(variant)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    for name, value in SAMPLES[variant][2].items():
        assert getattr(copy, name) == value


def test_every_variant_of_the_engine_has_a_sample() -> None:
    """Goal: no variant is forgotten. Method: the list is read from the engine's source."""
    source = (ROOT / "rust/core/src/error.rs").read_text()
    body = re.search(r"^pub enum Error \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL)[1]
    variants = set(re.findall(r"^    ([A-Z]\w*)(?: \{|\(|,)", body, re.MULTILINE))
    assert len(variants) >= 12
    assert variants == {name.partition(".")[0] for name in SAMPLES}


def test_every_exception_is_public_and_raised_by_some_variant() -> None:
    public = {name for name in kafkaseg.__all__ if name.endswith("Error")}
    assert public == set(kafkaseg.errors.__all__)
    raised = {expected.__name__ for expected, _, _ in SAMPLES.values()}
    assert public - raised == {"KafkasegError"}


def test_the_mapping_has_no_catch_all() -> None:
    """An arm that takes what is left would give a new variant a class that says nothing."""
    source = (ROOT / "rust/py/src/error.rs").read_text()
    body = re.search(r"^fn build\(.*?^\}", source, re.MULTILINE | re.DOTALL)[0]
    arms = re.findall(r"^        (\S.*?) =>", body, re.MULTILINE)
    assert len(arms) == 13
    assert all(arm.startswith("Error::") for arm in arms)


def test_an_unknown_sample_is_an_error_of_its_own() -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match="no error variant"):
        _native.raise_sample("Nothing")


def test_system_errors_read_like_pythons_own(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    with pytest.raises(FileNotFoundError) as caught:
        kafkaseg.scan(path)
    assert str(caught.value).endswith(f"No such file or directory: '{path}'")
    assert caught.value.filename == os.fspath(path)
    assert isinstance(caught.value, kafkaseg.KafkasegError)


def test_a_path_that_is_no_text_is_named_as_python_names_it(tmp_path: Path) -> None:
    path = os.fspath(tmp_path) + os.fsdecode(b"/no-\xff-text")
    with pytest.raises(FileNotFoundError) as caught:
        kafkaseg.scan(path)
    assert caught.value.filename == path


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_a_permission_error(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.index"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(PermissionError) as caught:
        kafkaseg.index(path)
    assert isinstance(caught.value, kafkaseg.KafkasegError)


def test_a_file_where_a_directory_should_be_is_a_system_error() -> None:
    inside = BUNDLED / "names" / "log" / "meta.properties" / "meta.properties"
    with pytest.raises(OSError, match="Not a directory") as caught:
        kafkaseg.read_checkpoint(inside)
    assert (caught.value.errno, type(caught.value)) == (errno.ENOTDIR, kafkaseg.LogIOError)


def test_damage_is_an_error_with_file_and_position() -> None:
    path = BUNDLED / "unclean-corrupt-first-segment" / "log"
    with pytest.raises(kafkaseg.CorruptLogError) as caught:
        kafkaseg.scan(path, topics=["u"]).to_arrow()
    assert caught.value.file.endswith("u-0/00000000000000000000.log")
    assert (caught.value.position, caught.value.kind) == (2233, "crc")


def test_a_vanished_file_is_a_change_not_damage(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    log = partition / "00000000000000000000.log"
    log.write_bytes(kafkaseg.encode_batch([kafkaseg.Record(b"k", b"v")]))
    scan = kafkaseg.scan(partition)
    log.unlink()
    with pytest.raises(kafkaseg.LogChangedError) as caught:
        scan.count()
    assert caught.value.path == os.fspath(log)


def test_what_a_signal_handler_raises_comes_through(tmp_path: Path) -> None:
    """Goal: Ctrl-C is the user's, not ours. Method: a handler that raises its own exception during a scan."""
    partition = tmp_path / "orders-0"
    partition.mkdir()
    batch = kafkaseg.encode_batch([kafkaseg.Record(None, bytes(64))])
    count = 400_000
    (partition / "00000000000000000000.log").write_bytes(
        b"".join(kafkaseg.patch_batch(batch, base_offset=offset) for offset in range(count))
    )

    class StopNow(Exception):  # noqa: N818
        pass

    def stop(*_: object) -> None:
        raise StopNow

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        with pytest.raises(StopNow):  # noqa: PT012
            timer.start()
            while True:
                assert kafkaseg.scan(partition, columns=["offset", "value"]).to_arrow().num_rows == count
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)

"""tests/data is what the brokers wrote, byte for byte, and stays small."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests import corpus
from tests.corpus import BUNDLED, Case

BUNDLED_CASES = [Case(path.parent) for path in sorted(BUNDLED.glob("*/log"))]


@pytest.mark.parametrize("bundled_case", BUNDLED_CASES, ids=lambda case: case.name)
def test_every_byte_is_as_the_broker_left_it(bundled_case: Case) -> None:
    recorded = {name: facts["sha256"] for name, facts in bundled_case.about["files"].items()}
    found = {
        path.relative_to(bundled_case.log_dir).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in bundled_case.log_dir.rglob("*")
        if path.is_file()
    }
    assert found == recorded
    assert len(found) > 5


def test_the_copy_is_small_and_covers_every_kind() -> None:
    names = {case.name for case in BUNDLED_CASES}
    kinds = (
        "-v0",
        "v0-v1-v2",
        "codecs-",
        "txn-",
        "compacted-",
        "delete-records",
        "-torn-",
        "-corrupt-",
        "names",
    )
    assert [kind for kind in kinds if not any(kind in name for name in names)] == []
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*") if path.is_file()) <= 3 << 20
    assert [name for name in names if f"| {name} |" not in (BUNDLED / "README.md").read_text()] == []


def test_ci_refuses_to_test_less_than_it_promises(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KAFKASEG_CORPUS", raising=False)
    monkeypatch.setattr(corpus, "SHARED", tmp_path / "absent")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(FileNotFoundError, match="CI=true"):
        corpus.corpus_dir()
    monkeypatch.delenv("CI")
    assert corpus.corpus_dir() == BUNDLED


def test_a_configured_corpus_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKASEG_CORPUS", os.fspath(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="KAFKASEG_CORPUS"):
        corpus.corpus_dir()

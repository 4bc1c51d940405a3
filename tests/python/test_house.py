"""Files that say the same thing twice say it alike."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def toml(name: str) -> dict:
    return tomllib.loads((ROOT / name).read_text())


def test_every_requirement_is_pinned_exactly() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert len(pins) >= 20
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_-]+==[0-9.]+", pin)] == []


def test_cargo_deny_knows_what_may_be_linked() -> None:
    deny = toml("deny.toml")
    assert set(deny) >= {"advisories", "bans", "licenses", "sources"}
    assert "Apache-2.0" in deny["licenses"]["allow"]
    assert deny["sources"]["unknown-git"] == "deny"


def test_the_wheel_is_named_as_the_workspace_says() -> None:
    project = toml("pyproject.toml")
    assert project["project"]["dynamic"] == ["version"], "the version stands in Cargo.toml only"
    assert project["tool"]["maturin"]["manifest-path"] == "rust/py/Cargo.toml"
    assert (
        toml("rust/py/Cargo.toml")["lib"]["name"] == project["tool"]["maturin"]["module-name"].split(".")[-1]
    )
    assert project["project"]["license"] == toml("Cargo.toml")["workspace"]["package"]["license"]


def test_the_interpreter_floor_is_one_number() -> None:
    floor = toml("pyproject.toml")["project"]["requires-python"].removeprefix(">=")
    abi3 = "abi3-py" + floor.replace(".", "")
    assert abi3 in toml("Cargo.toml")["workspace"]["dependencies"]["pyo3"]["features"]
    assert toml("pyproject.toml")["tool"]["ruff"]["target-version"] == "py" + floor.replace(".", "")
    assert toml("pyproject.toml")["tool"]["mypy"]["python_version"] == floor

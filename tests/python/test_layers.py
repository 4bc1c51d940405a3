"""The arrows of ARCHITECTURE.md point down only, proved over `cargo metadata`."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What each crate must never reach, however many steps away. A name ending in "*" is a prefix.
FORBIDDEN = {
    "kafkaseg-core": {"kafkaseg-scan", "kafkaseg-py", "arrow*", "pyo3*", "tokio*", "parquet*"},
    "kafkaseg-scan": {"kafkaseg-py", "pyo3*", "tokio*"},
    "kafkaseg-py": {"tokio*"},
}
# What each crate does reach: the proof that the walk below sees dependencies at all.
REACHED = {
    "kafkaseg-core": {"thiserror", "rustix"},
    "kafkaseg-scan": {"kafkaseg-core", "arrow-array", "rustix"},
    "kafkaseg-py": {"kafkaseg-core", "kafkaseg-scan", "pyo3", "arrow-array"},
}


@cache
def metadata() -> dict:
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)


def workspace_crates() -> dict[str, str]:
    """Name to package id of every workspace member."""
    members = set(metadata()["workspace_members"])
    return {package["name"]: package["id"] for package in metadata()["packages"] if package["id"] in members}


def reachable(crate: str) -> set[str]:
    """Names of all crates that a build of `crate` links or runs; what only its tests use is left out."""
    names = {package["id"]: package["name"] for package in metadata()["packages"]}
    nodes = {node["id"]: node for node in metadata()["resolve"]["nodes"]}
    start = workspace_crates()[crate]
    seen, pending = {start}, [start]
    while pending:
        for dependency in nodes[pending.pop()]["deps"]:
            built = any(kind["kind"] != "dev" for kind in dependency["dep_kinds"])
            if built and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                pending.append(dependency["pkg"])
    return {names[package] for package in seen - {start}}


def matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def test_every_workspace_crate_has_a_layer() -> None:
    assert set(workspace_crates()) == set(FORBIDDEN) == set(REACHED)


@pytest.mark.parametrize("crate", sorted(FORBIDDEN))
def test_a_crate_reaches_only_layers_below_it(crate: str) -> None:
    found = reachable(crate)
    assert found >= REACHED[crate], "the walk over cargo metadata missed known dependencies"
    assert not {name for name in found for pattern in FORBIDDEN[crate] if matches(name, pattern)}


def test_the_rule_can_fail() -> None:
    """Goal: the check is not vacuous. Method: ask it for something that is known to be there."""
    assert {name for name in reachable("kafkaseg-py") if matches(name, "arrow*")}
    assert {name for name in reachable("kafkaseg-py") if matches(name, "pyo3*")}

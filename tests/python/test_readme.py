"""README.md tells the truth: its snippets run, and its demo output has the shape of the demo's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_every_snippet_runs_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One reader, one session: later snippets use the names of earlier ones."""
    monkeypatch.chdir(ROOT)
    blocks = list(re.finditer(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    assert len(blocks) >= 6
    session: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        line = README[: block.start()].count("\n") + 1
        exec(compile("\n" * line + block[1], "README.md", "exec"), session)  # noqa: S102
    printed = capsys.readouterr().out
    assert "948" in printed
    assert "00000000000000000000.log 2233 " in printed


def test_the_demo_prints_what_the_readme_shows() -> None:
    """Everything but the measured rate and the version is the same on every machine."""
    shown = re.search(r"<!-- demo -->\n```text\n(.*?)```", README, re.DOTALL)[1]
    ran = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert steady(ran) == steady(shown)


def steady(output: str) -> list[str]:
    lines = [line.rstrip() for line in output.strip().splitlines()]
    return [line for line in lines if not line.startswith(("scanned ", "kafkaseg "))]


def test_relative_links_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (ROOT / link).exists(), f"{document.name} links to {link}"

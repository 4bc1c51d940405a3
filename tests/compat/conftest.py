"""One judge for the whole run: starting its JVM is most of what a test with it would take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kafkaseg
from tests.compat.judge import Judge, require_judge

#: Written for the log engine; collected as soon as it has its Python face. Goes away with that.
collect_ignore = [] if hasattr(kafkaseg, "Log") else ["test_engine_judge.py"]


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with require_judge() as running:
        yield running

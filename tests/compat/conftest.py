"""One judge for the whole run: starting its JVM is most of what a test with it would take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.judge import Judge, require_judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    with require_judge() as running:
        yield running

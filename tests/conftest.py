"""Fixtures for all tests: the corpus, one parameter a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import BUNDLED, Case, cases

# A test that asks for one of these fixtures runs once for each case of that kind.
CASE_FIXTURES = {
    "case": lambda _: True,
    "committed_case": lambda case: case.has_committed,
    "offsets_case": lambda case: case.has_offsets_for_times,
    "damaged_case": lambda case: case.is_damaged,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, belongs in CASE_FIXTURES.items():
        if name in metafunc.fixturenames:
            chosen = [case for case in cases().values() if belongs(case)]
            metafunc.parametrize(name, chosen, ids=[case.name for case in chosen])


@pytest.fixture(scope="session")
def corpus() -> dict[str, Case]:
    return cases()


@pytest.fixture(scope="session")
def bundled() -> Path:
    """The copy inside the repository, there on every clone."""
    return BUNDLED

"""kafkaseg's log against Kafka's own: the same operations, the same answers, the same files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compat.judge import Judge
from tests.compat.ours import OurSubject, same
from tests.compat.replay import file_differences, lasting_differences
from tests.compat.scripts import ROLES, JudgeSubject, Script, Step, write_script

#: Scripts in which the two agree to the last byte. The others still find differences: producers that
#: Kafka forgets when it loads a snapshot, files that it leaves empty, the edge of an empty read.
SETTLED = (
    ("embedded", 3),
    ("leader", 1),
    ("leader", 19),
    ("follower", 1),
    ("follower", 3),
    ("follower", 6),
    ("follower", 13),
)
#: With KAFKASEG_JUDGE_SCRIPTS=n the first n scripts of every role instead, settled or not.
ALL = int(os.environ.get("KAFKASEG_JUDGE_SCRIPTS", "0"))
SCRIPTS = [(role, seed) for role in ROLES for seed in range(ALL)] if ALL else SETTLED
#: How files are compared after these operations.
COMPARE = {"close": file_differences, "abandon": lasting_differences}


@pytest.mark.parametrize(("role", "seed"), SCRIPTS)
def test_both_logs_answer_alike_and_leave_the_same_files(
    judge: Judge, tmp_path: Path, role: str, seed: int
) -> None:
    script = write_script(judge, tmp_path / "first", seed, role)
    # Run again beside ours, so that files can be compared at each stop, not only at the last.
    theirs, ours = JudgeSubject(judge, tmp_path / "theirs"), OurSubject(tmp_path / "ours", role)
    for number, step in enumerate(script.steps):
        judged = step.run(theirs)
        found = step.run(ours)
        assert same(found, judged), explain(script, number, found)
        if compare := COMPARE.get(step.operation["op"]):
            assert compare(ours.directory, theirs.directory) == {}, explain(script, number, found)


def explain(script: Script, number: int, found: dict[str, object]) -> str:
    """The steps that led here, the judge's answer and ours."""
    lines = [f"seed {script.seed}, {script.role}, step {number}: {script.steps[0].operation['config']}"]
    lines += [shorten(step) for step in script.steps[max(0, number - 8) : number + 1]]
    return "\n".join([*lines, f"judge: {script.steps[number].answer}", f"ours:  {found}"])


def shorten(step: Step) -> str:
    return " ".join(f"{name}={str(value)[:60]}" for name, value in step.operation.items())

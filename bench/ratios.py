"""Our speed over another's, as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bench import host
from bench.data import ROOT

if TYPE_CHECKING:
    from bench.timing import Timing

RESULTS = ROOT / "bench" / "results"


@dataclass
class Ratio:
    """Our speed over another's."""

    what: str
    against: str
    ratio: float
    best: float
    cpu: float | None
    goal: float | None

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "pass" if self.ratio >= self.goal else "MISS"

    def json(self) -> dict[str, object]:
        return {**asdict(self), "verdict": self.verdict}


def ratio(what: str, against: str, ours: Timing, theirs: Timing, goal: float | None) -> Ratio:
    """How many times faster ours is for the same work."""
    cpu = theirs.cpu_median / ours.cpu_median if ours.cpu and theirs.cpu else None
    return Ratio(what, against, theirs.median / ours.median, theirs.best / ours.best, cpu, goal)


def print_ratios(ratios: list[Ratio], missing: dict[str, str]) -> None:
    width = max([14, *(len(each.what) for each in ratios)])
    print(f"\n{'what':{width}} {'against':24} {'ratio':>7} {'of best':>8} {'of cpu':>7} {'goal':>6}")
    for each in ratios:
        cpu = "" if each.cpu is None else f"{each.cpu:.2f}"
        goal = "" if each.goal is None else f"{each.goal:.2f}"
        figures = f"{each.ratio:7.2f} {each.best:8.2f} {cpu:>7} {goal:>6}"
        print(f"{each.what:{width}} {each.against:24} {figures} {each.verdict}")
    for peer, reason in missing.items():
        print(f"not measured: {peer}: {reason}")


def write(name: str, ratios: list[Ratio], timings: dict[str, Timing], missing: dict[str, str]) -> None:
    """Every round, with the facts of the host, to bench/results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    report = {
        "host": host.facts(),
        "seconds": {each: timing.summary() for each, timing in timings.items()},
        "ratios": [each.json() for each in ratios],
        "not_measured": missing,
    }
    path.write_text(json.dumps(report, indent=1))
    print(f"figures: {path}")

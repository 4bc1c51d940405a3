"""Rounds and their summary."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class UnavailableError(Exception):
    """Why a peer cannot be measured here."""


@dataclass
class Timing:
    """Seconds of the rounds of one contestant; processor seconds too where they can be had."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall: float, cpu: float | None = None) -> None:
        self.wall.append(wall)
        if cpu is not None:
            self.cpu.append(cpu)

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def best(self) -> float:
        return min(self.wall)

    @property
    def cpu_median(self) -> float | None:
        """Steadier than wall time on a busy machine; None for a contestant with several threads."""
        return statistics.median(self.cpu) if self.cpu else None

    def summary(self) -> dict[str, object]:
        kept: dict[str, object] = {"median": self.median, "best": self.best, "wall": self.wall}
        if self.cpu:
            kept["cpu_median"] = self.cpu_median
            kept["cpu"] = self.cpu
        return kept


def clock(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of this thread that one call takes."""
    wall, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - wall, time.thread_time() - cpu

"""Facts about the machine a figure was measured on; every JSON of bench/ carries them."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

import kafkaseg

PACKAGES = ("pyarrow", "confluent-kafka", "numpy", "pytest-benchmark")


def facts() -> dict[str, object]:
    """Processor, memory, kernel, versions, load and time."""
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "caches": caches(),
        "memory_gib": memory_gib(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "java": java_version(),
        "kafkaseg": kafkaseg.__version__,
        **{name: package_version(name) for name in PACKAGES},
    }


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def caches() -> dict[str, str]:
    """Sizes of the caches of the first core, such as {"L2": "1024K"}."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (folder / "type").read_text().strip()
        if kind != "Instruction":
            found[f"L{(folder / 'level').read_text().strip()}"] = (folder / "size").read_text().strip()
    return found


def memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def java_version() -> str | None:
    if shutil.which("java") is None:
        return None
    result = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    lines = (result.stderr or result.stdout).splitlines()
    return lines[0] if lines else None


def package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

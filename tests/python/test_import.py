"""`import kafkaseg` is cheap: no thread, no open file, no package but the standard library."""

from __future__ import annotations

import json
import subprocess
import sys

PROBE = """
import json, os, sys
files = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
import kafkaseg
print(json.dumps({
    "threads": len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1,
    "files": len(os.listdir("/proc/self/fd")) - len(files) if files else 0,
    "modules": sorted({name.partition(".")[0] for name in sys.modules}),
}))
"""


def test_import_starts_nothing_and_needs_nothing() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    facts = json.loads(run.stdout)
    assert "kafkaseg" in facts["modules"]
    assert facts["threads"] == 1
    assert facts["files"] == 0
    heavy = {
        "pyarrow",
        "numpy",
        "pandas",
        "polars",
        "duckdb",
        "rich",
        "asyncio",
        "multiprocessing",
        "pyspark",
    }
    assert heavy & set(facts["modules"]) == set()

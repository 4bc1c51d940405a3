"""Run with the interpreter of an environment that holds nothing but the wheel: it imports and scans."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import kafkaseg


def main() -> None:
    data = Path(sys.argv[1])
    assert importlib.util.find_spec("pyarrow") is None, "this environment is meant to be empty"
    assert "site-packages" in kafkaseg.__file__, f"imported from {kafkaseg.__file__}, not from the wheel"
    found = {}
    for case in ("codecs-java-3.9.1", "upgraded-v0-v1-v2", "txn-4.3.0"):
        topics = [name.name.rpartition("-")[0] for name in (data / case / "log").glob("[a-z]*-[0-9]")]
        scan = kafkaseg.scan(data / case / "log", topics=sorted(set(topics)))
        found[case] = scan.count()
    assert found == {"codecs-java-3.9.1": 948, "upgraded-v0-v1-v2": 695, "txn-4.3.0": 188}, found
    print(f"kafkaseg {kafkaseg.__version__}: {found}")


if __name__ == "__main__":
    main()

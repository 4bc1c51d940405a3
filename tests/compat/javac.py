"""Java sources of this repository, compiled against Kafka's jars into .cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.compat.broker import CACHE, KafkaUnavailableError, kafka_libs

RELEASE = "4.3.0"


def class_path(name: str, sources: Iterable[Path], release: str = RELEASE) -> str:
    """What to give to `java -cp`: the classes of these sources, then Kafka's jars."""
    libs = kafka_libs(release)
    return f"{compiled(name, list(sources), libs)}:{libs}/*"


def compiled(name: str, sources: list[Path], libs: Path) -> Path:
    """The folder with the class files, made anew when a source is newer."""
    classes = CACHE / "classes" / name
    if classes.is_dir() and classes.stat().st_mtime >= max(source.stat().st_mtime for source in sources):
        return classes
    if shutil.which("javac") is None:
        raise KafkaUnavailableError("javac is not installed (a JRE is not enough)")
    classes.parent.mkdir(parents=True, exist_ok=True)
    # Compiled aside and renamed: a second run beside this one never sees half of it.
    with tempfile.TemporaryDirectory(dir=classes.parent) as folder:
        made = Path(folder, "classes")
        command = ["javac", "-cp", f"{libs}/*", "-d", str(made), *map(str, sources)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"javac cannot compile {name}:\n{result.stderr}")
        shutil.rmtree(classes, ignore_errors=True)
        made.rename(classes)
    return classes


def require_class_path(name: str, sources: Iterable[Path]) -> str:
    """As `class_path`, or a skip that says why there is none; CI with a Java must not skip."""
    try:
        return class_path(name, sources)
    except KafkaUnavailableError as reason:
        if os.environ.get("CI") == "true" and shutil.which("java") is not None:
            pytest.fail(f"CI=true and java is installed, but: {reason}")
        pytest.skip(str(reason))

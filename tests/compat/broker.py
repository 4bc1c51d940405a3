"""A real single-node Kafka broker on loopback, from Maven's jars.

    with Broker("4.3.0", tmp_path) as broker:
        broker.create_topic("orders", partitions=2)
        ...                       # any Kafka client at broker.bootstrap; files in broker.data_dir
        broker.stop()             # clean, or broker.kill()

Jars are fetched once into .cache/kafka-<release>/libs. Where java or the jars cannot be had, `kafka_libs`
raises KafkaUnavailableError with the reason, and `require_kafka` turns that into a skip.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.corpus import ROOT

RELEASES = ("4.3.0", "3.9.1")
CACHE = ROOT / ".cache"
START_SECONDS = 60
# A small heap and the quick compiler: these brokers live for seconds.
JVM_OPTIONS = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

#: What DumpLogSegments prints for files in which it finds nothing wrong. 4.3.0 calls the first offset of
#: every segment but the one at 0 non-consecutive; below that come the offsets that it means.
SILENCE = re.compile(
    r"Dumping |.* is empty\.|.* passed sanity check\.|Log starting offset|Snapshot end offset|$"
    r"|Non-consecutive offsets in .*|  -1 is followed by \d+"
)

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kafkaseg.tests</groupId><artifactId>kafka-libs</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


class KafkaUnavailableError(Exception):
    """Why no broker can run here."""


def require_kafka(release: str) -> Path:
    """The jars of a release, or a skip that says why there are none."""
    try:
        return kafka_libs(release)
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


def kafka_libs(release: str) -> Path:
    """The folder with a release's jars, fetched on first use."""
    if shutil.which("java") is None:
        raise KafkaUnavailableError("no real broker: java is not installed")
    libs = CACHE / f"kafka-{release}" / "libs"
    if not libs.is_dir():
        fetch_libs(release, libs)
    return libs


def fetch_libs(release: str, libs: Path) -> None:
    """Copies the jars beside their final place and renames, so that a broken download leaves nothing."""
    if shutil.which("mvn") is None:
        raise KafkaUnavailableError(f"no real broker: mvn is not installed, and {libs} is not filled")
    libs.parent.mkdir(parents=True, exist_ok=True)
    wanted = [
        ("org.apache.kafka", "kafka_2.13", release),
        ("org.apache.kafka", "kafka-tools", release),
        ("org.slf4j", "slf4j-simple", "1.7.36"),
    ]
    with tempfile.TemporaryDirectory(dir=libs.parent) as folder:
        pom = POM.format(dependencies="".join(DEPENDENCY.format(*artifact) for artifact in wanted))
        Path(folder, "pom.xml").write_text(pom)
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            reason = (result.stdout + result.stderr).strip().splitlines()
            raise KafkaUnavailableError(f"no real broker: mvn cannot fetch Kafka {release}: {reason[:1]}")
        with contextlib.suppress(FileExistsError):
            Path(folder, "libs").rename(libs)


def free_ports(count: int) -> list[int]:
    """Loopback ports that are free now; held together so that no two are the same."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Broker:
    """One KRaft node, broker and controller in one process, in folders below `folder`."""

    def __init__(self, release: str, folder: Path, config: Mapping[str, object] | None = None) -> None:
        self.release = release
        self.libs = kafka_libs(release)
        self.folder = folder
        self.data_dir = folder / "data"
        self.config = dict(config or {})
        self.log_file = folder / "broker.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.bootstrap = ""
        self.jvm_options = JVM_OPTIONS

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Starts on new ports; formats the folders the first time. Returns when clients are served."""
        port, controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{port}"
        properties = self.folder / "server.properties"
        self.folder.mkdir(parents=True, exist_ok=True)
        properties.write_text(self.properties(port, controller_port))
        if not (self.data_dir / "meta.properties").exists():
            self.data_dir.mkdir(exist_ok=True)
            cluster = base64.urlsafe_b64encode(b"\x01" + os.urandom(15)).decode().rstrip("=")
            standalone = ["--standalone"] if self.is_4 else []
            self.java("kafka.tools.StorageTool", "format", *standalone, "-t", cluster, "-c", str(properties))
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command("kafka.Kafka", str(properties)), cwd=self.folder, stdout=log, stderr=log
            )
        self.wait_until_served(port)

    @property
    def is_4(self) -> bool:
        return self.release.startswith("4.")

    def properties(self, port: int, controller_port: int) -> str:
        """server.properties: a lone node whose data folder holds nothing but partitions."""
        controller = f"127.0.0.1:{controller_port}"
        quorum = (
            {"controller.quorum.bootstrap.servers": controller}
            if self.is_4
            else {"controller.quorum.voters": f"1@{controller}"}
        )
        config = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.data_dir,
            "metadata.log.dir": self.folder / "metadata",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.retention.ms": -1,
            "auto.create.topics.enable": "false",
            **quorum,
            **self.config,
        }
        return "".join(f"{name}={value}\n" for name, value in config.items())

    def wait_until_served(self, port: int) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                raise RuntimeError(f"Kafka {self.release} ended at start:\n{self.log_tail()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                self.admin().list_topics(timeout=START_SECONDS)
                return
            time.sleep(0.1)
        raise TimeoutError(f"Kafka {self.release} served nobody in {START_SECONDS} s:\n{self.log_tail()}")

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_done():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Kafka {self.release} did not get there:\n{self.log_tail()}")
            time.sleep(0.02)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(
        self, name: str, partitions: int = 1, *, segment_bytes: int | None = None, **config: str
    ) -> None:
        """A topic with one replica; keywords are topic configs with underscores for dots."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        if segment_bytes is not None:
            # 4.x refuses segments below 1 MiB but for this key.
            settings["internal.segment.bytes" if self.is_4 else "segment.bytes"] = str(segment_bytes)
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        # The client must outlive its request.
        admin = self.admin()
        admin.create_topics([topic])[name].result(timeout=START_SECONDS)
        # The controller answers before the broker has made the directories.
        self.wait_until(lambda: all((self.data_dir / f"{name}-{n}").is_dir() for n in range(partitions)))

    def stop(self) -> None:
        """Clean stop: ends with .kafka_cleanshutdown in the data folder."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
            self.process = None

    def kill(self) -> None:
        """kill -9: indexes stay untrimmed, no clean-shutdown marker."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=60)
            self.process = None

    def dump_log(self, files: Iterable[Path]) -> str:
        """What Kafka's own DumpLogSegments prints for these files, record by record."""
        tool = "org.apache.kafka.tools.DumpLogSegments" if self.is_4 else "kafka.tools.DumpLogSegments"
        names = ",".join(str(file) for file in files)
        return self.java(tool, "--deep-iteration", "--files", names)

    def check_indexes(self, files: Iterable[Path], *options: str) -> list[str]:
        """What Kafka's tool finds wrong with these files, given --index-sanity-check or --verify-index-only."""
        tool = "org.apache.kafka.tools.DumpLogSegments" if self.is_4 else "kafka.tools.DumpLogSegments"
        names = ",".join(str(file) for file in files)
        result = subprocess.run(
            self.command(tool, *options, "--files", names), capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr[-2000:]
        lines = (result.stdout + result.stderr).splitlines()
        return [line for line in lines if not SILENCE.match(line)]

    def log_lines(self, start: int = 0) -> list[str]:
        """Lines of the broker's log from a byte on."""
        return self.log_file.read_bytes()[start:].decode(errors="replace").splitlines()

    def command(self, main: str, *arguments: str) -> list[str]:
        return ["java", *self.jvm_options, "-cp", f"{self.libs}/*", main, *arguments]

    def java(self, main: str, *arguments: str) -> str:
        result = subprocess.run(
            self.command(main, *arguments), cwd=self.folder, capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise RuntimeError(f"{main} failed: {result.stdout[-2000:]}{result.stderr[-2000:]}")
        return result.stdout

    def log_tail(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-30:])


def dumped_offsets(dump: str) -> list[int]:
    """Offsets of the records in a deep dump, in order; control records too."""
    return [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", dump, re.MULTILINE)]

"""Configuration has Kafka's names, ranges and defaults, wherever it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkaseg
from tests.engine import fill


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "orders-0"


def test_the_defaults_are_those_of_kafka(path: Path) -> None:
    with kafkaseg.Log.open(path) as log:
        config = log.config
    expected = {
        "segment.bytes": "1073741824",
        "segment.ms": "604800000",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "index.interval.bytes": "4096",
        "segment.index.bytes": "10485760",
        "max.message.bytes": "1048588",
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "message.timestamp.type": "CreateTime",
        "file.delete.delay.ms": "60000",
        "fsync": "interval",
    }
    assert {name: config[name] for name in expected} == expected


def test_a_mapping_a_file_and_keywords_say_the_same(path: Path, tmp_path: Path) -> None:
    properties = tmp_path / "topic.properties"
    properties.write_text(
        "# a comment\nsegment.bytes = 2097152\ncleanup.policy=compact,delete\npreallocate=true\n"
    )
    mapping = {"segment.bytes": 2 << 20, "cleanup.policy": ["compact", "delete"], "preallocate": True}
    keywords = {"segment_bytes": 2 << 20, "cleanup_policy": ("compact", "delete"), "preallocate": True}
    found = []
    for number, (config, options) in enumerate([(mapping, {}), (properties, {}), (None, keywords)]):
        with kafkaseg.Log.open(path.with_name(f"orders-{number}"), config, **options) as log:
            found.append(log.config)
    assert found[0] == found[1] == found[2]
    assert found[0]["segment.bytes"] == "2097152"
    assert found[0]["cleanup.policy"] == "compact,delete"


def test_a_keyword_wins_over_the_mapping(path: Path) -> None:
    with kafkaseg.Log.open(path, {"retention.ms": 5}, retention_ms=7) as log:
        assert log.config["retention.ms"] == "7"


def test_the_broker_s_names_are_understood(path: Path) -> None:
    with kafkaseg.Log.open(path, {"log.retention.hours": 2, "log.segment.bytes": 2 << 20}) as log:
        assert (log.config["retention.ms"], log.config["segment.bytes"]) == ("7200000", "2097152")


def test_what_a_log_is_opened_with_holds_until_it_is_closed(path: Path) -> None:
    with kafkaseg.Log.open(path, {"retention.ms": 5}) as log:
        assert log.config["retention.ms"] == "5"
        with kafkaseg.Log.open(path.with_name("orders-1")) as other:
            assert other.config["retention.ms"] == "604800000", "and for no other"
    with kafkaseg.Log.open(path, fsync="always") as log:
        assert log.config["retention.ms"] == "604800000"
        assert log.config["fsync"] == "always", "also for a log that was there"


def test_what_a_log_is_opened_with_is_added_to_what_its_topic_was_made_with(path: Path) -> None:
    with kafkaseg.LogDir.open(path.parent) as logs:
        logs.create_topic("orders", 1, cleanup_policy="compact", retention_ms=9)
    with kafkaseg.Log.open(path, retention_ms=5) as log:
        assert (log.config["cleanup.policy"], log.config["retention.ms"]) == ("compact", "5")


def test_the_second_log_of_a_directory_has_options_of_its_own(path: Path) -> None:
    clock = kafkaseg.ManualClock(5)
    with kafkaseg.Log.open(path), kafkaseg.Log.open(path.with_name("orders-1"), replicated=True) as other:
        fill(other, 5)
        assert other.high_watermark == 0
        with kafkaseg.Log.open(
            path.with_name("t-0"), clock=clock, message_timestamp_type="LogAppendTime"
        ) as log:
            fill(log, 5)
            assert log.offset_for_time(-3).timestamp == 5


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"segment.byte": 1}, "segment.byte.*segment.bytes"),
        ({"segment.bytes": 1000}, "segment.bytes.*1048576"),
        ({"segment.bytes": "many"}, "segment.bytes"),
        ({"segment.bytes": 1 << 31}, "segment.bytes"),
        ({"compression.type": "brotli"}, "compression.type.*zstd"),
        ({"compression.zstd.level": 23}, "compression.zstd.level"),
        ({"message.timestamp.type": "createtime"}, "message.timestamp.type.*CreateTime"),
        ({"cleanup.policy": "keep"}, "cleanup.policy"),
        ({"preallocate": "perhaps"}, "preallocate"),
        ({"fsync": "sometimes"}, "fsync.*always"),
        ({"min.cleanable.dirty.ratio": 2.0}, "min.cleanable.dirty.ratio"),
    ],
)
def test_a_wrong_name_or_value_is_named(path: Path, config: dict, said: str) -> None:
    kafkaseg.Log.open(path.with_name("other-0")).close()
    with pytest.raises(kafkaseg.InvalidArgumentError, match=said):
        kafkaseg.Log.open(path, config)
    with pytest.raises(kafkaseg.InvalidArgumentError, match=said):
        kafkaseg.LogDir.open(path.parent, config)
    assert not path.exists()
    assert (path.parent / ".kafka_cleanshutdown").exists(), "a wrong argument costs no recovery"
    with kafkaseg.Log.open(path) as log:
        fill(log, 5)


def test_a_missing_properties_file_is_an_error_of_its_own(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        kafkaseg.Log.open(path, tmp_path / "absent.properties")


@pytest.mark.parametrize("recovery", ["", "Kafka", "unsafe"])
def test_there_are_two_ways_of_recovery(path: Path, recovery: str) -> None:
    with pytest.raises(kafkaseg.InvalidArgumentError, match='"safe" or "kafka"'):
        kafkaseg.Log.open(path, recovery=recovery)
    with pytest.raises(kafkaseg.InvalidArgumentError, match='"safe" or "kafka"'):
        kafkaseg.LogDir.open(path.parent, recovery=recovery)


def test_segments_are_preallocated_when_asked_and_trimmed_at_close(path: Path) -> None:
    segment = path / f"{0:020}.log"
    with kafkaseg.Log.open(path, {"preallocate": True, "segment.bytes": 1 << 20}) as log:
        fill(log, 5)
        assert segment.stat().st_size == 1 << 20
        size = log.segments()[0].bytes
    assert segment.stat().st_size == size

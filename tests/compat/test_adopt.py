"""A real broker takes over directories that we wrote, and gives them back.

The same steps run with Kafka's own log in our place: what is asked of ours is what Kafka itself does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkaseg
from tests.arrow import COLUMNS, assert_same_records, records_of
from tests.compat.adopt import (
    Engine,
    JudgeEngine,
    KafkasegEngine,
    Kind,
    changed_files,
    kinds,
    log_lines_of_start,
    some_records,
    suspicious_lines,
)
from tests.compat.broker import Broker, require_kafka
from tests.compat.clients import consume, flush, producer
from tests.compat.judge import Judge
from tests.corpus import Record

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]

LEVELS = ("read_uncommitted", "read_committed")
# Until the engine has its Python face, only Kafka's own log takes the test.
ENGINES = ["kafka", "kafkaseg"] if hasattr(kafkaseg, "LogDir") else ["kafka"]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, judge: Judge) -> Engine:
    return KafkasegEngine() if request.param == "kafkaseg" else JudgeEngine(judge)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    require_kafka("4.3.0")
    with Broker("4.3.0", tmp_path) as running:
        yield running


@pytest.fixture
def adopted(broker: Broker, engine: Engine) -> list[Kind]:
    """Topics that the broker made and we filled; the broker is stopped."""
    made = kinds()
    for kind in made:
        broker.create_topic(kind.name, **kind.config)
    broker.stop()
    engine.append(broker.data_dir, made, is_clean=True)
    for kind in made:
        # The settings were heeded: a log of one segment would prove less than it seems to.
        rolled = len(list(directory(broker, kind).glob("*.log"))) > 1
        assert rolled == ("internal.segment.bytes" in kind.config), kind.name
    return made


def test_a_broker_adopts_what_we_wrote_and_we_read_on(broker: Broker, adopted: list[Kind]) -> None:
    assert index_complaints(broker, adopted) == []
    before = {kind.name: files(broker, kind) for kind in adopted}

    with log_lines_of_start(broker) as lines:
        broker.start()
        consumed = consume_both(broker, adopted)
    assert suspicious_lines(lines) == []
    assert {kind.name: changed_files(before[kind.name], directory(broker, kind)) for kind in adopted} == {
        kind.name: {} for kind in adopted
    }
    assert_read_as_written(consumed, adopted)

    produce(broker, adopted)
    consumed = consume_both(broker, adopted)
    broker.stop()
    assert_scans_as_consumed(broker, adopted, consumed)
    assert index_complaints(broker, adopted) == []


@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_we_adopt_what_a_broker_left_and_give_it_back(broker: Broker, engine: Engine, is_clean: bool) -> None:
    left = kinds()
    for kind in left:
        broker.create_topic(kind.name, **kind.config)
    produce(broker, left)
    consumed = consume_both(broker, left)
    (broker.stop if is_clean else broker.kill)()

    more = [continuation(kind, consumed[LEVELS[0]]) for kind in left]
    engine.append(broker.data_dir, more, is_clean=is_clean)
    assert index_complaints(broker, more) == []

    with log_lines_of_start(broker) as lines:
        broker.start()
        again = consume_both(broker, more)
    assert suspicious_lines(lines) == []
    for level in LEVELS:
        expected = consumed[level] + [record for kind in more for record in kind.records]
        assert assert_same_records(again[level], expected) > len(consumed[level])


def continuation(kind: Kind, consumed: list[Record]) -> Kind:
    """A few more batches for a log that ends where the consumer did.

    Under the leader's own epoch: the broker drops the lines of higher ones from the epoch file.
    """
    more = Kind(kind.name, kind.config)
    last = max(record.offset for record in consumed if record.topic == kind.name)
    # The transaction's marker is the last thing that `produce` causes.
    more.end = last + 2
    for number in range(5):
        more.add(some_records(4, number * 4))
    return more


def directory(broker: Broker, kind: Kind) -> Path:
    return broker.data_dir / kind.directory


def files(broker: Broker, kind: Kind) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory(broker, kind).iterdir() if path.is_file()}


def index_complaints(broker: Broker, kinds: list[Kind]) -> list[str]:
    """What Kafka's own tool has to say about our files; nothing, when all is well."""
    paths = [path for kind in kinds for path in sorted(directory(broker, kind).iterdir())]
    indexes = [path for path in paths if path.suffix in {".index", ".timeindex"}]
    return broker.check_indexes(indexes, "--index-sanity-check") + broker.check_indexes(
        indexes, "--verify-index-only"
    )


def consume_both(broker: Broker, kinds: list[Kind]) -> dict[str, list[Record]]:
    names = [kind.name for kind in kinds]
    return {level: consume(broker, names, level, partitions=1) for level in LEVELS}


def assert_read_as_written(consumed: dict[str, list[Record]], kinds: list[Kind]) -> None:
    written = [record for kind in kinds for record in kind.records]
    assert assert_same_records(consumed[LEVELS[0]], written) == len(written)
    committed = [record for kind in kinds for record in kind.committed]
    assert assert_same_records(consumed[LEVELS[1]], committed) < len(written)


def assert_scans_as_consumed(broker: Broker, kinds: list[Kind], consumed: dict[str, list[Record]]) -> None:
    for level, records in consumed.items():
        scan = kafkaseg.scan(
            broker.data_dir,
            topics=[kind.name for kind in kinds],
            columns=COLUMNS,
            headers=True,
            isolation=level,
        )
        assert assert_same_records(records_of(scan.to_arrow()), records) == len(records)


def produce(broker: Broker, kinds: list[Kind]) -> None:
    """The broker's own appends: plain ones, then a transaction over all topics."""
    client = producer(broker, enable_idempotence=True, compression_type="lz4")
    for kind in kinds:
        for number in range(60):
            client.produce(kind.name, value=b"broker %d" % number, key=b"k", partition=0)
    flush(client)
    client = producer(broker, transactional_id="adopter")
    client.init_transactions(30)
    client.begin_transaction()
    for kind in kinds:
        client.produce(kind.name, value=b"in a transaction", partition=0)
    client.commit_transaction(30)

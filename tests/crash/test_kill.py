"""Appending processes are killed at random; what they had acknowledged is there afterwards.

A kill leaves the page cache, so this tests processes, not power: the simulated disk of the Rust tests
does that. KAFKASEG_SEED repeats a run, KAFKASEG_ROUNDS lengthens it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

import kafkaseg
from tests.engine import consume, python

SEED = int(os.environ.get("KAFKASEG_SEED", str(random.SystemRandom().randrange(1 << 32))))
ROUNDS = int(os.environ.get("KAFKASEG_ROUNDS", "25"))

#: Segments of some hundred batches, so that rolls are killed too.
CONFIG = {"internal.segment.bytes": 20_000, "index.interval.bytes": 500, "retention.ms": -1}

#: Appends without end: the value of a record is its offset. Says what it opened and each base offset that
#: is acknowledged. A batch in three is sent twice, as a producer does that missed the answer.
APPENDER = """
    import json, os, sys, kafkaseg
    path, config, records = sys.argv[1], json.loads(sys.argv[2]), kafkaseg.Record
    tell = lambda text: os.write(1, f"{text}\\n".encode())
    tell("opening")
    log = kafkaseg.Log.open(path, config)
    offset = log.end_offset
    tell(f"opened {offset}")
    while True:
        count = offset % 7 + 1
        batch = [records(None, str(offset + n).encode()) for n in range(count)]
        for _ in range(2 if offset % 3 == 0 else 1):
            info = log.append(batch, producer_id=9, producer_epoch=0, base_sequence=offset)
            assert info.base_offset == offset, (info, offset)
        offset += count
        tell(offset)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fsync", ["never", "always"])
def test_no_acknowledged_record_is_lost_by_a_kill(tmp_path: Path, fsync: str) -> None:
    print(f"KAFKASEG_SEED={SEED}")
    chance = random.Random(f"{SEED}-{fsync}")
    path = tmp_path / "data" / "killed-0"
    config = json.dumps(CONFIG | {"fsync": fsync})
    acknowledged = appended = during_open = 0
    for _ in range(ROUNDS):
        with python(APPENDER, path, config) as child:
            assert child.stdout.readline() == "opening\n"
            if chance.random() < 0.1:
                time.sleep(chance.random() * 0.004)
                during_open += 1
            else:
                opened = int(child.stdout.readline().split()[1])
                assert opened >= acknowledged, f"acknowledged records are gone, seed {SEED}"
                time.sleep(chance.random() * 0.15)
            child.send_signal(signal.SIGKILL)
            for line in child.stdout.read().splitlines():
                if line.isdigit():
                    acknowledged = int(line)
                    appended += 1
        assert child.returncode == -signal.SIGKILL, f"the process ended by itself, seed {SEED}"
    with kafkaseg.Log.open(path, CONFIG) as log:
        assert log.damage is None
        assert log.end_offset >= acknowledged
        found = consume(log)
        assert [int(record.value) for record in found] == list(range(log.end_offset)), f"seed {SEED}"
        assert [record.offset for record in found] == list(range(log.end_offset))
        assert len(log.segments()) > 1
    assert appended > ROUNDS
    print(f"{ROUNDS} kills, {during_open} of them during the opening, {appended} acknowledgements")

"""The judge itself, judged: fed what the corpus's brokers were fed, it writes the files that they wrote.

That holds for every file (.log .index .timeindex .txnindex .snapshot leader-epoch-checkpoint
partition.metadata), byte for byte, in every partition that was not compacted: a log's files follow from its
settings, its batches, how these were grouped into appends, and where it was closed and opened again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.compat.judge import Answer, Judge, JudgedLog
from tests.compat.replay import Partition, RawBatch, batches, file_differences, partitions
from tests.compat.scripts import DIRECTORY, ROLES, JudgeSubject, write_script
from tests.corpus import Case, cases

RELEASES = {"4.3.0", "3.9.1"}
#: Rolls at random points are asked for where the corpus has them.
NO_ROLL = {"internal.segment.bytes": str(2**31 - 1), "segment.ms": str(2**62), "segment.jitter.ms": "0"}
#: Leader epochs that ended with kill -9; all others with a clean stop.
KILLED = {("epochs-4.3.0", 6)}
SCRIPTS = 12
#: What the scripts of each role try between them.
COMMON = {
    *("open", "close", "abandon", "flush", "roll", "run_tasks", "expire_producers"),
    *("read", "offset_for_time", "end_offset_for_epoch"),
    *("delete_records", "apply_retention", "truncate_to", "truncate_fully"),
}
OPERATIONS = {
    "embedded": COMMON | {"append_leader"},
    "leader": COMMON | {"append_leader", "assign_epoch", "set_high_watermark"},
    "follower": COMMON | {"append_follower", "set_high_watermark"},
}
LEADER_ERRORS = {
    *("CORRUPT_MESSAGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "OFFSET_OUT_OF_RANGE"),
    *("INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_TXN_STATE"),
    "TRANSACTION_COORDINATOR_FENCED",
}
ERRORS = {
    "embedded": LEADER_ERRORS,
    "leader": LEADER_ERRORS,
    # Offsets out of order have no name in the protocol: no client causes them.
    "follower": {"CORRUPT_MESSAGE", "OFFSET_OUT_OF_RANGE", "POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"},
}
#: Timestamps that clients set far off; the broker's clock was not there.
SENSIBLE_MS = range(1_600_000_000_000, 4_000_000_000_000)


def replayable(case: Case) -> bool:
    """Written by a release whose log the judge runs, and not rewritten by a cleaner or by hand."""
    derived = case.name.startswith("unclean-") and not case.name.endswith("kill9")
    return case.about["kafka_release"] in RELEASES and "compacted" not in case.name and not derived


def recovered(case: Case) -> bool:
    return case.about["kafka_release"] in RELEASES and (case.expected / "recovered").is_dir()


REPLAYED = {
    f"{case.name}/{each.name[:60]}": each
    for case in cases().values()
    if replayable(case)
    for each in partitions(case)
}
RECOVERED = {
    f"{case.name}/{each.name}": each
    for case in cases().values()
    if recovered(case)
    for each in partitions(case)
}


class Replay:
    """Writes a partition again, as a leader that takes its clients' batches or as a follower."""

    def __init__(self, judge: Judge, directory: Path, partition: Partition, role: str) -> None:
        self.judge = judge
        self.directory = directory
        self.partition = partition
        self.role = role
        self.config = partition.config
        self.rolls_at_random = "segment.jitter.ms" in self.config
        if self.rolls_at_random:
            self.config |= NO_ROLL
        self.now = SENSIBLE_MS.start
        self.is_append_time = False
        self.log = self.open(log_start=partition.start)

    def open(self, **options: object) -> JudgedLog:
        return self.judge.open(
            self.directory, self.config, now=self.now, topic_id=self.partition.topic_id, **options
        )

    def run(self) -> None:
        epochs = list(self.partition.epochs)
        for number, segment in enumerate(self.partition.segments):
            if self.rolls_at_random and number > 0:
                self.log.roll()
            for batch in batches(segment):
                if batch.max_timestamp in SENSIBLE_MS:
                    self.now = batch.max_timestamp
                while epochs and epochs[0][1] <= batch.base_offset:
                    self.begin_epoch(*epochs.pop(0))
                self.append(batch)
        for epoch, start in epochs:
            self.begin_epoch(epoch, start)
        if self.partition.log_start > self.partition.start:
            self.log.delete_records(self.partition.log_start)
        (self.log.abandon if self.partition.is_killed else self.log.close)()

    def begin_epoch(self, epoch: int, start: int) -> None:
        """A lone broker's epoch rises when it starts."""
        if epoch > 0 and self.log.state()["end"] > self.partition.start:
            self.restart(start)
        # DeleteRecords moves the first line of the file; the epoch began where the log did.
        self.log.assign_epoch(epoch, now=self.now)

    def restart(self, end: int) -> None:
        ended = self.log.state()["epochs"][-1]
        if (self.partition.case.name, ended[0]) in KILLED:
            self.log.abandon()
            self.log = self.open(clean=False, recovery_point=ended[1])
        else:
            self.log.close()
            self.log = self.open()
        assert self.log.opened["state"]["end"] == end

    def append(self, batch: RawBatch) -> None:
        if self.role == "follower":
            self.log.append_follower(batch.data, now=self.now, follow=True)
            return
        if batch.is_append_time != self.is_append_time and not batch.is_control:
            self.is_append_time = batch.is_append_time
            kind = "LogAppendTime" if self.is_append_time else "CreateTime"
            self.log.update_config({**self.config, "message.timestamp.type": kind})
        self.log.append_leader(
            batch.as_sent(), epoch=batch.epoch, origin=batch.origin, now=self.now, follow=True
        )


@pytest.mark.parametrize("role", ["leader", "follower"])
@pytest.mark.parametrize("name", REPLAYED)
def test_the_corpus_comes_out_of_the_judge(judge: Judge, tmp_path: Path, name: str, role: str) -> None:
    partition = REPLAYED[name]
    directory = tmp_path / partition.name
    Replay(judge, directory, partition, role).run()
    assert file_differences(directory, partition.path) == {}


@pytest.mark.parametrize("name", RECOVERED)
def test_the_judge_recovers_as_the_broker_did(judge: Judge, tmp_path: Path, name: str) -> None:
    """The broker started on the same killed, torn or damaged files and was then stopped."""
    partition = RECOVERED[name]
    after = Partition(partition.case, partition.case.expected / "recovered" / partition.name)
    directory = tmp_path / partition.name
    shutil.copytree(partition.path, directory)
    now = max(batch.max_timestamp for segment in partition.segments for batch in batches(segment))
    log = judge.open(
        directory,
        partition.config,
        now=now,
        clean=False,
        log_start=partition.checkpointed("log-start-offset-checkpoint", 0),
        recovery_point=partition.recovery_point,
        topic_id=partition.topic_id,
    )
    log.assign_epoch(after.epochs[-1][0])
    log.close()
    assert file_differences(directory, after.path) == {}


@pytest.mark.parametrize("role", ROLES)
def test_a_script_ends_in_the_same_files_every_time(judge: Judge, tmp_path: Path, role: str) -> None:
    """Answers and files follow from the operations and the clock in them alone; and scripts try much."""
    operations, errors, duplicates = set(), set(), 0
    for seed in range(SCRIPTS):
        first, second = tmp_path / f"{seed}-first", tmp_path / f"{seed}-second"
        script = write_script(judge, first, seed, role)
        subject = JudgeSubject(judge, second)
        for step in script.steps:
            assert without_paths(step.run(subject)) == without_paths(step.answer), step.operation
        assert file_differences(second / DIRECTORY, first / DIRECTORY) == {}
        operations |= script.operations
        errors |= script.errors
        duplicates += sum(step.answer.get("duplicate", False) for step in script.steps)
    assert operations >= OPERATIONS[role]
    assert errors >= ERRORS[role]
    if role != "follower":
        assert duplicates > 0


def without_paths(answer: Answer) -> Answer:
    """Some messages name files."""
    return {name: value for name, value in answer.items() if name != "message"}

"""kafkaseg's log behind the judge's operations, so that one script drives both.

This is the one place of the comparison that knows kafkaseg's names.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kafkaseg
from tests.compat.judge import Answer
from tests.compat.scripts import DIRECTORY, TOPIC_ID

CLEAN_MARKER = ".kafka_cleanshutdown"
ISOLATIONS = {"LOG_END": "log_end", "HIGH_WATERMARK": "read_uncommitted", "TXN_COMMITTED": "read_committed"}
CHECKPOINTS = {
    "log_start": "log-start-offset-checkpoint",
    "recovery_point": "recovery-point-offset-checkpoint",
    "high_watermark": "replication-offset-checkpoint",
}
FAR_FUTURE_MS = 1 << 60
#: What the judge calls by this name has no name in the protocol; any refusal of ours will do.
UNNAMED = "UNKNOWN_SERVER_ERROR"


class OurSubject:
    """kafkaseg's log in a folder; "abandon" goes on with a copy, which is what kill -9 leaves."""

    def __init__(self, folder: Path, role: str) -> None:
        self.folder = folder
        self.role = role
        self.lives = 0
        self.log: Any = None
        self.clock: Any = None

    @property
    def directory(self) -> Path:
        return self.folder / DIRECTORY

    def ask(self, operation: str, **arguments: Any) -> Answer:
        now = arguments.pop("now")
        if operation != "open":
            self.clock.set(now)
        try:
            if operation == "open":
                self.open(now, **arguments)
                answer: Answer = {}
            else:
                answer = getattr(self, operation)(**arguments) or {}
        except kafkaseg.OffsetOutOfRangeError as error:
            answer = {"error": "OFFSET_OUT_OF_RANGE", "message": str(error)}
        except kafkaseg.RejectedError as error:
            answer = {"error": error.code, "message": str(error)}
        except (kafkaseg.KafkasegError, ValueError) as error:
            answer = {"error": UNNAMED, "message": f"{type(error).__name__}: {error}"}
        return answer if self.log is None else {**answer, "state": self.state()}

    def state(self) -> dict[str, Any]:
        """Not the recovery point: ours flushes more than Kafka's when a segment rolls."""
        log = self.log
        return {
            "start": log.start_offset,
            "high_watermark": log.high_watermark,
            "last_stable": log.last_stable_offset,
            "end": log.end_offset,
            "segments": len(log.segments()),
            "bytes": sum(segment.bytes for segment in log.segments()),
        }

    # Life of the log.

    def open(
        self, now: int, config: Mapping[str, str], follow: bool, clean: bool = True, **checkpointed: int
    ) -> None:
        """What the judge is told when it opens a log, ours finds in the files beside it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        metadata = self.directory / "partition.metadata"
        if not metadata.exists():
            metadata.write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
        if not clean:
            (self.folder / CLEAN_MARKER).unlink(missing_ok=True)
            for name, value in checkpointed.items():
                (self.folder / CHECKPOINTS[name]).write_text(f"0\n1\norders 0 {value}\n")
        assert follow == (self.role == "embedded")
        self.clock = kafkaseg.ManualClock(now)
        self.log = kafkaseg.Log.open(
            self.directory,
            dict(config),
            clock=self.clock,
            replicated=self.role != "embedded",
            recovery="kafka",
        )

    def close(self) -> None:
        self.log.close()
        self.log = None

    def abandon(self) -> None:
        self.lives += 1
        copy = self.folder.with_name(f"{self.folder.name}-life-{self.lives}")
        shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns(".lock"))
        self.close()
        self.folder = copy

    # Appending.

    def append_leader(self, bytes: str, origin: str, epoch: int, follow: bool) -> Answer:
        assert follow == (self.role == "embedded")
        info = self.log.append_batch(base64.b64decode(bytes), origin=origin.lower(), leader_epoch=epoch)
        return append_answer(info)

    def append_follower(self, bytes: str, epoch: int) -> Answer:
        return append_answer(self.log.append_follower(base64.b64decode(bytes), leader_epoch=epoch))

    def assign_epoch(self, epoch: int) -> None:
        self.log.assign_epoch(epoch)

    # Moving the ends.

    def set_high_watermark(self, offset: int) -> Answer:
        self.log.high_watermark = offset
        return {"high_watermark": self.log.high_watermark}

    def delete_records(self, before: int) -> None:
        self.log.delete_records(before)

    def apply_retention(self) -> Answer:
        return {"deleted": self.log.apply_retention().segments}

    def truncate_to(self, offset: int) -> Answer:
        return {"truncated": self.log.truncate_to(offset)}

    def truncate_fully(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)

    # Background work.

    def roll(self) -> Answer:
        return {"base_offset": self.log.roll()}

    def flush(self) -> None:
        self.log.flush()

    def run_tasks(self, all: bool = False) -> None:
        self.log.purge(FAR_FUTURE_MS if all else None)

    def expire_producers(self) -> None:
        self.log.expire_producers()

    # Looking.

    def read(self, offset: int, max_bytes: int, isolation: str, min_one: bool) -> Answer:
        fetched = self.log.read(offset, max_bytes, isolation=ISOLATIONS[isolation], min_one=min_one)
        answer: Answer = {
            "size": len(fetched.data),
            "sha256": hashlib.sha256(fetched.data).hexdigest(),
            "first_entry_incomplete": fetched.first_entry_incomplete,
        }
        if fetched.data:
            answer |= {
                "offset": fetched.base_offset,
                "segment": fetched.segment,
                "position": fetched.position,
            }
        if fetched.aborted is not None:
            answer["aborted"] = [[each.producer_id, each.first_offset] for each in fetched.aborted]
        return answer

    def offset_for_time(self, timestamp: int) -> Answer:
        found = self.log.offset_for_time(timestamp, isolation="log_end")
        if found is None:
            return {"offset": None}
        return {"offset": found.offset, "timestamp": found.timestamp, "leader_epoch": found.leader_epoch}

    def end_offset_for_epoch(self, epoch: int) -> Answer:
        found = self.log.end_offset_for_epoch(epoch)
        return {"epoch": found and found[0], "offset": found and found[1]}


def append_answer(info: Any) -> Answer:
    answer = {
        "log_append_time": info.log_append_time,
        "log_start": info.log_start_offset,
        "duplicate": info.duplicate,
    }
    if info.bytes > 0:
        # Kafka has no offsets for nothing; ours names the place where it would have been.
        answer |= {"base_offset": info.base_offset, "last_offset": info.last_offset}
    if not info.duplicate:
        # Of a batch that it does not append, Kafka tells the stamp that it had made out for it.
        answer["max_timestamp"] = info.max_timestamp
    return answer


def same(ours: Answer, judged: Answer) -> bool:
    """Whether all that ours says is as judged, and it says as much about failing."""
    if judged.get("error") == UNNAMED:
        return "error" in ours and agrees(ours, judged, "state")
    if "error" in judged or "error" in ours:
        return ours.get("error") == judged.get("error") and agrees(ours, judged, "state")
    return all(agrees(ours, judged, name) for name in ours)


def agrees(ours: Answer, judged: Answer, name: str) -> bool:
    if name != "state":
        return bool(ours[name] == judged.get(name))
    found, expected = ours.get("state", {}), dict(judged.get("state", {}))
    if expected:
        # Kafka's stable offset can fall below the start, to the first of a batch that the start cuts.
        expected["last_stable"] = max(expected["last_stable"], expected["start"])
    return bool(found) == bool(expected) and all(found[key] == expected[key] for key in found)

"""Why runs were lost: what was killed when, and the logs of workers that lived."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from tests.faults.fleet import HASTE, LEASE
from tests.faults.history import Loss

LONGEST_LEASE_MS = round((LEASE + HASTE.lease.grace_seconds) * 1000)


@dataclass(frozen=True)
class Kill:
    at: int  # ms of the store's clock: just before, and just after
    done: int
    crew: str
    target: str
    pid: int


class Cause(StrEnum):
    KILLED = "killed_while_running"
    GIVEN_TO_THE_DEAD = "given_to_a_dead_worker"  # handed over, or claimed by a request that outlived it
    TOO_LATE = "worker_was_too_late"  # a busy machine: it sent no heartbeat, or did not run, for too long
    GIVEN_BACK = "given_back_before_starting"  # a busy machine: the event loop of its worker did not answer
    UNANSWERED = "store_did_not_answer"  # a busy machine: calls of the worker or its heartbeat timed out
    UNEXPLAINED = "unexplained"


class Coroner:
    """Reads the logs of all crews there were, in this folder."""

    def __init__(self, folder: Path, kills: Iterable[Kill]) -> None:
        self._folder = folder
        self._killed: dict[str, Kill] = {}  # by worker
        for kill in kills:
            for worker in self._victims(kill):
                self._killed.setdefault(worker, kill)

    def killer_of(self, loss: Loss) -> Kill | None:
        kill = self._killed.get(loss.worker)
        return kill if kill and kill.at <= loss.noticed else None

    def cause_of(self, loss: Loss) -> Cause:
        if kill := self.killer_of(loss):
            return Cause.KILLED if loss.began <= kill.done else Cause.GIVEN_TO_THE_DEAD
        if loss.act == "expire" and loss.noticed < loss.began + LONGEST_LEASE_MS:
            return Cause.UNEXPLAINED  # whatever its worker logs: it had its lease
        log = self._log_text(loss.worker.partition("-")[0])
        if loss.act == "release" and re.search(rf"given_back .*task={loss.task} fence={loss.fence}\b", log):
            return Cause.GIVEN_BACK
        if re.search(
            rf"(?:lease_lost|came_late|report_refused) .*task={loss.task} fence={loss.fence}\b", log
        ):
            return Cause.TOO_LATE
        near = range(loss.began - LONGEST_LEASE_MS, loss.noticed + LONGEST_LEASE_MS)
        return (
            Cause.UNANSWERED if any(at in near for at in _timeouts(log, loss.worker)) else Cause.UNEXPLAINED
        )

    def _victims(self, kill: Kill) -> set[str]:
        """A supervisor takes all of its workers along, but those whose death it had noticed itself."""
        log = self._log_text(kill.crew)
        if kill.target == "worker":
            return set(re.findall(rf"worker_died worker=(\S+) pid={kill.pid}\b", log))
        died = re.findall(r"worker_died worker=(\S+)", log)
        return set(re.findall(r"worker_started worker=(\S+)", log)) - set(died)

    def _log_text(self, crew: str) -> str:
        return (self._folder / f"{crew}.log").read_text()


def _timeouts(log: str, worker: str) -> Iterator[int]:
    """When a call for this worker was not answered: ms of this machine's clock, which is the store's too."""
    for when in re.findall(
        rf"(?m)^(.{{24}}) \w+ (?:store_unavailable|heartbeat_failed) worker={worker} ", log
    ):
        yield round(datetime.fromisoformat(when).timestamp() * 1000)

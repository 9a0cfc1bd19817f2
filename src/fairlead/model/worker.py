"""A worker as the store knows it, and what it learns from a heartbeat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerStats:
    worker_id: str
    state: str  # active, draining, dead
    capacity: int
    running: int
    seen: int
    reserve: int = 0
    task_types: tuple[str, ...] | None = None  # None: any
    capabilities: tuple[str, ...] = ()
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class LostWorker:
    worker_id: str
    seen: int  # ms
    running: int  # tasks it held


def latest_first(workers: Iterable[WorkerStats]) -> list[WorkerStats]:
    """By when they were seen; one that is met on two pages counts once."""
    known = {worker.worker_id: worker for worker in workers}
    return sorted(known.values(), key=lambda worker: (worker.seen, worker.worker_id), reverse=True)


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker learns from its heartbeat."""

    state: str
    now: int = 0  # ms of the store's clock
    leases: dict[str, int] = field(default_factory=dict)  # task -> ms until which it is yours
    deadlines: dict[str, int] = field(default_factory=dict)  # task -> ms by which it must end
    stopping: dict[str, int] = field(default_factory=dict)  # cancelled task -> ms until which its units wait
    lost: list[str] = field(default_factory=list)  # no longer yours: stop, drop the result
    should_bury: bool = False  # dead workers were not looked for in a while: the caller should do it

    def learn(self, row: Mapping[str, Any]) -> None:
        word, task = row["answer"], row["id"]
        if word == "ok":
            self.leases[task], self.deadlines[task] = row["ends"], row["deadline"]
        elif word == "cancelled":
            self.stopping[task] = row["ends"]
        elif task not in self.lost:
            self.lost.append(task)

    @property
    def cancelled(self) -> list[str]:
        """Stop these, then release them."""
        return list(self.stopping)

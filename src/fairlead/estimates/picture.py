"""What is read of a namespace for a forecast: all of it if it is small, else a part of what waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_TASKS = 4_000  # that wait, and are read
FINENESS = 0.15  # a task that represents others delays a start by at most about this part of its wait
COARSER = 1.5
BARE = "lease:"  # begins the holder of a lease without a task


@dataclass(frozen=True, slots=True)
class Waiting:
    """A task that waits. It represents itself and those behind it up to the next one that was read."""

    sub: str  #: its sub-queue
    tag: int
    seq: int
    task_id: str
    stands_for: int = 1
    arrival: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Something that holds units: a run, or a lease without a task."""

    holder: str
    needs: str
    worker: str | None = None
    started: int = 0
    until: int = 0  #: it ends at the latest
    tier: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    stops: bool = False  #: it was cancelled, and its worker has not stopped it yet


@dataclass(frozen=True, slots=True)
class Listed:
    """A worker."""

    worker_id: str
    profile: str  #: `,type,type,;,capability,`, and `*` for all types
    capacity: int
    reserve: int


@dataclass(frozen=True)
class Picture:
    at: int
    meta: Mapping[str, str]
    policy: Mapping[str, Any]
    workers: Sequence[Listed]
    limits: Mapping[str, Mapping[str, str]]
    waiting: Sequence[Waiting]
    running: Sequence[Run]
    audiences: Mapping[str, str]  #: by route
    fins: Mapping[str, Mapping[str, int]]  #: by place and account
    paused: Sequence[str]

    def queued(self, place: str) -> int:
        return int(self.meta.get(f"queued_{place}", 0))


def ranks_to_read(
    sizes: Sequence[tuple[int, int, int]], slots: int, most: int = MOST_TASKS
) -> list[list[tuple[int, int]]]:
    """Which tasks of each sub-queue are read, from the front, and how many each stands for.

    `sizes` has of each sub-queue how many wait in it, how many in its place, and how many in better ones. The
    further back a task is, the more may stand behind it: that makes its estimate coarser by a part only, as
    long as they are few beside what all slots start until then.
    """
    fineness = FINENESS
    while True:
        read = [list(_ranks(*size, slots, fineness)) for size in sizes]
        if sum(map(len, read)) <= max(most, len(sizes)):
            return read
        fineness *= COARSER


def _ranks(size: int, in_place: int, ahead: int, slots: int, fineness: float) -> Iterator[tuple[int, int]]:
    rank, spread = 0, in_place / size
    while rank < size:
        among_all = ahead + rank * spread
        count = min(size - rank, max(1, int(fineness * among_all / max(1, slots))))
        yield rank, count
        rank += count

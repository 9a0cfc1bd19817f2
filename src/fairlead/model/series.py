"""The last hour: what waited and what happened, in intervals of about ten seconds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from fairlead.model.metrics import quantile
from fairlead.model.priority import NAMED_PRIORITIES
from fairlead.model.stats import Depth

EVERY_SECONDS = 10
LONGEST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Sample:
    """What waited at an instant, and what had been counted by then since the namespace exists."""

    at: int  # ms
    queues: dict[str, Depth]  # by effective priority
    submitted: int
    ended: Counter[str]  # by status
    waits: dict[str, Counter[int]]  # of starts by base priority: by bucket


@dataclass(frozen=True, slots=True)
class Waits:
    """How long tasks had waited that started in an interval."""

    count: int
    p50_seconds: float
    p95_seconds: float


@dataclass(frozen=True, slots=True)
class Point:
    """What waited at the end of an interval, and what happened in it."""

    at: int  # its end, in ms
    seconds: float  # its length: more than ten where samples are missing
    queues: dict[str, Depth]
    submitted: int
    started: int
    completed: int
    failed: int
    cancelled: int
    waits: dict[str, Waits | None]  # None: none started


@dataclass(frozen=True, slots=True)
class Series:
    points: Sequence[Point]
    every_seconds: int = EVERY_SECONDS


def points_of(samples: Sequence[Sample]) -> list[Point]:
    """One for each sample but the first, the oldest first."""
    return [_point(*pair) for pair in pairwise(samples)]


def _point(before: Sample, after: Sample) -> Point:
    ended = after.ended - before.ended
    waits = {name: after.waits[name] - before.waits[name] for name in NAMED_PRIORITIES}
    return Point(
        at=after.at,
        seconds=(after.at - before.at) / 1000,
        queues=after.queues,
        submitted=max(0, after.submitted - before.submitted),
        started=sum(counts.total() for counts in waits.values()),
        completed=ended["completed"],
        failed=ended["failed"] + ended["dead_letter"],
        cancelled=ended["cancelled"],
        waits={name: _waits(counts) for name, counts in waits.items()},
    )


def _waits(counts: Counter[int]) -> Waits | None:
    p50, p95 = quantile(counts, 0.5), quantile(counts, 0.95)
    return None if p50 is None or p95 is None else Waits(counts.total(), p50, p95)

"""How a simulated scheduler did: waits and what follows from them."""

from __future__ import annotations

import msgspec


class Waits(msgspec.Struct, frozen=True):
    """Of the tasks that started, in seconds. A percentile is the wait of one of them."""

    p50: float
    p95: float
    p99: float
    max: float
    mean: float


class Slowdown(msgspec.Struct, frozen=True):
    mean: float
    p99: float


class Fits(msgspec.Struct, frozen=True):
    """How estimates fitted the tasks that had one and did not start at once; None: there were none."""

    coverage_p90: float | None
    median_error_seconds: float | None


class Measures(msgspec.Struct, frozen=True):
    tasks: int
    unstarted: int  #: that could not start in the end: their limit is paused or has size 0
    makespan_seconds: float
    waits: dict[str, Waits | None]  #: by base priority, and of all
    slowdown: Slowdown | None
    utilisation: float
    jain: float | None
    inversions: int
    checks: int  #: searches for the next start that were compared with all that waited
    promoted_share: float
    estimates: Fits | None = None  #: None: they were not asked for


class Bucket(msgspec.Struct, frozen=True):
    """The waits of the tasks that arrived within a part of the time, in seconds; None: none started."""

    at: int  # ms
    count: int
    p50: tuple[float | None, float | None]
    p95: tuple[float | None, float | None]

"""A namespace at a glance, and whether anything has changed since the last look."""

from collections.abc import Hashable
from dataclasses import dataclass

from fairlead.model.stats import Stats


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there are; None: unknown to a tenant."""

    limits: int | None
    jobs: int | None  # that have not ended
    dead_letters: int
    crons: int | None


@dataclass(frozen=True, slots=True)
class Overview:
    at: int  # ms of the store's clock
    stats: Stats
    counts: Counts
    version: Hashable  # another one: a task, a job, a limit, a worker or the forecast has changed

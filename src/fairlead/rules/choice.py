"""The rule.

A free slot goes to the waiting task with the best (effective priority, fair-share tag, arrival) among those
whose limits all have room and whose capabilities this worker has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from fairlead.model.priority import Priority
from fairlead.rules.ledger import Ledger
from fairlead.rules.values import Place, Task, Worker


def choose(
    queued: Iterable[Task],
    worker: Worker,
    running: Collection[Task],
    ledger: Ledger,
    turns: Turns,
    paused_types: Collection[str],
    now: int,
) -> Task | None:
    """The task that `worker`, which runs `running`, starts next."""

    def may_start(task: Task) -> bool:
        return (
            task.type not in paused_types
            and can_serve(worker, task)
            and has_slot(worker, running, task)
            and ledger.has_room(task, now)
        )

    return min(filter(may_start, queued), key=turns.rank, default=None)


def can_serve(worker: Worker, task: Task) -> bool:
    return task.capabilities <= worker.capabilities and (worker.types is None or task.type in worker.types)


def has_slot(worker: Worker, running: Collection[Task], task: Task) -> bool:
    """The reserve is for tasks submitted with high priority, not for promoted ones."""
    if len(running) >= worker.capacity:
        return False
    others = sum(other.base != Priority.HIGH for other in running)
    return task.base == Priority.HIGH or others < worker.capacity - worker.reserve


@dataclass
class Turns:
    """The order within a priority: after `budget` native starts in a row a promoted task goes first.

    Without a budget, under overload all tasks are promoted and the priorities mean nothing.
    """

    budget: int
    streaks: dict[Priority, int] = field(default_factory=lambda: dict.fromkeys(Priority, 0))

    def rank(self, task: Task) -> tuple[int, bool, int, int]:
        """The smallest goes first."""
        priority = task.place.priority
        promoted_first = self.streaks[priority] >= self.budget
        other_turn = task.place.promoted != promoted_first if self.budget else False
        return priority, other_turn, task.tag, task.seq

    def count(self, place: Place) -> None:
        """A task started from `place`."""
        streak = self.streaks[place.priority]
        self.streaks[place.priority] = 0 if place.promoted else min(streak + 1, self.budget)

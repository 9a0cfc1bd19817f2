"""Holds: units kept back for a sub-queue that needs several overlapping limits and would otherwise starve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairlead.model.priority import Priority
from fairlead.rules.values import Policy, Task

LEAST_PAUSE = 1_000  #: ms before a sub-queue that was looked at may ask again


@dataclass(frozen=True)
class Hold:
    sub_queue: str
    priority: Priority
    head: str  #: the task it was made for
    since: int
    units: Mapping[str, int]  #: kept back, by limit

    def keeps_from(self, sub_queue: str | None, priority: Priority) -> bool:
        """All but its own sub-queue and better priorities; a lease without a task is in no sub-queue."""
        return sub_queue != self.sub_queue and priority >= self.priority


def heads(queued: Iterable[Task]) -> dict[str, Task]:
    """The first of each sub-queue."""
    first: dict[str, Task] = {}
    for task in sorted(queued, key=lambda task: (task.tag, task.seq)):
        first.setdefault(task.sub_queue, task)
    return first


@dataclass
class Patience:
    """From when each sub-queue may ask for a hold. A new head starts over."""

    _heads: dict[str, int] = field(default_factory=dict)  #: seq by sub-queue
    asks_at: dict[str, int] = field(default_factory=dict)

    def watch(self, sub_queue: str, head: Task | None, policy: Policy) -> None:
        if head is None:
            self._heads.pop(sub_queue, None)
            self.asks_at.pop(sub_queue, None)
        elif self._heads.get(sub_queue) != head.seq:
            self._heads[sub_queue] = head.seq
            self.asks_at[sub_queue] = head.arrival + (0 if head.place.promoted else policy.hold_after)

    def postpone(self, sub_queue: str, now: int, policy: Policy, lasted: int = 0) -> None:
        """It was considered, or had a hold for `lasted` ms without a start."""
        self.asks_at[sub_queue] = now + max(policy.hold_after, lasted, LEAST_PAUSE)

    def due(self, candidates: Iterable[Task], policy: Policy, now: int) -> list[Task]:
        """The heads that may ask, in the order of asking."""
        due = [head for head in candidates if self.asks_at[head.sub_queue] <= now]
        due.sort(key=lambda head: (self.asks_at[head.sub_queue], head.sub_queue))
        return due[: policy.hold_looks]

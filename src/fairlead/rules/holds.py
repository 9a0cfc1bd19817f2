"""Holds: units kept back for a sub-queue that needs several overlapping limits and would starve otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairlead.priority import Priority
from fairlead.rules.values import Policy, Task


@dataclass(frozen=True)
class Hold:
    sub_queue: str
    type: str
    priority: Priority
    head: str  #: the task it was made for
    needs: Mapping[str, int]  #: all limits of the sub-queue
    units: Mapping[str, int]  #: those kept back

    def keeps_from(self, sub_queue: str | None, priority: Priority) -> bool:
        """Everybody but itself and better priorities; a lease without a task is in no sub-queue."""
        return sub_queue != self.sub_queue and priority >= self.priority


def heads(queued: Iterable[Task]) -> dict[str, Task]:
    """The first of each sub-queue."""
    first: dict[str, Task] = {}
    for task in sorted(queued, key=lambda task: (task.tag, task.seq)):
        first.setdefault(task.sub_queue, task)
    return first


def patience(head: Task, policy: Policy) -> int:
    """When a sub-queue has waited long enough; one that was promoted has."""
    return head.arrival + (0 if head.place.promoted else policy.hold_after)


def impatient(queued: Iterable[Task], policy: Policy, now: int) -> list[Task]:
    """The heads that may ask for a hold, in the order of asking."""
    due = [head for head in heads(queued).values() if patience(head, policy) <= now]
    due.sort(key=lambda head: (patience(head, policy), head.sub_queue))
    return due[: policy.hold_looks]

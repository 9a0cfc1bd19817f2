"""Shares: start-time fair queueing between fair keys, one account per place, in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from fairlead.rules.values import Place, Policy, Task


@dataclass
class Account:
    """Virtual time `v`, and per fair key the tag its next task would get (`fin`), if that is later."""

    v: int = 0
    fin: dict[str, int] = field(default_factory=dict)

    def enter(self, key: str, cost: int, weight: float) -> int:
        tag = max(self.v, self.fin.get(key, self.v))
        self.fin[key] = tag + max(1, math.floor(cost * 1000 / weight))
        return tag

    def start(self, tag: int) -> None:
        self.v = max(self.v, tag)
        self.fin = {key: fin for key, fin in self.fin.items() if fin > self.v}

    def run_dry(self) -> None:
        """The last queued task left: whoever comes next begins a new busy period, even with all others."""
        self.v = max([self.v, *self.fin.values()])
        self.fin.clear()

    def correct(self, key: str, excess: int, weight: float) -> None:
        """A task ran `excess` milliseconds longer than it was charged for."""
        delta = math.floor(excess * 1000 / weight)
        fin = self.fin.get(key, self.v) + delta
        if fin > self.v:
            self.fin[key] = fin
        else:
            self.fin.pop(key, None)


class Books:
    """All accounts, and how long each task type is expected to take."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.accounts: dict[Place, Account] = {place: Account() for place in Place}
        self.expected: dict[str, int] = {}

    def name(self, place: Place) -> Place:
        """With no budget promoted tasks stand in one line with the native ones, so they share the account."""
        return place if self._policy.budget else Place.native(place.priority)

    def account(self, place: Place) -> Account:
        return self.accounts[self.name(place)]

    def cost(self, type: str) -> int:
        return self.expected.get(type, self._policy.unknown_cost)

    def charge(self, task: Task, actual: int) -> None:
        """Replace the expected cost of a task that ran by the actual one."""
        self.account(task.place).correct(task.fair, actual - task.cost, task.weight)

    def learn(self, type: str, actual: int) -> None:
        old = self.expected.get(type, actual)
        self.expected[type] = max(1, old + (actual - old) // 8)

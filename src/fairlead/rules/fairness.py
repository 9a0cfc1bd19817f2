"""Fair shares: start-time fair queueing between accounts, counted in starts, in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.rules.values import Place, Policy

STRIDE = 100  #: of one start, for a thousandth of the usual duration and a weight of 1
USUAL, LEAST_FACTOR, MOST_FACTOR = 1000, 125, 8000  #: thousandths


@dataclass
class Ledger:
    """The virtual time of one place, and per account the tag that its next task gets (`fin`), if later.

    A `fin` is never lowered: the tasks of an account keep their order.
    """

    v: int = 0
    fin: dict[str, int] = field(default_factory=dict)

    def reserve(self, account: str, stride: int, count: int = 1) -> int:
        """The tag of the first of `count` starts, each a stride after the other; all are charged now."""
        tag = max(self.v, self.fin.get(account, self.v))
        self.fin[account] = tag + count * stride
        return tag

    def start(self, tag: int) -> None:
        self.v = max(self.v, tag)
        self.fin = {account: fin for account, fin in self.fin.items() if fin > self.v}

    def run_dry(self) -> None:
        """The last queued task left: the next one begins a new busy period, with all accounts equal."""
        self.v = max([self.v, *self.fin.values()])
        self.fin.clear()


def stride_of(weight: float, factor: int) -> int:
    """How far apart the starts of an account are."""
    return max(1, math.floor(STRIDE * factor / weight))


class Reserved(NamedTuple):
    """The position of the very first step of a job in one place, and the stride between its steps."""

    tag: int
    seq: int
    stride: int

    def position(self, step: int) -> tuple[int, int]:
        return self.tag + step * self.stride, self.seq + step


@dataclass
class Job:
    """A job that has not ended."""

    steps: int
    factor: int  #: of its account when it was submitted
    open: int  #: steps that have not ended
    reserved: dict[Place, Reserved] = field(default_factory=dict)


class Shares:
    """The ledgers of all places, and what a start of each account costs compared with the mean."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.ledgers: dict[Place, Ledger] = {place: Ledger() for place in Place}
        self.pace: dict[str, int] = {}  #: usual microseconds of a run, by account
        self.mean: int | None = None  #: of all runs

    def name(self, place: Place) -> Place:
        """Without a budget promoted and native tasks are in one order, so they share a ledger."""
        return place if self._policy.budget else Place.native(place.priority)

    def ledger(self, place: Place) -> Ledger:
        return self.ledgers[self.name(place)]

    def factor(self, account: str) -> int:
        """What a start of an account costs compared with the mean of all, in thousandths."""
        if not self.mean or account not in self.pace:
            return USUAL
        return max(LEAST_FACTOR, min(MOST_FACTOR, self.pace[account] * 1000 // self.mean))

    def learn(self, account: str, ms: int) -> None:
        """A run took `ms`; this only changes the stride of later submits."""
        actual = max(1, ms) * 1000
        self.mean = actual if self.mean is None else self.mean + (actual - self.mean) // 64
        own = self.pace.get(account)
        self.pace[account] = actual if own is None else own + (actual - own) // 8

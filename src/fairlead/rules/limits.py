"""Limits: how much room there is, and which limits overlap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class Slots:
    """Up to `limit` units at a time."""

    limit: int
    paused: bool = False

    def fits(self, units: int) -> bool:
        """Whether this many units can ever be free."""
        return units <= self.limit

    def accepts(self, units: int) -> bool:
        """Whether a task may need this many; a limit of 0 is closed for now, not too small."""
        return self.limit == 0 or self.fits(units)

    def room(self, used: int, held_back: int) -> int:
        return 0 if self.paused else self.limit - used - held_back


@dataclass
class Rate:
    """`count` units per period, up to `burst` of them at once; units are not given back.

    `tat` (theoretical arrival time, microseconds) is when the whole burst is available again.
    """

    count: int
    period_ms: int
    burst: int
    tat: int = 0
    paused: bool = False

    @property
    def interval(self) -> int:
        """Microseconds in which one unit refills."""
        return max(1, self.period_ms * 1000 // self.count)

    def fits(self, units: int) -> bool:
        return units <= self.burst

    accepts = fits

    def room(self, now: int) -> int:
        if self.paused:
            return 0
        missing = max(self._grown_back_at(now) - now * 1000, 0)
        return min(self.burst, (self.burst * self.interval - missing) // self.interval)

    def take(self, units: int, now: int) -> None:
        self.tat = max(self._grown_back_at(now), now * 1000) + units * self.interval

    def refilled_at(self, units: int, now: int) -> int:
        """The first millisecond at which `units` are available again."""
        return -(((self.burst - units) * self.interval - self._grown_back_at(now)) // 1000)

    def take_over(self, old: Rate, now: int) -> None:
        """It owes the units that the previous rate owes now, up to its own burst.

        Calculated with floats and rounded down to whole microseconds, as in the store.
        """
        debt = max(old._grown_back_at(now) - now * 1000, 0)
        self.tat = now * 1000 + min(
            math.floor(debt / old.interval * self.interval), self.burst * self.interval
        )

    def _grown_back_at(self, now: int) -> int:
        """It owes its burst at most: anything beyond is from before the clock was set back."""
        self.tat = min(self.tat, now * 1000 + self.burst * self.interval)
        return self.tat


Limit = Slots | Rate


class Companions:
    """Limits that were always needed together. Two limits overlap when neither always comes with the other.

    Nested limits never overlap: a task that takes the inner one takes the outer one too. Tasks of different
    capabilities or of several units, and leases without a task, end that: the limit then has no companions.
    """

    def __init__(self) -> None:
        self._with: dict[str, frozenset[str]] = {}
        self._capabilities: dict[str, frozenset[str]] = {}

    def see(self, limits: Mapping[str, int], capabilities: frozenset[str]) -> set[str]:
        """Returns the limits that have fewer companions than before."""
        one_of_each = all(units == 1 for units in limits.values())
        names, fewer = frozenset(limits), set()
        for name in names:
            first = self._capabilities.setdefault(name, capabilities)
            known = self._with.get(name, names - {name})
            self._with[name] = known & names if one_of_each and first == capabilities else frozenset()
            if self._with[name] != known:
                fewer.add(name)
        return fewer

    def copy(self) -> Companions:
        copy = Companions()
        copy._with, copy._capabilities = dict(self._with), dict(self._capabilities)
        return copy

    def see_alone(self, limit: str) -> None:
        self._with[limit] = frozenset()

    def forget(self, limit: str) -> None:
        self._with.pop(limit, None)
        self._capabilities.pop(limit, None)

    def overlap(self, one: str, other: str) -> bool:
        return one not in self._with.get(other, frozenset()) and other not in self._with.get(one, frozenset())

    def overlapping(self, names: list[str]) -> set[str]:
        """Those of `names` that overlap with another of them."""
        return {x for x in names if any(x != y and self.overlap(x, y) for y in names)}

"""How long runs of each kind take, learnt from those that have ended."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fairlead.estimates.histogram import STEP, Distribution, Histogram

MOST_KINDS = 1_000  # by type, tier and size; least recently used ones are forgotten
MOST_NARROW_KINDS = 2_000  # by needs and account too: a new account must not displace a type
ALL = ""  # the kind that all runs belong to
NARROW = "*"  # begins the name of a narrow kind
PRIOR_COUNT = 4.0  # as many durations of the wider kind are added to those of a kind
USUAL_MS, SPREAD = 10_000.0, 1.5  # before anything has ended: median, and standard deviation of the logarithm


def _anything() -> Distribution:
    middle, reach = math.log(USUAL_MS) / STEP, SPREAD / STEP
    buckets = range(round(middle - 3 * reach), round(middle + 3 * reach))
    return Distribution({bucket: math.exp(-(((bucket - middle) / reach) ** 2) / 2) for bucket in buckets})


ANYTHING = _anything()


class RunKind(NamedTuple):
    """What is known of a run before it starts; what says most about how long it takes comes first."""

    task_type: str
    tier: str = ""
    size: str = ""
    needs: str = ""  #: as in the facts of a task: `gpu=1,render=2`
    account: str = ""

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any], tier: str = "") -> RunKind:
        """By the facts of a task."""
        names = ("size_hint", "limits", "fair")
        return cls(facts["type"], tier, *(str(facts.get(name) or "") for name in names))

    def names(self) -> Iterator[str]:
        """Of the kinds that it belongs to, from the widest to the narrowest."""
        yield ALL
        yield self.task_type
        if self.tier:
            yield f"{self.task_type}|{self.tier}"
        if self.size:
            yield f"{self.task_type}|{self.tier}|{self.size}"
        if self.needs:
            yield NARROW + "|".join(self[:4])
        if self.account:
            yield NARROW + "|".join(self)


class Durations:
    def __init__(self) -> None:
        self._wide: OrderedDict[str, Histogram] = OrderedDict()
        self._narrow: OrderedDict[str, Histogram] = OrderedDict()
        self._made: dict[str, Distribution] = {}
        self.changed: set[str] = set()  #: since they were kept

    def learn(self, kind: RunKind, ms: float, at: int) -> None:
        for name in kind.names():
            kinds = self._kinds_like(name)
            kinds.setdefault(name, Histogram()).add(ms, at)
            kinds.move_to_end(name)
            self.changed.add(name)
        self._wide.move_to_end(ALL)
        self._forget(self._wide, MOST_KINDS)
        self._forget(self._narrow, MOST_NARROW_KINDS)
        self._made.clear()

    def of(self, kind: RunKind) -> Distribution:
        """Of a kind that was never seen: that of the narrowest that was."""
        found = ANYTHING
        for name in kind.names():
            histogram = self._kinds_like(name).get(name)
            if histogram is None:
                continue
            if name not in self._made:
                self._made[name] = Distribution.blend(histogram.normal(), found, PRIOR_COUNT)
            found = self._made[name]
        return found

    def of_all(self) -> Distribution:
        return self.of(RunKind(ALL))

    def __len__(self) -> int:
        return len(self._wide) + len(self._narrow)

    def packed_changes(self) -> Mapping[str, Any]:
        """By kind; None: it is forgotten."""
        changes: dict[str, Any] = {}
        for name in sorted(self.changed):
            histogram = self._kinds_like(name).get(name)
            changes[name] = histogram and histogram.packed()
        self.changed.clear()
        return changes

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Durations:
        durations = cls()
        known = {name: Histogram.unpacked(value) for name, value in packed.items()}
        for name in sorted(known, key=lambda name: (name == ALL, known[name].at)):
            durations._kinds_like(name)[name] = known[name]
        return durations

    def _kinds_like(self, name: str) -> OrderedDict[str, Histogram]:
        return self._narrow if name.startswith(NARROW) else self._wide

    def _forget(self, kinds: OrderedDict[str, Histogram], most: int) -> None:
        while len(kinds) > most:
            self.changed.add(kinds.popitem(last=False)[0])

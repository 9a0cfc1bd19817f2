"""How long runs of each kind take, learnt from those that have ended."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.estimates.histogram import STEP, Distribution, Histogram

MOST_KINDS = 1_000  # least recently used ones are forgotten
ALL = ""  # the kind that all runs belong to
PRIOR_COUNT = 4.0  # as many durations of the wider kind are added to those of a kind
USUAL_MS, SPREAD = 10_000.0, 1.5  # before anything has ended: median, and standard deviation of the logarithm


def _anything() -> Distribution:
    middle, reach = math.log(USUAL_MS) / STEP, SPREAD / STEP
    buckets = range(round(middle - 3 * reach), round(middle + 3 * reach))
    return Distribution({bucket: math.exp(-(((bucket - middle) / reach) ** 2) / 2) for bucket in buckets})


ANYTHING = _anything()


def kinds_of(task_type: str, tier: str = "", size: str = "") -> Iterable[str]:
    """From the widest to the narrowest."""
    yield ALL
    yield task_type
    if tier:
        yield f"{task_type}|{tier}"
    if size:
        yield f"{task_type}|{tier}|{size}"


class Durations:
    def __init__(self) -> None:
        self._kinds: OrderedDict[str, Histogram] = OrderedDict()
        self._made: dict[str, Distribution] = {}
        self.changed: set[str] = set()  #: since they were kept

    def learn(self, task_type: str, tier: str, size: str, ms: float, at: int) -> None:
        for kind in kinds_of(task_type, tier, size):
            self._kinds.setdefault(kind, Histogram()).add(ms, at)
            self._kinds.move_to_end(kind)
            self.changed.add(kind)
        self._kinds.move_to_end(ALL)
        while len(self._kinds) > MOST_KINDS:
            self.changed.add(self._kinds.popitem(last=False)[0])
        self._made.clear()

    def of(self, task_type: str, tier: str = "", size: str = "") -> Distribution:
        """Of a kind that was never seen: that of the narrowest that was."""
        found = ANYTHING
        for kind in kinds_of(task_type, tier, size):
            histogram = self._kinds.get(kind)
            if histogram is None:
                continue
            if kind not in self._made:
                self._made[kind] = Distribution.blend(histogram.normal(), found, PRIOR_COUNT)
            found = self._made[kind]
        return found

    def __len__(self) -> int:
        return len(self._kinds)

    def packed_changes(self) -> Mapping[str, Any]:
        """By kind; None: it is forgotten."""
        changes = {
            kind: self._kinds[kind].packed() if kind in self._kinds else None for kind in sorted(self.changed)
        }
        self.changed.clear()
        return changes

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Durations:
        durations = cls()
        known = {kind: Histogram.unpacked(value) for kind, value in packed.items()}
        for kind in sorted(known, key=lambda kind: (kind == ALL, known[kind].at)):
            durations._kinds[kind] = known[kind]
        return durations

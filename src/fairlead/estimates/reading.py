"""How an estimate is read from a forecast: the twin of `of_new` in `store/lua/lib/forecasts.lua`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

HALF, MOST = 0.693, 2.303  # of what ends at random, half have ended by this part of the mean, 90 % by that
LEAST = 50  # ms: nothing that waits is promised to start sooner
HEADER, FIELDS = 4, 4  # values of a curve before its points, and of a point
ANY_LANE = "*"


class Given(NamedTuple):
    """As an event has it (`Knowledge.learn`): in ms, and before p50 and p90 were corrected."""

    p50: int
    p90: int
    at: int
    raw_p50: int
    raw_p90: int
    priority: int


@dataclass(frozen=True, slots=True)
class Need:
    limit: str
    units: int
    room: int
    waiting: int  #: other tasks that wait for it
    size: int | None  #: None: a rate

    @property
    def is_full(self) -> bool:
        return self.room < self.units


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A task that comes now, at this position in the order."""

    at: int
    priority: int
    tag: int
    seq: int
    before: int  #: how many wait in its priority or a better one
    idle: int  #: how many workers wait that serve it
    needs: Sequence[Need] = ()
    lane: str = ANY_LANE

    @property
    def starts_at_once(self) -> bool:
        return self.before < self.idle and not any(need.is_full for need in self.needs)

    @property
    def ahead(self) -> int:
        return max(0, self.before - self.idle)


def estimate_of(new: Newcomer, forecast: Mapping[str, Any] | None) -> Given | None:
    """None when nothing is known."""
    if new.starts_at_once:
        return Given(0, LEAST, new.at, 0, LEAST, new.priority)
    raw = _latest(new, forecast) if forecast else None
    if forecast is None or raw is None:
        return None
    p50, p90 = math.floor(raw[0] + 0.5), math.floor(max(*raw, LEAST) + 0.5)
    return Given(*corrected(forecast["head"], new.priority, p50, p90), new.at, p50, p90, new.priority)


def _latest(new: Newcomer, forecast: Mapping[str, Any]) -> tuple[float, float] | None:
    """What is left on the curve of the lane and on those of the limits, the latest of them."""
    head, place = forecast["head"], f"{new.priority:d}n"
    passed = new.at - head["at"]
    lane = forecast.get(f"{place}:{new.lane}", forecast.get(f"{place}:{ANY_LANE}"))
    if not lane:
        return None
    found = [_left_on(lane, new, passed, new.ahead - lane[0], new.idle == 0)]
    for need in new.needs:
        curve = forecast.get(f"{place}@{need.limit}")
        before = min(new.ahead, need.waiting)
        if curve:
            found.append(_left_on(curve, new, passed, before - curve[0], need.is_full))
        elif curve is not None:  # it is empty
            return None
        elif need.is_full:
            found.append(_left_of_new(need, head["run"], before))
    return max(0, *(p50 for p50, _ in found)), max(p90 for _, p90 in found)


def _left_on(
    curve: Sequence[int], new: Newcomer, passed: int, later: int, is_full: bool
) -> tuple[float, float]:
    """The rest of the wait on a curve, `passed` ms after it was made; `later` tasks are not on it."""
    _, each, longer, soon = curve[:HEADER]
    points = [tuple(curve[at : at + FIELDS]) for at in range(HEADER, len(curve), FIELDS)]
    index = bisect_left(points, (new.tag, new.seq))
    if index == len(points):
        soonest, last, wait = points[0][2:], points[-1][2:], soon if is_full else 0
        p50 = max(last[0] - min(passed, soonest[0]), HALF * wait) + later * each
        return p50, max(last[1] - min(passed, soonest[1]), MOST * wait) + later * longer
    after = points[index]
    if not index:
        return after[2] - passed, after[3] - passed
    before = points[index - 1]
    by = 0 if after[0] > before[0] else 1  # between equal tags by seq
    part = ((new.tag, new.seq)[by] - before[by]) / (after[by] - before[by])
    p50, p90 = (before[at] + part * (after[at] - before[at]) for at in (2, 3))
    return p50 - passed, p90 - passed


def _left_of_new(need: Need, run: int, later: int) -> tuple[float, float]:
    """The wait for a limit that was not full at the time of the forecast, but is now."""
    if need.size is None:
        return 0, 0
    soon = run * need.units / max(1, need.size)
    return HALF * soon + later * soon, MOST * soon + later * soon


def corrected(head: Mapping[str, Any], priority: int, p50: int, p90: int) -> tuple[int, int]:
    length = sum(p50 >= bound for bound in head["lengths"])
    half, most = head["corrections"][priority][length]
    p50 = max(0, math.floor((p50 + LEAST) * half / 1000) - LEAST)
    return p50, max(p50, LEAST, math.floor((p90 + LEAST) * most / 1000) - LEAST)

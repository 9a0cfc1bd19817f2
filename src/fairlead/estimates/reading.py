"""How an estimate is read from a forecast: the twin of `of_new` in `store/lua/lib/forecasts.lua`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fairlead.estimates.curve import GONE_AT, sized, sizes

HALF, MOST = 0.693, 2.303  # of what ends at random, half have ended by this part of the mean, 90 % by that
LEAST = 50  # ms: nothing that waits is promised to start sooner
HEADER, FIELDS = 4 + len(GONE_AT), 5  # values of a curve before its points, and of a point
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
    rank: int  #: how many of these are ahead of it
    idle: int  #: how many workers wait that serve it
    needs: Sequence[Need] = ()
    lane: str = ANY_LANE

    @property
    def starts_at_once(self) -> bool:
        return self.before < self.idle and not any(need.is_full for need in self.needs)


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
    more = new.rank - _expected_ahead(lane, new, passed)
    found = [_left_on(lane, new, passed, more - new.idle, new.idle == 0)]
    for need in new.needs:
        curve = _curve_of(need, place, forecast)
        before = min(new.before, need.waiting)
        if curve:
            more_here = before - max(0.0, curve[0] - _gone(curve, passed))
            found.append(_left_on(curve, new, passed, min(more, more_here), need.is_full))
        elif curve is not None:  # it is empty
            return None
        elif need.is_full:
            name = sized(need.limit, need.units)
            (soon,) = forecast.get(f"soon@{name}", (head["run"] * need.units / max(1, need.size or 1),))
            found.append(_left_of_new(need, soon, before))
    return max(0, *(p50 for p50, _ in found)), max(p90 for _, p90 in found)


def _curve_of(need: Need, place: str, forecast: Mapping[str, Any]) -> Sequence[int] | None:
    names = (f"{place}@{name}" for name in sizes(need.limit, need.units))
    return next((forecast[name] for name in names if name in forecast), None)


def _left_on(
    curve: Sequence[int], new: Newcomer, passed: int, more: float, is_full: bool
) -> tuple[float, float]:
    """The rest of the wait, `passed` ms after a curve was made; `more` tasks are ahead than it expected."""
    _, each, longer, soon = curve[:4]
    _, p50, p90 = _at(curve, new)
    rest = soon if is_full else 0
    return (
        _left_of(p50, passed, HALF * rest, more * each),
        _left_of(p90, passed, MOST * rest, more * longer),
    )


def _left_of(ms: float, passed: int, rest: float, more: float) -> float:
    return max(0, (ms - passed if ms > passed else rest) + more)


def _at(curve: Sequence[int], new: Newcomer) -> Sequence[float]:
    """The rank, p50 and p90 of a position; that of the last point if all are ahead of it."""
    points = [curve[at : at + FIELDS] for at in range(HEADER, len(curve), FIELDS)]
    index = bisect_left([(tag, seq) for tag, seq, *_ in points], (new.tag, new.seq))
    if index in (0, len(points)):
        return points[min(index, len(points) - 1)][2:]
    before, after = points[index - 1], points[index]
    by = 0 if after[0] > before[0] else 1  # between equal tags by seq
    part = ((new.tag, new.seq)[by] - before[by]) / (after[by] - before[by])
    return [one + part * (other - one) for one, other in zip(before[2:], after[2:], strict=True)]


def _expected_ahead(curve: Sequence[int], new: Newcomer, passed: int) -> float:
    rank, _, _ = _at(curve, new)
    return max(0.0, rank - _gone(curve, passed))


def _gone(curve: Sequence[int], passed: int) -> float:
    """How many of those on it have started by now, as it was expected."""
    before_at, before = 0, 0
    for at, count in zip(GONE_AT, curve[4:HEADER], strict=True):
        if passed <= at:
            return (before + (count - before) * (passed - before_at) / (at - before_at)) / 100
        before_at, before = at, count
    return before / 100


def _left_of_new(need: Need, soon: float, later: int) -> tuple[float, float]:
    """The wait for a limit that was not full at the time of the forecast, but is now."""
    if need.size is None:
        return 0, 0
    return HALF * soon + later * soon, MOST * soon + later * soon


def corrected(head: Mapping[str, Any], priority: int, p50: int, p90: int) -> tuple[int, int]:
    length = sum(p50 >= bound for bound in head["lengths"])
    half, most = head["corrections"][priority][length]
    p50 = max(0, math.floor((p50 + LEAST) * half / 1000) - LEAST)
    return p50, max(p50, LEAST, math.floor((p90 + LEAST) * most / 1000) - LEAST)

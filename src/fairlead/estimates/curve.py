"""When tasks start, by their position in the order, as few points (lua/lib/curves.lua)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

EXACT_POINTS, POINTS_APART = 16, 1.15  # the first are all there, then fewer and fewer
LEAST_AHEAD = 20  # tasks ahead of a newcomer, from which on it is known what each of them takes
MOST_LONGER = 3.0
LARGER = 8  # sizes that are tried where nobody waits for as many units
GONE_AT = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)  # ms after the forecast


def sized(limit: str, units: int) -> str:
    """Tasks that need many units of a limit wait longer than those that need few: those that need about as
    many have a curve of their own. Up to 8 units each number has one, and then 10, 12, 14, 16, 20 and so on.
    """
    return f"{limit}#{_size_of(units)}" if units > 1 else limit


def sizes(limit: str, units: int) -> Iterator[str]:
    """The curves that say something about these units, the best first, and then that of all."""
    size = _size_of(units)
    for _ in range(LARGER if units > 1 else 0):
        yield f"{limit}#{size}"
        size = _size_of(size + 1)
    yield limit


def _size_of(units: int) -> int:
    coarseness: int = 2 ** max(0, (units - 1).bit_length() - 3)
    return -(-units // coarseness) * coarseness


class Point(NamedTuple):
    tag: int
    seq: int
    rank: int  #: how many wait ahead of it
    stands_for: int
    starts: Sequence[float]  #: ms, by replica; infinite where nobody knows


@dataclass(frozen=True, slots=True)
class Estimated:
    tag: int
    seq: int
    rank: int
    p50: float
    p90: float


def curve(points: Sequence[Point], ahead: int, soon: float, gone: Sequence[float], most: int) -> list[int]:
    """As it is saved; empty when nobody knows when any of these tasks starts.

    `ahead`: how many wait ahead of a newcomer; `soon`: ms until one of them starts when nothing is free;
    `gone`: how many of those ahead have started at each instant of `GONE_AT`.
    """
    ordered = sorted(points, key=lambda point: point[:2])
    estimated = [one for one in _estimated(ordered) if math.isfinite(one.p90)]
    if not estimated:
        return []
    newcomer = estimated[-1]
    if len(estimated) < len(ordered):  # the end of the line is beyond what was simulated
        newcomer = _extrapolated(newcomer, ordered, len(estimated))
        estimated.append(newcomer)
    each = newcomer.p50 / ahead if ahead >= LEAST_AHEAD else soon
    longer = each * min(MOST_LONGER, newcomer.p90 / newcomer.p50) if newcomer.p50 else each
    chosen = [estimated[index] for index in _chosen(len(estimated), most)]
    values = [
        value for one in chosen for value in (one.tag, one.seq, one.rank, round(one.p50), round(one.p90))
    ]
    return [ahead, round(each), round(longer), round(soon), *(round(100 * count) for count in gone), *values]


def _estimated(ordered: Sequence[Point]) -> list[Estimated]:
    """A task that starts before one ahead of it shows that nothing here holds the latter up any more."""
    from_behind = accumulate((point.starts for point in reversed(ordered)), _earlier)
    starts = list(from_behind)[::-1]
    return [
        Estimated(point.tag, point.seq, point.rank, *quantiles(sorted(some)))
        for point, some in zip(ordered, starts, strict=True)
    ]


def _earlier(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [min(pair) for pair in zip(one, other, strict=True)]


def quantiles(ordered: Sequence[float]) -> tuple[float, float]:
    return ordered[(len(ordered) - 1) // 2], ordered[math.ceil(0.9 * len(ordered)) - 1]


def _extrapolated(last: Estimated, ordered: Sequence[Point], count: int) -> Estimated:
    reached = max(1, sum(point.stands_for for point in ordered[:count]))
    longer = 1 + sum(point.stands_for for point in ordered[count:]) / reached
    return Estimated(*ordered[-1][:3], last.p50 * longer, last.p90 * longer)


def _chosen(count: int, most: int) -> list[int]:
    """The first, then fewer and fewer, and the last."""
    apart = POINTS_APART
    while True:
        indexes, at = [0], 0.0
        while at < count - 1:
            at = at + 1 if at < min(EXACT_POINTS, most // 2) else at * apart
            indexes.append(min(round(at), count - 1))
        if len(indexes) <= most:
            return [after for before, after in pairwise([-1, *indexes]) if after != before]
        apart *= POINTS_APART

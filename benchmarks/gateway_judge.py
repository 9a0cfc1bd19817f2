"""What a replay shows: whether estimates were true, and whether better tasks went first."""

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from benchmarks.figures import Check, Figure, Outcome
from benchmarks.gateway_order import Start, inversions


@dataclass(frozen=True, slots=True)
class Given:
    """An estimate as a client received it, and the wait that followed; seconds."""

    priority: str
    p50: float
    p90: float
    naive: float
    waited: float

    @property
    def within(self) -> bool:
        return self.waited <= self.p90


class Past:
    """What a client can guess with: the mean of the runs that have ended by then."""

    def __init__(self, runs: Iterable[tuple[int, int, int]]) -> None:
        """The end of each, how long it took, and how many units; ms."""
        ended = sorted((end, took / 1000 * units) for end, took, units in runs)
        self._ends = [end for end, _ in ended]
        self._works = [0.0, *accumulate(work for _, work in ended)]

    def guess(self, at: int, ahead: int, slots: int) -> float | None:
        """Seconds; None before the first run has ended."""
        count = bisect_right(self._ends, at)
        return ahead * self._works[count] / count / slots if count else None


def judge_estimates(name: str, given: Sequence[Given], outcome: Outcome, *, errors: bool = False) -> None:
    """`errors`: also those of each priority."""
    if not given:
        outcome.notes.append(f"{name}: nobody waited")
        return
    for priority in ("high", "medium", "low"):
        some = [one for one in given if one.priority == priority]
        if some:
            _waits(f"{name}: {priority}", some, outcome)
            if errors:
                _errors(f"{name}: {priority}, ", some, outcome)
    _waits(f"{name}: all", given, outcome)
    _errors(f"{name}: ", given, outcome)
    outcome.compare(
        f"{name}: error of estimates to that of the naive guess",
        (f"{name}: estimate", "error, median"),
        (f"{name}: naive guess", "error, median"),
        "<= 0.5",
    )


def judge_order(name: str, started: Sequence[Start], outcome: Outcome) -> None:
    passed_by = inversions(started)
    rule = "no task started before a better one that could"
    outcome.checks.append(Check(name, rule, not passed_by, f"{passed_by}"))


def _waits(case: str, given: Sequence[Given], outcome: Outcome) -> None:
    share, waits = statistics.mean(one.within for one in given), [one.waited for one in given]
    outcome.figures += [
        Figure(case, "within p90", f"of {len(given)} that waited", [share], "more"),
        Figure(case, "wait, median", "s", [statistics.median(waits)]),
    ]


def _errors(case: str, given: Sequence[Given], outcome: Outcome) -> None:
    ours = statistics.median(abs(one.p50 - one.waited) for one in given)
    naive = statistics.median(abs(one.naive - one.waited) for one in given)
    outcome.figures += [
        Figure(f"{case}estimate", "error, median", "s", [ours]),
        Figure(f"{case}naive guess", "error, median", "s", [naive]),
    ]

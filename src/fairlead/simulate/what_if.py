"""Past work played again: as the limits are now, and as they might be."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.model.measures import Bucket, Measures
from fairlead.model.priority import Priority
from fairlead.rules.limits import TIER
from fairlead.settings import Rate, Settings, Slots
from fairlead.settings.scheduling import Fairness, Promotion, Scheduling, WorkerSettings
from fairlead.settings.tiers import TierEntry
from fairlead.simulate.replays import NEVER, Replay, measure, percentile, replay
from fairlead.simulate.scenarios import scenario
from fairlead.simulate.traces import Trace, Wants

BUCKETS = 48  # of the waits over time
TRACE = "the past"  # instead of the name of a file


class PastTask(msgspec.Struct, frozen=True):
    """A task that has run. Times are ms; limits are by their names in the store."""

    arrival: int
    duration: int
    task_type: str
    priority: Priority
    limits: Mapping[str, int]
    capabilities: Sequence[str] = ()
    user_id: str | None = None
    tenant: str | None = None
    tier: str | None = None
    size_hint: str | None = None


class Size(msgspec.Struct, frozen=True):
    """What a limit allows: slots, or a rate with its burst."""

    limit: int
    interval_us: int | None = None  # of a rate: in which one unit grows back

    def setting(self) -> Slots | Rate:
        if self.interval_us is None:
            return Slots(limit=self.limit)
        return Rate(count=1_000, period_seconds=self.interval_us / 1_000, burst=self.limit)


class Rules(msgspec.Struct, frozen=True):
    """The settings that decide who goes next; no other setting leaves the server process."""

    promotion: Promotion
    scheduling: Scheduling
    fairness: Fairness
    tiers: dict[str, TierEntry]
    reserve: int = 0

    @classmethod
    def of(cls, settings: Settings) -> Rules:
        parts = (settings.promotion, settings.scheduling, settings.fairness, settings.tiers)
        return cls(*parts, settings.worker.reserve)


class Question(msgspec.Struct, frozen=True):
    """The work of the past in columns, and two sets of limits by numbers that stand for their names."""

    arrivals: list[int]
    durations: list[int]
    bases: list[int]
    wants: list[int]
    owners: list[int]
    kinds: list[Wants]
    people: list[tuple[str, str]]
    rules: Rules
    slots: tuple[int, int]  # as it is, and as it might be
    sizes: tuple[dict[str, Size], dict[str, Size]]

    def trace(self) -> Trace:
        return Trace(
            arrivals=array("q", self.arrivals),
            durations=array("q", self.durations),
            bases=array("b", self.bases),
            wants=array("l", self.wants),
            owners=array("l", self.owners),
            rows=array("q", range(len(self.arrivals))),
            kinds=self.kinds,
            people=self.people,
        )

    def settings(self, number: int) -> Settings:
        slots, rules = self.slots[number], self.rules
        return Settings(
            promotion=rules.promotion,
            scheduling=rules.scheduling,
            fairness=rules.fairness,
            tiers=rules.tiers,
            worker=WorkerSettings(capacity=slots, reserve=min(rules.reserve, slots - 1)),
            limits={name: size.setting() for name, size in self.sizes[number].items()},
        )


class Comparison(msgspec.Struct, frozen=True):
    before: Measures
    after: Measures
    buckets: list[Bucket]


def question_of(
    tasks: Sequence[PastTask],
    rules: Rules,
    slots: tuple[int, int],
    sizes: tuple[Mapping[str, Size], Mapping[str, Size]],
) -> Question:
    """Of tasks in the order of their arrivals. A need for a limit that `sizes` lack is left out."""
    numbers = {name: f"l{number}" for number, name in enumerate(sizes[0])}
    kinds, people = dict[Any, int](), dict[tuple[str, str], int]()
    wants, owners, known = list[int](), list[int](), list[Wants]()
    for line, task in enumerate(tasks, 1):
        needs = {numbers[name]: units for name, units in task.limits.items() if name in numbers}
        key = (task.task_type, *sorted(needs.items()), tuple(task.capabilities), task.tier)
        if key not in kinds:
            kinds[key] = len(known)
            known.append(Wants(task.task_type, needs, frozenset(task.capabilities), task.tier, "", line))
        wants.append(kinds[key])
        owners.append(people.setdefault((task.tenant or "", task.user_id or ""), len(people)))
    before, after = ({numbers[name]: size for name, size in some.items()} for some in sizes)
    return Question(
        arrivals=[task.arrival for task in tasks],
        durations=[task.duration for task in tasks],
        bases=[int(task.priority) for task in tasks],
        wants=wants,
        owners=owners,
        kinds=known,
        people=[*people],
        rules=rules,
        slots=slots,
        sizes=(before, after),
    )


def largest_needs(tasks: Iterable[PastTask]) -> dict[str, int]:
    """By limit, the most units that one task takes."""
    most: dict[str, int] = {}
    for task in tasks:
        for name, units in task.limits.items():
            if not name.startswith(TIER):
                most[name] = max(units, most.get(name, 0))
    return most


def answer(question: Question) -> Comparison:
    trace = question.trace()
    played = [replay(scenario(TRACE, TRACE, trace, question.settings(number))) for number in (0, 1)]
    before, after = map(measure, played)
    return Comparison(before, after, _buckets(trace, played))


def _buckets(trace: Trace, played: Sequence[Replay]) -> list[Bucket]:
    first, span = trace.arrivals[0], max(1, trace.arrivals[-1] - trace.arrivals[0] + 1)
    waits: list[list[list[int]]] = [[[], []] for _ in range(BUCKETS)]
    counts = [0] * BUCKETS
    for number, arrival in enumerate(trace.arrivals):
        bucket = (arrival - first) * BUCKETS // span
        counts[bucket] += 1
        for one, run in zip(waits[bucket], played, strict=True):
            if run.starts[number] != NEVER:
                one.append(run.starts[number] - arrival)
    starts = (first + span * number // BUCKETS for number in range(BUCKETS))
    return [
        Bucket(at, count, _percentiles(pair, 50), _percentiles(pair, 95))
        for at, count, pair in zip(starts, counts, waits, strict=True)
    ]


def _percentiles(pair: Sequence[list[int]], percent: float) -> tuple[float | None, float | None]:
    before, after = (percentile(sorted(waits), percent) / 1000 if waits else None for waits in pair)
    return before, after

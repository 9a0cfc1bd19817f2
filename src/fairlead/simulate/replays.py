"""Plays a scenario, and measures it."""

from __future__ import annotations

import csv
import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from fairlead.errors import InvalidInput
from fairlead.model.measures import Fits, Measures, Slowdown, Waits
from fairlead.model.priority import Priority
from fairlead.settings.tiers import VICTIM
from fairlead.simulate.observed import ObservedSimulation, Observer
from fairlead.simulate.scenarios import Scenario

LEAST_RUN = 10_000  #: ms: shorter runs do not make a slowdown larger
NEVER = -1
REPORT_EVERY = 1_000  # starts

Progress = Callable[[int], None]  #: called with the number of starts


@dataclass(frozen=True)
class Estimates:
    """What each task was given at its arrival, in milliseconds; -1: nothing."""

    p50: array[int]
    p90: array[int]


@dataclass(frozen=True)
class Replay:
    """When each task started and ended, in milliseconds; -1: never."""

    scenario: Scenario
    starts: array[int]
    ends: array[int]
    inversions: int
    checks: int
    estimates: Estimates | None = None


def replay(
    scenario: Scenario,
    seed: int = 0,
    progress: Progress = lambda _: None,
    observer: Observer | None = None,
) -> Replay:
    count = len(scenario.trace)
    starts, ends = array("q", [NEVER]) * count, array("q", [NEVER]) * count

    def ended(number: int, at: int) -> None:
        ends[number] = at
        if observer:
            observer.ended(number, at)

    simulation = ObservedSimulation(scenario.snapshot, observer, arrivals=scenario.tasks(), ended=ended)
    if scenario.settings.tiers.get(VICTIM) == "random":
        simulation.draw_victims(random.Random(seed))
    for done, (number, at) in enumerate(simulation.starts(), 1):
        starts[number] = at
        if observer:
            observer.started(number, at)
        if done % REPORT_EVERY == 0:
            progress(done)
    return Replay(scenario, starts, ends, simulation.inversions, simulation.checks)


def measure(played: Replay) -> Measures:
    trace, count = played.scenario.trace, len(played.starts)
    started = [number for number in range(count) if played.starts[number] != NEVER]
    waits = array("q", (played.starts[number] - trace.arrivals[number] for number in started))
    runs = array("q", (played.ends[number] - played.starts[number] for number in started))
    by_base: list[array[int]] = [array("q") for _ in Priority]
    for number, wait in zip(started, waits, strict=True):
        by_base[trace.bases[number]].append(wait)
    slowdowns = array(
        "d", (max(1.0, (wait + run) / max(run, LEAST_RUN)) for wait, run in zip(waits, runs, strict=True))
    )
    makespan = max(played.ends) - trace.arrivals[0] if started else 0
    slots = played.scenario.slots
    return Measures(
        tasks=count,
        unstarted=count - len(started),
        makespan_seconds=makespan / 1000,
        waits={base.word: _waits(by_base[base]) for base in Priority} | {"all": _waits(waits)},
        slowdown=_slowdown(slowdowns),
        utilisation=sum(runs) / (makespan * slots) if makespan else 0.0,
        jain=_jain(played.scenario, started, slowdowns),
        inversions=played.inversions,
        checks=played.checks,
        promoted_share=_promoted(played, started) / len(started) if started else 0.0,
        estimates=_fits(played, started) if played.estimates else None,
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that this percentage of the values does not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1).__trunc__()]


def _waits(waits: array[int]) -> Waits | None:
    if not waits:
        return None
    ordered = sorted(waits)
    p50, p95, p99 = (percentile(ordered, percent) / 1000 for percent in (50, 95, 99))
    return Waits(p50, p95, p99, ordered[-1] / 1000, sum(ordered) / len(ordered) / 1000)


def _slowdown(slowdowns: array[float]) -> Slowdown | None:
    if not slowdowns:
        return None
    return Slowdown(sum(slowdowns) / len(slowdowns), percentile(sorted(slowdowns), 99))


def _jain(scenario: Scenario, started: Sequence[int], slowdowns: array[float]) -> float | None:
    """Jain's index of the users, each with 1 / its mean slowdown: 1 if all are slowed down alike."""
    trace = scenario.trace
    totals, counts = [0.0] * len(trace.people), [0] * len(trace.people)
    for number, slowdown in zip(started, slowdowns, strict=True):
        totals[trace.owners[number]] += slowdown
        counts[trace.owners[number]] += 1
    speeds = [count / total for total, count in zip(totals, counts, strict=True) if count]
    squares = sum(speed * speed for speed in speeds)
    return sum(speeds) ** 2 / (len(speeds) * squares) if speeds else None


def _promoted(played: Replay, started: Sequence[int]) -> int:
    """Tasks that started after they had been promoted."""
    trace, policy = played.scenario.trace, played.scenario.snapshot.policy
    after = {Priority.HIGH: 0, Priority.MEDIUM: policy.medium_to_high, Priority.LOW: policy.low_to_medium}
    return sum(
        played.starts[number] - trace.arrivals[number] >= after[trace.bases[number]] > 0  # type: ignore[index]
        for number in started
    )


def _fits(played: Replay, started: Sequence[int]) -> Fits:
    given = played.estimates
    assert given
    waits = {number: played.starts[number] - played.scenario.trace.arrivals[number] for number in started}
    waited = [number for number in started if waits[number] and given.p90[number] != NEVER]
    if not waited:
        return Fits(None, None)
    within = sum(waits[number] <= given.p90[number] for number in waited)
    errors = (abs(waits[number] - given.p50[number]) for number in waited)
    return Fits(within / len(waited), median(errors) / 1000)


def write_starts(played: Replay, path: Path) -> None:
    """One row a task; what is not known is empty."""
    trace, estimates = played.scenario.trace, played.estimates
    columns = ("arrival_seconds", "start_seconds", "end_seconds")
    header = ("index", *columns, "priority", "estimate_p50_seconds", "estimate_p90_seconds")
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            for number, row in enumerate(trace.rows):
                times = (trace.arrivals[number], played.starts[number], played.ends[number])
                given = (estimates.p50[number], estimates.p90[number]) if estimates else (NEVER, NEVER)
                priority = Priority(trace.bases[number]).word
                writer.writerow((row, *map(_seconds, times), priority, *map(_seconds, given)))
    except OSError as problem:
        raise InvalidInput("--starts", f"cannot write {path}: {problem.strerror}") from None


def _seconds(ms: int) -> str:
    return "" if ms == NEVER else f"{ms / 1000:.3f}"

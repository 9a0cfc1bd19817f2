"""The estimates that the tasks of a trace would have got at their arrival, from what was past by then."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairlead.estimates.forecast import forecast
from fairlead.estimates.knowledge import Knowledge
from fairlead.estimates.pictures import Pictures, needs_text
from fairlead.estimates.reading import Given, Need, Newcomer, estimate_of
from fairlead.estimates.staleness import EVERY_SECONDS, SOONEST_SECONDS, has_changed
from fairlead.model.priority import Priority
from fairlead.rules.limits import Rate
from fairlead.simulate.observed import ObservedSimulation
from fairlead.simulate.replays import NEVER, Estimates, Progress, Replay, replay
from fairlead.simulate.scenarios import Scenario
from fairlead.simulate.values import Running, Snapshot, Task

MOST_FORECASTS = 2_000  # of a trace


def replay_with_estimates(scenario: Scenario, seed: int, progress: Progress) -> Replay:
    foresight = Foresight(scenario)
    played = replay(scenario, seed, progress, foresight)
    return replace(played, estimates=foresight.estimates)


class Foresight:
    """Watches a replay, and plays the part of the estimator in it.

    A forecast is made when a task arrives that has to wait, if it is due. Their number is bounded, and what
    is left for the arrivals so far is in proportion to them: no part of a trace uses up the share of another.
    """

    def __init__(self, scenario: Scenario) -> None:
        count = len(scenario.trace)
        self.estimates = Estimates(array("q", [NEVER]) * count, array("q", [NEVER]) * count)
        self.forecasts = 0  #: that were made
        self._scenario, self._pictures = scenario, Pictures(scenario)
        self._knowledge = Knowledge()
        self._forecast: dict[str, Any] | None = None
        self._queued: dict[Priority, int] = {}  #: when the forecast was made
        self._given: dict[int, Given] = {}  #: to tasks that wait
        self._wait_for: Counter[str] = Counter()  #: how many wait, by limit
        self._started: dict[int, int] = {}  #: those that run
        self._now = 0
        self._starting: dict[int, Task] = {}  #: those that arrived at this instant and start at once
        self._taken: Counter[str] = Counter()  #: units of limits that they take
        self._takers: Counter[str] = Counter()  #: how many they are, by limit

    # As an observer

    def arrives(self, simulation: ObservedSimulation, task: Task) -> None:
        if simulation.now != self._now:
            self._now = simulation.now
            self._starting.clear()
            self._taken.clear()
            self._takers.clear()
        new = self._newcomer(simulation, task)
        if not new.starts_at_once:
            self._refresh(simulation, task)
        given = estimate_of(new, self._forecast)
        if given:
            self._given[task.number] = given
            self.estimates.p50[task.number], self.estimates.p90[task.number] = given[:2]
        limits = dict(task.kind.needs)
        if new.starts_at_once:
            self._starting[task.number] = task
            self._taken.update(limits)
            self._takers.update(limits.keys())
        self._wait_for.update(limits.keys())
        self._learn_arrival(task)

    def started(self, number: int, at: int) -> None:
        self._started[number] = at
        self._wait_for.subtract(name for name, _ in self._scenario.kind_of(number).needs)
        given = self._given.pop(number, None)
        if given:
            self._knowledge.learn([("start", at, {"estimate": given})], "")

    def ended(self, number: int, at: int) -> None:
        ran = {"ran": at - self._started.pop(number)}
        self._knowledge.learn([("complete", at, ran | self._kind_of(number))], "")

    # What is known

    def _newcomer(self, simulation: ObservedSimulation, task: Task) -> Newcomer:
        before = sum(simulation.queued(priority) for priority in Priority if priority <= task.base)
        needs = [
            Need(
                name,
                units,
                simulation.room(name, task.base) - self._taken[name],
                self._wait_for[name] - self._takers[name],
                None if isinstance(limit := self._scenario.snapshot.limits[name], Rate) else limit.limit,
            )
            for name, units in task.kind.needs
        ]
        tag, seq = simulation.next_position(task)
        idle = max(0, simulation.free_slots(task) - len(self._starting))
        before -= sum(other.base <= task.base for other in self._starting.values())
        rank = simulation.rank_of(task, tag)
        return Newcomer(simulation.now, task.base, tag, seq, before, rank, idle, needs)

    def _refresh(self, simulation: ObservedSimulation, task: Task) -> None:
        queued = {priority: simulation.queued(priority) for priority in Priority}
        allowed = MOST_FORECASTS * (task.number + 1) / len(self._scenario.trace)
        if self.forecasts < allowed and self._is_due(queued):
            picture = self._pictures.picture(with_started(simulation.look(), self._starting))
            self._forecast, self._queued = forecast(picture, self._knowledge), queued
            self.forecasts += 1

    def _is_due(self, queued: dict[Priority, int]) -> bool:
        if self._forecast is None:
            return True
        passed: float = (self._now - self._forecast["head"]["at"]) / 1000
        return passed >= (SOONEST_SECONDS if has_changed(queued, self._queued) else EVERY_SECONDS)

    def _learn_arrival(self, task: Task) -> None:
        facts = {
            "capabilities": ",".join(sorted(task.kind.capabilities)),
            "priority": task.base,
            "elastic": task.kind.elastic,
        }
        self._knowledge.learn([("submit", task.arrival, facts | self._kind_of(task.number))], "")

    def _kind_of(self, number: int) -> dict[str, str]:
        kind, scenario = self._scenario.kind_of(number), self._scenario
        return {
            "type": kind.type,
            "tier": scenario.duration_of(kind),
            "size": scenario.size_of(number),
            "needs": needs_text(kind.needs),
            "fair": scenario.accounts[scenario.trace.owners[number]],
        }


def with_started(seen: Snapshot, tasks: Mapping[int, Task]) -> Snapshot:
    """As in the store, where a task that starts at once never waits."""
    worker = seen.workers[0].id
    runs = [
        Running(0, task.kind.needs, worker, task.base, task.account, seen.now, task.kind.tier, number)
        for number, task in tasks.items()
    ]
    waiting = [one for one in seen.waiting if one.task.number not in tasks]
    return replace(seen, waiting=waiting, running=[*seen.running, *runs])

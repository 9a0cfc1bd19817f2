"""Simulations of past work under other limits, one at a time, each in a process of its own."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from fairlead.api.limit_pages import AT_ONCE
from fairlead.api.problems import InvalidBody, SimulationFailed, SimulationRunning
from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.model.limit import Limit
from fairlead.model.tenants import scope_of
from fairlead.simulate.what_if import Comparison, PastTask, Question, Rules, Size, largest_needs, question_of
from fairlead.store.past import past_tasks
from fairlead.store.store import Store
from fairlead.worker.child_process import start_child

MOST_TASKS = 10_000
MOST_LIMITS = 1_000
KEPT_SECONDS = 60.0  # the same work for the next simulations: they are to be compared
WITHIN_SECONDS = 60.0

log = EventLog("fairlead.api")


@dataclass(frozen=True, slots=True)
class Past:
    """Work that was read, and the limits that it needs as they are now."""

    tasks: list[PastTask]
    limits: dict[str, Limit]
    most_needed: dict[str, int]
    slots: int
    seconds: float
    read_at: float = field(default_factory=monotonic)

    @property
    def sizes(self) -> dict[str, Size]:
        return {name: size_of(limit) for name, limit in self.limits.items()}


class Simulated(NamedTuple):
    past: Past
    slots: int
    comparison: Comparison | None  # None: there was no work


class Simulations:
    """Of one namespace."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_busy = False
        self._past: Past | None = None

    async def run(self, seconds: float, slots: int | None, changes: Mapping[str, Size]) -> Simulated:
        """The work of the last `seconds`, with these changes and without."""
        if self._is_busy:
            raise SimulationRunning()
        self._is_busy = True
        try:
            past = await self._read(seconds)
            wanted = past.slots if slots is None else slots
            _check(past, changes)
            if not past.tasks:
                return Simulated(past, wanted, None)
            sizes = past.sizes, past.sizes | dict(changes)
            rules = Rules.of(self._store.settings)
            question = question_of(past.tasks, rules, (past.slots, wanted), sizes)
            return Simulated(past, wanted, await _ask(question))
        finally:
            self._is_busy = False

    async def _read(self, seconds: float) -> Past:
        past = self._past
        if past and past.seconds == seconds and monotonic() - past.read_at < KEPT_SECONDS:
            return past
        store = self._store
        since = await store.estimates.now() - round(1000 * seconds)
        tasks = await past_tasks(store, since, MOST_TASKS)
        limits = await self._limits_of(tasks)
        tasks = [msgspec.structs.replace(task, limits=_stored_needs(task, limits)) for task in tasks]
        capacity = (await store.stats(brief=True)).total_capacity
        self._past = Past(tasks, limits, largest_needs(tasks), max(1, capacity), seconds)
        return self._past

    async def _limits_of(self, tasks: Sequence[PastTask]) -> dict[str, Limit]:
        """What tasks need, as far as it still exists. A task names its limits as its submitter does."""
        names = list({name for task in tasks for need in task.limits for name in _meant(task, need)})
        found = dict[str, Limit]()
        for start in range(0, min(len(names), MOST_LIMITS), AT_ONCE):
            some = await self._store.limits.named(names[start : start + AT_ONCE])
            found |= {limit.full_name: limit for limit in some}
        return found


def _meant(task: PastTask, name: str) -> Sequence[str]:
    """In the store: one of its tenant, or else one that all tenants share."""
    return (name,) if task.tenant is None else (scope_of(task.tenant) + name, name)


def _stored_needs(task: PastTask, limits: Mapping[str, Limit]) -> dict[str, int]:
    """Without those that have been deleted."""
    needs = dict[str, int]()
    for name, units in task.limits.items():
        if known := next((one for one in _meant(task, name) if one in limits), None):
            needs[known] = units
    return needs


def _check(past: Past, changes: Mapping[str, Size]) -> None:
    """Raises InvalidBody."""
    for name, size in changes.items():
        if name not in past.limits:
            raise InvalidBody(f"limits.{name}", "no task of this time needed such a limit")
        if 0 < size.limit < (most := past.most_needed[name]):
            problem = f"some tasks need {most} units at once: give at least {most}, or 0"
            raise InvalidBody(f"limits.{name}", problem)


async def _ask(question: Question) -> Comparison:
    process, pipe = await start_child("fairlead.api.simulation_process")
    try:
        pipe.send(question)
        async with asyncio.timeout(WITHIN_SECONDS):
            answer = await pipe.receive()
    except TimeoutError:
        answer = None
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            process.kill()
        await pipe.close()
        code = await process.wait()
    if answer is None:
        log.warning("simulation_failed", exit_code=code)
        raise SimulationFailed()
    if "problem" in answer:
        raise SimulationFailed(f"The simulation stopped: {answer['problem']}.")
    return msgspec.convert(answer["comparison"], Comparison)


def size_of(limit: Limit) -> Size:
    return Size(limit.limit, limit.interval_us)

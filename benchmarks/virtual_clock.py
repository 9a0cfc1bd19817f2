"""Drives a store on a clock that leaps from event to event: nothing ever comes late."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

from benchmarks.gateway_traces import Wanted
from fairlead.model.accounts import account_of
from fairlead.model.priority import NAMED_PRIORITIES, Priority
from fairlead.model.reports import Completed
from fairlead.rules.limits import Slots
from fairlead.rules.values import Policy, Worker
from fairlead.settings import Settings, WorkerSettings
from fairlead.simulate.engine import Simulation
from fairlead.simulate.scenarios import policy_of
from fairlead.simulate.values import Kind, Snapshot, Task
from fairlead.store.store import Store
from fairlead.testing import FakeClock

WORKER = "virtual"
FOR_EVER_MS = 365 * 86_400_000  # a lease, and how long the worker lives without a heartbeat
AWAKE = WorkerSettings(heartbeat_seconds=86_400, missed_heartbeats=365)

Answer = Mapping[str, Any]
Submit = Callable[[Wanted], Awaitable[Answer]]


class Event(IntEnum):
    """What happens at an instant, in this order, as in the simulator. Then all start that can."""

    FORECAST = 0
    END = 1
    ARRIVAL = 2
    PROMOTION = 3


@dataclass(slots=True)
class Played:
    """A request, and what came of it; instants in ms since the beginning."""

    wanted: Wanted
    arrival: int
    duration: int
    started: int | None = None
    fence: int = 0
    answer: Answer = field(default_factory=dict)


def played(requests: Sequence[Wanted]) -> list[Played]:
    return [Played(one, round(one.arrival * 1000), round(one.duration * 1000)) for one in requests]


class VirtualClock:
    """One worker runs `tasks` as long as they say. `order` has the numbers of those that started."""

    def __init__(self, store: Store, clock: FakeClock, tasks: Sequence[Played], slots: int) -> None:
        self._store, self._clock, self._slots, self._begin = store, clock, slots, clock.now_ms
        self.tasks, self.order = tasks, list[int]()
        self._numbers: dict[str, int] = {}
        self._running = 0
        self._due: list[tuple[int, Event, int, int]] = []  #: a heap: at, what, which first, number
        for number, task in enumerate(tasks):
            self._add(task.arrival, Event.ARRIVAL, number)
            for after in _promoted_after(NAMED_PRIORITIES[task.wanted.priority], policy_of(store.settings)):
                self._add(task.arrival + after, Event.PROMOTION, number)

    def _add(self, at: int, event: Event, number: int) -> None:
        first = len(self.order) if event is Event.END else number
        heappush(self._due, (at, event, first, number))

    async def run(
        self, submit: Submit, forecast: Callable[[], Awaitable[None]] | None = None, at: Sequence[int] = ()
    ) -> None:
        """Until all have ended; a forecast is made at each of these instants."""
        await self._store.workers.register(WORKER, capacity=self._slots)
        for instant in at:
            self._add(instant, Event.FORECAST, 0)
        while self._due:
            instant, due = self._next()
            self._clock.now_ms = self._begin + instant
            if Event.FORECAST in due and forecast:
                await forecast()
            await self._complete(due[Event.END])
            for number in due[Event.ARRIVAL]:
                await self._submit(submit, number)
            if due[Event.PROMOTION]:
                await self._store.promote()
            if due[Event.END] or due[Event.ARRIVAL] or due[Event.PROMOTION]:
                await self._start_all(instant)

    def _next(self) -> tuple[int, dict[Event, list[int]]]:
        instant, due = self._due[0][0], defaultdict[Event, list[int]](list)
        while self._due and self._due[0][0] == instant:
            _, event, _, number = heappop(self._due)
            if event is not Event.PROMOTION or self.tasks[number].started is None:
                due[event].append(number)
        return instant, due

    async def _complete(self, numbers: Sequence[int]) -> None:
        if numbers:
            some = (self.tasks[number] for number in numbers)
            reports = [Completed(one.answer["task_id"], one.fence) for one in some]
            answers = await self._store.complete(WORKER, *reports)
            if problems := [answer for answer in answers if isinstance(answer, Exception)]:
                raise problems[0]
            self._running -= len(numbers)

    async def _submit(self, submit: Submit, number: int) -> None:
        task = self.tasks[number]
        task.answer = await submit(task.wanted)
        self._numbers[task.answer["task_id"]] = number

    async def _start_all(self, instant: int) -> None:
        """The worker waits if it still has room, so that estimates know of its free slots.

        It claims only when something happens, and once: each claim looks at the holds, as the simulator does
        at each such instant.
        """
        again = True
        while again and (free := self._slots - self._running):
            claimed = await self._store.claim(WORKER, free, lease_ms=FOR_EVER_MS, idle=True)
            for one in claimed.tasks:
                number = self._numbers[one.task_id]
                self.tasks[number].started, self.tasks[number].fence = instant, one.fence
                self.order.append(number)
                self._running += 1
                self._add(instant + self.tasks[number].duration, Event.END, number)
            again = claimed.again


def _promoted_after(base: Priority, policy: Policy) -> tuple[int, ...]:
    found = {
        Priority.HIGH: (),
        Priority.MEDIUM: (policy.medium_to_high,),
        Priority.LOW: (policy.low_to_medium, policy.low_to_high),
    }
    return tuple(after for after in found[base] if after)


def simulated(
    tasks: Sequence[Played], slots: int, limits: Mapping[str, int], settings: Settings
) -> list[tuple[int, int]]:
    """The number of each task in the order of the simulator's starts, and when."""
    kinds: dict[object, Kind] = {}
    arrivals = []
    for number, task in enumerate(tasks):
        one = task.wanted
        key = one.task_type, tuple(sorted(one.limits.items()))
        kind = kinds.setdefault(key, Kind.of(one.task_type, (), one.limits))
        account = account_of(None, one.user, settings)
        base = NAMED_PRIORITIES[one.priority]
        arrivals.append(Task(number, kind, base, account, task.arrival, task.duration))
    snapshot = Snapshot(
        now=tasks[0].arrival,
        policy=policy_of(settings),
        workers=[Worker(WORKER, capacity=slots)],
        limits={name: Slots(limit) for name, limit in limits.items()},
    )
    return list(Simulation(snapshot, arrivals=arrivals).starts())

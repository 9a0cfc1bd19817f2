"""The log of all events, read while it is written, and the conditions that it must meet."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from fairlead.errors import FairleadError
from fairlead.model.states import TERMINAL, State
from fairlead.store.store import Store
from tests.reading import events_in

AT_ONCE = 1000


class Event(NamedTuple):
    task: str
    act: str
    before: str
    after: str
    at: int  # ms of the store's clock
    fence: int
    worker: str  # of a claim


class History:
    """All events of a namespace, in order; like a recorder, it removes what it has read from the outbox."""

    def __init__(self, store: Store) -> None:
        self.events: list[Event] = []
        self.ended: set[str] = set()
        self._store = store
        self._last = "0"

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator["History"]:
        reading = asyncio.create_task(self._read_on())
        try:
            yield self
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read_on(self) -> None:
        while True:
            try:
                await self._read()
            except (RedisError, OSError, FairleadError):  # the server is being killed
                await asyncio.sleep(0.05)
                with contextlib.suppress(FairleadError):
                    await self._store.reopen()

    async def _read(self) -> None:
        connection = self._store.connection
        key = connection.keys.key("events")
        answer: Any = await connection.client.xread({key: self._last}, count=AT_ONCE, block=200)
        if not answer:
            return
        ((_, entries),) = answer
        for number, fields in entries:
            self._last = number.decode()
            for event in events_in(fields):
                self._note(event)
        await self._store.run("recorded", self._last)

    def _note(self, row: dict[str, Any]) -> None:
        event = Event(
            row["task"],
            row["act"],
            row["from"],
            row["to"],
            row["at"],
            row["fence"],
            row["detail"]["worker"] if row["act"] == "claim" else "",
        )
        self.events.append(event)
        if State(event.after) in TERMINAL:
            self.ended.add(event.task)


class Loss(NamedTuple):
    """A run that ended without a report of its handler."""

    task: str
    fence: int
    worker: str
    began: int  # ms, as all times here
    noticed: int
    act: str  # by which the store, or somebody for the worker, ended it
    again: int | None = None  # when the task started again


@dataclass
class Verdict:
    """What a log shows; `faults` must be empty."""

    faults: list[str] = field(default_factory=list)
    starts: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    losses: list[Loss] = field(default_factory=list)


class Judge:
    """Plays a log again: a claim takes units, every end of a run frees them."""

    def __init__(self, limits: Mapping[str, int], needs: Mapping[str, Mapping[str, int]]) -> None:
        self._limits = limits
        self._needs = needs  # of every task that was accepted
        self._used: Counter[str] = Counter()
        self._state: dict[str, str] = {}
        self._fence: dict[str, int] = {}
        self._claim: dict[str, Event] = {}  # by which each task runs now
        self._lost: dict[str, Loss] = {}
        self.verdict = Verdict()

    def judge(self, events: Iterable[Event]) -> Verdict:
        for event in events:
            self._step(event)
        for task in self._needs:
            if (state := self._state.get(task, "missing")) not in TERMINAL:
                self._fault(f"{task} was lost: {state}")
            self.verdict.ends[state] += 1
        self.verdict.losses += self._lost.values()
        return self.verdict

    def _step(self, event: Event) -> None:
        before = self._state.get(event.task, "")
        if before != event.before:  # also an event after the end, or a second end
            self._fault(f"{event} follows {before!r}")
        self._state[event.task] = event.after
        if event.before == "executing":
            self._end_run(event)
        if event.act == "claim":
            self._start_run(event)

    def _start_run(self, event: Event) -> None:
        self.verdict.starts += 1
        if event.fence <= self._fence.get(event.task, 0):
            self._fault(f"{event} has a fence that is not higher")
        self._fence[event.task] = event.fence
        self._claim[event.task] = event
        if lost := self._lost.pop(event.task, None):
            self.verdict.losses.append(lost._replace(again=event.at))
        for limit, units in self._needs.get(event.task, {}).items():
            self._used[limit] += units
            if self._used[limit] > self._limits[limit]:
                self._fault(f"{event} makes {self._used[limit]} units of {limit}")

    def _end_run(self, event: Event) -> None:
        claim = self._claim.pop(event.task, None)
        if claim and event.act in ("expire", "release"):
            self._lost[event.task] = Loss(
                event.task, claim.fence, claim.worker, claim.at, event.at, event.act
            )
        for limit, units in self._needs.get(event.task, {}).items():
            self._used[limit] -= units

    def _fault(self, what: str) -> None:
        self.verdict.faults.append(what)

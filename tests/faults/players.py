"""Those who work on a store that fails over, and what they were answered.

They repeat what was not answered, with the same ids, until it is.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import httpx
import uuid_utils

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.serving import Gateway
from tests.faults.fleet import with_lease
from tests.faults.record import noted

#: No worker is killed here, so a lease that expires on a busy machine is only confusing.
CALM = with_lease(8)
HOLD_MS = CALM.lease_ms + round(CALM.lease.grace_seconds * 1000)

LIMITS = {"one": 1, "two": 2, "four": 4, "eight": 8, "gate": 1}
PAUSE = 0.02  # seconds between two attempts
OUR_TYPE = "ours"  # of tasks that the inner worker runs
MOST_WAITING = 80

T = TypeVar("T")


@dataclass
class Seen:
    """What somebody was answered."""

    tasks: set[str] = field(default_factory=set)  # accepted
    jobs: set[str] = field(default_factory=set)
    results: dict[str, int] = field(default_factory=dict)  # of the inner worker, accepted
    acknowledged_at: list[float] = field(default_factory=list)  # submits
    losses_noticed: int = 0  # the namespace was closed, and opened again by us


@dataclass
class Players:
    """All who work on the store. They repeat what was not answered, with the same ids, for ever."""

    store: Store
    gateway: Gateway
    record: Path
    dice: random.Random
    restores: bool = False  # the gateway does, by itself
    seen: Seen = field(default_factory=Seen)
    stopping: bool = False

    async def until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except errors.StoreUnavailable:
                await asyncio.sleep(PAUSE)

    async def operate(self) -> None:
        """Accepts what a loss has left, as with `fairlead open --restored`, unless the gateway repairs it."""
        while True:
            try:
                await self.store.epochs.check()
            except errors.StoreLost as problem:
                with contextlib.suppress(errors.FairleadError):
                    if problem.standing == "rolled_back":
                        await self.store.epochs.seal()
                        if not self.restores:
                            await self.store.epochs.accept("restored", HOLD_MS)
                            self.seen.losses_noticed += 1
                    else:
                        await self.store.open(govern=False)
            except errors.FairleadError:
                pass
            await asyncio.sleep(0.1)

    def task(self) -> NewTask:
        (limit,) = self.dice.choices(list(LIMITS)[:4], list(LIMITS.values())[:4])
        seconds = self.dice.uniform(0.005, 0.04)
        given = {"record": str(self.record), "limit": limit, "seconds": seconds}
        kind = self.dice.choice(("held", OUR_TYPE))
        return NewTask(task_type=kind, parameters=given, limits={limit: 1}, max_retries=20)

    async def submit(self, tasks: int) -> None:
        while len(self.seen.tasks) < tasks and not self.stopping:
            if await self.until_answered(self._waiting) < MOST_WAITING:
                some = [self.task() for _ in range(self.dice.randint(1, 8))]
                for answer in await self.until_answered(partial(self.store.submit, *some)):
                    assert not isinstance(answer, errors.FairleadError), answer
                self.seen.acknowledged_at.append(time.monotonic())
                self.seen.tasks |= {task.task_id for task in some}
            await asyncio.sleep(PAUSE)

    async def _waiting(self) -> int:
        return sum(queue.depth for queue in (await self.store.stats()).queues.values())

    async def submit_over_http(self) -> None:
        async with httpx.AsyncClient(base_url=self.gateway.url, timeout=10, trust_env=False) as http:
            while not self.stopping:
                task, key = self.task(), {"Idempotency-Key": str(uuid_utils.uuid7())}
                body = {"task_type": "held", "parameters": task.parameters, "limits": task.limits}
                while True:
                    with contextlib.suppress(httpx.TransportError):
                        answer = await http.post("/api/v1/tasks", json=body, headers=key)
                        if answer.is_success:
                            break
                        assert answer.status_code == 503, answer.text
                    await asyncio.sleep(PAUSE)
                self.seen.tasks.add(answer.json()["task_id"])
                await asyncio.sleep(0.1)

    async def submit_jobs(self) -> None:
        stages = [[NewStep("first", "held")], [NewStep("second", "held")]]
        given = {"record": str(self.record), "limit": "free", "seconds": 0.02}
        while not self.stopping:
            job = NewJob(feature_name="two", stages=stages, input_data=given)
            await self.until_answered(partial(self.store.jobs.submit, job))
            self.seen.jobs.add(job.job_id)
            await asyncio.sleep(0.2)

    async def hold_the_gate(self) -> None:
        """Takes units without a task, holds them for a moment, gives them back."""
        while not self.stopping:
            lease_id = str(uuid_utils.uuid7())
            acquire = partial(self.store.limits.acquire, "gate", lease_id=lease_id, wait_seconds=2)
            try:
                lease = await self.until_answered(acquire)
            except errors.LimitFull:
                continue
            with noted(str(self.record), "gate", lease_id, lease.fence):
                await asyncio.sleep(0.02)
            with contextlib.suppress(errors.Fenced):
                await self.until_answered(partial(self.store.limits.release, lease))
            await asyncio.sleep(PAUSE)

    async def work(self, name: str) -> None:
        """A worker that knows which of its claims and completions were acknowledged."""
        while True:
            request = str(uuid_utils.uuid7())
            try:
                claimed = await self.until_answered(partial(self.store.claim, name, 2, request=request))
            except errors.UnknownWorker:
                await self.until_answered(lambda: self.store.workers.register(name, task_types=[OUR_TYPE]))
                continue
            for task in claimed.tasks:
                with noted(str(self.record), task.parameters["limit"], task.task_id, task.fence):
                    await asyncio.sleep(task.parameters["seconds"])
                report = Completed(task.task_id, task.fence, task.fence)
                (answer,) = await self.until_answered(partial(self.store.complete, name, report))
                if answer is State.COMPLETED:
                    self.seen.results[task.task_id] = task.fence
            if not claimed.tasks:
                await asyncio.sleep(PAUSE)

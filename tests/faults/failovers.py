"""Fail-overs under tasks, jobs and leases: what was acknowledged, and what of it is left.

Nothing here relies on the engine's own history, which a fail-over may lose: submitters note which tasks and
jobs were acknowledged, an inner worker which claims and completions, and all holders when they ran.
"""

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import httpx
import redis
import uuid_utils
from msgspec.structs import replace

from fairlead import errors
from fairlead.model.job import ENDED, JobStatus, NewJob, NewStep
from fairlead.model.reports import Completed
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import NewTask
from fairlead.settings import EngineSettings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.serving import serving
from tests.faults.fleet import Fleet, with_lease
from tests.faults.kills import spread
from tests.faults.record import noted, over_limit, read, repeated_fences
from tests.sentinels import SERVICE, Deployment, Node, deployment, opened
from tests.waiting import wait_until

#: No worker is killed here, so a lease that expires on a busy machine is only confusing.
CALM = with_lease(8)
HOLD_MS = CALM.lease_ms + round(CALM.lease.grace_seconds * 1000)
CAREFUL = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")

How = Literal["kill", "stop", "replace"]
T = TypeVar("T")

APP = "tests.apps.held:fl"
LIMITS = {"one": 1, "two": 2, "four": 4, "eight": 8, "gate": 1}
PAUSE = 0.02  # seconds between two attempts
OUR_TYPE = "ours"  # of tasks that the inner worker runs
MOST_WAITING = 80
ENDED_WITHIN = 120.0  # seconds, after the last submit


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
    gateway: str  # its URL
    record: Path
    dice: random.Random
    seen: Seen = field(default_factory=Seen)
    stopping: bool = False

    async def until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except errors.StoreUnavailable:
                await asyncio.sleep(PAUSE)

    async def operate(self) -> None:
        """Accepts what a loss has left, as an operator does with `fairlead open --restored`."""
        while True:
            try:
                await self.store.epochs.check()
            except errors.StoreLost as problem:
                with contextlib.suppress(errors.FairleadError):
                    if problem.standing == "rolled_back":
                        await self.store.epochs.seal()
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
        async with httpx.AsyncClient(base_url=self.gateway, timeout=10, trust_env=False) as http:
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


@dataclass
class Breaker:
    deployed: Deployment
    seen: Seen
    count: Counter[str] = field(default_factory=Counter)
    back_ms: list[int] = field(default_factory=list)  # from the promotion to the next acknowledged submit
    late_ms: list[int] = field(default_factory=list)  # of it, since a replica followed it

    async def fail_over(self, how: How) -> None:
        await self.deployed.settled()
        primary = self.deployed.primary()
        others = [server for server in self.deployed.servers if server is not primary]
        if how == "kill":
            primary.kill()
        elif how == "stop":
            primary.signal(signal.SIGSTOP)
        else:
            self.deployed.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE)
        promoted_at = await instant(lambda: any(server.role() == "master" for server in others))
        usable_at = await instant(lambda: any(self._is_usable(server) for server in others))
        await wait_until(lambda: self.seen.acknowledged_at[-1] > usable_at, 60, "submits are accepted again")
        first = next(at for at in self.seen.acknowledged_at if at > promoted_at)
        self.back_ms.append(round((first - promoted_at) * 1000))
        self.late_ms.append(max(0, round((first - usable_at) * 1000)))
        self.count[how] += 1
        after = await self.deployed.another_is_primary(primary)
        if how == "kill":
            primary.start(replica_of=after)
        elif how == "stop":
            primary.signal(signal.SIGCONT)

    def _is_usable(self, server: Node) -> bool:
        """A Sentinel names it, and a replica follows it."""
        info = server.ask("INFO", "replication")
        return info["connected_slaves"] > 0 and self.deployed.primary() is server


async def instant(condition: Callable[[], bool]) -> float:
    """When it was first seen to hold; of servers that may not answer."""

    def holds() -> bool:
        with contextlib.suppress(redis.RedisError, OSError):
            return condition()
        return False

    await wait_until(holds, 60)
    return time.monotonic()


@contextlib.asynccontextmanager
async def staged(
    kind: str, replicas: int, folder: Path, dice: random.Random
) -> AsyncIterator[tuple[Deployment, Players]]:
    """Servers and Sentinels, a gateway, two workers, and the players in this process."""
    async with deployment(kind, *(CAREFUL if replicas else ())) as deployed:
        settings = replace(CALM, engine=EngineSettings(url=deployed.url, replicas=replicas))
        env = {"FAIRLEAD_ENGINE__URL": deployed.url, "FAIRLEAD_ENGINE__REPLICAS": str(replicas)}
        config = folder / "fleet.toml"
        async with (
            opened(deployed.url, settings) as store,
            Fleet(("--engine", deployed.url), folder, settings=settings, app=APP, env=env) as fleet,
        ):
            await fleet.start(2, 4)
            await fleet.man()
            with serving(deployed.url, "default", folder, "--config", str(config), env=env) as gateway:
                yield deployed, Players(store, gateway.url, folder / "record", dice)
            assert [await crew.end() for crew in fleet.crews] == [0]
            breaches = await examine(store.connection)
            assert not breaches, breaches


async def play(
    deployed: Deployment, players: Players, hows: list[How], *, tasks: int, workers: int = 2
) -> dict[str, Any]:
    """At least this number of tasks, and more while there are fail-overs left; what was found."""
    began, store, seen = time.monotonic(), players.store, players.seen
    for name, units in LIMITS.items():
        await store.limits.set(name, Slots(limit=units))
    breaker = Breaker(deployed, seen)
    async with asyncio.TaskGroup() as group:
        hands = [group.create_task(players.work(f"hand{number}")) for number in range(workers)]
        hands.append(group.create_task(players.operate()))
        callers = [
            group.create_task(caller)
            for caller in (
                players.submit(1 << 30),
                players.submit_over_http(),
                players.submit_jobs(),
                *(players.hold_the_gate() for _ in range(3)),
            )
        ]
        await wait_until(lambda: len(seen.acknowledged_at) > 3)
        for how in hows:
            await breaker.fail_over(how)
        await wait_until(lambda: len(seen.tasks) >= tasks, 3600, "all tasks are submitted")
        players.stopping = True
        await asyncio.gather(*callers)
        await wait_until(lambda: _is_quiet(players), ENDED_WITHIN, "everything has ended")
        for hand in hands:
            hand.cancel()
    runs = read(players.record)
    return {
        "tasks": len(seen.tasks),
        "jobs": len(seen.jobs),
        "fail_overs": dict(breaker.count),
        "runs": len(runs),
        "losses_noticed": seen.losses_noticed,
        **await _missing(store, seen),
        "fences_given_twice": len(repeated_fences(runs)),
        "over_a_limit": len(over_limit(runs, LIMITS)),
        "ms_until_service_was_back": spread(breaker.back_ms),
        "ms_after_the_new_primary_had_a_replica": spread(breaker.late_ms),
        "seconds": round(time.monotonic() - began),
    }


async def _is_quiet(players: Players) -> bool:
    """Nothing waits and nothing runs, as far as the store knows."""
    stats = await players.until_answered(players.store.stats)
    busy = any(queue.depth for queue in stats.queues.values()) or stats.delayed or stats.used_capacity
    return not busy


async def _missing(store: Store, seen: Seen) -> dict[str, Any]:
    """What was acknowledged and is not there, listed."""
    tasks, results, jobs = list[str](), list[str](), list[str]()
    for task_id in seen.tasks:
        try:
            task = await store.get(task_id)
        except errors.UnknownTask:
            tasks.append(task_id)
            continue
        assert task.status in TERMINAL, task
        if task_id in seen.results and (task.status, task.result) != (State.COMPLETED, seen.results[task_id]):
            results.append(task_id)
    for job_id in seen.jobs:
        try:
            job = await store.jobs.get(job_id)
        except errors.UnknownJob:
            jobs.append(job_id)
            continue
        assert job.status in ENDED, job
        assert job.status is JobStatus.COMPLETED, job
    lost = {"tasks": sorted(tasks), "results": sorted(results), "jobs": sorted(jobs)}
    return {"acknowledged_and_lost": {what: len(ids) for what, ids in lost.items()}, "lost": lost}

"""A day in which everything happens to a namespace, for the tests of what is left afterwards."""

import random
from typing import Any

from fairlead import errors
from fairlead.model.limit import Lease
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.task import NewTask, Task
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, key_names, new

USERS = ["ann", "bob", "eve", None]
NEEDS: list[dict[str, int]] = [
    {},
    {},
    {"a": 1},
    {"b": 1},
    {"a": 1, "b": 1},
    {"gpu": 1},
    {"gpu": 3},
    {"api": 1},
]
WORKERS = {
    "w0": {"capacity": 4, "reserve": 1, "capabilities": ["big"]},
    "w1": {"capacity": 3, "task_types": ["draw", "echo"]},
    "w2": {"capacity": 2},
    "idler": {"capacity": 1, "capabilities": ["rare"], "task_types": ["none"]},
}
EARLY = "early"  # the worker of the morning


class Day:
    """A morning that sees everything once, then hours at random: workers do well, badly or nothing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.chance = random.Random(6)
        self.leases: list[Lease] = []
        self.holds = 0

    def random_task(self) -> NewTask:
        pick = self.chance.choice
        return new(
            pick(["draw", "echo", "sum"]),
            priority=pick(["high", "medium", "low"]),
            user_id=pick(USERS),
            limits=pick(NEEDS),
            required_capabilities=pick([(), (), ("big",)]),
            delay_seconds=pick([None, None, 3.0]),
            max_wait_seconds=pick([None, None, 50.0]),
            timeout_seconds=pick([15, 600]),
            max_retries=pick([0, 1, 3]),
            idempotency_key=pick([None, f"key-{self.chance.randrange(1_000_000)}"]),
        )

    async def run(self) -> None:
        await self.begin_early()
        await self.end_runs_in_every_way()
        await self.lose_runs_in_every_way()
        await self.wait_in_every_way()
        await self.hold_back()
        await self.store.workers.leave(EARLY)
        await self.act_at_random()

    async def begin_early(self) -> None:
        await self.store.workers.register(EARLY, capacity=9, task_types=["errand"])

    async def start(self, **options: Any) -> Task:
        await self.store.submit_one(new("errand", **options))
        return await claim_one(self.store, EARLY)

    async def finish(self, task: Task) -> None:
        await self.store.complete(EARLY, Completed(task.task_id, task.fence, {"ok": True}))

    async def start_again(self, after: float = 0) -> Task:
        self.clock.pass_seconds(after)
        await self.begin_early()  # a worker does not survive such a long silence
        return await claim_one(self.store, EARLY)

    async def end_runs_in_every_way(self) -> None:
        store = self.store
        await self.finish(await self.start())
        cancelled = await store.submit_one(new("errand"))
        await store.cancel(cancelled.task_id)
        task = await self.start()
        await store.fail(EARLY, Failed(task.task_id, task.fence, retriable=False))
        task = await self.start(max_retries=1)
        await store.fail(EARLY, Failed(task.task_id, task.fence))
        task = await self.start_again(after=60)
        await store.fail(EARLY, Failed(task.task_id, task.fence))  # no retry is left
        task = await self.start()
        await store.progress(EARLY, Progress(task.task_id, task.fence, 0.5, "half", ["a", "b"]))
        await store.extend(EARLY, Grant(task.task_id, task.fence), 700_000)
        await store.release(EARLY, Grant(task.task_id, task.fence))
        await self.finish(await self.start_again())

    async def lose_runs_in_every_way(self) -> None:
        task = await self.start()
        await self.store.fail(EARLY, Failed(task.task_id, task.fence, crashed=True))
        await self.start_again()
        await self.store.expire(EARLY)  # it is seen to die
        await self.finish(await self.start_again())
        await self.start(timeout_seconds=15, max_retries=1)
        self.clock.pass_seconds(40)
        await self.store.expire()
        await self.start_again(after=60)
        self.clock.pass_seconds(60)  # half as much time again, and no retry is left
        await self.store.expire()

    async def wait_in_every_way(self) -> None:
        await self.store.submit_one(new("errand", delay_seconds=3))
        await self.finish(await self.start_again(after=3))
        await self.store.submit_one(new("unserved", max_wait_seconds=5))
        self.clock.pass_seconds(5)
        await self.store.promote()

    async def hold_back(self) -> None:
        await self.begin_early()
        tasks = [await self.start(limits={limit: 1}) for limit in "ab"]
        await self.store.submit_one(new("errand", limits={"a": 1, "b": 1}))
        self.clock.pass_seconds(5)
        assert (await self.store.claim(EARLY)).tasks == []
        await self.look_for_holds()
        for task in tasks:
            await self.finish(task)
        await self.finish(await self.start_again())

    async def look_for_holds(self) -> None:
        self.holds += sum(limit.hold is not None for limit in await self.store.limits.all())

    async def act_at_random(self) -> None:
        for busy in [True] * 25 + [False] * 100:
            if busy:
                await self.store.submit(*[self.random_task() for _ in range(self.chance.randrange(12))])
                await self.take_bare_leases()
            for worker in WORKERS:
                await self.work(worker, busy)
            await self.look_for_holds()
            self.clock.pass_ms(self.chance.choice([0, 300, 2_000, 9_000]))
            if not busy and await self.is_drained():
                return
        raise AssertionError("it was not drained")

    async def take_bare_leases(self) -> None:
        try:
            self.leases.append(await self.store.limits.acquire(self.chance.choice(["a", "gpu", "api"])))
        except errors.LimitFull:
            self.leases.reverse()
        if len(self.leases) > 3:  # those that are not given back run out
            try:
                await self.store.limits.release(self.leases.pop())
            except errors.Fenced:
                self.leases.clear()

    async def work(self, worker: str, busy: bool) -> None:
        await self.store.workers.register(worker, **WORKERS[worker])  # type: ignore[arg-type]
        for task in (await self.store.claim(worker, 3, idle=True)).tasks:
            if self.chance.random() < (0.4 if busy else 0.9):
                await self.store.complete(worker, Completed(task.task_id, task.fence, {"ok": True}))
            else:
                await self.misfortune(worker, task)

    async def misfortune(self, worker: str, task: Task) -> None:
        match self.chance.randrange(8):
            case 0:
                await self.store.fail(worker, Failed(task.task_id, task.fence, jitter=500))
            case 1:
                await self.store.fail(worker, Failed(task.task_id, task.fence, retriable=False))
            case 2:
                await self.store.release(worker, Grant(task.task_id, task.fence))
            case 3:
                await self.store.cancel(task.task_id)
            case 4:
                await self.store.cancel(task.task_id)
                await self.store.release(worker, Grant(task.task_id, task.fence))
            case 5:
                await self.store.progress(worker, Progress(task.task_id, task.fence, 0.5, "half", ["a", "b"]))
                await self.store.extend(worker, Grant(task.task_id, task.fence), 700_000)
            case 6:
                await self.store.fail(worker, Failed(task.task_id, task.fence, crashed=True))
            case _:
                self.clock.pass_ms(100)  # the worker forgets it: its lease runs out

    async def is_drained(self) -> bool:
        stats = await self.store.stats()
        waiting = sum(queue.depth for queue in stats.queues.values()) + stats.delayed
        return waiting == 0 and "leases" not in await key_names(self.store)

    async def go_home(self) -> None:
        for worker in WORKERS:
            await self.store.workers.leave(worker)

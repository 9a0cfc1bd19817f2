"""An acquire that waits is queued with the tasks of its limit: by priority, by fair share, woken in time."""

import asyncio
import contextlib
import random
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.limit import Lease
from fairlead.model.reports import Completed
from fairlead.model.task import NewTask, Task
from fairlead.settings import Rate, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, claimed, handed, waits
from tests.store.namespace import claim_one, new, raw
from tests.waiting import wait_until


class Line:
    """Acquires that wait for one limit, in the order in which they came."""

    def __init__(self, store: Store, limit: str) -> None:
        self.store, self.limit = store, limit
        self.waiting: dict[str, asyncio.Task[Lease]] = {}

    async def join(self, lease_id: str, **options: Any) -> None:
        before = await self.length()
        acquire = self.store.limits.acquire(
            self.limit, lease_id=lease_id, holder=lease_id, **{"wait_seconds": 600, **options}
        )
        self.waiting[lease_id] = asyncio.create_task(acquire)
        await wait_until(lambda: self.has_joined(before))

    async def length(self) -> int:
        store = self.store
        count: int = await store.connection.client.zcard(store.connection.keys.key("waiters", self.limit))
        return count

    async def has_joined(self, before: int) -> bool:
        return await self.length() > before

    async def holders(self) -> list[str]:
        return [slot.holder or "" for slot in (await self.store.limits.get(self.limit)).slots]

    async def next(self) -> str:
        """Who holds the units; the holder returns them."""
        done, _ = await asyncio.wait(self.waiting.values(), timeout=20, return_when=asyncio.FIRST_COMPLETED)
        (lease,) = [task.result() for task in done]
        del self.waiting[lease.lease_id]
        await self.store.limits.release(lease)
        return lease.lease_id

    async def leave(self) -> None:
        for task in self.waiting.values():
            task.cancel()
        await asyncio.gather(*self.waiting.values(), return_exceptions=True)


@pytest.fixture
async def line(store: Store) -> AsyncIterator[Line]:
    await store.limits.set("gpu", Slots(limit=1))
    line = Line(store, "gpu")
    yield line
    await line.leave()


def on_gpu(**facts: Any) -> NewTask:
    return new(limits={"gpu": 1}, **facts)


async def complete(store: Store, task: Task, **options: Any) -> list[str]:
    """Reports it, and the ids of what the worker is given next."""
    _, given = await store.report("w", [Completed(task.task_id, task.fence)], **options)
    return [task.task_id for task in given.tasks]


# Among themselves


async def test_units_go_to_the_next_in_the_act_that_frees_them(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    await line.join("next")
    await store.limits.release(lease)
    assert await line.holders() == ["next"]
    assert await line.next() == "next"


async def test_a_better_priority_goes_first_then_the_order_of_arrival(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    for name, priority in (("a", "low"), ("b", "medium"), ("c", "high"), ("d", "medium")):
        await line.join(name, priority=priority)
    await store.limits.release(lease)
    assert [await line.next() for _ in range(4)] == ["c", "b", "d", "a"]


async def test_two_users_take_turns(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    for user in ("ann", "bob"):
        for number in range(4):
            await line.join(f"{user}{number}", user_id=user)
    await store.limits.release(lease)
    assert [(await line.next())[:3] for _ in range(8)] == ["ann", "bob"] * 4


async def test_one_that_does_not_fit_does_not_hold_up_one_that_does(store: Store, line: Line) -> None:
    await store.limits.set("gpu", Slots(limit=3))
    for lease_id, units in (("one", 1), ("two", 2)):
        await store.limits.acquire("gpu", units=units, lease_id=lease_id)
    await line.join("large", units=3)
    await line.join("small")
    await store.limits.force_release("gpu", "one")
    assert await line.next() == "small"
    await store.limits.force_release("gpu", "two")
    assert await line.next() == "large"


async def test_an_acquire_without_a_wait_does_not_pass_those_that_wait(store: Store, line: Line) -> None:
    await store.limits.acquire("gpu", lease_id="first")
    await line.join("next")
    await store.limits.force_release("gpu", "first")
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire("gpu")
    assert await line.next() == "next"


# Among tasks


async def test_a_backlog_of_low_tasks_does_not_starve_a_medium_acquire(store: Store, line: Line) -> None:
    await store.workers.register("w")
    for _ in range(5):
        await store.submit(*[on_gpu(priority="low") for _ in range(200)])
    task = await claim_one(store)
    await line.join("me")
    assert await complete(store, task, claim=1) == []
    assert await line.next() == "me"
    assert len(await claimed(store)) == 1


@pytest.mark.parametrize("priority", ["high", "medium"])
async def test_a_better_task_goes_first_when_its_worker_has_just_reported(
    store: Store, line: Line, priority: str
) -> None:
    await store.workers.register("w")
    await store.submit_one(on_gpu(priority=priority))
    task, better = await claim_one(store), on_gpu(priority=priority)
    await store.submit_one(better)
    await line.join("me", priority="low" if priority == "medium" else "medium")
    assert await complete(store, task, claim=1) == [better.task_id]
    assert await line.holders() == ["w"]


async def test_a_better_task_goes_first_when_a_worker_waits_for_it(store: Store, line: Line) -> None:
    await store.limits.acquire("gpu", lease_id="first")
    await store.workers.register("w")
    task = on_gpu(priority="high")
    await store.submit_one(task)
    assert (await store.claim("w", idle=True)).tasks == []
    await line.join("me")
    await store.limits.force_release("gpu", "first")
    await called(store)
    assert await claimed(store) == [task.task_id]
    assert await line.length() == 1


async def test_a_task_that_no_worker_can_start_delays_no_acquire(store: Store, line: Line) -> None:
    await store.limits.acquire("gpu", lease_id="first")
    await store.limits.set("disk", Slots(limit=0))
    await store.workers.register("w", task_types=["t"])
    assert (await store.claim("w", idle=True)).tasks == []
    await store.submit_one(on_gpu(priority="high", task_type="other"))
    await store.submit_one(new(priority="high", limits={"gpu": 1, "disk": 1}))
    await line.join("me", priority="low")
    await store.limits.force_release("gpu", "first")
    assert await line.next() == "me"


async def test_a_worker_that_was_called_and_does_not_come_holds_up_for_two_seconds(
    store: Store, line: Line, clock: Clock
) -> None:
    await store.limits.acquire("gpu", lease_id="first")
    await store.workers.register("w")
    await store.submit_one(on_gpu(priority="high"))
    assert (await store.claim("w", idle=True)).tasks == []
    await line.join("me")
    await store.limits.force_release("gpu", "first")
    clock.pass_ms(1_999)
    await store.promote()
    assert await line.length() == 1
    clock.pass_ms(1)
    await store.promote()
    assert await line.holders() == ["me"]


async def test_tasks_and_acquires_of_two_users_take_turns(store: Store, line: Line) -> None:
    await store.workers.register("w")
    await store.limits.acquire("gpu", lease_id="first")
    await store.submit(*[on_gpu(user_id="ann") for _ in range(4)])
    for number in range(4):
        await line.join(f"bob{number}", user_id="bob")
    assert await claimed(store, idle=True) == []
    await store.limits.force_release("gpu", "first")
    order: list[str] = []
    while len(order) < 8:
        if ids := await claimed(store, idle=True):
            order.append("ann")
            await store.report("w", [Completed(ids[0])])
        else:
            order.append((await line.next())[:3])
    assert order == ["ann", "bob"] * 4


async def test_a_task_is_not_handed_over_a_better_acquire(store: Store, line: Line) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    await line.join("me", priority="high")
    await waits(store, "w")
    await store.submit_one(on_gpu())
    await store.limits.set("gpu", Slots(limit=1))
    assert await line.holders() == ["me"]
    other = new()
    await store.submit_one(other)
    assert (await handed(store)).task.task_id == other.task_id


# Time


async def test_a_rate_wakes_waiting_acquires_when_it_has_refilled(live_store: Store) -> None:
    await live_store.limits.set("api", Rate(count=20, period_seconds=1, burst=1))
    leases = await asyncio.gather(*(live_store.limits.acquire("api", wait_seconds=30) for _ in range(10)))
    assert len({lease.fence for lease in leases}) == 10


async def test_an_acquire_whose_wait_ends_is_refused_and_leaves_nothing(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire("gpu", wait_seconds=0.05)
    assert await line.length() == 0
    await store.limits.release(lease)
    assert await line.holders() == []


async def test_a_cancelled_acquire_leaves_the_queue(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    await line.join("me")
    await line.leave()
    assert await line.length() == 0
    await store.limits.release(lease)
    assert await line.holders() == []


async def test_a_silent_acquire_leaves_the_queue(store: Store, line: Line, clock: Clock) -> None:
    """Its process was killed: it is not requested any more."""
    lease = await store.limits.acquire("gpu", lease_ms=600_000)
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire("gpu", lease_id="me", wait_seconds=0.01, keep_place=True)
    assert await line.length() == 1
    clock.pass_seconds(15)
    await store.promote()
    assert await line.length() == 0
    await store.limits.release(lease)
    assert await line.holders() == []


async def test_a_killed_process_holds_nothing(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    lease, line = await live_store.limits.acquire("gpu"), Line(live_store, "gpu")
    connection = live_store.connection
    pool = connection.client.connection_pool.connection_kwargs
    url = f"unix://{pool['path']}" if "path" in pool else f"redis://{pool['host']}:{pool['port']}"
    program = (
        "import asyncio, sys\nfrom fairlead.store.store import Store\n"
        "store = Store.connect(sys.argv[1], sys.argv[2])\n"
        "asyncio.run(store.limits.acquire('gpu', wait_seconds=1.5))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, url, connection.keys.namespace, stderr=PIPE
    )
    await wait_until(line.length)
    process.send_signal(signal.SIGKILL)
    await process.wait()

    async def has_left() -> bool:
        await live_store.promote()
        return await line.length() == 0

    await wait_until(has_left)
    await live_store.limits.release(lease)
    assert (await live_store.limits.get("gpu")).active == 0


async def test_the_same_id_asks_for_the_same_place(store: Store, line: Line) -> None:
    lease = await store.limits.acquire("gpu")
    for _ in range(2):
        with pytest.raises(errors.LimitFull):
            await store.limits.acquire("gpu", lease_id="me", wait_seconds=0.01, keep_place=True)
    assert await line.length() == 1
    with pytest.raises(errors.IdempotencyConflict):
        await store.limits.acquire("gpu", lease_id="me", units=2, wait_seconds=1)
    await store.limits.release(lease)
    granted = await store.limits.acquire("gpu", lease_id="me", wait_seconds=1)
    assert granted == await store.limits.acquire("gpu", lease_id="me")


async def test_a_lease_that_is_waited_for_is_not_renewed(store: Store, line: Line) -> None:
    await store.limits.acquire("gpu")
    await line.join("me")
    with pytest.raises(errors.Fenced):
        await store.limits.renew_known("gpu", "me")


async def test_the_queue_is_bounded(store: Store, line: Line) -> None:
    await store.limits.acquire("gpu")
    key = store.connection.keys.key("limit", "gpu")
    await store.connection.client.hset(key, "waiters", "10000")
    with pytest.raises(errors.LimitFull):
        await asyncio.wait_for(store.limits.acquire("gpu", wait_seconds=600), 10)
    await store.connection.client.hdel(key, "waiters")


async def test_an_act_that_frees_many_limits_gives_64_waiters_their_units_and_the_next_the_others(
    store: Store,
) -> None:
    names = [f"limit{n:02}" for n in range(80)]
    for name in names:
        await store.limits.set(name, Slots(limit=1))
    await store.workers.register("w", capacity=80)
    await store.submit(*(NewTask(task_type="echo", limits={name: 1}) for name in names))
    tasks = (await store.claim("w", 80)).tasks

    async def wait_in_line(name: str) -> None:
        with pytest.raises(errors.LimitFull):
            await store.limits.acquire(name, lease_id=f"for-{name}", wait_seconds=0.001, keep_place=True)

    await asyncio.gather(*map(wait_in_line, names))

    async def granted() -> int:
        return sum(bool(limit.active) for limit in await store.limits.all())

    await store.complete("w", *(Completed(task.task_id, task.fence) for task in tasks))
    assert await granted() == 64
    await store.claim("w")
    assert await granted() == 80


# The doctor

FAULTS: dict[str, tuple[str, list[str]]] = {
    "it is not in line": ("I1", ["ZREM", "waiters:gpu", "{member}"]),
    "it has another rank": ("I1", ["ZADD", "waiters:gpu", "7", "{member}"]),
    "a stranger is in line": ("I1", ["ZADD", "waiters:gpu", "7", "00000000000071n1:nobody"]),
    "its end is unknown": ("I1", ["ZREM", "waits", "lease:me"]),
    "its limit counts others": ("C1", ["HSET", "limit:gpu", "waiters", "3"]),
    "its place counts others": ("C1", ["HSET", "meta", "waiters_1n", "3"]),
    "its units are free": ("S4", ["HSET", "limit:gpu", "limit", "9"]),
    "a limit is looked at for nobody": ("S10", ["ZADD", "revisits", "9999999999999", "disk"]),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_doctor_names_what_is_wrong_with_a_queue(
    store: Store, line: Line, clock: Clock, fault: str
) -> None:
    await store.limits.acquire("gpu", lease_ms=60_000)
    await line.join("me")
    client, keys = raw(store), store.connection.keys
    (member,) = await client.zrange(keys.key("waiters", "gpu"), 0, -1)
    invariant, (command, key, *arguments) = FAULTS[fault]
    healthy = await client.dump(keys.key(key))
    values = [argument.replace("{member}", member.decode()) for argument in arguments]
    await client.execute_command(command, keys.key(key), *values)
    found = await examine(store.connection, now_ms=clock.now, twice=False)
    assert invariant in {breach.invariant for breach in found}
    if healthy is None:
        await client.delete(keys.key(key))
    else:
        await client.restore(keys.key(key), 0, healthy, replace=True)


# Many


async def test_fifty_waiting_acquires_get_it_once_each_and_do_not_poll(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    fences: list[int] = []
    holding = 0

    async def hold() -> None:
        nonlocal holding
        lease = await live_store.limits.acquire("gpu", wait_seconds=60)
        holding += 1
        assert holding == 1
        fences.append(lease.fence)
        await asyncio.sleep(0)
        holding -= 1
        await live_store.limits.release(lease)

    acquires = 0
    run = live_store.connection.run

    async def counted(act: str, *arguments: Any) -> Any:
        nonlocal acquires
        acquires += act == "acquire"
        return await run(act, *arguments)

    live_store.connection.run = counted  # type: ignore[method-assign]
    await asyncio.gather(*(hold() for _ in range(50)))
    live_store.connection.run = run  # type: ignore[method-assign]
    assert fences == sorted(set(fences)) and len(fences) == 50
    assert acquires <= 2 * 50 + 50, "once to queue, once when woken; a few look after time"


class Play:
    """Tasks, workers and acquires of two limits, at random."""

    def __init__(self, store: Store, clock: Clock, seed: int) -> None:
        self.store, self.clock, self.chance = store, clock, random.Random(seed)
        self.running: dict[str, list[Task]] = {"w1": [], "w2": []}
        self.served = {worker: clock.now for worker in self.running}
        self.requested: dict[str, tuple[str, int]] = {}

    async def open(self) -> None:
        await self.store.limits.set("gpu", Slots(limit=3))
        await self.store.limits.set("api", Rate(count=1, period_seconds=1, burst=2))
        for worker in self.running:
            await self.store.workers.register(worker, capacity=2)

    async def step(self) -> None:
        acts = (self.submit, self.serve, self.acquire)
        await self.chance.choice([*acts, *acts, self.give_up, self.ask_again, self.let_time_pass])()

    async def submit(self) -> None:
        wanted = self.chance.choice([{"gpu": 1}, {"gpu": 2}, {"api": 1}, {"gpu": 1, "api": 1}, {}])
        await self.store.submit_one(
            new(limits=wanted, priority=self.chance.choice(["high", "medium", "low"]))
        )

    async def serve(self) -> None:
        await self.serve_one(self.chance.choice(sorted(self.running)))

    async def serve_one(self, worker: str) -> None:
        self.served[worker] = self.clock.now
        await self.store.workers.register(worker, capacity=2)  # it may have been declared dead
        done = [task for task in self.running[worker] if self.chance.random() < 0.6]
        reports = [Completed(task.task_id, task.fence) for task in done]
        _, given = await self.store.report(worker, reports, claim=2, idle=True)
        self.running[worker] = [task for task in self.running[worker] if task not in done] + given.tasks

    async def acquire(self) -> None:
        lease_id = f"l{self.chance.getrandbits(40)}"
        self.requested[lease_id] = self.chance.choice([("gpu", 1), ("gpu", 3), ("api", 1), ("api", 2)])
        await self.ask(lease_id, self.chance.choice([0, 3_000, 60_000]))

    async def ask(self, lease_id: str, wait_ms: int) -> None:
        """One act, as the loop of an acquire makes it."""
        arguments = ("", *self.requested[lease_id], 20_000, lease_id, "")
        line = (int(lease_id[-1]) % 3, f"u{lease_id[-1]}", 1)
        answer = await self.store.connection.run("acquire", *arguments, wait_ms, *line, self.clock())
        if answer["answer"] not in ("ok", "waiting"):
            del self.requested[lease_id]

    async def ask_again(self) -> None:
        if self.requested:
            await self.ask(self.chance.choice(sorted(self.requested)), self.chance.choice([0, 60_000]))

    async def give_up(self) -> None:
        if self.requested:
            lease_id = self.chance.choice(sorted(self.requested))
            with contextlib.suppress(errors.Fenced):  # its wait or its lease is over
                await self.store.limits.release_known(self.requested.pop(lease_id)[0], lease_id)

    async def let_time_pass(self) -> None:
        self.clock.pass_ms(self.chance.choice([1, 500, 2_000, 6_000]))
        await self.store.promote()
        await self.store.expire()
        for worker, at in self.served.items():
            if self.clock.now - at >= 4_500:  # as each does that waits, called or not
                await self.serve_one(worker)


@pytest.mark.parametrize("seed", range(6))
async def test_no_waiting_acquire_is_ever_forgotten(store: Store, clock: Clock, seed: int) -> None:
    """After every step the doctor finds none that waits in vain."""
    play = Play(store, clock, seed)
    await play.open()
    for step in range(150):
        await play.step()
        assert await examine(store.connection, now_ms=clock.now, twice=False) == [], step

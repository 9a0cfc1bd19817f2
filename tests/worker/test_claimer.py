"""How a worker claims: only what it has room for, in batches, and without polling while nothing waits."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.waiting import wait_until


class Gate:
    """Tasks that run until they are released, and record which of them run."""

    def __init__(self, fl: Fairlead) -> None:
        self.running: list[str] = []
        self.most = 0
        self.open = asyncio.Event()

        @fl.task("gated")
        async def gated(ctx: Context) -> None:
            self.running.append(ctx.task_id)
            self.most = max(self.most, len(self.running))
            await self.open.wait()
            self.running.remove(ctx.task_id)


@pytest.fixture
def trips(fl: Fairlead, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each round trip of a worker's reports and claims carried: the acts, each with its arguments."""
    made: list[dict[str, Any]] = []
    connect = fl.__class__.__aenter__

    async def connect_and_count(self: Fairlead) -> Fairlead:
        await connect(self)
        together = self.store.connection.run_together

        async def counted(*calls: Any) -> Any:
            made.append({call[0]: call[1:] for call in calls})
            return await together(*calls)

        monkeypatch.setattr(self.store.connection, "run_together", counted)
        return self

    monkeypatch.setattr(fl.__class__, "__aenter__", connect_and_count)
    return made


async def submit(fl: Fairlead, task_type: str, count: int, **options: Any) -> list[TaskHandle[Any]]:
    tasks = [NewTask(task_type=task_type, **options) for _ in range(count)]
    return await fl.submit_many(tasks)


# Room


async def test_a_worker_holds_no_more_than_it_has_room_for(fl: Fairlead, live_store: Store) -> None:
    gate = Gate(fl)
    async with fl, fl.worker(capacity=3) as worker:
        tasks = await submit(fl, "gated", 10)
        await wait_until(lambda: len(gate.running) == 3)
        (known,) = (await live_store.stats()).workers
        assert (known.running, sorted(worker.running)) == (3, sorted(gate.running))
        gate.open.set()
        for task in tasks:
            await task.result(timeout=30)
    assert gate.most == 3


async def test_a_claim_requests_no_more_than_there_is_room_for(
    fl: Fairlead, trips: list[dict[str, Any]]
) -> None:
    gate = Gate(fl)
    async with fl, fl.worker(capacity=4):
        tasks = await submit(fl, "gated", 12)
        await wait_until(lambda: len(gate.running) == 4)
        gate.open.set()
        for task in tasks:
            await task.result(timeout=30)
    requested = [trip["claim"][1] for trip in trips if "claim" in trip]
    assert requested and max(requested) <= 4
    assert gate.most == 4


async def test_a_worker_with_much_room_claims_on_until_it_is_full(fl: Fairlead, live_store: Store) -> None:
    """One act gives at most 200 tasks, or a megabyte of them."""
    gate = Gate(fl)
    await live_store.submit(*(NewTask(task_type="gated", parameters={}) for _ in range(500)))
    async with fl, fl.worker(capacity=500):
        await wait_until(lambda: len(gate.running) == 500)
        gate.open.set()


async def test_the_reserve_of_a_worker_is_kept_for_high(fl: Fairlead) -> None:
    gate = Gate(fl)
    async with fl, fl.worker(capacity=3, reserve=1):
        low = await submit(fl, "gated", 3, priority="low")
        await wait_until(lambda: len(gate.running) == 2)
        assert (await low[2].explain()).sentence == "The free slots are reserved for high priority."
        (high,) = await submit(fl, "gated", 1, priority="high")
        await wait_until(lambda: high.task_id in gate.running)
        gate.open.set()
        await low[2].result(timeout=30)
    assert gate.most == 3


async def test_two_workers_share_the_tasks(fl: Fairlead) -> None:
    gate = Gate(fl)
    async with fl, fl.worker(capacity=2), fl.worker(capacity=2):
        tasks = await submit(fl, "gated", 4)
        await wait_until(lambda: len(gate.running) == 4)
        workers = {(await task.get()).assigned_worker_id for task in tasks}
        gate.open.set()
    assert len(workers) == 2


# Batches


async def test_results_and_the_next_claim_go_in_one_trip_and_in_batches(
    fl: Fairlead, trips: list[dict[str, Any]]
) -> None:
    @fl.task
    async def nothing() -> None: ...

    async with fl:
        tasks = await submit(fl, "nothing", 200)
        async with fl.worker(capacity=20):
            for task in tasks:
                await task.result(timeout=30)
    assert any({"complete", "claim"} <= trip.keys() for trip in trips)
    assert len(trips) <= 100, "each trip carries several"


# Waiting


@pytest.fixture
def idle_config(tmp_path: Path) -> Path:
    path = tmp_path / "idle.toml"
    path.write_text("")  # all defaults: a heartbeat every 10 s
    return path


async def commands(store: Store) -> int:
    """How many the server has carried out, this question included."""
    stats = await store.connection.client.info("stats")
    return int(stats["total_commands_processed"])


async def at_rest(store: Store) -> bool:
    """Nothing but our own question within some time."""
    before = await commands(store)
    await asyncio.sleep(0.3)
    return await commands(store) - before == 1


class TestIdle:
    """Workers with the settings of every day, which have nothing to do."""

    @pytest.fixture
    def config(self, idle_config: Path) -> Path:
        return idle_config

    async def test_an_idle_worker_asks_for_nothing(self, fl: Fairlead, live_store: Store) -> None:
        Gate(fl)
        async with fl, fl.worker():
            await wait_until(lambda: at_rest(live_store))
            before = await commands(live_store)
            await asyncio.sleep(3)
            assert await commands(live_store) - before <= 3, "at most one a second, ours included"

    @pytest.mark.parametrize("delay", [None, 0.4])
    async def test_an_idle_worker_wakes_when_there_is_a_task(
        self, fl: Fairlead, live_store: Store, delay: float | None
    ) -> None:
        Gate(fl).open.set()
        async with fl, fl.worker():
            await wait_until(lambda: at_rest(live_store))
            (task,) = await submit(fl, "gated", 1, delay_seconds=delay)
            await task.result(timeout=10)  # less than the time after which a worker looks by itself

    async def test_an_idle_worker_wakes_when_a_rate_has_refilled(
        self, fl: Fairlead, live_store: Store
    ) -> None:
        Gate(fl).open.set()
        fl.limit("api", rate="3/s", burst=1)
        async with fl, fl.worker():
            await wait_until(lambda: at_rest(live_store))
            for task in await submit(fl, "gated", 3, limits={"api": 1}):
                await task.result(timeout=10)

    @pytest.mark.parametrize("obstacle", ["a full limit", "a paused limit", "a paused type", "a held lease"])
    async def test_an_idle_worker_wakes_when_a_task_is_no_longer_blocked(
        self, fl: Fairlead, live_store: Store, obstacle: str
    ) -> None:
        Gate(fl).open.set()
        fl.limit("gpu", 1)
        async with fl, fl.worker():
            clear = await put_in_the_way(live_store, obstacle)
            (task,) = await submit(fl, "gated", 1, limits={"gpu": 1})
            await wait_until(lambda: at_rest(live_store))
            assert (await task.get()).status is State.QUEUED
            await clear()
            await task.result(timeout=10)


async def put_in_the_way(store: Store, obstacle: str) -> Callable[[], Awaitable[None]]:
    if obstacle == "a full limit":
        await store.limits.set("gpu", Slots(limit=0))
        return lambda: store.limits.set("gpu", Slots(limit=1))
    if obstacle == "a paused limit":
        await store.limits.pause("gpu")
        return lambda: store.limits.pause("gpu", False)
    if obstacle == "a paused type":
        await store.pause_type("gated")
        return lambda: store.pause_type("gated", False)
    lease = await store.limits.acquire("gpu")
    return lambda: store.limits.release(lease)


async def test_a_retry_comes_when_it_is_due(fl: Fairlead) -> None:
    @fl.task(max_retries=3)
    async def second_time_lucky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("not yet")
        return ctx.attempt

    async with fl, fl.worker():
        submitted = await fl.store.submit_one(NewTask(task_type="second_time_lucky"))
        assert isinstance(submitted, Submitted)
        assert await (await fl.get(submitted.task_id)).result(timeout=30) == 2

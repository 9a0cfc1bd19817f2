"""`GET /task` with MAX_CONCURRENT_TASKS=3 and HIGH_PRIORITY_RESERVED=1, on one worker and on two."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good, is_waiting
from tests.api.serving import Gateway, serving
from tests.waiting import wait_until

MOST, RESERVED = 3, 1


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"MAX_CONCURRENT_TASKS": str(MOST), "HIGH_PRIORITY_RESERVED": str(RESERVED)}


@pytest.fixture(scope="module")
def second(
    gateway: Gateway, server_env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    """Another server on the same store."""
    with serving(gateway.engine, gateway.namespace, tmp_path_factory.mktemp("two"), env=server_env) as server:
        yield server


@pytest.fixture
async def other(second: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=second.url, timeout=40) as client:
        yield client


async def schedule(api: httpx.AsyncClient, priority: str) -> str:
    task_id: str = good(await api.get("/task", params={"priority": priority}))["task_id"]
    return task_id


async def status(api: httpx.AsyncClient, task_id: str) -> str:
    word: str = good(await api.get(f"/task/{task_id}"))["status"]
    return word


@dataclass
class Busy:
    """A worker as a user writes one: it polls whenever it has room; its tasks end on request."""

    worker: HttpWorker
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: Counter[tuple[int, int]] = field(default_factory=Counter)  # (high, low) that ran at once
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        while True:
            room = MOST - len(self.running)
            if not room:
                self.changed.clear()
                await self.changed.wait()
                continue
            for polled in await self.worker.poll(room, wait_seconds=0.5):
                self.running[polled["task_id"]] = polled
                self.seen[self.count("high"), self.count("low")] += 1

    def count(self, priority: str) -> int:
        return sum(one["priority"] == priority for one in self.running.values())

    def kept_the_limits(self) -> None:
        assert max(high + low for high, low in self.seen) <= MOST
        assert max(low for _, low in self.seen) <= MOST - RESERVED

    async def finish(self, task_id: str) -> None:
        """What has ended runs no more; that is reported then."""
        good(await self.worker.complete(self.running.pop(task_id)))
        self.changed.set()


@asynccontextmanager
async def busy(*apis: httpx.AsyncClient) -> AsyncIterator[list[Busy]]:
    """A worker at each of these servers, registered with the defaults of the servers' settings."""
    registered = [good(await api.post("/internal/workers/register", json={}), 201) for api in apis]
    workers = [Busy(HttpWorker(api, one)) for api, one in zip(apis, registered, strict=True)]
    loops = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield workers
        assert not any(loop.done() for loop in loops)
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)


#: The table: what comes, one after the other, and how many (high, low) run then.
TABLE = {
    "all low": (["low"] * 5, (0, 2)),
    "all high": (["high"] * 5, (3, 0)),
    "mixed": (["low", "low", "high"], (1, 2)),
    "low tries the third slot": (["high", "low", "low", "low"], (1, 2)),
    "high bursts, no low": (["high"] * 3, (3, 0)),
    "high fills up, low waits": (["high"] * 3 + ["low"] * 3, (3, 0)),
}


@pytest.mark.parametrize("case", TABLE)
async def test_the_table_holds_on_one_worker(api: httpx.AsyncClient, store: Store, case: str) -> None:
    scheduled, (high, low) = TABLE[case]
    async with busy(api) as (worker,):
        for priority in scheduled:
            await schedule(api, priority)
        await wait_until(lambda: (worker.count("high"), worker.count("low")) == (high, low))
        queues = (await store.stats()).queues
        assert sum(queue.depth for queue in queues.values()) == len(scheduled) - high - low
        worker.kept_the_limits()


async def test_two_workers_hold_the_limits_each_and_together(
    api: httpx.AsyncClient, other: httpx.AsyncClient, store: Store
) -> None:
    async with busy(api, other) as workers:
        for _ in range(10):
            await schedule(api, "low")
        await wait_until(lambda: [worker.count("low") for worker in workers] == [2, 2])
        for _ in range(5):
            await schedule(other, "high")
        await wait_until(lambda: [worker.count("high") for worker in workers] == [1, 1])
        stats = good(await api.get("/api/v1/queue/stats"))
        assert (stats["workers"]["total_capacity"], stats["workers"]["used_capacity"]) == (6, 6)
        assert {name: queue["depth"] for name, queue in stats["queues"].items()} == {
            "high": 3,
            "medium": 0,
            "low": 6,
        }


async def test_a_task_that_one_worker_cannot_start_the_other_starts_at_once(
    api: httpx.AsyncClient, other: httpx.AsyncClient, store: Store
) -> None:
    """Nothing is taken from the queue by a worker that has no room for it."""
    full = HttpWorker(api, good(await api.post("/internal/workers/register", json={}), 201))
    for _ in range(2):
        await schedule(api, "low")
    assert len(await full.poll(3)) == 2
    waiting = asyncio.create_task(full.poll(1, wait_seconds=30))  # for high, which alone it may start
    await wait_until(lambda: is_waiting(store, full))
    task_id = await schedule(api, "low")
    assert await status(api, task_id) == "queued"
    async with busy(other) as (free,):
        await wait_until(lambda: task_id in free.running)
        assert await status(api, task_id) == "executing"
        highs = [await schedule(other, "high") for _ in range(3)]  # one more than the free one has room for
        await wait_until(lambda: waiting.done() and len(free.running) == MOST)
        assert {one["task_id"] for one in await waiting} | free.running.keys() == {task_id, *highs}


async def test_a_poll_that_waits_gets_low_when_a_low_of_its_worker_ends(
    api: httpx.AsyncClient, store: Store
) -> None:
    worker = HttpWorker(api, good(await api.post("/internal/workers/register", json={}), 201))
    for _ in range(3):
        await schedule(api, "low")
    first, _ = await worker.poll(3)
    waiting = asyncio.create_task(worker.poll(1, wait_seconds=30))
    await wait_until(lambda: is_waiting(store, worker))
    good(await worker.complete(first))
    await wait_until(waiting.done, 10)  # and not only when its time ends
    assert len(await waiting) == 1


async def test_a_crowd_is_worked_off_within_the_limits(
    api: httpx.AsyncClient, other: httpx.AsyncClient, store: Store
) -> None:
    dice = random.Random(0)
    async with busy(api, other) as workers:
        ids = [await schedule(dice.choice([api, other]), dice.choice(["low", "high"])) for _ in range(60)]
        done = 0
        while done < len(ids):
            await wait_until(lambda: any(worker.running for worker in workers))
            worker = dice.choice([one for one in workers if one.running])
            await worker.finish(dice.choice(list(worker.running)))
            done += 1
        for worker in workers:
            worker.kept_the_limits()
        assert sum(sum(worker.seen.values()) for worker in workers) == len(ids), "each task started once"
    assert {await status(api, task_id) for task_id in ids} == {"completed"}
    assert (await store.stats()).used_capacity == 0

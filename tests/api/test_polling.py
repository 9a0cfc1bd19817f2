"""The long poll: it wakes when there is a task, and returns tasks that it got for a disconnected client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx

from fairlead.clock import now_ms
from fairlead.model.states import State
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import (
    HttpWorker,
    good,
    hang_up,
    ids,
    is_waiting,
    post,
    refused,
    submit,
    task,
)
from tests.api.serving import Gateway
from tests.conftest import Clock
from tests.store.namespace import new
from tests.waiting import wait_until


@contextlib.asynccontextmanager
async def polling(store: Store, worker: HttpWorker, **options: Any) -> AsyncIterator[asyncio.Task[Any]]:
    """A poll that waits."""
    poll = asyncio.create_task(worker.poll(1, **{"wait_seconds": 30, **options}))
    try:
        await wait_until(lambda: is_waiting(store, worker), because="it is queued")
        yield poll
    finally:
        poll.cancel()
        await asyncio.gather(poll, return_exceptions=True)


async def gone_when_called(store: Store, gateway: Gateway, worker: HttpWorker, body: bytes) -> str:
    """A task for which a poll is woken whose connection is cut: the server learns both at once."""
    line = await post(gateway.port, f"{worker.path}/poll", body)
    await wait_until(lambda: is_waiting(store, worker), because="it is queued")
    async with gateway.frozen():
        submitted = await store.submit_one(new())
        await hang_up(line)
    return submitted.task_id


async def test_it_wakes_when_a_task_is_submitted(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    async with polling(store, worker) as poll:
        given = await submit(api)
        assert ids(await poll) == [given["task_id"]]
    assert not await is_waiting(store, worker)


async def test_it_wakes_when_a_delay_ends_and_when_a_limit_has_room(
    api: httpx.AsyncClient, store: Store
) -> None:
    worker = await HttpWorker.register(api)
    async with polling(store, worker) as poll:
        later = await submit(api, delay_seconds=0.3)
        assert ids(await poll) == [later["task_id"]]
    await store.limits.set("gpu", Slots(limit=0))
    blocked = await submit(api, limits={"gpu": 1})
    async with polling(store, worker) as poll:
        good(await api.put("/api/v1/limits/gpu", json={"limit": 1}))
        assert ids(await poll) == [blocked["task_id"]]


async def test_it_ends_with_nothing_when_its_time_ends(api: httpx.AsyncClient, store: Store) -> None:
    worker = await HttpWorker.register(api)
    assert await worker.poll(wait_seconds=0.2) == []
    assert not await is_waiting(store, worker)


async def test_a_worker_that_is_drained_while_it_waits_gets_nothing(
    api: httpx.AsyncClient, store: Store
) -> None:
    worker = await HttpWorker.register(api)
    async with polling(store, worker) as poll:
        good(await api.post(f"/api/v1/workers/{worker.id}/drain"))
        await submit(api)
        assert await poll == []


async def test_it_is_repeated_with_its_request_id_until_there_is_a_task(
    api: httpx.AsyncClient, store: Store
) -> None:
    worker = await HttpWorker.register(api)
    assert await worker.poll(wait_seconds=0.05, request_id="a") == []
    async with polling(store, worker, request_id="b") as poll:
        await submit(api)
        got = await poll
    assert len(got) == 1
    assert await worker.poll(1, request_id="b") == got


async def test_a_disconnected_client_is_not_queued_and_gets_nothing(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    gone, there = await HttpWorker.register(api), await HttpWorker.register(api)
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40) as client:
        gone.api = client
        async with polling(store, gone):
            pass  # it disconnects here

    async def has_left() -> bool:
        return not await is_waiting(store, gone)

    await wait_until(has_left, because="it has left the queue")
    async with polling(store, there) as poll:
        given = await submit(api)
        assert ids(await poll) == [given["task_id"]]


async def test_a_task_claimed_for_a_disconnected_client_is_returned_unrun(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    worker = await HttpWorker.register(api)
    task_id = await gone_when_called(store, gateway, worker, b'{"available_capacity": 1, "wait_seconds": 30}')

    async def returned() -> bool:
        found = await store.get(task_id)
        return found.status is State.QUEUED and found.fence > 0

    await wait_until(returned, because="it was claimed and returned")
    back = await task(api, task_id)
    assert (back["crash_count"], back["retry_count"]) == (0, 0)
    assert ids(await worker.poll()) == [task_id]


async def test_a_waiting_poll_of_an_unknown_worker_is_refused_at_once(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    worker.path = worker.path[:-4] + "0000"
    refused(await worker.post("poll", available_capacity=1, wait_seconds=30), 404, "unknown_worker")


async def test_a_task_claimed_by_a_request_with_an_id_waits_for_its_repetition(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    worker = await HttpWorker.register(api)
    body = b'{"available_capacity": 1, "wait_seconds": 30, "request_id": "a1"}'
    task_id = await gone_when_called(store, gateway, worker, body)

    async def is_claimed() -> bool:
        return (await store.get(task_id)).status == "executing"

    await wait_until(is_claimed)
    fence = (await store.get(task_id)).fence
    (polled,) = await worker.poll(1, request_id="a1")
    assert (polled["task_id"], polled["fence"]) == (task_id, fence)
    good(await worker.complete(polled))


async def test_tasks_that_do_not_fit_into_one_answer_come_with_the_next(
    api: httpx.AsyncClient, store: Store
) -> None:
    await store.submit(*(new() for _ in range(178)))
    worker = await HttpWorker.register(api, capacity=300)
    polls = [
        good(await worker.post("poll", available_capacity=room, wait_seconds=wait))
        for room, wait in ((300, 10), (100, 0))
    ]
    assert [(len(poll["tasks"]), poll["again"]) for poll in polls] == [(128, True), (50, False)]


async def test_a_poll_waits_while_better_tasks_that_are_due_are_queued_in_front_of_its_own(
    api: httpx.AsyncClient, store: Store
) -> None:
    """The first claims find nothing that may start yet, and report that they are incomplete."""
    earlier = Store(store.connection, store.settings, Clock(now_ms() - 60_000))
    await earlier.submit(*(new(delay_seconds=1, required_capabilities=("gpu",)) for _ in range(400)))
    low = await store.submit_one(new(priority="low"))
    worker = await HttpWorker.register(api)
    assert ids(await worker.poll(1, wait_seconds=10)) == [low.task_id]

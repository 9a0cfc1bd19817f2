"""Polls that end inside the gateway, between a claim and its answer: what they got goes back at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

from fairlead.api.batching import SubmitBatcher
from fairlead.api.endpoint import Endpoint
from fairlead.api.failed_keys import FailedKeys
from fairlead.api.gateway import Gateway
from fairlead.api.live.connections import Connections
from fairlead.api.polls import Polls
from fairlead.api.routes.worker_tasks import poll, routes
from fairlead.model.states import State
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.store import Store
from tests.faults.wire import Wire
from tests.store.namespace import new
from tests.waiting import wait_until


class PollingGateway:
    """A gateway without its server: what it answers is all that a client would receive."""

    def __init__(self, store: Store, polls: Polls) -> None:
        (route,) = [route for route in routes if route.handler is poll]
        gateway = Gateway(
            store=store,
            batcher=SubmitBatcher(store),
            polls=polls,
            keys=KeyRing(store.api_keys),
            priorities=None,
            asks_for_keys=False,
            failed_keys=FailedKeys(0),
            connections=Connections(1),
        )
        self._endpoint = Endpoint(route, gateway)
        self.status = 0
        self.body = b""

    async def poll(self, worker: str) -> None:
        scope = {
            "headers": [(b"content-type", b"application/json")],
            "path_params": {"worker_id": worker},
            "query_string": b"",
        }
        await self._endpoint(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if not self.status and not self.body:
            self.body = b"asked"
            return {"type": "http.request", "body": b'{"available_capacity": 1}'}
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body = message.get("body", b"")


@pytest.fixture
async def worker(live_store: Store) -> AsyncIterator[str]:
    await live_store.workers.register("w")
    yield "w"


async def test_a_poll_that_is_cancelled_anywhere_keeps_nothing(live_store: Store, worker: str) -> None:
    task_id = (await live_store.submit_one(new())).task_id
    for steps in count(1):
        async with Polls(live_store) as polls:
            gateway = PollingGateway(live_store, polls)
            polling = asyncio.create_task(gateway.poll(worker))
            for _ in range(steps):
                await asyncio.sleep(0)
            polling.cancel()
            await asyncio.wait([polling])
        if not polling.cancelled():
            break
        task = await live_store.get(task_id)
        assert task.status is State.QUEUED, f"cancelled after {steps} steps"
    assert json.loads(gateway.body)["tasks"][0]["task_id"] == task_id


async def test_a_poll_that_is_cancelled_before_the_reply_to_its_claim_keeps_nothing(
    live_store: Store, lossy: tuple[Wire, Store], worker: str
) -> None:
    line, store = lossy
    await store.claim(worker, 0)  # the server knows the act: the next claim is one call
    task_id = (await live_store.submit_one(new())).task_id

    async def has(status: State) -> bool:
        return (await live_store.get(task_id)).status is status

    line.silence_at = lambda request: b"_claim" in request
    async with Polls(store) as polls:
        polling = asyncio.create_task(PollingGateway(store, polls).poll(worker))
        await wait_until(lambda: has(State.EXECUTING))
        polling.cancel()
        line.silence_at, line.silent = lambda request: False, False
        await asyncio.wait([polling])
        await wait_until(lambda: has(State.QUEUED))
    assert polling.cancelled()
    assert not (await live_store.workers.heartbeat(worker)).leases


async def test_tasks_of_a_claim_whose_answer_was_lost_are_returned(
    live_store: Store, lossy: tuple[Wire, Store], worker: str
) -> None:
    line, store = lossy
    await store.claim(worker, 0)  # the server knows the act: the next claim is one call
    task_id = (await live_store.submit_one(new())).task_id
    line.lose_reply = lambda request: line.lost == 0 and b"_claim" in request
    async with Polls(store) as polls:
        gateway = PollingGateway(store, polls)
        await gateway.poll(worker)
        assert (gateway.status, line.lost) == (503, 1)

        async def is_back() -> bool:
            task = await live_store.get(task_id)
            return bool(task.status is State.QUEUED and task.fence)

        await wait_until(is_back)
    assert not (await live_store.workers.heartbeat(worker)).leases

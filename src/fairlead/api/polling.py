"""Calls that wait: for as long as their caller is there, and this server is not told to stop."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Self

from fairlead.api.bodies import PollBody
from fairlead.api.call import Call, ClientGone
from fairlead.clock import monotonic
from fairlead.store.reports import Claimed, Grant, Handed
from fairlead.store.store import Store


class Caller:
    """Who waits for the answer to a long call. `async with Caller(call, seconds) as caller:`"""

    def __init__(self, call: Call, seconds: float) -> None:
        self._call = call
        self._ends = monotonic() + seconds

    async def __aenter__(self) -> Self:
        self._gone = asyncio.ensure_future(self._call.gone())
        self._stopping = asyncio.ensure_future(self._call.gateway.stopping.wait())
        return self

    async def __aexit__(self, *_: object) -> None:
        await _cancel(self._gone, self._stopping)

    @property
    def has_gone(self) -> bool:
        return self._gone.done()

    @property
    def seconds_left(self) -> float:
        return 0 if self._gone.done() or self._stopping.done() else max(0, self._ends - monotonic())

    async def wait_for(self, something: Awaitable[object]) -> None:
        """Until it has come, or the time is over for some other reason."""
        waiting = asyncio.ensure_future(something)
        try:
            ends = {waiting, self._gone, self._stopping}
            await asyncio.wait(ends, timeout=self.seconds_left, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                waiting.result()  # raises what went wrong
        finally:
            await _cancel(waiting)


async def poll_tasks(call: Call, worker: str, body: PollBody) -> Claimed:
    """Claims, or waits until it is worth claiming again."""
    store, room = call.gateway.store, body.available_capacity
    async with Caller(call, body.wait_seconds if room else 0) as caller:
        while True:
            # The last claim is one without waiting: a worker that is not there to be woken must not stand
            # in the line, or the next task would be announced to nobody.
            left = caller.seconds_left
            claimed = await store.claim(
                worker,
                room,
                idle=left > 0 or body.idle,
                request=body.request_id or "",
                capabilities=body.capabilities,
            )
            # Who has a request id asks again, and is given the same: given back meanwhile, they would be run
            # by two.
            if caller.has_gone and not body.request_id:
                await _give_back(store, worker, claimed)
                raise ClientGone
            if claimed.tasks or claimed.draining or not left:
                return claimed
            if not claimed.again:
                await caller.wait_for(store.workers.wait(worker, _until_alarm(claimed, left)))
            if body.request_id:  # else the store would answer as before: with nothing
                await store.claim(worker, 0, request=f"{body.request_id}.")


async def wait_for_call(call: Call, worker: str, seconds: float) -> str | None:
    """What the store calls this worker for; None when the time is over."""
    async with Caller(call, seconds) as caller:
        waiting = asyncio.ensure_future(call.gateway.store.workers.wait(worker, seconds))
        await caller.wait_for(waiting)
        called = None if waiting.cancelled() else waiting.result()
        # over HTTP nobody is handed a task; if one was, before it came by HTTP, its next claim brings it
        return "" if isinstance(called, Handed) else called


def _until_alarm(claimed: Claimed, most: float) -> float:
    if claimed.next_alarm is None:
        return most
    return min(most, max(0.0, (claimed.next_alarm - claimed.now) / 1000))


async def _give_back(store: Store, worker: str, claimed: Claimed) -> None:
    """Nobody would run them: they go back at once, unrun, and the next worker in the line is woken."""
    if claimed.tasks:
        await store.release(worker, *(Grant(task.task_id, task.fence) for task in claimed.tasks))


async def _cancel(*futures: asyncio.Future[Any]) -> None:
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)

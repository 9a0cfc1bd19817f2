"""Long polls: they wait until there is an answer, the client disconnects, or this server stops."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Self

import msgspec

from fairlead.api.polls import grants_of, new_request
from fairlead.api.request import ClientGone, Request
from fairlead.background import cancel_all
from fairlead.clock import monotonic
from fairlead.errors import StoreUnavailable
from fairlead.model.reports import Claimed, Handed
from fairlead.shapes.worker import PollBody

NET_SECONDS = 5.0  # a wake-up may be lost: claim at least this often


class LongPoll:
    """`async with LongPoll(request, seconds) as poll:`"""

    def __init__(self, request: Request, seconds: float) -> None:
        self._request = request
        self._ends = monotonic() + seconds

    async def __aenter__(self) -> Self:
        self._gone = asyncio.ensure_future(self._request.gone())
        self._stopping = asyncio.ensure_future(self._request.gateway.stopping.wait())
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel_all(self._gone, self._stopping)

    @property
    def has_gone(self) -> bool:
        return self._gone.done()

    @property
    def seconds_left(self) -> float:
        return 0 if self._gone.done() or self._stopping.done() else max(0, self._ends - monotonic())

    async def wait_for(self, *somethings: Awaitable[object]) -> None:
        """Returns when one of them is done, or the poll has to end; cancels the others."""
        waiting = [asyncio.ensure_future(something) for something in somethings]
        try:
            ends = {*waiting, self._gone, self._stopping}
            await asyncio.wait(ends, timeout=self.seconds_left, return_when=asyncio.FIRST_COMPLETED)
            for one in waiting:
                if one.done():
                    one.result()  # raises what went wrong
        finally:
            await cancel_all(*waiting)


async def poll_tasks(request: Request, worker: str, body: PollBody) -> Claimed:
    """Claims, or waits until it is worth claiming again."""
    polls, seconds = request.gateway.polls, body.wait_seconds if body.available_capacity else 0
    async with LongPoll(request, seconds) as poll:
        with polls.waiting(worker) as claim_again:
            while True:
                # The last claim does not wait: a worker that cannot be woken must not be in the queue of idle
                # workers, or the next task would be announced to nobody.
                left = poll.seconds_left
                if poll.has_gone and polls.has_others(worker):
                    raise ClientGone  # they claim: this one would take their place in the queue
                claimed = await _claim(request, worker, body, idle=left > 0 or body.idle)
                if poll.has_gone and not body.request_id:
                    raise ClientGone
                if claimed.tasks or claimed.draining or not left:
                    return claimed
                if not claimed.again:
                    called = request.gateway.store.workers.wait(worker, _until_alarm(claimed, left))
                    await poll.wait_for(called, claim_again.wait())
                    claim_again.clear()
                if body.request_id:  # else the store would repeat its answer: nothing
                    await request.gateway.store.claim(worker, 0, request=f"{body.request_id}.")


async def _claim(request: Request, worker: str, body: PollBody, idle: bool) -> Claimed:
    """What is claimed is given back unless the client receives it.

    Not when the client sent a request id: then it asks again and gets the same tasks, which no other worker
    may run meanwhile.
    """
    store, polls = request.gateway.store, request.gateway.polls
    request_id = body.request_id or new_request()
    try:
        claimed = await store.claim(
            worker,
            body.available_capacity,
            idle=idle,
            request=request_id,
            capabilities=body.capabilities,
            content=msgspec.Raw,
        )
    except (StoreUnavailable, asyncio.CancelledError):
        if not body.request_id:
            polls.recover(worker, request_id)
        raise
    if claimed.tasks and not body.request_id:
        request.on_lost = partial(polls.give_back, worker, grants_of(claimed))
    return claimed


async def wait_for_call(request: Request, worker: str, seconds: float) -> str | None:
    """Why the store wakes this worker; None when the time is over."""
    async with LongPoll(request, seconds) as poll:
        waiting = asyncio.ensure_future(request.gateway.store.workers.wait(worker, seconds))
        await poll.wait_for(waiting)
        called = None if waiting.cancelled() else waiting.result()
        # over HTTP tasks are not handed over; if one was, before the worker used HTTP, its next claim gets it
        return "" if isinstance(called, Handed) else called


def _until_alarm(claimed: Claimed, most: float) -> float:
    most = min(most, NET_SECONDS)
    if claimed.next_alarm is None:
        return most
    return min(most, max(0.0, (claimed.next_alarm - claimed.now) / 1000))

"""Submits the tasks of many requests together: those that arrive during a call go with the next one."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from fairlead.background import TaskSet
from fairlead.errors import StoreUnavailable
from fairlead.model.blob import names_blobs
from fairlead.model.task import NewTask, Submitted
from fairlead.store.store import Store

MOST_AT_ONCE = 100  # so that one call to the store stays short
CALLS = 2  # under way at once: this process works on some while the store works on the others

Waiting = tuple[NewTask, "asyncio.Future[Submitted]"]


class SubmitBatcher(AbstractAsyncContextManager["SubmitBatcher"]):
    """`async with SubmitBatcher(store) as batcher:`

    A single task is sent at once. Under load each call takes all that have arrived meanwhile, which costs the
    store a fraction of a call for each. Every task is still accepted or refused on its own.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[Waiting] = deque()
        self._sending = TaskSet()
        self._calls = 0  # without those that have just ended
        self._under_way = 0  # tasks in calls that are not answered yet

    async def __aexit__(self, *_: object) -> None:
        if self._sending:
            await asyncio.wait(self._sending)

    async def submit(self, task: NewTask) -> Submitted:
        if names_blobs(task.parameters):  # others do not wait until they are found
            return await self._store.submit_one(task)
        future: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if self._calls < CALLS and self._is_worth_a_call():
            self._calls += 1
            # a separate task: the first client may disconnect, and others wait for the same call
            self._sending.start(self._send())
        return await future

    def _is_worth_a_call(self) -> bool:
        """With as many as are under way: every call costs the store as much as several tasks."""
        return len(self._waiting) >= max(1, self._under_way)

    async def _send(self) -> None:
        try:
            while self._is_worth_a_call():
                some = [self._waiting.popleft() for _ in range(min(MOST_AT_ONCE, len(self._waiting)))]
                await self._send_some(some)
        finally:
            self._calls -= 1  # at once: a task that arrives before this one is done would never be sent

    async def _send_some(self, some: list[Waiting]) -> None:
        answers: Sequence[Submitted | Exception]
        self._under_way += (size := len(some))
        try:
            answers = await self._store.submit(*(task for task, _ in some))
        except Exception as problem:  # any error: nobody may wait for ever
            if isinstance(problem, StoreUnavailable):
                # those behind it would get the same answer, after twice the time
                some = [*some, *self._waiting]
                self._waiting.clear()
            answers = [problem] * len(some)
        finally:
            self._under_way -= size
        for (_, future), answer in zip(some, answers, strict=True):
            if future.done():  # its client has disconnected
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

"""All that is told of one task, as messages, from what a client knows until the task has ended."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import Protocol, TypeVar

from fairlead.api.live.messages import (
    Message,
    event_message,
    output_message,
    state_messages,
    waiting_messages,
)
from fairlead.errors import FairleadError, StoreUnavailable
from fairlead.states import TERMINAL, State
from fairlead.store.live import Event
from fairlead.store.observe import Explanation
from fairlead.store.store import Store
from fairlead.task import Task

PAUSE = 0.25  # seconds between two looks when the store does not answer
CHUNKS_AT_ONCE = 50  # of kept output, so that a reader with time costs no memory

T = TypeVar("T")


class Feed(Protocol):
    """Something that can be watched."""

    def messages(self, after: int | None) -> AsyncGenerator[Message]: ...


async def insist(store: Store, look: Callable[[], Awaitable[T]]) -> T:
    """The store may be away for a while: so long there is no news."""
    while True:
        try:
            return await look()
        except StoreUnavailable:
            await asyncio.sleep(PAUSE)
            with contextlib.suppress(FairleadError):  # the next look tells
                await store.reopen()


class TaskFeed:
    def __init__(self, store: Store, task_id: str) -> None:
        self._store = store
        self._task_id = task_id
        self._seen: int | None = None  # the number of the last event the client knows of

    async def messages(self, after: int | None) -> AsyncGenerator[Message]:
        """First its state; or what is kept since `after` and then its state, unless nothing has changed."""
        self._seen = after
        async with self._store.live.watch(self._task_id) as events:
            async for event in events:
                if event is None or event.after in TERMINAL or self._misses_some(event):
                    task = await insist(self._store, partial(self._store.get, self._task_id))
                    async for message in self._known(task):
                        yield message
                    if task.status in TERMINAL:
                        return
                elif event.seq == self._next:  # else the state had it already
                    self._seen = event.seq
                    for message in await self._told(event):
                        yield message

    @property
    def _next(self) -> int:
        return (self._seen or 0) + 1

    def _misses_some(self, event: Event) -> bool:
        return event.seq > self._next

    async def _known(self, task: Task) -> AsyncGenerator[Message]:
        after, self._seen = self._seen, task.seq
        if after == task.seq:
            return
        if after is not None:
            async for message in self._kept(after, task.seq):
                yield message
        for message in state_messages(task, await self._explained(task.status)):
            yield message

    async def _kept(self, after: int, until: int) -> AsyncGenerator[Message]:
        """Chunks of output. What is newer than the state comes as an event: its number is to grow."""
        while after < until:
            page = partial(self._store.outputs, self._task_id, after_event=after, most=CHUNKS_AT_ONCE)
            outputs = await insist(self._store, page)
            for output in outputs:
                if output.event_seq <= until:
                    yield output_message(self._task_id, output)
            after = outputs[-1].event_seq if outputs else until

    async def _told(self, event: Event) -> list[Message]:
        if event.after is not State.QUEUED or (event.act == "promote" and event.before is State.QUEUED):
            return [event_message(event)]
        explanation = await self._explained(State.QUEUED)
        return [
            event_message(event, explanation),
            *waiting_messages(event.seq, event.at, explanation),
        ]

    async def _explained(self, status: State) -> Explanation | None:
        if status is not State.QUEUED:
            return None
        return await insist(self._store, partial(self._store.explain, self._task_id))

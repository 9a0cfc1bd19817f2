"""A feed: the state of a task or job as messages, then each change, until it has ended."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

from fairlead.backend import retry_while_unavailable
from fairlead.live.messages import Message, event_message, output_message, state_messages, waiting_messages
from fairlead.model.event import Event
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import Task
from fairlead.store.store import Store

CHUNKS_AT_ONCE = 50  # of kept output, so that a slow reader costs little memory

P = ParamSpec("P")
T = TypeVar("T")


class Feed(ABC):
    def __init__(self, store: Store, watched: str) -> None:
        self._store = store
        self._watched = watched  # the id of the task or job
        self._seen: int | None = None  # the number of the last message that the client has
        self._ended = False

    async def messages(self, after: int | None) -> AsyncGenerator[Message]:
        """First the state; or what is kept since `after` and then the state, unless nothing has changed."""
        self._seen = after
        async with self._store.live.watch(self._watched) as events:
            async for event in events:
                seq, is_last = self._position(event) if event else (0, True)
                following = (self._seen or 0) + 1
                if is_last or seq > following:  # it has ended, or the client misses some
                    async for message in self._catch_up():
                        yield message
                    if self._ended:
                        return
                elif event and seq == following:  # else the state included it
                    self._seen = seq
                    for message in await self._messages_of(event):
                        yield message

    @abstractmethod
    def _position(self, event: Event) -> tuple[int, bool]:
        """The number of the event, and whether it is the last."""

    @abstractmethod
    def _catch_up(self) -> AsyncGenerator[Message]:
        """What is kept since `_seen`, and the state; updates `_seen` and `_ended`."""

    async def _messages_of(self, event: Event) -> list[Message]:
        """The messages of an event that is not the last: of a task that is queued also why it waits."""
        if event.after is not State.QUEUED or (event.act == "promote" and event.before is State.QUEUED):
            return [event_message(event)]
        explanation = await self._read(self._store.explain, event.task_id)
        return [event_message(event, explanation), *waiting_messages(event.seq, event.at, explanation)]

    async def _state_of(self, task: Task) -> list[Message]:
        if task.status is not State.QUEUED:
            return state_messages(task)
        return state_messages(task, await self._read(self._store.explain, task.task_id))

    async def _read(self, read: Callable[P, Awaitable[T]], *args: P.args, **options: P.kwargs) -> T:
        return await retry_while_unavailable(self._store, partial(read, *args, **options))


class TaskFeed(Feed):
    def _position(self, event: Event) -> tuple[int, bool]:
        return event.seq, event.after in TERMINAL

    async def _catch_up(self) -> AsyncGenerator[Message]:
        task = await self._read(self._store.get, self._watched)
        self._ended = task.status in TERMINAL
        after, self._seen = self._seen, task.seq
        if after == task.seq:
            return
        if after is not None:
            async for message in self._kept(after, task.seq):
                yield message
        for message in await self._state_of(task):
            yield message

    async def _kept(self, after: int, until: int) -> AsyncGenerator[Message]:
        """Chunks of output. Those newer than the state follow as events, so that the numbers only grow."""
        page = partial(self._store.output_page, most=CHUNKS_AT_ONCE, content=msgspec.Raw)
        while after < until:
            outputs, _ = await self._read(page, self._watched, after_event=after)
            for output in outputs:
                if output.event_seq <= until:
                    yield output_message(self._watched, output)
            after = outputs[-1].event_seq if outputs else until

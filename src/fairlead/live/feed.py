"""All that is told of one thing, as messages, from what a client knows until it has ended."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from functools import partial
from typing import TypeVar

import msgspec

from fairlead.backend import retry_while_unavailable
from fairlead.live.messages import Message, event_message, output_message, state_messages, waiting_messages
from fairlead.model.event import Event
from fairlead.model.states import TERMINAL, State
from fairlead.model.stats import Explanation
from fairlead.store.store import Store

CHUNKS_AT_ONCE = 50  # of kept output, so that a reader with time costs no memory

T = TypeVar("T")


class Feed(ABC):
    """All that is told of one thing that has an id: first how it is, then each change, until it has ended."""

    def __init__(self, store: Store, watched: str) -> None:
        self._store = store
        self._watched = watched
        self._seen: int | None = None  # the number of the last message the client knows of
        self._ended = False

    async def messages(self, after: int | None) -> AsyncGenerator[Message]:
        """First its state; or what is kept since `after` and then its state, unless nothing has changed."""
        self._seen = after
        async with self._store.live.watch(self._watched) as events:
            async for event in events:
                seq, is_last = self._place_of(event) if event else (0, True)
                following = (self._seen or 0) + 1
                if is_last or seq > following:  # it has ended, or the client misses some
                    async for message in self._look():
                        yield message
                    if self._ended:
                        return
                elif event and seq == following:  # else the state had it already
                    self._seen = seq
                    for message in await self._told(event):
                        yield message

    @abstractmethod
    def _place_of(self, event: Event) -> tuple[int, bool]:
        """Its number, and whether it is the end."""

    @abstractmethod
    def _look(self) -> AsyncGenerator[Message]:
        """What is kept and newer than what was seen, and the state; notes what was seen, and the end."""

    @abstractmethod
    async def _told(self, event: Event) -> list[Message]:
        """Of an event that is not the end."""


class TaskFeed(Feed):
    def _place_of(self, event: Event) -> tuple[int, bool]:
        return event.seq, event.after in TERMINAL

    async def _look(self) -> AsyncGenerator[Message]:
        task = await retry_while_unavailable(self._store, partial(self._store.get, self._watched))
        self._ended = task.status in TERMINAL
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
            page = partial(
                self._store.output_page,
                self._watched,
                after_event=after,
                most=CHUNKS_AT_ONCE,
                content=msgspec.Raw,
            )
            outputs, _ = await retry_while_unavailable(self._store, page)
            for output in outputs:
                if output.event_seq <= until:
                    yield output_message(self._watched, output)
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
        return await retry_while_unavailable(self._store, partial(self._store.explain, self._watched))

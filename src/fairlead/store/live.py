"""What happens, as it happens: the events of every act, to whoever watches."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
from redis.exceptions import RedisError

from fairlead.states import State
from fairlead.store.connection import ANSWER_WITHIN, Connection

MOST_WAITING = 1_000  # events a slow watcher may have unread
PAUSE = 0.25  # seconds between two attempts to subscribe
PING_EVERY = 5.0  # seconds; a line that was cut without a word is found out by it
QUIET = PING_EVERY + ANSWER_WITHIN

Row = tuple[str, str, str, str, int, int, str]
rows_of = msgspec.json.Decoder(list[Row]).decode


@dataclass(frozen=True, slots=True)
class Event:
    """One act on one task. `progress` and `output` leave the state as it is."""

    task_id: str
    act: str
    before: State | None
    after: State
    at: int  # ms
    fence: int
    detail: dict[str, Any]


class Watcher:
    """The events of one task, or of all; `None` where some may be missing: look at the state yourself."""

    def __init__(self) -> None:
        self._waiting: deque[Event | None] = deque()
        self._news = asyncio.Event()
        self._ended = False

    def tell(self, event: Event | None) -> None:
        if len(self._waiting) >= MOST_WAITING:  # it is too slow: one look at the state is worth all of these
            self._waiting.clear()
            event = None
        self._waiting.append(event)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def __aiter__(self) -> "Watcher":
        return self

    async def __anext__(self) -> Event | None:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


class Live:
    """One subscription for all watchers; it is there as long as somebody watches."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._watchers: dict[str | None, set[Watcher]] = {}  # by task; None: of all tasks
        self._listening: asyncio.Task[None] | None = None
        self._subscribed = False

    @contextlib.asynccontextmanager
    async def watch(self, task_id: str | None = None) -> AsyncIterator[AsyncIterator[Event | None]]:
        """The events from now on, of one task or of all.

        `None` comes first, when nothing can be missed any more, and after every gap: the line was lost for a
        while, or too much was left unread. What happened before it is in the state alone.
        """
        watcher = Watcher()
        self._watchers.setdefault(task_id, set()).add(watcher)
        if self._subscribed:
            watcher.tell(None)
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        try:
            yield watcher
        finally:
            self._watchers[task_id].discard(watcher)
            if not self._watchers[task_id]:
                del self._watchers[task_id]
            if not self._watchers:
                await self._stop()

    async def close(self) -> None:
        """Ends every watch."""
        for watcher in self._all():
            watcher.end()
        await self._stop()

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._watchers.values() for watcher in watchers]

    async def _stop(self) -> None:
        # taken before the wait: whoever comes during it starts a subscription of its own
        listening, self._listening, self._subscribed = self._listening, None, False
        if listening:
            listening.cancel()
            await asyncio.wait([listening])

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with self._connection.client.pubsub() as line:
                    async with asyncio.timeout(ANSWER_WITHIN):
                        await line.subscribe(self._connection.keys.channel)
                    await self._hear(line)
            self._subscribed = False
            await asyncio.sleep(PAUSE)

    async def _hear(self, line: Any) -> None:
        pinging = asyncio.create_task(_ping(line))
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(QUIET) as silence:
                while True:
                    message = await line.parse_response()
                    silence.reschedule(loop.time() + QUIET)
                    if message[0] == b"subscribe":  # at first, and again whenever the client reconnected
                        self._subscribed = True
                        self._gap()
                    elif message[0] == b"message":
                        self._deliver(message[2])
        finally:
            pinging.cancel()

    def _deliver(self, message: bytes) -> None:
        try:
            for row in rows_of(message):
                interested = [*self._watchers.get(row[0], ()), *self._watchers.get(None, ())]
                event = _event(row) if interested else None
                for watcher in interested:
                    watcher.tell(event)
        except ValueError:  # of a newer Fairlead, say: what it tells is in the state too
            self._gap()

    def _gap(self) -> None:
        for watcher in self._all():
            watcher.tell(None)


def _event(row: Row) -> Event:
    task_id, act, before, after, at, fence, detail = row
    was = State(before) if before else None
    return Event(task_id, act, was, State(after), at, fence, msgspec.json.decode(detail))


async def _ping(line: Any) -> None:
    with contextlib.suppress(RedisError, OSError):  # who hears nothing for long gives the line up
        while True:
            await asyncio.sleep(PING_EVERY)
            await line.ping()

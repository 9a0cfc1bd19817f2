"""What the client of an interactive task sends to its handler: fetched when the handler asks for more."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any

from fairlead.backend import Backend
from fairlead.background import in_event_loop, within
from fairlead.errors import Fenced, InvalidInput, UnknownTask
from fairlead.model.reports import Frame, Grant
from fairlead.worker.registration import Registration

NET_SECONDS = 5.0  # the call that announces a frame may be lost: look at least this often

#: The next frames after a number, as soon as there are some; none: there will be no more. From any thread.
FetchFrames = Callable[[int], "Future[list[Frame]]"]
TakeFrames = Callable[[Grant, int], Awaitable[list[Frame] | None]]


async def taken_frames(
    backend: Backend, registration: Registration, grant: Grant, after: int
) -> list[Frame] | None:
    """Those that there are; None: the task is no longer ours."""

    async def take() -> list[Frame] | None:
        try:
            return await backend.take_frames(registration.worker_id, grant, after)
        except (Fenced, UnknownTask):
            return None

    return await registration.until_answered(take)


class ClientFrames:
    """The frames of one run, on the side of the worker."""

    def __init__(self, take: Callable[[int], Awaitable[list[Frame] | None]]) -> None:
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._called = asyncio.Event()
        self._ended = False
        self._waiting: set[asyncio.Task[Any]] = set()

    def call(self) -> None:
        """There is a new one."""
        self._called.set()

    def end(self) -> None:
        """The run is over, or is being stopped."""
        self._ended = True
        for task in self._waiting:
            task.cancel()  # it may be waiting for a store that does not answer

    def fetch(self, after: int) -> "Future[list[Frame]]":
        return asyncio.run_coroutine_threadsafe(self._next(after), self._loop)

    async def _next(self, after: int) -> list[Frame]:
        task = asyncio.current_task()
        assert task
        self._waiting.add(task)
        try:
            while not self._ended:
                self._called.clear()  # before it looks: what comes while it looks is not missed
                frames = await self._take(after)
                if frames is None:  # soon the worker hears why, and stops the run
                    await self._loop.create_future()
                if frames:
                    return frames
                await within(NET_SECONDS, self._called.wait())
        except asyncio.CancelledError:
            if not self._ended:  # the handler itself does not want them any more
                raise
        finally:
            self._waiting.discard(task)
        return []


class Frames(AsyncIterator[Any], Iterator[Any]):
    """The frames of one run, on the side of its handler: `async for`, or `for` in a plain `def`.

    At most as many as one fetch brings are kept here; the others wait in the store, where there is room for a
    few, and then at the client.
    """

    def __init__(self, fetch: FetchFrames) -> None:
        self._fetch = fetch
        self._kept: deque[Any] = deque()
        self._after = 0  # the number of the last frame that came
        self._lock = threading.Lock()  # several threads of a handler may share the iteration
        self._fetching: Future[list[Frame]] | None = None
        self._ended = False

    def __aiter__(self) -> "Frames":
        return self

    def __iter__(self) -> "Frames":
        return self

    async def __anext__(self) -> Any:
        while not self._kept and not self._ended:
            self._keep(await asyncio.wrap_future(self._fetched()))
        return self._next(StopAsyncIteration)

    def __next__(self) -> Any:
        if in_event_loop():
            raise InvalidInput("frames", "`for` would block the event loop: use `async for`")
        while not self._kept and not self._ended:
            try:
                self._keep(self._fetched().result())
            except CancelledError:  # the worker ends
                self._ended = True
        return self._next(StopIteration)

    def _next(self, end: type[Exception]) -> Any:
        try:
            return self._kept.popleft()
        except IndexError:
            raise end from None

    def _fetched(self) -> "Future[list[Frame]]":
        with self._lock:
            if self._fetching is None or self._fetching.done():
                self._fetching = self._fetch(self._after)
            return self._fetching

    def _keep(self, frames: list[Frame]) -> None:
        with self._lock:
            self._ended = self._ended or not frames
            # those of a fetch that was broken off may come with a later one, too
            new = [frame for frame in frames if frame.seq > self._after]
            self._kept.extend(frame.frame for frame in new)
            if new:
                self._after = new[-1].seq

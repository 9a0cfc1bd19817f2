"""The client's side of an interactive task: frames for its handler, and what the handler answers."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any, Self

import msgspec

from fairlead.backend import retry_while_unavailable
from fairlead.background import cancel_all
from fairlead.errors import AlreadyFinished, FairleadError, FramesFull, SessionTaken, UnknownTask
from fairlead.live.feed import ENDS, TaskFeed
from fairlead.live.messages import Message
from fairlead.store.store import Store

ATTACHED_MS = 30_000  # for which another client is refused when this one has vanished
RENEW_SECONDS = 10.0
PAUSES = 0.02, 0.5  # seconds before a frame is sent again, from the first to the longest
LAST = frozenset(ENDS.values())


class StoreSession:
    """The only client of an interactive task: `async with StoreSession(store, task_id) as session:`.

    Raises SessionTaken while another client is connected, and NotInteractive. When the block ends, so does
    the task.
    """

    def __init__(
        self,
        store: Store,
        task_id: str,
        content: Callable[[msgspec.Raw], Any] = msgspec.json.decode,
        on_taken: Callable[[], object] = lambda: None,
    ) -> None:
        """`content` reads the frames of the handler. `on_taken`: another client has taken its place."""
        self._store = store
        self._task_id = task_id
        self._content = content
        self._on_taken = on_taken
        self._client = secrets.token_hex(8)
        self._is_over = False  # the task has ended, or is another client's

    async def __aenter__(self) -> Self:
        try:
            await self._attach()
        except AlreadyFinished:
            self._is_over = True
        self._renewing = asyncio.create_task(self._renew())
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel_all(self._renewing)
        if not self._is_over:
            # repeated while the store is away: nobody else knows that the client has left
            with contextlib.suppress(AlreadyFinished, UnknownTask):
                cancel = partial(self._store.cancel, self._task_id)
                await retry_while_unavailable(self._store, cancel)

    async def send(self, frame: Any) -> None:
        """Waits while the handler has too many unread frames; AlreadyFinished when the task has ended."""
        pause, longest = PAUSES
        while True:
            try:
                await self._store.send_frame(self._task_id, frame)
                return
            except FramesFull:
                await asyncio.sleep(pause)
                pause = min(2 * pause, longest)

    async def messages(self, after: int = 0) -> AsyncGenerator[Message]:
        """A FRAME for each chunk that the handler emits, or has emitted, and then the end of the task."""
        feed = TaskFeed(self._store, self._task_id, content=self._content)
        async with contextlib.aclosing(feed.messages(after)) as messages:
            async for message in messages:
                if message["type"] == "OUTPUT":
                    yield {"type": "FRAME", "seq": message["seq"], "frame": message["chunk"]}
                elif message["type"] in LAST:
                    self._is_over = True
                    yield message

    async def _attach(self) -> None:
        await self._store.attach(self._task_id, self._client, ATTACHED_MS)

    async def _renew(self) -> None:
        while not self._is_over:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._attach()
            except SessionTaken:  # this process was stopped for long
                self._is_over = True
                self._on_taken()
            except FairleadError:  # tried again; when the task has ended, its messages say so
                pass

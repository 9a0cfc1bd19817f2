"""A subscription to one channel that comes back by itself, and tells when it was away."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from redis.exceptions import RedisError

from fairlead.store.connection import ANSWER_WITHIN, Connection

PAUSE = 0.25  # seconds between two attempts to subscribe
PING_EVERY = 5.0  # seconds; a line that was cut without a word is found out by it
QUIET = PING_EVERY + ANSWER_WITHIN


class Listener:
    """Calls `heard` with each message, and `turned` when the subscription begins, again too, or is lost."""

    def __init__(
        self,
        connection: Connection,
        channel: str,
        heard: Callable[[bytes], None],
        turned: Callable[[], None],
    ) -> None:
        self.subscribed = False
        self._connection = connection
        self._channel = channel
        self._heard = heard
        self._turned = turned
        self._listening: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        # taken before the wait: whoever comes during it starts a subscription of its own
        listening, self._listening, self.subscribed = self._listening, None, False
        # again until it has ended: the client library may swallow a cancellation that meets an answer
        while listening and not listening.done():
            listening.cancel()
            await asyncio.wait([listening], timeout=0.1)

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                async with self._connection.client.pubsub() as line:
                    async with asyncio.timeout(ANSWER_WITHIN):
                        await line.subscribe(self._channel)
                    await self._hear(line)
            self._turn(False)
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
                        self._turn(True)
                    elif message[0] == b"message":
                        self._heard(message[2])
        finally:
            pinging.cancel()

    def _turn(self, subscribed: bool) -> None:
        self.subscribed = subscribed
        self._turned()


async def _ping(line: Any) -> None:
    with contextlib.suppress(RedisError, OSError):  # who hears nothing for long gives the line up
        while True:
            await asyncio.sleep(PING_EVERY)
            await line.ping()

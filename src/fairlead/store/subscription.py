"""The one subscription of a process: it reconnects by itself, and listeners learn when it was away."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import RedisError

from fairlead.background import keep_running, within
from fairlead.errors import FairleadError
from fairlead.store.multiplexer import Channel, Pushed

PAUSE = 0.25  # seconds between two attempts to subscribe
PING_EVERY = 5.0  # seconds; finds a connection that was cut without notice
QUIET = PING_EVERY + 2.0


class Listener:
    """Calls `receive` with each message of a channel, and `turned` when the subscription begins or is lost.

    It begins again after each loss: whatever was published in between is missing.
    """

    def __init__(
        self,
        subscriber: "Subscriber",
        channel: str,
        receive: Callable[[bytes], None],
        turned: Callable[[], None],
    ) -> None:
        self.subscribed = False
        self.channel = channel
        self.receive = receive
        self._turned = turned
        self._subscriber = subscriber

    def start(self) -> None:
        self._subscriber.add(self)

    async def stop(self) -> None:
        self.subscribed = False
        await self._subscriber.remove(self)

    def turn(self, subscribed: bool) -> None:
        self.subscribed = subscribed
        self._turned()


class Subscriber:
    """One connection for all channels that are listened to; there is none while nobody listens."""

    def __init__(self, connect: Callable[[Pushed], Awaitable[Channel]]) -> None:
        self._connect = connect
        self._listeners: dict[str, list[Listener]] = {}  # by channel
        self._connection: Channel | None = None
        self._running: asyncio.Task[None] | None = None

    def add(self, listener: Listener) -> None:
        listeners = self._listeners.setdefault(listener.channel, [])
        if listener in listeners:
            return
        listeners.append(listener)
        if self._running is None:
            self._running = asyncio.create_task(keep_running("subscription", self._run))
        elif self._connection:  # also confirmed to present listeners, which take it for a gap and look
            self._connection.send("SUBSCRIBE", listener.channel)

    async def remove(self, listener: Listener) -> None:
        listeners = self._listeners.get(listener.channel, [])
        if listener not in listeners:
            return
        listeners.remove(listener)
        if listeners:
            return
        del self._listeners[listener.channel]
        if self._connection and self._listeners:
            self._connection.send("UNSUBSCRIBE", listener.channel)
        elif not self._listeners and self._running:
            # taken before the wait: a listener that comes during it starts another subscription
            running, self._running = self._running, None
            running.cancel()
            await asyncio.wait([running])

    async def _run(self) -> None:
        while True:
            try:
                with contextlib.suppress(RedisError, OSError, TimeoutError, FairleadError):
                    await self._subscribe()
            finally:
                for listener in [one for listeners in self._listeners.values() for one in listeners]:
                    listener.turn(False)
            await asyncio.sleep(PAUSE)

    async def _subscribe(self) -> None:
        """Until the connection is lost."""
        connection = await self._connect(self._pushed)
        try:
            self._connection = connection
            connection.send("SUBSCRIBE", *self._listeners)
            await until_silent(connection)
        finally:
            self._connection = None
            connection.abort()

    def _pushed(self, message: list[Any]) -> None:
        kind, channel, content = message
        for listener in tuple(self._listeners.get(channel.decode(), ())):  # none: the last has just stopped
            if kind == b"message":
                listener.receive(content)
            elif kind == b"subscribe":
                listener.turn(True)


async def until_silent(connection: Channel) -> None:
    """Until it is closed, or a ping is not answered."""
    while not connection.closed.is_set():
        await within(PING_EVERY, connection.closed.wait())
        async with asyncio.timeout(QUIET - PING_EVERY):
            await connection.call(("PING",))

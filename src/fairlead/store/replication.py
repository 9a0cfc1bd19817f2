"""Confirms that replicas have what the server has done, before anybody is answered.

One `WAIT` on a connection of its own confirms everything before it, so all callers at a time share one: the
next begins when the one under way has ended. The server must be the same that carried out the act, because a
replica that took over may have missed it. The `EXPIRE` before the `WAIT` is a change that a full server
accepts too: a `WAIT` covers what its own connection changed, and whatever came before that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from fairlead.errors import NotReplicated
from fairlead.store.multiplexer import Channel
from fairlead.timeouts import LenientTimeout

WAIT_MS = 600  # a replica that has not answered by then is away; a call during one wait waits for two
ANSWER_SECONDS = WAIT_MS / 1000 + 0.5
KEPT_SECONDS = 30 * 86_400  # that the key outlives its last use


class Replication:
    """`is_settled`: whether nobody replaces the primary now."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Channel]],
        key: str,
        replicas: int,
        is_settled: Callable[[], Awaitable[bool]],
    ) -> None:
        self._connect = connect
        self._key = key
        self.replicas = replicas
        self._is_settled = is_settled
        self._channel: Channel | None = None
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[str] | None = None

    async def confirm(self, server: str) -> None:
        """Raises NotReplicated unless enough replicas have everything that `server` has done so far."""
        if self._next is None:
            self._next = asyncio.create_task(self._round())
            self._next.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        try:
            confirmed = await asyncio.shield(self._next)
        except (RedisError, OSError, TimeoutError) as problem:
            raise NotReplicated(f"{NotReplicated.__doc__} ({problem})") from problem
        if confirmed != server:
            raise NotReplicated(f"{NotReplicated.__doc__} (another server has taken over)")

    async def _round(self) -> str:
        """The server whose replicas have everything that it had done when this round began."""
        async with self._turn:
            try:
                with LenientTimeout(ANSWER_SECONDS):
                    if self._channel is None or not self._channel.is_open:
                        self._channel = await self._connect()
            finally:
                self._next = None  # later callers may have written after this
            channel = self._channel
            try:
                with LenientTimeout(ANSWER_SECONDS):
                    await self._wait(channel)
            except BaseException:
                channel.abort()
                raise
            return channel.server

    async def _wait(self, channel: Channel) -> None:
        wait = ("WAIT", self.replicas, WAIT_MS)
        is_there, have = await channel.call(("EXPIRE", self._key, KEPT_SECONDS), wait)
        if is_there == 0:
            kept, have = await channel.call(("SET", self._key, "", "EX", KEPT_SECONDS), wait)
            _accept(kept)
        _accept(is_there, have)
        if have < self.replicas:
            raise RedisConnectionError(f"{have} of {self.replicas} replicas have it")
        # Another replica may be the primary by now, while this server and those that confirm do not know it.
        if not await self._is_settled():
            raise RedisConnectionError("the primary is being replaced")

    def close(self) -> None:
        if self._next:
            self._next.cancel()
        if self._channel:
            self._channel.abort()


def _accept(*answers: Any) -> None:
    for answer in answers:
        if isinstance(answer, RedisError):
            raise answer

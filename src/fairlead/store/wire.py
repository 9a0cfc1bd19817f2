"""One connection for many calls at once: they are sent as they come, and answered in that order.

A pool would lend a whole connection to each call; here a call is a few bytes and a place in the line. One
that is cancelled keeps its place, so its answer can never be taken for another's. The client library makes
the connection (addresses, passwords, TLS); only the talking is done here.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, OutOfMemoryError, ResponseError

Command = Sequence[str | int | float | bytes]

UNKNOWN_FUNCTION = "ERR Function not found"
ERRORS = {"NOSCRIPT": NoScriptError, "OOM": OutOfMemoryError}


class Wire(asyncio.Protocol):
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer  # held, because it closes the connection when nobody holds it
        self._transport = cast(asyncio.Transport, writer.transport)
        self._reader = hiredis.Reader(replyError=_error)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._lost: Exception | None = None

    @classmethod
    async def connect(cls, client: Redis) -> "Wire":
        pool: Any = client.connection_pool
        connection = pool.make_connection()
        await connection.connect()
        wire = cls(connection._writer)
        wire._transport.set_protocol(wire)
        connection._reader = connection._writer = None  # it is ours now: the library must not close it
        return wire

    @property
    def is_open(self) -> bool:
        return self._lost is None and not self._transport.is_closing()

    async def call(self, *commands: Command) -> list[Any]:
        """The answers, in order; one the server refused is answered by its error."""
        if not self.is_open:
            raise RedisConnectionError("the connection is closed")
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in commands]
        self._waiting.extend(futures)
        self._transport.write(b"".join(map(_packed, commands)))
        try:
            await futures[-1]  # those before it are answered before
        except ConnectionError as problem:
            raise RedisConnectionError(str(problem)) from problem
        return [future.result() for future in futures]

    def abort(self) -> None:
        """Whatever is under way is answered with an error, for nobody knows what became of it."""
        self._transport.abort()
        self.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                future = self._waiting.popleft()
                if not future.done():  # its caller may have gone
                    future.set_result(reply)
        except (hiredis.ProtocolError, IndexError):  # what follows cannot be told apart any more
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._lost or ConnectionError(f"the connection was lost ({exc or 'closed'})")
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_exception(self._lost)
                future.exception()  # of several in one call only the last is looked at


class Line:
    """The way to a server: a wire, made when it is needed and made anew when it was lost."""

    def __init__(self, client: Redis) -> None:
        self.client = client  # for everything but scripts
        self._wire: Wire | None = None
        self._connecting = asyncio.Lock()

    async def call(self, *commands: Command) -> list[Any]:
        wire = self._wire
        if wire is None or not wire.is_open:
            async with self._connecting:  # one for all who ask at the same time
                if self._wire is None or not self._wire.is_open:
                    self._wire = await Wire.connect(self.client)
                wire = self._wire
        return await wire.call(*commands)

    def drop(self) -> None:
        """It may be cut off without a word: the next call makes a new one."""
        if self._wire:
            self._wire.abort()
        self._wire = None

    async def close(self) -> None:
        self.drop()
        await self.client.aclose()


class Waits:
    """For commands that block: each has a wire of its own as long as it waits, which then serves the next."""

    def __init__(self) -> None:
        self._idle: list[Wire] = []

    async def call(self, client: Redis, command: Command) -> Any:
        while self._idle and not self._idle[-1].is_open:
            self._idle.pop()
        wire = self._idle.pop() if self._idle else await Wire.connect(client)
        try:
            (answer,) = await wire.call(command)
        except BaseException:  # cancelled, say: its answer may still come, and is not for the next
            wire.abort()
            raise
        self._idle.append(wire)
        return answer

    def close(self) -> None:
        for wire in self._idle:
            wire.abort()
        self._idle.clear()


def _packed(command: Command) -> bytes:
    # its hint knows one argument only
    packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]
    return packed


def _error(words: str) -> ResponseError:
    kind: type[ResponseError] = ERRORS.get(words.partition(" ")[0], ResponseError)
    return (NoScriptError if words == UNKNOWN_FUNCTION else kind)(words)

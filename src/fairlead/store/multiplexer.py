"""One connection for many calls at once: they are sent as they come, and answered in that order.

A pool would lend a whole connection to each call; here a call is a few bytes and a place in the line. One
that is cancelled keeps its place, so its answer can never be taken for another's.
"""

import asyncio
import errno
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError, ResponseError

from fairlead.clock import monotonic
from fairlead.log.events import LimitedLog
from fairlead.store.address import greeting, open_connection, options_of
from fairlead.timeouts import LenientTimeout

Command = Sequence[str | int | float | bytes]
Pushed = Callable[[list[Any]], None]
Confirm = Callable[[str], Awaitable[None]]  # what this server has done is on enough replicas

RECONNECT_SECONDS = 1.0
UNKNOWN_FUNCTION = "ERR Function not found"
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})
MORE_FILES = "raise the limit of open files (ulimit -n, LimitNOFILE=) or serve fewer clients per process"
ERRORS = {"NOSCRIPT": NoScriptError, "OOM": OutOfMemoryError}

log = LimitedLog("fairlead.store")


class Channel(asyncio.Protocol):
    """One connection. `pushed` is called with each message of a subscription."""

    client_id: int  # what the server calls this connection
    server = ""  # which one is at the other end, and since when it is the primary; "" if nobody needs to know
    _transport: asyncio.Transport

    def __init__(self, pushed: Pushed | None = None) -> None:
        self.closed = asyncio.Event()
        self._pushed = pushed
        self._reader = hiredis.Reader(replyError=_error)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._seen: dict[asyncio.Future[Any], Callable[[Any], None]] = {}
        self._calls = 0  # whose callers still wait
        self._received_at = monotonic()
        self._retired = False
        self._lost: Exception | None = None

    @classmethod
    async def connect(cls, client: Redis, pushed: Pushed | None = None) -> "Channel":
        options = options_of(client)
        # from the first packet to the answer to the greeting
        async with asyncio.timeout(options.get("socket_connect_timeout")):
            try:
                channel = await open_connection(client, lambda: cls(pushed))
            except OSError as problem:
                if problem.errno in OUT_OF_FILES:
                    log.error("out_of_files", needed_for="a connection to the store", next_step=MORE_FILES)
                raise
            try:
                answers = await channel.call(*greeting(options))
            except BaseException:
                channel.abort()
                raise
        refused = next((answer for answer in answers if isinstance(answer, RedisError)), None)
        if refused:  # a wrong password, say: callers learn why they have no connection
            channel.abort()
            raise RedisConnectionError(str(refused))
        channel.client_id = answers[0][b"id"]
        return channel

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @property
    def is_open(self) -> bool:
        return self._lost is None and not self._retired and not self._transport.is_closing()

    def received_at(self) -> float:
        """When the server sent something last, or was first asked for something after a pause."""
        return self._received_at

    @property
    def silent_seconds(self) -> float:
        """How long the server has sent nothing although it owes an answer."""
        return monotonic() - self._received_at if self._waiting else 0.0

    async def call(self, *commands: Command, seen: Callable[[Any], None] | None = None) -> list[Any]:
        """The answers, in order; one the server refused is answered by its error.

        `seen` is called with the last one the instant it is read, a round of the loop before the caller runs.
        """
        if not self.is_open:
            raise RedisConnectionError("the connection is closed")
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in commands]
        if not self._waiting:
            self._received_at = monotonic()
        self._waiting.extend(futures)
        if seen:
            self._seen[futures[-1]] = seen
        self._transport.write(b"".join(map(_packed, commands)))
        self._calls += 1
        try:
            await futures[-1]  # those before it are answered before
        except ConnectionError as problem:
            raise RedisConnectionError(str(problem)) from problem
        finally:
            self._calls -= 1
            self._close_if_unused()
        return [future.result() for future in futures]

    def send(self, *command: str) -> None:
        """A command that is answered by a push, if at all."""
        if self.is_open:
            self._transport.write(_packed(command))

    def retire(self) -> None:
        """Takes no more calls, and closes when the last of those under way has ended."""
        self._retired = True
        self._close_if_unused()

    def _close_if_unused(self) -> None:
        if self._retired and not self._calls:
            self.abort()

    def abort(self) -> None:
        """Calls under way end with an error, because nobody knows whether they were carried out."""
        self._transport.abort()
        self.connection_lost(None)

    def data_received(self, data: bytes) -> None:
        self._received_at = monotonic()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not False:
                if isinstance(reply, hiredis.PushNotification):
                    if self._pushed:
                        self._pushed(reply)
                    continue
                future = self._waiting.popleft()
                if self._seen and (seen := self._seen.pop(future, None)):
                    seen(reply)
                if not future.done():  # its caller may have gone
                    future.set_result(reply)
        except (hiredis.ProtocolError, IndexError):  # later replies match no call
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = self._lost or ConnectionError(f"the connection was lost ({exc or 'closed'})")
        self.closed.set()
        waiting, self._waiting = self._waiting, deque()
        self._seen.clear()
        for future in waiting:
            if not future.done():
                future.set_exception(self._lost)
                future.exception()  # of several in one call only the last is looked at


class SharedConnection:
    """The way to a server: a channel, opened when it is needed and again after it was lost."""

    def __init__(self, connect: Callable[[], Awaitable[Channel]], confirm: Confirm | None = None) -> None:
        self._connect = connect
        self._confirm = confirm
        self._channel: Channel | None = None
        self._retired: list[Channel] = []
        self._reconnected_at = -math.inf
        self._connecting = asyncio.Lock()

    def received_at(self) -> float:
        """When the server that is asked now sent something last."""
        return self._channel.received_at() if self._channel else -math.inf

    async def call(
        self, *commands: Command, patience: LenientTimeout | None = None, confirmed: bool = False
    ) -> list[Any]:
        """With `patience` it waits as long as the server sends something on the same connection.

        `confirmed`: the answers are held back until as many replicas as wanted know what they say.
        """
        channel = self._channel
        if channel is None or not channel.is_open:
            async with self._connecting:  # one for all callers at the same time
                if self._channel is None or not self._channel.is_open:
                    self._channel = await self._connect()
                channel = self._channel
        if patience:
            patience.last_received = channel.received_at
        answers = await channel.call(*commands)
        if confirmed and self._confirm:
            await self._confirm(channel.server)
        return answers

    def replace_if_silent(self, seconds: float) -> None:
        """The connection may have been cut without notice, so the next call opens a new one.

        Calls under way on the old one may still be answered: a slow server is not gone, and what one
        caller gives up may still arrive for the others. Each has its own timeout.
        """
        if self._channel and self._channel.silent_seconds >= seconds:
            self.replace()

    def replace(self) -> None:
        if self._channel:
            self._channel.retire()
            retired = (*self._retired, self._channel)
            self._retired = [channel for channel in retired if not channel.closed.is_set()]
            self._channel = None

    def reconnect(self) -> bool:
        """Every later call connects again: the address may lead to another server by now.

        Not more than once a second, because the server may stay what it is. Returns whether it does.
        """
        if monotonic() - self._reconnected_at < RECONNECT_SECONDS:
            return False
        self._reconnected_at = monotonic()
        self.replace()
        return True

    def close(self) -> None:
        self.replace()
        for channel in self._retired:
            channel.abort()


def _packed(command: Command) -> bytes:
    # its hint knows one argument only
    packed: bytes = hiredis.pack_command(tuple(command))  # type: ignore[arg-type]
    return packed


def _error(words: str) -> ResponseError:
    kind: type[ResponseError] = ERRORS.get(words.partition(" ")[0], ResponseError)
    return (NoScriptError if words == UNKNOWN_FUNCTION else kind)(words)

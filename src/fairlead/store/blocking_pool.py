"""Blocking pops of many callers over a few connections: each connection waits for several lists at once.

A few callers get a connection each, because a blocking command needs one. When there are more callers than
connections, a caller joins others: the command under way is ended by the server
(`CLIENT UNBLOCK`) and sent again with all lists.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from fairlead.background import TaskSet
from fairlead.clock import monotonic
from fairlead.errors import FairleadError
from fairlead.store.multiplexer import Channel, Confirm
from fairlead.timeouts import LenientTimeout

MOST_CONNECTIONS = 12
IDLE_SECONDS = 10.0  # that a connection is kept for the next caller
LEAST_SECONDS = 0.01  # 0 would be for ever
LATE = 2.0  # seconds after the end of a wait at which the server must have said so
RETRY_SECONDS = 0.005  # between two attempts to end a command that the server may not have received yet


@dataclass(eq=False, slots=True)
class Waiter:
    key: str
    ends: float  # by the monotonic clock
    word: "asyncio.Future[bytes | None]"
    server: str = ""  # that gave the word


class BlockingPool:
    """`unblock` ends what the connection with this id waits for.

    False: it waits for nothing (yet). None: that is not allowed here, so the connection is closed instead.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Channel]],
        unblock: Callable[[int], Awaitable[bool | None]],
        confirm: Confirm | None = None,
    ) -> None:
        self.connect = connect
        self.unblock = unblock
        self._confirm = confirm
        self._poppers: list[Popper] = []

    async def next(self, key: str, seconds: float) -> bytes | None:
        """The next word of the list; None when there is none within `seconds`."""
        word: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        waiter = Waiter(key, monotonic() + max(LEAST_SECONDS, seconds), word)
        popper = self._choose()
        popper.add(waiter)
        try:
            said = await word
        finally:
            popper.discard(waiter)
        if said is not None and self._confirm:  # it may be a lease
            await self._confirm(waiter.server)
        return said

    def _choose(self) -> "Popper":
        """An idle one, a new one, or the one that waits for the fewest lists."""
        self._poppers = [popper for popper in self._poppers if popper.is_open]
        least = min(self._poppers, key=lambda popper: len(popper.waiters), default=None)
        if least and (not least.waiters or len(self._poppers) >= MOST_CONNECTIONS):
            return least
        popper = Popper(self)
        self._poppers.append(popper)
        return popper

    def close(self) -> None:
        for popper in self._poppers:
            popper.close()


class Popper:
    """One connection, and the callers that wait on it, by the list they wait for."""

    def __init__(self, pool: BlockingPool) -> None:
        self.waiters: dict[str, deque[Waiter]] = {}
        self.is_open = True
        self._pool = pool
        self._channel: Channel | None = None
        self._asked: list[str] | None = None  # the lists of the command that is under way
        self._outdated: list[str] | None = None  # those of the command that is being ended
        self._cut = False  # we closed the connection to end the command
        self._wanted = asyncio.Event()
        self._unblocking = TaskSet()
        self._running = asyncio.create_task(self._run())

    def add(self, waiter: Waiter) -> None:
        self.waiters.setdefault(waiter.key, deque()).append(waiter)
        self._wanted.set()
        self._ask_again()  # also when the list is waited for already: this wait may end earlier

    def discard(self, waiter: Waiter) -> None:
        if waiter not in self.waiters.get(waiter.key, ()):
            return
        self._remove(waiter)
        if waiter.key not in self.waiters:
            self._ask_again()  # what comes for it now is to stay in the list

    def _remove(self, waiter: Waiter) -> None:
        line = self.waiters[waiter.key]
        line.remove(waiter)
        if not line:
            del self.waiters[waiter.key]

    def close(self) -> None:
        self._running.cancel()

    async def _run(self) -> None:
        problem: Exception = ConnectionError("the connection was closed")
        try:
            while await self._is_wanted():
                if self._channel is None or not self._channel.is_open:
                    self._channel = await self._pool.connect()
                if self.waiters:  # they may have gone meanwhile
                    await self._pop(self._channel)
        except (RedisError, OSError, TimeoutError, FairleadError) as failure:
            problem = failure
        finally:
            self.is_open = False
            if self._channel:
                self._channel.abort()
            for waiter in [one for line in self.waiters.values() for one in line]:
                if not waiter.word.done():
                    waiter.word.set_exception(problem)

    async def _is_wanted(self) -> bool:
        """Waits for a caller as long as the connection is worth keeping."""
        if not self.waiters:
            self._wanted.clear()
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._wanted.wait()
            except TimeoutError:
                return bool(self.waiters)  # somebody may have come at this very moment
        return True

    async def _pop(self, channel: Channel) -> None:
        lists = list(self.waiters)
        ends = min(waiter.ends for line in self.waiters.values() for waiter in line)
        seconds = max(LEAST_SECONDS, ends - monotonic())
        self._asked = lists
        try:
            with LenientTimeout(seconds + LATE):
                (answer,) = await channel.call(("BLPOP", *lists, seconds), seen=self._deliver)
        except RedisConnectionError:
            if not self._cut:
                raise
            self._channel, self._cut, answer = None, False, None
        finally:
            self._asked = None
        if isinstance(answer, RedisError):  # it may not be the primary any more
            raise answer
        now = monotonic()
        for waiter in [one for line in self.waiters.values() for one in line if one.ends <= now]:
            self._answer(waiter, None)

    def _deliver(self, answer: Any) -> None:
        """To the caller that has waited longest. If none is left the word is lost."""
        if not isinstance(answer, list):  # the time is over, or the command was refused
            return
        for waiter in tuple(self.waiters.get(answer[0].decode(), ())):
            if not waiter.word.done():
                self._answer(waiter, answer[1])
                return

    def _answer(self, waiter: Waiter, word: bytes | None) -> None:
        if not waiter.word.done():
            waiter.server = self._channel.server if self._channel else ""
            waiter.word.set_result(word)
        self._remove(waiter)

    def _ask_again(self) -> None:
        if self._asked is not None and self._asked is not self._outdated:
            self._outdated = self._asked
            self._unblocking.start(self._unblock(self._asked))

    async def _unblock(self, asked: list[str]) -> None:
        """Sent on another connection, so it may reach the server before the command that it is to end."""
        while self._channel and self._asked is asked:
            ended = await self._pool.unblock(self._channel.client_id)
            if ended:
                return
            if ended is None and self._asked is asked:
                self._cut = True
                self._channel.abort()
                return
            await asyncio.sleep(RETRY_SECONDS)

"""The way to the server of a namespace: one address, or wherever Sentinels or a cluster say the primary is.

All connections of a process are opened here. When the primary is found somewhere else, those to the place
before are closed, blocking ones and subscriptions included, so that none stays behind.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from fairlead.background import TaskSet
from fairlead.clock import monotonic
from fairlead.errors import InvalidSettings
from fairlead.log.events import EventLog
from fairlead.settings.engine_urls import read_engine_url
from fairlead.settings.urls import engine_url_problem
from fairlead.store.address import make_client, options_of, parse_info
from fairlead.store.finding import Place, finder_of
from fairlead.store.multiplexer import Channel, Pushed

CONNECT_SECONDS = 1.0  # a primary that hangs is asked for a second, then whether another one took over
FIND_AGAIN_SECONDS = 0.1  # until then all callers get the same refusal

log = EventLog("fairlead.store")


class Finder(Protocol):
    async def find(self) -> Place: ...
    async def is_settled(self, place: Place) -> bool: ...
    def suggest(self, place: Place) -> None: ...
    async def watch(self, changed: Callable[[], None]) -> None: ...


class Route:
    """`identifies`: its channels know which server is at their other end."""

    def __init__(self, client: Redis, finder: Finder | None = None, *, identifies: bool = False) -> None:
        self.client = client  # for everything but acts and reads; leads to the primary found last
        self._finder = finder
        self._identifies = identifies
        self._channels: WeakSet[Channel] = WeakSet()
        self._refused_at = -math.inf
        self._refusal: Exception | None = None
        self._watching: asyncio.Task[None] | None = None
        self._finding = TaskSet()

    @property
    def finds(self) -> bool:
        """Whether it follows the primary from place to place."""
        return self._finder is not None

    @property
    def place(self) -> Place:
        """The primary found last; before it was looked for, one of those who know it."""
        options = options_of(self.client)
        return str(options.get("host") or "localhost"), int(options.get("port") or 6379)

    async def connect(self, pushed: Pushed | None = None) -> Channel:
        """A new connection to the primary."""
        if self._finder is None:
            return await self._connected(pushed)
        if monotonic() - self._refused_at < FIND_AGAIN_SECONDS and self._refusal:
            raise RedisConnectionError(str(self._refusal)) from self._refusal
        try:
            return await self._connect_to_primary(self._finder, pushed)
        except (RedisError, OSError, TimeoutError) as problem:
            self._refused_at, self._refusal = monotonic(), problem
            raise

    async def _connect_to_primary(self, finder: Finder, pushed: Pushed | None) -> Channel:
        await self._go_to(await finder.find())
        place = self.place
        channel = await self._connected(pushed)
        if place != self.place:
            channel.abort()
            raise RedisConnectionError(f"{_text(place)} was the primary until just now")
        self._channels.add(channel)
        if self._watching is None:
            self._watching = asyncio.create_task(finder.watch(self._look_again))
        return channel

    async def _connected(self, pushed: Pushed | None) -> Channel:
        channel = await Channel.connect(self.client, pushed)
        if not (self._finder or self._identifies):
            return channel
        try:
            async with asyncio.timeout(options_of(self.client).get("socket_connect_timeout")):
                (said,) = await channel.call(("INFO", "replication"))
            if isinstance(said, RedisError):
                raise said
            facts = parse_info(said)
            if self._finder and facts.get("role") != "master":
                raise RedisConnectionError(f"{_text(self.place)} is not the primary")
        except BaseException:
            channel.abort()
            raise
        channel.server = facts.get("master_replid", "")
        return channel

    async def is_settled(self) -> bool:
        """Whether nobody replaces the primary now, as far as can be known."""
        return self._finder is None or await self._finder.is_settled(self.place)

    async def find(self) -> None:
        """Leads `client` to the primary, without a connection."""
        if self._finder:
            await self._go_to(await self._finder.find())

    def _look_again(self) -> None:
        self._finding.start(self._follow())

    async def _follow(self) -> None:
        with contextlib.suppress(RedisError, OSError, TimeoutError):
            await self.find()

    def suggest(self, place: Place) -> None:
        """A node of a cluster says that the namespace is there now."""
        if self._finder:
            self._finder.suggest(place)

    async def _go_to(self, place: Place) -> None:
        if place == self.place:
            return
        log.info("primary_found", at=_text(place), before=_text(self.place))
        pool = self.client.connection_pool
        pool.connection_kwargs["host"], pool.connection_kwargs["port"] = place
        for channel in tuple(self._channels):
            channel.abort()
        await self.disconnect()

    async def disconnect(self) -> None:
        """The client connects again, because the address may lead to another server by now."""
        await self.client.connection_pool.disconnect(inuse_connections=False)

    async def close(self) -> None:
        if self._watching:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self.client.aclose()


def route_to(url: str, key: str, *, identifies: bool = False) -> Route:
    """`key`: one of the namespace; in a cluster its slot decides which node it is."""
    if problem := engine_url_problem(url):
        raise InvalidSettings(problem)
    read = read_engine_url(url)
    client = make_client(read.server)
    if read.discovery is None:
        return Route(client, identifies=identifies)
    client.connection_pool.connection_kwargs["socket_connect_timeout"] = CONNECT_SECONDS
    return Route(client, finder_of(read.discovery, key), identifies=identifies)


def _text(place: Place) -> str:
    return "{}:{}".format(*place)

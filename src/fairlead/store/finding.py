"""Finds the primary of a namespace by asking Sentinels, or the nodes of a cluster.

All are asked at once, and the answer with the highest epoch counts: an epoch rises with each fail-over, so
one that does not know the latest is outvoted. A few that do not answer are not waited for.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from fairlead.settings.engine_urls import Discovery
from fairlead.store.address import make_client, options_of
from fairlead.store.multiplexer import Channel, Command
from fairlead.store.subscription import until_silent

ASK_SECONDS = 0.5  # for an answer
SLOWER_SECONDS = 0.05  # that the others have when a majority has answered
MOST_ASKED = 8  # nodes of a cluster

#: By the Sentinel that leads a fail-over: that it begins, a tenth of a second before it promotes a replica,
#: and that it has done so; then by all.
ANNOUNCED = ("+try-failover", "+promoted-slave", "+switch-master")
LISTEN_AGAIN_SECONDS = 1.0

IN_PROGRESS = b"failover_in_progress"  # a flag, from before the first command of a fail-over to its end

Place = tuple[str, int]
Answers = dict[Redis, list[Any]]


def finder_of(discovery: Discovery, key: str) -> "SentinelFinder | ClusterFinder":
    known = [make_client(url) for url in discovery.urls]
    if discovery.kind == "sentinel":
        return SentinelFinder(known, discovery.service)
    return ClusterFinder(known, key_slot(key.encode()))


class SentinelFinder:
    def __init__(self, sentinels: Sequence[Redis], service: str) -> None:
        self._sentinels = sentinels
        self._service = service
        self._hears: dict[Redis, bool] = {}  # whether it is listened to; of those that were tried
        self._news = (
            0  # rises when one announces something, and when one is heard that was not, or the reverse
        )
        self._settled: tuple[Place, int] | None = None  # the primary, and the news, when nobody replaced it

    async def find(self) -> Place:
        answers = await self._ask()
        if place := _latest(answers):
            return place
        said = next((str(answer) for both in answers.values() for answer in both if answer), "")
        raise RedisConnectionError(
            f"the Sentinels know no service {self._service!r}{f' ({said})' if said else ''}"
        )

    async def is_settled(self, place: Place) -> bool:
        """Whether no Sentinel replaces the primary or knows of another one, as far as they can be heard.

        All are asked, and the answer holds until one of them announces something.
        """
        while self._settled != (place, self._news):
            news = self._news
            answers = await self._ask(majority=False)
            replacing = (IN_PROGRESS in _facts(about).get(b"flags", b"") for _, about in answers.values())
            if _latest(answers) != place or any(replacing):
                return False
            if len(self._hears) == len(self._sentinels):
                self._settled = place, news
            elif news == self._news:
                return True
        return True

    async def _ask(self, *, majority: bool = True) -> Answers:
        """Of each Sentinel that answers: the address of the primary, and what it knows of it."""
        address = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._service)
        about = ("SENTINEL", "MASTER", self._service)
        return await _ask_all(self._sentinels, address, about, majority=majority)

    def suggest(self, place: Place) -> None:
        """Sentinels know best."""

    async def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` when a Sentinel announces a fail-over, until cancelled.

        A primary that is replaced while it works accepts changes, which are lost, for some seconds more.
        """
        await asyncio.gather(*(self._listen(sentinel, changed) for sentinel in self._sentinels))

    async def _listen(self, sentinel: Redis, changed: Callable[[], None]) -> None:
        def hear(_: object) -> None:
            self._hears[sentinel] = True
            self._news += 1
            changed()

        while True:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                channel = await Channel.connect(sentinel, hear)
                try:
                    channel.send("SUBSCRIBE", *ANNOUNCED)
                    await until_silent(channel)
                finally:
                    channel.abort()
            self._news += self._hears.get(sentinel, False)
            self._hears[sentinel] = False
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)


def _latest(answers: Answers) -> Place | None:
    """The primary by the word of the Sentinel that knows of the latest fail-over."""
    known = [
        (int(_facts(about).get(b"config-epoch", 0)), address)
        for address, about in answers.values()
        if isinstance(address, list) and len(address) == 2
    ]
    if not known:
        return None
    host, port = max(known, key=lambda one: one[0])[1]
    return host.decode(), int(port)


def _facts(about: Any) -> dict[bytes, bytes]:
    if isinstance(about, list):  # as pairs, by an older one
        about = dict(zip(about[::2], about[1::2], strict=False))
    return about if isinstance(about, dict) else {}


class ClusterFinder:
    """The nodes it has learnt of are asked too: those of the URL may be gone."""

    def __init__(self, seeds: Sequence[Redis], slot: int) -> None:
        self._seeds = seeds
        self._slot = slot
        self._learnt: dict[Place, Redis] = {}
        self._suggested: Place | None = None

    async def find(self) -> Place:
        if self._suggested:
            place, self._suggested = self._suggested, None
            return place
        asked = [*self._seeds, *self._learnt.values()][:MOST_ASKED]
        answers = await _ask_all(asked, ("CLUSTER", "INFO"), ("CLUSTER", "SLOTS"))
        views = [
            (_cluster_epoch(info), client, slots)
            for client, (info, slots) in answers.items()
            if isinstance(info, bytes) and isinstance(slots, list)
        ]
        for _, client, slots in sorted(views, key=lambda view: view[0], reverse=True):
            self._learn(client, slots)
            if owner := _owner(slots, self._slot):
                return _place_of(owner, client)
        refused = next((a for both in answers.values() for a in both if isinstance(a, RedisError)), None)
        if views:
            raise RedisConnectionError(f"no node of the cluster serves slot {self._slot} of the namespace")
        raise RedisConnectionError(str(refused))

    async def is_settled(self, place: Place) -> bool:
        """A primary that works is replaced only when it has handed over everything."""
        return True

    def suggest(self, place: Place) -> None:
        """What the node that was asked says: it knows before the others."""
        self._suggested = place

    async def watch(self, changed: Callable[[], None]) -> None:
        """Not needed: a node that is replaced while it works refuses changes at once."""

    def _learn(self, client: Redis, slots: list[Any]) -> None:
        """Every node, primary or not: any that is left knows where the others are."""
        places = [_place_of(node, client) for row in slots for node in row[2:]]
        seeds = {_place(seed) for seed in self._seeds}
        self._learnt = {
            place: self._learnt.get(place) or _at(client, place)
            for place in dict.fromkeys(places)
            if place not in seeds
        }


def _owner(slots: list[Any], slot: int) -> list[Any] | None:
    return next((row[2] for row in slots if row[0] <= slot <= row[1] and len(row) > 2), None)


def _place_of(node: list[Any], asked: Redis) -> Place:
    """A node that does not know its own host is where it was asked."""
    host = (node[0] or b"").decode()
    return (host if host not in ("", "?") else _place(asked)[0]), int(node[1])


def _place(client: Redis) -> Place:
    options = options_of(client)
    return str(options.get("host") or "localhost"), int(options.get("port") or 6379)


def _at(like: Redis, place: Place) -> Redis:
    """The same client, TLS and password included, for another node."""
    pool = like.connection_pool
    made = type(pool)(
        connection_class=pool.connection_class,
        **{**pool.connection_kwargs, "host": place[0], "port": place[1]},
    )
    return Redis(connection_pool=made)


def _cluster_epoch(info: bytes) -> tuple[bool, int]:
    """A node that is cut off from the majority knows it, and counts for less."""
    facts = dict(line.partition(":")[::2] for line in info.decode().split())
    return facts.get("cluster_state") == "ok", int(facts.get("cluster_current_epoch", 0))


async def _ask_all(clients: Sequence[Redis], *commands: Command, majority: bool = True) -> Answers:
    """The answers of those who answer in time; refused commands are answered by their errors.

    `majority`: when it has answered, the others are hardly waited for. Raises the first problem if nobody
    answers.
    """
    asking = {asyncio.create_task(_ask(client, commands)): client for client in clients}
    loop = asyncio.get_running_loop()
    ends = loop.time() + ASK_SECONDS
    answered: dict[Redis, list[Any]] = {}
    problem: BaseException = TimeoutError(f"no answer in {ASK_SECONDS} s")
    pending = set(asking)
    try:
        while pending and (left := ends - loop.time()) > 0:
            done, pending = await asyncio.wait(pending, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if failure := task.exception():
                    problem = failure
                else:
                    answered[asking[task]] = task.result()
            if majority and len(answered) > len(clients) // 2:
                ends = min(ends, loop.time() + SLOWER_SECONDS)
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
    if not answered:
        names = ", ".join("{}:{}".format(*_place(client)) for client in clients)
        raise RedisConnectionError(f"none of {names} answers: {problem}")
    return answered


async def _ask(client: Redis, commands: Sequence[Command]) -> list[Any]:
    channel = await Channel.connect(client)
    try:
        return await channel.call(*commands)
    finally:
        channel.abort()

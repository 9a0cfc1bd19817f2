"""Workers as the store knows them: registering, staying alive, waiting for work, leaving."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from fairlead import errors
from fairlead.store.connection import Connection, pack, text, translated
from fairlead.store.limits import Runs
from fairlead.store.reports import Grant, expect_ok
from fairlead.task import check_ms, check_name, check_short


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker learns from its heartbeat."""

    state: str
    cancelled: list[str]  # stop these, then release them
    lost: list[str]  # no longer yours: stop, drop the result
    deadlines: dict[str, int]  # task -> ms by which it must end
    leases: dict[str, int]  # task -> ms until which it is yours


class Workers:
    def __init__(self, connection: Connection, store: Runs) -> None:
        self._connection = connection
        self._store = store
        self._waiting: Redis | None = None

    async def register(
        self,
        worker: str,
        *,
        capabilities: Iterable[str] = (),
        task_types: Iterable[str] | None = None,
        capacity: int = 1,
        reserve: int = 0,
        name: str = "",
        version: str = "",
    ) -> None:
        """`task_types=None`: any. Of `capacity`, `reserve` slots run base priority high only."""
        check_name("worker_id", worker)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or not 1 <= capacity <= 100_000:
            raise errors.InvalidInput("capacity", "is not a whole number from 1 to 100000")
        if isinstance(reserve, bool) or not isinstance(reserve, int) or not 0 <= reserve < capacity:
            raise errors.InvalidInput("reserve", "is not a whole number from 0 to less than the capacity")
        for field, value in (("name", name), ("version", version)):
            check_short(field, value or None)
        offered = _listed("capabilities", capabilities)
        types = "*" if task_types is None else _listed("task_types", task_types)
        facts = pack({"name": name, "version": version})
        await self._store.run("register", worker, offered, types, capacity, reserve, facts)

    async def heartbeat(
        self,
        worker: str,
        grants: Sequence[Grant] | None = None,
        *,
        draining: bool = False,
        lease_ms: int = 30_000,
    ) -> Beat:
        """Prolongs the leases of `grants`; without a list, of everything the worker holds."""
        check_ms("lease_ms", lease_ms)
        holders = None if grants is None else [grant.packed() for grant in grants]
        answer = await self._store.run(
            "heartbeat", worker, "draining" if draining else "active", pack(holders), lease_ms
        )
        beat = Beat(text(answer[1]), [], [], {}, {})
        for row in answer[2]:
            task, word = text(row[0]), text(row[1])
            if word == "ok":
                beat.leases[task], beat.deadlines[task] = int(row[2]), int(row[3])
            else:
                (beat.cancelled if word == "cancelled" else beat.lost).append(task)
        return beat

    async def drain(self, worker: str) -> None:
        """It is given nothing more."""
        await self._store.run("drain", worker, 0)

    async def leave(self, worker: str) -> None:
        """It has stopped and holds nothing."""
        answer = await self._connection.run("drain", worker, 1, "")
        if text(answer[0]) == "busy":
            raise errors.InvalidInput(
                "worker_id", f"still holds {text(answer[1])} tasks: report or release them first"
            )
        if text(answer[0]) != "unknown_worker":  # it left before
            expect_ok(answer)

    async def wait(self, worker: str, seconds: float) -> bool:
        """Until somebody wakes this worker (True) or the time is over. A hint: claim in both cases."""
        if self._waiting is None:
            # its own connections: a blocking read must not be cut off by the short timeout of scripts
            kwargs: dict[str, Any] = self._connection.client.connection_pool.connection_kwargs
            self._waiting = type(self._connection.client)(
                connection_pool=type(self._connection.client.connection_pool)(
                    connection_class=self._connection.client.connection_pool.connection_class,
                    **{**kwargs, "socket_timeout": None},
                )
            )
        try:
            return (
                await self._waiting.blpop([self._connection.keys.key("wake", worker)], max(0.01, seconds))
                is not None
            )
        except (RedisError, OSError) as problem:
            raise translated(problem) from problem

    async def close(self) -> None:
        if self._waiting is not None:
            await self._waiting.aclose()
            await self._waiting.connection_pool.disconnect()


def _listed(field: str, names: Iterable[str]) -> str:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise errors.InvalidInput(field, "is not a list of names")
    chosen = list(names)
    for name in chosen:
        check_name(field, name)
    return "," + "".join(f"{name}," for name in sorted(set(chosen)))

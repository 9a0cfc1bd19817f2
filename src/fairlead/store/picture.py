"""Reads what a forecast is made from, in pieces that take the server a few milliseconds at most.

Meanwhile tasks start and end. What waits is read before what runs: a task that is found in both has started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from fairlead.estimates.picture import BARE, Listed, Picture, Run, Waiting, ranks_to_read
from fairlead.store import names
from fairlead.store.connection import Connection
from fairlead.store.multiplexer import Command
from fairlead.store.records import read_facts

PIECE = 200  # commands, or entries of one
MOST_QUEUES, MOST_RUNS, MOST_WORKERS, MOST_ACCOUNTS, MOST_ROUTES = 20_000, 5_000, 2_000, 1_000, 1_000
MOST_SIMULATED_QUEUES = 2_000
TASK_FIELDS = (
    "facts",
    "state",
    "worker",
    "started",
    "deadline",
    "tier",
    "optional",
    "stopping",
    "lease_until",
)

T = TypeVar("T")


class PictureReader:
    def __init__(self, connection: Connection, clock: str) -> None:
        self._connection = connection
        self._key = connection.keys.key
        self._clock = clock  # "" is the server's own time

    async def read(self, also: Collection[str] = ()) -> Picture:
        """With the limits that waiting and running tasks need, and these."""
        (flat,) = await self._connection.read(("HGETALL", self._connection.keys.meta))
        meta = {_text(name): value for name, value in _pairs(flat)}
        policy = msgspec.msgpack.decode(meta.pop("policy", b"\x80"))
        texts = {name: _text(value) for name, value in meta.items() if name != "unfinished"}
        workers = await self._workers()
        queued = {place: int(texts.get(f"queued_{place}", 0)) for place in names.PLACES}
        waiting = await self._waiting(queued, sum(worker.capacity for worker in workers))
        running = await self._running()
        held = {run.holder for run in running}
        waiting = [task for task in waiting if task.task_id not in held]
        needed = set(also) | {need for task in waiting for need in names.needs_of(task.sub)}
        needed |= {need for run in running for need in names.needs(run.needs)}
        return Picture(
            at=await self.now(),
            meta=texts,
            policy=policy,
            workers=workers,
            limits=await self._limits(sorted(needed)),
            waiting=waiting,
            running=running,
            audiences=await self._audiences({names.route_of(task.sub) for task in waiting}),
            fins=await self._fins(),
            paused=[_text(name) for name in await self._one("HKEYS", self._key("paused"))],
        )

    # Parts

    async def now(self) -> int:
        if self._clock:
            return int(self._clock)
        seconds, micros = await self._one("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    async def _workers(self) -> list[Listed]:
        found = [_text(name) for name in await self._scan("listed", MOST_WORKERS)]
        fields = ("types", "capabilities", "capacity", "reserve")
        rows = await self._all(("HMGET", self._key("worker", worker), *fields) for worker in found)
        return [
            Listed(worker, f"{_text(types)};{_text(capabilities)}", int(capacity), int(reserve or 0))
            for worker, (types, capabilities, capacity, reserve) in zip(found, rows, strict=True)
            if capacity is not None
        ]

    async def _waiting(self, queued: dict[str, int], slots: int) -> list[Waiting]:
        subs = [_text(sub) for sub in await self._scan("home", MOST_QUEUES)]
        sizes = await self._all(("ZCARD", self._key("queue", sub)) for sub in subs)
        first = ("0", "0", "WITHSCORES")
        heads = await self._all(("ZRANGE", self._key("queue", sub), *first) for sub in subs)
        known = [
            (names.place_of(sub), next(_pairs(head))[1], sub, size)
            for sub, size, head in zip(subs, sizes, heads, strict=True)
            if head
        ]
        chosen = sorted(known)[:MOST_SIMULATED_QUEUES]
        better = {place: sum(queued[one] for one in names.PLACES if one < place) for place in names.PLACES}
        plan = ranks_to_read(
            [(size, max(size, queued[place]), better[place]) for place, _, _, size in chosen], slots
        )
        pieces = [
            (sub, first, counts)
            for (_, _, sub, _), ranks in zip(chosen, plan, strict=True)
            for first, counts in _pieces(ranks)
        ]
        found = await self._all(
            ("ZRANGE", self._key("queue", sub), start, start + len(counts) - 1, "WITHSCORES")
            for sub, start, counts in pieces
        )
        waiting = [
            Waiting(
                sub,
                int(float(score)),
                int(member[: names.SEQ_DIGITS]),
                _text(member)[names.SEQ_DIGITS :],
                count,
            )
            for (sub, _, counts), flat in zip(pieces, found, strict=True)
            for (member, score), count in zip(_pairs(flat), counts, strict=False)
        ]
        return await self._with_facts(waiting)

    async def _with_facts(self, waiting: Sequence[Waiting]) -> list[Waiting]:
        rows = await self._all(
            ("HMGET", self._key("task", task.task_id), "facts", "arrival") for task in waiting
        )
        return [
            replace(task, arrival=int(arrival), facts=read_facts(facts))
            for task, (facts, arrival) in zip(waiting, rows, strict=True)
            if arrival is not None
        ]

    async def _running(self) -> list[Run]:
        entries = await self._one("ZRANGE", self._key("leases"), 0, MOST_RUNS - 1, "WITHSCORES")
        holders = [(_text(holder), int(float(ends))) for holder, ends in _pairs(entries)]
        commands: list[Command] = [
            ("HMGET", self._key("lease", holder.removeprefix(BARE)), "limit", "units", "until")
            if holder.startswith(BARE)
            else ("HMGET", self._key("task", holder), *TASK_FIELDS)
            for holder, _ in holders
        ]
        rows = await self._all(commands)
        runs = (_run(holder, row) for (holder, _), row in zip(holders, rows, strict=True))
        return sorted((run for run in runs if run), key=lambda run: run.started)

    async def _limits(self, needed: Sequence[str]) -> dict[str, dict[str, str]]:
        fields = ("kind", "limit", "used", "paused", "interval", "burst", "tat", "waiting")
        rows = await self._all(("HMGET", self._key("limit", name), *fields) for name in needed)
        return {
            name: {field: _text(value) for field, value in zip(fields, row, strict=True) if value is not None}
            for name, row in zip(needed, rows, strict=True)
            if row[0] is not None
        }

    async def _audiences(self, waited_for: Iterable[str]) -> dict[str, str]:
        """Of routes that tasks wait on, and of some others."""
        routes = self._key("routes")
        flat = (await self._one("HSCAN", routes, 0, "COUNT", MOST_ROUTES))[1]
        found = {_text(route): _text(audience) for route, audience in _pairs(flat)}
        missing = sorted(set(waited_for) - found.keys())
        rows = await self._all(("HGET", routes, route) for route in missing)
        return found | {route: _text(row) for route, row in zip(missing, rows, strict=True) if row}

    async def _fins(self) -> dict[str, dict[str, int]]:
        rows = await self._all(
            ("ZRANGE", self._key("fin", place), 0, MOST_ACCOUNTS - 1, "WITHSCORES") for place in names.PLACES
        )
        return {
            place: {_text(account): int(float(fin)) for account, fin in _pairs(flat)}
            for place, flat in zip(names.PLACES, rows, strict=True)
        }

    # Reading

    async def _one(self, *command: str | int) -> Any:
        (answer,) = await self._connection.read(command, paged=True)
        return answer

    async def _all(self, commands: Iterable[Command]) -> list[Any]:
        found: list[Any] = []
        for some in _pieces_of(list(commands), PIECE):
            found += await self._connection.read(*some, paged=True)
        return found

    async def _scan(self, name: str, most: int) -> list[bytes]:
        """Fields of a hash, each once."""
        found: dict[bytes, None] = {}
        cursor: Any = 0
        while True:
            cursor, flat = await self._one("HSCAN", self._key(name), cursor, "COUNT", PIECE)
            found.update(dict.fromkeys(map(itemgetter(0), _pairs(flat))))
            if int(cursor) == 0 or len(found) >= most:
                return list(found)[:most]


def _run(holder: str, row: Sequence[Any]) -> Run | None:
    if holder.startswith(BARE):
        limit, units, until = row
        return None if until is None else Run(holder, f"{_text(limit)}={_text(units)}", until=int(until))
    facts, state, worker, started, deadline, tier, optional, stopping, lease_until = row
    if started is None or not (state == b"executing" or stopping):
        return None
    known = read_facts(facts)
    needs = ",".join(filter(None, (known.get("limits"), _text(optional))))
    until = int(lease_until if stopping else deadline)
    stops = stopping is not None
    return Run(holder, needs, _text(worker), int(started), until, _text(tier), known, stops)


def _pieces(ranks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Ranks that follow each other are read together: the first, and how many each stands for."""
    start = 0
    for at in range(1, len(ranks) + 1):
        if at == len(ranks) or ranks[at][0] != ranks[at - 1][0] + 1 or at - start == PIECE:
            yield ranks[start][0], [count for _, count in ranks[start:at]]
            start = at


def _pieces_of(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _pairs(answer: Any) -> Iterator[tuple[Any, Any]]:
    """Of a hash, which comes as a dict, and of a scan, which is flat; scores come in pairs."""
    if isinstance(answer, dict):
        yield from answer.items()
    elif answer and isinstance(answer[0], list):
        yield from (tuple(pair) for pair in answer)
    else:
        yield from zip(answer[::2], answer[1::2], strict=True)


def _text(value: bytes | None) -> str:
    return value.decode(errors="replace") if value is not None else ""

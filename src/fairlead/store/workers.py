"""Workers as the store knows them: registering, staying alive, waiting for work, leaving."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead import errors
from fairlead.checks import check_ms, check_name, check_short, check_whole
from fairlead.model.reports import Grant, Handed
from fairlead.model.worker import Beat, WorkerStats, latest_first
from fairlead.store.connection import Answer, pack, text
from fairlead.store.replies import expect_ok, handed_by
from fairlead.store.session import Part

TAKE = b"take:"  # how a call that brings a task begins
PLACE = re.compile(r"[0-9]{1,20}")
PAGE_BYTES = 256 * 1024  # of the records of workers that are read together
MOST_HOLDERS = 256  # that one heartbeat names


@dataclass(frozen=True, slots=True)
class WorkerPage:
    """`next_cursor` leads to the next page; empty: this was the last. The records have `size` bytes."""

    workers: list[WorkerStats]
    next_cursor: str
    size: int


class Workers(Part):
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
        check_whole("capacity", capacity, 100_000, least=1)
        check_whole("reserve", reserve, capacity)
        check_short("name", name or None)
        check_short("version", version or None)
        offered = listed("capabilities", capabilities)
        types = "*" if task_types is None else listed("task_types", task_types)
        facts = pack({"name": name, "version": version})
        await self._session.run("register", worker, offered, types, capacity, reserve, facts)

    async def heartbeat(
        self,
        worker: str,
        grants: Sequence[Grant] | None = None,
        *,
        draining: bool = False,
        lease_ms: int = 30_000,
    ) -> Beat:
        """Renews the leases of `grants`; without a list, of everything the worker holds."""
        check_ms("lease_ms", lease_ms)
        state = "draining" if draining else "active"
        parts = [None] if grants is None else list(_parts(grants))
        answers = [
            answer for part in parts for answer in await self._beat(worker, state, pack(part), lease_ms)
        ]
        # by the time of the first: what the worker learns is counted from before that
        should_bury = any(answer["bury"] for answer in answers)
        beat = Beat(answers[-1]["state"], answers[0]["now"], should_bury=should_bury)
        for row in (row for answer in answers for row in answer["rows"]):
            beat.learn(row)
        return beat

    async def _beat(self, worker: str, state: str, holders: bytes, lease_ms: int) -> list[Answer]:
        """An act, or several when the worker holds more than one of them takes."""
        answers = [await self._session.run("heartbeat", worker, state, holders, 0, lease_ms)]
        while (cursor := answers[-1]["cursor"]) != "0":
            answers.append(await self._session.run("heartbeat", worker, state, holders, cursor, lease_ms))
        return answers

    async def stall(self, worker: str, request: str, begun: Collection[int]) -> list[Grant]:
        """The worker is alive but does not respond: until it claims again it is given nothing.

        What it holds returns to the queue unrun, except for the fences in `begun`; returns what that was. A
        request that is repeated because its answer was lost gets the same answer.
        """
        check_name("request", request)
        packed, cursor = pack([str(fence) for fence in begun]), "0"
        while True:
            answer = await self._session.run("stall", worker, request, packed, cursor)
            if (cursor := answer["cursor"]) == "0":
                return [Grant(row["id"], row["fence"]) for row in answer["rows"]]

    async def page(self, cursor: str = "", count: int = 200, *, brief: bool = False) -> WorkerPage:
        """Some of those of the last hour, in no order; `brief`: without what they offer."""
        place, _, last = (cursor or "0").partition(".")
        if not PLACE.fullmatch(place) or int(place) >= 1 << 64:
            raise errors.InvalidInput("cursor", "not returned by a previous page; omit it to start over")
        answer = await self._session.run("show_workers", place, last, count, PAGE_BYTES, int(brief))
        place, last = answer["place"], answer["last"]
        following = "" if (place, last) == ("0", "") else f"{place}.{last}"
        return WorkerPage([_worker_stats(row) for row in answer["workers"]], following, answer["size"])

    async def all(self, *, brief: bool = False) -> list[WorkerStats]:
        """The latest first."""
        page = await self.page(brief=brief)
        workers = page.workers
        while page.next_cursor:
            page = await self.page(page.next_cursor, brief=brief)
            workers += page.workers
        return latest_first(workers)

    async def drain(self, worker: str) -> None:
        """It is given nothing more."""
        await self._session.run("drain", worker, 0)

    async def leave(self, worker: str) -> None:
        """It has stopped and holds nothing."""
        # unknown: it left before
        expect_ok(await self._session.ask("drain", worker, 1), "unknown_worker")

    async def wait(self, worker: str, seconds: float) -> str | Handed | None:
        """Until somebody calls this worker, or the time is over: `cancel:<task>`, or what there is to claim.

        A hint: claim in any case. A worker that allowed it with its last claim may be handed a task instead.
        """
        word = await self._session.next_word("wake", worker, seconds)
        if word is None:
            return None
        return handed_by(word.removeprefix(TAKE)) if word.startswith(TAKE) else text(word)


def _worker_stats(row: Answer) -> WorkerStats:
    types, capabilities = row.pop("types", "*"), row.pop("capabilities", "")
    return WorkerStats(
        worker_id=row.pop("id"),
        task_types=None if types == "*" else _named(types),
        capabilities=_named(capabilities),
        **row,
    )


def _named(names: str) -> tuple[str, ...]:
    """`,a,b,` as the store writes it."""
    return tuple(name for name in names.split(",") if name)


def _parts(grants: Sequence[Grant]) -> Iterator[list[dict[str, Any]]]:
    """At least one: also a worker that holds nothing is alive."""
    for start in range(0, len(grants) or 1, MOST_HOLDERS):
        yield [grant.packed() for grant in grants[start : start + MOST_HOLDERS]]


def listed(field: str, names: Iterable[str]) -> str:
    """`,a,b,` as the scripts take names; raises InvalidInput."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise errors.InvalidInput(field, "is not a list of names")
    chosen = list(names)
    for name in chosen:
        check_name(field, name)
    return "," + "".join(f"{name}," for name in sorted(set(chosen)))

"""Limits, workers and periodic tasks of a gateway, as the store has them."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable
from typing import Any

import uuid_utils

from fairlead.checks import check_ms, check_name
from fairlead.client.forms import limit_form, none_or_error, task_form
from fairlead.client.transport import ANSWER_WITHIN, HttpTransport, path
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, LimitFull
from fairlead.model.limit import Lease, Limit, check_wish
from fairlead.model.reports import Grant
from fairlead.model.task import NewTask, Submitted
from fairlead.model.worker import Beat
from fairlead.settings import Rate, Slots
from fairlead.shapes.base import Json
from fairlead.shapes.declaration import CronAnswer, TickAnswer
from fairlead.shapes.limit import LeaseAnswer, LimitAndSlots, LimitsAnswer, ReleasedLease
from fairlead.shapes.task import BatchItem
from fairlead.shapes.worker import (
    DrainAnswer,
    HeartbeatAnswer,
    LeaveAnswer,
    RegisterAnswer,
    StallAnswer,
    WaitAnswer,
)
from fairlead.times import read_time, time_text

MOST_WAIT = 30.0  # seconds that one call waits
BEAT_WITHIN = 5.0  # seconds; a beat that is late is better made anew, while the lease lasts


class Limits:
    def __init__(self, caller: HttpTransport) -> None:
        self._caller = caller

    async def set(
        self, name: str, wanted: Slots | Rate, *, tenant: str | None = None, shared: bool | None = None
    ) -> None:
        """Defines or changes it; takes effect at once. 0 slots pauses. `tenant`: one that is its own."""
        form = limit_form(name, wanted, shared)
        await self._caller.ask(LimitAndSlots, "PUT", _limit(name), form, repeat=True, query=_of(tenant))

    async def all(self, *, tenant: str | None = None) -> list[Limit]:
        address = path("api", "v1", "limits")
        pages = self._caller.pages(LimitsAnswer, address, **_of(tenant))
        return [one.to_value() async for page in pages for one in page.limits]

    async def get(self, name: str, lease_id: str | None = None, *, tenant: str | None = None) -> Limit:
        """With up to 100 of its holders; with `lease_id` (of a task: its id) that one alone, if it is one."""
        asked = _of(tenant) if lease_id is None else {"lease_id": lease_id, **_of(tenant)}
        return (await self._caller.get(LimitAndSlots, _limit(name), **asked)).to_value()

    async def acquire(
        self,
        name: str,
        *,
        units: int = 1,
        lease_ms: int = 30_000,
        holder: str = "",
        lease_id: str | None = None,
        wait_seconds: float = 0,
        priority: str = "medium",
        user_id: str | None = None,
    ) -> Lease:
        """Units without a task; raises LimitFull when there are none within `wait_seconds`.

        The lease has an id of its own: a lost answer is asked for again.
        """
        check_wish(units, lease_ms, holder, lease_id, wait_seconds, priority, user_id)
        lease_id = lease_id or str(uuid_utils.uuid7())
        body: Json = {
            "units": units,
            "lease_seconds": lease_ms / 1000,
            "lease_id": lease_id,
            "priority": None if priority == "medium" else priority,  # as usual: a key may be bound to less
        }
        body |= {field: words for field, words in (("holder", holder), ("user_id", user_id)) if words}
        try:
            lease = await self._wait_in_line(_limit(name, "leases"), body, wait_seconds)
            return lease.to_value(limit=name)
        except asyncio.CancelledError:
            # the units may be there already, and nobody would give them back
            await asyncio.shield(asyncio.ensure_future(self._withdraw(name, lease_id)))
            raise

    async def _wait_in_line(self, address: str, body: Json, seconds: float) -> LeaseAnswer:
        """In several calls, because none waits for long; the place in the line is kept between them."""
        ends = monotonic() + seconds
        while True:
            left = max(0.0, ends - monotonic())
            wait, is_last = min(left, MOST_WAIT), left <= MOST_WAIT
            asked = body | {"wait_seconds": wait, "keep_place": not is_last}
            try:
                return await self._caller.post(
                    LeaseAnswer, address, asked, repeat=True, within=wait + ANSWER_WITHIN
                )
            except LimitFull:
                if is_last:
                    raise

    async def _withdraw(self, name: str, lease_id: str) -> None:
        with contextlib.suppress(FairleadError):
            await self._caller.ask(ReleasedLease, "DELETE", _limit(name, "leases", lease_id))

    async def renew(self, lease: Lease, lease_ms: int = 30_000) -> Lease:
        """The lease with its new end; raises Fenced when it is over."""
        check_ms("lease_ms", lease_ms)
        body = {"lease_seconds": lease_ms / 1000, "fence": lease.fence}
        address = _limit(lease.limit, "leases", lease.lease_id, "renew")
        renewed = await self._caller.post(LeaseAnswer, address, body, repeat=True)
        return renewed.to_value(limit=lease.limit)

    async def release(self, lease: Lease) -> None:
        """Gives the units back; raises Fenced when the lease was over before."""
        address = _limit(lease.limit, "leases", lease.lease_id)
        await self._caller.ask(ReleasedLease, "DELETE", address, query={"fence": lease.fence})

    async def force_release(self, name: str, lease_id: str, *, tenant: str | None = None) -> None:
        """Frees a stuck lease of this limit. What it protects may still be going on."""
        query = {"force": "true", **_of(tenant)}
        await self._caller.ask(ReleasedLease, "DELETE", _limit(name, "leases", lease_id), query=query)


def _of(tenant: str | None) -> dict[str, Any]:
    """Whose limits are meant: with a key of the tenant, its own anyway."""
    return {} if tenant is None else {"tenant": tenant}


def _limit(name: str, *parts: str) -> str:
    check_name("name", name)
    return path("api", "v1", "limits", name, *parts)


class Workers:
    def __init__(self, caller: HttpTransport) -> None:
        self._caller = caller

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
        body: Json = {
            "worker_id": worker,
            "capabilities": list(capabilities),
            "capacity": capacity,
            "reserve": reserve,
        }
        if task_types is not None:
            body["task_types"] = list(task_types)
        body |= {field: words for field, words in (("name", name), ("version", version)) if words}
        await self._caller.post(RegisterAnswer, path("internal", "workers", "register"), body)

    async def heartbeat(self, worker: str, *, draining: bool = False, lease_ms: int = 30_000) -> Beat:
        """Prolongs the leases of everything the worker holds, for as long as the gateway says."""
        body = {"status": "draining" if draining else "active"}
        within = min(BEAT_WITHIN, max(1.0, lease_ms / 3000))
        address = _worker(worker, "heartbeat")
        return (await self._caller.post(HeartbeatAnswer, address, body, within=within)).to_value()

    async def stall(self, worker: str, request: str, begun: Collection[int]) -> list[Grant]:
        """The worker lives but does not answer: until it polls again it is given nothing.

        What it holds returns to the queue unrun, except for the fences in `begun`; what that was. The same
        request again, because its answer was lost, is answered like the first.
        """
        body = {"request_id": request, "begun": list(begun)}
        answer = await self._caller.post(StallAnswer, _worker(worker, "stall"), body, repeat=True)
        return [Grant(row.task_id, row.fence) for row in answer.released]

    async def wait(self, worker: str, seconds: float) -> str | None:
        """Until somebody calls this worker, or the time is over: `cancel:<task>`, or what there is to claim.

        A hint: claim in any case.
        """
        body = {"wait_seconds": seconds}
        within = seconds + ANSWER_WITHIN
        return (await self._caller.post(WaitAnswer, _worker(worker, "wait"), body, within=within)).called

    async def drain(self, worker: str) -> None:
        """It is given nothing more."""
        await self._caller.post(DrainAnswer, path("api", "v1", "workers", worker, "drain"), repeat=True)

    async def leave(self, worker: str) -> None:
        """It has stopped and holds nothing."""
        await self._caller.ask(LeaveAnswer, "DELETE", _worker(worker))


def _worker(worker: str, *parts: str) -> str:
    return path("internal", "workers", worker, *parts)


class Crons:
    def __init__(self, caller: HttpTransport) -> None:
        self._caller = caller

    async def last(self, name: str) -> tuple[int, int]:
        """Its last tick and the store's now, in ms. A cron seen for the first time begins now."""
        answer = await self._caller.post(CronAnswer, _cron(name))
        return read_time("last", answer.last), read_time("now", answer.now)

    async def tick(self, name: str, previous: int, tick: int, task: NewTask) -> Submitted | None:
        """Submits the task and moves the cron on; None when `previous` is no longer its last tick."""
        body = {"previous": time_text(previous), "tick": time_text(tick), "task": task_form(task)}
        submitted = (await self._caller.post(TickAnswer, _cron(name, "tick"), body)).submitted
        return None if submitted is None else submitted.to_value()


def _cron(name: str, *parts: str) -> str:
    check_name("name", name)
    return path("internal", "crons", name, *parts)


def submitted_or_error(row: BatchItem) -> Submitted | FairleadError:
    return none_or_error(row) or row.to_value()

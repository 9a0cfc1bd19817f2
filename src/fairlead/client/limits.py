"""Limits of a gateway, as the store has them."""

import asyncio
import contextlib
from typing import Any

import uuid_utils

from fairlead.checks import check_ms, check_name
from fairlead.client.forms import limit_form
from fairlead.client.transport import ANSWER_WITHIN, HttpTransport, path
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, LimitFull
from fairlead.model.limit import Lease, Limit, check_wish
from fairlead.settings import Rate, Slots
from fairlead.shapes.base import Json
from fairlead.shapes.limit import LeaseAnswer, LimitAndSlots, LimitsAnswer, ReleasedLease

MOST_WAIT = 30.0  # seconds that one call waits


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

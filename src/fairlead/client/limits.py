"""Limits of a gateway, as the store has them."""

import asyncio
import contextlib
from typing import cast

import uuid_utils
from msgspec.structs import replace

from fairlead.checks import check_ms, check_name
from fairlead.client.bodies import limit_body
from fairlead.client.transport import ANSWER_WITHIN, Part, path
from fairlead.clock import monotonic
from fairlead.errors import FairleadError, LimitFull
from fairlead.model.limit import Lease, Limit, check_wish
from fairlead.settings import Rate, Slots
from fairlead.shapes.base import PriorityName
from fairlead.shapes.limit import (
    DeletedLimit,
    LeaseAnswer,
    LeaseBody,
    LimitAndSlots,
    LimitChange,
    LimitsAnswer,
    ReleasedLease,
    RenewBody,
)

MOST_WAIT = 30.0  # seconds that one call waits


class Limits(Part):
    async def set(
        self, name: str, wanted: Slots | Rate, *, tenant: str | None = None, shared: bool | None = None
    ) -> None:
        body, query = limit_body(name, wanted, shared), {"tenant": tenant}
        await self._transport.ask(LimitAndSlots, "PUT", _limit(name), body, repeat=True, query=query)

    async def pause(self, name: str, paused: bool = True, *, tenant: str | None = None) -> None:
        body, query = LimitChange(paused=paused), {"tenant": tenant}
        await self._transport.ask(LimitAndSlots, "PUT", _limit(name), body, repeat=True, query=query)

    async def delete(self, name: str, *, tenant: str | None = None) -> None:
        await self._transport.ask(DeletedLimit, "DELETE", _limit(name), query={"tenant": tenant})

    async def all(self, *, tenant: str | None = None) -> list[Limit]:
        address = path("api", "v1", "limits")
        pages = self._transport.pages(LimitsAnswer, address, tenant=tenant)
        return [one.to_value() async for page in pages for one in page.limits]

    async def get(self, name: str, lease_id: str | None = None, *, tenant: str | None = None) -> Limit:
        answer = await self._transport.get(LimitAndSlots, _limit(name), lease_id=lease_id, tenant=tenant)
        return answer.to_value()

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

        The lease has its own id, so a request without an answer is repeated.
        """
        check_wish(units, lease_ms, holder, lease_id, wait_seconds, priority, user_id)
        lease_id = lease_id or str(uuid_utils.uuid7())
        body = LeaseBody(
            units=units,
            lease_seconds=lease_ms / 1000,
            lease_id=lease_id,
            # the default is left out, because a key may be bound to less
            priority=None if priority == "medium" else cast(PriorityName, priority),
            holder=holder or None,
            user_id=user_id,
        )
        try:
            lease = await self._wait_in_queue(_limit(name, "leases"), body, wait_seconds)
            return lease.to_value(limit=name)
        except asyncio.CancelledError:
            # the units may be there already, and nobody would give them back
            await asyncio.shield(asyncio.ensure_future(self._withdraw(name, lease_id)))
            raise

    async def _wait_in_queue(self, address: str, body: LeaseBody, seconds: float) -> LeaseAnswer:
        """In several calls, because none waits for long; the place in the queue is kept between them."""
        ends = monotonic() + seconds
        while True:
            left = max(0.0, ends - monotonic())
            wait, is_last = min(left, MOST_WAIT), left <= MOST_WAIT
            asked = replace(body, wait_seconds=wait, keep_place=not is_last)
            try:
                return await self._transport.post(
                    LeaseAnswer, address, asked, repeat=True, within=wait + ANSWER_WITHIN
                )
            except LimitFull:
                if is_last:
                    raise

    async def _withdraw(self, name: str, lease_id: str) -> None:
        with contextlib.suppress(FairleadError):
            await self._transport.ask(ReleasedLease, "DELETE", _limit(name, "leases", lease_id))

    async def renew(self, lease: Lease, lease_ms: int = 30_000) -> Lease:
        check_ms("lease_ms", lease_ms)
        body = RenewBody(lease_seconds=lease_ms / 1000, fence=lease.fence)
        address = _limit(lease.limit, "leases", lease.lease_id, "renew")
        renewed = await self._transport.post(LeaseAnswer, address, body, repeat=True)
        return renewed.to_value(limit=lease.limit)

    async def release(self, lease: Lease) -> None:
        address = _limit(lease.limit, "leases", lease.lease_id)
        await self._transport.ask(ReleasedLease, "DELETE", address, query={"fence": lease.fence})

    async def force_release(self, name: str, lease_id: str, *, tenant: str | None = None) -> None:
        query = {"force": "true", "tenant": tenant}
        await self._transport.ask(ReleasedLease, "DELETE", _limit(name, "leases", lease_id), query=query)


def _limit(name: str, *parts: str) -> str:
    check_name("name", name)
    return path("api", "v1", "limits", name, *parts)

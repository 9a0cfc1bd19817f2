"""Limits: list, get and set them, and hold units of one without a task."""

import asyncio
from dataclasses import replace

from msgspec import to_builtins

from fairlead import errors
from fairlead.api.limit_pages import listed
from fairlead.api.polling import LongPoll
from fairlead.api.priorities import priority_of
from fairlead.api.problems import Forbidden, InvalidBody
from fairlead.api.request import ClientGone, Request
from fairlead.api.table import Routes
from fairlead.model.limit import Lease, Limit
from fairlead.model.tenants import scope_of
from fairlead.settings import Rate, Slots
from fairlead.shapes.base import Json
from fairlead.shapes.limit import (
    DeletedLimit,
    ForceQuery,
    HolderQuery,
    LeaseAnswer,
    LeaseBody,
    LimitAndSlots,
    LimitAnswer,
    LimitBody,
    LimitChange,
    LimitsAnswer,
    LimitsQuery,
    ReleasedLease,
    RenewBody,
    TenantQuery,
)

LATE_SECONDS = 10.0  # after its wait the store has answered, or is away
ROUNDS_TO_HEAR = 4  # of the event loop, until a connection that was cut is known to be
UNKNOWN = (errors.UnknownLimit, errors.InvalidInput)

routes = Routes("/api/v1/limits")


def tenant_of(request: Request, named: str | None) -> str | None:
    """The tenant whose limits are meant: the caller's, or the one that an operator names."""
    if request.caller.tenant is not None and named not in (None, request.caller.tenant):
        raise Forbidden("The key belongs to one tenant: omit `tenant`, or use a key without a tenant.")
    return request.caller.tenant or named


@routes.get(scope="read")
async def find(request: Request, query: LimitsQuery) -> LimitsAnswer:
    """List the limits that the caller may use, for an operator all, and how much of each is in use.

    By name, or with `sort=pressure` those first that make tasks wait the longest; this order changes.
    """
    tenant, store = tenant_of(request, query.tenant), request.store
    limits, cursor = await listed(store, query, tenant)
    order = await store.pressures.order(tenant)
    return LimitsAnswer(
        limits=[*map(LimitAnswer.from_value, limits)],
        next_cursor=cursor,
        total=await store.limits.count() if tenant is None else None,
        waited_for=order.waited_for if order else None,
    )


@routes.get("/{name}", scope="read", refusals=UNKNOWN)
async def get(request: Request, query: HolderQuery) -> LimitAndSlots:
    """Get a limit, and up to 100 holders of its units, or the one with `lease_id`."""
    limit = await _get(request, tenant_of(request, query.tenant), query.lease_id)
    (pressure,) = await request.store.pressures.of([limit.full_name])
    return LimitAndSlots.from_value(replace(limit, pressure=pressure))


async def _get(request: Request, tenant: str | None, lease_id: str | None = None) -> Limit:
    """A tenant does not see the other holders of a shared limit."""
    only_own = request.caller.tenant is not None
    return await request.store.limits.get(
        request.path["name"], lease_id, tenant=tenant, only_own_slots=only_own
    )


@routes.put("/{name}", scope="admin", refusals=UNKNOWN)
async def put(request: Request, body: LimitChange, query: TenantQuery) -> LimitAndSlots:
    """Define, change, pause or resume a limit (a tenant's key: the tenant's own), effective at once."""
    tenant, name, limits = tenant_of(request, query.tenant), request.path["name"], request.store.limits
    before = await _own(request, tenant)
    if body.paused is None:
        act = "set_limit"
        await limits.set(name, wanted_limit(body), tenant=tenant, shared=body.shared)
    elif body == LimitChange(paused=body.paused):
        act = "pause_limit" if body.paused else "resume_limit"
        await limits.pause(name, body.paused, tenant=tenant)
    else:
        raise InvalidBody("paused", "send it alone: it changes nothing else")
    after = await _get(request, tenant)
    await request.audit(act, after.full_name, before, to_builtins(LimitAnswer.from_value(after)))
    return LimitAndSlots.from_value(after)


@routes.delete("/{name}", scope="admin", refusals=(*UNKNOWN, errors.LimitInUse))
async def delete(request: Request, query: TenantQuery) -> DeletedLimit:
    """Delete a limit that no task, lease or declaration needs."""
    name, tenant = request.path["name"], tenant_of(request, query.tenant)
    known = await _own(request, tenant)
    await request.store.limits.delete(name, tenant=tenant)
    await request.audit("delete_limit", scope_of(tenant) + name, known, None)
    return DeletedLimit(name=name, deleted=True)


async def _own(request: Request, tenant: str | None) -> Json | None:
    """The limit as it is, for the audit; none if the tenant means a shared one by this name."""
    try:
        known = await _get(request, tenant)
    except errors.UnknownLimit:
        return None
    return to_builtins(LimitAnswer.from_value(known)) if known.tenant == tenant else None


def wanted_limit(body: LimitBody) -> Slots | Rate:
    if (body.limit is None) == (body.rate is None):
        raise InvalidBody("limit", "give `limit` (slots) or `rate` (such as 60/min), one of them")
    if body.rate is None:
        if body.burst is not None:
            raise InvalidBody("burst", "belongs to a rate")
        assert body.limit is not None
        return Slots(limit=body.limit, shared=body.shared or False)
    try:
        return Rate.of(body.rate, body.burst, shared=body.shared or False)
    except ValueError as problem:
        raise InvalidBody("rate", str(problem)) from None


@routes.post(
    "/{name}/leases",
    scope="worker",
    status=201,
    refusals=(*UNKNOWN, errors.LimitFull, errors.IdempotencyConflict),
)
async def acquire(request: Request, body: LeaseBody) -> LeaseAnswer:
    """Acquire units without a task, waiting in the queue for up to `wait_seconds`."""
    async with LongPoll(request, body.wait_seconds + LATE_SECONDS) as poll:
        lease = await (_wait(request, body, poll) if body.wait_seconds else _acquire(request, body))
        for _ in range(ROUNDS_TO_HEAR):  # on a busy machine the grant may overtake the end of the connection
            await asyncio.sleep(0)
        if not poll.has_gone:
            return LeaseAnswer.from_value(lease)
        await request.store.limits.release(lease)  # nobody else would
        raise ClientGone


async def _wait(request: Request, body: LeaseBody, poll: LongPoll) -> Lease:
    """Leaves the queue when the client has disconnected, or this server stops."""
    acquiring = asyncio.ensure_future(_acquire(request, body))
    await poll.wait_for(acquiring)
    if not acquiring.cancelled():
        return acquiring.result()
    raise ClientGone if poll.has_gone else errors.LimitFull


async def _acquire(request: Request, body: LeaseBody) -> Lease:
    return await request.store.limits.acquire(
        request.path["name"],
        units=body.units,
        lease_ms=round(body.lease_seconds * 1000),
        holder=body.holder or "",
        lease_id=body.lease_id,
        wait_seconds=body.wait_seconds,
        priority=priority_of(request, body.priority, trusted=True)[0],
        user_id=body.user_id,
        tenant=request.caller.tenant,
        by_tenant=request.caller.tenant is not None,
        keep_place=body.keep_place,
    )


@routes.post("/{name}/leases/{lease_id}/renew", scope="worker", refusals=(errors.Fenced,))
async def renew(request: Request, body: RenewBody | None, query: TenantQuery) -> LeaseAnswer:
    """Renew a lease."""
    body = body or RenewBody()
    lease = await request.store.limits.renew_known(
        request.path["name"],
        request.path["lease_id"],
        body.fence,
        lease_ms=round(body.lease_seconds * 1000),
        tenant=tenant_of(request, query.tenant),
    )
    return LeaseAnswer.from_value(lease)


@routes.delete(
    "/{name}/leases/{lease_id}",
    scope="worker",
    forced_scope="admin",
    refusals=(errors.Fenced, *UNKNOWN),
)
async def release(request: Request, query: ForceQuery) -> ReleasedLease:
    """Release units; `force=true` (admin) frees a stuck lease."""
    name, lease_id = request.path["name"], request.path["lease_id"]
    limits, tenant = request.store.limits, tenant_of(request, query.tenant)
    if query.force:
        await limits.force_release(name, lease_id, tenant=tenant)
        subject = f"{name}/{lease_id}" if tenant is None else f"{name}/{lease_id} of {tenant}"
        await request.audit("force_release", subject, {"held": True}, {"held": False})
    else:
        await limits.release_known(name, lease_id, query.fence, tenant=tenant)
    return ReleasedLease(lease_id=lease_id, released=True)

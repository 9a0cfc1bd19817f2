"""Limits: see them, set them, and hold units of one without a task."""

import asyncio

from msgspec import to_builtins

from fairlead import errors
from fairlead.api.polling import LongPoll
from fairlead.api.priorities import priority_of
from fairlead.api.problems import Forbidden, InvalidBody
from fairlead.api.request import ClientGone, Request
from fairlead.api.table import Route
from fairlead.model.limit import Lease, Limit
from fairlead.settings import Rate, Slots
from fairlead.shapes.limit import (
    ForceQuery,
    HolderQuery,
    LeaseAnswer,
    LeaseBody,
    LimitAndSlots,
    LimitAnswer,
    LimitBody,
    LimitsAnswer,
    LimitsQuery,
    ReleasedLease,
    RenewBody,
    TenantQuery,
)

AT_ONCE = 200  # limits that are read together: others are served in between
LATE_SECONDS = 10.0  # after its wait the store has answered, or is away


def tenant_of(request: Request) -> str | None:
    """Whose limits are meant: those of the caller's tenant, or of the one that an operator names."""
    named: str | None = request.query.tenant
    if request.caller.tenant is not None and named not in (None, request.caller.tenant):
        raise Forbidden("The key is one tenant's: leave `tenant` out, or use a key without a tenant.")
    return request.caller.tenant or named


async def find(request: Request) -> LimitsAnswer:
    """The limits that the caller may name, for an operator all of them, and how much of each is in use."""
    limits, cursor = await page_of(request, request.query.cursor, tenant=tenant_of(request))
    return LimitsAnswer(limits=[*map(LimitAnswer.from_value, limits)], next_cursor=cursor)


async def page_of(
    request: Request, after: str, *, tenant: str | None = None
) -> tuple[list[Limit], str | None]:
    """As many as the query asks for, those after this name, and the cursor of the next page."""
    found, most = list[Limit](), request.query.limit
    while True:
        count = min(most - len(found), AT_ONCE)
        limits, after = await request.gateway.store.limits.page(after, count, tenant=tenant)
        found += limits
        if not after or len(found) == most:
            return found, after or None


async def get(request: Request) -> LimitAndSlots:
    """One limit, and up to 100 of those who hold its units, or the one with `lease_id`."""
    return LimitAndSlots.from_value(await _get(request, request.query.lease_id))


async def _get(request: Request, lease_id: str | None = None) -> Limit:
    """A tenant sees none of the other holders of a shared limit."""
    limits, is_tenant = request.gateway.store.limits, request.caller.tenant is not None
    return await limits.get(
        request.path["name"], lease_id, tenant=tenant_of(request), only_own_slots=is_tenant
    )


async def put(request: Request) -> LimitAndSlots:
    """Define or change a limit, with a tenant's key one of its own; takes effect at once. 0 pauses."""
    name, limits, wanted, tenant = (
        request.path["name"],
        request.gateway.store.limits,
        request.body,
        tenant_of(request),
    )
    try:
        known = await _get(request)
        before = to_builtins(LimitAnswer.from_value(known)) if known.tenant == tenant else None
    except errors.UnknownLimit:
        before = None
    await limits.set(name, wanted_limit(wanted), tenant=tenant, shared=wanted.shared)
    after = await _get(request)
    await request.audit("set_limit", after.full_name, before, to_builtins(LimitAnswer.from_value(after)))
    return LimitAndSlots.from_value(after)


def wanted_limit(body: LimitBody) -> Slots | Rate:
    if (body.limit is None) == (body.rate is None):
        raise InvalidBody([("limit", "give `limit` (slots) or `rate` (such as 60/min), one of them")])
    if body.rate is None:
        if body.burst is not None:
            raise InvalidBody([("burst", "belongs to a rate")])
        assert body.limit is not None
        return Slots(limit=body.limit, shared=body.shared or False)
    try:
        return Rate.of(body.rate, body.burst, shared=body.shared or False)
    except ValueError as problem:
        raise InvalidBody([("rate", str(problem))]) from None


ROUNDS_TO_HEAR = 4  # of the event loop, until a connection that was cut is known to be


async def acquire(request: Request) -> LeaseAnswer:
    """Take units without a task, standing in line for up to `wait_seconds`."""
    limits, body = request.gateway.store.limits, request.body
    async with LongPoll(request, body.wait_seconds + LATE_SECONDS) as poll:
        lease = await _acquire(request, poll) if body.wait_seconds else await _ask(request)
        for _ in range(ROUNDS_TO_HEAR):  # on a busy machine the grant may overtake the news that nobody waits
            await asyncio.sleep(0)
        if not poll.has_gone:
            return LeaseAnswer.from_value(lease)
        await limits.release(lease)  # nobody would
        raise ClientGone


async def _acquire(request: Request, poll: LongPoll) -> Lease:
    """Leaves the line when the caller has gone, or this server stops."""
    asking = asyncio.ensure_future(_ask(request))
    await poll.wait_for(asking)
    if not asking.cancelled():
        return asking.result()
    raise ClientGone if poll.has_gone else errors.LimitFull


async def _ask(request: Request) -> Lease:
    body: LeaseBody = request.body
    return await request.gateway.store.limits.acquire(
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


async def renew(request: Request) -> LeaseAnswer:
    """Prolong a lease."""
    body: RenewBody = request.body or RenewBody()
    lease = await request.gateway.store.limits.renew_known(
        request.path["name"],
        request.path["lease_id"],
        body.fence,
        lease_ms=round(body.lease_seconds * 1000),
        tenant=tenant_of(request),
    )
    return LeaseAnswer.from_value(lease)


async def release(request: Request) -> ReleasedLease:
    """Give units back; `force=true` (admin) frees a stuck lease."""
    query: ForceQuery = request.query
    name, lease_id, tenant = request.path["name"], request.path["lease_id"], tenant_of(request)
    limits = request.gateway.store.limits
    if query.force:
        await limits.force_release(name, lease_id, tenant=tenant)
        subject = f"{name}/{lease_id}" if tenant is None else f"{name}/{lease_id} of {tenant}"
        await request.audit("force_release", subject, {"held": True}, {"held": False})
    else:
        await limits.release_known(name, lease_id, query.fence, tenant=tenant)
    return ReleasedLease(lease_id=lease_id, released=True)


LIMIT = "/api/v1/limits/{name}"
LEASE = f"{LIMIT}/leases/{{lease_id}}"
UNKNOWN = (errors.UnknownLimit, errors.InvalidInput)

ROUTES = (
    Route(
        method="GET",
        path="/api/v1/limits",
        scope="read",
        handler=find,
        query=LimitsQuery,
        answer=LimitsAnswer,
    ),
    Route(
        method="GET",
        path=LIMIT,
        scope="read",
        handler=get,
        query=HolderQuery,
        answer=LimitAndSlots,
        refusals=UNKNOWN,
    ),
    Route(
        method="PUT",
        path=LIMIT,
        scope="admin",
        handler=put,
        query=TenantQuery,
        body=LimitBody,
        answer=LimitAndSlots,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path=f"{LIMIT}/leases",
        scope="worker",
        handler=acquire,
        body=LeaseBody,
        answer=LeaseAnswer,
        status=201,
        refusals=(*UNKNOWN, errors.LimitFull, errors.IdempotencyConflict),
    ),
    Route(
        method="POST",
        path=f"{LEASE}/renew",
        scope="worker",
        handler=renew,
        query=TenantQuery,
        body=RenewBody,
        body_optional=True,
        answer=LeaseAnswer,
        refusals=(errors.Fenced,),
    ),
    Route(
        method="DELETE",
        path=LEASE,
        scope="worker",
        forced_scope="admin",
        handler=release,
        query=ForceQuery,
        answer=ReleasedLease,
        refusals=(errors.Fenced, *UNKNOWN),
    ),
)

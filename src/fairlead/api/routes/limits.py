"""Limits: see them, set them, and hold units of one without a task."""

import asyncio

from msgspec import to_builtins

from fairlead import errors
from fairlead.api.call import Call, ClientGone
from fairlead.api.polling import Caller
from fairlead.api.priorities import priority_of
from fairlead.api.problems import Forbidden, InvalidBody
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


def tenant_of(call: Call) -> str | None:
    """Whose limits are meant: those of the caller's tenant, or of the one that an operator names."""
    named: str | None = call.query.tenant
    if call.who.tenant is not None and named not in (None, call.who.tenant):
        raise Forbidden("The key is one tenant's: leave `tenant` out, or use a key without a tenant.")
    return call.who.tenant or named


async def find(call: Call) -> LimitsAnswer:
    """The limits that the caller may name, for an operator all of them, and how much of each is in use."""
    limits, cursor = await page_of(call, call.query.cursor, tenant=tenant_of(call))
    return LimitsAnswer(limits=[*map(LimitAnswer.from_value, limits)], next_cursor=cursor)


async def page_of(call: Call, after: str, *, tenant: str | None = None) -> tuple[list[Limit], str | None]:
    """As many as the query asks for, those after this name, and the cursor of the next page."""
    found, most = list[Limit](), call.query.limit
    while True:
        count = min(most - len(found), AT_ONCE)
        limits, after = await call.gateway.store.limits.page(after, count, tenant=tenant)
        found += limits
        if not after or len(found) == most:
            return found, after or None


async def get(call: Call) -> LimitAndSlots:
    """One limit, and up to 100 of those who hold its units, or the one with `lease_id`."""
    return LimitAndSlots.from_value(await _get(call, call.query.lease_id))


async def _get(call: Call, lease_id: str | None = None) -> Limit:
    """A tenant sees none of the other holders of a shared limit."""
    limits, is_tenant = call.gateway.store.limits, call.who.tenant is not None
    return await limits.get(call.path["name"], lease_id, tenant=tenant_of(call), only_own_slots=is_tenant)


async def put(call: Call) -> LimitAndSlots:
    """Define or change a limit, with a tenant's key one of its own; takes effect at once. 0 pauses."""
    name, limits, wanted, tenant = call.path["name"], call.gateway.store.limits, call.body, tenant_of(call)
    try:
        known = await _get(call)
        before = to_builtins(LimitAnswer.from_value(known)) if known.tenant == tenant else None
    except errors.UnknownLimit:
        before = None
    await limits.set(name, wanted_limit(wanted), tenant=tenant, shared=wanted.shared)
    after = await _get(call)
    await call.audit("set_limit", after.full_name, before, to_builtins(LimitAnswer.from_value(after)))
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


async def acquire(call: Call) -> LeaseAnswer:
    """Take units without a task, standing in line for up to `wait_seconds`."""
    limits, body = call.gateway.store.limits, call.body
    async with Caller(call, body.wait_seconds + LATE_SECONDS) as caller:
        lease = await _acquire(call, caller) if body.wait_seconds else await _ask(call)
        for _ in range(ROUNDS_TO_HEAR):  # on a busy machine the grant may overtake the news that nobody waits
            await asyncio.sleep(0)
        if not caller.has_gone:
            return LeaseAnswer.from_value(lease)
        await limits.release(lease)  # nobody would
        raise ClientGone


async def _acquire(call: Call, caller: Caller) -> Lease:
    """Leaves the line when the caller has gone, or this server stops."""
    asking = asyncio.ensure_future(_ask(call))
    await caller.wait_for(asking)
    if not asking.cancelled():
        return asking.result()
    raise ClientGone if caller.has_gone else errors.LimitFull


async def _ask(call: Call) -> Lease:
    body: LeaseBody = call.body
    return await call.gateway.store.limits.acquire(
        call.path["name"],
        units=body.units,
        lease_ms=round(body.lease_seconds * 1000),
        holder=body.holder or "",
        lease_id=body.lease_id,
        wait_seconds=body.wait_seconds,
        priority=priority_of(call, body.priority, trusted=True)[0],
        user_id=body.user_id,
        tenant=call.who.tenant,
        by_tenant=call.who.tenant is not None,
        keep_place=body.keep_place,
    )


async def renew(call: Call) -> LeaseAnswer:
    """Prolong a lease."""
    body: RenewBody = call.body or RenewBody()
    lease = await call.gateway.store.limits.renew_known(
        call.path["name"],
        call.path["lease_id"],
        body.fence,
        lease_ms=round(body.lease_seconds * 1000),
        tenant=tenant_of(call),
    )
    return LeaseAnswer.from_value(lease)


async def release(call: Call) -> ReleasedLease:
    """Give units back; `force=true` (admin) frees a stuck lease."""
    query: ForceQuery = call.query
    name, lease_id, tenant = call.path["name"], call.path["lease_id"], tenant_of(call)
    limits = call.gateway.store.limits
    if query.force:
        await limits.force_release(name, lease_id, tenant=tenant)
        subject = f"{name}/{lease_id}" if tenant is None else f"{name}/{lease_id} of {tenant}"
        await call.audit("force_release", subject, {"held": True}, {"held": False})
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

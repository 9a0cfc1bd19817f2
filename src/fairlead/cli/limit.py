"""`fairlead limit`: show limits and the holders of their units, set and delete them, and free leases."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

from cyclopts import App, Parameter

from fairlead.backend import Backend
from fairlead.cli.audit import note
from fairlead.cli.listing import LIST, ListOptions, View, show
from fairlead.cli.options import DEFAULTS, Options, open_backend
from fairlead.cli.output import print_answer
from fairlead.cli.table import Table, make_table
from fairlead.errors import FairleadError, Fenced, InvalidInput, UnknownLimit
from fairlead.model.limit import Limit
from fairlead.model.tenants import scope_of
from fairlead.settings import LimitSettings, Rate, Slots
from fairlead.shapes.limit import LimitAndSlots, LimitAnswer
from fairlead.times import time_text

app = App(name="limit", help="Show, set, pause, resume and delete limits, and free leases.")

COLUMNS = ("limit", "kind", "of", "active", "waiting", "room", "rate", "state")
LEAST_USED = ("room", "kind", "rate", "waiting")

Name = Annotated[str, Parameter(help="Name of the limit.")]
Tenant = Annotated[str | None, Parameter(help="The tenant whose limits are meant; default: the operator's.")]


@app.command
async def status(
    name: Name | None = None,
    /,
    *,
    tenant: Tenant = None,
    options: ListOptions = LIST,
) -> None:
    """Show all limits, or one with up to 100 of its holders."""
    async with open_backend(options) as backend:

        async def read() -> View:
            if name is not None:
                return _one(await backend.limits.get(name, tenant=tenant))
            limits = await backend.limits.all(tenant=tenant)
            answers = [LimitAnswer.from_value(limit) for limit in limits]
            return View({"limits": answers}, [make_table(COLUMNS, map(_row, limits), LEAST_USED)])

        await show(options, read)


def _one(limit: Limit) -> View:
    tables = [make_table(COLUMNS, [_row(limit)], LEAST_USED)] + ([_slots(limit)] if limit.slots else [])
    more = f"There are more: these are {len(limit.slots)} of its holders." if limit.has_more_slots else ""
    return View(LimitAndSlots.from_value(limit), tables, more)


async def _before(backend: Backend, name: str, tenant: str | None) -> LimitAnswer | None:
    """The limit as it is; none if the tenant means a shared one by this name."""
    try:
        known = await backend.limits.get(name, tenant=tenant)
    except UnknownLimit:
        return None
    return LimitAnswer.from_value(known) if known.tenant == tenant else None


def _row(limit: Limit) -> tuple[object, ...]:
    state = "paused" if limit.paused or limit.limit == 0 else "held back" if limit.held_back else None
    counts = limit.limit, limit.active, limit.waiting, limit.room
    return limit.full_name, limit.kind, *counts, limit.rate, state


def _slots(limit: Limit) -> Table:
    rows = [
        (
            slot.lease_id if slot.tenant is None else f"{slot.lease_id} of {slot.tenant}",
            "task" if slot.is_task else "lease",
            slot.holder,
            slot.units,
            time_text(slot.expires_at),
        )
        for slot in limit.slots
    ]
    return make_table(("lease", "of a", "worker", "units", "until"), rows, ("worker", "units"))


@app.command(name="set")
async def set_limit(
    name: Name,
    /,
    *,
    limit: Annotated[int | None, Parameter(help="Units that may be held at a time; 0 pauses.")] = None,
    rate: Annotated[str | None, Parameter(help="Starts per time, such as 60/min, 10/s or 1000/h.")] = None,
    burst: Annotated[
        int | None, Parameter(help="Of a rate: how many may start at once; default: a tenth of its number.")
    ] = None,
    shared: Annotated[
        bool | None, Parameter(help="Let every tenant name it in its tasks, or none; default: as before.")
    ] = None,
    tenant: Tenant = None,
    options: Options = DEFAULTS,
) -> None:
    """Define or change a limit. It takes effect at once; running tasks continue."""
    wanted = wanted_limit(limit, rate, burst)
    async with open_backend(options, join=True) as backend:
        before = await _before(backend, name, tenant)
        await backend.limits.set(name, wanted, tenant=tenant, shared=shared)
        now = await backend.limits.get(name, tenant=tenant)
        answer = LimitAnswer.from_value(now)
        await note(backend, "set_limit", now.full_name, before, answer)
    if isinstance(wanted, Slots):
        much = f"{wanted.limit} at a time" + ("; paused" if wanted.limit == 0 else "")
    else:
        much = f"{rate}, at most {wanted.burst} at once"
    sharing = "; shared with all tenants" if now.shared else ""
    print_answer(options.output, answer, f"{now.full_name}: {much}{sharing}")


def wanted_limit(limit: int | None, rate: str | None, burst: int | None) -> LimitSettings:
    if (limit is None) == (rate is None):
        raise InvalidInput("--limit", "give --limit N for slots or --rate 60/min for a rate, one of them")
    if limit is not None:
        if burst is not None:
            raise InvalidInput("--burst", "belongs to a rate: leave it out, or give --rate")
        return Slots(limit=limit)
    return read_rate(rate or "", partial(Rate.of, burst=burst))


def read_rate(text: str, read: Callable[[str], Rate]) -> Rate:
    try:
        return read(text)
    except ValueError as problem:
        raise InvalidInput("--rate", f"{problem}, not {text!r}") from None


@app.command
async def pause(name: Name, /, *, tenant: Tenant = None, options: Options = DEFAULTS) -> None:
    """Give out no more units of a limit, also of a rate. Those that are held are kept."""
    await _pause(name, True, tenant, options)


@app.command
async def resume(name: Name, /, *, tenant: Tenant = None, options: Options = DEFAULTS) -> None:
    """Give out the units of a paused limit again."""
    await _pause(name, False, tenant, options)


async def _pause(name: str, paused: bool, tenant: str | None, options: Options) -> None:
    async with open_backend(options, join=True) as backend:
        before = await _before(backend, name, tenant)
        await backend.limits.pause(name, paused, tenant=tenant)
        now = await backend.limits.get(name, tenant=tenant)
        answer = LimitAnswer.from_value(now)
        await note(backend, "pause_limit" if paused else "resume_limit", now.full_name, before, answer)
    done = f"{now.full_name} is {'paused' if paused else 'resumed'}"
    if not paused and now.limit == 0:
        done += "; it has 0 units, so nothing starts until `limit set` gives it more"
    print_answer(options.output, answer, done)


@app.command
async def delete(name: Name, /, *, tenant: Tenant = None, options: Options = DEFAULTS) -> None:
    """Delete a limit that no task, lease or declaration needs."""
    async with open_backend(options) as backend:
        before = await _before(backend, name, tenant)
        try:
            await backend.limits.delete(name, tenant=tenant)
        except UnknownLimit:
            raise UnknownLimit(f"There is no limit {name}: `fairlead limit status` shows them.") from None
        await note(backend, "delete_limit", scope_of(tenant) + name, before, None)
    answer = {"name": name, "deleted": True}
    print_answer(options.output, answer, f"{scope_of(tenant)}{name} is deleted")


@app.command
async def release(
    name: Name,
    lease: Annotated[str, Parameter(help="The lease, as `limit status NAME` shows it.")],
    /,
    *,
    force: Annotated[
        bool, Parameter(help="Do it; without this option it only says what it would do.", negative=())
    ] = False,
    tenant: Tenant = None,
    options: Options = DEFAULTS,
) -> None:
    """Free a lease that is stuck. What it protects may still be running."""
    async with open_backend(options) as backend:
        try:
            if not force:
                raise Fenced
            await backend.limits.force_release(name, lease, tenant=tenant)
            subject = f"{name}/{lease}" if tenant is None else f"{name}/{lease} of {tenant}"
            await note(backend, "force_release", subject, {"held": True}, {"held": False})
        except Fenced:
            raise _why_not(await backend.limits.get(name, lease, tenant=tenant), lease) from None
    answer = {"name": name, "lease_id": lease, "released": True}
    print_answer(options.output, answer, f"{name}: lease {lease} is free")


def _why_not(limit: Limit, lease: str) -> FairleadError:
    slot = next((slot for slot in limit.slots if slot.lease_id == lease), None)
    if slot is None:
        return Fenced(
            f"Limit {limit.name} has no lease {lease}: `fairlead limit status {limit.name}` shows them."
        )
    if slot.is_task:
        return InvalidInput(
            "lease",
            f"{lease} is a task on worker {slot.holder}: end it with `fairlead task cancel {lease}`; "
            "if the worker is lost, the units come back by themselves when its lease ends",
        )
    return InvalidInput(
        "--force",
        f"this would free {slot.units} of {limit.name} that {slot.holder or 'somebody'} holds until "
        f"{time_text(slot.expires_at)}, while what it protects may still be running; to do it, add --force",
    )

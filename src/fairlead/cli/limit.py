"""`fairlead limit`: show limits and the holders of their units, set them, and free leases."""

from typing import Annotated

from cyclopts import App, Parameter
from msgspec import to_builtins

from fairlead.backend import Backend
from fairlead.cli.audit import note
from fairlead.cli.options import DEFAULTS, Options, open_backend, open_store
from fairlead.cli.output import print_answer, print_json, print_table
from fairlead.errors import FairleadError, Fenced, InvalidInput, UnknownLimit
from fairlead.model.limit import Limit
from fairlead.settings import LimitSettings, Rate, Slots
from fairlead.shapes.base import Json
from fairlead.shapes.limit import LimitAndSlots, LimitAnswer
from fairlead.times import time_text

app = App(name="limit", help="Show, set, pause and resume limits, and free leases.")

Name = Annotated[str, Parameter(help="Name of the limit.")]
Tenant = Annotated[str | None, Parameter(help="The tenant whose limits are meant; default: the operator's.")]


@app.command
async def status(
    name: Name | None = None,
    /,
    *,
    tenant: Tenant = None,
    options: Options = DEFAULTS,
) -> None:
    """Show all limits, or one with up to 100 of its holders."""
    async with open_backend(options) as backend:
        if name is not None:
            limits = [await backend.limits.get(name, tenant=tenant)]
        else:
            limits = await backend.limits.all(tenant=tenant)
    if options.output == "json":
        answers = [LimitAnswer.from_value(limit) for limit in limits]
        print_json({"limits": answers} if name is None else LimitAndSlots.from_value(limits[0]))
        return
    columns = ("limit", "kind", "of", "active", "waiting", "room", "rate", "state")
    print_table(columns, [_row(limit) for limit in limits])
    if name is not None and limits[0].slots:
        print()
        _print_slots(limits[0])


async def _before(backend: Backend, name: str, tenant: str | None) -> Json | None:
    """The limit as it is; none if the tenant means a shared one by this name."""
    try:
        known = await backend.limits.get(name, tenant=tenant)
    except UnknownLimit:
        return None
    return to_builtins(LimitAnswer.from_value(known)) if known.tenant == tenant else None


def _row(limit: Limit) -> tuple[object, ...]:
    state = "paused" if limit.paused or limit.limit == 0 else "held back" if limit.held_back else None
    counts = limit.limit, limit.active, limit.waiting, limit.room
    return limit.full_name, limit.kind, *counts, limit.rate, state


def _print_slots(limit: Limit) -> None:
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
    print_table(("lease", "of a", "worker", "units", "until"), rows)
    if limit.has_more_slots:
        print(f"... and more: these are {len(rows)} of its holders")


@app.command(name="set")
async def set_limit(
    name: Name,
    /,
    *,
    limit: Annotated[int | None, Parameter(help="Units that may be held at a time; 0 pauses.")] = None,
    rate: Annotated[str | None, Parameter(help="Starts per time, such as 60/min, 10/s or 1000/h.")] = None,
    burst: Annotated[
        int | None, Parameter(help="Of a rate: how many may start at once; default: its number.")
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
        await note(backend, "set_limit", now.full_name, before, to_builtins(LimitAnswer.from_value(now)))
    if isinstance(wanted, Slots):
        much = f"{wanted.limit} at a time" + ("; paused" if wanted.limit == 0 else "")
    else:
        much = f"{rate}, at most {wanted.burst} at once"
    sharing = "; shared with all tenants" if now.shared else ""
    print_answer(options.output, LimitAnswer.from_value(now), f"{now.full_name}: {much}{sharing}")


def wanted_limit(limit: int | None, rate: str | None, burst: int | None) -> LimitSettings:
    if (limit is None) == (rate is None):
        raise InvalidInput("--limit", "give --limit N for slots or --rate 60/min for a rate, one of them")
    if limit is not None:
        if burst is not None:
            raise InvalidInput("--burst", "belongs to a rate: leave it out, or give --rate")
        return Slots(limit=limit)
    return read_rate(rate or "", burst)


def read_rate(text: str, burst: int | None = None) -> Rate:
    """`100/s`, of which all may come at once unless `burst` is given."""
    try:
        return Rate.of(text, burst)
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
    async with open_store(options) as store:
        before = await _before(store, name, tenant)
        await store.limits.pause(name, paused, tenant=tenant)
        now = await store.limits.get(name, tenant=tenant)
        act = "pause_limit" if paused else "resume_limit"
        await note(store, act, now.full_name, before, to_builtins(LimitAnswer.from_value(now)))
    answer = LimitAnswer.from_value(now)
    print_answer(options.output, answer, f"{now.full_name} is {'paused' if paused else 'not paused'}")


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

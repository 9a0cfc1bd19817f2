"""`fairlead concurrency`: slots of groups in an object store; without --slots, the limits of Fairlead."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter

from fairlead.cli import limit as limits
from fairlead.cli.listing import LIST, ListOptions, View, show
from fairlead.cli.options import DEFAULTS, Options
from fairlead.cli.output import print_answer
from fairlead.cli.table import Table, make_table
from fairlead.errors import InvalidInput
from fairlead.slots import SlotStatus, SlotStore

app = App(name="concurrency", help="Show, set and free slots of groups, in an object store or of Fairlead.")

GROUPS = ("group", "limit", "active")
SLOTS = ("slot", "state", "worker", "task", "until", "fence")

Group = Annotated[str, Parameter(help="Name of the group; without --slots, of the limit.")]
Url = Annotated[
    str | None, Parameter(name="--slots", help="s3://bucket/prefix or file:///folder with the slots.")
]


@app.command
async def status(group: Group | None = None, /, *, slots: Url = None, options: ListOptions = LIST) -> None:
    """Show all groups, or one with its slots."""
    if slots is None:
        await limits.status(group, options=options)
        return
    store = SlotStore(slots)

    async def read() -> View:
        if group is not None:
            found = await store.status(group)
            return View(found, [_groups([found])] + ([_slots(found)] if found.slots else []))
        every = [await store.status(one) for one in await store.groups()]
        return View({"groups": every}, [_groups(every)])

    await show(options, read)


def _groups(groups: Sequence[SlotStatus]) -> Table:
    return make_table(GROUPS, [(one.group, one.limit, one.active) for one in groups])


def _slots(group: SlotStatus) -> Table:
    rows = [
        (one.slot_id, one.state, one.worker_id, one.task_id, one.expires_at, one.fence) for one in group.slots
    ]
    return make_table(SLOTS, rows, ("fence", "task"))


@app.command(name="set")
async def set_limit(
    group: Group,
    /,
    *,
    limit: Annotated[int, Parameter(help="Slots that may be held at a time; 0 pauses.")],
    slots: Url = None,
    options: Options = DEFAULTS,
) -> None:
    """Define or change how many slots a group has. Those that are held are kept until they are released."""
    if slots is None:
        await limits.set_limit(group, limit=limit, options=options)
        return
    await SlotStore(slots).set_limit(group, limit)
    print_answer(options.output, {"group": group, "limit": limit}, f"{group}: {limit} at a time")


@app.command
async def release(
    group: Group,
    slot: Annotated[str, Parameter(help="The slot, as `concurrency status GROUP` shows it.")],
    /,
    *,
    force: Annotated[
        bool, Parameter(help="Do it; without this option it only says what it would do.", negative=())
    ] = False,
    slots: Url = None,
    options: Options = DEFAULTS,
) -> None:
    """Free a slot that is stuck. What it protects may still be running."""
    if slots is None:
        await limits.release(group, slot, force=force, options=options)
        return
    store = SlotStore(slots)
    if not slot.isdecimal():
        raise InvalidInput("slot", f"is the number of a slot, not {slot!r}")
    if not force:
        raise InvalidInput("--force", await _what_it_would_do(store, group, int(slot)))
    await store.force_release(group, int(slot))
    answer = {"group": group, "slot_id": int(slot), "released": True}
    print_answer(options.output, answer, f"{group}: slot {slot} is free")


async def _what_it_would_do(store: SlotStore, group: str, slot_id: int) -> str:
    found = next((one for one in (await store.status(group)).slots if one.slot_id == slot_id), None)
    if found is None or found.state == "free":
        return f"nobody holds slot {slot_id} of {group}: `fairlead concurrency status {group}` shows them"
    until = f" until {found.expires_at}" if found.expires_at else ""
    return (
        f"this would free slot {slot_id} of {group} that {found.worker_id or 'somebody'} holds{until}, while "
        "what it protects may still be running; to do it, add --force"
    )

"""`fairlead limit`: limits, their holders, and freeing stuck leases."""

import json

import pytest

from fairlead.errors import LimitFull
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.commands import Shell


async def test_limits_are_set_and_take_effect_at_once(live_store: Store, shell: Shell) -> None:
    assert (await shell.run("limit", "set", "gpu", "--limit", "3")).out == "gpu: 3 at a time\n"
    assert (await shell.run("limit", "set", "api", "--rate", "90/min", "--burst", "7")).out == (
        "api: 90/min, at most 7 at once\n"
    )
    gpu, api = await live_store.limits.get("gpu"), await live_store.limits.get("api")
    assert (gpu.kind, gpu.limit) == ("slots", 3)
    assert (api.kind, api.limit, api.interval_us) == ("rate", 7, 666_666)


async def test_a_limit_is_paused_by_0_and_the_answer_may_be_json(live_store: Store, shell: Shell) -> None:
    answer = await shell.run("limit", "set", "gpu", "--limit", "0", "--output", "json")
    assert json.loads(answer.out)["limit"] == 0
    await live_store.workers.register("w")
    await live_store.submit(NewTask(task_type="draw", limits={"gpu": 1}))
    assert (await live_store.claim("w")).tasks == []


async def test_all_limits_are_shown_with_their_use(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=3))
    await live_store.limits.set("api", Rate(count=60, period_seconds=60, burst=5))
    await live_store.limits.acquire("gpu", units=2)
    rows = [line.split() for line in (await shell.run("limit", "status")).out.splitlines()[1:]]
    assert rows == [
        ["api", "rate", "5", "0", "0", "5", "1/s", "-"],
        ["gpu", "slots", "3", "2", "0", "1", "-", "-"],
    ]
    as_json = json.loads((await shell.run("limit", "status", "--output", "json")).out)["limits"]
    assert [(one["name"], one["kind"], one["active"], one["waiting"]) for one in as_json] == [
        ("api", "rate", 0, 0),
        ("gpu", "slots", 2, 0),
    ]


async def test_one_limit_is_shown_with_all_its_holders(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=3))
    await live_store.workers.register("w")
    task_id = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 2}))).task_id
    await live_store.claim("w")
    lease = await live_store.limits.acquire("gpu", holder="ann")
    shown = json.loads((await shell.run("limit", "status", "gpu", "--output", "json")).out)
    assert (shown["group"], shown["limit"], shown["active"]) == ("gpu", 3, 3)
    slots = {slot["slot_id"]: (slot["task_id"], slot["worker_id"], slot["units"]) for slot in shown["slots"]}
    assert slots == {task_id: (task_id, "w", 2), lease.lease_id: (None, "ann", 1)}
    table = (await shell.run("limit", "status", "gpu")).out
    assert f"{task_id}  task" in table
    assert f"{lease.lease_id}  lease  ann" in table


async def test_a_stuck_lease_is_freed_by_force_alone(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    lease = await live_store.limits.acquire("gpu", holder="ann")
    warned = await shell.run("limit", "release", "gpu", lease.lease_id)
    assert (warned.code, warned.out) == (2, "")
    assert "this would free 1 of gpu that ann holds until " in warned.err
    assert (await live_store.limits.get("gpu")).active == 1
    freed = await shell.run("limit", "release", "gpu", lease.lease_id, "--force")
    assert (freed.code, freed.out) == (0, f"gpu: lease {lease.lease_id} is free\n")
    assert (await live_store.limits.get("gpu")).active == 0
    again = await shell.run("limit", "release", "gpu", lease.lease_id, "--force")
    assert (again.code, again.out) == (1, "")
    assert f"Limit gpu has no lease {lease.lease_id}" in again.err


async def test_a_lease_is_found_among_more_than_are_shown(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=200))
    leases = [await live_store.limits.acquire("gpu", holder="ann") for _ in range(101)]
    shown = await shell.run("limit", "status", "gpu")
    assert shown.err == "There are more: these are 100 of its holders.\n"
    (hidden,) = [lease.lease_id for lease in leases if lease.lease_id not in shown.out]
    assert (
        "this would free 1 of gpu that ann holds" in (await shell.run("limit", "release", "gpu", hidden)).err
    )


async def test_the_units_of_a_task_are_not_freed_under_its_feet(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await live_store.workers.register("w")
    task_id = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))).task_id
    await live_store.claim("w")
    refused = await shell.run("limit", "release", "gpu", task_id, "--force")
    assert refused.code == 2
    assert f"fairlead task cancel {task_id}" in refused.err
    assert (await live_store.limits.get("gpu")).active == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("status", "gpu"), 1, "There is no such limit"),
        (("release", "gpu", "x", "--force"), 1, "There is no such limit"),
        (("set", "gpu"), 2, "give --limit N for slots or --rate 60/min for a rate"),
        (("set", "gpu", "--limit", "1", "--rate", "1/s"), 2, "one of them"),
        (("set", "gpu", "--limit", "-1"), 2, "is not a whole number from 0"),
        (("set", "gpu", "--limit", "1", "--burst", "2"), 2, "belongs to a rate"),
        (("set", "gpu", "--rate", "fast"), 2, 'expected a rate such as "60/min"'),
        (("set", "gpu", "--rate", "1/s", "--burst", "0"), 2, "burst"),
        (("set", "g p u", "--limit", "1"), 2, "name: use 1 to 200 of"),
    ],
)
async def test_a_command_that_fails_says_why_in_one_line(
    arguments: tuple[str, ...], code: int, says: str, shell: Shell
) -> None:
    answer = await shell.run("limit", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


async def test_a_paused_limit_gives_out_nothing_until_it_is_resumed(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("openai", Rate.of("60/min"))
    assert (await shell.run("limit", "pause", "openai")).out == "openai is paused\n"
    with pytest.raises(LimitFull):
        await live_store.limits.acquire("openai")
    resumed = await shell.run("limit", "resume", "openai", "--output", "json")
    assert not json.loads(resumed.out)["paused"]
    await live_store.limits.acquire("openai")
    last, first = (await live_store.audit.page()).entries
    assert (first.act, first.subject, first.before["paused"], first.after["paused"]) == (
        "pause_limit",
        "openai",
        False,
        True,
    )
    assert (last.act, last.after["paused"]) == ("resume_limit", False)
    assert (await shell.run("limit", "pause", "unknown")).code == 1


async def test_a_limit_that_nothing_needs_is_deleted(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    task_id = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))).task_id
    refused = await shell.run("limit", "delete", "gpu")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "fairlead: Limit gpu is in use: tasks or acquires wait for it (1); "
        "let them run or cancel them first.\n"
    )
    await live_store.cancel(task_id)
    assert (await shell.run("limit", "delete", "gpu")).out == "gpu is deleted\n"
    again = await shell.run("limit", "delete", "gpu")
    assert (again.code, again.err) == (
        1,
        "fairlead: There is no limit gpu: `fairlead limit status` shows them.\n",
    )
    (entry,) = (await live_store.audit.page()).entries
    assert (entry.act, entry.subject, entry.before["limit"], entry.after) == ("delete_limit", "gpu", 1, None)


async def test_a_resumed_limit_says_so_and_what_else_it_lacks(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    assert (await shell.run("limit", "pause", "gpu")).out == "gpu is paused\n"
    assert (await shell.run("limit", "resume", "gpu")).out == "gpu is resumed\n"
    await live_store.limits.set("gpu", Slots(limit=0))
    assert (await shell.run("limit", "resume", "gpu")).out == (
        "gpu is resumed; it has 0 units, so nothing starts until `limit set` gives it more\n"
    )

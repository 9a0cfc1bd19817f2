"""Many holders, limits, routes or dead letters: no act reads them all, and none is lost among the others."""

from typing import Any

import pytest

from fairlead.model.dead_letter import DeadFilter
from fairlead.model.reports import Completed, Failed
from fairlead.model.task import Task
from fairlead.settings import Admission, Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, key_names, new, raw, wipe

pytestmark = pytest.mark.long


@pytest.fixture
def settings() -> Settings:
    return Settings(
        admission=Admission(max_queued=1_000_000, max_queued_per_user=1_000_000, max_task_types=10_000)
    )


async def started(store: Store, count: int, **options: Any) -> list[Task]:
    """As many tasks, on one worker."""
    await store.workers.register("w", capacity=count)
    for start in range(0, count, 1000):
        await store.submit(*(new(**options) for _ in range(min(1000, count - start))))
    tasks: list[Task] = []
    while len(tasks) < count:
        tasks += (await store.claim("w", count)).tasks
    return tasks


async def calls(store: Store, *commands: str) -> int:
    """How often the server has run these commands."""
    stats: dict[str, dict[str, int]] = await raw(store).info("commandstats")
    return sum(stats.get(f"cmdstat_{command}", {}).get("calls", 0) for command in commands)


async def reads(store: Store) -> int:
    """How often the server has read a hash."""
    return await calls(store, "hget", "hmget", "hgetall")


# Holders of one limit


async def test_one_limit_is_shown_with_100_of_its_holders(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2_000))
    tasks = await started(store, 2_000, limits={"gpu": 1})
    before = await reads(store)
    limit = await store.limits.get("gpu")
    assert await reads(store) - before < 120
    assert (limit.limit, limit.active, limit.room) == (2_000, 2_000, 0)
    assert (len(limit.slots), limit.has_more_slots) == (100, True)
    ends = {task.task_id: task.lease_until for task in tasks}
    assert {(slot.holder, slot.units, slot.expires_at == ends[slot.lease_id]) for slot in limit.slots} == {
        ("w", 1, True)
    }
    one = await store.limits.get("gpu", tasks[-1].task_id)
    assert ([slot.lease_id for slot in one.slots], one.has_more_slots) == ([tasks[-1].task_id], False)


async def test_100_holders_of_a_limit_are_all_shown(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=200))
    leases = [await store.limits.acquire("gpu", holder="ann") for _ in range(100)]
    limit = await store.limits.get("gpu")
    assert [slot.lease_id for slot in limit.slots] == sorted(lease.lease_id for lease in leases)
    assert not limit.has_more_slots
    await store.limits.acquire("gpu")
    limit = await store.limits.get("gpu")
    assert (len(limit.slots), limit.has_more_slots) == (100, True)


async def test_one_lease_of_a_limit_is_shown_alone(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=9))
    await store.limits.acquire("gpu", lease_id="a", holder="ann", units=2)
    await store.limits.acquire("gpu", lease_id="b")
    (slot,) = (await store.limits.get("gpu", "a")).slots
    assert (slot.lease_id, slot.units, slot.is_task, slot.holder) == ("a", 2, False, "ann")
    none = await store.limits.get("gpu", "c")
    assert (none.active, none.slots) == (3, ())


# Leases whose records were deleted


async def run_to_the_end(store: Store, clock: Clock) -> int:
    """What the caretaker does when leases have run out; the number of acts."""
    clock.pass_seconds(60)
    await store.expire()
    acts = 1
    while (await store.run("promote"))["more"]:
        acts += 1
    return acts


async def is_whole(store: Store, clock: Clock, *lost: str) -> bool:
    """Nothing is wrong except that these tasks are lost: the doctor reports it while it has their events."""
    breaches = await examine(store.connection, now_ms=clock.now)
    assert [breach for breach in breaches if breach.about not in lost] == []
    assert {breach.about for breach in breaches} == set(lost)
    await wipe(store)
    return True


async def test_the_units_of_a_deleted_task_are_found_among_3000_limits(store: Store, clock: Clock) -> None:
    for n in range(3_000):
        await store.limits.set(f"limit{n:04}", Slots(limit=2))
    needed = {f"limit{n:04}": 2 for n in (0, 999, 1_000, 1_001, 2_999)}
    (lost,) = await started(store, 1, limits=needed)
    for n in range(300):
        await store.workers.register(f"w{n}")
    await raw(store).delete(store.connection.keys.key("task", lost.task_id))
    before = await reads(store)
    acts = await run_to_the_end(store, clock)
    assert 94 < acts < 130, "each looks at 32 of them"
    assert await reads(store) - before < 4_000
    for name in needed:
        assert (await store.limits.get(name)).active == 0
    assert await raw(store).exists(store.connection.keys.key("running", "w")) == 0
    assert await is_whole(store, clock, lost.task_id)


async def test_claims_continue_a_search_and_start_what_waits_for_the_units(
    store: Store, clock: Clock
) -> None:
    for n in range(150):
        await store.limits.set(f"limit{n:03}", Slots(limit=1))
    (lost,) = await started(store, 1, limits={"limit149": 1})
    await raw(store).delete(store.connection.keys.key("task", lost.task_id))
    waiting = new(limits={"limit149": 1})
    await store.submit(waiting)
    clock.pass_seconds(60)
    await store.workers.register("other")
    found: list[str] = []
    for _ in range(6):
        found += [task.task_id for task in (await store.claim("other")).tasks]
    assert found == [waiting.task_id]
    assert await is_whole(store, clock, lost.task_id)


async def test_orphans_that_come_while_others_are_searched_for_are_found_too(
    store: Store, clock: Clock
) -> None:
    for n in range(600):
        await store.limits.set(f"limit{n:03}", Slots(limit=100))
    early = [await store.limits.acquire(f"limit{n:03}", lease_ms=10_000) for n in range(530, 600)]
    late = await store.limits.acquire("limit000", lease_ms=60_000)
    for lease in (*early, late):
        await raw(store).delete(store.connection.keys.key("lease", lease.lease_id))
    clock.pass_seconds(30)
    assert await store.expire() == 70
    assert (await store.run("promote"))["more"]  # limit000 has been looked at
    clock.pass_seconds(60)
    assert await store.expire() == 1
    await store.promote()
    assert {limit.active for limit in await store.limits.all()} == {0}


async def test_a_reused_id_keeps_its_own_units(store: Store, clock: Clock) -> None:
    for n in range(300):
        await store.limits.set(f"limit{n:03}", Slots(limit=1))
    await store.limits.acquire("limit299", lease_id="again", lease_ms=10_000)
    await raw(store).delete(store.connection.keys.key("lease", "again"))
    clock.pass_seconds(30)
    assert await store.expire() == 1
    assert (await store.run("promote"))["more"]
    await store.limits.acquire("limit298", lease_id="again", lease_ms=600_000)
    await store.promote()
    assert [(await store.limits.get(name)).active for name in ("limit298", "limit299")] == [1, 0]
    await store.limits.release_known("limit298", "again")


async def test_a_task_that_was_submitted_again_keeps_its_own_units(store: Store, clock: Clock) -> None:
    for n in range(300):
        await store.limits.set(f"limit{n:03}", Slots(limit=1))
    (lost,) = await started(store, 1, limits={"limit299": 1})
    await raw(store).delete(store.connection.keys.key("task", lost.task_id))
    clock.pass_seconds(60)
    assert await store.expire() == 1
    await store.submit(new(task_id=lost.task_id, limits={"limit298": 1}))
    await store.workers.register("other")
    assert (await claim_one(store, "other")).task_id == lost.task_id
    await store.promote()
    assert [(await store.limits.get(name)).active for name in ("limit298", "limit299")] == [1, 0]
    assert await is_whole(store, clock, lost.task_id)


# Routes and their audiences


async def past_routes(store: Store, count: int) -> None:
    """Tasks of as many types came, and went."""
    for start in range(0, count, 500):
        tasks = [new(f"past{n}") for n in range(start, min(start + 500, count))]
        await store.submit(*tasks)
        for task in tasks:
            await store.cancel(task.task_id)


async def tidy(store: Store, key: str, field: str) -> None:
    """Repeats the act until this field is gone."""
    for _ in range(100):
        if not await raw(store).hexists(store.connection.keys.key(key), field):
            return
        await store.upkeep.bury()
    pytest.fail(f"{field} stays in {key}")


async def test_2500_routes_of_the_past_are_forgotten_some_at_a_time(store: Store, clock: Clock) -> None:
    await store.workers.register("w", task_types=["present", "gone"])
    await store.submit(new("present"), new("gone"), new("unserved"))
    await store.workers.register("other", task_types=["gone"])
    gone = await claim_one(store, "other")
    await store.complete("other", Completed(gone.task_id, gone.fence))
    await past_routes(store, 2_500)
    clock.pass_seconds(700)
    before = await calls(store, "exists")
    await store.upkeep.bury()
    assert 0 < await calls(store, "exists") - before < 400
    assert await raw(store).hlen(store.connection.keys.key("routes")) > 2_000
    await tidy(store, "meta", "tidying")
    routes = await raw(store).hgetall(store.connection.keys.key("routes"))
    assert set(routes) == {b"present;", b"unserved;"}
    assert set(await raw(store).hkeys(store.connection.keys.key("audiences"))) == set(routes.values())
    assert "used" not in await key_names(store)
    await store.workers.register("w", task_types=["present", "gone"])
    assert (await claim_one(store)).task_type == "present"


async def test_an_audience_that_is_used_again_while_others_are_tidied_stays(
    store: Store, clock: Clock
) -> None:
    types = [f"again{n}" for n in range(40)]  # some of them are looked at long before the last route
    await store.workers.register("w", task_types=types, capacity=40)
    await store.submit(*map(new, types))
    tasks = (await store.claim("w", 40)).tasks
    await store.complete("w", *[Completed(task.task_id, task.fence) for task in tasks])
    await past_routes(store, 2_500)
    clock.pass_seconds(700)
    await store.workers.register("w", task_types=types, capacity=40)
    known = {name.encode() + b";" for name in types}
    while known <= (routes := set(await raw(store).hkeys(store.connection.keys.key("routes")))):
        await store.upkeep.bury()
    assert await raw(store).hexists(store.connection.keys.key("meta"), "tidying"), "it continues"
    gone = min(known - routes).decode().removesuffix(";")
    await store.submit(new(gone))
    await tidy(store, "meta", "tidying")
    assert (await claim_one(store)).task_type == gone


# Dead letters of one tenant


async def fail(store: Store, tenant: str) -> str:
    await store.submit(new(tenant=tenant))
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    return task.task_id


async def test_dead_letters_of_a_tenant_are_listed_apart(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    failed = [(await fail(store, tenant), tenant) for tenant in ("a", "b:c", "a", "ä b", "a")]
    for tenant in ("a", "b:c", "ä b", "none"):
        page = await store.dead_letters.page(wanted=DeadFilter(tenant=tenant))
        assert [task.task_id for task in page.tasks] == [
            task_id for task_id, of in reversed(failed) if of == tenant
        ]
    assert len((await store.dead_letters.page()).tasks) == 5
    first = await store.dead_letters.page(1, wanted=DeadFilter(tenant="a"))
    rest = await store.dead_letters.page(9, first.next_cursor, DeadFilter(tenant="a"))
    assert (len(first.tasks), len(rest.tasks), rest.next_cursor) == (1, 2, "")


async def test_a_replayed_or_purged_task_leaves_the_list_of_its_tenant(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    replayed, purged = await fail(store, "a"), await fail(store, "b")
    await store.replay(replayed)
    await store.purge(purged)
    assert {"dead", "deadof:a", "deadof:b"}.isdisjoint(await key_names(store))


async def test_the_list_of_a_tenant_runs_out_with_the_last_in_it(store: Store, clock: Clock) -> None:
    retention = store.settings.retention.dead_seconds
    await store.workers.register("w", capacity=9)
    lost = await fail(store, "a")
    key = store.connection.keys.key("deadof", "a")
    assert retention - 60 < await raw(store).ttl(key) <= retention
    await raw(store).delete(store.connection.keys.key("task", lost))  # as it would run out
    clock.pass_seconds(retention + 1)
    await store.upkeep.forget()
    await store.workers.register("w", capacity=9)
    latest = await fail(store, "a")
    assert await raw(store).zrange(key, 0, -1) == [latest.encode()]

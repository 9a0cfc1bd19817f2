"""Many holders, limits, routes or dead letters: no act reads them all, and none is lost among the others."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.settings import Admission, Settings, Slots
from fairlead.store.store import Store
from fairlead.task import Task
from tests.servers import Server
from tests.store.looking import new, raw


@pytest.fixture
def server(start_server: Callable[[str], Server]) -> Server:
    return start_server("valkey")


@pytest.fixture
def settings() -> Settings:
    return Settings(admission=Admission(max_queued=1_000_000, max_queued_per_user=1_000_000))


async def started(store: Store, count: int, **wishes: Any) -> list[Task]:
    """As many tasks, on one worker."""
    await store.workers.register("w", capacity=count)
    for start in range(0, count, 1000):
        await store.submit(*(new(**wishes) for _ in range(min(1000, count - start))))
    tasks: list[Task] = []
    while len(tasks) < count:
        tasks += (await store.claim("w", count)).tasks
    return tasks


async def reads(store: Store) -> int:
    """Fields and records of hashes that the server has read so far, by the calls and not by their size."""
    stats: dict[str, dict[str, int]] = await raw(store).info("commandstats")
    return sum(
        stats.get(f"cmdstat_{command}", {}).get("calls", 0) for command in ("hget", "hmget", "hgetall")
    )


# Holders of one limit


async def test_one_limit_is_shown_with_100_of_its_holders(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=10_000))
    tasks = await started(store, 10_000, limits={"gpu": 1})
    before = await reads(store)
    limit = await store.limits.get("gpu")
    assert await reads(store) - before < 120
    assert (limit.limit, limit.active, limit.room) == (10_000, 10_000, 0)
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

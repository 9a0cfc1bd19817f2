"""The numbers of one tenant: its own tasks, in every state, and none of others."""

import random
from collections import Counter
from typing import Any

from fairlead.model.reports import Completed, Failed
from fairlead.model.task import NewTask
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import raw


async def submit(store: Store, tenant: str | None, **options: Any) -> str:
    return (await store.submit_one(NewTask(task_type="echo", tenant=tenant, **options))).task_id


async def test_the_stats_of_a_tenant_count_its_own_tasks(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=4)
    for tenant in ("acme", "other", None, "acme"):
        await submit(store, tenant, priority="high")
    running = (await store.claim("w", 4)).tasks
    await store.complete("w", *(Completed(one.task_id, one.fence) for one in running[:2]))
    await submit(store, "acme", priority="low")
    clock.now += 5_000
    await submit(store, "acme", priority="low")
    await submit(store, "other", priority="low")
    await submit(store, "acme", delay_seconds=60)

    seen = await store.stats("acme")
    assert {word: queue.depth for word, queue in seen.queues.items()} == {"high": 0, "medium": 0, "low": 2}
    assert seen.queues["low"].oldest_age_seconds == 5.0
    assert (seen.delayed, seen.held, seen.used_capacity, seen.workers) == (1, 1, 1, [])
    assert seen.ended_last_minute == Counter(completed=1)
    other = await store.stats("other")
    assert (other.queues["low"].depth, other.held, other.ended_last_minute) == (1, 0, Counter(completed=1))
    nobody = await store.stats("nobody")
    assert (nobody.delayed, nobody.held, nobody.ended_last_minute) == (0, 0, Counter())
    everybody = await store.stats()
    assert (everybody.queues["low"].depth, everybody.used_capacity, everybody.held) == (3, 2, None)


async def test_the_lists_of_a_tenant_follow_its_tasks_through_everything(store: Store, clock: Clock) -> None:
    """In every state of a task; the doctor compares the lists with the records."""
    chance = random.Random(7)
    await store.workers.register("w", capacity=6)
    known: list[str] = []
    for _ in range(120):
        clock.now += chance.randrange(3_000)
        match chance.randrange(7):
            case 0 | 1:
                delay = {"delay_seconds": chance.choice([0, 5])}
                known.append(await submit(store, chance.choice(["a", "b"]), max_retries=1, **delay))
            case 2 | 3:
                await store.claim("w", 2)
            case 4 if known:
                task = await store.get(chance.choice(known))
                report = Failed(task.task_id, task.fence, retriable=chance.random() < 0.5)
                await store.fail("w", report)
            case 5 if known:
                task = await store.get(chance.choice(known))
                if task.status in ("queued", "delayed", "executing"):
                    await store.cancel(task.task_id)
            case 6:
                await store.workers.register("w", capacity=6)
                for dead in (await store.dead_letters.page(1)).tasks:
                    await store.replay(dead.task_id)
        assert await examine(store.connection, clock.now) == []
    for tenant in ("a", "b"):
        tasks = [task for task in map(await everything(store), known) if task.tenant == tenant]
        seen = await store.stats(tenant)
        queued = sum(queue.depth for queue in seen.queues.values())
        states = Counter(task.status for task in tasks)
        assert (queued, seen.delayed) == (states["queued"], states["delayed"])


async def everything(store: Store) -> Any:
    found = {task.task_id: task for task in (await store.list_tasks(limit=1000)).tasks}
    return found.__getitem__


async def make_schema_3(store: Store) -> None:
    """As the version before wrote it: without the lists of tenants."""
    lists = [key async for key in raw(store).scan_iter(match=store.connection.keys.key("presence", "*"))]
    assert lists
    await raw(store).delete(*lists)
    await raw(store).hset(store.connection.keys.meta, "schema", 3)


async def a_little_of_everything(store: Store) -> list[str]:
    await store.workers.register("w", capacity=2)
    made = [await submit(store, "acme", priority="high") for _ in range(3)]
    stopping, _ = (await store.claim("w", 2)).tasks
    await store.cancel(stopping.task_id)  # its worker has not confirmed it
    made += [await submit(store, "acme", delay_seconds=60), await submit(store, None)]
    return made


async def test_a_namespace_of_schema_3_is_opened_with_all_that_is_in_it(store: Store, clock: Clock) -> None:
    made = await a_little_of_everything(store)
    before = [await store.get(task) for task in made], await store.stats("acme"), await store.stats()
    await make_schema_3(store)
    assert await examine(store.connection, clock.now), "the doctor misses the lists"
    await store.open()
    assert await raw(store).hget(store.connection.keys.meta, "schema") == str(SCHEMA).encode()
    assert (
        [await store.get(task) for task in made],
        await store.stats("acme"),
        await store.stats(),
    ) == before
    assert await examine(store.connection, clock.now) == []


async def test_a_migration_that_was_interrupted_is_continued(store: Store, clock: Clock) -> None:
    await a_little_of_everything(store)
    before = await store.stats("acme"), await store.stats()
    await make_schema_3(store)
    await store.connection.run("migrate", "begin", b"\xc0", store.clock())
    await store.open(govern=False)
    assert (await store.stats("acme"), await store.stats()) == before
    assert await examine(store.connection, clock.now) == []

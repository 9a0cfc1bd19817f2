"""The lists of all tasks and jobs: newest first, each of them once, and nothing is left over for long."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.settings import Retention, Settings
from fairlead.store.connection import Connection, pack
from fairlead.store.doctor.doctor import examine
from fairlead.store.multiplexer import Command
from fairlead.store.store import Store
from fairlead.upkeep.duties import BATCH, DUTIES
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, job
from tests.store.namespace import claim_one, new, raw

AT_ONCE = 128  # entries that one act of the sweep looks at


async def listed(store: Store, **options: Any) -> list[str]:
    """The ids on all pages."""
    ids, cursor = list[str](), ""
    while True:
        page = await store.list_tasks(cursor=cursor, **options)
        ids += [task.task_id for task in page.tasks]
        if not (cursor := page.next_cursor):
            return ids


async def listed_jobs(store: Store, **options: Any) -> list[str]:
    ids, cursor = list[str](), ""
    while True:
        page = await store.jobs.page(cursor=cursor, **options)
        ids += [job.job_id for job in page.jobs]
        if not (cursor := page.next_cursor):
            return ids


async def submitted(store: Store, count: int, **options: Any) -> list[str]:
    """The ids of new tasks, oldest first."""
    tasks = [new(**options) for _ in range(count)]
    for first in range(0, count, 1000):
        await store.submit(*tasks[first : first + 1000])
    return [task.task_id for task in tasks]


async def expired(store: Store, kind: str, ids: Sequence[str]) -> None:
    """Their records are gone, as after their retention."""
    for first in range(0, len(ids), 500):
        await raw(store).unlink(*[store.connection.keys.key(kind, of) for of in ids[first : first + 500]])


async def entries(store: Store, name: str = "tasks") -> int:
    return int(await raw(store).xlen(store.connection.keys.key(name)))


# The order


@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
async def test_tasks_are_listed_newest_first(store: Store, limit: int) -> None:
    ids = await submitted(store, 20)
    ids += [(await store.submit_one(new(delay_seconds=9, priority="low"))).task_id for _ in range(3)]
    assert await listed(store, limit=limit) == ids[::-1]


async def test_the_order_is_that_of_the_submits_whatever_the_ids_and_the_clock(
    store: Store, clock: Clock
) -> None:
    ids = [f"{n:08x}-0000-7000-8000-000000000000" for n in (5, 1, 9, 3)]
    for task_id in ids:
        await store.submit_one(new(task_id=task_id))
        clock.pass_seconds(-1)
    assert await listed(store, limit=2) == ids[::-1]


@pytest.mark.long
async def test_a_page_of_thousands_of_finished_tasks_takes_a_few_commands(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.workers.register("w", capacity=2_500)
    ids = await submitted(store, 2_500)
    finished = 0
    while tasks := (await store.claim("w", 128)).tasks:
        finished += len(await store.complete("w", *(Completed(task.task_id, task.fence) for task in tasks)))
    assert finished == 2_500
    sent: list[Command] = []
    read = Connection.read

    async def counted(self: Connection, *commands: Command, **options: Any) -> list[Any]:
        sent.extend(commands)
        return await read(self, *commands, **options)

    monkeypatch.setattr(Connection, "read", counted)
    page = await store.list_tasks(limit=50)
    assert [task.task_id for task in page.tasks] == ids[:-51:-1]
    assert len(sent) <= 2 * 50 + 2
    assert {command[0] for command in sent} == {"XREVRANGE", "HMGET", "HGETALL"}
    sent.clear()
    middle = await store.list_tasks(limit=50, cursor=page.next_cursor, status="completed")
    assert [task.task_id for task in middle.tasks] == ids[-51:-101:-1]
    assert len(sent) <= 2 * 50 + 2
    assert await listed(store, limit=1000) == ids[::-1]


async def test_tasks_that_come_and_go_between_pages_neither_repeat_nor_hide_others(store: Store) -> None:
    there = await submitted(store, 300)
    gone = set(there[::3])
    for task_id in gone:
        await store.cancel(task_id)
    seen, cursor, stopped = list[str](), "", asyncio.Event()

    async def traffic() -> None:
        for task_id in there[::3]:
            await submitted(store, 2)
            await expired(store, "task", [task_id])
            await store.upkeep.sweep()
            if stopped.is_set():
                return

    coming = asyncio.create_task(traffic())
    while True:
        page = await store.list_tasks(limit=7, cursor=cursor)
        seen += [task.task_id for task in page.tasks]
        if not (cursor := page.next_cursor):
            break
    stopped.set()
    await coming
    old = [task_id for task_id in seen if task_id in set(there)]
    assert [task_id for task_id in old if task_id not in gone] == [
        task_id for task_id in reversed(there) if task_id not in gone
    ]
    assert len(seen) == len(set(seen))


async def test_a_task_keeps_its_place_when_it_is_replayed(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    ids = await submitted(store, 3)
    for _ in ids:
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.replay(ids[0])
    assert await listed(store) == ids[::-1]


# What is left over


async def test_a_task_whose_record_has_expired_is_not_listed_and_its_entry_is_swept(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    ids = await submitted(store, 3)
    for _ in ids:
        task = await claim_one(store)
        await store.complete("w", Completed(task.task_id, task.fence))
    await expired(store, "task", ids[1:2])
    assert await listed(store, limit=1) == [ids[2], ids[0]]
    assert await entries(store) == 3
    assert await store.upkeep.sweep() == (1, False)
    assert await entries(store) == 2
    assert await listed(store) == [ids[2], ids[0]]
    assert await store.upkeep.sweep() == (0, False)


async def cancelled(store: Store, count: int) -> list[str]:
    ids = await submitted(store, count)
    for task_id in ids:
        await store.cancel(task_id)
    return ids


async def test_a_task_that_waits_for_long_keeps_no_others_in_the_list(store: Store) -> None:
    (first,) = await submitted(store, 1)
    passing = await cancelled(store, 3 * AT_ONCE)
    (last,) = await submitted(store, 1)
    await expired(store, "task", passing)
    rounds = [await store.upkeep.sweep() for _ in range(4)]
    assert [more for _, more in rounds] == [True, True, True, False]
    assert sum(removed for removed, _ in rounds) == 3 * AT_ONCE
    assert (await entries(store), await listed(store)) == (2, [last, first])


async def test_the_sweep_begins_again_at_the_oldest_entry(store: Store) -> None:
    ids = await cancelled(store, AT_ONCE + 5)
    assert await store.upkeep.sweep() == (0, True)
    await expired(store, "task", ids[:2] + ids[-2:])
    assert await store.upkeep.sweep() == (2, False)
    assert await store.upkeep.sweep() == (2, True)


async def test_a_round_of_upkeep_sweeps_a_bounded_part_of_the_lists(store: Store) -> None:
    ids = await cancelled(store, AT_ONCE + 7)
    jobs = [(await store.jobs.submit(job())).job_id for _ in range(3)]
    for job_id in jobs:
        await store.jobs.cancel(job_id)
    await expired(store, "job", jobs[:1])
    await expired(store, "task", ids)
    assert await DUTIES["lists"](store) == AT_ONCE + 1 >= BATCH  # so the next round follows at once
    assert await entries(store, "jobs") == 2
    assert await DUTIES["lists"](store) == 7
    assert await DUTIES["lists"](store) == 0


async def test_an_id_that_is_used_again_is_listed_once_as_the_newest(store: Store) -> None:
    first, second = await cancelled(store, 2)
    await expired(store, "task", [first])
    await store.submit_one(new(task_id=first))
    assert await listed(store) == [first, second]
    assert await store.upkeep.sweep() == (1, False)
    assert await listed(store) == [first, second]


async def test_a_purged_task_leaves_no_entry(store: Store) -> None:
    await store.workers.register("w")
    (task_id,) = await submitted(store, 1)
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.purge(task_id)
    assert await entries(store) == 0
    await store.submit_one(new(task_id=task_id))
    assert await listed(store) == [task_id]


class TestBounds:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(retention=Retention(max_finished=3, max_dead=2))

    async def test_what_is_forgotten_early_leaves_no_entry(self, store: Store) -> None:
        await store.workers.register("w", capacity=100)
        ids = await submitted(store, 10)
        for n in range(10):
            task = await claim_one(store)
            if n % 2:
                await store.complete("w", Completed(task.task_id, task.fence))
            else:
                await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
        assert await listed(store) == [ids[n] for n in (9, 8, 7, 6, 5)]
        assert await entries(store) == 5
        jobs = [(await store.jobs.submit(job())).job_id for _ in range(5)]
        for job_id in jobs:
            await store.jobs.cancel(job_id)
        await store.upkeep.forget()
        assert await entries(store, "jobs") == len(await listed_jobs(store)) <= 3


# Jobs


async def test_jobs_are_listed_newest_first_and_are_the_jobs_themselves(store: Store) -> None:
    ids = [(await store.jobs.submit(job(user_id=f"u{n}"))).job_id for n in range(5)]
    assert await listed_jobs(store, limit=2) == ids[::-1]
    assert (await store.jobs.page(limit=1)).jobs == [await store.jobs.get(ids[-1])]


async def test_only_jobs_that_match_are_listed(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    wanted: list[dict[str, Any]] = [
        {"user_id": "ann"},
        {"user_id": "bob", "tenant": "acme"},
        {"user_id": "ann", "tenant": "acme"},
    ]
    ann, bob, ann_of_acme = [(await store.jobs.submit(job(**options))).job_id for options in wanted]
    poem = (await store.jobs.submit(replace(job(ENHANCE), feature_name="poem"))).job_id
    await store.jobs.cancel(bob)
    assert await listed_jobs(store, user_id="ann") == [ann_of_acme, ann]
    assert await listed_jobs(store, tenant="acme") == [ann_of_acme, bob]
    assert await listed_jobs(store, status="CANCELLED") == [bob]
    assert await listed_jobs(store, status=JobStatus.PENDING, feature_name="story") == [ann_of_acme, ann]
    assert await listed_jobs(store, feature_name="poem") == [poem]
    assert await listed_jobs(store, tenant="acme", status="RUNNING") == []
    for bad in ({"status": "open"}, {"feature_name": "a b"}, {"user_id": ""}, {"limit": 0}, {"cursor": "x"}):
        with pytest.raises(errors.InvalidInput) as refused:
            await store.jobs.page(**bad)
        assert refused.value.field == next(iter(bad))


async def test_a_page_of_large_jobs_ends_early(store: Store) -> None:
    large = {"x": "y" * 150 * 1024}
    ids = [(await store.jobs.submit(job(CHAT, input_data=large))).job_id for _ in range(5)]
    pages = [await store.jobs.page(limit=5)]
    while pages[-1].next_cursor:
        pages.append(await store.jobs.page(limit=5, cursor=pages[-1].next_cursor))
    assert [len(page.jobs) for page in pages] == [2, 2, 1]
    assert [one.job_id for page in pages for one in page.jobs] == ids[::-1]


async def test_a_job_whose_record_has_expired_is_not_listed_and_its_entry_is_swept(store: Store) -> None:
    ids = [(await store.jobs.submit(job())).job_id for _ in range(3)]
    for job_id in ids:
        await store.jobs.cancel(job_id)
    await expired(store, "job", ids[1:2])
    assert await listed_jobs(store) == [ids[2], ids[0]]
    assert await store.upkeep.sweep() == (1, False)
    assert await entries(store, "jobs") == 2
    assert (await store.list_tasks(status=State.CANCELLED)).tasks


# Namespaces that were written before there were lists


async def without_lists(store: Store) -> None:
    """Makes the namespace what a version with schema 4 left."""
    client, key = raw(store), store.connection.keys.key
    for task in await listed(store, limit=1000):
        facts = msgspec.msgpack.decode(await client.hget(key("task", task), "facts"))
        del facts["made"]
        await client.hset(key("task", task), "facts", msgspec.msgpack.encode(facts))
    for job_id in await listed_jobs(store, limit=1000):
        await client.hdel(key("job", job_id), "made", "step:0", "step:1")
    await client.unlink(key("tasks"), key("jobs"))
    await client.hdel(key("meta"), "made")
    await client.hset(key("meta"), "schema", 4)


async def scattered(store: Store, clock: Clock) -> tuple[list[str], list[str]]:
    """Tasks and jobs of different times, whose ids do not say when they were made; newest first."""
    tasks = [f"{n * 7 % 250:08x}-0000-7000-8000-000000000000" for n in range(250)]
    jobs = [f"{n * 7 % 9:08x}-0000-7000-8000-000000000001" for n in range(9)]
    for n, task_id in enumerate(tasks):
        await store.submit_one(new(task_id=task_id))
        clock.pass_ms(1)
        if n < len(jobs):
            await store.jobs.submit(job(job_id=jobs[n]))
    await without_lists(store)
    return tasks[::-1], jobs[::-1]


@pytest.mark.every_server
async def test_what_an_older_version_accepted_is_listed_by_its_creation(store: Store, clock: Clock) -> None:
    tasks, jobs = await scattered(store, clock)
    await store.open()
    steps = {step.task_id for job_id in jobs for step in (await store.jobs.get(job_id)).steps}
    assert [task_id for task_id in await listed(store) if task_id not in steps] == tasks
    assert await listed_jobs(store) == jobs
    newest = await store.submit_one(new())
    assert (await listed(store))[0] == newest.task_id


async def test_until_an_older_namespace_is_opened_a_list_says_what_to_do(store: Store, clock: Clock) -> None:
    tasks, _ = await scattered(store, clock)
    for page in (store.list_tasks, store.jobs.page):
        with pytest.raises(errors.SchemaTooOld, match="start a server of this version"):
            await page()
    assert await examine(store.connection, clock.now) == []
    assert (await store.get(tasks[0])).task_id == tasks[0]
    await store.open()


async def test_a_migration_that_was_interrupted_lists_everything_once(store: Store, clock: Clock) -> None:
    tasks, jobs = await scattered(store, clock)
    run = store.connection.run
    await run("migrate", "begin", pack({"drop": [], "jobs_open": 0, "policy": {}}), clock())
    oldest = {"tasks": tasks[:-101:-1], "jobs": jobs[:-4:-1]}
    await run("migrate", "lists", pack(oldest), clock())
    await store.open()
    assert len(await listed(store)) == len(tasks) + len(jobs) == await entries(store)
    assert await listed_jobs(store) == jobs

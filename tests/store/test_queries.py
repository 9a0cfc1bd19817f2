"""Pages of tasks: all of them once, those that fit alone, and never too much work for one page."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.model.worker import WorkerStats
from fairlead.store import pages
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new


async def all_pages(store: Store, **options: Any) -> list[list[Task]]:
    pages, cursor = [], ""
    while True:
        page = await store.list_tasks(cursor=cursor, **options)
        pages.append(page.tasks)
        if not (cursor := page.next_cursor):
            return pages


async def ids(store: Store, **options: Any) -> list[str]:
    return sorted(task.task_id for page in await all_pages(store, **options) for task in page)


@pytest.mark.parametrize("limit", [1, 7, 50, 1000])
async def test_the_pages_hold_every_task_once_and_never_more_than_requested(store: Store, limit: int) -> None:
    tasks = [new(parameters={"n": n}) for n in range(60)]
    await store.submit(*tasks)
    pages = await all_pages(store, limit=limit)
    assert max(map(len, pages)) <= limit
    listed = {task.task_id: task.parameters for page in pages for task in page}
    assert listed == {task.task_id: task.parameters for task in tasks}
    assert sum(map(len, pages)) == 60


async def test_a_listed_task_is_the_task_itself(store: Store) -> None:
    submitted = await store.submit_one(new(user_id="ann", parameters={"a": [1]}))
    (page,) = [page for page in await all_pages(store) if page]
    assert page == [await store.get(submitted.task_id)]


async def test_only_what_fits_is_listed(store: Store, clock: Clock) -> None:
    await store.workers.register("w", task_types=["draw"])
    specs: list[tuple[str, dict[str, Any]]] = [
        ("draw", {"priority": "high", "user_id": "ann"}),
        ("draw", {"priority": "low", "user_id": "bob"}),
        ("echo", {"priority": "high"}),
        ("echo", {"delay_seconds": 9, "user_id": "ann"}),
    ]
    tasks = [new(kind, **facts) for kind, facts in specs]
    await store.submit(*tasks)
    drawn = await claim_one(store)
    await store.complete("w", Completed(drawn.task_id, drawn.fence))
    names = dict(zip((task.task_id for task in tasks), "abcd", strict=True))

    async def found(**options: Any) -> str:
        return "".join(sorted(names[task_id] for task_id in await ids(store, **options)))

    assert await found() == "abcd"
    assert await found(status="queued") == "bc"
    assert await found(status=State.COMPLETED) == "a"
    assert await found(status="dead_letter") == ""
    assert await found(priority="high") == "ac"
    assert await found(task_type="echo") == "cd"
    assert await found(user_id="ann") == "ad"
    assert await found(user_id="ann", status="delayed", task_type="echo", priority="medium") == "d"
    assert await found(user_id="ann", priority="low") == ""


async def test_tenants_are_kept_apart(store: Store) -> None:
    wanted = {tenant: new(tenant=tenant, user_id="ann") for tenant in ("acme", "acme2", None)}
    await store.submit(*wanted.values())
    assert await ids(store, tenant="acme") == [wanted["acme"].task_id]
    assert await ids(store, tenant="acme", user_id="ann") == [wanted["acme"].task_id]
    assert await ids(store, tenant="none") == []
    assert len(await ids(store, user_id="ann")) == 3


async def test_the_base_priority_counts_and_not_the_one_by_age(store: Store, clock: Clock) -> None:
    low = await store.submit_one(new(priority="low"))
    clock.pass_seconds(600)
    await store.promote()
    assert await ids(store, priority="low") == [low.task_id]
    assert await ids(store, priority="medium") == []


async def test_other_namespaces_are_not_listed(store: Store, open_store: Callable[..., Store]) -> None:
    other = open_store(namespace=store.connection.keys.namespace + "x")
    await other.open()
    await other.submit_one(new())
    mine = await store.submit_one(new())
    assert await ids(store) == [mine.task_id]


async def test_a_page_is_returned_after_bounded_work_even_when_it_is_empty(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROUNDS", 1)
    monkeypatch.setattr(pages, "ENTRIES_PER_ROUND", 10)
    needle = await store.submit_one(new("needle"))
    await store.submit(*[new() for _ in range(200)])
    read = await all_pages(store, task_type="needle")
    assert len(read) > 3
    assert [task.task_id for page in read for task in page] == [needle.task_id]


async def test_looking_changes_nothing(store: Store) -> None:
    await store.submit(new(), new(delay_seconds=5))
    before = await everything(store)
    await all_pages(store, limit=1)
    assert await everything(store) == before


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no state": ({"status": "waiting"}, "status"),
    "no priority": ({"priority": "urgent"}, "priority"),
    "no type": ({"task_type": "a b"}, "task_type"),
    "no user": ({"user_id": ""}, "user_id"),
    "no tenant": ({"tenant": "a\nb"}, "tenant"),
    "nothing": ({"limit": 0}, "limit"),
    "too much": ({"limit": 1_001}, "limit"),
    "half a task": ({"limit": 1.5}, "limit"),
    "a cursor of nobody": ({"cursor": "next"}, "cursor"),
    "a cursor beyond all": ({"cursor": "9" * 20}, "cursor"),
    "a cursor before all": ({"cursor": "0"}, "cursor"),
    "a cursor with more": ({"cursor": "0.abc"}, "cursor"),
}


async def test_a_bad_filter_is_refused_with_the_name_of_its_field(
    store: Store, subtests: pytest.Subtests
) -> None:
    for case in BAD:
        with subtests.test(case=case):
            options, field = BAD[case]
            with pytest.raises(errors.InvalidInput) as refused:
                await store.list_tasks(**options)
            assert refused.value.field == field


async def test_workers_are_listed_with_what_they_offer(store: Store, clock: Clock) -> None:
    await store.workers.register(
        "w",
        name="host-1",
        version="1.2",
        capacity=4,
        reserve=1,
        capabilities=["gpu", "big"],
        task_types=["b", "a"],
    )
    await store.workers.register("any")
    found = {worker.worker_id: worker for worker in (await store.stats()).workers}
    assert found["w"] == WorkerStats(
        worker_id="w",
        state="active",
        capacity=4,
        running=0,
        seen=clock.now,
        reserve=1,
        task_types=("a", "b"),
        capabilities=("big", "gpu"),
        name="host-1",
        version="1.2",
    )
    assert (found["any"].task_types, found["any"].capabilities) == (None, ())

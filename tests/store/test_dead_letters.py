"""Dead letters: which are listed, page by page, and what a page costs."""

from typing import Any

import pytest

from fairlead.errors import InvalidInput, UnknownTask
from fairlead.model.dead_letter import DeadFilter, why_dead
from fairlead.model.reports import Failed
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new, raw


async def die(store: Store, message: str = "no ink", *, code: str = "broken", **options: Any) -> str:
    await store.workers.register("w", capacity=100)
    retriable = options.pop("retriable", False)
    await store.submit_one(new(**options))
    task = await claim_one(store)
    await store.fail(
        "w", Failed(task.task_id, task.fence, code, message, retriable, traceback="a.py, line 1")
    )
    return task.task_id


async def walk(store: Store, size: int, **wanted: Any) -> list[list[str]]:
    """The ids of all pages of this size."""
    pages, cursor = list[list[str]](), ""
    while True:
        page = await store.dead_letters.page(size, cursor, DeadFilter(**wanted))
        pages.append([task.task_id for task in page.tasks])
        cursor = page.next_cursor
        if not cursor:
            return pages


async def found(store: Store, **wanted: Any) -> set[str]:
    return {task_id for page in await walk(store, 2, **wanted) for task_id in page}


async def test_each_filter_finds_its_own(store: Store, clock: Clock) -> None:
    drawn = await die(store, "No INK left", task_type="draw", user_id="ann")
    clock.pass_ms(10)
    sung = await die(store, "hoarse", code="voice", task_type="sing", tenant="acme", user_id="bob")
    clock.pass_ms(10)
    tired = await die(store, "ink again", task_type="draw", max_retries=0, retriable=True)
    everything: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {drawn, sung, tired}),
        ({"status": "failed"}, {drawn, sung}),
        ({"status": "dead_letter"}, {tired}),
        ({"task_type": "draw"}, {drawn, tired}),
        ({"user_id": "bob"}, {sung}),
        ({"tenant": "acme"}, {sung}),
        ({"tenant": "other"}, set()),
        ({"code": "broken"}, {drawn, tired}),
        ({"text": "Ink"}, {drawn, tired}),
        ({"text": "ink left", "status": "dead_letter"}, set()),
        ({"since": clock.now - 10}, {sung, tired}),
        ({"until": clock.now - 10}, {drawn, sung}),
        ({"since": clock.now - 10, "until": clock.now - 10, "task_type": "sing"}, {sung}),
    ]
    for wanted, expected in everything:
        assert await found(store, **wanted) == expected, wanted


@pytest.mark.parametrize("filtered", [{}, {"task_type": "echo"}], ids=["all", "filtered"])
async def test_pages_hold_each_once_also_of_one_millisecond(
    store: Store, clock: Clock, filtered: dict[str, str]
) -> None:
    dead = [await die(store) for _ in range(7)]
    clock.pass_ms(1)
    dead += [await die(store) for _ in range(2)]
    pages = await walk(store, 2, **filtered)
    assert sorted(task_id for page in pages for task_id in page) == sorted(dead)
    assert pages[0] == sorted(dead[7:], reverse=True)


async def test_what_comes_and_goes_meanwhile_moves_no_other_to_another_page(
    store: Store, clock: Clock
) -> None:
    dead = []
    for _ in range(6):
        dead.append(await die(store))
        clock.pass_ms(1)
    first = await store.dead_letters.page(2)
    await store.replay(dead[5])
    await store.purge(dead[4])  # which the cursor names
    await store.purge(dead[2])
    clock.pass_ms(1)
    await die(store)
    second = await store.dead_letters.page(2, first.next_cursor)
    assert [task.task_id for task in second.tasks] == [dead[3], dead[1]]


async def commands(store: Store) -> int:
    stats = await raw(store).info("commandstats")
    return sum(one["calls"] for name, one in stats.items() if not name.endswith("info"))


async def test_a_page_costs_the_same_however_many_there_are(store: Store, clock: Clock) -> None:
    async def cost(size: int, cursor: str = "") -> tuple[int, str]:
        before = await commands(store)
        page = await store.dead_letters.page(size, cursor)
        return await commands(store) - before, page.next_cursor

    for _ in range(12):
        await die(store)
        clock.pass_ms(1)
    few, _ = await cost(10)
    for _ in range(60):
        await die(store)
        clock.pass_ms(1)
    many, cursor = await cost(10)
    deep = 0
    for _ in range(5):
        deep, cursor = await cost(10, cursor)
    assert few == many == deep == 11  # the list, and ten records


async def test_they_end_with_their_retention(store: Store, clock: Clock) -> None:
    """Thirty days, unless it is set."""
    assert store.settings.retention.dead_seconds == 30 * 86_400
    await die(store, tenant="acme")
    clock.pass_seconds(store.settings.retention.dead_seconds + 1)
    later = await die(store, tenant="acme")
    await store.upkeep.forget()
    assert await found(store) == await found(store, tenant="acme") == {later}


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("status", {"wanted": DeadFilter(status="queued")}),
        ("task_type", {"wanted": DeadFilter(task_type="a b")}),
        ("text", {"wanted": DeadFilter(text="")}),
        ("since", {"wanted": DeadFilter(since=-1)}),
        ("cursor", {"cursor": "7"}),
        ("limit", {"limit": 0}),
    ],
)
async def test_what_cannot_be_meant_is_refused(store: Store, field: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        await store.dead_letters.page(**given)
    assert refused.value.field == field


async def test_one_is_shown_with_its_traceback_and_why(store: Store, clock: Clock) -> None:
    task = await store.dead_letters.get(await die(store))
    assert task.error and task.error.traceback == "a.py, line 1"
    assert why_dead(task) == "Its run failed with broken, which is not retried."
    tired = await store.dead_letters.get(await die(store, max_retries=0, retriable=True))
    assert why_dead(tired) == "It failed once, the last time with broken: no retries are left."
    late = new(max_wait_seconds=1)
    await store.submit_one(late)
    clock.pass_seconds(2)
    await store.promote()
    assert "never started (RESOURCE_EXHAUSTED)" in why_dead(await store.dead_letters.get(late.task_id))


async def test_one_that_killed_its_workers_is_said_to_be_the_cause(store: Store, clock: Clock) -> None:
    await store.submit_one(new())
    for number in range(3):
        await store.workers.register(f"w{number}")
        task = await claim_one(store, f"w{number}")
        await store.expire(f"w{number}")
    assert why_dead(await store.dead_letters.get(task.task_id)).startswith("What ran it died 3 times")


async def test_a_task_that_waits_is_not_shown(store: Store) -> None:
    waiting = await store.submit_one(new())
    with pytest.raises(UnknownTask, match="no such dead letter"):
        await store.dead_letters.get(waiting.task_id)

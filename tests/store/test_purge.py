"""Purging: a failed or dead-lettered task is forgotten for good, and no other is touched."""

import pytest

from fairlead import errors
from fairlead.model.reports import Failed, Progress
from fairlead.model.states import REPLAYABLE, State
from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, everything, key_names, new, raw
from tests.store.test_states import SETTINGS, WAYS_INTO, Scene


@pytest.fixture
def settings() -> Settings:
    return SETTINGS


async def dead_task(store: Store) -> str:
    await store.workers.register("w")
    submitted = await store.submit_one(new(max_retries=0))
    task = await claim_one(store)
    await store.progress("w", Progress(task.task_id, task.fence, chunks=["a line"]))
    await store.fail("w", Failed(task.task_id, task.fence))
    return submitted.task_id


@pytest.mark.parametrize("state", [state for state in WAYS_INTO if state in REPLAYABLE], ids=str)
async def test_a_task_that_can_be_replayed_can_be_purged(store: Store, clock: Clock, state: State) -> None:
    for way in WAYS_INTO[state]:
        scene = Scene(store, clock)
        await way(scene)
        kept = await events(store, scene.task_id)
        await store.purge(scene.task_id)
        assert (await scene.state(), (await store.dead_letters.page()).tasks) == (None, []), way.__name__
        assert await events(store, scene.task_id) == kept, "its events are kept"


@pytest.mark.parametrize("state", [state for state in WAYS_INTO if state not in (None, *REPLAYABLE)], ids=str)
async def test_any_other_task_is_refused_and_left_unchanged(store: Store, clock: Clock, state: State) -> None:
    for way in WAYS_INTO[state]:
        scene = Scene(store, clock)
        await way(scene)
        before = await everything(store)
        with pytest.raises(errors.NotPurgeable):
            await store.purge(scene.task_id)
        assert await everything(store) == before, way.__name__


@pytest.mark.parametrize("task_id", ["nonsense", "01890000-0000-7000-8000-000000000000"])
async def test_an_unknown_task_is_refused(store: Store, task_id: str) -> None:
    with pytest.raises(errors.UnknownTask):
        await store.purge(task_id)


async def test_nothing_is_left_of_a_purged_task(store: Store) -> None:
    task_id = await dead_task(store)
    await store.purge(task_id)
    names = await key_names(store)
    assert "dead" not in names
    assert [name for name in names if task_id in name] == []


async def test_a_purged_task_is_purged_and_replayed_no_more(store: Store) -> None:
    task_id = await dead_task(store)
    await store.purge(task_id)
    for act in (store.purge, store.replay):
        with pytest.raises(errors.UnknownTask):
            await act(task_id)


async def test_the_others_stay_and_are_listed_page_by_page(store: Store, clock: Clock) -> None:
    ids = []
    for _ in range(4):
        clock.pass_ms(1)
        ids.append(await dead_task(store))
    await store.purge(ids[2])
    first = await store.dead_letters.page(2)
    second = await store.dead_letters.page(2, first.next_cursor)
    assert [task.task_id for task in (*first.tasks, *second.tasks)] == [ids[3], ids[1], ids[0]]


async def test_the_idempotency_key_of_a_purged_task_is_free_again(store: Store) -> None:
    await store.workers.register("w")
    first = await store.submit_one(new(idempotency_key="a:b", tenant="t:1"))
    task = await claim_one(store)
    assert task.idempotency_key == "a:b"
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.purge(first.task_id)
    second = await store.submit_one(new(idempotency_key="a:b", tenant="t:1"))
    assert (second.repeated, second.status) == (False, State.QUEUED)
    assert second.task_id != first.task_id


async def test_a_key_that_another_task_has_by_now_stays_with_that_one(store: Store) -> None:
    await store.workers.register("w")
    first = await store.submit_one(new(idempotency_key="k"))
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    (known,) = [name for name in await key_names(store) if name.startswith("idempotency:")]
    await raw(store).delete(store.connection.keys.prefix + known)  # as at the end of its window
    second = await store.submit_one(new(idempotency_key="k"))
    await store.purge(first.task_id)
    again = await store.submit_one(new(idempotency_key="k"))
    assert (again.repeated, again.task_id) == (True, second.task_id)

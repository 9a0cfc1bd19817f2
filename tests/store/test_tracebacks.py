"""The traceback of the last failure is kept with its task, bounded, and returned only with that task."""

import pytest

from fairlead.model.reports import MOST_TRACEBACK, Completed, Failed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, new, raw

TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in paint\nValueError: out of paint'


@pytest.fixture
async def running(store: Store) -> Task:
    await store.workers.register("w", capacity=5)
    await store.submit_one(new(max_retries=1))
    return await claim_one(store)


async def fail(store: Store, task: Task, traceback: str = TRACEBACK, *, retriable: bool = True) -> State:
    report = Failed(task.task_id, task.fence, "ValueError", "out of paint", retriable, traceback=traceback)
    (answer,) = await store.fail("w", report)
    assert isinstance(answer, State)
    return answer


async def traceback_of(store: Store, task: Task) -> str | None:
    error = (await store.get(task.task_id)).error
    return error.traceback if error else None


async def record_of(store: Store, task_id: str) -> dict[str, str]:
    fields = await raw(store).hgetall(store.connection.keys.key("task", task_id))
    return {name.decode(): repr(value) for name, value in fields.items()}


async def test_it_is_kept_with_the_error(store: Store, running: Task) -> None:
    assert await fail(store, running) is State.DELAYED
    assert await traceback_of(store, running) == TRACEBACK


async def test_lists_events_and_the_next_worker_do_without_it(
    store: Store, clock: Clock, running: Task
) -> None:
    await fail(store, running)
    (listed,) = (await store.list_tasks()).tasks
    assert listed.error and (listed.error.message, listed.error.traceback) == ("out of paint", None)
    clock.pass_ms(3_600_000)
    await store.workers.register("w", capacity=5)
    again = await claim_one(store)
    assert again.task_id == running.task_id
    assert again.error and again.error.traceback is None
    await fail(store, again)
    (dead,) = (await store.dead_letters.page()).tasks
    assert dead.error and dead.error.traceback is None
    assert "Traceback" not in repr(await events(store))


async def test_it_is_of_the_last_failure(store: Store, clock: Clock, running: Task) -> None:
    await fail(store, running)
    clock.pass_ms(3_600_000)
    await store.workers.register("w", capacity=5)
    again = await claim_one(store)
    assert await traceback_of(store, running) == TRACEBACK
    await fail(store, again, "")
    assert await traceback_of(store, running) is None
    assert "traceback" not in await record_of(store, running.task_id)


async def test_a_lost_worker_leaves_none(store: Store, clock: Clock, running: Task) -> None:
    await fail(store, running)
    clock.pass_ms(3_600_000)
    await store.workers.register("w", capacity=5)
    await claim_one(store)
    await store.expire("w")
    error = (await store.get(running.task_id)).error
    assert error and (error.code, error.traceback) == ("worker_lost", None)


async def test_it_ends_with_the_error_when_the_task_completes(
    store: Store, clock: Clock, running: Task
) -> None:
    await fail(store, running)
    clock.pass_ms(3_600_000)
    await store.workers.register("w", capacity=5)
    again = await claim_one(store)
    await store.complete("w", Completed(again.task_id, again.fence, 1))
    record = await record_of(store, running.task_id)
    assert "completed" in record["state"] and not {"error", "traceback"} & record.keys()


async def test_it_ends_with_a_replay(store: Store, running: Task) -> None:
    assert await fail(store, running, retriable=False) is State.FAILED
    assert await traceback_of(store, running) == TRACEBACK
    await store.replay(running.task_id)
    assert not {"error", "traceback"} & (await record_of(store, running.task_id)).keys()


async def test_it_is_bounded_and_holds_no_credentials(store: Store, running: Task) -> None:
    long = f"Traceback\n{'é' * 100_000}\n\ud800 redis://:s3cr3t@db\nValueError: the end"
    await fail(store, running, long, retriable=False)
    kept = await traceback_of(store, running)
    assert kept and len(kept.encode()) <= MOST_TRACEBACK
    assert kept.startswith("Traceback") and kept.endswith("redis://***@db\nValueError: the end")
    assert await raw(store).hstrlen(store.connection.keys.key("task", running.task_id), "traceback") <= 4096

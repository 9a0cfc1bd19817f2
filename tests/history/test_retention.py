"""What has ended leaves the store once it is recorded, and the history when it is old or too large."""

from typing import Any

import pytest

from fairlead.history.opening import History
from fairlead.history.pruning import DAY_MS, Keep, prune
from fairlead.model.reports import Completed, Failed
from fairlead.settings import Retention, Settings
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import record_all, task_rows
from tests.store.job_steps import job
from tests.store.namespace import new, raw


async def run_all(store: Store, count: int) -> list[str]:
    await store.workers.register("w", capacity=count)
    tasks = (await store.claim("w", count)).tasks
    await store.complete("w", *[Completed(task.task_id, task.fence) for task in tasks])
    return [task.task_id for task in tasks]


async def in_store(store: Store, ids: list[str]) -> int:
    return sum([await raw(store).exists(store.connection.keys.key("task", one)) for one in ids])


async def forget_all(store: Store) -> None:
    while await store.upkeep.forget():
        pass


class TestTheStore:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(retention=Retention(live_seconds=60))

    async def test_what_is_recorded_leaves_after_a_while(
        self, store: Store, recorder: Recorder, clock: Clock
    ) -> None:
        await store.submit(*[new() for _ in range(3)])
        done = await run_all(store, 2)
        await record_all(recorder)
        clock.pass_seconds(59)
        await forget_all(store)
        assert await in_store(store, done) == 2
        clock.pass_seconds(1)
        await forget_all(store)
        assert await in_store(store, done) == 0
        assert len((await store.list_tasks()).tasks) == 1

    async def test_what_is_not_recorded_stays(self, store: Store, recorder: Recorder, clock: Clock) -> None:
        """Also what ended in the same millisecond as the first event that is not."""
        await store.submit(*[new() for _ in range(4)])
        done = await run_all(store, 2)
        clock.pass_seconds(3_600)
        await forget_all(store)
        assert await in_store(store, done) == 2  # there is no recorder
        await store.outbox.begin()
        await forget_all(store)
        assert await in_store(store, done) == 2  # it has recorded nothing
        await record_all(recorder)
        later = await run_all(store, 2)
        clock.pass_seconds(3_600)
        await forget_all(store)
        assert (await in_store(store, done), await in_store(store, later)) == (0, 2)

    async def test_dead_letters_and_what_runs_stay(
        self, store: Store, recorder: Recorder, clock: Clock
    ) -> None:
        await store.workers.register("w", capacity=2)
        await store.submit(new(), new())
        tasks = (await store.claim("w", 2)).tasks
        await store.fail("w", Failed(tasks[0].task_id, tasks[0].fence, retriable=False))
        await record_all(recorder)
        clock.pass_seconds(3_600)
        await record_all(recorder)
        await forget_all(store)
        assert await in_store(store, [task.task_id for task in tasks]) == 2


async def rows(history: History) -> dict[str, int]:
    tables = ("tasks", "jobs", "events", "attempts", "task_limits")
    counts: list[Any] = [await history.database.read(f"SELECT COUNT(*) FROM {table}") for table in tables]
    return {table: count for table, ((count,),) in zip(tables, counts, strict=True)}


async def test_the_past_is_forgotten_when_it_ended_long_ago(
    store: Store, history: History, recorder: Recorder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.history.pruning.AT_ONCE", 2)
    waiting = new(delay_seconds=100 * 86_400)
    await store.submit(waiting, *[new(concurrency_group="gpu", concurrency_limit=9) for _ in range(5)])
    await run_all(store, 5)
    old = await store.jobs.submit(job())
    await store.jobs.cancel(old.job_id)
    gone = await store.submit_one(new())
    await store.cancel(gone.task_id)
    await raw(store).delete(store.connection.keys.key("task", gone.task_id))
    await record_all(recorder)
    clock.pass_ms(31 * DAY_MS)
    recent = await store.submit_one(new())
    await store.cancel(recent.task_id)
    await record_all(recorder)
    while await prune(history, Keep(days=30), clock.now):
        pass
    assert {row.id for row in await task_rows(history)} == {waiting.task_id, recent.task_id}
    assert await rows(history) == {"tasks": 2, "jobs": 0, "events": 3, "attempts": 0, "task_limits": 0}


async def test_the_oldest_are_forgotten_when_they_take_too_much_room(
    store: Store, history: History, recorder: Recorder, clock: Clock
) -> None:
    waiting = new(delay_seconds=60)
    await store.submit(waiting)
    submitted: list[str] = []
    for _ in range(4):
        tasks = [new(parameters={"text": "x" * 2_000}) for _ in range(200)]
        await store.submit(*tasks)
        submitted += [task.task_id for task in tasks]
        await run_all(store, 200)
        await record_all(recorder)
    size = await history.database.size()
    while await prune(history, Keep(bytes=size * 3 // 4), clock.now):
        pass
    assert size // 3 < await history.database.size() <= size * 3 // 4
    left = [row.id for row in await task_rows(history)]
    assert left == [waiting.task_id, *submitted[1 - len(left) :]]
    assert 300 < len(left) < 700

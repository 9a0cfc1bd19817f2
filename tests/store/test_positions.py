"""The position of a submitted task: behind all tasks of its effective priority and of better ones."""

from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import Submitted
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new, raw


async def positions(store: Store, *priorities: str) -> list[int | None]:
    answers = await store.submit(*[new(priority=priority) for priority in priorities])
    return [answer.queue_position for answer in answers if isinstance(answer, Submitted)]


async def test_the_first_task_is_first_and_each_counts_those_before_it(store: Store) -> None:
    assert await positions(store, "medium") == [1]
    assert await positions(store, "medium", "low", "high", "low", "medium") == [2, 3, 1, 5, 4]
    assert await positions(store, "high", "medium", "low") == [2, 6, 9]


async def test_a_promoted_task_counts_in_the_priority_it_has_now(store: Store, clock: Clock) -> None:
    await positions(store, "low", "low", "medium")
    clock.pass_seconds(600)
    await store.promote()
    assert await positions(store, "high", "medium", "low") == [1, 5, 6]


async def test_running_and_delayed_tasks_have_no_position(store: Store) -> None:
    await store.workers.register("w")
    await positions(store, "high", "high")
    await claim_one(store)
    delayed = await store.submit_one(new(delay_seconds=5))
    assert (delayed.status, delayed.queue_position) == (State.DELAYED, None)
    assert await positions(store, "high") == [2]


async def test_a_repeated_submit_returns_no_position(store: Store) -> None:
    task = new()
    assert (await store.submit_one(task)).queue_position == 1
    assert (await store.submit_one(task)).queue_position is None


async def test_later_steps_of_a_job_count_too(store: Store) -> None:
    await store.workers.register("w")
    later = [NewStep("second", "echo"), NewStep("third", "echo")]
    await store.jobs.submit(NewJob(feature_name="f", stages=[[NewStep("first", "echo")], later]))
    task = await claim_one(store)
    await store.complete("w", Completed(task.task_id, task.fence))
    assert await positions(store, "medium") == [3]


async def test_nothing_is_scanned_for_it(live_store: Store) -> None:
    await live_store.submit(*[new(f"kind{i}") for i in range(100)])
    await raw(live_store).config_resetstat()
    assert await positions(live_store, *["low"] * 50) == list(range(101, 151))
    stats = await raw(live_store).info("commandstats")
    assert "cmdstat_zcard" not in stats  # what waits is counted where it changes

"""A lost worker counts as a crash of a task only when that task can have been the cause."""

import pytest

from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, new

LEASE_SECONDS = 31  # with its grace


async def claimed_by(store: Store, worker: str, count: int = 1) -> list[Task]:
    """This number of new tasks, held by a worker that has just registered."""
    await store.workers.register(worker, capacity=9)
    await store.submit(*[new() for _ in range(count)])
    return (await store.claim(worker, count)).tasks


async def silence(store: Store, clock: Clock, *survivors: str, seconds: int = LEASE_SECONDS) -> None:
    """Leases end, while these workers keep reporting."""
    for _ in range(seconds):
        clock.pass_seconds(1)
        for worker in survivors:
            await store.workers.heartbeat(worker, [])


async def counts(store: Store, *tasks: Task) -> list[tuple[int, int]]:
    """Crashes and losses."""
    found = [await store.get(task.task_id) for task in tasks]
    return [(task.crash_count, task.loss_count) for task in found]


# In company


async def test_tasks_that_lost_their_worker_together_are_charged_with_no_crash(store: Store) -> None:
    tasks = await claimed_by(store, "w", 3)
    assert await store.expire("w") == 3
    assert await counts(store, *tasks) == [(0, 1)] * 3
    await store.workers.register("v", capacity=9)
    found = (await store.claim("v", 9)).tasks
    assert [(task.task_id, task.attempt, task.loss_count) for task in found] == [
        (task.task_id, 2, 1) for task in tasks
    ]


async def test_a_cancelled_task_that_still_ran_is_company(store: Store) -> None:
    gone, left = await claimed_by(store, "w", 2)
    await store.cancel(gone.task_id)
    await store.expire("w")
    assert await counts(store, left) == [(0, 1)]


async def test_that_there_was_company_is_remembered_until_the_last_lease_has_ended(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("other")
    (first,) = await claimed_by(store, "w")
    await silence(store, clock, "other", "w", seconds=10)
    await store.submit_one(new())
    second = await claim_one(store, "w")
    await silence(store, clock, "other", seconds=LEASE_SECONDS - 10)
    assert await store.expire() == 1
    await silence(store, clock, "other", seconds=10)
    assert await store.expire() == 1
    assert await counts(store, first, second) == [(0, 1), (0, 1)]


async def test_a_worker_that_reports_again_starts_over(store: Store, clock: Clock) -> None:
    """It lost a lease, but was not dead: what it runs alone later is charged."""
    await store.workers.register("other")
    lost, kept = await claimed_by(store, "w", 2)
    for _ in range(LEASE_SECONDS):
        clock.pass_seconds(1)
        await store.workers.heartbeat("other", [])
        await store.workers.heartbeat("w", [Grant(kept.task_id, kept.fence)])
    await store.expire()
    assert await counts(store, lost, kept) == [(0, 1), (0, 0)]
    await store.workers.heartbeat("w", [Grant(kept.task_id, kept.fence)])
    await silence(store, clock, "other")
    await store.expire()
    assert await counts(store, lost, kept) == [(0, 1), (1, 0)]


# Alone


async def test_a_task_that_ran_alone_is_charged_when_its_worker_is_seen_to_die(store: Store) -> None:
    tasks = await claimed_by(store, "w")
    await store.expire("w")
    assert await counts(store, *tasks) == [(1, 0)]


async def test_a_task_that_ran_alone_is_charged_when_another_worker_outlived_its_own(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("other")
    tasks = await claimed_by(store, "w")
    await silence(store, clock, "other")
    await store.expire()
    assert await counts(store, *tasks) == [(1, 0)]


async def test_a_lease_that_expires_while_its_worker_lives_is_not_a_crash(store: Store, clock: Clock) -> None:
    """For example, the answer to its claim was lost: the worker does not know of the task."""
    await store.workers.register("other")
    tasks = await claimed_by(store, "w")
    await silence(store, clock, "other", "w")
    await store.expire()
    assert await counts(store, *tasks) == [(0, 1)]


@pytest.mark.parametrize("back", [5, 60], ids=["before the leases end", "afterwards"])
async def test_three_outages_of_the_whole_site_charge_no_task_with_a_crash(
    store: Store, clock: Clock, back: int
) -> None:
    await store.submit(*[new(max_retries=0) for _ in range(3)])
    tasks: list[Task] = []
    for outage in range(3):
        for number in range(3):
            await store.workers.register(f"w{outage}-{number}")
            tasks += (await store.claim(f"w{outage}-{number}")).tasks
            clock.pass_seconds(1)  # each beats at its own time
        assert len(tasks) == 3 * (outage + 1)
        clock.pass_seconds(back)
        await store.workers.register(f"back{outage}", task_types=["none"])
        await silence(store, clock, f"back{outage}")
        assert (await store.claim(f"back{outage}")).tasks == []  # it ends the leases
    assert await counts(store, *tasks[:3]) == [(0, 3)] * 3
    assert {(await store.get(task.task_id)).status for task in tasks} == {State.QUEUED}


async def test_a_worker_that_was_silent_itself_when_the_lease_ended_does_not_count_as_a_survivor(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("other")
    tasks = await claimed_by(store, "w")
    clock.pass_seconds(10)
    await store.workers.heartbeat("other", [])
    clock.pass_seconds(LEASE_SECONDS - 10)
    await store.expire()
    assert await counts(store, *tasks) == [(0, 1)]


# Enough


async def test_a_poison_pill_that_is_lost_alone_is_a_dead_letter_after_three_crashes(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("other", task_types=["none"])
    (pill,) = await claimed_by(store, "w0")
    for number in range(1, 4):
        await silence(store, clock, "other")
        await store.expire()
        await store.workers.register(f"w{number}")
        await store.claim(f"w{number}")
    assert await counts(store, pill) == [(3, 0)]
    assert (await store.get(pill.task_id)).status is State.DEAD_LETTER


async def test_a_task_is_a_dead_letter_after_twelve_losses(store: Store) -> None:
    pill, *_ = await claimed_by(store, "w", 2)
    for _ in range(11):
        await store.expire("w")
        await store.workers.register("w", capacity=9)
        assert len((await store.claim("w", 2)).tasks) == 2
    await store.expire("w")
    task = await store.get(pill.task_id)
    assert (task.status, task.crash_count, task.loss_count) == (State.DEAD_LETTER, 0, 12)
    assert task.error and task.error.code == "worker_lost"
    last = (await events(store, pill.task_id))[-1]
    assert last["detail"] == {"code": "worker_lost", "crashes": 0, "losses": 12, "worker": "w"}
    await store.replay(pill.task_id)
    assert await counts(store, pill) == [(0, 0)]


async def test_the_death_of_the_handlers_own_process_counts_as_before(store: Store) -> None:
    first, _ = await claimed_by(store, "w", 2)
    await store.fail("w", Failed(first.task_id, first.fence, crashed=True))
    assert await counts(store, first) == [(1, 0)]


async def test_a_result_forgets_the_error_of_a_loss(store: Store) -> None:
    first, _ = await claimed_by(store, "w", 2)
    await store.expire("w")
    await store.workers.register("w")
    again = await claim_one(store)
    await store.complete("w", Completed(again.task_id, again.fence, 1))
    assert (again.task_id, (await store.get(again.task_id)).error) == (first.task_id, None)

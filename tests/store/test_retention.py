"""What has ended is kept for a time, up to a number and a size: the oldest is dropped first."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.dead_letter import DeadFilter
from fairlead.model.job import JobStatus, NewStep
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import Submitted, Task
from fairlead.settings import Retention, Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import job
from tests.store.namespace import claim_one, key_names, new, raw

ONE = NewStep("one", "step")


@pytest.fixture
def settings() -> Settings:
    return Settings(retention=Retention(max_finished=50, max_dead=10))


async def run(store: Store, count: int, at_once: int = 1, **options: Any) -> list[Task]:
    """Submitted, started and completed."""
    await store.workers.register("w", capacity=1000)
    done: list[Task] = []
    for _ in range(0, count, at_once):
        await store.submit(*(new(**options) for _ in range(at_once)))
        tasks = (await store.claim("w", at_once)).tasks
        await store.complete("w", *(Completed(task.task_id, task.fence, {"n": 1}) for task in tasks))
        done += tasks
    return done


async def kept(store: Store, name: str = "task") -> set[str]:
    return {key.partition(":")[2] for key in await key_names(store) if key.startswith(f"{name}:")}


async def counted(store: Store) -> tuple[int, int]:
    fields = await raw(store).hmget(store.connection.keys.meta, "finished_count", "finished_bytes")
    return int(fields[0] or 0), int(fields[1] or 0)


@pytest.mark.parametrize("at_once", [1, 7, 100])
async def test_the_latest_that_finished_are_kept(store: Store, at_once: int) -> None:
    done = await run(store, 1000, at_once)
    assert await kept(store) == {task.task_id for task in done[-50:]}
    assert (await counted(store))[0] == 50


async def test_large_ones_are_bounded_by_their_size(open_store: Callable[..., Store], clock: Clock) -> None:
    store = open_store(clock=clock, settings=Settings(retention=Retention(max_finished_bytes=100_000)))
    await store.open()
    await run(store, 30, parameters={"x": "y" * 9_000})
    assert len(await kept(store)) == 10
    await store.submit_one(new())
    task = await claim_one(store)
    clock.pass_ms(1)
    await store.complete("w", Completed(task.task_id, task.fence, "z" * 60_000))
    assert len(await kept(store)) == 6, "one act drops no more than have ended in it, and four"
    await store.upkeep.forget()
    count, size = await counted(store)
    assert task.task_id in await kept(store) and count == 5 and size <= 100_000


async def test_output_counts_and_goes_with_its_task(open_store: Callable[..., Store], clock: Clock) -> None:
    store = open_store(clock=clock, settings=Settings(retention=Retention(max_finished_bytes=100_000)))
    await store.open()
    await store.workers.register("w", capacity=1000)
    for _ in range(10):
        await store.submit_one(new())
        task = await claim_one(store)
        await store.progress("w", Progress(task.task_id, task.fence, chunks=["y" * 30_000]))
        await store.complete("w", Completed(task.task_id, task.fence))
    assert len(await kept(store, "output")) == len(await kept(store)) == 3


async def test_cancelled_tasks_count_too(store: Store) -> None:
    tasks = [new() for _ in range(80)]
    await store.submit(*tasks)
    for task in tasks:
        await store.cancel(task.task_id)
    assert await kept(store) == {task.task_id for task in tasks[-50:]}


async def test_a_cancelled_task_is_kept_until_its_worker_has_stopped(store: Store) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit_one(new())
    held = await claim_one(store)
    await store.cancel(held.task_id)
    await run(store, 100)
    assert held.task_id in await kept(store)
    assert [type(one) for one in await store.release("w", Grant(held.task_id, held.fence))] == [errors.Fenced]
    await run(store, 1)
    assert held.task_id not in await kept(store), "now it is the oldest"


async def test_jobs_count_too(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=10)
    ids = []
    for _ in range(40):
        ids.append((await store.jobs.submit(job(ONE))).job_id)
        task = await claim_one(store)
        await store.complete("w", Completed(task.task_id, task.fence, {"n": 1}))
        clock.pass_ms(1)
    assert len(await kept(store)) + len(await kept(store, "job")) == 50
    assert await kept(store, "job") == set(ids[-25:])


async def test_the_latest_dead_letters_are_kept(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    failed = []
    for retriable in (True, False) * 15:
        await store.submit_one(new(max_retries=0))
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=retriable))
        failed.append(task.task_id)
    assert [task.task_id for task in (await store.dead_letters.page()).tasks] == failed[:-11:-1]
    assert await kept(store) == set(failed[-10:])


async def test_the_latest_dead_letters_of_tenants_are_kept(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    failed: dict[str, list[str]] = {"a": [], "b": []}
    for tenant in ("a", "b", "b") * 10:
        await store.submit_one(new(tenant=tenant))
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
        failed[tenant].append(task.task_id)
    for tenant, count in (("a", 3), ("b", 7)):
        listed = await raw(store).zrevrange(store.connection.keys.key("deadof", tenant), 0, -1)
        assert [task_id.decode() for task_id in listed] == failed[tenant][: -count - 1 : -1]
        kept_of = (await store.dead_letters.page(wanted=DeadFilter(tenant=tenant))).tasks
        assert [task.task_id for task in kept_of] == failed[tenant][: -count - 1 : -1]


async def test_the_latest_failed_jobs_are_kept(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    ids = []
    for _ in range(30):
        ids.append((await store.jobs.submit(job(ONE))).job_id)
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    assert await kept(store, "job") == set(ids[-10:])


async def test_a_replayed_task_and_a_resumed_job_are_not_dropped(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=100)
    resumed = (await store.jobs.submit(job(ONE, max_wait_seconds=1))).job_id
    clock.pass_seconds(2)
    await store.promote()  # it was not started in time, through no fault of its own
    await store.submit_one(new())
    replayed = await claim_one(store)
    await store.fail("w", Failed(replayed.task_id, replayed.fence, retriable=False))
    await store.replay(replayed.task_id)
    await store.jobs.resume(resumed)
    held = (await store.claim("w", 2)).tasks
    for _ in range(20):
        await store.submit_one(new())
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await run(store, 60)
    assert {task.task_id for task in held} <= await kept(store)
    assert (await store.jobs.get(resumed)).status is JobStatus.RUNNING


async def test_a_lowered_bound_is_reached_step_by_step(
    open_store: Callable[..., Store], store: Store, clock: Clock
) -> None:
    await run(store, 50)
    lower = open_store(store.connection.keys.namespace, clock, Settings(retention=Retention(max_finished=5)))
    await lower.open()
    await run(lower, 1)
    assert len(await kept(store)) == 46, "as many as finished, and four"
    assert await lower.upkeep.forget() == 41
    assert len(await kept(store)) == 5
    await lower.close()


async def test_expired_tasks_leave_the_index(store: Store, clock: Clock) -> None:
    await run(store, 40)
    assert (await counted(store))[0] == 40
    clock.pass_seconds(store.settings.retention.finished_seconds)
    assert await store.upkeep.forget() == 40
    assert await counted(store) == (0, 0)
    assert "finished" not in await key_names(store)


async def test_an_id_that_is_used_again_is_not_dropped_with_what_it_was_before(
    store: Store, clock: Clock
) -> None:
    (old,) = await run(store, 1)
    clock.pass_seconds(store.settings.retention.finished_seconds)
    await raw(store).delete(store.connection.keys.key("task", old.task_id))  # it ran out by time
    await store.workers.register("w", capacity=1000)
    await store.submit_one(new(task_id=old.task_id))
    assert (await claim_one(store)).task_id == old.task_id
    await run(store, 60)
    assert (await store.get(old.task_id)).status is State.EXECUTING


# Idempotency keys


async def test_a_key_still_answers_rightly_when_its_task_was_dropped(store: Store) -> None:
    (done,) = await run(store, 1, idempotency_key="done")
    cancelled = new(idempotency_key="cancelled", priority="low")
    await store.submit_one(cancelled)
    await store.cancel(cancelled.task_id)
    await run(store, 60)
    assert not {done.task_id, cancelled.task_id} & await kept(store)
    again = await store.submit(
        new(idempotency_key="done"),
        new(idempotency_key="cancelled", priority="low"),
        new("other", idempotency_key="done"),
    )
    assert [(one.task_id, one.status, one.repeated) for one in again if isinstance(one, Submitted)] == [
        (done.task_id, State.COMPLETED, True),
        (cancelled.task_id, State.CANCELLED, True),
    ]
    assert isinstance(again[2], errors.IdempotencyConflict)


async def test_a_key_of_a_dropped_dead_letter_says_that_it_failed(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    for n in range(20):
        await store.submit_one(new(idempotency_key=f"k{n}", max_retries=0))
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, retriable=n % 2 == 0))
    states = [(await store.submit_one(new(idempotency_key=f"k{n}", max_retries=0))).status for n in range(4)]
    assert states == [State.DEAD_LETTER, State.FAILED] * 2


async def test_a_key_that_belongs_to_another_task_by_now_is_kept(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    await store.submit_one(new(idempotency_key="k"))
    old = await claim_one(store)
    # its window ended
    await raw(store).delete(*[k async for k in raw(store).scan_iter(match="*idempotency:*")])
    young = await store.submit_one(new(idempotency_key="k"))
    await store.complete("w", Completed(old.task_id, old.fence))
    again = await store.submit_one(new(idempotency_key="k"))
    assert (again.task_id, again.status) == (young.task_id, State.QUEUED)


async def test_a_key_of_a_dropped_job_still_answers_rightly(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    ids = [(await store.jobs.submit(job(ONE, idempotency_key=name))).job_id for name in ("done", "gone")]
    await store.jobs.cancel(ids[1])
    task = await claim_one(store)
    await store.complete("w", Completed(task.task_id, task.fence))
    await run(store, 60)
    assert await kept(store, "job") == set()
    again = [await store.jobs.submit(job(ONE, idempotency_key=name)) for name in ("done", "gone")]
    assert [(one.job_id, one.status, one.repeated) for one in again] == [
        (ids[0], JobStatus.COMPLETED, True),
        (ids[1], JobStatus.CANCELLED, True),
    ]


# The doctor


async def test_the_doctor_says_when_a_failed_job_is_not_listed_or_another_one_is(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    failed = (await store.jobs.submit(job(ONE))).job_id
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    waits = (await store.jobs.submit(job(ONE))).job_id
    key, at = store.connection.keys.key("deadjobs"), int(store.clock())
    await raw(store).zrem(key, failed)
    await raw(store).zadd(key, {waits: at})
    breaches = await examine(store.connection, now_ms=at)
    assert {breach.invariant for breach in breaches} == {"R1"}
    assert all(any(name in breach.sentence for breach in breaches) for name in (failed, waits))
    await raw(store).zrem(key, waits)
    await raw(store).zadd(key, {failed: at})

"""Data of Fairlead 0.1.0 (schema 2) is opened by this version, and everything in it continues."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.dead_letter import DeadFilter
from fairlead.model.job import JobStatus, NewJob, NewStep
from fairlead.model.reports import Completed, Grant, Handed
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.api_keys import usable_key
from tests.conftest import Clock
from tests.store.namespace import new, raw
from tests.store.schema2 import (
    SETTINGS,
    Kept,
    load,
    read_kept,
    summary_of_job,
    summary_of_limit,
    summary_of_task,
    summary_of_the_rest,
)

CAPABILITIES = ("big", "cpu", "cuda")
WAITING = (State.QUEUED, State.DELAYED)


@pytest.fixture
def clock() -> Clock:
    return Clock(read_kept().clock)


@pytest.fixture
def unopened(open_store: Callable[..., Store], clock: Clock) -> Store:
    """A store of this version on its own namespace, at the time of the dump."""
    return open_store(clock=clock, settings=SETTINGS)


@pytest.fixture
async def kept(unopened: Store) -> Kept:
    """What the namespace of `store` held before this version opened it."""
    return await load(unopened)


@pytest.fixture
async def store(unopened: Store, kept: Kept) -> Store:
    await unopened.open()
    return unopened


# What is read


@pytest.mark.every_server
async def test_the_doctor_finds_nothing_also_when_it_is_opened_again(store: Store, clock: Clock) -> None:
    assert await examine(store.connection, clock.now) == []
    assert await raw(store).hget(store.connection.keys.meta, "schema") == str(SCHEMA).encode()
    await store.open()
    assert await examine(store.connection, clock.now) == []


@pytest.mark.every_server
async def test_every_task_is_unchanged(store: Store, kept: Kept) -> None:
    assert {task.task_id for task in (await store.list_tasks(limit=1000)).tasks} == set(kept.tasks)
    for task_id, expected in kept.tasks.items():
        assert await summary_of_task(store, await store.get(task_id)) == expected


async def test_tasks_and_jobs_are_listed_by_their_creation(store: Store, kept: Kept) -> None:
    tasks, jobs = (await store.list_tasks(limit=1000)).tasks, (await store.jobs.page(limit=1000)).jobs
    assert {job.job_id for job in jobs} == set(kept.expected["jobs"])
    for times in ([task.created_at for task in tasks], [job.queued_at for job in jobs]):
        assert times == sorted(times, reverse=True)


async def test_every_job_and_every_limit_is_unchanged(store: Store, kept: Kept) -> None:
    for job_id, expected in kept.expected["jobs"].items():
        assert summary_of_job(await store.jobs.get(job_id)) == expected
    for name, expected in kept.expected["limits"].items():
        assert summary_of_limit(await store.limits.get(name)) == expected


async def test_lists_workers_keys_audit_crons_and_pipelines_are_unchanged(store: Store, kept: Kept) -> None:
    assert await summary_of_the_rest(store) == kept.expected["rest"]
    assert await store.audit.verify() == []


async def test_dead_letters_are_listed_by_tenant(store: Store, kept: Kept) -> None:
    dead = kept.expected["rest"]["dead_letters"]
    for tenant in ("acme", "zeta"):
        expected = {task_id for task_id in dead if kept.tasks[task_id].get("tenant") == tenant}
        assert expected
        assert {
            task.task_id for task in (await store.dead_letters.page(wanted=DeadFilter(tenant=tenant))).tasks
        } == expected


async def test_an_api_key_opens_what_it_opened(store: Store, kept: Kept) -> None:
    texts = kept.expected["key_texts"]
    key = await usable_key(store, texts["active"])
    assert key and (key.name, key.tenant, key.scopes) == ("ci", "acme", ("submit", "read"))
    assert await usable_key(store, texts["revoked"]) is None


# What runs


async def complete_running(store: Store, kept: Kept) -> None:
    """The workers of the dump report their tasks, with the fences they were given."""
    for task_id in kept.ids(State.EXECUTING):
        task = kept.tasks[task_id]
        report = Completed(task_id, task["fence"], {"by": task["task_type"]})
        assert await store.complete(task["assigned_worker_id"], report) == [State.COMPLETED]


async def test_running_tasks_are_completed_by_their_fences_and_free_their_units(
    store: Store, kept: Kept
) -> None:
    await complete_running(store, kept)
    assert {(await store.get(task_id)).status for task_id in kept.ids(State.EXECUTING)} == {State.COMPLETED}
    for name in kept.expected["limits"].keys() - {"licensed-tool"}:
        assert (await store.limits.get(name)).active == 0


async def test_older_fences_and_other_workers_are_refused(store: Store, kept: Kept) -> None:
    retried = kept.task("retried")
    fence = kept.tasks[retried]["fence"]
    for worker, old in (("busy", fence - 1), ("silent", None)):
        (answer,) = await store.complete(worker, Completed(retried, old))
        assert isinstance(answer, errors.Fenced)


async def test_a_cancelled_task_frees_its_units_when_its_worker_confirms(store: Store, kept: Kept) -> None:
    stopping = kept.expected["stopping"]
    beat = await store.workers.heartbeat(stopping["worker"])
    assert beat.cancelled == [stopping["task_id"]]
    assert set(beat.leases) == {
        task_id
        for task_id in kept.ids(State.EXECUTING)
        if kept.tasks[task_id]["assigned_worker_id"] == "busy"
    }
    before = (await store.limits.get("licensed-tool")).active
    await store.release(stopping["worker"], Grant(stopping["task_id"], stopping["fence"]))
    assert (await store.limits.get("licensed-tool")).active == before - 1


async def test_a_lease_without_a_task_is_still_its_holders(store: Store, kept: Kept) -> None:
    lease = kept.expected["lease"]
    limit, lease_id, fence = lease["limit"], lease["lease_id"], lease["fence"]
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire(limit)
    assert (await store.limits.renew_known(limit, lease_id, fence)).fence == fence
    await store.limits.release_known(limit, lease_id, fence)
    assert (await store.limits.acquire(limit, units=2)).fence > fence


async def test_tasks_of_a_lost_worker_run_again_under_newer_fences(
    store: Store, kept: Kept, clock: Clock
) -> None:
    lost = {kept.task("silent-echo"), kept.task("silent-render")}
    clock.pass_seconds(60)  # their leases end before
    claimed = {task.task_id: task for task in await claim_all(store)}
    newest = max(task.get("fence", 0) for task in kept.tasks.values())
    for task_id in lost:
        assert (claimed[task_id].attempt, claimed[task_id].retry_count) == (2, 0)
        assert claimed[task_id].fence > newest


async def test_a_worker_receives_the_task_it_was_handed(store: Store, kept: Kept) -> None:
    call = await store.workers.wait("handed", 0.1)
    handed = [call.task] if isinstance(call, Handed) else []
    again = (await store.claim("handed", idle=True, acknowledged=[task.fence for task in handed])).tasks
    assert [task.task_id for task in handed + again] == [kept.task("handed")]


async def test_a_repeated_claim_is_answered_as_the_first_one_was(store: Store, kept: Kept) -> None:
    request = kept.expected["request"]
    claimed = await store.claim(request["worker"], request=request["request"])
    assert [task.task_id for task in claimed.tasks] == request["granted"]


# What waits


async def claim_all(store: Store) -> list[Task]:
    """All that can start now, on a worker that can run anything."""
    await store.workers.register("all", capabilities=CAPABILITIES, capacity=1000)
    tasks: list[Task] = []
    while True:
        claimed = await store.claim("all", 100)
        tasks += claimed.tasks
        if not claimed.tasks and not claimed.again:
            return tasks


async def resume_everything(store: Store, kept: Kept) -> None:
    """Ends all pauses and leases of the dump, so that every waiting task can start in its time."""
    await store.pause_type("report", False)
    await store.limits.pause("db", False)
    await complete_running(store, kept)
    stopping, lease = kept.expected["stopping"], kept.expected["lease"]
    await store.release(stopping["worker"], Grant(stopping["task_id"], stopping["fence"]))
    await store.limits.release_known(lease["limit"], lease["lease_id"], lease["fence"])


async def run_now(store: Store) -> set[str]:
    """Runs what can start now, then what these tasks made room for; the ids of all."""
    ids: set[str] = set()
    while tasks := await claim_all(store):
        reports = [Completed(task.task_id, task.fence, {"by": task.task_type}) for task in tasks]
        assert set(await store.complete("all", *reports)) == {State.COMPLETED}
        ids |= {task.task_id for task in tasks}
    return ids


async def run_all(store: Store, clock: Clock) -> None:
    """Runs everything that waits. Time passes from alarm to alarm."""
    end = clock.now + 3 * 3_600_000
    while clock.now < end:
        await run_now(store)
        alarm = (await store.claim("all")).next_alarm
        if alarm is None:
            return
        clock.now = max(clock.now + 10_000, alarm)


@pytest.mark.every_server
async def test_everything_that_waits_is_started_in_time_and_every_job_ends(
    store: Store, kept: Kept, clock: Clock
) -> None:
    await resume_everything(store, kept)
    await run_all(store, clock)
    for task_id in kept.ids(*WAITING):
        assert (await store.get(task_id)).status is State.COMPLETED, kept.tasks[task_id]
    for name in ("fan", "line", "promoted", "fresh"):
        assert (await store.jobs.get(kept.job(name))).status is JobStatus.COMPLETED, name
    assert (await store.jobs.get(kept.job("broken"))).status is JobStatus.FAILED  # a step failed before
    assert {limit.active for limit in await store.limits.all()} == {0}


async def test_a_step_sees_the_results_from_before_the_upgrade(store: Store, kept: Kept) -> None:
    await complete_running(store, kept)
    await store.workers.register("steps", task_types=["fan.image", "fan.join"])
    (image,) = (await store.claim("steps")).tasks
    _, claimed = await store.report("steps", [Completed(image.task_id, image.fence, "an image")], claim=1)
    context = claimed.tasks[0].parameters["context"]
    results = [context[f"step_{step}"]["data"] for step in ("0_enhance", "1_chat", "2_image")]
    assert results == [{"text": "a shiny robot"}, {"by": "fan.chat"}, "an image"]


async def test_a_task_that_is_paused_or_lacks_units_does_not_start(store: Store, kept: Kept) -> None:
    blocked = {task_id for task_id, task in kept.tasks.items() if task.get("blocked_by")}
    paused = {kept.task("report-0"), kept.task("report-1")}
    unsure = {kept.task("held-back")}  # it may start in a version that does not hold units back here
    started = {task.task_id for task in await claim_all(store)}
    assert started - unsure == kept.ids(State.QUEUED) - blocked - paused - unsure


async def test_a_rate_that_was_used_up_refills_in_time(store: Store, kept: Kept, clock: Clock) -> None:
    async def calls() -> list[str]:
        return [task.task_id for task in await claim_all(store) if task.task_type == "call"]

    clock.pass_ms(14_999)
    assert await calls() == []
    clock.pass_ms(1)
    assert await calls() in ([kept.task("call-2")], [kept.task("call-4")])


async def test_the_best_priority_goes_first_and_within_it_the_oldest(store: Store, kept: Kept) -> None:
    await store.workers.register("all", task_types=["ordered"], capacity=9)
    order = [(await store.claim("all")).tasks[0].task_id for _ in range(5)]
    assert order == [kept.task(f"order-{name}") for name in ("high", "high-2", "medium", "medium-2", "low")]


@pytest.mark.parametrize(
    ("name", "seconds", "before", "after"),
    [("order-low", 600, "low", "medium"), ("low-to-medium", 1800, "medium", "high")],
)
async def test_waiting_tasks_age_from_when_they_came(
    store: Store, kept: Kept, clock: Clock, name: str, seconds: int, before: str, after: str
) -> None:
    async def priority() -> str:
        await store.promote()
        return (await store.get(kept.task(name))).effective_priority.word

    clock.now = kept.tasks[kept.task(name)]["created_at"] + seconds * 1000 - 1
    assert await priority() == before
    clock.pass_ms(1)
    assert await priority() == after


async def test_a_task_that_waited_too_long_fails_at_its_time(store: Store, kept: Kept, clock: Clock) -> None:
    task = await store.get(kept.task("gives-up"))
    assert task.max_wait_seconds == 900
    clock.now = task.created_at + 900_000 - 1
    await store.promote()
    assert (await store.get(task.task_id)).status is State.QUEUED
    clock.pass_ms(1)
    await store.promote()
    expired = await store.get(task.task_id)
    assert expired.status is State.FAILED
    assert expired.error and expired.error.code == "RESOURCE_EXHAUSTED"


async def test_delayed_tasks_start_at_their_time_and_not_before(
    store: Store, kept: Kept, clock: Clock
) -> None:
    await resume_everything(store, kept)
    times = {task_id: kept.tasks[task_id]["run_at"] for task_id in kept.ids(State.DELAYED)}
    for task_id, run_at in sorted(times.items(), key=lambda item: item[1]):
        clock.now = run_at - 1
        assert task_id not in await run_now(store)
        clock.pass_ms(1)
        assert task_id in await run_now(store)


async def test_an_idle_worker_is_called_when_a_task_comes(store: Store) -> None:
    submitted = await store.submit_one(new("quick", required_capabilities=("cpu",)))
    call = await store.workers.wait("idle-1", 5)
    handed = [call.task] if isinstance(call, Handed) else []
    tasks = handed or (await store.claim("idle-1", idle=True)).tasks
    assert [task.task_id for task in tasks] == [submitted.task_id]


# What comes


def keyed(kept: Kept, name: str, **changes: Any) -> NewTask:
    """The request that made this task, with a new id."""
    task = kept.tasks[kept.task(name)]
    options = {field: task[field] for field in task.keys() & SUBMITTED}
    return NewTask(**options | changes)


SUBMITTED = {
    *("task_type", "parameters", "priority", "user_id", "tenant", "concurrency_group", "concurrency_limit"),
    *("max_wait_seconds", "idempotency_key", "trace_id"),
}


async def test_a_request_repeated_after_the_upgrade_is_the_same_task(store: Store, kept: Kept) -> None:
    for name, more in (("fresh-key", {"limits": {"gpu": 1}}), ("group-default", {})):
        again = await store.submit_one(keyed(kept, name, **more))
        assert (again.task_id, again.repeated) == (kept.task(name), True)
        (other,) = await store.submit(keyed(kept, name, **more | {"parameters": {"other": True}}))
        assert isinstance(other, errors.IdempotencyConflict)


async def test_a_job_repeated_after_the_upgrade_is_the_same_job(store: Store, kept: Kept) -> None:
    stages = [[NewStep("enhance", "service:enhance")], [NewStep("chat", "line.chat")]]
    job = NewJob(
        feature_name="story",
        stages=stages,
        input_data={"prompt": "a robot"},
        user_id="bob",
        tenant="zeta",
        idempotency_key="story-1",
    )
    again = await store.jobs.submit(job)
    assert (again.job_id, again.repeated) == (kept.job("line"), True)


async def test_failed_tasks_and_jobs_are_tried_again(store: Store, kept: Kept, clock: Clock) -> None:
    await resume_everything(store, kept)
    job = await store.jobs.get(kept.job("failed"))
    replayed = [
        task_id for task_id in kept.expected["rest"]["dead_letters"] if "job_id" not in kept.tasks[task_id]
    ]
    for task_id in replayed:
        await store.replay(task_id)
    await store.jobs.resume(job.job_id)
    await run_all(store, clock)
    assert {(await store.get(task_id)).status for task_id in replayed} == {State.COMPLETED}
    assert (await store.jobs.get(job.job_id)).status is JobStatus.COMPLETED


async def test_a_cron_continues_from_its_last_tick(store: Store, kept: Kept, clock: Clock) -> None:
    last = kept.expected["rest"]["crons"]["nightly"]
    assert await store.crons.tick("nightly", last - 1, clock.now, new("tick")) is None
    assert await store.crons.tick("nightly", last, clock.now, new("tick"))


# How it is opened


async def test_it_is_opened_by_a_process_that_only_joins(unopened: Store, kept: Kept, clock: Clock) -> None:
    await unopened.open(govern=False)
    assert await examine(unopened.connection, clock.now) == []
    await resume_everything(unopened, kept)
    await run_all(unopened, clock)


async def test_it_is_opened_by_several_processes_at_once(
    unopened: Store, open_store: Callable[..., Store], kept: Kept, clock: Clock
) -> None:
    namespace = unopened.connection.keys.namespace
    others = [open_store(namespace=namespace, clock=clock, settings=SETTINGS) for _ in range(3)]
    await asyncio.gather(*(one.open() for one in (unopened, *others)))
    for other in others:
        await other.close()
    assert await examine(unopened.connection, clock.now) == []
    for task_id, expected in kept.tasks.items():
        assert await summary_of_task(unopened, await unopened.get(task_id)) == expected


@pytest.mark.parametrize("key", ["delayed", "holds", "workers"])
async def test_the_pending_writes_of_a_broken_act_are_made_first(
    unopened: Store, clock: Clock, key: str
) -> None:
    kept = await load(unopened, unfinished=key)
    await unopened.open()
    assert await examine(unopened.connection, clock.now) == []
    for task_id, expected in kept.tasks.items():
        assert await summary_of_task(unopened, await unopened.get(task_id)) == expected

"""Jobs in the store: one stage after the other; the act that ends a step also updates its job."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.model.job import JobStatus, NewJob, NewStep
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.settings import Admission, Scheduling, Settings, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, IMAGE, complete, fail, job, later
from tests.store.namespace import claim_one, events, everything, new


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def test_steps_run_one_after_another_and_see_what_came_before(store: Store) -> None:
    submitted = await store.jobs.submit(job(user_id="u", priority="high"))
    assert (submitted.status, submitted.repeated) == (JobStatus.PENDING, False)

    first = await claim_one(store)
    assert (first.task_type, first.job_id, first.step) == ("enhance", submitted.job_id, 0)
    assert (first.priority, first.user_id) == (Priority.HIGH, "u")
    assert first.parameters == {"params": {"prompt": "a robot"}, "context": {}}
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.RUNNING
    await complete(store, first, {"text": "a shiny robot"})

    second = await claim_one(store)
    seen = second.parameters["context"]["step_0_enhance"]
    assert (second.task_type, seen["status"], seen["data"]) == ("chat", "SUCCESS", {"text": "a shiny robot"})
    assert (await store.jobs.get(submitted.job_id)).current_step_index == 1
    await complete(store, second, "once upon a time")

    done = await store.jobs.get(submitted.job_id)
    assert (done.status, done.current_step_index, done.error) == (JobStatus.COMPLETED, 2, None)
    assert done.context["step_1_chat"]["data"] == "once upon a time"
    assert (done.context["step_0_enhance__attempts"], done.context["step_1_chat__attempts"]) == (1, 1)
    assert not (await store.claim("w")).tasks


async def test_the_steps_of_a_job_have_its_weight(store: Store) -> None:
    await store.workers.register("w", capacity=100)
    for _ in range(12):
        await store.jobs.submit(job(ENHANCE, user_id="heavy", weight=2.0))
        await store.jobs.submit(job(ENHANCE, user_id="plain"))
    first = [task.user_id for task in (await store.claim("w", 15)).tasks]
    assert (first.count("heavy"), first.count("plain")) == (10, 5)


async def test_the_answer_of_a_service_is_kept_unchanged(store: Store) -> None:
    submitted = await store.jobs.submit(job(NewStep("llm", "service:llm")))
    await complete(store, await claim_one(store), {"data": {"a": 1}, "metrics": {"model": "v2"}})
    context = (await store.jobs.get(submitted.job_id)).context
    assert context["step_0_llm"] == {"status": "SUCCESS", "data": {"a": 1}, "metrics": {"model": "v2"}}


async def test_steps_of_a_stage_run_side_by_side_and_are_joined(store: Store) -> None:
    submitted = await store.jobs.submit(job(ENHANCE, (CHAT, IMAGE), NewStep("join", "join")))
    await complete(store, await claim_one(store))
    both = (await store.claim("w", 5)).tasks
    assert [task.task_type for task in both] == ["chat", "image"]
    await complete(store, both[1], "image")
    assert not (await store.claim("w")).tasks
    await complete(store, both[0], "chat")
    last = await claim_one(store)
    assert [*last.parameters["context"]] == ["step_0_enhance", "step_1_chat", "step_2_image"]
    assert last.step == 3
    await complete(store, last)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED


async def test_a_step_that_fails_for_good_ends_the_job(store: Store) -> None:
    submitted = await store.jobs.submit(job())
    await fail(store, await claim_one(store))
    failed = await store.jobs.get(submitted.job_id)
    assert failed.status is JobStatus.FAILED
    assert failed.error and (failed.error.code, failed.error.step, failed.error.retryable) == (
        "oops",
        0,
        False,
    )
    with pytest.raises(errors.NotResumable, match=r"step 0 failed for good \(oops: it broke\)"):
        await store.jobs.resume(submitted.job_id)


async def test_a_stage_is_over_when_all_its_steps_are(store: Store) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), IMAGE))
    one, other = (await store.claim("w", 2)).tasks
    await fail(store, one)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.RUNNING
    await complete(store, other, "kept")
    failed = await store.jobs.get(submitted.job_id)
    assert (failed.status, failed.context["step_1_chat"]["data"]) == (JobStatus.FAILED, "kept")


async def test_the_worse_of_two_failures_counts(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), max_wait_seconds=10))
    task = await claim_one(store)
    clock.pass_seconds(11)
    await store.promote()
    await fail(store, task)
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable) == ("oops", False)


@pytest.mark.parametrize("way", ["job", "step"])
async def test_cancelling_a_job_ends_its_waiting_and_running_steps(store: Store, way: str) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), IMAGE))
    running = await claim_one(store)
    if way == "job":
        await store.jobs.cancel(submitted.job_id)
    else:
        await store.cancel(running.task_id)
    cancelled = await store.jobs.get(submitted.job_id)
    assert cancelled.status is JobStatus.CANCELLED
    assert [(await store.get(step.task_id)).status for step in cancelled.steps[:2]] == [State.CANCELLED] * 2
    late = await store.complete("w", Completed(running.task_id, running.fence, "late"))
    assert isinstance(late[0], errors.Fenced)
    assert not (await store.claim("w")).tasks
    await store.jobs.cancel(submitted.job_id)  # again: nothing to do
    with pytest.raises(errors.NotResumable, match="CANCELLED"):
        await store.jobs.resume(submitted.job_id)


async def test_an_ended_job_is_not_cancelled(store: Store) -> None:
    submitted = await store.jobs.submit(job(ENHANCE))
    await complete(store, await claim_one(store))
    with pytest.raises(errors.AlreadyFinished):
        await store.jobs.cancel(submitted.job_id)


async def test_a_late_result_of_an_older_fence_is_refused(store: Store) -> None:
    submitted = await store.jobs.submit(job())
    old = await claim_one(store)
    await store.expire("w")
    await store.workers.register("w", capacity=10)
    await complete(store, await claim_one(store), "newer")
    late = await store.complete("w", Completed(old.task_id, old.fence, "older"))
    assert isinstance(late[0], errors.Fenced)
    assert (await store.jobs.get(submitted.job_id)).context["step_0_enhance"]["data"] == "newer"


async def test_a_repeated_result_moves_the_job_on_once(store: Store) -> None:
    submitted = await store.jobs.submit(job())
    task = await claim_one(store)
    await complete(store, task, 1)
    await complete(store, task, 1)
    assert (await store.jobs.get(submitted.job_id)).current_step_index == 1
    assert len((await store.claim("w", 5)).tasks) == 1


async def test_the_same_key_is_the_same_job(store: Store) -> None:
    first = await store.jobs.submit(job(idempotency_key="k"))
    again = await store.jobs.submit(job(idempotency_key="k"))
    assert (again.job_id, again.repeated) == (first.job_id, True)
    assert len((await store.claim("w", 5)).tasks) == 1
    with pytest.raises(errors.IdempotencyConflict):
        await store.jobs.submit(job(idempotency_key="k", input_data={"prompt": "other"}))
    await store.submit_one(new(idempotency_key="k"))  # a task's keys are its own
    assert (await store.jobs.submit(job(idempotency_key="k", tenant="t"))).job_id != first.job_id


async def test_a_job_whose_steps_cannot_run_is_refused_without_a_trace(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.declare("code", {}, {})
    before = await everything(store)
    for wrong in (
        job(input_data={"x": float("nan")}),
        job(priority="urgent"),
        NewJob(feature_name="a b", stages=[[ENHANCE]]),
        NewJob(feature_name="empty", stages=[]),
        NewJob(feature_name="empty", stages=[[ENHANCE], []]),
        NewJob(feature_name="long", stages=[[ENHANCE]] * 33),
        job(max_wait_seconds=-1),
        job(NewStep("a b", "enhance")),
    ):
        with pytest.raises(errors.InvalidInput):
            await store.jobs.submit(wrong)
    assert await everything(store) == before


async def test_results_of_more_than_a_mebibyte_are_refused_and_nothing_is_lost(store: Store) -> None:
    big = "x" * 250_000
    await store.jobs.submit(job(*[NewStep("s", "s")] * 5))
    for _ in range(4):
        await complete(store, await claim_one(store), big)
    last = await claim_one(store)
    refused = (await store.complete("w", Completed(last.task_id, last.fence, big)))[0]
    assert isinstance(refused, errors.InvalidInput) and refused.code == "too_large"
    await complete(store, last, "small")


async def test_a_started_job_goes_ahead_of_new_ones_of_its_priority(store: Store) -> None:
    await store.limits.set("chat", Slots(limit=1))
    started = await store.jobs.submit(job())
    task = await claim_one(store)
    waiting = [await store.jobs.submit(job(CHAT)) for _ in range(3)]
    urgent = await store.jobs.submit(job(CHAT, priority="high"))
    await complete(store, task)
    order = [(await claim_one(store)).job_id for _ in range(5)]
    assert order == [urgent.job_id, started.job_id, *(one.job_id for one in waiting)]


class TestWithoutStartedFirst:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(scheduling=Scheduling(started_jobs_first=False))

    async def test_then_the_queue_is_fair_and_no_more(self, store: Store) -> None:
        started = await store.jobs.submit(job())
        task = await claim_one(store)
        waiting = await store.jobs.submit(job(CHAT))
        await complete(store, task)
        assert [(await claim_one(store)).job_id for _ in range(2)] == [waiting.job_id, started.job_id]


async def test_a_job_ages_as_a_whole(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job(priority="low"))
    await later(store, clock, 400)
    task = await claim_one(store)
    await later(store, clock, 200)
    await complete(store, task)
    await store.promote()
    aged = await store.jobs.get(submitted.job_id)
    assert (aged.priority, aged.original_priority) == (Priority.MEDIUM, Priority.LOW)
    assert aged.promoted_at == clock.now
    assert (await claim_one(store)).effective_priority is Priority.MEDIUM


async def test_a_step_is_kept_as_long_as_its_job(store: Store) -> None:
    submitted = await store.jobs.submit(job())
    task = await claim_one(store)
    await fail(store, task)
    with pytest.raises(errors.StepOfJob, match=f"step of job {submitted.job_id}, which can be resumed"):
        await store.purge(task.task_id)


async def test_an_unknown_job_is_unknown(store: Store) -> None:
    for act in (store.jobs.get, store.jobs.cancel, store.jobs.resume):
        for wrong in (new().task_id, "{}:*"):
            with pytest.raises(errors.UnknownJob):
                await act(wrong)


async def test_a_full_queue_refuses_jobs_but_not_their_later_steps(open_store: Any) -> None:
    store = open_store(settings=Settings(admission=Admission(max_queued=1)))
    await store.open()
    await store.workers.register("w", capacity=10)
    submitted = await store.jobs.submit(job())
    with pytest.raises(errors.QueueFull):
        await store.jobs.submit(job())
    task = await claim_one(store)
    await store.submit_one(new())
    await complete(store, task)
    assert (await store.jobs.get(submitted.job_id)).current_step_index == 1


async def test_events_of_steps_are_those_of_tasks(store: Store) -> None:
    await store.jobs.submit(job(ENHANCE))
    await complete(store, await claim_one(store))
    assert [event["act"] for event in await events(store)] == ["submit", "claim", "complete"]

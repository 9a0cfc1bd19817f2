"""With the default settings, what a task or a step needs may be down for a minute."""

import pytest

from fairlead.model.job import JobStatus, NewStep
from fairlead.model.reports import Failed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import ServiceSettings, Settings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import complete, job, later
from tests.store.namespace import claim_one, new

OUTAGE_MS = 60_000


@pytest.fixture
def settings() -> Settings:
    return Settings(services={"narrator": ServiceSettings(url="http://127.0.0.1:9000/")})


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def outlive_outage(store: Store, clock: Clock) -> Task:
    """The run that begins after the outage. Until then all fail at once, with the shortest pauses."""
    ends = clock.now + OUTAGE_MS
    while True:
        task = await claim_one(store)
        if clock.now >= ends:
            return task
        report = Failed(task.task_id, task.fence, "unreachable", "is down", retriable=True, jitter=0)
        assert await store.fail("w", report) == [State.DELAYED], f"{ends - clock.now} ms too early"
        run_at = (await store.get(task.task_id)).run_at
        assert run_at
        await later(store, clock, (run_at - clock.now) / 1000)


@pytest.mark.parametrize("priority", ["high", "medium", "low"])
async def test_a_task_completes_after_the_outage(store: Store, clock: Clock, priority: str) -> None:
    submitted = await store.submit_one(new(priority=priority))
    await complete(store, await outlive_outage(store, clock))
    assert (await store.get(submitted.task_id)).status is State.COMPLETED


async def test_a_job_completes_after_an_outage_of_its_service(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job(NewStep("narrator", "service:narrator"), priority="low"))
    await complete(store, await outlive_outage(store, clock))
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED


async def test_the_first_retry_comes_within_a_second(store: Store, clock: Clock) -> None:
    await store.submit_one(new())
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, "busy", "try again", retriable=True, jitter=1000))
    await later(store, clock, 1)
    assert (await claim_one(store)).attempt == 2

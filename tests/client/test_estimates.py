"""Estimates through a gateway: the same values and errors as on the store itself."""

from collections.abc import AsyncIterator

import pytest

from fairlead import DeadlineUnlikely, Fairlead
from fairlead.client.client import Client
from fairlead.clock import now_ms
from fairlead.model.job import NewJob, NewStep
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.store.forecasting import flat, forecast, stop_upkeep


@pytest.fixture
async def app(fl: Fairlead) -> AsyncIterator[Fairlead]:
    async with fl:
        yield fl


@pytest.fixture
async def busy(store: Store) -> Store:
    """A new task waits 60 s by p50, and 90 s by p90."""
    await stop_upkeep(store)
    await store.submit_one(NewTask(task_type="echo"))
    await store.workers.register("w", capacity=1)
    assert (await store.claim("w")).tasks
    await forecast(store, now_ms(), {"1n": flat(60_000, 90_000)})
    return store


async def test_a_handle_has_the_estimate_of_its_submit(busy: Store, app: Fairlead) -> None:
    task = await app.submit("echo")
    assert task.estimate
    assert task.estimate.p90_seconds - task.estimate.p50_seconds == pytest.approx(30)
    assert (await task.get()).estimate_given == task.estimate
    explained = await task.explain()
    assert explained.estimate
    assert 0 < explained.estimate.p50_seconds <= task.estimate.p50_seconds


async def test_watching_a_task_yields_its_estimate(busy: Store, app: Fairlead) -> None:
    task = await app.submit("echo")
    seen = []
    async for message in task.watch():
        seen.append(message["type"])
        if message["type"] == "ESTIMATE":
            await task.cancel()
    assert seen == ["QUEUED", "ESTIMATE", "CANCELLED"]


async def test_a_deadline_that_is_unlikely_is_the_same_error(busy: Store, client: Client) -> None:
    (here,) = await client.submit(NewTask(task_type="echo", deadline_seconds=5))
    (there,) = await busy.submit(NewTask(task_type="echo", deadline_seconds=5))
    for refused in (here, there):
        assert isinstance(refused, DeadlineUnlikely)
        assert 20 < refused.p50_seconds <= 60
        assert refused.p90_seconds - refused.p50_seconds == pytest.approx(30)
        assert abs(refused.at - now_ms()) < 30_000


async def test_a_job_has_no_estimate_before_any_run_has_ended(busy: Store, client: Client) -> None:
    job = NewJob(feature_name="one", stages=[[NewStep("one", "echo")]])
    assert (await client.jobs.get((await busy.jobs.submit(job)).job_id)).estimate is None

"""Jobs from end to end: services over real HTTP, Python steps in a real worker, the real store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.model.job import ENDED, Job, JobStatus, NewJob
from fairlead.pipeline.pipelines import plan, stages_of
from fairlead.settings import Settings, Slots
from fairlead.store.store import Store
from fairlead.worker.services import running_services
from tests.pipeline.servers import GOOD, RawService, Reply, Request, hangs, says
from tests.servers import Server
from tests.waiting import wait_until

Step = dict[str, Any]


def each(**replies: Reply) -> Reply:
    """What each service answers."""

    async def reply(request: Request, writer: asyncio.StreamWriter) -> None:
        await replies[request.body["meta"]["service_name"]](request, writer)

    return reply


@pytest.fixture
async def app(live_store: Store, server: Server, settings: Settings, config: Path) -> AsyncIterator[Fairlead]:
    """Services and two Python steps, both with workers that run."""
    fl = Fairlead(server.url, namespace=settings.engine.namespace, config=config)

    @fl.task
    async def caption(text: str, language: str = "en") -> Step:
        return {"caption": f"{text} ({language})"}

    @fl.task
    async def bind(caption: str, ctx: Context) -> list[Any]:
        assert ctx.job
        return [caption, ctx.job.step, sorted(ctx.job.context)]

    async with fl, fl.worker(), running_services(live_store, settings):
        yield fl


async def submit(app: Fairlead, store: Store, *steps: Any, **options: Any) -> str:
    types = [*app.handlers, *(f"service:{name}" for name in app.store.settings.services)]
    stages = plan("story", stages_of("story", steps), types)
    new = NewJob(feature_name="story", stages=stages, **{"input_data": {"prompt": "a city"}, **options})
    return (await store.jobs.submit(new)).job_id


async def ended(store: Store, job_id: str) -> Job:
    async def has_ended() -> bool:
        return (await store.jobs.get(job_id)).status in ENDED

    await wait_until(has_ended, 40)
    return await store.jobs.get(job_id)


async def test_services_and_functions_work_on_one_job(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    job_id = await submit(app, live_store, "enhancer", ["caption", "painter"], "bind", trace_id="a" * 32)
    job = await ended(live_store, job_id)
    assert job.status is JobStatus.COMPLETED, job
    assert job.context["step_0_enhancer"] == {"status": "SUCCESS", **GOOD}
    assert job.context["step_1_caption"]["data"] == {"caption": "longer (en)"}
    assert job.context["step_2_painter"]["data"] == GOOD["data"]
    assert job.context["step_3_bind"]["data"][:2] == ["longer (en)", 3]
    assert {"step_0_enhancer", "step_1_caption", "step_2_painter"} <= set(
        job.context["step_3_bind"]["data"][2]
    )
    first, second = service.requests
    assert first.body["payload"] == {"params": {"prompt": "a city"}, "context": {}}
    assert second.body["meta"]["step_index"] == 2
    assert second.body["payload"]["context"]["step_0_enhancer"]["data"] == GOOD["data"]
    assert {first.headers["idempotency-key"], second.headers["idempotency-key"]} == {
        f"{job_id}:0",
        f"{job_id}:2",
    }
    assert first.headers["traceparent"].startswith(f"00-{'a' * 32}-")


async def test_a_refusal_of_the_service_fails_the_job_for_good(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    service.reply = says("out of ideas", "500 Internal Server Error")
    job = await ended(live_store, await submit(app, live_store, "enhancer", "caption"))
    assert (job.status, len(service.requests)) == (JobStatus.FAILED, 1)
    assert job.error and (job.error.code, job.error.retryable, job.error.step) == (
        "service_status_500",
        False,
        0,
    )


async def test_a_step_is_tried_as_often_as_its_service_allows(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    service.reply = each(enhancer=says("busy", "503 Service Unavailable"))
    job = await ended(live_store, await submit(app, live_store, "enhancer", "caption"))
    assert job.status is JobStatus.FAILED
    assert job.error and (job.error.code, job.error.retryable) == ("service_status_503", True)
    assert job.context == {"step_0_enhancer__attempts": 3}
    assert [request.body["meta"]["attempt"] for request in service.requests] == [1, 2, 3]
    service.reply = says(GOOD)
    await live_store.jobs.resume(job.job_id)
    job = await ended(live_store, job.job_id)
    assert (job.status, job.context["step_0_enhancer__attempts"]) == (JobStatus.COMPLETED, 1)
    assert [request.body["meta"]["attempt"] for request in service.requests] == [1, 2, 3, 1]


async def test_a_job_that_was_not_started_in_time_resumes_where_it_was(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    await live_store.limits.set("service:painter", Slots(limit=0))
    job_id = await submit(app, live_store, "enhancer", "painter", max_wait_seconds=3)
    job = await ended(live_store, job_id)
    assert job.error and (job.error.code, job.error.retryable, job.error.step) == (
        "RESOURCE_EXHAUSTED",
        True,
        1,
    )
    await live_store.limits.set("service:painter", Slots(limit=1))
    await live_store.jobs.resume(job_id)
    assert (await ended(live_store, job_id)).status is JobStatus.COMPLETED
    assert [request.body["meta"]["service_name"] for request in service.requests] == ["enhancer", "painter"]


async def test_a_step_that_lacks_its_parameter_fails_the_job(app: Fairlead, live_store: Store) -> None:
    job = await ended(live_store, await submit(app, live_store, "bind", "enhancer"))
    assert job.error and (job.error.code, job.error.step) == ("invalid_input", 0)
    assert "missing required field `caption`" in job.error.message


async def test_a_cancelled_job_ends_the_call_that_is_under_way(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    service.reply = hangs
    job_id = await submit(app, live_store, "enhancer", "caption")
    await wait_until(lambda: service.requests)
    await live_store.jobs.cancel(job_id)
    await wait_until(lambda: service.gone == 1, because="the connection is closed")
    assert (await live_store.jobs.get(job_id)).status is JobStatus.CANCELLED


async def test_many_jobs_share_the_limits_of_their_services(
    app: Fairlead, live_store: Store, service: RawService
) -> None:
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    three = asyncio.Event()

    async def counts(request: Request, writer: asyncio.StreamWriter) -> None:
        name = request.body["meta"]["service_name"]
        now[name] = now.get(name, 0) + 1
        most[name] = max(most.get(name, 0), now[name])
        if most["enhancer"] == 3:
            three.set()
        await three.wait()
        await asyncio.sleep(0.005)
        now[name] -= 1
        await says(GOOD)(request, writer)

    service.reply = counts
    jobs = [await submit(app, live_store, "enhancer", "painter", "caption") for _ in range(20)]
    assert {(await ended(live_store, job)).status for job in jobs} == {JobStatus.COMPLETED}
    assert most == {"enhancer": 3, "painter": 1}
    assert len(service.requests) == 40

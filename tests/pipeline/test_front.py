"""Pipelines from Python: declared by an app, run by its name, held by a handle."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import (
    AlreadyFinished,
    Fairlead,
    FairleadError,
    IdempotencyConflict,
    InvalidInput,
    JobCancelled,
    JobFailed,
    NotResumable,
    Parallel,
    UnknownJob,
    UnknownPipeline,
)
from fairlead.model.job import JobStatus
from fairlead.model.priority import Priority
from fairlead.settings import Settings, Slots
from fairlead.store.store import Store
from fairlead.worker.services import running_services
from tests.pipeline.servers import GOOD, RawService, hangs, says
from tests.servers import Server
from tests.waiting import wait_until

NO_JOB = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def fl(live_store: Store, server: Server, settings: Settings, config: Path) -> Fairlead:
    """Two services and three functions in pipelines; no worker runs them yet."""
    fl = Fairlead(server.url, namespace=settings.engine.namespace, config=config)

    @fl.task
    async def caption(text: str, language: str = "en") -> dict[str, str]:
        return {"caption": f"{text} ({language})"}

    @fl.task
    async def count(text: str) -> dict[str, int]:
        return {"letters": len(text)}

    @fl.task
    async def linger() -> None:
        await asyncio.Event().wait()

    fl.pipeline("mixed", ["enhancer", Parallel(caption, "painter", count), "enhancer"])
    fl.pipeline("plain", [caption, [count, "caption"]])
    fl.pipeline("slow", [caption, linger])
    return fl


@pytest.fixture
async def running(fl: Fairlead, live_store: Store, settings: Settings) -> AsyncIterator[Fairlead]:
    async with fl, fl.worker(), running_services(live_store, settings):
        yield fl


# Running


async def test_services_and_functions_one_after_another_and_side_by_side(
    running: Fairlead, service: RawService
) -> None:
    context = await running.run("mixed", {"language": "fr"}, timeout=40)
    assert context["step_0_enhancer"] == {"status": "SUCCESS", **GOOD}
    assert context["step_1_caption"]["data"] == {"caption": "longer (fr)"}
    assert context["step_3_count"]["data"] == {"letters": 6}
    assert sorted(key for key in context if not key.endswith("__attempts")) == [
        "step_0_enhancer",
        "step_1_caption",
        "step_2_painter",
        "step_3_count",
        "step_4_enhancer",
    ]
    last = service.requests[-1].body
    assert (last["meta"]["step_index"], sorted(last["payload"]["context"])[1]) == (4, "step_1_caption")


async def test_a_job_has_the_requested_options(fl: Fairlead) -> None:
    async with fl:
        job = await fl.submit_job(
            "plain", {"text": "a"}, user_id="ann", priority="low", tenant="acme", job_id=NO_JOB
        )
        assert (job.job_id, job.status, job.repeated) == (NO_JOB, JobStatus.PENDING, False)
        known = await job.get()
        assert (known.user_id, known.original_priority, known.tenant) == ("ann", Priority.LOW, "acme")
        assert (known.input_data, known.feature_name) == ({"text": "a"}, "plain")
        assert [(step.name, step.stage) for step in known.steps] == [
            ("caption", 0),
            ("count", 1),
            ("caption", 1),
        ]


async def test_the_same_key_is_the_same_job(fl: Fairlead) -> None:
    async with fl:
        first = await fl.submit_job("plain", {"text": "a"}, idempotency_key="order-7")
        again = await fl.submit_job("plain", {"text": "a"}, idempotency_key="order-7")
        assert (again.job_id, again.repeated) == (first.job_id, True)
        with pytest.raises(IdempotencyConflict):
            await fl.submit_job("plain", {"text": "b"}, idempotency_key="order-7")


async def test_a_failure_is_raised_with_its_step(running: Fairlead, service: RawService) -> None:
    service.reply = says("out of ideas", "500 Internal Server Error")
    with pytest.raises(JobFailed, match="failed at step 0") as caught:
        await running.run("mixed", timeout=40)
    failed = caught.value
    assert (failed.code, failed.retryable, failed.step) == ("service_status_500", False, 0)
    assert "can be resumed" not in failed.message
    with pytest.raises(NotResumable, match="job resume --force"):
        await (await running.get_job(failed.job_id)).resume()


async def test_a_job_without_room_is_resumed(
    running: Fairlead, live_store: Store, service: RawService
) -> None:
    await live_store.limits.set("service:painter", Slots(limit=0))
    job = await running.submit_job("mixed", max_wait_seconds=4)
    with pytest.raises(JobFailed) as caught:
        await job.result(timeout=40)
    assert (caught.value.code, caught.value.step, caught.value.retryable) == ("RESOURCE_EXHAUSTED", 2, True)
    await live_store.limits.set("service:painter", Slots(limit=1))
    assert await job.resume() == ["step_1_caption", "step_3_count"]
    context = await job.result(timeout=40)
    assert (context["step_1_caption__attempts"], context["step_2_painter__attempts"]) == (1, 1)


async def test_a_job_is_cancelled_while_a_service_works_on_it(running: Fairlead, service: RawService) -> None:
    service.reply = hangs
    job = await running.submit_job("mixed")
    waiting = asyncio.create_task(job.result(timeout=40))
    await wait_until(lambda: service.requests)
    await job.cancel()
    with pytest.raises(JobCancelled, match="was cancelled"):
        await waiting
    await wait_until(lambda: service.gone == 1, because="the call is cut off")


async def test_a_job_is_cancelled_while_a_function_works_on_it(running: Fairlead, live_store: Store) -> None:
    job = await running.submit_job("slow", {"text": "a"})
    kinds = []
    async for message in job.watch():
        kinds.append(message["type"])
        if (message["type"], message.get("service_name")) == ("STEP_START", "linger"):
            await job.cancel()
    assert kinds[-1] == "CANCELLED"
    assert (await job.get()).status is JobStatus.CANCELLED

    async def is_idle() -> bool:
        return (await live_store.stats()).workers[0].running == 0

    await wait_until(is_idle)


async def test_an_ended_job_is_not_cancelled(running: Fairlead) -> None:
    job = await running.submit_job("plain", {"text": "a"})
    await job.result(timeout=40)
    with pytest.raises(AlreadyFinished, match="The job is COMPLETED already"):
        await job.cancel()
    with pytest.raises(NotResumable, match="The job is COMPLETED"):
        await job.resume()


# Waiting and watching


async def test_a_wait_times_out_but_the_job_continues(running: Fairlead) -> None:
    with pytest.raises(TimeoutError, match=f"^Job {NO_JOB} has not ended within 0.3 s; it continues.$"):
        await running.run("slow", {"text": "a"}, job_id=NO_JOB, timeout=0.3)
    job = await running.get_job(NO_JOB)
    assert (await job.get()).status in (JobStatus.PENDING, JobStatus.RUNNING)
    await job.cancel()


async def test_a_lost_word_of_the_end_is_looked_for(
    fl: Fairlead, live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.app.handle.JOB_LOOK_SECONDS", 0.05)
    async with fl:
        job = await fl.submit_job("plain", {"text": "a"})
        monkeypatch.setattr(fl.store.live, "_deliver", lambda _: None)  # no event is delivered
        waiting = asyncio.create_task(job.wait(timeout=40))
        await live_store.jobs.cancel(job.job_id)
        assert (await waiting).status is JobStatus.CANCELLED


async def test_the_connection_may_break_while_a_job_is_watched(running: Fairlead, live_store: Store) -> None:
    job = await running.submit_job("slow", {"text": "a"})
    messages: list[dict[str, Any]] = []
    async for message in job.watch():
        messages.append(message)
        if (message["type"], message.get("service_name")) == ("STEP_START", "linger"):
            await live_store.connection.client.client_kill_filter(_type="pubsub")
            await job.cancel()
    assert messages[-1]["type"] == "CANCELLED"
    numbers = [message["seq"] for message in messages]
    assert numbers == sorted(numbers)


async def test_a_job_that_has_ended_is_watched_to_its_end_at_once(running: Fairlead) -> None:
    job = await running.submit_job("plain", {"text": "a"})
    context = await job.result(timeout=40)
    messages = [message async for message in job.watch()]
    assert [message["type"] for message in messages] == ["STEP_COMPLETE"] * 3 + ["JOB_COMPLETE"]
    assert sorted(message["step_index"] for message in messages[:3]) == [0, 1, 2]
    assert messages[-1]["context"] == context


async def test_a_cancelled_watch_leaves_nothing_behind(fl: Fairlead) -> None:
    async with fl:
        job = await fl.submit_job("plain", {"text": "a"})
        messages = job.watch()
        assert (await anext(messages))["type"] == "QUEUED"
        await messages.aclose()
        await job.cancel()


# What cannot be


async def test_an_unknown_name_is_reported(fl: Fairlead) -> None:
    async with fl:
        with pytest.raises(UnknownPipeline, match="there are mixed, plain, slow"):
            await fl.run("mixt")
        for job_id in (NO_JOB, "nonsense"):
            with pytest.raises(UnknownJob):
                await fl.get_job(job_id)


async def test_an_unknown_step_is_refused_when_a_job_is_submitted(fl: Fairlead) -> None:
    fl.pipeline("odd", ["enhancer", "captoin"])
    async with fl:
        with pytest.raises(InvalidInput, match=r"step 'captoin' is neither .* did you mean 'caption'"):
            await fl.submit_job("odd")


def test_two_pipelines_have_two_names(fl: Fairlead) -> None:
    with pytest.raises(InvalidInput, match="there are two named 'plain': rename one of them"):
        fl.pipeline("plain", ["enhancer"])


@pytest.mark.parametrize(
    ("steps", "words"),
    [([], "has no steps"), (["a", []], "has no steps"), ("a", "expected a list"), ([3], "a step is a name")],
)
def test_an_invalid_pipeline_is_refused_at_its_declaration(fl: Fairlead, steps: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fl.pipeline("odd", steps)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pririty": "high"}, "there is no option pririty"),
        ({"priority": "urgent"}, "priority"),
        ({"max_wait_seconds": -1}, "max_wait_seconds"),
        ({"user_id": "x" * 1000}, "user_id"),
    ],
)
async def test_options_that_do_not_fit_are_named(fl: Fairlead, options: Any, words: str) -> None:
    async with fl:
        with pytest.raises(InvalidInput, match=words):
            await fl.submit_job("plain", {"text": "a"}, **options)
        with pytest.raises(InvalidInput, match="input_data"):
            await fl.submit_job("plain", {"text": float("nan")})


async def test_without_a_connection_the_error_says_how_to_connect(fl: Fairlead) -> None:
    with pytest.raises(FairleadError, match="inside `async with fl:`"):
        await fl.run("plain")

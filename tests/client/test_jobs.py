"""Jobs through a gateway: the same front, handle and errors as on the store itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from fairlead import (
    AlreadyFinished,
    Fairlead,
    IdempotencyConflict,
    InvalidInput,
    JobCancelled,
    JobFailed,
    NotResumable,
    StoreUnavailable,
    UnknownJob,
    UnknownPipeline,
)
from fairlead.client.client import Client
from fairlead.client.live import NothingNew, messages_of
from fairlead.model.job import JobStatus, NewJob
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway
from tests.apps import story
from tests.client.answering import answering, finish, losing_answers, nobody_there, read_request
from tests.client.conftest import client_of


@pytest.fixture
async def fl(fl: Fairlead) -> AsyncIterator[Fairlead]:
    """The app of the tour's pipeline, on the gateway; nobody runs its steps yet."""
    place, story.fl.target = story.fl.target, fl.target
    async with story.fl:
        yield story.fl
    story.fl.target = place


async def test_a_pipeline_is_declared_and_run(fl: Fairlead, store: Store) -> None:
    async with fl.worker():
        context = await fl.run("story", {"topic": "Zoë"}, user_id="ann", priority="high", timeout=40)
    assert context["step_3_bind"]["data"] == "a book of 2 pages, with 2 chapters.en.ogg"
    assert context["step_3_bind__attempts"] == 1
    assert await store.jobs.pipelines.get("story") == (("outline",), ("draw", "narrate"), ("bind",))


async def test_a_job_is_the_same_from_here_and_there(fl: Fairlead, store: Store) -> None:
    async with fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"}, user_id="ann", priority="low")
        here = await job.wait(timeout=40)
    there = await store.jobs.get(job.job_id)
    assert here.context == there.context
    for name in ("job_id", "status", "priority", "original_priority", "user_id", "queued_at", "completed_at"):
        assert getattr(here, name) == getattr(there, name)
    assert [(one.key, one.task_id, one.stage, one.attempts) for one in here.steps] == [
        (one.key, one.task_id, one.stage, one.attempts) for one in there.steps
    ]


async def test_a_job_is_watched_to_its_end(fl: Fairlead) -> None:
    job = await fl.submit_job("story", {"topic": "Zoë"})
    async with contextlib.aclosing(job.watch()) as messages, asyncio.timeout(40):
        told = [await anext(messages)]
        async with fl.worker():
            told += [message async for message in messages]
    kinds = [message["type"] for message in told]
    assert (kinds[0], kinds[-1], kinds.count("STEP_COMPLETE")) == ("QUEUED", "JOB_COMPLETE", 4)
    numbers = [message["seq"] for message in told]
    assert numbers == sorted(numbers)
    assert told[-1]["context"] == await job.result()
    again = [message["type"] async for message in job.watch()]
    assert again == ["STEP_COMPLETE"] * 4 + ["JOB_COMPLETE"]


async def test_a_failure_is_told_with_its_step(fl: Fairlead) -> None:
    async with fl.worker():
        with pytest.raises(JobFailed, match="there is nothing to tell") as caught:
            await fl.run("story", {"topic": "nothing"}, timeout=40)
    failed = caught.value
    assert (failed.code, failed.retryable, failed.step) == ("permanent_error", False, 0)
    with pytest.raises(NotResumable, match="failed for good"):
        await (await fl.get_job(failed.job_id)).resume()


async def test_a_job_without_room_is_resumed(fl: Fairlead, store: Store) -> None:
    await store.limits.set("printer", Slots(limit=0))
    async with fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"}, max_wait_seconds=4)
        with pytest.raises(JobFailed, match="it can be resumed"):
            await job.result(timeout=40)
        await store.limits.set("printer", Slots(limit=1))
        assert await job.resume() == []
        assert (await job.result(timeout=40))["step_0_outline__attempts"] == 1


async def test_a_job_is_cancelled(fl: Fairlead) -> None:
    job = await fl.submit_job("story", {"topic": "Zoë"})
    waiting = asyncio.create_task(job.result(timeout=40))
    await job.cancel()
    with pytest.raises(JobCancelled):
        await waiting
    await job.cancel()  # no news
    async with fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"})
        await job.result(timeout=40)
    with pytest.raises(AlreadyFinished, match="The job is COMPLETED already"):
        await job.cancel()


async def test_the_same_key_is_the_same_job(fl: Fairlead) -> None:
    first = await fl.submit_job("story", {"topic": "a"}, idempotency_key="order-7")
    again = await fl.submit_job("story", {"topic": "a"}, idempotency_key="order-7")
    assert (first.repeated, again.repeated, again.job_id) == (False, True, first.job_id)
    with pytest.raises(IdempotencyConflict):
        await fl.submit_job("story", {"topic": "b"}, idempotency_key="order-7")


async def test_what_is_refused_is_refused_as_the_store_does(fl: Fairlead) -> None:
    with pytest.raises(UnknownPipeline, match="there are story"):
        await fl.run("storry")
    with pytest.raises(InvalidInput, match="priority"):
        await fl.submit_job("story", priority="urgent")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="input_data"):
        await fl.submit_job("story", {"topic": float("nan")})
    with pytest.raises(InvalidInput, match="tenant: is that of the key"):
        await fl.submit_job("story", tenant="acme")
    for job_id in (NO_TASK, "nonsense"):
        with pytest.raises(UnknownJob):
            await fl.get_job(job_id)


async def test_a_step_that_nobody_does_is_refused(client: Client) -> None:
    await client.declare("code", {}, {}, {"odd": (("draw",), ("a", "b"))})
    with pytest.raises(InvalidInput, match="step 'draw' is neither a service nor a task type"):
        await client.jobs.submit(NewJob(feature_name="odd"))


async def test_a_submit_whose_answer_was_lost_is_one_job(
    fl: Fairlead, gateway: Gateway, store: Store
) -> None:
    new = NewJob(feature_name="story")
    async with losing_answers(gateway.url, 2) as url, client_of(url) as client:
        assert (await client.jobs.submit(new)).job_id == new.job_id
    assert len((await store.list_tasks()).tasks) == 1  # its first step


async def test_a_cancellation_whose_answer_was_lost_is_asked_for_again(
    fl: Fairlead, gateway: Gateway, store: Store
) -> None:
    job = await fl.submit_job("story")
    async with losing_answers(gateway.url, 1) as url, client_of(url) as client:
        await client.jobs.cancel(job.job_id)
    assert (await store.jobs.get(job.job_id)).status is JobStatus.CANCELLED


async def test_a_line_that_breaks_is_taken_up_where_it_was(fl: Fairlead, gateway: Gateway) -> None:
    async with fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"})
        await job.result(timeout=40)
    asked: list[bytes] = []

    async def cut_short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A stream of events breaks off after two of them, unless it ends soon."""
        request = await read_request(reader)
        host, port = gateway.url.removeprefix("http://").split(":")
        theirs, ours = await asyncio.open_connection(host, int(port))
        ours.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        answer = await theirs.read()
        ours.close()
        if b"/events" in request:
            asked.append(request.split(b" ")[1].rpartition(b"?")[2])
            pieces = answer.split(b"\n\n")
            answer = b"\n\n".join(pieces[:2]) + b"\n\n" if len(pieces) > 3 else answer
        writer.write(answer)
        await finish(writer)

    async with answering(cut_short) as url, client_of(url) as client, asyncio.timeout(40):
        told = [message async for message in client.jobs.watch(await client.jobs.get(job.job_id))]
    assert [message["type"] for message in told] == ["STEP_COMPLETE"] * 4 + ["JOB_COMPLETE"]
    assert asked == [b"after=%d" % seq for seq in (0, told[1]["seq"], told[3]["seq"])]


async def test_who_knows_the_end_is_told_that_there_is_nothing_new(fl: Fairlead, client: Client) -> None:
    job = await fl.submit_job("story")
    await job.cancel()
    last = [message async for message in job.watch()][-1]
    with pytest.raises(NothingNew):
        async for _ in messages_of(client.transport, f"/api/v1/jobs/{job.job_id}/events", last["seq"]):
            raise AssertionError("nothing was to come")


async def test_without_a_gateway_nobody_waits_for_a_job() -> None:
    with nobody_there() as url:
        async with client_of(url) as client:
            with pytest.raises(StoreUnavailable):
                await client.jobs.get(NO_TASK)
            with pytest.raises(StoreUnavailable):
                await client.jobs.submit(NewJob(feature_name="story"))

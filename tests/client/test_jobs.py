"""Jobs through a gateway: the same front, handle and errors as on the store itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

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
from tests.client.answering import answering, finish, losing_answers, read_request, unreachable_url
from tests.client.conftest import client_of


@pytest.fixture
async def fl(fl: Fairlead) -> AsyncIterator[Fairlead]:
    """The app of the tour's pipeline, on the gateway; no worker runs its steps yet."""
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
    assert here.steps == tuple(replace(step, seq=0) for step in there.steps)


async def test_jobs_are_listed_and_explained_from_here_as_there(fl: Fairlead, store: Store) -> None:
    first = await fl.submit_job("story", {"topic": "a"}, user_id="ann")
    second = await fl.submit_job("story", {"topic": "b"}, user_id="bob")
    page = await fl.list_jobs(limit=1)
    assert [job.job_id for job in page.jobs] == [second.job_id]
    rest = await fl.list_jobs(limit=1, cursor=page.next_cursor)
    assert ([job.job_id for job in rest.jobs], rest.next_cursor) == ([first.job_id], "")
    assert [job.job_id for job in (await fl.list_jobs(user_id="ann", status="PENDING")).jobs] == [
        first.job_id
    ]
    assert (await fl.list_jobs(feature_name="poem")).jobs == []
    here, there = await first.explain(), await store.jobs.explain(first.job_id)
    assert [(one.name, replace(one.explanation, at=0)) for one in here.steps] == [
        (one.name, replace(one.explanation, at=0)) for one in there.steps
    ]
    assert here.sentence.startswith("outline: No live worker")
    assert [task.task_type for task in (await fl.list_tasks(limit=5)).tasks] == ["outline", "outline"]
    for listing in (fl.list_jobs, fl.list_tasks):
        with pytest.raises(InvalidInput, match="no option user: use user_id"):
            await listing(user="ann")  # type: ignore[call-arg]


async def test_a_job_is_watched_to_its_end(fl: Fairlead) -> None:
    job = await fl.submit_job("story", {"topic": "Zoë"})
    async with contextlib.aclosing(job.watch()) as messages, asyncio.timeout(40):
        received = [await anext(messages)]
        async with fl.worker():
            received += [message async for message in messages]
    kinds = [message["type"] for message in received]
    assert (kinds[0], kinds[-1], kinds.count("STEP_COMPLETE")) == ("QUEUED", "JOB_COMPLETE", 4)
    numbers = [message["seq"] for message in received]
    assert numbers == sorted(numbers)
    assert received[-1]["context"] == await job.result()
    again = [message["type"] async for message in job.watch()]
    assert again == ["STEP_COMPLETE"] * 4 + ["JOB_COMPLETE"]


async def test_a_failure_is_raised_with_its_step(fl: Fairlead) -> None:
    async with fl.worker():
        with pytest.raises(JobFailed, match="there is nothing to tell") as caught:
            await fl.run("story", {"topic": "nothing"}, timeout=40)
    failed = caught.value
    assert (failed.code, failed.retryable, failed.step) == ("permanent_error", False, 0)
    job = await fl.get_job(failed.job_id)
    with pytest.raises(NotResumable, match="failed for good"):
        await job.resume()
    assert await job.resume(force=True) == []


async def test_steps_that_no_worker_serves_are_warned_about(fl: Fairlead) -> None:
    job = await fl.submit_job("story", {"topic": "Zoë"})
    assert "no worker serves 'outline' yet; it waits until one does" in job.warnings
    await job.cancel()


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


async def test_a_refusal_is_the_same_as_that_of_the_store(fl: Fairlead) -> None:
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


async def test_an_unknown_step_is_refused(client: Client) -> None:
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


async def test_a_cancellation_whose_answer_was_lost_is_repeated(
    fl: Fairlead, gateway: Gateway, store: Store
) -> None:
    job = await fl.submit_job("story")
    async with losing_answers(gateway.url, 1) as url, client_of(url) as client:
        await client.jobs.cancel(job.job_id)
    assert (await store.jobs.get(job.job_id)).status is JobStatus.CANCELLED


async def test_a_broken_connection_is_resumed_where_it_was(fl: Fairlead, gateway: Gateway) -> None:
    async with fl.worker():
        job = await fl.submit_job("story", {"topic": "Zoë"})
        await job.result(timeout=40)
    queries: list[bytes] = []

    async def cut_short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A stream of events breaks off after two of them, unless it ends soon."""
        request = await read_request(reader)
        host, port = gateway.url.removeprefix("http://").split(":")
        theirs, ours = await asyncio.open_connection(host, int(port))
        ours.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
        answer = await theirs.read()
        ours.close()
        if b"/events" in request:
            queries.append(request.split(b" ")[1].rpartition(b"?")[2])
            pieces = answer.split(b"\n\n")
            answer = b"\n\n".join(pieces[:2]) + b"\n\n" if len(pieces) > 3 else answer
        writer.write(answer)
        await finish(writer)

    async with answering(cut_short) as url, client_of(url) as client, asyncio.timeout(40):
        received = [message async for message in client.jobs.watch(await client.jobs.get(job.job_id))]
    assert [message["type"] for message in received] == ["STEP_COMPLETE"] * 4 + ["JOB_COMPLETE"]
    assert queries == [b"after=%d" % seq for seq in (0, received[1]["seq"], received[3]["seq"])]


async def test_a_watcher_that_knows_the_end_receives_nothing_new(fl: Fairlead, client: Client) -> None:
    job = await fl.submit_job("story")
    await job.cancel()
    last = [message async for message in job.watch()][-1]
    with pytest.raises(NothingNew):
        async for _ in messages_of(client.transport, f"/api/v1/jobs/{job.job_id}/events", last["seq"]):
            raise AssertionError("nothing was to come")


async def test_without_a_gateway_calls_for_jobs_fail() -> None:
    with unreachable_url() as url:
        async with client_of(url) as client:
            with pytest.raises(StoreUnavailable):
                await client.jobs.get(NO_TASK)
            with pytest.raises(StoreUnavailable):
                await client.jobs.submit(NewJob(feature_name="story"))

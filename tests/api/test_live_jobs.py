"""Live messages of a job: the same over a socket and as a stream, numbered and in order."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.model.job import NewJob
from fairlead.model.reports import Completed, Failed, Progress
from fairlead.model.task import Task
from fairlead.pipeline.pipelines import submit_job
from fairlead.settings import Slots, TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.store.store import Store
from tests.api.listening import Message, numbers, receive, receive_all, socket, stream, types
from tests.api.requests import wait_in_vain
from tests.api.serving import Gateway
from tests.store.namespace import claim_one

STORY: Stages = (("outline",), ("draw", "narrate"), ("bind",))
TYPES = {name: TaskSettings() for stage in STORY for name in stage}
PROMOTED_AFTER = 3.0  # seconds


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_PROMOTION__LOW_TO_MEDIUM_SECONDS": str(PROMOTED_AFTER)}


@pytest.fixture
async def store(store: Store) -> Store:
    await store.declare("code", TYPES, {}, {"story": STORY, "note": (("outline",), ("bind",))})
    await store.workers.register("w", capacity=9)
    return store


async def submitted(store: Store, feature_name: str = "story", **options: Any) -> str:
    return (await submit_job(store.jobs, NewJob(feature_name=feature_name, **options))).job_id


async def complete(store: Store, task: Task, result: Any = None) -> None:
    await store.complete("w", Completed(task.task_id, task.fence, result))


async def run_all(store: Store) -> None:
    while tasks := (await store.claim("w", 5)).tasks:
        for task in tasks:
            await complete(store, task, task.task_type)


async def by_both(gateway: Gateway, job_id: str, after: int) -> list[list[Message]]:
    """All messages of an ended job, from each."""
    async with socket(gateway, f"/ws/{job_id}?after={after}") as opened:
        by_socket, code = await receive_all(opened)
    assert code == 1000
    async with stream(gateway, job_id, after, of="jobs") as events:
        by_query = [message async for message in events]
    async with stream(gateway, job_id, of="jobs", last_event_id=str(after)) as events:
        by_header = [message async for message in events]
    return [by_socket, by_query, by_header]


async def test_both_send_every_message_once_and_in_order(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store, input_data={"topic": "a cat"})
    async with socket(gateway, f"/ws/{job_id}") as opened, stream(gateway, job_id, of="jobs") as events:
        first = await receive(opened)
        assert [await anext(events)] == first
        assert (types(first), first[0]["status"], first[0]["queue_position"]) == (["QUEUED"], "queued", 1)
        task = await claim_one(store)
        await store.progress("w", Progress(task.task_id, task.fence, 0.5, "half", chunks=["once"]))
        await complete(store, task, {"chapters": 2})
        await run_all(store)
        by_socket, code = await receive_all(opened)
        by_stream = [message async for message in events]
    assert code == 1000
    assert (types(by_stream), numbers(by_stream)) == (types(by_socket), numbers(by_socket))
    assert numbers(by_socket) == sorted(numbers(by_socket))
    assert types(by_socket)[:4] == ["STEP_START", "PROGRESS", "OUTPUT", "STEP_COMPLETE"]
    assert numbers(by_socket)[:4] == [2, 3, 4, 5]
    assert [one["step_index"] for one in by_socket if one["type"] == "STEP_COMPLETE"] == [0, 1, 2, 3]
    step, end = by_socket[-2:]
    assert (step["type"], end["type"], end["seq"]) == ("STEP_COMPLETE", "JOB_COMPLETE", step["seq"] + 1)
    assert end["context"]["step_0_outline"]["data"] == {"chapters": 2}
    assert end["context"] == (await store.jobs.get(job_id)).context
    for message in by_socket:
        assert message["job_id"] == job_id
        if "step_index" in message:
            names = ["outline", "draw", "narrate", "bind"]
            assert (message["service_name"], message["total_steps"]) == (names[message["step_index"]], 4)


async def test_a_client_that_reconnects_gets_the_steps_it_missed_and_then_the_state(
    gateway: Gateway, store: Store
) -> None:
    job_id = await submitted(store)
    await run_all(store)
    whole = (await by_both(gateway, job_id, 0))[0]
    assert types(whole) == ["STEP_COMPLETE"] * 4 + ["JOB_COMPLETE"]
    assert len(set(numbers(whole))) == 5  # the end has its own number
    for known in range(5):
        after = 0 if known == 0 else whole[known - 1]["seq"]
        for received in await by_both(gateway, job_id, after):
            assert received == whole[known:]


async def test_a_client_that_knows_the_end_is_disconnected(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store, "note")
    await run_all(store)
    last = (await store.jobs.get(job_id)).seq
    async with socket(gateway, f"/ws/{job_id}?after={last}") as opened:
        assert await receive_all(opened) == ([], 1000)
    async with httpx.AsyncClient(base_url=gateway.url) as client:
        answer = await client.get(f"/api/v1/jobs/{job_id}/events?after={last}", timeout=30)
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_connection_that_broke_in_the_middle_is_resumed(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store, "note")
    async with stream(gateway, job_id, of="jobs") as events:
        await anext(events)
        await complete(store, await claim_one(store))
        received = [await anext(events) for _ in range(2)]
    assert types(received) == ["STEP_START", "STEP_COMPLETE"]
    await run_all(store)
    for rest in await by_both(gateway, job_id, received[-1]["seq"]):
        assert types(rest) == ["STEP_COMPLETE", "JOB_COMPLETE"]
        assert rest[0]["step_index"] == 1


async def test_a_step_that_waits_for_a_limit_says_for_which(gateway: Gateway, store: Store) -> None:
    await store.declare("code", {"outline": TaskSettings(limits={"pen": 1})}, {"pen": Slots(limit=0)})
    job_id = await submitted(store, "note")
    async with socket(gateway, f"/ws/{job_id}") as opened:
        queued, waiting = await receive(opened, 2)
    assert (queued["type"], waiting["type"], waiting["seq"]) == ("QUEUED", "WAITING", queued["seq"])
    assert [one["limit"] for one in waiting["limits"]] == ["pen"]
    assert waiting["text"] == "Waiting for outline (1/2)"


async def test_a_later_step_that_waits_is_reported_the_same_way(gateway: Gateway, store: Store) -> None:
    await store.declare("code", {"bind": TaskSettings(limits={"pen": 1})}, {"pen": Slots(limit=0)})
    job_id = await submitted(store, "note")
    async with socket(gateway, f"/ws/{job_id}") as opened:
        await receive(opened)
        await complete(store, await claim_one(store))
        messages = await receive(opened, 4)
    assert types(messages) == ["STEP_START", "STEP_COMPLETE", "QUEUED", "WAITING"]
    assert [one["limit"] for one in messages[-1]["limits"]] == ["pen"]
    assert (messages[-1]["step_index"], messages[-1]["text"]) == (1, "Waiting for bind (2/2)")


async def test_a_failure_says_why_and_ends_it(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store)
    async with socket(gateway, f"/ws/{job_id}") as opened:
        await receive(opened)
        await complete(store, await claim_one(store))
        draw, narrate = (await store.claim("w", 5)).tasks
        await store.fail("w", Failed(draw.task_id, draw.fence, "no_ink", "the pen is dry", retriable=False))
        await complete(store, narrate)
        received, code = await receive_all(opened)
    end = received[-1]
    assert (end["type"], end["code"], end["message"], end["retryable"], end["step_index"], code) == (
        "JOB_FAILED",
        "no_ink",
        "the pen is dry",
        False,
        1,
        1000,
    )
    assert "STEP_FAILED" in types(received)
    assert "JOB_COMPLETE" not in types(received)


async def test_a_cancelled_job_sends_cancelled(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store)
    async with socket(gateway, f"/ws/{job_id}") as opened:
        await receive(opened)
        await store.jobs.cancel(job_id)
        received, code = await receive_all(opened)
    assert (types(received), code) == (["CANCELLED"], 1000)


async def test_a_resumed_job_can_be_watched_again(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store, "note", max_wait_seconds=3600)
    async with socket(gateway, f"/ws/{job_id}") as opened:
        await wait_in_vain(store, job_id, 3600)
        failed = (await receive_all(opened))[0][-1]
    assert (failed["type"], failed["code"], failed["retryable"]) == ("JOB_FAILED", "RESOURCE_EXHAUSTED", True)
    await store.jobs.resume(job_id)
    async with socket(gateway, f"/ws/{job_id}?after={failed['seq']}") as opened:
        (again,) = await receive(opened)
        assert again["type"] == "QUEUED"
        assert again["seq"] > failed["seq"]
        await store.jobs.cancel(job_id)


async def test_a_promotion_is_reported_once_for_the_whole_job(gateway: Gateway, store: Store) -> None:
    job_id = await submitted(store, "note", priority="low")
    async with socket(gateway, f"/ws/{job_id}") as opened, asyncio.timeout(40):
        messages = await receive(opened)
        while messages[-1]["type"] != "JOB_PROMOTED":
            messages += await receive(opened)
        assert (messages[-1]["old"], messages[-1]["new"]) == ("low", "medium")
        await store.workers.register("w", capacity=9)
        await run_all(store)  # the second step is as old as the job: no message
        messages += (await receive_all(opened))[0]
    assert types(messages).count("JOB_PROMOTED") == 1
    assert types(messages)[-1] == "JOB_COMPLETE"
    assert numbers(messages) == sorted(numbers(messages))
    assert (await store.jobs.get(job_id)).priority.word == "medium"

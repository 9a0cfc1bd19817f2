"""Messages of a task, over a socket and as a stream: its state first, then every change, numbered."""

from typing import Any

import httpx
import pytest

from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.listening import (
    claim,
    numbers,
    receive,
    receive_all,
    receive_one,
    refused_socket,
    socket,
    stream,
    types,
)
from tests.api.requests import NO_TASK, TASKS
from tests.api.serving import Gateway


async def submit(store: Store, **options: Any) -> str:
    return (await store.submit_one(NewTask(task_type="echo", **options))).task_id


async def test_a_task_from_its_queue_to_its_result(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store, priority="high")
    async with socket(gateway, f"/ws/{task_id}") as opened:
        (first,) = received = await receive(opened)
        assert first.pop("at").endswith("Z")
        assert first == {
            "type": "QUEUED",
            "seq": 1,
            "task_id": task_id,
            "status": "queued",
            "run_at": None,
            "queue_position": 1,
            "effective_priority": "high",
        }
        task = await claim(store)
        await store.progress("w", Progress(task_id, task.fence, 0.5, "half", ["a", {"b": 1}]))
        await store.complete("w", Completed(task_id, task.fence, {"answer": 42}))
        rest, code = await receive_all(opened)
    received += rest
    assert code == 1000
    assert types(received) == ["QUEUED", "STEP_START", "PROGRESS", "OUTPUT", "OUTPUT", "JOB_COMPLETE"]
    assert numbers(received) == [1, 2, 3, 4, 5, 6]
    assert {message["task_id"] for message in received} == {task_id}
    started, progress, one, two, completed = received[1:]
    assert (started["worker_id"], started["fence"]) == ("w", task.fence)
    assert (progress["fraction"], progress["message"]) == (0.5, "half")
    assert [one["chunk"], two["chunk"]] == ["a", {"b": 1}]
    assert completed["result"] == {"answer": 42}


async def test_the_same_as_a_stream_of_events(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    async with stream(gateway, task_id) as events:
        received = [await anext(events)]
        task = await claim(store)
        await store.progress("w", Progress(task_id, task.fence, chunks=["a"]))
        await store.complete("w", Completed(task_id, task.fence, 1))
        received += [message async for message in events]  # it ends by itself
    assert types(received) == ["QUEUED", "STEP_START", "OUTPUT", "JOB_COMPLETE"]
    assert numbers(received) == [1, 2, 3, 4]


async def test_the_messages_of_a_failure(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    async with socket(gateway, f"/ws/{task_id}") as opened:
        await receive_one(opened)
        task = await claim(store)
        await store.fail("w", Failed(task_id, task.fence, "busy", "come back", jitter=0, retry_after_ms=1))
        _, retry = await receive(opened, 2)
        assert (retry["type"], retry["code"], retry["retries"]) == ("RETRY", "busy", 1)
        assert (retry["status"], retry["delay_seconds"]) == ("delayed", 0.5)
        queued = await receive_one(opened)  # when its delay has ended
        assert (queued["type"], queued["status"], queued["queue_position"]) == ("QUEUED", "queued", 1)
        task = await claim(store)
        await store.fail("w", Failed(task_id, task.fence, "broken", "for good", retriable=False))
        (_, failed), code = await receive_all(opened)
    facts = {name: failed[name] for name in ("type", "code", "message", "retryable")}
    assert facts == {"type": "JOB_FAILED", "code": "broken", "message": "for good", "retryable": False}
    assert code == 1000


async def test_a_waiting_task_names_its_limit(gateway: Gateway, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await submit(store, limits={"gpu": 1})
    holder = await claim(store)
    task_id = await submit(store, limits={"gpu": 1})
    async with socket(gateway, f"/ws/{task_id}") as opened:
        queued, waiting = await receive(opened, 2)
        assert (queued["type"], waiting["type"]) == ("QUEUED", "WAITING")
        (limit,) = waiting["limits"]
        assert (limit["limit"], limit["needs"], limit["used"], limit["of"]) == ("gpu", 1, 1, 1)
        await store.complete("w", Completed(holder.task_id, holder.fence))
        task = await claim(store)
        await store.limits.set("gpu", Slots(limit=0))
        await store.release("w", Grant(task_id, task.fence))
        started, released, again = await receive(opened, 3)
        assert types([started, released, again]) == ["STEP_START", "QUEUED", "WAITING"]
        assert (again["limits"][0]["limit"], again["limits"][0]["of"]) == ("gpu", 0)
        await store.cancel(task_id)
        ((cancelled,), code) = await receive_all(opened)
        assert (cancelled["type"], code) == ("CANCELLED", 1000)


async def test_a_worker_that_was_lost_and_one_that_needs_longer(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    async with socket(gateway, f"/ws/{task_id}") as opened:
        await receive_one(opened)
        task = await claim(store)
        await store.extend("w", Grant(task_id, task.fence), 3_600_000)
        await store.expire("w")
        received = await receive(opened, 3)
        assert types(received) == ["STEP_START", "EXTENDED", "QUEUED"]
        assert numbers(received) == [2, 3, 4]
        assert (received[2]["code"], received[2]["crashes"]) == ("worker_lost", 1)


async def test_a_thousand_chunks_come_in_order(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    task = await claim(store)
    async with socket(gateway, f"/ws/{task_id}") as opened, stream(gateway, task_id) as events:
        first = await receive_one(opened)
        assert (first["type"], (await anext(events))["type"]) == ("STEP_START", "STEP_START")
        for start in range(0, 1000, 50):
            await store.progress("w", Progress(task_id, task.fence, chunks=list(range(start, start + 50))))
        await store.complete("w", Completed(task_id, task.fence))
        by_socket, _ = await receive_all(opened)
        by_stream = [message async for message in events]
    for received in (by_socket, by_stream):
        assert [message["chunk"] for message in received[:-1]] == list(range(1000))
        assert numbers(received) == list(range(3, 1004))
        assert received[-1]["type"] == "JOB_COMPLETE"


async def test_an_ended_task_is_reported_at_once(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    await store.cancel(task_id)
    async with socket(gateway, f"/ws/{task_id}") as opened:
        received, code = await receive_all(opened)
    assert (types(received), numbers(received), code) == (["CANCELLED"], [2], 1000)


async def test_the_state_of_a_run_has_its_progress(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    task = await claim(store)
    await store.progress("w", Progress(task_id, task.fence, 0.25, "a quarter"))
    async with socket(gateway, f"/ws/{task_id}") as opened:
        started, progress = await receive(opened, 2)
    assert types([started, progress]) == ["STEP_START", "PROGRESS"]
    assert started["seq"] == progress["seq"] == 3
    assert (progress["fraction"], progress["message"]) == (0.25, "a quarter")


async def test_messages_to_a_socket_that_only_sends_are_ignored(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    async with socket(gateway, f"/ws/{task_id}") as opened:
        await receive_one(opened)
        for nonsense in ("", "{}", "\x00", b"\xff\xfe", '{"cancel": "x"}'):
            await opened.send(nonsense)
        await store.cancel(task_id)
        assert types((await receive_all(opened))[0]) == ["CANCELLED"]


@pytest.mark.parametrize("unknown", [NO_TASK, "nonsense", "x" * 300])
async def test_an_unknown_task_is_refused_before_the_upgrade(
    gateway: Gateway, api: httpx.AsyncClient, unknown: str
) -> None:
    status, problem = await refused_socket(gateway, f"/ws/{unknown}")
    answer = await api.get(f"{TASKS}/{unknown}/events")
    assert (status, problem["code"]) == (answer.status_code, answer.json()["code"]) == (404, "unknown_task")


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "9" * 20])
async def test_an_invalid_number_is_refused(gateway: Gateway, api: httpx.AsyncClient, after: str) -> None:
    status, problem = await refused_socket(gateway, f"/ws/{NO_TASK}?after={after}")
    assert (status, problem["errors"][0]["field"]) == (422, "after")
    answer = await api.get(f"{TASKS}/{NO_TASK}/events", params={"after": after})
    assert answer.json()["errors"][0]["field"] == "after"


async def test_a_last_event_id_that_is_not_a_number_is_refused(
    gateway: Gateway, store: Store, api: httpx.AsyncClient
) -> None:
    path = f"{TASKS}/{await submit(store)}/events"
    for last in ("x", "-1", "1" * 30, "²"):
        answer = await api.get(path, headers={b"last-event-id": last.encode("latin-1")})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "last-event-id")


async def test_there_is_no_other_socket(gateway: Gateway) -> None:
    for path in ("/ws", "/ws/a/b", "/api/v1/tasks"):
        status, problem = await refused_socket(gateway, path)
        assert (status, problem["code"]) == (404, "not_found")


async def test_the_head_of_a_stream_ends_at_once(gateway: Gateway, store: Store) -> None:
    task_id = await submit(store)
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40) as client:
        answer = await client.head(f"{TASKS}/{task_id}/events")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")

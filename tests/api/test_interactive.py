"""Interactive tasks: a socket carries frames both ways, and the task ends with it."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection

from fairlead.model.reports import Completed, Failed, Frame, Grant, Progress
from fairlead.model.task import NewTask, Task
from fairlead.store.store import Store
from tests.api.listening import Message, receive, receive_all, receive_one, refused_socket, say, socket, types
from tests.api.requests import NO_TASK, HttpWorker, good, refused, submit, task
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.waiting import wait_until

TIERS = {"FAIRLEAD_TIERS__FAST": "{ seconds = 30 }", "FAIRLEAD_TIERS__SLOW": "{ seconds = 60, limit = 1 }"}


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return TIERS | {"FAIRLEAD_SERVER__WRITE_SECONDS": "1", "FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}


async def session(store: Store, worker: str = "w", **options: Any) -> Task:
    """An interactive task, which a worker with a single slot runs."""
    await store.workers.register(worker, capacity=1)
    await store.claim(worker, idle=True)
    new = NewTask(task_type="shell", duration="interactive", **options)
    assert (await store.submit_one(new)).status == "executing"
    (started,) = (await store.claim(worker)).tasks
    assert started.task_id == new.task_id
    return started


def grant_of(started: Task) -> Grant:
    return Grant(started.task_id, started.fence)


def path_of(started: Task) -> str:
    return f"/ws/interactive/{started.task_id}"


async def emit(store: Store, started: Task, *frames: Any) -> None:
    (problem,) = await store.progress("w", Progress(started.task_id, started.fence, chunks=frames))
    assert problem is None


async def taken(store: Store, started: Task, count: int) -> list[Frame]:
    frames: list[Frame] = []

    async def all_came() -> bool:
        frames.extend(await store.take_frames("w", grant_of(started), frames[-1].seq if frames else 0))
        return len(frames) >= count

    await wait_until(all_came)
    return frames


async def is_cancelled(store: Store, started: Task) -> bool:
    return (await store.get(started.task_id)).status == "cancelled"


async def left(store: Store, started: Task) -> None:
    """Its client has left: it is cancelled, and its worker confirms."""
    await wait_until(lambda: is_cancelled(store, started))
    await store.release("w", grant_of(started))


async def test_frames_go_both_ways_until_the_task_ends(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    async with socket(gateway, path_of(started)) as opened:
        for frame in ({"key": "a"}, None):
            await say(opened, frame=frame)
        assert await taken(store, started, 2) == [Frame(1, {"key": "a"}), Frame(2, None)]
        await emit(store, started, "one", [2])
        received = await receive(opened, 2)
        assert [(one["type"], one["frame"]) for one in received] == [("FRAME", "one"), ("FRAME", [2])]
        assert received[0]["seq"] + 1 == received[1]["seq"]
        await store.complete("w", Completed(started.task_id, started.fence, "bye"))
        (last,), code = await receive_all(opened)
    assert (last["type"], last["result"], code) == ("JOB_COMPLETE", "bye", 1000)
    assert (await store.get(started.task_id)).status == "completed"


async def test_what_the_handler_said_before_the_client_came_is_sent_first(
    gateway: Gateway, store: Store
) -> None:
    started = await session(store)
    await emit(store, started, "hello", "again")
    async with socket(gateway, path_of(started)) as opened:
        await emit(store, started, "news")
        assert [one["frame"] for one in await receive(opened, 3)] == ["hello", "again", "news"]
        await store.fail("w", Failed(started.task_id, started.fence, "broken", "no more"))
        (last,), _ = await receive_all(opened)
    assert (last["type"], last["code"], last["message"]) == ("JOB_FAILED", "broken", "no more")


async def test_a_task_that_has_ended_says_so_at_once(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    await emit(store, started, "last words")
    await store.complete("w", Completed(started.task_id, started.fence, 1))
    async with socket(gateway, path_of(started)) as opened:
        messages, code = await receive_all(opened)
    assert (types(messages), code) == (["FRAME", "JOB_COMPLETE"], 1000)


async def test_the_task_ends_when_its_client_leaves(gateway: Gateway, store: Store) -> None:
    for leave in ("close", "abort"):
        started = await session(store)
        async with socket(gateway, path_of(started)) as opened:
            await emit(store, started, "here")
            await receive_one(opened)
            await opened.close() if leave == "close" else opened.transport.abort()
        await left(store, started)


async def test_a_waiting_task_halts_it_and_the_client_learns_why(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    async with socket(gateway, path_of(started)) as opened:
        await store.submit_one(NewTask(task_type="shell"))
        (last,), code = await receive_all(opened)
    assert (last["type"], last["code"], code) == ("CANCELLED", "HALTED", 1000)
    assert "needed the slot" in last["message"]
    await store.release("w", grant_of(started))


async def test_one_client_at_a_time(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    async with socket(gateway, path_of(started)) as opened:
        status, problem = await refused_socket(gateway, path_of(started))
        assert (status, problem["code"]) == (409, "session_taken")
        await emit(store, started, "still yours")
        assert (await receive_one(opened))["frame"] == "still yours"
    await left(store, started)


async def test_a_client_whose_server_vanished_makes_room_in_time(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    await store.attach(started.task_id, "vanished", 1)

    async def connects() -> bool:
        with contextlib.suppress(AssertionError):
            await refused_socket(gateway, path_of(started))
            return False
        return True

    await wait_until(connects)
    await left(store, started)


async def test_a_handler_that_does_not_read_holds_its_client_up(gateway: Gateway, store: Store) -> None:
    """64 frames wait in the store, a few more on the way; the rest stay with the client."""
    started, count = await session(store), 150
    async with socket(gateway, path_of(started)) as opened:
        sending = asyncio.create_task(send_all(opened, count))

        async def is_full() -> bool:
            frames = store.connection.keys.key("frames", started.task_id)
            return bool(await store.connection.client.llen(frames) == 64)

        await wait_until(is_full)
        frames = await taken(store, started, count)
        assert [frame.seq for frame in frames] == [*range(1, count + 1)]
        assert [frame.frame for frame in frames] == [*range(count)]
        await sending
    await left(store, started)


async def send_all(opened: ClientConnection, count: int) -> None:
    for number in range(count):
        await say(opened, frame=number)


async def test_the_task_can_end_while_its_client_is_held_up(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    for number in range(64):
        await store.send_frame(started.task_id, number)
    async with socket(gateway, path_of(started)) as opened:
        await send_all(opened, 3)
        await store.complete("w", Completed(started.task_id, started.fence, 1))
        messages, code = await receive_all(opened)
    assert (types(messages), code) == (["JOB_COMPLETE"], 1000)


async def test_a_message_that_is_no_frame_is_refused_and_the_socket_stays(
    gateway: Gateway, store: Store
) -> None:
    started = await session(store)
    async with socket(gateway, path_of(started)) as opened:
        for said, code, field in (
            ("no json", "malformed_json", None),
            ("{}", "invalid_input", "frame"),
            ('{"frame": 1, "more": 2}', "invalid_input", "more"),
            ('{"frame": "%s"}' % ("x" * 65_536), "too_large", "frame"),
        ):
            await opened.send(said)
            message = await receive_one(opened)
            problem: Message = message["problem"]
            assert (message["type"], problem["code"]) == ("ERROR", code)
            assert [one["field"] for one in problem.get("errors", [])] == ([field] if field else [])
        await say(opened, frame="fine")
        assert await taken(store, started, 1) == [Frame(1, "fine")]
    await left(store, started)


async def test_a_client_that_does_not_read_is_cut_off(gateway: Gateway, store: Store) -> None:
    started = await session(store)
    async with socket(gateway, path_of(started), max_queue=1, close_timeout=0.1) as opened:
        opened.transport.pause_reading()
        bulk = ["x" * 60_000] * 16

        async def is_over() -> bool:
            await store.progress("w", Progress(started.task_id, started.fence, chunks=bulk))
            return await is_cancelled(store, started)

        await wait_until(is_over)
        opened.transport.abort()
    await store.release("w", grant_of(started))


async def test_other_tasks_have_no_such_socket(gateway: Gateway, store: Store) -> None:
    other = (await store.submit_one(NewTask(task_type="echo"))).task_id
    status, problem = await refused_socket(gateway, f"/ws/interactive/{other}")
    assert (status, problem["code"]) == (409, "not_interactive")
    status, problem = await refused_socket(gateway, f"/ws/interactive/{NO_TASK}")
    assert (status, problem["code"]) == (404, "unknown_task")
    assert (await store.get(other)).status == "queued"


async def test_a_server_that_stops_ends_the_task(live_store: Store, server: Server, tmp_path: Path) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path, env=TIERS) as gateway:
        # the settings of the server are those of the namespace
        async with Store.connect(server.url, gateway.namespace, gateway.settings) as store:
            started = await session(store)
            async with socket(gateway, path_of(started)) as opened:
                await emit(store, started, "here")
                await receive_one(opened)
                gateway.process.terminate()
                assert (await receive_all(opened))[1] == 1012
            await gateway.ended()
            assert await is_cancelled(store, started)
            await store.release("w", grant_of(started))


# Over HTTP alone


async def test_a_worker_over_http_runs_it(api: httpx.AsyncClient, gateway: Gateway, store: Store) -> None:
    """It waits in a poll, which the submit ends."""
    worker = await HttpWorker.register(api, capacity=1)
    polling = asyncio.create_task(worker.poll_one(wait_seconds=30))

    async def is_idle() -> bool:
        return bool(
            await store.connection.client.hexists(store.connection.keys.key("worker", worker.id), "idle")
        )

    await wait_until(is_idle)
    started = await submit(api, duration="interactive")
    assert started["status"] == "executing"
    mine = await polling
    assert (mine["task_id"], mine["interactive"], mine["tier"]) == (started["task_id"], True, None)
    async with socket(gateway, f"/ws/interactive/{mine['task_id']}") as opened:
        await say(opened, frame={"line": "1 + 1"})
        called = good(await worker.post("wait", wait_seconds=20))["called"]
        while called == "room":  # what ended its poll
            called = good(await worker.post("wait", wait_seconds=20))["called"]
        assert called == f"frames:{mine['task_id']}"
        of_run = {"task_id": mine["task_id"], "fence": mine["fence"]}
        frames = good(await worker.post("frames", **of_run))["frames"]
        assert frames == [{"seq": 1, "frame": {"line": "1 + 1"}}]
        assert good(await worker.post("frames", **of_run, after=1))["frames"] == []
        refused(await worker.post("frames", **of_run | {"fence": mine["fence"] + 1}), 409, "fenced")
        good(await worker.post("progress", reports=[{**of_run, "output": ["2"]}]))
        assert (await receive_one(opened))["frame"] == "2"
        good(await worker.complete(mine, "done"))
        assert types((await receive_all(opened))[0]) == ["JOB_COMPLETE"]


async def test_there_is_no_queue_for_it(api: httpx.AsyncClient, store: Store) -> None:
    refused(
        await api.post("/api/v1/tasks", json={"task_type": "x", "duration": "interactive"}),
        409,
        "no_capacity",
    )
    started = await session(store)
    refused(
        await api.post("/api/v1/tasks", json={"task_type": "x", "duration": "interactive"}),
        409,
        "no_capacity",
    )
    await store.complete("w", Completed(started.task_id, started.fence))
    assert (await store.stats()).queues["medium"].depth == 0


async def test_frames_can_be_posted(api: httpx.AsyncClient, store: Store) -> None:
    started = await session(store)
    address = f"/api/v1/tasks/{started.task_id}/frames"
    assert good(await api.post(address, json={"frame": [1]}), 201) == {"seq": 1}
    for number in range(63):
        await store.send_frame(started.task_id, number)
    answer = await api.post(address, json={"frame": "one too many"})
    refused(answer, 429, "frames_full")
    assert answer.headers["retry-after"] == "1"
    refused(await api.post(address, json={"frame": "x" * 65_536}), 413, "too_large", "frame")
    await store.complete("w", Completed(started.task_id, started.fence))
    refused(await api.post(address, json={"frame": 1}), 409, "already_finished")
    other = (await submit(api))["task_id"]
    refused(await api.post(f"/api/v1/tasks/{other}/frames", json={"frame": 1}), 409, "not_interactive")
    assert (await task(api, other))["status"] == "queued"


@pytest.mark.parametrize(
    "option",
    [
        {"delay_seconds": 1},
        {"run_at": "2090-01-01T00:00:00Z"},
        {"max_wait_seconds": 1},
        {"max_retries": 1},
    ],
    ids=lambda option: next(iter(option)),
)
async def test_what_it_cannot_have(api: httpx.AsyncClient, option: dict[str, Any]) -> None:
    body = {"task_type": "x", "duration": "interactive"} | option
    refused(await api.post("/api/v1/tasks", json=body), 422, "invalid_input", *option)

"""Tasks submitted over a socket: reported there, cancelled there, and cancelled when their client leaves."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from fairlead.model.reports import Completed
from fairlead.model.task import NewTask
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.listening import Message, claim, receive, receive_all, receive_one, say, socket, types
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway, serving
from tests.faults.restarts import durable
from tests.servers import Server
from tests.waiting import wait_until

SUBMIT = "/ws/tasks"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__WRITE_SECONDS": "1"}


async def submit(opened: ClientConnection, **options: Any) -> Message:
    """Once its state has come too."""
    await say(opened, task_type="echo", **options)
    submitted, queued = await receive(opened, 2)
    assert (submitted["type"], queued["type"], queued["seq"]) == ("SUBMITTED", "QUEUED", 1)
    assert queued["task_id"] == submitted["task_id"]
    return submitted


async def status_of(store: Store, task_id: str) -> str:
    return (await store.get(task_id)).status


async def test_a_client_receives_messages_of_every_task_it_submitted(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        one = await submit(opened, ref={"my": 1}, priority="high", parameters={"n": 1})
        two = await submit(opened, ref=[2])
        assert (one["ref"], two["ref"], one["repeated"]) == ({"my": 1}, [2], False)
        assert (one["priority"], one["queue_position"], two["queue_position"]) == ("high", 1, 2)
        first, second = await claim(store), await claim(store)
        assert (first.task_id, first.parameters) == (one["task_id"], {"n": 1})
        await store.complete("w", Completed(second.task_id, result=2), Completed(first.task_id, result=1))
        received = await receive(opened, 4)
        for task, result in ((one, 1), (two, 2)):
            its = [message for message in received if message["task_id"] == task["task_id"]]
            assert types(its) == ["STEP_START", "JOB_COMPLETE"]
            assert its[1]["result"] == result
        await submit(opened)  # the socket stays, for more


async def test_the_same_idempotency_key_is_one_task(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        first = await submit(opened, idempotency_key="k")
        await say(opened, task_type="echo", idempotency_key="k", ref=2)
        again = await receive_one(opened)
        assert (again["type"], again["task_id"], again["repeated"]) == ("SUBMITTED", first["task_id"], True)
        await say(opened, cancel=first["task_id"])
        assert sorted(types(await receive(opened, 2))) == ["ACCEPTED", "CANCELLED"]  # it is reported once


async def test_a_repeated_key_of_a_forgotten_task_is_answered_and_the_socket_stays(
    gateway: Gateway, store: Store
) -> None:
    async with socket(gateway, SUBMIT) as opened:
        first = await submit(opened, idempotency_key="k")
        await say(opened, cancel=first["task_id"])
        await receive(opened, 2)
        await store.connection.client.delete(store.connection.keys.key("task", first["task_id"]))
        await say(opened, task_type="echo", idempotency_key="k", ref=2)
        again = await receive_one(opened)
        assert (again["type"], again["task_id"], again["status"]) == (
            "SUBMITTED",
            first["task_id"],
            "cancelled",
        )
        await submit(opened)


BAD: dict[str, tuple[str | bytes, str, list[str] | None]] = {
    "no JSON": ("nonsense", "malformed_json", []),
    "bytes": (b"\xff\xfe", "malformed_json", []),
    "too deep": ("[" * 50_000, "malformed_json", []),
    "no object": ("[1]", "invalid_input", ["message"]),
    "no type": ("{}", "invalid_input", ["task_type"]),
    "an unknown field": ('{"task_type": "echo", "pririty": "high"}', "invalid_input", ["pririty"]),
    "no flag": (
        '{"task_type": "echo", "cancel_on_disconnect": 1}',
        "invalid_input",
        ["cancel_on_disconnect"],
    ),
    "no such limit": ('{"task_type": "echo", "limits": {"nope": 1}}', "unknown_limit", ["limits.nope"]),
    "cancel of nothing": (json.dumps({"cancel": NO_TASK}), "unknown_task", []),
    "cancel of no id": ('{"cancel": 7}', "invalid_input", ["cancel"]),
    "two things at once": (json.dumps({"cancel": NO_TASK, "task_type": "echo"}), "invalid_input", None),
}


@pytest.mark.parametrize("case", BAD)
async def test_nonsense_is_refused_and_the_socket_stays(gateway: Gateway, store: Store, case: str) -> None:
    sent, code, fields = BAD[case]
    async with socket(gateway, SUBMIT) as opened:
        await opened.send(sent)
        refusal = await receive_one(opened)
        assert (refusal["type"], refusal["ref"], refusal["problem"]["code"]) == ("ERROR", None, code)
        if fields is not None:
            assert [one["field"] for one in refusal["problem"].get("errors", [])] == fields
        await submit(opened)


async def test_a_refusal_names_what_it_answers(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        await say(opened, ref="r-1", task_type="no such type!")
        refusal = await receive_one(opened)
        assert (refusal["type"], refusal["ref"]) == ("ERROR", "r-1")


async def test_a_message_that_is_too_large_ends_it(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        await opened.send("x" * (256 * 1024 + 1))
        assert await receive_all(opened) == ([], 1009)


async def test_a_task_is_cancelled_over_the_socket(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        task_id = (await submit(opened))["task_id"]
        await say(opened, cancel=task_id, ref=1)
        received = {message["type"]: message for message in await receive(opened, 2)}
        assert received["ACCEPTED"]["ref"] == 1
        assert received["CANCELLED"]["task_id"] == task_id
        await say(opened, cancel=task_id)
        await say(opened, cancel=NO_TASK)
        one, two = await receive(opened, 2)
        assert (one["type"], two["problem"]["code"]) == ("ACCEPTED", "unknown_task")


async def test_tasks_are_cancelled_with_a_client_that_requested_it(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        runs = (await submit(opened, cancel_on_disconnect=True))["task_id"]
        await claim(store)
        waits = (await submit_beside(opened, cancel_on_disconnect=True))["task_id"]
        stays = (await submit_beside(opened))["task_id"]
    for task_id in (runs, waits):
        await wait_until(lambda one=task_id: _is(store, one, "cancelled"))  # type: ignore[misc]
    assert await status_of(store, stays) == "queued"


async def test_an_ended_task_is_left_unchanged(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        done = (await submit(opened, cancel_on_disconnect=True))["task_id"]
        waits = (await submit(opened, cancel_on_disconnect=True))["task_id"]
        task = await claim(store)
        await store.complete("w", Completed(task.task_id, task.fence))
        assert types(await receive(opened, 2)) == ["STEP_START", "JOB_COMPLETE"]
    await wait_until(lambda: _is(store, waits, "cancelled"))
    assert await status_of(store, done) == "completed"


async def test_a_client_whose_connection_is_cut_has_left_too(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        task_id = (await submit(opened, cancel_on_disconnect=True))["task_id"]
        opened.transport.abort()
        await wait_until(lambda: _is(store, task_id, "cancelled"))


async def test_a_client_that_goes_while_it_is_answered_leaves_no_task_behind(
    gateway: Gateway, store: Store
) -> None:
    async with socket(gateway, SUBMIT) as opened:
        for _ in range(20):
            await say(opened, task_type="echo", cancel_on_disconnect=True)
        await receive_one(opened)  # the first is accepted, others are under way
        opened.transport.abort()

    async def none_is_left() -> bool:
        stats = await store.stats()
        return sum(queue.depth for queue in stats.queues.values()) == 0

    await wait_until(none_is_left)


async def test_a_server_that_stops_takes_the_tasks_along(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        async with socket(gateway, SUBMIT) as opened:
            task_id = (await submit(opened, cancel_on_disconnect=True))["task_id"]
            stays = (await submit(opened))["task_id"]
            gateway.process.terminate()
            assert (await receive_all(opened))[1] == 1012
        await gateway.ended()
    assert await status_of(live_store, task_id) == "cancelled"
    assert await status_of(live_store, stays) == "queued"


async def test_a_client_that_leaves_while_the_store_is_down(tmp_path: Path) -> None:
    with durable() as engine:
        await engine.start()
        with serving(engine.url, "default", tmp_path) as gateway:
            async with socket(gateway, SUBMIT) as opened:
                task_id = (await submit(opened, cancel_on_disconnect=True))["task_id"]
                engine.kill()
            await engine.start()
            async with Store.connect(engine.url) as store:
                await wait_until(lambda: _is(store, task_id, "cancelled"))
                assert not await examine(store.connection)


async def test_a_server_that_is_killed_leaves_them(live_store: Store, server: Server, tmp_path: Path) -> None:
    """As documented: no process is left that could know."""
    with (
        pytest.raises(AssertionError),
        serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway,
    ):
        async with socket(gateway, SUBMIT) as opened:
            task_id = (await submit(opened, cancel_on_disconnect=True))["task_id"]
            os.kill(gateway.process.pid, signal.SIGKILL)
            await receive_all(opened)
    assert await status_of(live_store, task_id) == "queued"


async def test_a_socket_watches_a_hundred_tasks(gateway: Gateway, store: Store) -> None:
    async with socket(gateway, SUBMIT) as opened:
        for _ in range(100):
            await say(opened, task_type="echo")
        received = await receive(opened, 200)
        ids = [message["task_id"] for message in received if message["type"] == "SUBMITTED"]
        assert len(set(ids)) == 100
        await say(opened, task_type="echo", ref=101)
        refusal = await receive_one(opened)
        assert (refusal["ref"], refusal["problem"]["code"]) == (101, "too_many_watched")
        await store.cancel(ids[0])
        assert (await receive_one(opened))["type"] == "CANCELLED"
        await wait_until(lambda: _can_submit(opened))


async def test_a_client_that_submits_and_does_not_read_is_cut_off(gateway: Gateway, store: Store) -> None:
    """It goes as any other: what it wanted to take along is taken along."""
    task = NewTask(task_type="big")
    await store.submit_one(task)
    async with socket(gateway, SUBMIT, max_queue=1, close_timeout=0.1) as opened:
        await submit(opened, cancel_on_disconnect=True)
        opened.transport.pause_reading()
        bulk = "x" * 60_000
        sending = asyncio.create_task(_send_forever(opened, bulk))

        async def all_are_cancelled() -> bool:
            return (await store.stats()).queues["medium"].depth == 1  # that of another client

        await wait_until(all_are_cancelled)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        opened.transport.abort()
    assert await status_of(store, task.task_id) == "queued"


async def _send_forever(opened: ClientConnection, ref: str) -> None:
    """Each is refused with what it brought: that is more than fits into a line nobody reads."""
    while True:
        await say(opened, ref=ref, task_type="no such type!")


async def _can_submit(opened: ClientConnection) -> bool:
    await say(opened, task_type="echo")
    return bool((await receive_one(opened))["type"] == "SUBMITTED")


async def submit_beside(opened: ClientConnection, **options: Any) -> Message:
    """While messages of other tasks arrive too."""
    await say(opened, task_type="echo", **options)
    while True:
        message = await receive_one(opened)
        if message["type"] == "SUBMITTED":
            return message


async def _is(store: Store, task_id: str, status: str) -> bool:
    return await status_of(store, task_id) == status

"""The workers of the examples, in other languages: they run tasks, obey, and finish what they run."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.requests import TASKS, good, submit, task
from tests.api.serving import Gateway, serving
from tests.programs import need
from tests.servers import Server, free_port
from tests.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = ("node", str(EXAMPLES / "node_worker" / "worker.mjs"))
SHELL = ("sh", str(EXAMPLES / "shell_worker" / "worker.sh"))


@contextlib.asynccontextmanager
async def working(gateway: Gateway, *command: str, key: str = "") -> AsyncIterator[Process]:
    """Once it polls; it must end by itself on a signal."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "FAIRLEAD_URL": gateway.url, "FAIRLEAD_KEY": key},
        start_new_session=True,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(30):
            assert b"polls" in await process.stdout.readline()
        yield process
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def printed(worker: Process, words: str) -> None:
    assert worker.stdout
    async with asyncio.timeout(40):
        while words.encode() not in await worker.stdout.readline():
            pass


async def ended(api: httpx.AsyncClient, task_id: str, status: str) -> dict[str, Any]:
    async def reached() -> bool:
        return bool((await task(api, task_id))["status"] == status)

    await wait_until(reached, 40, f"it is {status}")
    return await task(api, task_id)


async def test_the_worker_in_node_runs_tasks_at_the_same_time(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    need("node")
    async with working(gateway, *NODE):
        texts = ["stressed", "", "ab", "€é"]
        given = [await submit(api, "reverse", parameters={"text": text}) for text in texts]
        results = [(await ended(api, one["task_id"], "completed"))["result"] for one in given]
        assert results == [{"text": text[::-1]} for text in texts]


async def test_the_worker_in_node_stops_cancelled_and_overdue_tasks(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    need("node")
    async with working(gateway, *NODE):
        long = await submit(api, "sleep", parameters={"seconds": 600})
        late = await submit(api, "sleep", parameters={"seconds": 600}, timeout_seconds=0.2, max_retries=0)
        await ended(api, long["task_id"], "executing")
        assert (await ended(api, late["task_id"], "dead_letter"))["error"]["code"] == "timeout"
        good(await api.delete(f"{TASKS}/{long['task_id']}"))

        async def has_stopped() -> bool:
            return (await store.stats()).used_capacity == 0

        await wait_until(has_stopped, 40, "the worker has stopped it")


async def test_the_worker_in_node_finishes_what_it_runs(api: httpx.AsyncClient, gateway: Gateway) -> None:
    need("node")
    async with working(gateway, *NODE) as process:
        given = await submit(api, "sleep", parameters={"seconds": 4})
        await ended(api, given["task_id"], "executing")
        process.terminate()
        assert (await ended(api, given["task_id"], "completed"))["result"] == {"slept": 4}
        async with asyncio.timeout(30):
            await process.wait()  # it ends by itself: a second signal might reach it on its way out


async def test_the_worker_in_shell_runs_tasks_one_after_the_other(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    need("jq", "curl")
    async with working(gateway, *SHELL):
        given = [await submit(api, "shout", parameters={"text": text}) for text in ("hello", 'a "b" $c')]
        results = [(await ended(api, one["task_id"], "completed"))["result"] for one in given]
        assert results == [{"text": "HELLO"}, {"text": 'A "B" $C'}]


async def test_the_worker_in_shell_reports_what_it_cannot_run(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    need("jq", "curl")
    async with working(gateway, *SHELL):
        number = await submit(api, "shout", parameters={"text": 5})
        assert "must be a string" in (await ended(api, number["task_id"], "failed"))["error"]["message"]
        text = await submit(api, "shout", parameters={"text": "still here"})
        assert (await ended(api, text["task_id"], "completed"))["result"] == {"text": "STILL HERE"}


@pytest.mark.parametrize("command", [NODE, SHELL], ids=["node", "shell"])
async def test_they_repeat_a_report_until_the_gateway_is_back(
    command: tuple[str, ...], live_store: Store, server: Server, tmp_path: Path
) -> None:
    need("node", "jq", "curl")
    namespace, port = live_store.connection.keys.namespace, free_port()
    # on a busy machine the test itself needs some of these seconds
    new = NewTask(task_type="sleep", parameters={"seconds": 5})

    async def has(status: str) -> bool:
        return (await live_store.get(new.task_id)).status == status

    async with contextlib.AsyncExitStack() as stack:
        with pytest.raises(AssertionError), serving(server.url, namespace, tmp_path, port=port) as gateway:
            worker = await stack.enter_async_context(working(gateway, *command))
            await live_store.submit(new)
            await printed(worker, "runs")  # before that, the reply to its poll may be under way
            gateway.process.kill()
        assert await has("executing")
        await printed(worker, "/result: ")
        with serving(server.url, namespace, tmp_path, port=port):
            await wait_until(lambda: has("completed"), 40, "it is reported")
            await stack.aclose()
    found = await live_store.get(new.task_id)
    assert (found.attempt, found.crash_count, found.retry_count) == (1, 0, 0)


@pytest.mark.parametrize("command", [NODE, SHELL], ids=["node", "shell"])
async def test_they_leave(
    command: tuple[str, ...], api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    need("node", "jq", "curl")
    async with working(gateway, *command):
        assert [one.state for one in (await store.stats()).workers] == ["active"]
    assert (await store.stats()).workers == []


@pytest.mark.parametrize("command", [NODE, SHELL], ids=["node", "shell"])
async def test_they_register_again_when_they_were_given_up(
    command: tuple[str, ...], api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    need("node", "jq", "curl")
    async with working(gateway, *command):
        (given_up,) = (await store.stats()).workers
        await store.expire(given_up.worker_id)
        given = await submit(api, "sleep", parameters={"seconds": 0})
        assert (await ended(api, given["task_id"], "completed"))["assigned_worker_id"] != given_up.worker_id


@pytest.mark.parametrize("command", [NODE, SHELL], ids=["node", "shell"])
async def test_they_stop_when_an_operator_drains_them(
    command: tuple[str, ...], api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    need("node", "jq", "curl")
    async with working(gateway, *command) as process:
        (worker,) = (await store.stats()).workers
        good(await api.post(f"/api/v1/workers/{worker.worker_id}/drain"))
        async with asyncio.timeout(30):
            assert await process.wait() == 0


async def test_the_worker_in_shell_takes_its_heartbeats_with_it(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    """A task whose worker was killed must not keep its lease."""
    need("jq", "curl")
    namespace, env = live_store.connection.keys.namespace, {"FAIRLEAD_WORKER__HEARTBEAT_SECONDS": "1"}
    new = NewTask(task_type="sleep", parameters={"seconds": 600})

    async def has(status: str) -> bool:
        return (await live_store.get(new.task_id)).status == status

    with serving(server.url, namespace, tmp_path, env=env) as gateway, contextlib.suppress(AssertionError):
        async with working(gateway, *SHELL) as worker:
            await live_store.submit(new)
            await wait_until(lambda: has("executing"), 40, "it runs")
            first = (await live_store.get(new.task_id)).lease_until or 0

            async def renewed() -> bool:
                return ((await live_store.get(new.task_id)).lease_until or 0) > first

            await wait_until(renewed, 40, "a heartbeat has come")
            worker.kill()
            await wait_until(lambda: has("queued"), 40, "its lease has expired")
    assert await has("queued")


async def test_they_send_their_key(live_store: Store, server: Server, tmp_path: Path) -> None:
    need("node", "jq", "curl")
    key = (await live_store.api_keys.create("worker", ["worker"])).key_text
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        async with working(gateway, *NODE, key=key), working(gateway, *SHELL, key=key):
            assert len((await live_store.stats()).workers) == 2

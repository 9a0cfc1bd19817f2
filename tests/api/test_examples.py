"""The workers of the examples, in other languages: they run tasks, obey, and finish what they run."""

import asyncio
import contextlib
import os
import shutil
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import TASKS, good, submit, task
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
NODE = ("node", str(EXAMPLES / "node_worker" / "worker.mjs"))
SHELL = ("sh", str(EXAMPLES / "shell_worker" / "worker.sh"))


def need(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            if os.environ.get("CI"):
                pytest.fail(f"no {program}: install it")
            pytest.skip(f"no {program} on this machine")


@contextlib.asynccontextmanager
async def working(gateway: Gateway, *command: str, key: str = "") -> AsyncIterator[Process]:
    """Once it polls; it must end by itself when told to."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
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


async def test_the_worker_in_node_stops_what_is_cancelled_and_what_takes_too_long(
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


async def test_they_send_their_key(live_store: Store, server: Server, tmp_path: Path) -> None:
    need("node", "jq", "curl")
    key = (await live_store.api_keys.create("worker", ["worker"])).key_text
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        async with working(gateway, *NODE, key=key), working(gateway, *SHELL, key=key):
            assert len((await live_store.stats()).workers) == 2

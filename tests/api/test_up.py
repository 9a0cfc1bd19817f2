"""`fairlead up`: the engine, the gateway and a worker in one command; it drains before it ends."""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.worker.signals import AT_ONCE_SECONDS
from tests.api.requests import TASKS, good, submit, task
from tests.api.serving import Gateway, serving
from tests.commands import Shell
from tests.engine_processes import is_running, server_pid
from tests.waiting import wait_until
from tests.workers import ROOT

ENV: Mapping[str, str] = {"PYTHONPATH": str(ROOT)}


def client(gateway: Gateway) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=gateway.url, timeout=40)


async def is_now(api: httpx.AsyncClient, task_id: str, status: str) -> dict[str, Any]:
    """The task, once it is in this state."""

    async def reached() -> bool:
        return bool((await task(api, task_id))["status"] == status)

    await wait_until(reached, 40, f"it is {status}")
    return await task(api, task_id)


async def worker_drains(api: httpx.AsyncClient) -> None:
    async def drains() -> bool:
        (worker,) = good(await api.get("/api/v1/workers"))["workers"]
        return bool(worker["status"] == "draining")

    await wait_until(drains)


async def test_a_task_submitted_over_http_is_run_by_the_worker_of_the_app(tmp_path: Path) -> None:
    app = ("--app", "tests.apps.tour:fl")
    with serving("", "default", tmp_path, *app, "--processes", "2", env=ENV, command="up") as gateway:
        async with client(gateway) as api:
            given = await submit(api, "greet", parameters={"name": "Ann"})
            assert (await is_now(api, given["task_id"], "completed"))["result"] == "Hi Ann"

            async def both_work() -> bool:
                return len(good(await api.get("/api/v1/workers"))["workers"]) == 2

            await wait_until(both_work, 40)
    assert not (tmp_path / "engine" / "socket").exists()


async def test_on_a_signal_it_lets_running_tasks_finish_and_serves_meanwhile(tmp_path: Path) -> None:
    app = ("--app", "tests.apps.draining:fl")
    with serving("", "default", tmp_path, *app, env=ENV, command="up") as gateway:
        async with client(gateway) as api:
            given = await submit(api, "until", parameters={"path": str(tmp_path / "done")})
            await is_now(api, given["task_id"], "executing")
            gateway.process.terminate()
            await worker_drains(api)
            (tmp_path / "done").touch()
            assert await gateway.ended() == 0
    with serving("", "default", tmp_path) as gateway:
        async with client(gateway) as api:
            assert (await task(api, given["task_id"]))["result"] == "done"


async def test_on_a_second_signal_it_returns_running_tasks(tmp_path: Path) -> None:
    app = ("--app", "tests.apps.draining:fl", "--grace", "600")
    with serving("", "default", tmp_path, *app, env=ENV, command="up") as gateway:
        async with client(gateway) as api:
            given = await submit(api, "never")
            await is_now(api, given["task_id"], "executing")
            gateway.process.send_signal(signal.SIGINT)
            await worker_drains(api)
            await asyncio.sleep(AT_ONCE_SECONDS + 0.2)  # sooner it would count as the same signal
            gateway.process.send_signal(signal.SIGINT)
            assert await gateway.ended() == 0
    with serving("", "default", tmp_path) as gateway:
        async with client(gateway) as api:
            back = await task(api, given["task_id"])
            assert (back["status"], back["retry_count"], back["crash_count"]) == ("queued", 0, 0)
            good(await api.delete(f"{TASKS}/{given['task_id']}"))


async def test_a_worker_process_that_is_killed_is_replaced(tmp_path: Path) -> None:
    app = ("--app", "tests.apps.tour:fl")
    with serving("", "default", tmp_path, *app, env=ENV, command="up") as gateway:
        async with client(gateway) as api:
            first = await submit(api, "greet", parameters={"name": "Ann"})
            await is_now(api, first["task_id"], "completed")
            engine = server_pid(f"unix://{tmp_path}/engine/socket")
            (worker,) = [pid for pid in gateway.children() if pid != engine]
            os.kill(worker, signal.SIGKILL)
            second = await submit(api, "greet", parameters={"name": "Bob"})
            assert (await is_now(api, second["task_id"], "completed"))["result"] == "Hi Bob"
        assert not is_running(worker)


@pytest.mark.parametrize("target", ["nope:fl", "tasks:nope"])
async def test_an_app_that_cannot_be_run_is_named_and_ends_it(tmp_path: Path, target: str) -> None:
    (tmp_path / "tasks.py").write_text("from fairlead import Fairlead\n\nfl = Fairlead()\n")
    shell = Shell(tmp_path, ("--data", str(tmp_path), "--port", "0"))
    ended = await shell.run("up", "--app", target)
    assert ended.code == 2
    assert "nope" in ended.err and "Traceback" not in ended.err

"""`fairlead up --demo`: a flow of work on the dashboard, in a namespace of its own."""

import json
import re
from pathlib import Path
from typing import Any

import httpx

from tests.commands import Shell
from tests.waiting import wait_until


async def test_its_first_work_ends_shares_nothing_and_breaks_no_invariant(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    await shell.run("limit", "set", "image_gen", "--limit", "7")
    up = await shell.run("up", "--demo", "--once", "--port", "0")
    assert up.code == 0, up.err
    assert "Sample work, in the namespace default-demo" in up.out
    assert re.search(r"All \d+ wishes are done\. The doctor says: every invariant holds\.", up.out)
    limits = await shell.run("limit", "status", "--output", "json")
    assert [(one["name"], one["limit"]) for one in json.loads(limits.out)["limits"]] == [("image_gen", 7)]
    assert await tasks_of(shell, "default") == []
    ended = await tasks_of(shell, "default-demo")
    assert {task["status"] for task in ended} >= {"completed", "dead_letter"}
    assert len({task["priority"] for task in ended}) > 1
    doctor = await shell.run("doctor")
    assert (doctor.code, doctor.out) == (0, "Namespace 'default': every invariant holds.\n")


async def tasks_of(shell: Shell, namespace: str) -> list[dict[str, Any]]:
    where = "--namespace", namespace, "--limit", "500"
    listed = await shell.run("task", "list", *where, "--output", "json")
    tasks: list[dict[str, Any]] = json.loads(listed.out)["tasks"]
    return tasks


async def test_the_dashboard_shows_it_at_once_and_the_gateway_serves_your_own_work_too(
    tmp_path: Path,
) -> None:
    shell = Shell(tmp_path)
    up = await shell.start("up", "--demo", "--port", "0")
    try:
        assert up.stdout
        listens = re.search(r"listens at (http://\S+)", (await up.stdout.readline()).decode())
        assert listens
        async with httpx.AsyncClient(base_url=listens[1], trust_env=False, timeout=30) as api:
            assert (await api.get("/api/v1/session")).json()["namespace"] == "default-demo"

            async def is_lively() -> bool:
                stats = (await api.get("/api/v1/queue/stats")).json()
                forecast = (await api.get("/api/v1/forecast")).json()
                states = {
                    run["state"]
                    for limit in forecast["limits"]
                    for track in limit["tracks"]
                    for run in track["runs"]
                }
                return stats["throughput"]["completed_last_minute"] > 0 and states == {"running", "expected"}

            await wait_until(is_lively)
            own = await api.get("/api/v1/tasks", headers={"Fairlead-Namespace": "default"})
            assert own.json()["tasks"] == []
    finally:
        up.terminate()
        await up.communicate()
    assert up.returncode == 0

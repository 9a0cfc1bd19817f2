"""Lists on a terminal of 80 columns, and lists that are watched."""

import asyncio
import json
import os
import pty
import re
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.model.job import NewJob
from fairlead.model.reports import Failed
from fairlead.model.task import NewTask
from fairlead.pipeline.pipelines import submit_job
from fairlead.settings import Slots, TaskSettings
from fairlead.store.store import Store
from tests.commands import Shell
from tests.waiting import wait_until

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
LISTS = (
    ("task", "list"),
    ("job", "list"),
    ("workers", "list"),
    ("limit", "status"),
    ("limit", "status", "a-limit-with-quite-a-long-name"),
    ("dlq", "list"),
    ("key", "list"),
    ("audit", "list"),
    ("type", "list"),
)


@pytest.fixture
def narrow(shell: Shell) -> Shell:
    return replace(shell, env={"COLUMNS": "80"})


async def some_of_everything(store: Store) -> list[str]:
    """Ids that a list must show whole."""
    limit, worker = "a-limit-with-quite-a-long-name", "a-machine-01890000-0000-7000-8000-000000000000"
    await store.limits.set(limit, Slots(limit=3))
    await store.workers.register(worker, capabilities=["gpu", "large-memory"], capacity=5, name="a-machine")
    for _ in range(2):
        await store.submit_one(
            NewTask(task_type="generate_picture", user_id="ann@example.org", limits={limit: 1})
        )
    broken, held = (await store.claim(worker, 2)).tasks
    message = "the paint is dry, and there is nothing that can be done about it today"
    await store.fail(worker, Failed(broken.task_id, broken.fence, "out_of_paint", message, retriable=False))
    await store.declare("code", {"draw": TaskSettings()}, {}, {"make_a_picture": (("draw",),)})
    job = await submit_job(store.jobs, NewJob(feature_name="make_a_picture", user_id="ann@example.org"))
    scopes = ["submit", "read", "cancel", "worker", "admin", "metrics"]
    key = await store.api_keys.create("a program", scopes, expires_seconds=600)
    await store.audit.record("ann", "set_limit", limit, {"limit": 1}, {"limit": 2}, "there is more work")
    await store.pause_type("generate_picture")
    return [worker, broken.task_id, held.task_id, limit, key.api_key.id, job.job_id]


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
async def test_a_list_fits_80_columns_with_whole_ids_and_ages(
    command: tuple[str, ...], live_store: Store, narrow: Shell
) -> None:
    ids = await some_of_everything(live_store)
    in_pipe = (await narrow.run(*command)).out
    on_terminal = ESCAPE.sub("", (await narrow.on_terminal(*command)).out).replace("\r", "")
    lines = on_terminal.splitlines()
    assert max(map(len, lines)) <= 80, on_terminal
    rows = [line for line in lines if line and not line.startswith("(no room for: ")]
    assert len(rows) == len([line for line in in_pipe.splitlines() if line]), "no row is broken over lines"
    first_cells = {line.split()[0] for line in in_pipe.splitlines() if line}
    for one in first_cells & set(ids):
        assert one in on_terminal
    assert re.search(r"\d{4}-\d\d-\d\dT", on_terminal) is None
    assert command == ("limit", "status") or re.search(r"\b\d+ (s|min)\b", on_terminal)


async def test_what_is_left_out_is_named(live_store: Store, narrow: Shell) -> None:
    await some_of_everything(live_store)
    shown = ESCAPE.sub("", (await narrow.on_terminal("workers", "list")).out)
    assert "(no room for: reserve, capabilities, task types)" in shown


async def test_a_time_of_a_task_has_its_age_beside_it(live_store: Store, narrow: Shell) -> None:
    task = await live_store.submit_one(NewTask(task_type="draw", delay_seconds=3600))
    shown = ESCAPE.sub("", (await narrow.on_terminal("task", "show", task.task_id)).out)
    assert re.search(r"created_at +\d{4}-\d\d-\d\dT[0-9:.]+Z \(\d+ s ago\)", shown)
    assert re.search(r"run_at +\d{4}-\d\d-\d\dT[0-9:.]+Z \(in \d+ min\)", shown)


@asynccontextmanager
async def watching(shell: Shell, *command: str) -> AsyncIterator[tuple[Process, Path]]:
    """A list that is watched with its output in a file; it is interrupted as by Ctrl-C."""
    written = shell.home / "watched.txt"
    with written.open("wb") as out:
        process = await shell.start(*command, "--watch", out=out.fileno())
    try:
        yield process, written
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        _, problems = await process.communicate()
        assert (process.returncode, problems) == (130, b"")


async def test_a_watched_list_is_printed_after_each_change(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    async with watching(shell, "limit", "status") as (_, written):
        await wait_until(lambda: "gpu" in written.read_text())
        await live_store.limits.set("cpu", Slots(limit=7))
        await wait_until(lambda: "cpu" in written.read_text())
    blocks = written.read_text().strip().split("\n\n")
    assert [len(block.splitlines()) for block in blocks] == [2, 3]


async def test_a_watched_list_as_json_is_a_line_for_each_change(live_store: Store, shell: Shell) -> None:
    async with watching(shell, "task", "list", "--output", "json") as (_, written):
        await wait_until(lambda: written.read_text().count("\n") == 1)
        task = await live_store.submit_one(NewTask(task_type="draw"))
        await wait_until(lambda: written.read_text().count("\n") == 2)
    first, second = map(json.loads, written.read_text().splitlines())
    assert (first["tasks"], [one["task_id"] for one in second["tasks"]]) == ([], [task.task_id])


async def test_a_watched_list_is_redrawn_in_place_on_a_terminal(live_store: Store, narrow: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    ours, theirs = pty.openpty()
    process = await narrow.start("limit", "status", "--watch", stdin=theirs, out=theirs, err=theirs)
    os.close(theirs)
    shown = b""

    def read() -> None:
        nonlocal shown
        shown += os.read(ours, 65536)

    asyncio.get_running_loop().add_reader(ours, read)
    try:
        await wait_until(lambda: b"gpu" in shown)
        await live_store.limits.set("cpu", Slots(limit=7))
        await wait_until(lambda: b"cpu" in shown)
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)
    assert process.returncode == 130
    assert b"\x1b[1A" in shown, "it goes back up over what it wrote"
    assert b"\x1b[2J" not in shown, "the screen is not cleared, which would flicker"
    assert b"Traceback" not in shown


async def test_a_watched_list_without_a_server_fails_at_once(tmp_path: Path) -> None:
    answer = await Shell(tmp_path).run("task", "list", "--watch", "--engine", "redis://127.0.0.1:1")
    assert (answer.code, answer.out) == (3, "")

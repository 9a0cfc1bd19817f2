"""On a terminal there are colours and a bar; a pipe gets only the answer."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.model.reports import Completed, Failed
from fairlead.model.task import NewTask, Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell
from tests.servers import Server
from tests.waiting import wait_until

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


async def test_a_table_has_colours_on_a_terminal_and_none_in_a_pipe(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=0))
    on_terminal, in_pipe = await shell.on_terminal("limit", "status"), await shell.run("limit", "status")
    assert "\x1b[1m" in on_terminal.out
    assert "\x1b[33mpaused" in on_terminal.out
    assert ESCAPE.search(in_pipe.out) is None
    words = [line.split() for line in ESCAPE.sub("", on_terminal.out).splitlines()]
    assert words == [line.split() for line in in_pipe.out.splitlines()]


async def test_waiting_on_a_terminal_changes_one_line_in_place(live_store: Store, shell: Shell) -> None:
    waiting = asyncio.create_task(shell.on_terminal("submit", "draw", "--wait"))
    await live_store.workers.register("w")
    found: list[Task] = []

    async def claimed() -> bool:
        found.extend((await live_store.claim("w")).tasks)
        return bool(found)

    await wait_until(claimed)
    await live_store.complete("w", Completed(found[0].task_id, found[0].fence, {"picture": 1}))
    answer = await waiting
    assert answer.code == 0
    assert "\x1b[?25l" in answer.out and "\x1b[?25h" in answer.out, "the cursor is hidden, and shown again"
    plain = ESCAPE.sub("", answer.out)
    assert "queued" in plain
    assert json.loads(plain[plain.rindex("{") :]) == {"picture": 1}


async def test_long_work_has_a_bar_on_a_terminal(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w", capacity=30)
    await live_store.submit(*[NewTask(task_type="draw") for _ in range(30)])
    tasks = (await live_store.claim("w", 30)).tasks
    await live_store.fail("w", *[Failed(task.task_id, task.fence, retriable=False) for task in tasks])
    answer = await shell.on_terminal("dlq", "purge", "--all", "--yes")
    assert (answer.code, (await live_store.dead_letters.page()).tasks) == (0, [])
    assert "100%" in answer.out
    assert "30 tasks purged" in answer.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("submit", "draw"),
        ("stats",),
        ("top",),
        ("task", "show", "nonsense"),
        ("job", "show", "nonsense"),
        ("limit", "status"),
        ("workers", "list"),
        ("dlq", "list"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_in_a_pipe_nothing_of_the_terminal_is_imported(
    arguments: tuple[str, ...], server: Server, tmp_path: Path
) -> None:
    program = (
        "import sys; from fairlead.cli import run; run(sys.argv[1:]); "
        "print([name for name in sys.modules if name == 'rich' or name.startswith('rich.')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--engine", server.url, "--namespace", "light"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_help_imports_no_command() -> None:
    program = (
        "import sys; from fairlead.cli import run; run(['--help']); "
        "print([name for name in sys.modules if name.startswith('fairlead.cli.') or name == 'redis'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"

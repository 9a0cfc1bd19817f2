"""What mypy says about code that uses Fairlead, with the plugin and without."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SAMPLE = """
from datetime import datetime
from typing import Any

from fairlead import Context, Fairlead
from fairlead.model.task import NewTask

fl = Fairlead()


@fl.task
async def draw(prompt: str, ctx: Context, *, steps: int = 20) -> dict[str, int]:
    return {prompt: steps}


@fl.task("count", max_concurrent=3, run_in="process")
def count(to: int, user_id: str = "") -> int:
    return to


@fl.task
async def with_maybe(ctx: Context | None = None) -> None: ...


@fl.task
def any_of(first: int, **rest: str) -> None: ...


@fl.cron("* * * * *", priority="low")
async def tidy() -> None: ...


async def right(later: datetime) -> None:
    task = await draw.submit("a robot", steps=4, priority="high", user_id="ann")
    (await task.result())["x"].bit_length()
    await draw.submit(prompt="a robot", run_at=later, limits={"gpu": 2}, max_retries=1)
    await with_maybe.submit()
    await tidy.submit(delay_seconds=3)
    await any_of.submit(1, colour="red", idempotency_key="k")
    number: int = await (await count.submit(5, user_id="a parameter")).result()
    new: NewTask = count.new(number, max_retries=2)
    many: list[Any] = await fl.submit_many([new, draw.options(priority="low").new("a robot")])
    again: int = count(4) + len(many)
    async with fl.worker() as worker:
        print(worker.running, again)


async def wrong() -> None:
    (await (await draw.submit("a robot")).result()).nonsense  # WRONG: 1
    await draw.submit()  # WRONG: 2
    await draw.submit(5)  # WRONG: 3
    await draw.submit("a robot", stepz=4)  # WRONG: 4
    await draw.submit("a robot", priority="urgent")  # WRONG: 5
    await draw.submit("a robot", ctx=None)  # WRONG: 6
    text: str = await (await count.submit(5)).result()  # WRONG: 7
    count.new("5")  # WRONG: 8
    draw.options(colour="red")  # WRONG: 9
    await draw("a robot", 5)  # WRONG: 10
    count("4")  # WRONG: 11
"""

SUBMIT = '"submit" of "TaskFunction"'
WITH_PLUGIN = {
    1: '"dict[str, int]" has no attribute "nonsense"',
    2: f'Missing positional argument "prompt" in call to {SUBMIT}',
    3: f'Argument 1 to {SUBMIT} has incompatible type "int"; expected "str"',
    4: f'Unexpected keyword argument "stepz" for {SUBMIT}; did you mean "steps"?',
    5: f'Argument "priority" to {SUBMIT} has incompatible type "Literal[\'urgent\']"; '
    "expected \"Literal['high', 'medium', 'low']\"",
    6: f'Unexpected keyword argument "ctx" for {SUBMIT}',
    7: 'Incompatible types in assignment (expression has type "int", variable has type "str")',
    8: 'Argument 1 to "new" of "TaskFunction" has incompatible type "str"; expected "int"',
    9: 'Unexpected keyword argument "colour" for "options" of "TaskFunction"',
    10: 'Argument 2 to "__call__" of "TaskFunction" has incompatible type "int"; expected "Context"',
    11: 'Argument 1 to "__call__" of "TaskFunction" has incompatible type "str"; expected "int"',
}

CONTRACT = """
from fairlead import Context, Fairlead, PermanentError, RetriableError

fl = Fairlead()
fl.limit("image_gen", 1)


@fl.task(limits={"image_gen": 1}, timeout=360, max_concurrent=None, run_in="loop")
async def generate_image(prompt: str, ctx: Context) -> dict[str, str]:
    if not prompt:
        raise PermanentError("there is nothing to draw")
    if len(prompt) > 100:
        raise RetriableError("too busy", retry_after=3)
    return {"picture": prompt}


@fl.task("call_api", max_concurrent=10)
def call_api(url: str) -> dict[str, str]:
    return {"url": url}


async def main() -> None:
    async with fl:
        task = await generate_image.submit(prompt="a robot", priority="high", user_id="u1")
        print(task.queue_position, task.estimate)
        print((await task.result(timeout=600))["picture"])
        async with fl.acquire("image_gen", wait=30) as lease:
            print(lease.fence)
"""


def complaints(folder: Path, source: str, plugin: bool) -> dict[str, str]:
    """What mypy says, by the lines it says it of."""
    (folder / "sample.py").write_text(source)
    setting = 'plugins = ["fairlead.mypy_plugin"]' if plugin else ""
    (folder / "pyproject.toml").write_text(f"[tool.mypy]\nstrict = true\n{setting}\n")
    options = ["--no-error-summary", "--hide-error-codes", "--no-pretty", "--no-incremental"]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "sample.py"], capture_output=True, text=True, cwd=folder
    )
    lines = source.splitlines()
    found = re.findall(r"^sample\.py:(\d+): error: (.*)$", ran.stdout, re.M)
    assert len(found) == ran.stdout.count(": error: ") and not ran.stderr, ran.stdout + ran.stderr
    return {lines[int(number) - 1]: message for number, message in found}


def test_a_submit_is_checked_against_the_function(tmp_path: Path) -> None:
    found = complaints(tmp_path, SAMPLE, plugin=True)
    numbered = {line.rpartition("# WRONG: ")[2]: what for line, what in found.items()}
    assert numbered == {str(number): what for number, what in WITH_PLUGIN.items()}


def test_without_the_plugin_nothing_right_is_complained_about(tmp_path: Path) -> None:
    assert complaints(tmp_path, CONTRACT, plugin=False) == {}

"""`fairlead submit`: the store gets the task as requested, and --wait prints the result."""

import asyncio
import json
import signal
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell, ended
from tests.waiting import wait_until


async def claimed(store: Store, worker: str = "w") -> Task:
    """The next task, as soon as there is one."""
    await store.workers.register(worker)
    found: list[Task] = []

    async def one_came() -> bool:
        found.extend((await store.claim(worker)).tasks)
        return bool(found)

    await wait_until(one_came)
    return found[0]


async def test_the_id_is_printed_and_the_task_is_as_requested(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=4))
    answer = await shell.run(
        *("submit", "draw", "--parameters", '{"size": 1, "style": "dark"}', "--param", "size=2"),
        *("--param", "words=a robot", "--param", "deep=[1, null]", "--priority", "high", "--user-id", "ann"),
        *("--limit", "gpu=3", "--timeout", "2.5", "--max-retries", "1", "--require", "cuda"),
    )
    assert answer.code == 0
    assert answer.err == (
        "fairlead: warning: no worker serves 'draw' with the capability 'cuda' yet; it waits until one does\n"
    )
    task = await live_store.get(answer.out.split()[0])
    assert answer.out == f"{task.task_id} queued, position 1\n"
    assert task.parameters == {"size": 2, "style": "dark", "words": "a robot", "deep": [1, None]}
    assert (task.task_type, task.priority, task.user_id) == ("draw", Priority.HIGH, "ann")
    assert (task.limits, task.timeout_ms, task.max_retries) == ({"gpu": 3}, 2500, 1)
    assert task.required_capabilities == ("cuda",)


async def test_the_answer_as_json(live_store: Store, shell: Shell) -> None:
    await shell.run("submit", "draw")
    queued = json.loads((await shell.run("submit", "draw", "--output", "json")).out)
    assert (queued["status"], queued["queue_position"], queued["repeated"]) == ("queued", 2, False)
    assert queued["warnings"] == ["no worker serves 'draw' yet; it waits until one does"]
    delayed = json.loads((await shell.run("submit", "draw", "--delay", "60", "--output", "json")).out)
    assert (delayed["status"], delayed["queue_position"]) == ("delayed", None)
    assert (await live_store.get(delayed["task_id"])).status is State.DELAYED


@pytest.mark.parametrize("written", ["-", "@parameters.json"])
async def test_parameters_come_from_stdin_or_a_file(
    written: str, live_store: Store, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "parameters.json").write_text('{"text": "ä"}')
    answer = await shell.run("submit", "draw", "--parameters", written, given='{"text": "ä"}')
    assert (await live_store.get(answer.out.split()[0])).parameters == {"text": "ä"}


async def test_a_time_is_kept_with_its_offset(live_store: Store, shell: Shell) -> None:
    answer = await shell.run("submit", "draw", "--run-at", "2099-01-01T01:00:00+01:00")
    assert (await live_store.get(answer.out.split()[0])).run_at == 4_070_908_800_000


async def test_the_same_key_is_the_same_task_and_another_task_with_it_is_refused(shell: Shell) -> None:
    first = await shell.run("submit", "draw", "--idempotency-key", "k")
    again = await shell.run("submit", "draw", "--idempotency-key", "k")
    other = await shell.run("submit", "sing", "--idempotency-key", "k")
    assert again.out.split()[0] == first.out.split()[0]
    assert "(accepted before)" in again.out
    assert (other.code, other.out) == (1, "")
    assert "idempotency key was used for another task" in other.err


async def test_waiting_shows_each_change_and_prints_only_the_result(live_store: Store, shell: Shell) -> None:
    process = await shell.start("submit", "draw", "--wait")
    waiting = asyncio.create_task(ended(process))
    task = await claimed(live_store)
    await live_store.complete("w", Completed(task.task_id, task.fence, {"picture": 1}))
    answer = await waiting
    assert (answer.code, json.loads(answer.out)) == (0, {"picture": 1})
    lines = answer.err.splitlines()
    assert lines[0].startswith(f"{task.task_id} queued")
    assert lines[-1] == "completed"


async def test_waiting_for_a_task_that_fails_ends_with_1_and_says_why(
    live_store: Store, shell: Shell
) -> None:
    process = await shell.start("submit", "draw", "--wait", "--output", "json")
    waiting = asyncio.create_task(ended(process))
    task = await claimed(live_store)
    report = Failed(task.task_id, task.fence, code="no_ink", message="all\x1b[31m used up", retriable=False)
    await live_store.fail("w", report)
    answer = await waiting
    assert answer.code == 1
    printed = json.loads(answer.out)
    assert (printed["status"], printed["error"]["code"]) == ("failed", "no_ink")
    assert f"fairlead: Task {task.task_id} failed (no_ink): all\\x1b[31m used up\n" in answer.err


async def test_waiting_for_a_task_that_is_cancelled_ends_with_1(live_store: Store, shell: Shell) -> None:
    process = await shell.start("submit", "draw", "--wait")
    waiting = asyncio.create_task(ended(process))
    task = await claimed(live_store)
    await live_store.cancel(task.task_id)
    answer = await waiting
    assert (answer.code, answer.out) == (1, "")
    assert f"Task {task.task_id} was cancelled." in answer.err


async def test_an_interruption_ends_the_waiting_and_not_the_task(live_store: Store, shell: Shell) -> None:
    process = await shell.start("submit", "draw", "--wait", err=PIPE)
    assert process.stderr
    assert b"no worker serves 'draw' yet" in await process.stderr.readline()
    task_id = (await process.stderr.readline()).decode().split()[0]
    assert b"queued" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    answer = await ended(process)
    assert (answer.code, answer.out) == (130, "")
    assert f"fairlead task watch {task_id}" in answer.err
    assert "Traceback" not in answer.err
    assert (await live_store.get(task_id)).status is State.QUEUED


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bad type",), "task_type: use 1 to 200 of"),
        (("draw", "--parameters", "{"), "--parameters: "),
        (("draw", "--parameters", "[1]"), "not an object"),
        (("draw", "--parameters", "@nowhere"), "cannot read nowhere: No such file"),
        (("draw", "--param", "size"), "'size' is not name=value"),
        (("draw", "--limit", "gpu=many"), "the units are a whole number, as in gpu=1"),
        (("draw", "--limit", "gpu=1"), "limits.gpu: there is no such limit: define it first"),
        (("draw", "--priority", "urgent"), "--priority"),
        (("draw", "--run-at", "2026-01-01T00:00:00"), "is not a time with its offset"),
        (("draw", "--delay", "1", "--run-at", "2026-01-01T00:00:00Z"), "give run_at or delay_seconds"),
        ((), "TASK_TYPE"),
    ],
)
async def test_a_refused_submit_says_why_in_one_line(
    arguments: tuple[str, ...], says: str, shell: Shell
) -> None:
    answer = await shell.run("submit", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


async def test_a_folder_is_enough(tmp_path: Path) -> None:
    shell = Shell(tmp_path, ("--data", str(tmp_path / "data")))
    task_id = (await shell.run("submit", "draw")).out.split()[0]
    shown = await shell.run("task", "show", task_id, "--output", "json")
    assert json.loads(shown.out)["status"] == "queued"

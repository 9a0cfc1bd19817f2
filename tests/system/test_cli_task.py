"""`fairlead task`: the state of tasks, why they wait, their progress, and cancelling them."""

import json
from pathlib import Path

import pytest

from fairlead.model.reports import Completed, Failed, Progress
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell, ended
from tests.servers import running

NOBODY = "01890000-0000-7000-8000-000000000000"


async def started(store: Store, **options: object) -> Task:
    """A task that runs on worker w."""
    await store.workers.register("w", capacity=9)
    await store.submit_one(NewTask(task_type="draw", **options))  # type: ignore[arg-type]
    (task,) = (await store.claim("w")).tasks
    return task


async def waiting(store: Store, **options: object) -> str:
    return (await store.submit_one(NewTask(task_type="draw", **options))).task_id  # type: ignore[arg-type]


async def test_tasks_are_listed_by_what_they_are_like(live_store: Store, shell: Shell) -> None:
    task = await started(live_store, user_id="ann")
    low = await waiting(live_store, priority="low")
    other = (await live_store.submit_one(NewTask(task_type="sing"))).task_id

    async def listed(*options: str) -> set[str]:
        lines = (await shell.run("task", "list", *options)).out.splitlines()
        assert lines[0].split() == ["task", "type", "status", "priority", "user", "created", "worker"]
        return {line.split()[0] for line in lines[1:]}

    assert await listed() == {task.task_id, low, other}
    assert await listed("--status", "queued") == {low, other}
    assert await listed("--status", "executing", "--user-id", "ann") == {task.task_id}
    assert await listed("--priority", "low") == {low}
    assert await listed("--task-type", "sing") == {other}
    assert await listed("--status", "dead_letter") == set()


async def test_a_task_that_failed_is_shown_with_its_traceback(live_store: Store, shell: Shell) -> None:
    task = await started(live_store)
    traceback = "Traceback (most recent call last):\n  here\x1b[31m\nValueError: out of paint"
    report = Failed(task.task_id, task.fence, "ValueError", "out of paint", False, traceback=traceback)
    await live_store.fail("w", report)
    shown = (await shell.run("task", "show", task.task_id)).out
    lines = ["Traceback (most recent call last):", "  here\\x1b[31m", "ValueError: out of paint"]
    assert shown.splitlines()[-3:] == lines
    as_json = json.loads((await shell.run("task", "show", task.task_id, "--output", "json")).out)
    assert as_json["error"]["traceback"] == traceback


async def test_the_list_continues_where_it_ended(live_store: Store, shell: Shell) -> None:
    expected = {await waiting(live_store) for _ in range(3)}
    first = json.loads((await shell.run("task", "list", "--limit", "2", "--output", "json")).out)
    rest = json.loads(
        (await shell.run("task", "list", "--cursor", first["next_cursor"], "--output", "json")).out
    )
    assert (len(first["tasks"]), rest["next_cursor"]) == (2, None)
    assert {task["task_id"] for task in (*first["tasks"], *rest["tasks"])} == expected
    table = await shell.run("task", "list", "--limit", "2")
    assert table.err == f"There may be more: --cursor {first['next_cursor']}\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--status", "lost"), "--status"),
        (("--limit", "0"), "limit: is not a whole number from 1"),
        (("--cursor", "x"), "cursor: not returned by a previous page"),
        (("--task-type", "a b"), "task_type: use 1 to 200 of"),
    ],
)
async def test_invalid_options_of_a_list_are_refused(
    options: tuple[str, ...], says: str, shell: Shell
) -> None:
    answer = await shell.run("task", "list", *options)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err


async def test_a_task_is_shown_with_all_that_is_known(live_store: Store, shell: Shell) -> None:
    task = await started(live_store, parameters={"size": 2}, user_id="ann")
    shown = await shell.run("task", "show", task.task_id)
    facts = dict(line.split(maxsplit=1) for line in shown.out.splitlines())
    assert (facts["task_id"], facts["status"], facts["assigned_worker_id"]) == (
        task.task_id,
        "executing",
        "w",
    )
    assert (facts["parameters"], facts["user_id"]) == ('{"size":2}', "ann")
    assert "error" not in facts
    as_json = json.loads((await shell.run("task", "show", task.task_id, "--output", "json")).out)
    assert (as_json["fence"], as_json["error"], as_json["parameters"]) == (task.fence, None, {"size": 2})


async def test_a_waiting_task_is_shown_with_its_position_and_why_it_waits(
    live_store: Store, shell: Shell
) -> None:
    await waiting(live_store, priority="high")
    task_id = await waiting(live_store)
    shown = json.loads((await shell.run("task", "show", task_id, "--output", "json")).out)
    assert shown["queue_position"] == 2
    assert "No live worker" in (await shell.run("task", "show", task_id)).out


async def test_the_explanation_names_the_limit_that_is_full(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await started(live_store, limits={"gpu": 1})
    task_id = await waiting(live_store, limits={"gpu": 1})
    lines = (await shell.run("task", "explain", task_id)).out.splitlines()
    assert lines[0].startswith("It waits for a unit of gpu, which w holds until ")
    as_json = json.loads((await shell.run("task", "explain", task_id, "--output", "json")).out)
    assert as_json["blocked_by"][0]["limit"] == "gpu"
    assert as_json["queue_position"] == 1


async def test_a_waiting_task_is_cancelled(live_store: Store, shell: Shell) -> None:
    task_id = await waiting(live_store)
    assert (await shell.run("task", "cancel", task_id)).out == f"{task_id} cancelled\n"
    assert (await live_store.get(task_id)).status is State.CANCELLED


async def test_a_running_task_is_cancelled_and_its_worker_named(live_store: Store, shell: Shell) -> None:
    task = await started(live_store)
    answer = await shell.run("task", "cancel", task.task_id, "--output", "json")
    assert json.loads(answer.out) == {"task_id": task.task_id, "status": "cancelled", "worker_id": "w"}


async def test_a_task_that_has_ended_cannot_be_cancelled(live_store: Store, shell: Shell) -> None:
    task = await started(live_store)
    await live_store.complete("w", Completed(task.task_id, task.fence))
    answer = await shell.run("task", "cancel", task.task_id)
    assert (answer.code, answer.err) == (1, "fairlead: The task has already ended: nothing was changed.\n")


async def test_watching_shows_the_state_then_each_change_then_the_result(
    live_store: Store, shell: Shell
) -> None:
    task_id = await waiting(live_store)
    process = await shell.start("task", "watch", task_id)
    assert process.stdout
    assert b"queued No live worker" in await process.stdout.readline()
    await live_store.workers.register("w")
    (task,) = (await live_store.claim("w")).tasks
    assert await process.stdout.readline() == b"executing (claim)\n"
    await live_store.complete("w", Completed(task_id, task.fence, [1, 2]))
    answer = await ended(process)
    state, result = answer.out.split("\n", 1)
    assert (answer.code, state, json.loads(result)) == (0, "completed", [1, 2])


async def test_watching_shows_progress_and_output_each_once_and_in_order(
    live_store: Store, shell: Shell
) -> None:
    task = await started(live_store)
    await live_store.progress("w", Progress(task.task_id, task.fence, 0.25, "first strokes", ["a", {"b": 1}]))
    process = await shell.start("task", "watch", task.task_id)
    assert process.stdout
    known = [await process.stdout.readline() for _ in range(3)]
    assert known == [b"executing 25% first strokes\n", b'output "a"\n', b'output {"b":1}\n']
    await live_store.progress("w", Progress(task.task_id, task.fence, 0.5, chunks=["c\n"]))
    news = [await process.stdout.readline() for _ in range(2)]
    assert news == [b"executing 50%\n", b'output "c\\n"\n']
    await live_store.complete("w", Completed(task.task_id, task.fence))
    assert (await ended(process)).out == "completed\nnull\n"


async def test_watching_as_json_is_one_object_a_line(live_store: Store, shell: Shell) -> None:
    task = await started(live_store)
    process = await shell.start("task", "watch", task.task_id, "--output", "json")
    assert process.stdout
    first = json.loads(await process.stdout.readline())
    assert (first["task"]["task_id"], first["task"]["status"]) == (task.task_id, "executing")
    report = Failed(task.task_id, task.fence, code="no_ink", retry_after_ms=60_000)
    await live_store.fail("w", report)
    event = json.loads(await process.stdout.readline())["event"]
    assert (event["act"], event["from"], event["to"]) == ("fail", "executing", "delayed")
    await live_store.cancel(task.task_id)
    answer = await ended(process)
    assert answer.code == 1
    assert [json.loads(line)["task"]["status"] for line in answer.out.splitlines()] == ["cancelled"]


async def test_watching_a_task_that_has_ended_says_so_at_once(live_store: Store, shell: Shell) -> None:
    task = await started(live_store)
    await live_store.fail("w", Failed(task.task_id, task.fence, code="no_ink", message="m", retriable=False))
    answer = await shell.run("task", "watch", task.task_id)
    assert (answer.code, answer.out) == (1, "failed\n")
    assert answer.err == f"fairlead: Task {task.task_id} failed (no_ink): m\n"


async def test_watching_ends_when_the_server_is_gone(tmp_path: Path) -> None:
    with running("valkey") as server:
        shell = Shell(tmp_path, ("--engine", server.url))
        task_id = (await shell.run("submit", "draw")).out.split()[0]
        process = await shell.start("task", "watch", task_id)
        assert process.stdout
        assert b"queued" in await process.stdout.readline()
    answer = await ended(process)
    assert (answer.code, answer.out) == (3, "")
    assert "did not answer" in answer.err


@pytest.mark.parametrize("command", ["show", "explain", "cancel", "watch"])
@pytest.mark.parametrize("task_id", ["nonsense", NOBODY])
async def test_an_unknown_task_is_reported_as_unknown(command: str, task_id: str, shell: Shell) -> None:
    answer = await shell.run("task", command, task_id)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("fairlead: There is no such task: check the id")

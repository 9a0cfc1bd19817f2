"""`fairlead dlq`: what failed is listed, queued again or forgotten."""

import itertools
import json
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.job import JobStatus, NewJob, NewStep
from fairlead.model.reports import Failed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.commands import Shell
from tests.reading import events_of


async def dead(store: Store, task_type: str = "draw", message: str = "no ink", **options: Any) -> str:
    await store.workers.register("w")
    task_id = (await store.submit_one(NewTask(task_type=task_type, **options))).task_id
    (task,) = (await store.claim("w")).tasks
    await store.fail("w", Failed(task_id, task.fence, code="broken", message=message, retriable=False))
    return task_id


async def left(store: Store) -> list[str]:
    return [task.task_id for task in (await store.dead_letters.page()).tasks]


async def test_failed_tasks_are_listed_newest_first_with_their_errors(
    live_store: Store, shell: Shell
) -> None:
    one, two = await dead(live_store, "draw", "two\nlines"), await dead(live_store, "sing")
    rows = [line.split(maxsplit=5) for line in (await shell.run("dlq", "list")).out.splitlines()[1:]]
    assert {(row[0], row[1], row[2], row[4], row[5]) for row in rows} == {
        (two, "sing", "failed", "broken", "no ink"),
        (one, "draw", "failed", "broken", "two\\nlines"),
    }
    only = json.loads((await shell.run("dlq", "list", "--task-type", "draw", "--output", "json")).out)
    assert [(task["task_id"], task["error"]["message"]) for task in only["tasks"]] == [(one, "two\nlines")]
    assert len((await shell.run("dlq", "list", "--limit", "1")).out.splitlines()) == 2


async def test_they_are_filtered_and_listed_on(live_store: Store, shell: Shell) -> None:
    one, two = await dead(live_store, "draw", "no ink"), await dead(live_store, "sing", "no voice")
    for options in (["--text", "VOICE"], ["--task-type", "sing", "--since", "1h", "--code", "broken"]):
        found = json.loads((await shell.run("dlq", "list", "--output", "json", *options)).out)
        assert [task["task_id"] for task in found["tasks"]] == [two], options
    assert (
        json.loads((await shell.run("dlq", "list", "--until", "1h", "--output", "json")).out)["tasks"] == []
    )
    first = json.loads((await shell.run("dlq", "list", "--limit", "1", "--output", "json")).out)
    rest = await shell.run("dlq", "list", "--cursor", first["next_cursor"], "--output", "json")
    listed = first["tasks"] + json.loads(rest.out)["tasks"]
    assert sorted(task["task_id"] for task in listed) == sorted([one, two])


async def test_one_is_shown_with_why_its_parameters_and_its_traceback(
    live_store: Store, shell: Shell
) -> None:
    await live_store.workers.register("w")
    await live_store.submit_one(task := NewTask(task_type="draw", parameters={"size": 0}))
    (claimed,) = (await live_store.claim("w")).tasks
    report = Failed(
        task.task_id, claimed.fence, "broken", "no ink", retriable=False, traceback="a.py\n  paint()"
    )
    await live_store.fail("w", report)
    lines = (await shell.run("dlq", "show", task.task_id)).out.splitlines()
    assert lines[0] == "Its run failed with broken, which is not retried."
    assert lines[-2:] == ["a.py", "  paint()"]
    assert any('"size":0' in line for line in lines)
    answer = json.loads((await shell.run("dlq", "show", task.task_id, "--output", "json")).out)
    assert answer["why"] == lines[0]
    assert (await shell.run("dlq", "show", "nonsense")).code == 1


async def test_tasks_are_replayed_by_id_and_refusals_are_reported(live_store: Store, shell: Shell) -> None:
    one, two = await dead(live_store), await dead(live_store)
    answer = await shell.run("dlq", "replay", one, "nonsense")
    assert (answer.code, answer.out) == (1, "1 task replayed\n")
    assert answer.err.startswith("fairlead: nonsense: There is no such task")
    assert (await live_store.get(one)).status is State.QUEUED
    assert await left(live_store) == [two]
    again = await shell.run("dlq", "replay", one, "--output", "json")
    assert json.loads(again.out)["refused"][one]["code"] == "not_replayable"


async def test_all_of_a_type_are_replayed(live_store: Store, shell: Shell) -> None:
    drawn, sung = await dead(live_store, "draw"), [await dead(live_store, "sing") for _ in range(2)]
    answer = await shell.run("dlq", "replay", "--all", "--task-type", "sing", "--output", "json")
    assert answer.code == 0
    assert set(json.loads(answer.out)["replayed"]) == set(sung)
    assert await left(live_store) == [drawn]


async def test_those_that_fit_are_replayed_at_a_rate(live_store: Store, shell: Shell) -> None:
    wanted, other = [await dead(live_store, "sing") for _ in range(3)], await dead(live_store, "draw")
    arguments = ("--all", "--task-type", "sing", "--code", "broken", "--since", "1h", "--rate", "20/s")
    answer = await shell.run("dlq", "replay", *arguments, "--output", "json")
    assert set(json.loads(answer.out)["replayed"]) == set(wanted)
    assert await left(live_store) == [other]
    queued = [event["at"] for event in await events_of(live_store) if event["act"] == "replay"]
    assert len(queued) == 3
    assert all(later - earlier >= 49 for earlier, later in itertools.pairwise(queued))
    refused = await shell.run("dlq", "replay", "--all", "--rate", "often")
    assert (refused.code, "--rate: expected a rate" in refused.err) == (2, True)


async def test_they_are_replayed_with_other_parameters(live_store: Store, shell: Shell) -> None:
    given = {"size": 9, "name": "a"}
    one, two, three = [await dead(live_store, parameters=given) for _ in range(3)]
    assert (await shell.run("dlq", "replay", one, "--param", "size=1")).code == 0
    assert (await shell.run("dlq", "replay", two, "--parameters", '{"size": 2}')).code == 0
    refused = await shell.run("dlq", "replay", "--all", "--param", "size")
    assert (refused.code, "name=value" in refused.err) == (2, True)
    found = [(await live_store.get(task_id)).parameters for task_id in (one, two, three)]
    assert found == [{"size": 1, "name": "a"}, {"size": 2}, given]
    assert await left(live_store) == [three]


async def test_replaying_all_names_a_task_whose_limit_is_gone(live_store: Store, shell: Shell) -> None:
    group = NewTask(task_type="other", concurrency_group="g", concurrency_limit=2, delay_seconds=600)
    await live_store.submit_one(group)
    one, two, three = await dead(live_store), await dead(live_store, limits={"g": 1}), await dead(live_store)
    await live_store.cancel(group.task_id)
    answer = await shell.run("dlq", "replay", "--all")
    assert (answer.code, answer.out) == (1, "2 tasks replayed\n")
    assert f"{two}: limits.g: there is no such limit: define it first" in answer.err
    assert await left(live_store) == [two]
    assert {(await live_store.get(task_id)).status for task_id in (one, three)} == {State.QUEUED}


async def failed_job(store: Store) -> tuple[str, list[str]]:
    """A job whose two steps failed, and their tasks."""
    await store.workers.register("w", capacity=2)
    steps = NewStep("chat", "chat"), NewStep("draw", "draw")
    submitted = await store.jobs.submit(NewJob(feature_name="story", stages=[steps]))
    tasks = (await store.claim("w", 2)).tasks
    await store.fail("w", *(Failed(task.task_id, task.fence, retriable=False) for task in tasks))
    return submitted.job_id, [task.task_id for task in tasks]


@pytest.mark.parametrize("way", ["all", "each", "one"])
async def test_replaying_a_step_resumes_its_job_with_all_steps_that_failed(
    way: str, live_store: Store, shell: Shell
) -> None:
    job_id, steps = await failed_job(live_store)
    named = {"all": ["--all"], "each": steps, "one": steps[:1]}[way]
    answer = await shell.run("dlq", "replay", *named)
    assert (answer.code, answer.out, answer.err) == (0, "2 tasks replayed\n", "")
    assert (await live_store.jobs.get(job_id)).status is JobStatus.RUNNING
    assert await left(live_store) == []


async def test_purging_all_skips_the_steps_of_jobs(live_store: Store, shell: Shell) -> None:
    await dead(live_store)
    job_id, steps = await failed_job(live_store)
    answer = await shell.run("dlq", "purge", "--all")
    assert (answer.code, answer.out) == (0, "1 task purged\n")
    assert sorted(await left(live_store)) == sorted(steps)
    answer = await shell.run("dlq", "purge", steps[0])
    assert answer.code == 1 and f"step of job {job_id}" in answer.err


async def test_tasks_are_purged_by_id_or_all(live_store: Store, shell: Shell) -> None:
    one, *_ = [await dead(live_store) for _ in range(3)]
    assert (await shell.run("dlq", "purge", one)).out == "1 task purged\n"
    with pytest.raises(errors.UnknownTask):
        await live_store.get(one)
    assert (await shell.run("dlq", "purge", "--all")).out == "2 tasks purged\n"
    assert await left(live_store) == []


async def test_a_task_that_waits_is_not_purged(live_store: Store, shell: Shell) -> None:
    task_id = (await live_store.submit_one(NewTask(task_type="draw"))).task_id
    answer = await shell.run("dlq", "purge", task_id)
    assert (answer.code, answer.out) == (1, "0 tasks purged\n")
    assert f"{task_id}: Only failed and dead-lettered tasks can be purged" in answer.err
    assert (await live_store.get(task_id)).status is State.QUEUED


@pytest.mark.parametrize(
    ("typed", "code", "says", "stay"),
    [
        ("y\n", 0, "1 task purged", 0),
        ("n\n", 1, "Nothing was purged.", 1),
        ("\n", 1, "Nothing was purged.", 1),
    ],
)
async def test_on_a_terminal_purging_asks_first(
    typed: str, code: int, says: str, stay: int, live_store: Store, shell: Shell
) -> None:
    await dead(live_store)
    answer = await shell.on_terminal("dlq", "purge", "--all", typed=typed)
    assert "Forget all tasks that failed for good? [y/N]" in answer.out
    assert says in answer.out
    assert (answer.code, len(await left(live_store))) == (code, stay)


async def test_on_a_terminal_purging_with_yes_does_not_ask(live_store: Store, shell: Shell) -> None:
    task_id = await dead(live_store)
    answer = await shell.on_terminal("dlq", "purge", task_id, "--yes")
    assert "[y/N]" not in answer.out
    assert (answer.code, await left(live_store)) == (0, [])


@pytest.mark.parametrize("command", ["replay", "purge"])
@pytest.mark.parametrize("arguments", [(), ("some-id", "--all"), ("some-id", "--task-type", "draw")])
async def test_it_must_be_clear_which_tasks_are_meant(
    command: str, arguments: tuple[str, ...], shell: Shell
) -> None:
    answer = await shell.run("dlq", command, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "give ids of tasks, or --all" in answer.err

"""`fairlead job`: runs of pipelines are submitted, shown, watched, resumed and cancelled."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from fairlead.model.job import Job, JobStatus
from fairlead.model.reports import Completed, Failed, Progress
from fairlead.model.task import Task
from fairlead.settings import TaskSettings
from fairlead.settings.pipelines import Stages
from fairlead.store.store import Store
from tests.commands import Shell, ended
from tests.servers import running
from tests.store.namespace import claim_one
from tests.system.test_cli_terminal import ESCAPE
from tests.waiting import wait_until

NOBODY = "01890000-0000-7000-8000-000000000000"
STORY: Stages = (("outline",), ("draw", "narrate"))
TYPES = {name: TaskSettings() for stage in STORY for name in stage}


@pytest.fixture
async def live_store(live_store: Store) -> Store:
    await live_store.declare("code", TYPES, {}, {"story": STORY, "note": (("outline",),)})
    await live_store.workers.register("w", capacity=9)
    return live_store


async def submitted(shell: Shell, *arguments: str) -> str:
    answer = await shell.run("job", "submit", *arguments)
    assert answer.code == 0, answer.err
    return answer.out.split()[0]


async def claimed(store: Store) -> Task:
    """The next step, as soon as there is one."""
    found: list[Task] = []

    async def one_came() -> bool:
        found.extend((await store.claim("w")).tasks)
        return bool(found)

    await wait_until(one_came)
    return found[0]


async def complete(store: Store, task: Task, result: object = None) -> None:
    await store.complete("w", Completed(task.task_id, task.fence, result))


async def fail(store: Store, task: Task) -> None:
    await store.fail("w", Failed(task.task_id, task.fence, "no_ink", "the pen\nis dry", retriable=False))


async def stuck(store: Store, shell: Shell) -> str:
    """A job that was not started in time."""
    job_id = await submitted(shell, "note", "--max-wait", "0.001")

    async def has_failed() -> bool:
        await store.promote()
        return (await store.jobs.get(job_id)).status is JobStatus.FAILED

    await wait_until(has_failed)
    return job_id


# Submitting


async def test_the_id_is_printed_and_the_job_is_as_requested(live_store: Store, shell: Shell) -> None:
    answer = await shell.run(
        *("job", "submit", "story", "--input", '{"topic": "a cat", "pages": 1}', "--param", "pages=2"),
        *("--param", "words=a robot", "--priority", "high", "--user-id", "ann"),
    )
    assert (answer.code, answer.err) == (0, "")
    job = await live_store.jobs.get(answer.out.split()[0])
    assert answer.out == f"{job.job_id} PENDING\n"
    assert job.input_data == {"topic": "a cat", "pages": 2, "words": "a robot"}
    assert (job.feature_name, job.original_priority.word, job.user_id) == ("story", "high", "ann")


@pytest.mark.parametrize("written", ["-", "@input.json"])
async def test_the_input_comes_from_stdin_or_a_file(
    written: str, live_store: Store, shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "input.json").write_text('{"topic": "ä"}')
    answer = await shell.run("job", "submit", "story", "--input", written, given='{"topic": "ä"}')
    assert (await live_store.jobs.get(answer.out.split()[0])).input_data == {"topic": "ä"}


async def test_the_same_key_is_the_same_job(live_store: Store, shell: Shell) -> None:
    first = await shell.run("job", "submit", "story", "--idempotency-key", "k", "--output", "json")
    again = await shell.run("job", "submit", "story", "--idempotency-key", "k", "--output", "json")
    other = await shell.run("job", "submit", "note", "--idempotency-key", "k")
    assert json.loads(first.out) | {"repeated": True} == json.loads(again.out)
    assert "(accepted before)" in (await shell.run("job", "submit", "story", "--idempotency-key", "k")).out
    assert (other.code, other.out) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("storry",), 1, "There is no pipeline 'storry'; there are note, story."),
        (("a b",), 1, "There is no pipeline 'a b'"),
        (("story", "--input", "[1]"), 2, "--input: is JSON, but not an object"),
        (("story", "--input", "{"), 2, "--input:"),
        (("story", "--input", "@nowhere"), 2, "--input: cannot read nowhere"),
        (("story", "--param", "x"), 2, "--param: 'x' is not name=value"),
        (("story", "--priority", "urgent"), 2, "--priority"),
        (("story", "--max-wait", "-1"), 2, "max_wait_seconds"),
        ((), 2, "PIPELINE"),
    ],
)
async def test_an_invalid_submit_is_refused(
    live_store: Store, shell: Shell, arguments: tuple[str, ...], code: int, words: str
) -> None:
    answer = await shell.run("job", "submit", *arguments)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


async def test_waiting_shows_each_change_and_prints_the_context(live_store: Store, shell: Shell) -> None:
    waiting = asyncio.create_task(shell.run("job", "submit", "story", "--wait"))
    for _ in range(3):
        await complete(live_store, await claimed(live_store), {"done": True})
    answer = await waiting
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["step_2_narrate"]["data"] == {"done": True}
    lines = answer.err.splitlines()
    assert lines[0].endswith(" PENDING")
    assert "outline (1/3) completed" in lines
    assert lines[-1] == "job completed"


async def test_waiting_for_a_job_that_fails(live_store: Store, shell: Shell) -> None:
    waiting = asyncio.create_task(shell.run("job", "submit", "note", "--wait", "--output", "json"))
    await fail(live_store, await claimed(live_store))
    answer = await waiting
    assert answer.code == 1
    shown = json.loads(answer.out)
    assert (shown["status"], shown["error"]["code"]) == ("FAILED", "no_ink")
    line = answer.err.splitlines()[-1]
    assert line == f"fairlead: Job {shown['id']} failed at step 0 (no_ink): the pen\\nis dry"


async def test_ctrl_c_ends_the_waiting_and_not_the_job(live_store: Store, shell: Shell) -> None:
    process = await shell.start("job", "submit", "note", "--wait")
    task = await claimed(live_store)
    assert process.stderr
    while b"running" not in (line := await process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    answer = await ended(process)
    assert (answer.code, answer.out) == (130, "")
    assert f"the job continues. To watch it again: fairlead job watch {task.job_id}" in answer.err
    await complete(live_store, task)


# Showing


async def test_a_job_is_shown_with_its_steps(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "story", "--param", "topic=cats")
    await complete(live_store, await claim_one(live_store), {"chapters": 2})
    await claim_one(live_store)
    answer = await shell.run("job", "show", job_id)
    facts, steps = answer.out.split("\n\n")
    known = dict(line.split(maxsplit=1) for line in facts.splitlines())
    assert (known["id"], known["status"], known["input_data"]) == (job_id, "RUNNING", '{"topic":"cats"}')
    assert "error" not in known
    rows = [line.split()[:4] for line in steps.splitlines()]
    assert rows == [
        ["step", "name", "status", "attempts"],
        ["0", "outline", "completed", "1"],
        ["1", "draw", "executing", "1"],
        ["2", "narrate", "queued", "0"],
    ]
    as_json = json.loads((await shell.run("job", "show", job_id, "--output", "json")).out)
    assert as_json["context"]["step_0_outline"]["data"] == {"chapters": 2}
    assert [one["status"] for one in as_json["steps"]] == ["completed", "executing", "queued"]


async def test_a_failed_job_is_shown_with_its_error(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "note")
    await fail(live_store, await claim_one(live_store))
    shown = (await shell.run("job", "show", job_id)).out
    assert '"code":"no_ink"' in shown
    assert shown.splitlines()[-1].split()[:3] == ["0", "outline", "failed"]


# Watching


async def test_watching_shows_the_state_then_each_change_then_the_context(
    live_store: Store, shell: Shell
) -> None:
    job_id = await submitted(shell, "note")
    process = await shell.start("job", "watch", job_id)
    assert process.stdout
    assert await process.stdout.readline() == b"outline (1/1) queued\n"
    task = await claim_one(live_store)
    assert await process.stdout.readline() == b"outline (1/1) running\n"
    await live_store.progress("w", Progress(task.task_id, task.fence, 0.5, "half", chunks=[{"page": 1}]))
    lines = [await process.stdout.readline() for _ in range(2)]
    assert lines == [b"outline (1/1) 50% half\n", b'outline (1/1) output {"page":1}\n']
    await complete(live_store, task, "done")
    answer = await ended(process)
    step, end, context = answer.out.split("\n", 2)
    assert (answer.code, step, end) == (0, "outline (1/1) completed", "job completed")
    assert json.loads(context)["step_0_outline"]["data"] == "done"


async def test_watching_as_json_is_one_message_a_line(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "note")
    process = await shell.start("job", "watch", job_id, "--output", "json")
    assert process.stdout
    first = json.loads(await process.stdout.readline())
    assert (first["type"], first["job_id"], first["seq"]) == ("QUEUED", job_id, 1)
    await live_store.jobs.cancel(job_id)
    answer = await ended(process)
    assert [json.loads(line)["type"] for line in answer.out.splitlines()] == ["CANCELLED"]
    assert (answer.code, answer.err) == (1, f"fairlead: Job {job_id} was cancelled.\n")


async def test_on_a_terminal_every_step_has_a_bar(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "story")
    watching = asyncio.create_task(shell.on_terminal("job", "watch", job_id))
    first = await claim_one(live_store)
    await live_store.progress("w", Progress(first.task_id, first.fence, 0.5, "half [done]", chunks=["page"]))
    await complete(live_store, first)
    for _ in range(2):
        await complete(live_store, await claimed(live_store))
    answer = await watching
    assert answer.code == 0
    assert "\x1b[?25l" in answer.out and "\x1b[?25h" in answer.out, "the cursor is hidden, and shown again"
    plain = ESCAPE.sub("", answer.out)
    for name in ("outline", "draw", "narrate"):
        assert name in plain
    assert "━" in plain
    assert json.loads(plain[plain.index("{\r\n") :])["step_2_narrate"]["status"] == "SUCCESS"


async def test_watching_ends_when_the_server_is_gone(tmp_path: Path) -> None:
    with running("valkey") as server:
        async with Store.connect(server.url) as store:
            await store.declare("code", TYPES, {}, {"note": (("outline",),)})
        shell = Shell(tmp_path, ("--engine", server.url))
        process = await shell.start("job", "watch", await submitted(shell, "note"))
        assert process.stdout
        assert b"queued" in await process.stdout.readline()
    answer = await ended(process)
    assert (answer.code, answer.out) == (3, "")
    assert "did not answer" in answer.err


# Resuming and cancelling


async def test_a_job_that_was_not_started_in_time_can_be_resumed(live_store: Store, shell: Shell) -> None:
    job_id = await stuck(live_store, shell)
    watched = await shell.run("job", "watch", job_id)
    assert watched.code == 1
    assert "(RESOURCE_EXHAUSTED)" in watched.out
    assert "it can be resumed" in watched.err
    assert (await shell.run("job", "resume", job_id)).out == f"{job_id} resumed\n"
    again = await shell.run("job", "resume", job_id)
    assert (again.code, again.out) == (1, "")
    assert again.err == "fairlead: The job is PENDING: only a failed one can be resumed.\n"


async def test_a_job_that_failed_for_good_is_resumed_by_force(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "note")
    await fail(live_store, await claim_one(live_store))
    refused = await shell.run("job", "resume", job_id)
    assert (refused.code, refused.out) == (1, "")
    assert f"`fairlead job resume --force {job_id}`" in refused.err
    assert (await shell.run("job", "resume", "--force", job_id)).out == f"{job_id} resumed\n"
    (entry,) = (await live_store.audit.page()).entries
    assert (entry.act, entry.subject) == ("resume_job", job_id)
    await complete(live_store, await claim_one(live_store))
    assert (await live_store.jobs.get(job_id)).status is JobStatus.COMPLETED


async def test_resuming_as_json(live_store: Store, shell: Shell) -> None:
    job_id = await stuck(live_store, shell)
    answer = await shell.run("job", "resume", job_id, "--output", "json")
    assert json.loads(answer.out) == {"job_id": job_id, "status": "PENDING", "skipped": []}


async def test_a_job_is_cancelled_once(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "note")
    assert (await shell.run("job", "cancel", job_id)).out == f"{job_id} CANCELLED\n"
    job: Job = await live_store.jobs.get(job_id)
    assert job.status is JobStatus.CANCELLED
    as_json = await shell.run("job", "cancel", await submitted(shell, "note"), "--output", "json")
    assert json.loads(as_json.out)["status"] == "CANCELLED"


async def test_an_ended_job_is_not_cancelled(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "note")
    await complete(live_store, await claim_one(live_store))
    answer = await shell.run("job", "cancel", job_id)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "fairlead: The job is COMPLETED already: nothing was changed.\n"


@pytest.mark.parametrize("command", ["show", "watch", "resume", "cancel"])
@pytest.mark.parametrize("job_id", ["nonsense", NOBODY])
async def test_an_unknown_job_is_reported_as_unknown(command: str, job_id: str, shell: Shell) -> None:
    answer = await shell.run("job", command, job_id)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("fairlead: There is no such job: check the id")


# Listing


async def test_jobs_are_listed_newest_first(live_store: Store, shell: Shell) -> None:
    ids = [await submitted(shell, name, "--user-id", "ann") for name in ("story", "note", "story")]
    await complete(live_store, await claimed(live_store))
    await shell.run("job", "cancel", ids[1])
    header, *rows = [line.split() for line in (await shell.run("job", "list")).out.splitlines()]
    assert header == ["job", "pipeline", "status", "done", "priority", "user", "queued", "error"]
    assert [row[:6] for row in rows] == [
        [ids[2], "story", "PENDING", "0/3", "medium", "ann"],
        [ids[1], "note", "CANCELLED", "0/1", "medium", "ann"],
        [ids[0], "story", "RUNNING", "1/3", "medium", "ann"],
    ]
    answer = await shell.run("job", "list", "--feature-name", "story", "--limit", "1", "--output", "json")
    page = json.loads(answer.out)
    assert [one["id"] for one in page["jobs"]] == [ids[2]]
    following = ("--cursor", page["next_cursor"], "--output", "json")
    page = json.loads((await shell.run("job", "list", "--feature-name", "story", *following)).out)
    assert ([one["id"] for one in page["jobs"]], page["next_cursor"]) == ([ids[0]], None)
    assert len((await shell.run("job", "list", "--status", "CANCELLED")).out.splitlines()) == 2
    assert len((await shell.run("job", "list", "--user-id", "bob")).out.splitlines()) == 1
    assert (await shell.run("job", "list", "--status", "open")).code == 2


# Explaining


async def test_a_job_is_explained_by_the_steps_that_are_not_done(live_store: Store, shell: Shell) -> None:
    job_id = await submitted(shell, "story")
    await live_store.pause_type("outline")
    assert (await shell.run("job", "explain", job_id)).out == "outline: Its task type is paused.\n"
    await live_store.pause_type("outline", False)
    await complete(live_store, await claimed(live_store))
    await live_store.pause_type("narrate")
    running = await claimed(live_store)
    draw, narrate = (await shell.run("job", "explain", job_id)).out.splitlines()
    assert draw.startswith("draw: It is executing; it started on w at ")
    assert narrate == "narrate: Its task type is paused."
    answer = json.loads((await shell.run("job", "explain", job_id, "--output", "json")).out)
    assert (answer["job_id"], answer["status"]) == (job_id, "RUNNING")
    assert answer["sentence"] == f"{draw} {narrate}"
    assert [(step["step"], step["name"]) for step in answer["steps"]] == [(1, "draw"), (2, "narrate")]
    assert answer["steps"][0]["task_id"] == running.task_id


async def test_the_explanation_of_a_job_that_ended_is_how(live_store: Store, shell: Shell) -> None:
    failed_id, cancelled_id = await submitted(shell, "note"), await submitted(shell, "note")
    await fail(live_store, await claimed(live_store))
    await shell.run("job", "cancel", cancelled_id)
    shown = (await shell.run("job", "explain", failed_id)).out
    assert shown.startswith("It failed at step 0 (") and "the pen\\nis dry" in shown
    assert (await shell.run("job", "explain", cancelled_id)).out == "It is CANCELLED.\n"
    assert (await shell.run("job", "explain", NOBODY)).code == 1

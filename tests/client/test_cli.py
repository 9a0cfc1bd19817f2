"""The command line with --url: every command through a real gateway, as through the engine itself."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.model.reports import Failed
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway
from tests.apps import story, tour
from tests.client.answering import unreachable_url
from tests.commands import Shell
from tests.store.namespace import claim_one
from tests.waiting import wait_until
from tests.workers import WorkerLauncher


@pytest.fixture
def shell(gateway: Gateway, store: Store, tmp_path: Path) -> Shell:
    return Shell(tmp_path, ("--url", gateway.url))


@pytest.fixture
async def worker(fl: Fairlead) -> AsyncIterator[Fairlead]:
    """Runs the tasks of the tour."""
    place, tour.fl.target = tour.fl.target, fl.target
    async with tour.fl, tour.fl.worker():
        yield tour.fl
    tour.fl.target = place


async def answer(shell: Shell, *arguments: str) -> Any:
    ended = await shell.run(*arguments, "--output", "json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


async def failed(store: Store, count: int = 1) -> list[str]:
    await store.workers.register("w", capacity=9)
    ids = []
    for _ in range(count):
        await store.submit_one(NewTask(task_type="draw"))
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, "bad", "no paint", retriable=False))
        ids.append(task.task_id)
    return ids


async def test_submit_and_wait(shell: Shell, worker: Fairlead) -> None:
    ended = await shell.run("submit", "render", "--param", "frames=2", "--wait")
    assert (ended.code, json.loads(ended.out)) == (0, "film.mp4"), ended.err
    assert 'output {"frame":1}' in ended.err
    ended = await shell.run("submit", "pay", "--param", "eur=200", "--wait")
    assert ended.code == 1
    assert "the account is empty" in ended.err


async def test_submit_again_with_the_same_key(shell: Shell, store: Store) -> None:
    first = await answer(shell, "submit", "draw", "--idempotency-key", "order-7", "--priority", "high")
    again = await answer(shell, "submit", "draw", "--idempotency-key", "order-7", "--priority", "high")
    assert first["task_id"] == again["task_id"]
    assert again["repeated"]
    assert (await store.get(first["task_id"])).priority.word == "high"


async def test_task_list_show_explain_watch_and_cancel(shell: Shell, store: Store) -> None:
    task = NewTask(task_type="draw", user_id="ann")
    await store.submit_one(task)
    (listed,) = (await answer(shell, "task", "list", "--user-id", "ann"))["tasks"]
    assert listed["task_id"] == task.task_id
    assert (await answer(shell, "task", "show", task.task_id))["queue_position"] == 1
    assert "No live worker" in (await answer(shell, "task", "explain", task.task_id))["sentence"]
    watching = await shell.start("task", "watch", task.task_id)
    assert watching.stdout
    assert (await watching.stdout.readline()).startswith(b"queued")
    ended = await shell.run("task", "cancel", task.task_id)
    assert ended.out == f"{task.task_id} cancelled\n", ended.err
    out, err = await watching.communicate()
    assert out.endswith(b"cancelled\n")
    assert (watching.returncode, b"was cancelled" in err) == (1, True)
    ended = await shell.run("task", "show", NO_TASK)
    assert (ended.code, "no such task" in ended.err) == (1, True)


async def test_job_submit_show_explain_watch_resume_and_cancel(shell: Shell, fl: Fairlead) -> None:
    place, story.fl.target = story.fl.target, fl.target
    async with story.fl, story.fl.worker():
        ended = await shell.run("job", "submit", "story", "--param", "topic=cats", "--wait")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["step_3_bind"]["data"].startswith("a book of 2 pages")
        failed = await answer(shell, "job", "submit", "story", "--input", '{"topic": "nothing"}')
        ended = await shell.run("job", "watch", failed["job_id"])
        assert (ended.code, "there is nothing to tell" in ended.err) == (1, True)
    story.fl.target = place
    assert (await answer(shell, "job", "show", failed["job_id"]))["error"]["step"] == 0
    ended = await shell.run("job", "resume", failed["job_id"])
    assert (ended.code, "failed for good" in ended.err) == (1, True)
    assert (await shell.run("job", "explain", failed["job_id"])).out.startswith("It failed at step 0 (")
    waiting = await answer(shell, "job", "submit", "story")
    explained = await answer(shell, "job", "explain", waiting["job_id"])
    assert "No live worker" in explained["sentence"]
    assert (await answer(shell, "job", "cancel", waiting["job_id"]))["status"] == "CANCELLED"
    ended = await shell.run("job", "submit", "storry")
    assert (ended.code, "there are story" in ended.err) == (1, True)
    ended = await shell.run("job", "show", NO_TASK)
    assert (ended.code, "no such job" in ended.err) == (1, True)


async def test_limit_set_status_and_release(shell: Shell, store: Store) -> None:
    ended = await shell.run("limit", "set", "gpu", "--limit", "2")
    assert ended.out == "gpu: 2 at a time\n", ended.err
    assert (await shell.run("limit", "set", "api", "--rate", "60/min")).code == 0
    lease = await store.limits.acquire("gpu", holder="me")
    assert (await answer(shell, "limit", "status", "gpu"))["slots"][0]["slot_id"] == lease.lease_id
    assert {one["name"] for one in (await answer(shell, "limit", "status"))["limits"]} == {"gpu", "api"}
    assert (await shell.run("limit", "release", "gpu", lease.lease_id)).code == 2
    assert (await shell.run("limit", "release", "gpu", lease.lease_id, "--force")).code == 0
    assert (await shell.run("limit", "release", "gpu", lease.lease_id, "--force")).code == 1
    assert (await answer(shell, "limit", "delete", "gpu")) == {"name": "gpu", "deleted": True}
    acts = [entry.act for entry in (await store.audit.page()).entries]
    assert acts == ["delete_limit", "force_release", "set_limit", "set_limit"]  # each once, by the gateway


async def test_workers_list_and_drain(shell: Shell, store: Store) -> None:
    await store.workers.register("w", name="studio")
    (listed,) = (await answer(shell, "workers", "list"))["workers"]
    assert (listed["worker_id"], listed["name"]) == ("w", "studio")
    ended = await shell.run("workers", "drain", "--name", "studio")
    assert ended.out == "w is draining\n", ended.err
    ended = await shell.run("workers", "drain", "nobody")
    assert (ended.code, "There is no worker nobody" in ended.err) == (1, True)


async def test_dlq_list_replay_and_purge(shell: Shell, store: Store) -> None:
    one, two, three = await failed(store, 3)
    assert {task["task_id"] for task in (await answer(shell, "dlq", "list"))["tasks"]} == {one, two, three}
    assert (await shell.run("dlq", "replay", one)).out == "1 task replayed\n"
    assert (await shell.run("dlq", "purge", "--all", "--task-type", "draw")).out == "2 tasks purged\n"
    assert (await store.get(one)).status == "queued"
    assert (await shell.run("dlq", "replay", NO_TASK)).code == 1


async def test_stats(shell: Shell, store: Store) -> None:
    await store.submit_one(NewTask(task_type="draw"))
    assert (await answer(shell, "stats"))["queues"]["medium"]["depth"] == 1


@pytest.mark.parametrize("command", [("doctor",), ("key", "list")])
async def test_a_command_that_needs_the_engine_says_so(shell: Shell, command: tuple[str, ...]) -> None:
    ended = await shell.run(*command)
    assert ended.code == 2
    assert "not through a gateway" in ended.err
    assert "--engine" in ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--engine", "redis://there"), "leave out --engine and --data"),
        (("--data", "there"), "leave out --engine and --data"),
        (("--namespace", "blue"), "serves no such namespace"),
        (("--key", "a b"), "fairlead key create"),
    ],
)
async def test_options_that_contradict_each_other_are_refused(
    shell: Shell, options: tuple[str, ...], words: str
) -> None:
    ended = await shell.run("stats", *options)
    assert ended.code == 2
    assert words in ended.err


async def test_a_key_in_the_settings_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "fairlead.toml").write_text('[engine]\nurl = "http://there"\nkey = "flk_secret"\n')
    for output in ("table", "json"):
        ended = await Shell(tmp_path).run("config", "check", "--output", output)
        assert ended.code == 0
        assert "***" in ended.out
        assert "secret" not in ended.out


async def test_an_address_that_is_not_of_a_gateway_is_refused(tmp_path: Path) -> None:
    ended = await Shell(tmp_path, ("--url", "redis://there")).run("stats")
    assert (ended.code, "is the address of a gateway" in ended.err) == (2, True)


@pytest.mark.parametrize("command", [("stats",), ("submit", "draw"), ("task", "list"), ("limit", "status")])
async def test_a_missing_gateway_is_not_reachable(tmp_path: Path, command: tuple[str, ...]) -> None:
    with unreachable_url() as url:
        ended = await Shell(tmp_path, ("--url", url)).run(*command)
    assert (ended.code, ended.out) == (3, "")
    assert "is it running" in ended.err


async def test_the_way_from_one_terminal_to_the_other_needs_no_option(tmp_path: Path) -> None:
    """As `make run` in one and `fairlead submit` in another: both use the engine of the data folder."""
    shell = Shell(tmp_path)
    running = await shell.start("up", "--port", "0", "--demo")
    try:
        assert running.stdout
        while b"Press Ctrl-C" not in (line := await running.stdout.readline()):
            assert line
        submitted = await answer(shell, "submit", "draw")
        assert (await answer(shell, "task", "show", submitted["task_id"]))["status"] == "queued"
    finally:
        running.terminate()
        await running.communicate()


async def test_a_worker_and_a_client_that_know_nothing_but_the_gateway(
    gateway: Gateway, store: Store, shell: Shell, tmp_path: Path
) -> None:
    async with WorkerLauncher(tmp_path, lambda: ("--url", gateway.url)).workers(
        "tests.apps.tour:fl"
    ) as workers:
        await store.limits.set("gpu", Slots(limit=0))
        task = await answer(shell, "submit", "draw", "--param", "prompt=robot")

        async def waits() -> bool:
            return (await store.explain(task["task_id"])).blocked_by != ()

        await wait_until(waits)
        assert (await shell.run("limit", "set", "gpu", "--limit", "1")).code == 0
        ended = await shell.run("task", "watch", task["task_id"])
        assert ended.code == 0, ended.err
        assert await workers.end() == 0


async def test_types_crons_and_the_audit(shell: Shell, store: Store) -> None:
    await store.crons.last("report", "0 3 * * *", "Europe/Berlin")
    assert (await shell.run("type", "pause", "draw")).out == "draw is paused\n"
    assert [one["paused"] for one in (await answer(shell, "type", "list"))["task_types"]] == [True]
    assert (await shell.run("type", "resume", "draw")).out == "draw is resumed\n"
    (cron,) = (await answer(shell, "cron", "list"))["crons"]
    assert (cron["name"], cron["schedule"], cron["timezone"]) == ("report", "0 3 * * *", "Europe/Berlin")
    acts = [entry["act"] for entry in (await answer(shell, "audit", "list"))["entries"]]
    assert acts == ["resume_type", "pause_type"]  # each once, by the gateway
    assert len((await answer(shell, "audit", "list", "--limit", "1"))["entries"]) == 1
    verified = await shell.run("audit", "verify")
    assert (verified.code, verified.out.startswith("Every entry up to 2 is as it was written.")) == (0, True)

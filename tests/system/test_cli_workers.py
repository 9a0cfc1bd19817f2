"""`fairlead workers expire` and `fairlead cron list`: what an operator looks after by hand."""

import json
from pathlib import Path

from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.times import time_text
from tests.commands import Shell
from tests.waiting import wait_until


async def test_a_dead_worker_is_expired_and_its_tasks_run_again(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await live_store.workers.register("w")
    task = await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))
    await live_store.claim("w")
    expired = await shell.run("workers", "expire", "w", "--force")
    assert expired.out == "w is forgotten; 1 lease ended\n"
    assert (await live_store.get(task.task_id)).status == "queued"
    assert (await live_store.limits.get("gpu")).active == 0
    (entry,) = (await live_store.audit.page()).entries
    assert (entry.act, entry.subject, entry.after) == ("expire", "w", {"expired": 1})


async def test_a_worker_that_was_just_seen_is_not_expired_without_force(
    live_store: Store, shell: Shell
) -> None:
    await live_store.workers.register("w")
    await live_store.submit_one(NewTask(task_type="draw"))
    (task,) = (await live_store.claim("w")).tasks
    refused = await shell.run("workers", "expire", "w")
    assert (refused.code, refused.out) == (2, "")
    assert "its tasks run twice; if it is certainly dead, add --force" in refused.err
    assert (await live_store.get(task.task_id)).status == "executing"


async def test_an_unknown_worker_is_not_expired(live_store: Store, shell: Shell) -> None:
    answer = await shell.run("workers", "expire", "nobody", "--force")
    assert (answer.code, answer.err) == (
        1,
        "fairlead: There is no worker nobody: `fairlead workers list` shows them.\n",
    )


async def test_workers_are_expired_on_the_engine_only(tmp_path: Path) -> None:
    answer = await Shell(tmp_path).run("workers", "expire", "w", "--url", "http://127.0.0.1:1")
    assert (answer.code, "on the engine itself" in answer.err) == (2, True)


async def test_crons_are_listed_with_their_last_tick(live_store: Store, shell: Shell) -> None:
    first, _ = await live_store.crons.last("report")

    async def has_passed() -> bool:
        return (await live_store.crons.last("report"))[1] > first

    await wait_until(has_passed)
    await live_store.crons.tick("report", first, first + 1, NewTask(task_type="report"))
    other, _ = await live_store.crons.last("backup")
    answer = json.loads((await shell.run("cron", "list", "--output", "json")).out)
    undeclared = {"schedule": None, "timezone": None, "next_tick": None}
    assert answer == {
        "crons": [
            {"name": "backup", "last_tick": time_text(other), **undeclared},
            {"name": "report", "last_tick": time_text(first + 1), **undeclared},
        ]
    }
    heading = " ".join((await shell.run("cron", "list")).out.splitlines()[0].split())
    assert heading == "cron schedule time zone last tick next tick"

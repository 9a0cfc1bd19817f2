"""Tiers on the command line: what a task may take, how it was shortened, and talking to one."""

import json

import pytest

from fairlead.model.reports import Completed, Grant
from fairlead.model.task import NewTask, Task
from fairlead.settings import Settings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from fairlead.times import time_text
from tests.commands import Shell
from tests.shouting import shouting
from tests.waiting import wait_until


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={"fast": Tier(seconds=30), "slow": Tier(seconds=300, limit=1)})


async def shortened(store: Store) -> Task:
    """An elastic run that had to give up the longer tier."""
    await store.workers.register("w", capacity=2)
    elastic = await store.submit_one(NewTask(task_type="draw"))
    assert [one.tier for one in (await store.claim("w")).tasks] == ["slow"]
    await store.submit_one(NewTask(task_type="draw", duration="slow"))
    await store.claim("w")
    task = await store.get(elastic.task_id)
    assert task.tier == "fast"
    return task


async def test_a_shortened_task_is_shown_with_its_history(live_store: Store, shell: Shell) -> None:
    task = await shortened(live_store)
    until = time_text(task.deadline)
    shown = dict(
        line.split(maxsplit=1) for line in (await shell.run("task", "show", task.task_id)).out.splitlines()
    )
    assert (shown["tier"], shown["deadline"]) == ("fast", until)
    started, changed = shown["tiers"].split(", then ")
    assert started == f"slow at {time_text(task.started_at)}: started"
    assert changed.startswith("fast at ")
    assert changed.endswith(": a waiting task needs its tier")
    as_json = json.loads((await shell.run("task", "show", task.task_id, "--output", "json")).out)
    assert [one["tier"] for one in as_json["tiers"]] == ["slow", "fast"]
    head, *rows = (await shell.run("task", "list")).out.splitlines()
    assert head.split()[-1] == "tier"
    assert sorted(row.split()[-1] for row in rows) == ["-", "fast"]
    limits = [line.split()[:4] for line in (await shell.run("limit", "status")).out.splitlines()]
    assert limits[1:] == [["tier:fast", "slots", "2", "1"], ["tier:slow", "slots", "1", "1"]]
    await live_store.shortened("w", Grant(task.task_id, task.fence))
    await live_store.complete("w", Completed(task.task_id, task.fence, "part", truncated=True))
    watched = await shell.run("task", "watch", task.task_id)
    assert "completed (truncated at the deadline of its tier)" in watched.out


async def test_watching_shows_how_it_is_shortened(live_store: Store, shell: Shell) -> None:
    await live_store.workers.register("w", capacity=2)
    elastic = await live_store.submit_one(NewTask(task_type="draw"))
    (running,) = (await live_store.claim("w")).tasks
    watching = await shell.start("task", "watch", elastic.task_id)
    assert watching.stdout
    first = (await watching.stdout.readline()).decode()
    assert first == f"executing (tier slow, until {time_text(running.deadline)})\n"
    await live_store.submit_one(NewTask(task_type="draw", duration="slow"))
    await live_store.claim("w")
    until = time_text((await live_store.get(elastic.task_id)).deadline)
    assert (await watching.stdout.readline()).decode() == f"executing (shorten: fast, until {until})\n"
    await live_store.complete("w", Completed(running.task_id, running.fence, 1))
    await watching.communicate()


async def test_the_duration_of_a_submit(live_store: Store, shell: Shell) -> None:
    answer = await shell.run("submit", "draw", "--duration", "slow")
    assert (await live_store.get(answer.out.split()[0])).duration == "slow"
    refused = await shell.run("submit", "draw", "--duration", "eternal")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == ("fairlead: duration: no tier is called eternal; known: fast, slow, interactive\n")
    refused = await shell.run("submit", "draw", "--limit", "tier:slow=1")
    assert refused.err == (
        "fairlead: limits.tier:slow: is the limit of a tier: give the duration 'slow' instead\n"
    )
    refused = await shell.run("job", "submit", "story", "--duration", "slow")
    assert refused.code == 2
    assert "--duration" in refused.err
    refused = await shell.run("limit", "set", "tier:slow", "--limit", "3")
    assert "change [tiers] in the settings" in refused.err


async def test_no_capacity_is_said_plainly(shell: Shell) -> None:
    refused = await shell.run("submit", "shell", "--duration", "interactive")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "fairlead: No slot is free for an interactive task, which is never queued: try again later.\n"
    )


async def test_lines_of_a_terminal_are_frames(live_store: Store, shell: Shell) -> None:
    async with shouting(live_store):
        ended = await shell.on_terminal("submit", "shell", "--duration", "interactive", typed="hello\nbye\n")
    assert ended.code == 0
    assert "Each line is sent to its handler; Ctrl-D ends it." in ended.out
    assert ended.out.splitlines()[-2:] == ["HELLO", "2"]


async def test_leaving_the_terminal_ends_the_task(live_store: Store, shell: Shell) -> None:
    async with shouting(live_store):
        ended = await shell.on_terminal("submit", "shell", "--duration", "interactive", typed="\x04")
        assert ended.code == 0
        task_id = next(word for line in ended.out.splitlines() for word in line.split() if "-" in word)
        assert (await live_store.get(task_id)).status == "cancelled"

        async def is_free() -> bool:
            return [worker.running for worker in (await live_store.stats()).workers] == [0]

        await wait_until(is_free)

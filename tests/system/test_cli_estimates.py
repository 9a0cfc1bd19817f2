"""Estimates on the command line: of a submit, of a task and while it is watched; and what is refused."""

import asyncio
import json
import re

import pytest

from fairlead.cli.task import HOLDERS
from fairlead.clock import now_ms
from fairlead.model.job import NewJob, NewStep
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.commands import Shell, ended
from tests.store.forecasting import flat, forecast


@pytest.fixture
async def busy(live_store: Store) -> Store:
    """A new task waits 60 s by p50, and 150 s by p90."""
    await live_store.workers.register("w", capacity=1)
    await live_store.submit_one(NewTask(task_type="draw"))
    assert (await live_store.claim("w")).tasks
    await forecast(live_store, now_ms(), {"1n": flat(60_900, 150_000)}, "draw")
    return live_store


async def test_a_submit_says_when_the_task_will_probably_start(busy: Store, shell: Shell) -> None:
    out = (await shell.run("submit", "draw")).out
    assert ", position 1, starts in about " in out
    assert " (90 %: within 2 min)" in out
    as_json = json.loads((await shell.run("submit", "draw", "--output", "json")).out)
    assert 30 < as_json["estimate"]["p50_seconds"] <= 60.9


async def test_a_task_is_shown_and_explained_with_its_estimate(busy: Store, shell: Shell) -> None:
    task_id = (await busy.submit_one(NewTask(task_type="draw"))).task_id
    for command in ("show", "explain"):
        lines = (await shell.run("task", command, task_id)).out.splitlines()
        (estimate,) = [line for line in lines if line.startswith("estimate ")]
        assert estimate.endswith(" (90 %: within 2 min)")
        as_json = json.loads((await shell.run("task", command, task_id, "--output", "json")).out)
        assert 30 < as_json["estimate"]["p50_seconds"] <= 60.9


async def first_lines(shell: Shell, count: int, *command: str) -> list[str]:
    """What it prints before its end, which need not come."""
    process = await shell.start(*command)
    assert process.stdout
    try:
        async with asyncio.timeout(40):
            return [(await process.stdout.readline()).decode() for _ in range(count)]
    finally:
        process.terminate()
        await ended(process)


async def test_watching_a_task_shows_its_estimate(busy: Store, shell: Shell) -> None:
    task_id = (await busy.submit_one(NewTask(task_type="draw"))).task_id
    (line,) = await first_lines(shell, 1, "task", "watch", task_id)
    assert line.startswith("queued It is next. It starts in about ")


async def test_a_deadline_that_is_unlikely_is_refused(busy: Store, shell: Shell) -> None:
    refused = await shell.run("submit", "draw", "--deadline", "10")
    assert refused.code == 1
    assert "after its deadline of 10 s: give it more time, or a better priority." in refused.err
    assert (await shell.run("submit", "draw", "--deadline", "100")).code == 0


async def test_the_holders_of_a_limit_are_listed(live_store: Store, shell: Shell) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    await live_store.workers.register("render-17", capacity=2)
    holder = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))).task_id
    assert (await live_store.claim("render-17")).tasks
    waiting = (await live_store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))).task_id
    *_, head, row = (await shell.run("task", "explain", waiting)).out.splitlines()
    assert re.split("  +", head) == [*HOLDERS]
    assert row.split()[:4] == ["gpu", "render-17", holder, "1"]
    assert "It is executing; it started on render-17 at " in (await shell.run("task", "explain", holder)).out


async def test_watching_a_job_shows_the_estimates_of_its_steps(busy: Store, shell: Shell) -> None:
    job = NewJob(feature_name="story", stages=[[NewStep("one", "draw")]])
    job_id = (await busy.jobs.submit(job)).job_id
    queued, estimate = await first_lines(shell, 2, "job", "watch", job_id)
    assert queued == "one (1/1) queued\n"
    assert estimate.startswith("one (1/1) starts in about ")

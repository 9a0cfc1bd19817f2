"""The page of events: every message that it lists is produced here, with exactly its fields."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead.live.feed import Feed, JobFeed, TaskFeed
from fairlead.live.messages import Message
from fairlead.model.job import NewJob
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.task import NewTask
from fairlead.pipeline.pipelines import submit_job
from fairlead.settings import Settings, Slots, TaskSettings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import flat, forecast
from tests.store.namespace import claim_one

PAGE = (Path(__file__).parents[2] / "docs/events.md").read_text()
COMMON = {"type", "seq", "at"}
OF_STEPS = {"job_id", "step_index", "service_name", "total_steps"}
WITH_TEXT = {"STEP_START", "STEP_COMPLETE", "WAITING"}


def fields_of(section: str) -> dict[str, set[str]]:
    """The fields of each type in the tables of a section."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([A-Z_]+)` \| .*? \| (.*?) ?\|$", text, re.M)
    return {kind: set(re.findall(r"`(\w+)`", fields)) for kind, fields in rows}


def seen(messages: list[Message]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for message in messages:
        found[message["type"]] |= set(message) - COMMON
    return found


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={"fast": Tier(seconds=3000), "slow": Tier(seconds=30_000, limit=1)})


@pytest.fixture
async def store(store: Store) -> Store:
    types = {name: TaskSettings() for name in ("outline", "draw", "narrate")}
    await store.declare("code", types, {}, {"story": (("outline",), ("draw", "narrate"))})
    await store.workers.register("w", capacity=9)
    return store


@asynccontextmanager
async def followed(feed: Feed, into: list[Message]) -> AsyncIterator[None]:
    """From its first message to its last, which must come of what is done in the block."""
    begun = asyncio.Event()

    async def collect() -> None:
        async for message in feed.messages(None):
            into.append(message)
            begun.set()

    collecting = asyncio.create_task(collect())
    async with asyncio.timeout(30):
        await begun.wait()
        yield
        await collecting


async def later(store: Store, clock: Clock, seconds: float) -> None:
    """What is due by then has happened, and the worker is still there."""
    clock.pass_seconds(seconds)
    await store.promote()
    await store.workers.register("w", capacity=9)


async def test_the_messages_of_a_task(store: Store, clock: Clock) -> None:
    messages: list[Message] = []
    await store.limits.set("gpu", Slots(limit=0))
    task_id = (await store.submit_one(NewTask(task_type="x", priority="low", limits={"gpu": 1}))).task_id
    await forecast(store, clock.now, {"2n": flat(9_000, 20_000)}, "x")
    async with followed(TaskFeed(store, task_id), messages):
        await later(store, clock, 600)
        await store.limits.set("gpu", Slots(limit=1))
        task = await claim_one(store)
        await store.progress("w", Progress(task_id, task.fence, 0.5, "half", ["a chunk"]))
        await store.extend("w", Grant(task_id, task.fence), 3_600_000)
        await store.fail("w", Failed(task_id, task.fence, "busy", "come back", jitter=0))
        await later(store, clock, 60)
        await claim_one(store)
        await store.expire("w")
        await store.workers.register("v")
        task = await claim_one(store, "v")
        await store.complete("v", Completed(task_id, task.fence, 1))
    for ends in ("fails", "is cancelled"):
        task_id = (await store.submit_one(NewTask(task_type="x"))).task_id
        async with followed(TaskFeed(store, task_id), messages):
            task = await claim_one(store, "v")
            if ends == "fails":
                await store.fail("v", Failed(task_id, task.fence, "broken", "for good", retriable=False))
            else:
                await store.cancel(task_id)
                await store.release("v", Grant(task_id, task.fence))
    await halted(store, messages)
    await shortened(store, messages)
    assert seen(messages) == {kind: {*fields, "task_id"} for kind, fields in fields_of("Of a task").items()}


async def shortened(store: Store, messages: list[Message]) -> None:
    """An elastic run, for a task of the longer tier."""
    await store.workers.register("v", capacity=2)
    elastic = (await store.submit_one(NewTask(task_type="x"))).task_id
    async with followed(TaskFeed(store, elastic), messages):
        running = await claim_one(store, "v")
        slow = (await store.submit_one(NewTask(task_type="x", duration="slow"))).task_id
        await store.claim("v")
        await store.shortened("v", Grant(elastic, running.fence))
        await store.complete("v", Completed(elastic, running.fence), Completed(slow))
    await claim_one(store, "v")
    await store.complete("v", Completed(slow))


async def halted(store: Store, messages: list[Message]) -> None:
    """A session, for a task that needs its slot."""
    await store.claim("v", idle=True)
    session = (await store.submit_one(NewTask(task_type="x", duration="interactive"))).task_id
    async with followed(TaskFeed(store, session), messages):
        (running,) = (await store.claim("v")).tasks
        other = (await store.submit_one(NewTask(task_type="x"))).task_id
    await store.release("v", Grant(session, running.fence))
    await claim_one(store, "v")
    await store.complete("v", Completed(other))


async def test_the_messages_of_a_job(store: Store, clock: Clock) -> None:
    messages: list[Message] = []
    for ends in ("completes", "fails", "is cancelled"):
        job_id = (await submit_job(store.jobs, NewJob(feature_name="story", priority="low"))).job_id
        async with followed(JobFeed(store, await store.jobs.get(job_id)), messages):
            await later(store, clock, 600)
            first = await claim_one(store)
            await store.complete("w", Completed(first.task_id, first.fence, {}))
            if ends == "is cancelled":
                await store.jobs.cancel(job_id)
                continue
            one, two = (await store.claim("w", 2)).tasks
            if ends == "fails":
                await store.fail("w", Failed(one.task_id, one.fence, "broken", "for good", retriable=False))
            else:
                await store.complete("w", Completed(one.task_id, one.fence, {}))
            await store.complete("w", Completed(two.task_id, two.fence, {}))
    found, own = seen(messages), fields_of("Of a job")
    assert {kind: found.pop(kind) for kind in own} == {
        kind: {*fields, "job_id"} for kind, fields in own.items()
    }
    of_tasks = fields_of("Of a task")
    for kind, fields in found.items():
        assert fields <= of_tasks[kind] | OF_STEPS | {"task_id", "text"}
        assert fields >= OF_STEPS | {"task_id"}
        assert ("text" in fields) == (kind in WITH_TEXT), kind

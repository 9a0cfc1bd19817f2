"""Two jobs minute by minute: one that pays and waits for a slot, one that does not pay and is promoted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fairlead.live.feed import JobFeed
from fairlead.model.job import JobStatus, NewJob
from fairlead.model.reports import Completed
from fairlead.model.task import Task
from fairlead.pipeline.pipelines import planned
from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from fairlead.times import time_text
from tests.conftest import Clock
from tests.store.namespace import claim_one
from tests.waiting import wait_until

FILE = """
[lease]
lease_seconds = 3000
[promotion]
low_to_medium_seconds = 1800
medium_to_high_seconds = 3600
[services.prompt_enhancer]
url = "http://enhancer/"
limit = 5
[services.fast_chat_llm]
url = "http://chat/"
limit = 4
[services.image_gen]
url = "http://image/"
limit = 1
timeout_seconds = 1000
[services.model_3d_gen]
url = "http://model/"
limit = 1
timeout_seconds = 1000
[pipelines]
full_pipeline = ["prompt_enhancer", "fast_chat_llm", "image_gen", "model_3d_gen"]
text_only = ["prompt_enhancer", "fast_chat_llm"]
picture = ["image_gen"]
prompt = ["prompt_enhancer"]
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "fairlead.toml"
    path.write_text(FILE)
    return load_settings(path, {})


@dataclass
class Watcher:
    """The messages that the user of a job receives, with the times of the store's clock."""

    store: Store
    job_id: str
    began: int
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def listen(self) -> None:
        async for message in JobFeed(self.store, await self.store.jobs.get(self.job_id)).messages(None):
            self.messages.append(message)

    async def all(self) -> None:
        """Until everything so far was received: messages about a queue show its state at that moment."""
        seq = (await self.store.jobs.get(self.job_id)).seq
        await wait_until(lambda: self.messages and self.messages[-1]["seq"] >= seq)

    def timeline(self) -> list[tuple[float, str, Any]]:
        """Second, type, and the step or the old and new priority."""
        seconds = {time_text(self.began + ms): ms / 1000 for ms in range(0, 2_200_000, 1000)}
        return [
            (seconds[message["at"]], message["type"], message.get("service_name") or message.get("new"))
            for message in self.messages
        ]


class Day:
    """The store's clock and one worker, which acts at the given seconds."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.began = clock.now
        self._clock = clock

    async def at(self, seconds: float) -> None:
        self._clock.now = self.began + round(seconds * 1000)
        await self.store.workers.register("w", capacity=20)
        await self.store.promote()

    async def submit(self, feature: str, priority: str, user: str) -> str:
        stages = await planned(self.store.jobs.pipelines, feature)
        new = NewJob(feature_name=feature, stages=stages, priority=priority, user_id=user)
        return (await self.store.jobs.submit(new)).job_id

    async def start(self, job_id: str, service: str) -> Task:
        task = await claim_one(self.store)
        assert (task.job_id, task.task_type) == (job_id, f"service:{service}")
        return task

    async def finish(self, task: Task, **data: str) -> None:
        await self.store.complete("w", Completed(task.task_id, task.fence, {"data": data, "metrics": {}}))


@pytest.fixture
async def day(store: Store, clock: Clock) -> Day:
    return Day(store, clock)


@asynccontextmanager
async def watching(day: Day, job_id: str) -> AsyncIterator[Watcher]:
    watcher = Watcher(day.store, job_id, day.began)
    listening = asyncio.create_task(watcher.listen())
    try:
        await watcher.all()
        yield watcher
        await asyncio.wait_for(listening, 20)  # it ends with the job
    finally:
        listening.cancel()


async def test_a_paying_user_gets_all_four_steps_and_waits_for_the_one_slot_of_a_service(day: Day) -> None:
    await day.at(0)
    other = await day.submit("picture", "high", "mary")
    held = await day.start(other, "image_gen")
    john = await day.submit("full_pipeline", "high", "john")
    async with watching(day, john) as watcher:
        await day.at(2)
        step = await day.start(john, "prompt_enhancer")
        await watcher.all()
        await day.at(47)
        await day.finish(step, enhanced_prompt="a shiny robot")
        await watcher.all()
        await day.at(49)
        step = await day.start(john, "fast_chat_llm")
        assert step.parameters["context"]["step_0_prompt_enhancer"]["data"] == {
            "enhanced_prompt": "a shiny robot"
        }
        await watcher.all()
        await day.at(169)
        await day.finish(step, generated_text="Imagine a robot")
        await watcher.all()
        assert not (await day.store.claim("w")).tasks, "there is only one slot, and Mary has it"
        await day.at(240)
        await day.finish(held, image_url="mary.png")
        step = await day.start(john, "image_gen")
        await watcher.all()
        await day.at(540)
        await day.finish(step, image_url="robot.png")
        await watcher.all()
        await day.at(541)
        step = await day.start(john, "model_3d_gen")
        await watcher.all()
        await day.at(891)
        await day.finish(step, model_url="robot.glb")

    assert watcher.timeline() == [
        (0, "QUEUED", "prompt_enhancer"),
        (2, "STEP_START", "prompt_enhancer"),
        (47, "STEP_COMPLETE", "prompt_enhancer"),
        (47, "QUEUED", "fast_chat_llm"),
        (49, "STEP_START", "fast_chat_llm"),
        (169, "STEP_COMPLETE", "fast_chat_llm"),
        (169, "QUEUED", "image_gen"),
        (169, "WAITING", "image_gen"),
        (240, "STEP_START", "image_gen"),
        (540, "STEP_COMPLETE", "image_gen"),
        (540, "QUEUED", "model_3d_gen"),
        (541, "STEP_START", "model_3d_gen"),
        (891, "STEP_COMPLETE", "model_3d_gen"),
        (891, "JOB_COMPLETE", None),
    ]
    job = await day.store.jobs.get(john)
    assert (job.status, job.current_step_index) == (JobStatus.COMPLETED, 4)
    data = [job.context[step.key]["data"] for step in job.steps]
    assert data == [
        {"enhanced_prompt": "a shiny robot"},
        {"generated_text": "Imagine a robot"},
        {"image_url": "robot.png"},
        {"model_url": "robot.glb"},
    ]


async def test_a_free_user_is_promoted_after_half_an_hour_and_served_before_another(day: Day) -> None:
    """It does not fail meanwhile for lack of a slot: it waits."""
    minute = 60
    await day.at(0)
    paying = [await day.submit("prompt", priority, "mary") for priority in ("high", "medium") * 3]
    held = [await day.start(job, "prompt_enhancer") for job in (paying[0], paying[2], paying[4])]
    held += [await day.start(job, "prompt_enhancer") for job in (paying[1], paying[3])]
    alice = await day.submit("text_only", "low", "alice")
    async with watching(day, alice) as watcher:
        await day.at(20 * minute)
        bob = await day.submit("text_only", "low", "bob")
        await day.finish(held.pop())
        held.append(await day.start(paying[5], "prompt_enhancer"))  # medium goes before low
        await day.at(30 * minute - 1)
        assert (await day.store.jobs.get(alice)).priority.word == "low"
        await day.at(30 * minute)
        job = await day.store.jobs.get(alice)
        assert (job.priority.word, job.original_priority.word) == ("medium", "low")
        assert job.promoted_at == day.began + 1_800_000
        assert (await day.store.jobs.get(bob)).priority.word == "low"
        await watcher.all()
        await day.at(31 * minute)
        await day.finish(held.pop())
        step = await day.start(alice, "prompt_enhancer")  # Bob is low still
        await watcher.all()
        await day.at(32 * minute)
        await day.finish(step, enhanced_prompt="a long story")
        await watcher.all()
        await day.at(33 * minute)
        step = await day.start(alice, "fast_chat_llm")
        await watcher.all()
        await day.at(35 * minute)
        await day.finish(step, generated_text="Once upon a time")

    assert watcher.timeline() == [
        (0, "QUEUED", "prompt_enhancer"),
        (0, "WAITING", "prompt_enhancer"),
        (1800, "JOB_PROMOTED", "medium"),
        (1860, "STEP_START", "prompt_enhancer"),
        (1920, "STEP_COMPLETE", "prompt_enhancer"),
        (1920, "QUEUED", "fast_chat_llm"),
        (1980, "STEP_START", "fast_chat_llm"),
        (2100, "STEP_COMPLETE", "fast_chat_llm"),
        (2100, "JOB_COMPLETE", None),
    ]
    promoted = watcher.messages[2]
    assert (promoted["old"], promoted["new"]) == ("low", "medium")
    assert (await day.store.jobs.get(alice)).status is JobStatus.COMPLETED


async def test_a_completed_step_has_the_time_of_its_end_whenever_it_is_read(day: Day) -> None:
    await day.at(0)
    john = await day.submit("text_only", "high", "john")
    step = await day.start(john, "prompt_enhancer")
    await day.at(47)
    await day.finish(step)
    await day.at(60)
    await day.start(john, "fast_chat_llm")
    messages = JobFeed(day.store, await day.store.jobs.get(john)).messages(None)
    first = await anext(messages)
    await messages.aclose()
    assert (first["type"], first["at"]) == ("STEP_COMPLETE", time_text(day.began + 47_000))

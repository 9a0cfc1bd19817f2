"""Answers that come late do not undo what a run has learned of its deadline since."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from fairlead.clock import monotonic
from fairlead.model.reports import Grant
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from fairlead.worker.deadlines import Deadlines
from fairlead.worker.handler import Handler
from fairlead.worker.options import WorkerOptions
from fairlead.worker.pipe import MessagePipe
from fairlead.worker.registration import Registration
from fairlead.worker.run import Run
from fairlead.worker.runs import Runs
from tests.waiting import wait_until

TIMEOUT_MS = 200_000


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={"fast": Tier(seconds=100), "slow": Tier(seconds=600, limit=1)})


@dataclass
class Hands:
    """What worker `w` has: an elastic run, and what moves its deadline."""

    store: Store
    run: Run
    deadlines: Deadlines

    async def beat(self) -> dict[str, object]:
        """As the heartbeat sends it over the pipe."""
        sent = monotonic()
        beat = await self.store.workers.heartbeat("w")
        return {"sent": sent, "deadlines": beat.deadlines}

    async def make_fast(self) -> None:
        """A waiting task needs its tier, and finds a worker with room."""
        await self.store.submit_one(NewTask(task_type="draw", duration="slow"))
        await self.store.claim("w")
        assert (await self.store.get(self.run.task.task_id)).tier == "fast"

    async def extend(self, seconds: float) -> int:
        grant = Grant(self.run.task.task_id, self.run.task.fence)
        return await self.store.extend("w", grant, round(seconds * 1000))


@pytest.fixture
async def hands(live_store: Store) -> AsyncIterator[Hands]:
    async def nothing() -> None: ...

    await live_store.workers.register("w", capacity=2)
    await live_store.submit_one(NewTask(task_type="draw", timeout_seconds=TIMEOUT_MS / 1000))
    (task,) = (await live_store.claim("w")).tasks
    ours, theirs = socket.socketpair()
    pipe = await MessagePipe.over(ours)
    runs = Runs("w", pipe)
    run = Run(task, Handler("draw", nothing, "loop"), monotonic(), 0.0)
    run.set_deadline(monotonic() + TIMEOUT_MS / 1000)
    runs.running[task.fence] = run
    registration = Registration(live_store, ["draw"], WorkerOptions(), None)
    registration.worker_id = "w"
    yield Hands(live_store, run, Deadlines(live_store, registration, runs, pipe))
    run.end()
    await pipe.close()
    theirs.close()


async def test_a_beat_from_before_an_extension_does_not_take_it_back(hands: Hands) -> None:
    run, before = hands.run, await hands.beat()
    sent, extended = monotonic(), await hands.extend(500)
    run.extend(sent, 500, extended)
    hands.deadlines.learn(before)
    assert (run.deadline_ms, run.bounded) == (extended, False)
    hands.deadlines.learn(await hands.beat())
    assert (run.deadline_ms, run.bounded) == (extended, False)


async def test_the_answer_to_an_extension_from_before_a_shortening_does_not_undo_it(hands: Hands) -> None:
    run = hands.run
    sent, extended = monotonic(), await hands.extend(500)
    await hands.make_fast()
    hands.deadlines.learn(await hands.beat())
    run.extend(sent, 500, extended)
    kept = await hands.store.get(run.task.task_id)
    assert (run.deadline_ms, run.bounded) == (kept.deadline, True)
    assert run.deadline <= monotonic() + 100


async def test_an_extension_does_not_go_beyond_the_tier(hands: Hands) -> None:
    sent, extended = monotonic(), await hands.extend(5000)
    hands.run.extend(sent, 5000, extended)
    assert hands.run.task.started_at and extended == hands.run.task.started_at + 600_000
    assert hands.run.deadline < monotonic() + 600


async def test_only_a_beat_that_moves_the_deadline_is_confirmed(hands: Hands) -> None:
    hands.deadlines.learn(await hands.beat())
    confirming = asyncio.create_task(hands.deadlines.confirm())
    await hands.make_fast()
    assert (await hands.store.claim("w")).tasks == [], "its unit is not free before the worker knows"
    hands.deadlines.learn(await hands.beat())

    async def is_free() -> bool:
        return bool((await hands.store.claim("w")).tasks)

    await wait_until(is_free)
    confirming.cancel()

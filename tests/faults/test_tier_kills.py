"""kill -9 of workers while runs are shortened and sessions halted: no tier is exceeded, as handlers write."""

import asyncio
import contextlib
import os
import random
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairlead.errors import NoCapacity
from fairlead.model.states import TERMINAL
from fairlead.model.task import NewTask
from fairlead.settings import Settings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from tests.faults.fleet import HASTE, Fleet
from tests.reading import events_of
from tests.servers import Server
from tests.waiting import wait_until

LIMITS = {"fast": 4, "medium": 2, "slow": 1}
MS = {"fast": 2_000, "medium": 4_000, "slow": 6_000}
FILE = "[tiers]\n" + "".join(f"{n} = {{ seconds = {MS[n] / 1000}, limit = {LIMITS[n]} }}\n" for n in LIMITS)
SESSION_MS = 60_000  # is less than its timeout
SLACK_MS = 10  # of the rounding of a deadline


@pytest.fixture
def settings() -> Settings:
    tiers = {name: Tier(seconds=MS[name] / 1000, limit=LIMITS[name]) for name in LIMITS}
    return replace(HASTE, tiers={**tiers})


@pytest.fixture
async def fleet(live_store: Store, server: Server, tmp_path: Path) -> AsyncIterator[Fleet]:
    where = ("--engine", server.url, "--namespace", live_store.connection.keys.namespace)
    async with Fleet(where, tmp_path, more_settings=FILE, app="tests.apps.recording:fl") as made:
        yield made


async def submit_all(store: Store, record: str, dice: random.Random, count: int) -> list[str]:
    """Elastic tasks and tasks of every tier, and a session now and then."""
    tasks = []
    for number in range(count):
        if number % 4 == 3:
            with contextlib.suppress(NoCapacity):
                new = NewTask(task_type="sit", parameters={"record": record}, duration="interactive")
                tasks.append((await store.submit_one(new)).task_id)
        duration = dice.choice([None, None, *LIMITS])
        parameters = {"record": record, "seconds": dice.uniform(0.1, 0.7)}
        new = NewTask(task_type="paint", parameters=parameters, duration=duration)
        tasks.append((await store.submit_one(new)).task_id)
        await asyncio.sleep(dice.uniform(0, 0.15))
    return tasks


async def kill_now_and_then(fleet: Fleet, dice: random.Random, count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(dice.uniform(0.3, 1.2))
        if children := dice.choice(fleet.crews).children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(children), signal.SIGKILL)


def most_at_once(lines: list[list[int]], began: dict[int, int], longer_than: int) -> int:
    """How many runs were allowed more than this, in ms, at the same time, as their handlers wrote.

    Sessions are of the shortest tier, whatever their timeout.
    """
    spans: dict[int, list[int]] = defaultdict(list)
    for at, fence, deadline in lines:
        allowed = deadline - began[fence]
        if longer_than + SLACK_MS < (0 if allowed > SESSION_MS and longer_than else allowed):
            spans[fence].append(at)
    edges = [(min(times), 1) for times in spans.values()] + [(max(times), -1) for times in spans.values()]
    most = now = 0
    for _, change in sorted(edges):
        now += change
        most = max(most, now)
    return most


@pytest.mark.timeout(120)
async def test_no_tier_is_exceeded_however_workers_die(
    live_store: Store, fleet: Fleet, tmp_path: Path, seed: int
) -> None:
    dice, record = random.Random(seed), tmp_path / "record"
    record.touch()
    for _ in range(2):
        await fleet.start(processes=2, capacity=1)
    await fleet.man()
    tasks, _ = await asyncio.gather(
        submit_all(live_store, str(record), dice, 40), kill_now_and_then(fleet, dice, 5)
    )

    async def all_have_ended() -> bool:
        return all([(await live_store.get(task)).status in TERMINAL for task in tasks])

    await wait_until(all_have_ended, 60)
    events = await events_of(live_store)
    began = {event["fence"]: event["at"] for event in events if event["act"] == "claim"}
    lines = [[*map(int, line.split())] for line in record.read_text().splitlines()]
    assert most_at_once(lines, began, 0) <= LIMITS["fast"]
    assert most_at_once(lines, began, MS["fast"]) <= LIMITS["medium"]
    assert most_at_once(lines, began, MS["medium"]) <= LIMITS["slow"]
    acts = [event["act"] for event in events]
    assert acts.count("shorten") > 0 and acts.count("expire") > 0, "nothing happened that could go wrong"

"""Elastic runs in a worker: their deadlines become earlier, and a handler returns what it has by then."""

import itertools
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.errors import StoreUnavailable
from fairlead.model.reports import Grant, Handed
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import NewTask, Task
from fairlead.store.store import Store
from fairlead.store.workers import Workers
from fairlead.worker import run
from fairlead.worker.handler import RunIn
from tests.apps import tiered
from tests.waiting import wait_until
from tests.worker.places import PLACES, move
from tests.workers import WorkerLauncher

# Beats come only when somebody asks for one.
RARE_BEATS = """
[worker]
heartbeat_seconds = 100
[retry]
base_seconds = 0.001
max_seconds = 0.002
[tiers]
fast = { seconds = 1 }
medium = { seconds = 60 }
slow = { seconds = 600, limit = 1 }
"""
FREQUENT_BEATS = RARE_BEATS.replace(
    "heartbeat_seconds = 100", "heartbeat_seconds = 0.2\nmissed_heartbeats = 50"
)
NO_TIME = RARE_BEATS.replace("medium = { seconds = 60 }\n", "")
EVERYWHERE = [*PLACES, "process, async"]


@pytest.fixture
def tiers() -> str:
    return RARE_BEATS


@pytest.fixture
def config(tmp_path: Path, tiers: str) -> Path:
    path = tmp_path / "tiers.toml"
    path.write_text(tiers)
    return path


@pytest.fixture(params=EVERYWHERE)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(new_app: Callable[[], Fairlead], place: str) -> Fairlead:
    made = new_app()
    where: RunIn = place.split(",")[0]  # type: ignore[assignment]
    move(tiered.fl, made, where)
    return made


@pytest.fixture
def draws(place: str) -> str:
    """The handler of this test. A plain function in the loop would block it."""
    return "draws_async" if place == "loop" or "async" in place else "draws"


async def submit(store: Store, task_type: str, duration: str | None = None, **given: Any) -> str:
    return (await store.submit_one(NewTask(task_type=task_type, duration=duration, **given))).task_id


async def outputs(store: Store, task: str) -> list[Any]:
    return [output.chunk for output in await store.outputs(task)]


async def when(store: Store, task: str, holds: Callable[[Task], object]) -> Task:
    async def is_so() -> bool:
        return bool(holds(await store.get(task)))

    await wait_until(is_so, because=f"{task} is as it should be")
    return await store.get(task)


async def ended(store: Store, task: str) -> Task:
    return await when(store, task, lambda now: now.status in TERMINAL)


async def begun(store: Store, task_type: str, **given: Any) -> str:
    """An elastic task whose handler is at work."""
    task = await submit(store, task_type, **given)
    await wait_until(lambda: outputs(store, task), because=f"{task} has begun")
    return task


async def slow_task_completes(store: Store) -> None:
    slow = await submit(store, "returns_at_once", "slow")
    assert (await ended(store, slow)).status is State.COMPLETED


async def test_a_shortened_run_makes_room_while_it_runs_and_its_handler_knows(
    app: Fairlead, live_store: Store, draws: str
) -> None:
    async with app, app.worker(capacity=4):
        elastic = await begun(live_store, draws)
        await slow_task_completes(live_store)
        kept = await live_store.get(elastic)
        assert kept.status is State.EXECUTING, "its unit was free before it ended"
        await wait_until(lambda: has_notes(live_store, elastic, 2))
        await live_store.cancel(elastic)
    began, moved = await outputs(live_store, elastic)
    assert [change.tier for change in kept.tiers] == ["slow", "medium"]
    assert kept.started_at and kept.deadline == kept.started_at + 60_000
    assert began == {"tier": "slow", "deadline": kept.started_at / 1000 + 600}
    assert moved == {"deadline": kept.deadline / 1000, "truncating": False}


async def has_notes(store: Store, task: str, count: int) -> bool:
    return len(await outputs(store, task)) >= count


@pytest.mark.parametrize("tiers", [NO_TIME])
async def test_a_run_that_is_shortened_to_its_end_returns_what_it_has(
    app: Fairlead, live_store: Store, draws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "GRACE_SECONDS", 20)  # a busy machine may need longer than a second
    async with app, app.worker(capacity=4):
        elastic = await begun(live_store, draws)
        await submit(live_store, "returns_at_once", "slow")
        kept = await ended(live_store, elastic)
    assert (kept.status, kept.truncated, kept.tier) == (State.COMPLETED, True, "fast")
    assert kept.deadline and kept.result["cancelled"]
    assert kept.result["calls"][-1] == {"deadline": kept.deadline / 1000, "truncating": True}


@pytest.mark.parametrize("place", ["thread"], indirect=True)
async def test_a_run_within_its_tier_is_not_truncated(app: Fairlead, live_store: Store) -> None:
    async with app, app.worker():
        kept = await ended(live_store, await submit(live_store, "returns_at_once", "slow"))
    assert (kept.status, kept.truncated) == (State.COMPLETED, False)


def failure_of(task: Task) -> tuple[State, str, int]:
    assert task.error
    return task.status, task.error.code, task.retry_count


ENDLESS = [
    *(
        (place, task_type)
        for place in ("thread", "process")
        for task_type in ("ignores_its_deadline", "raises_in_its_grace")
    ),
    ("loop", "waits_for_ever"),
    ("process", "waits_for_ever"),
]


@pytest.mark.parametrize(("place", "task_type"), ENDLESS, indirect=["place"])
async def test_a_run_that_does_not_return_within_its_grace_fails_for_good(
    app: Fairlead, live_store: Store, task_type: str
) -> None:
    async with app, app.worker(capacity=1):
        # a process takes its time to start
        await slow_task_completes(live_store)
        late = await submit(live_store, task_type, "fast", max_retries=2)
        kept = await ended(live_store, late)
        await slow_task_completes(live_store)  # its slot is free
    assert failure_of(kept) == (State.FAILED, "DEADLINE", 0)
    noted = await outputs(live_store, late)
    assert noted == (["began", "deadline", "cancelled"] if task_type == "waits_for_ever" else ["began"])


@pytest.mark.parametrize("place", ["thread"], indirect=True)
async def test_a_timeout_within_the_tier_is_retried_as_ever(app: Fairlead, live_store: Store) -> None:
    async with app, app.worker(capacity=1):
        late = await submit(live_store, "ignores_its_deadline", timeout_seconds=1, max_retries=1)
        kept = await ended(live_store, late)
    assert failure_of(kept) == (State.DEAD_LETTER, "timeout", 1)


@pytest.mark.parametrize("place", ["thread"], indirect=True)
async def test_a_run_whose_timeout_is_shorter_than_its_new_tier_gives_up_its_unit_too(
    app: Fairlead, live_store: Store
) -> None:
    async with app, app.worker(capacity=2):
        elastic = await begun(live_store, "ignores_its_deadline", timeout_seconds=50)
        await slow_task_completes(live_store)
        kept = await live_store.get(elastic)
        assert (kept.status, kept.bounded, kept.tier) == (State.EXECUTING, False, "medium")
        await live_store.cancel(elastic)


@pytest.fixture
def lost_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls about deadlines, whose replies are lost."""
    lost: list[str] = []
    wait = Workers.wait

    async def losing(self: Workers, worker: str, seconds: float) -> str | Handed | None:
        called = await wait(self, worker, seconds)
        if isinstance(called, str) and called.startswith("deadline:"):
            lost.append(called)
            return None
        return called

    monkeypatch.setattr(Workers, "wait", losing)
    return lost


@pytest.mark.parametrize("place", ["loop"], indirect=True)
@pytest.mark.parametrize("tiers", [FREQUENT_BEATS])
async def test_without_the_call_a_heartbeat_brings_the_new_deadline(
    app: Fairlead, live_store: Store, draws: str, lost_calls: list[str]
) -> None:
    async with app, app.worker(capacity=4):
        elastic = await begun(live_store, draws)
        await slow_task_completes(live_store)
        assert (await live_store.get(elastic)).status is State.EXECUTING
        await live_store.cancel(elastic)
    assert len(lost_calls) == 1


@pytest.mark.parametrize("place", ["loop"], indirect=True)
async def test_a_new_deadline_is_confirmed_when_the_store_can_be_reached_again(
    app: Fairlead, live_store: Store, draws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = itertools.count(1)
    shortened: Callable[..., Awaitable[Any]] = Store.shortened

    async def at_last(self: Store, worker: str, *grants: Grant) -> Any:
        if next(attempts) < 3:
            raise StoreUnavailable("it is away")
        return await shortened(self, worker, *grants)

    monkeypatch.setattr(Store, "shortened", at_last)
    async with app, app.worker(capacity=4):
        elastic = await begun(live_store, draws)
        await slow_task_completes(live_store)
        await live_store.cancel(elastic)
    assert next(attempts) == 4


def lines_of(record: Path, task: str) -> list[tuple[str, int]]:
    """Which tiers its runs had, and when they were alive."""
    lines = [line.split() for line in record.read_text().splitlines()] if record.exists() else []
    return [(tier, int(at)) for task_id, _, tier, at in lines if task_id == task]


@pytest.mark.parametrize("tiers", [FREQUENT_BEATS])
@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL], ids=["continued", "killed"])
async def test_a_unit_is_free_when_its_worker_has_applied_the_deadline_or_is_dead(
    launcher: WorkerLauncher, live_store: Store, tmp_path: Path, end: signal.Signals
) -> None:
    record, other_record = tmp_path / "record", tmp_path / "other"
    there = {"required_capabilities": ("there",)}
    async with (
        launcher.workers("tests.apps.tiered:fl", "--capability", "here") as here,
        launcher.workers("tests.apps.tiered:fl", "--capability", "there"),
    ):
        endless = {"record": str(record), "seconds": 100}
        elastic = await submit(
            live_store, "holds", parameters=endless, required_capabilities=("here",), max_retries=0
        )
        await wait_until(lambda: lines_of(record, elastic))
        (pid,) = here.children()
        os.kill(pid, signal.SIGSTOP)
        brief = {"record": str(other_record), "seconds": 0.3}
        slow = await submit(live_store, "holds", "slow", parameters=brief, **there)
        await when(live_store, elastic, lambda now: now.tier == "medium")
        await ended(live_store, await submit(live_store, "returns_at_once", "fast", **there))
        assert (await live_store.get(slow)).status is State.QUEUED, "its unit is not free yet"
        signalled_at = time.monotonic_ns()
        os.kill(pid, end)
        assert (await ended(live_store, slow)).status is State.COMPLETED
        others = lines_of(other_record, slow)
        assert others[0][1] > signalled_at
        if end is signal.SIGCONT:
            assert (await live_store.get(elastic)).status is State.EXECUTING
        else:
            again = await when(live_store, elastic, lambda now: now.status is State.EXECUTING)
            assert again.crash_count == 1
            as_slow = [at for tier, at in lines_of(record, elastic) if tier == "slow"]
            assert not any(others[0][1] <= at <= others[-1][1] for at in as_slow)
        await live_store.cancel(elastic)

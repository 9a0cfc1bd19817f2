"""Interactive tasks in a worker: their handlers read what the client sends, wherever they run."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.errors import Fenced, FramesFull, NoCapacity
from fairlead.model.reports import Grant
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import NewTask, Task
from fairlead.store.store import Store
from fairlead.store.workers import Workers
from fairlead.worker import frames, processes
from tests.apps import tiered
from tests.waiting import wait_until
from tests.worker.places import PLACES, move

SETTINGS = """
[worker]
heartbeat_seconds = 100
[tiers]
fast = { seconds = 60 }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiers.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture(params=[*PLACES, "process, async"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def app(new_app: Callable[[], Fairlead], place: str) -> Fairlead:
    made = new_app()
    move(tiered.fl, made, place.split(",")[0])  # type: ignore[arg-type]
    return made


@pytest.fixture
def replies(place: str) -> str:
    """The handler of this test. A plain function in the loop would block it."""
    return "replies_async" if place == "loop" or "async" in place else "replies"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is killed before its handler had its turn."""
    monkeypatch.setattr(processes, "STOP_SECONDS", 20)


async def admitted(store: Store, task_type: str, **parameters: Any) -> str:
    """An interactive task, as soon as the worker waits for one."""
    while True:
        new = NewTask(task_type=task_type, duration="interactive", parameters=parameters)
        try:
            return (await store.submit_one(new)).task_id
        except NoCapacity:
            await asyncio.sleep(0.01)


async def ended(store: Store, task: str) -> Task:
    async def is_over() -> bool:
        return (await store.get(task)).status in TERMINAL

    await wait_until(is_over)
    return await store.get(task)


async def outputs(store: Store, task: str) -> list[Any]:
    return [output.chunk for output in await store.outputs(task)]


async def has_output(store: Store, task: str, count: int) -> bool:
    return len(await outputs(store, task)) >= count


async def talking(store: Store, task_type: str, notes: Path) -> str:
    """A session whose handler has answered, and waits for the next frame."""
    task = await admitted(store, task_type, notes=str(notes))
    await store.send_frame(task, "hello")
    await wait_until(lambda: has_output(store, task, 1))
    return task


async def test_a_handler_answers_each_frame_in_order(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path
) -> None:
    sent: list[Any] = ["hello", {"n": 1}, [2], None, "goodbye"]
    async with app, app.worker(capacity=1):
        task = await admitted(live_store, replies, notes=str(tmp_path / "notes"))
        for count, frame in enumerate(sent, 1):
            await live_store.send_frame(task, frame)
            await wait_until(lambda count=count: has_output(live_store, task, count))  # type: ignore[misc]
        kept = await ended(live_store, task)
    assert (kept.status, kept.result) == (State.COMPLETED, 5)
    assert await outputs(live_store, task) == [{"to": frame} for frame in sent]


async def test_a_client_that_is_faster_than_the_handler_has_to_wait_and_loses_nothing(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path
) -> None:
    refused = 0
    async with app, app.worker(capacity=1):
        task = await admitted(live_store, replies, notes=str(tmp_path / "notes"))
        for frame in [*range(200), "goodbye"]:
            while True:
                try:
                    await live_store.send_frame(task, frame)
                    break
                except FramesFull:
                    refused += 1
                    await asyncio.sleep(0.01)
        kept = await ended(live_store, task)
    assert (kept.status, kept.result) == (State.COMPLETED, 201)
    assert await outputs(live_store, task) == [{"to": frame} for frame in [*range(200), "goodbye"]]


async def test_a_cancelled_session_ends_while_it_waits_for_a_frame(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    async with app, app.worker(capacity=1):
        task = await talking(live_store, replies, notes)
        await live_store.cancel(task)
        await wait_until(lambda: notes.exists() and notes.read_text())
        assert (await live_store.get(task)).status is State.CANCELLED
    assert notes.read_text() == "cancelled: True"


async def test_a_session_is_halted_for_a_waiting_task(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    async with app, app.worker(capacity=1):
        task = await talking(live_store, replies, notes)
        waiting = (await live_store.submit_one(NewTask(task_type="returns_at_once"))).task_id
        assert (await ended(live_store, waiting)).status is State.COMPLETED
        halted = await live_store.get(task)
    assert halted.error and (halted.status, halted.error.code) == (State.CANCELLED, "HALTED")
    assert notes.read_text() == "cancelled: True"


@pytest.mark.parametrize("place", ["loop", "thread"], indirect=True)
async def test_a_session_that_finds_itself_cancelled_waits_until_its_handler_can_know(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, called, heard, refused = tmp_path / "notes", asyncio.Event(), asyncio.Event(), asyncio.Event()
    wait, take_frames = Workers.wait, Store.take_frames

    async def late(self: Workers, worker: str, seconds: float) -> Any:
        word = await wait(self, worker, seconds)
        if isinstance(word, str) and word.startswith("cancel:"):
            called.set()
            await heard.wait()
        return word

    async def take(self: Store, worker: str, grant: Grant, after: int = 0) -> Any:
        try:
            return await take_frames(self, worker, grant, after)
        except Fenced:
            refused.set()
            raise

    monkeypatch.setattr(Workers, "wait", late)
    monkeypatch.setattr(Store, "take_frames", take)
    monkeypatch.setattr(frames, "NET_SECONDS", 0.1)
    async with app, app.worker(capacity=1):
        task = await talking(live_store, replies, notes)
        await live_store.cancel(task)
        await called.wait()
        await refused.wait()
        heard.set()
        await wait_until(lambda: notes.exists() and notes.read_text())
    assert notes.read_text() == "cancelled: True"


@pytest.mark.parametrize("place", ["process, async"], indirect=True)
async def test_a_handler_that_stops_waiting_for_a_frame_can_read_on(app: Fairlead, live_store: Store) -> None:
    async with app, app.worker(capacity=1):
        task = await admitted(live_store, "reads_patiently", count=2)
        await wait_until(lambda: has_output(live_store, task, 2), because="it has stopped waiting twice")
        await live_store.send_frame(task, "one")
        await live_store.send_frame(task, "two")
        assert (await ended(live_store, task)).result == ["one", "two"]


@pytest.mark.parametrize("place", ["loop", "thread"], indirect=True)
async def test_a_frame_whose_call_was_lost_is_found_by_looking(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Workers.wait

    async def losing(self: Workers, worker: str, seconds: float) -> Any:
        called = await wait(self, worker, seconds)
        return None if isinstance(called, str) and called.startswith("frames:") else called

    monkeypatch.setattr(Workers, "wait", losing)
    monkeypatch.setattr(frames, "NET_SECONDS", 0.2)
    async with app, app.worker(capacity=1):
        task = await admitted(live_store, replies, notes=str(tmp_path / "notes"))
        for count in (1, 2):
            await live_store.send_frame(task, "hello")
            await wait_until(lambda count=count: has_output(live_store, task, count))  # type: ignore[misc]
        await live_store.send_frame(task, "goodbye")
        assert (await ended(live_store, task)).result == 3


@pytest.mark.parametrize("place", ["thread", "process, async"], indirect=True)
async def test_a_task_that_is_not_interactive_has_no_frames(
    app: Fairlead, live_store: Store, replies: str, tmp_path: Path
) -> None:
    async with app, app.worker(capacity=1):
        new = NewTask(task_type=replies, parameters={"notes": str(tmp_path / "notes")}, max_retries=2)
        kept = await ended(live_store, (await live_store.submit_one(new)).task_id)
    assert kept.error and (kept.status, kept.error.code) == (State.FAILED, "not_interactive")


@pytest.mark.parametrize("place", ["loop"], indirect=True)
async def test_a_plain_for_in_the_event_loop_is_refused(
    app: Fairlead, live_store: Store, tmp_path: Path
) -> None:
    async with app, app.worker(capacity=1):
        task = await admitted(live_store, "replies", notes=str(tmp_path / "notes"))
        kept = await ended(live_store, task)
    assert kept.error and "use `async for`" in kept.error.message

"""What a handler can read and report while it runs, wherever it runs."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.app.handle import TaskHandle
from fairlead.model.states import State
from fairlead.store.store import Store
from fairlead.worker import processes
from fairlead.worker.handler import RunIn
from tests.apps import talking
from tests.waiting import wait_until
from tests.worker.places import PLACES, move


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> RunIn:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def app(new_app: Callable[[], Fairlead], place: RunIn) -> Fairlead:
    made = new_app()
    move(talking.fl, made, place)
    return made


async def outputs(store: Store, task: TaskHandle[Any]) -> list[Any]:
    return [output.chunk for output in await store.outputs(task.task_id)]


async def test_parameters_arrive_as_the_type_hints_say(app: Fairlead) -> None:
    async with app, app.worker():
        given = {"size": {"width": 3}, "when": "2026-01-02T03:04:05Z", "colour": "red"}
        assert await (await app.submit("describes", given)).result(timeout=30) == [
            30,
            2026,
            "nobody",
            {"colour": "red"},
        ]
        given = {"size": {"width": 3, "height": 1}, "when": "2026-01-02T03:04:05Z", "user_id": "ann"}
        assert await (await app.submit("describes", given)).result(timeout=30) == [3, 2026, "ann", {}]


async def test_a_handler_knows_its_task(app: Fairlead) -> None:
    async with app, app.worker():
        task = await app.submit("says_who_it_is", user_id="ann", trace_id="t1", timeout_seconds=50)
        result = await task.result(timeout=30)
        kept = await task.get()
    assert kept.deadline
    assert result == {
        "task_id": task.task_id,
        "task_type": "says_who_it_is",
        "attempt": 1,
        "fence": kept.fence,
        "user_id": "ann",
        "trace_id": "t1",
        "timeout_seconds": 50,
        "cancelled": False,
        "deadline": kept.deadline / 1000,
    }


async def test_progress_and_output_are_kept_in_order(app: Fairlead, live_store: Store) -> None:
    async with app, app.worker():
        task = await app.submit("tells")
        ended = await task.wait(timeout=30)
    assert (ended.status, ended.error) == (State.COMPLETED, None)
    assert ended.progress and (ended.progress.fraction, ended.progress.message) == (0.5, "half of it")
    assert await outputs(live_store, task) == [{"line": 1}, "two", [3]], (
        "each with its value at the time of the emit"
    )


async def test_much_output_stays_in_order_and_only_the_last_part_is_kept(
    app: Fairlead, live_store: Store
) -> None:
    async with app, app.worker():
        task = await app.submit("emits", {"count": 5000})
        await task.result(timeout=30)
    kept = await outputs(live_store, task)
    assert kept == sorted(set(kept))
    assert kept[-1] == 4999
    assert len(kept) <= 1000


async def test_several_threads_of_a_handler_may_emit_at_once(app: Fairlead, live_store: Store) -> None:
    async with app, app.worker():
        task = await app.submit("emits_from_threads", {"count": 200})
        await task.result(timeout=30)
    kept = await outputs(live_store, task)
    for name in "abc":
        assert [n for writer, n, _ in kept if writer == name] == list(range(200))


@pytest.mark.parametrize(
    ("task_type", "complaint"),
    [
        ("emits_too_much", "chunk: is 80002 bytes of JSON, at most 65536 are accepted"),
        ("emits_no_json", "chunk: set is not JSON"),
        ("claims_more_than_all", "fraction: 1.5 is not a number from 0 to 1"),
    ],
)
async def test_an_invalid_report_is_an_error_of_the_handler(
    app: Fairlead, task_type: str, complaint: str
) -> None:
    async with app, app.worker():
        ended = await (await app.submit(task_type)).wait(timeout=30)
    assert ended.status is State.FAILED
    assert ended.error and complaint in ended.error.message


@pytest.mark.parametrize("place", ["thread", "process"], indirect=True)
async def test_more_time_moves_the_deadline_for_all(app: Fairlead) -> None:
    async with app, app.worker():
        task = await app.submit("extends", {"seconds": 1000}, timeout_seconds=30)
        result = await task.result(timeout=30)
        kept = await task.get()
    assert kept.deadline and kept.started_at
    assert result == kept.deadline / 1000
    assert kept.deadline >= kept.started_at + 1_000_000


async def test_a_coroutine_learns_its_new_deadline(fl: Fairlead) -> None:
    @fl.task
    async def extends(ctx: Context) -> float:
        before = ctx.deadline
        ctx.extend(1000)
        await wait_until(lambda: ctx.deadline != before)
        return ctx.deadline.timestamp()

    async with fl, fl.worker():
        task = await extends.submit()
        result = await task.result(timeout=30)
        kept = await task.get()
    assert kept.deadline and result == kept.deadline / 1000


@pytest.mark.parametrize("place", ["thread", "process"], indirect=True)
async def test_a_handler_that_requests_more_time_in_time_is_not_stopped(app: Fairlead) -> None:
    async with app, app.worker():
        await (await app.submit("says_who_it_is")).result(timeout=30)  # a process takes its time to start
        task = await app.submit("works_overtime", timeout_seconds=4, max_retries=0)
        assert await task.result(timeout=30) == "done"


@pytest.mark.parametrize("place", ["thread", "process"], indirect=True)
async def test_requesting_less_time_than_is_left_changes_nothing(app: Fairlead) -> None:
    async with app, app.worker():
        task = await app.submit("asks_for_less", timeout_seconds=30, max_retries=0)
        assert await task.result(timeout=30) == "done"
        kept = await task.get()
    assert kept.deadline and kept.started_at and kept.deadline == kept.started_at + 30_000


@pytest.mark.parametrize("place", ["thread", "process"], indirect=True)
async def test_a_cancelled_handler_can_clean_up_and_knows(
    app: Fairlead, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 20)  # it is not killed before it had its turn
    notes = tmp_path / "notes"
    async with app, app.worker():
        task = await app.submit("notices", {"path": str(notes)})
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                await task.cancel()
        await wait_until(notes.exists)
        await wait_until(notes.read_text)
    assert notes.read_text() == "cancelled: True"


async def test_a_coroutine_is_cancelled_where_it_waits_and_knows(fl: Fairlead) -> None:
    seen: list[bool] = []

    @fl.task
    async def waits(ctx: Context) -> None:
        ctx.emit("began")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(ctx.cancelled)

    async with fl, fl.worker():
        task = await waits.submit()
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                await task.cancel()
        await wait_until(lambda: seen)
    assert seen == [True]


async def test_a_log_line_names_its_task(
    app: Fairlead, place: RunIn, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, "fairlead.model.task")
    async with app, app.worker():
        task = await app.submit("logs")
        await task.result(timeout=30)
    logged = capfd.readouterr().err if place == "process" else caplog.text
    assert f"mixing colours task={task.task_id} attempt=1" in logged

"""Every way in which a handler can end, in every place it can run: what becomes of its task."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from fairlead.worker.handler import RunIn
from tests.apps import outcomes
from tests.worker.places import PLACES, move

#: What runs until its timeout; all others have the time that a busy machine needs.
SHORT = {"waits_for_ever": {"timeout_seconds": 1}}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> RunIn:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def app(new_app: Callable[[], Fairlead], place: RunIn) -> Fairlead:
    made = new_app()
    move(outcomes.fl, made, place)
    return made


async def run_each(app: Fairlead, *tasks: tuple[str, dict[str, Any]], **options: Any) -> list[Task]:
    """The tasks once they have ended. Their worker has room for one, and runs others before and after."""
    options = {"max_retries": 0, **options}
    async with app, app.worker(capacity=1, grace=5):
        before = await app.submit("returns", {"n": 1})
        handles = [
            await app.submit(task_type, parameters, **(SHORT.get(task_type, {}) | options))
            for task_type, parameters in tasks
        ]
        ended = [await handle.wait(timeout=30) for handle in handles]
        after = await app.submit("returns", {"n": 2})
        assert [(await one.result(timeout=30))["n"] for one in (before, after)] == [1, 2]
    return ended


async def run(app: Fairlead, task_type: str, **options: Any) -> Task:
    (ended,) = await run_each(app, (task_type, options.pop("parameters", {})), **options)
    return ended


def error_of(task: Task) -> tuple[str, bool]:
    assert task.error
    return task.error.code, task.error.retriable


async def test_the_returned_value_is_the_result(app: Fairlead) -> None:
    task = await run(app, "returns", parameters={"n": 7})
    assert (task.status, task.result) == (State.COMPLETED, {"n": 7, "text": "Zoë", "nothing": None})


async def test_any_exception_is_tried_again(app: Fairlead) -> None:
    task = await run(app, "raises", max_retries=2)
    assert (task.status, task.retry_count, task.crash_count) == (State.DEAD_LETTER, 2, 0)
    assert task.error and task.error.message == "no such colour"
    assert error_of(task) == ("ValueError", True)


async def test_a_retriable_error_is_tried_again(app: Fairlead) -> None:
    task = await run(app, "raises_retriable", max_retries=1)
    assert (task.status, task.retry_count) == (State.DEAD_LETTER, 1)
    assert error_of(task) == ("retriable_error", True)


async def test_a_permanent_error_is_not_tried_again(app: Fairlead) -> None:
    task = await run(app, "raises_permanent", max_retries=2)
    assert (task.status, task.retry_count) == (State.FAILED, 0)
    assert error_of(task) == ("no_ink", False)


async def test_an_http_error_is_tried_again_by_its_status(app: Fairlead) -> None:
    ends = {503: (State.DEAD_LETTER, 1), 404: (State.FAILED, 0), 500: (State.FAILED, 0)}
    tasks = await run_each(app, *(("asks_in_vain", {"status": status}) for status in ends), max_retries=1)
    assert [(task.status, task.retry_count) for task in tasks] == list(ends.values())
    assert [error_of(task) for task in tasks] == [("HTTPError", retries > 0) for _, retries in ends.values()]


async def test_an_http_error_is_not_tried_again_before_its_retry_after(app: Fairlead) -> None:
    async with app, app.worker(capacity=1):
        task = await app.submit("asks_in_vain", {"status": 429, "retry_after": "60"})
        async for message in task.watch():
            if message.get("status") == State.DELAYED:
                break
        waiting = await task.get()
        assert waiting.run_at and waiting.started_at
        assert waiting.run_at - waiting.started_at >= 60_000
        await task.cancel()


async def test_a_result_that_is_not_json_or_too_large_fails_for_good(app: Fairlead) -> None:
    kinds = ("set", "nan", "bytes", "class", "key", "10 MB", "surrogate")
    tasks = await run_each(app, *(("returns_other", {"what": what}) for what in kinds), max_retries=2)
    for what, task in zip(kinds, tasks, strict=True):
        assert (task.status, task.retry_count, task.result) == (State.FAILED, 0, None), what
        assert error_of(task) == ("bad_result", False), what
        assert task.error and task.error.message.startswith(
            "what the handler returned cannot be kept: result"
        ), what


async def test_leaving_by_force_is_a_failure_like_any_other(app: Fairlead) -> None:
    codes = {"exits": "SystemExit", "raises_base": "KeyboardInterrupt", "raises_cancelled": "CancelledError"}
    tasks = await run_each(app, *((task_type, {}) for task_type in codes), max_retries=1)
    for code, task in zip(codes.values(), tasks, strict=True):
        assert (task.status, task.retry_count, task.crash_count) == (State.DEAD_LETTER, 1, 0), code
        assert error_of(task) == (code, True)


async def test_every_kind_of_exception_is_reported(app: Fairlead) -> None:
    task = await run(app, "raises_unspeakable")
    assert (task.status, task.crash_count) == (State.DEAD_LETTER, 0)
    assert task.error and task.error.message == "?" + 3999 * "x"


async def test_parameters_that_do_not_fit_fail_for_good(app: Fairlead) -> None:
    wrong_type, unknown_name, missing = await run_each(
        app, ("returns", {"n": "x"}), ("returns", {"m": 1}), ("asks_in_vain", {}), max_retries=2
    )
    for task in (wrong_type, unknown_name, missing):
        assert (task.status, task.retry_count) == (State.FAILED, 0)
        assert error_of(task) == ("invalid_input", False)
    assert wrong_type.error and "Expected `int`, got `str`" in wrong_type.error.message
    assert unknown_name.error and "unknown field `m`" in unknown_name.error.message


@pytest.mark.parametrize(
    ("place", "task_type"),
    [
        ("loop", "waits_for_ever"),
        ("loop", "swallows_its_cancellation"),
        ("thread", "never_returns"),
        ("thread", "returns_late"),
        ("process", "never_returns"),
        ("process", "returns_late"),
        ("process", "waits_for_ever"),
        ("process", "swallows_its_cancellation"),
    ],
    indirect=["place"],
)
async def test_a_run_past_its_timeout_is_stopped_and_tried_again_with_more_time(
    app: Fairlead, task_type: str, live_store: Store
) -> None:
    task = await run(app, task_type, timeout_seconds=2, max_retries=1)
    assert "began" in [output.chunk for output in await live_store.outputs(task.task_id)]
    assert (task.status, task.retry_count, task.timeout_ms) == (State.DEAD_LETTER, 1, 3000)
    assert error_of(task) == ("timeout", True)
    assert task.result is None, "what it returned after its time does not count"


@pytest.mark.parametrize("place", ["process"], indirect=True)
async def test_a_process_that_dies_is_a_crash_and_after_three_a_dead_letter(app: Fairlead) -> None:
    task = await run(app, "dies", max_retries=2)
    assert (task.status, task.crash_count, task.retry_count) == (State.DEAD_LETTER, 3, 0)
    assert error_of(task) == ("handler_died", True)
    assert task.error and task.error.message == "the process that ran it ended with exit code 7"


# What the page about tasks promises, row by row

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "returns JSON": ("returns", {}),
    "returns a value that is not JSON, or is too large": ("returns_other", {"what": "set"}),
    "raises any exception": ("raises", {}),
    "raises `RetriableError(retry_after=...)`": ("raises_retriable", {}),
    "raises `PermanentError`": ("raises_plainly_permanent", {}),
    "raises an HTTP client's error, status 408, 425, 429, 502, 503 or 504": ("asks_in_vain", {"status": 429}),
    "raises an HTTP client's error, any other status from 400": ("asks_in_vain", {"status": 500}),
    "receives invalid parameters": ("returns", {"n": "one"}),
    "exceeds its timeout": ("waits_for_ever", {}),
    "calls `sys.exit()`": ("exits", {}),
    "ends its own process": ("dies", {}),
}


def promises() -> dict[str, list[str]]:
    """The row of each ending: its error code, whether it is tried again, its last state."""
    section = PAGE.read_text().partition("## What each outcome means")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"
    ]
    return {does: promised for does, *promised in rows[2:]}


def test_the_page_about_tasks_has_exactly_these_rows() -> None:
    assert list(promises()) == list(ROWS)


@pytest.mark.parametrize("place", ["process"], indirect=True)
async def test_outcomes_are_as_the_page_about_tasks_promises(app: Fairlead) -> None:
    tasks = await run_each(app, *ROWS.values(), max_retries=1)
    for (does, (code, again, ends)), task in zip(promises().items(), tasks, strict=True):
        tried_again = {"": (0, 0), "no": (0, 0), "yes": (1, 0), "as": (0, 3)}[again.split(" ")[0].rstrip(",")]
        assert (task.retry_count, task.crash_count) == tried_again, does
        assert f"`{task.status}`" == ends, does
        assert (task.error.code if task.error else "") in [*re.findall(r"`(\w+)`", code), code], does

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


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> RunIn:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def app(new_app: Callable[[], Fairlead], place: RunIn) -> Fairlead:
    made = new_app()
    move(outcomes.fl, made, place)
    return made


async def run(app: Fairlead, task_type: str, **options: Any) -> Task:
    """The task once it has ended. Its worker has room for one, and runs another before and after it."""
    options = {"max_retries": 0, **options}
    parameters = options.pop("parameters", {})
    async with app, app.worker(capacity=1, grace=5):
        before = await app.submit("returns", {"n": 1})
        task = await app.submit(task_type, parameters, **options)
        after = await app.submit("returns", {"n": 2})
        ended = await task.wait(timeout=30)
        assert [(await one.result(timeout=30))["n"] for one in (before, after)] == [1, 2]
    return ended


def error_of(task: Task) -> tuple[str, bool]:
    assert task.error
    return task.error.code, task.error.retriable


async def test_what_is_returned_is_the_result(app: Fairlead) -> None:
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


@pytest.mark.parametrize(("status", "retries"), [(503, 1), (404, 0), (500, 0)])
async def test_an_http_error_is_tried_again_by_its_status(app: Fairlead, status: int, retries: int) -> None:
    task = await run(app, "asks_in_vain", parameters={"status": status}, max_retries=1)
    assert (task.status, task.retry_count) == (
        State.DEAD_LETTER if retries else State.FAILED,
        retries,
    )
    assert error_of(task) == ("HTTPError", bool(retries))


async def test_an_http_error_is_not_tried_again_before_its_retry_after(app: Fairlead) -> None:
    async with app, app.worker(capacity=1):
        task = await app.submit("asks_in_vain", {"status": 429, "retry_after": "60"})
        async for event in task.watch():
            if event.after is State.DELAYED:
                break
        waiting = await task.get()
        assert waiting.run_at and waiting.started_at
        assert waiting.run_at - waiting.started_at >= 60_000
        await task.cancel()


@pytest.mark.parametrize("what", ["set", "nan", "bytes", "class", "key", "10 MB", "surrogate"])
async def test_a_result_that_is_not_json_or_too_large_fails_for_good(app: Fairlead, what: str) -> None:
    task = await run(app, "returns_other", parameters={"what": what}, max_retries=2)
    assert (task.status, task.retry_count, task.result) == (State.FAILED, 0, None)
    assert error_of(task) == ("bad_result", False)
    assert task.error and task.error.message.startswith("what the handler returned cannot be kept: result")


@pytest.mark.parametrize(
    ("task_type", "code"),
    [("exits", "SystemExit"), ("raises_base", "KeyboardInterrupt"), ("raises_cancelled", "CancelledError")],
)
async def test_leaving_by_force_is_a_failure_like_any_other(app: Fairlead, task_type: str, code: str) -> None:
    task = await run(app, task_type, max_retries=1)
    assert (task.status, task.retry_count, task.crash_count) == (State.DEAD_LETTER, 1, 0)
    assert error_of(task) == (code, True)


async def test_whatever_is_raised_is_reported(app: Fairlead) -> None:
    task = await run(app, "raises_unspeakable")
    assert (task.status, task.crash_count) == (State.DEAD_LETTER, 0)
    assert task.error and task.error.message == "?" + 3999 * "x"


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [({"n": "x"}, "Expected `int`, got `str`"), ({"m": 1}, "unknown field `m`")],
    ids=["wrong type", "unknown name"],
)
async def test_parameters_that_do_not_fit_fail_for_good(
    app: Fairlead, parameters: dict[str, Any], complaint: str
) -> None:
    task = await run(app, "returns", parameters=parameters, max_retries=2)
    assert (task.status, task.retry_count) == (State.FAILED, 0)
    assert error_of(task) == ("invalid_input", False)
    assert task.error and complaint in task.error.message


async def test_a_missing_parameter_fails_for_good(app: Fairlead) -> None:
    task = await run(app, "asks_in_vain", max_retries=2)
    assert (task.status, *error_of(task)) == (State.FAILED, "invalid_input", False)


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
@pytest.mark.parametrize("does", ROWS)
async def test_what_the_page_about_tasks_promises_is_what_happens(app: Fairlead, does: str) -> None:
    code, again, ends = promises()[does]
    task_type, parameters = ROWS[does]
    timeout = 2 if "timeout" in does else 30
    task = await run(app, task_type, parameters=parameters, max_retries=1, timeout_seconds=timeout)
    tried_again = {"": (0, 0), "no": (0, 0), "yes": (1, 0), "as": (0, 3)}[again.split(" ")[0].rstrip(",")]
    assert (task.retry_count, task.crash_count) == tried_again
    assert f"`{task.status}`" == ends
    assert (task.error.code if task.error else "") in [*re.findall(r"`(\w+)`", code), code]

"""What worker processes write to their log: every process in the same format, down to the same level."""

import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fairlead import Fairlead
from fairlead.errors import AlreadyFinished
from fairlead.model.states import State
from tests.apps import failing
from tests.logs import event_of, json_records, records
from tests.waiting import wait_until
from tests.workers import WorkerLauncher, Workers

TARGET = "tests.apps.failing:fl"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
async def fl(new_app: Callable[[], Fairlead]) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place, failing.fl.target = failing.fl.target, new_app().target
    async with failing.fl as fl:
        yield fl
    fl.target = place


async def test_every_process_logs_json_on_request(fl: Fairlead, launcher: WorkerLauncher) -> None:
    async with launcher.workers(TARGET, "--log-format", "json", ready=0) as workers:
        await wait_until(lambda: '"worker_started"' in workers.log_text(), 40)
        chats = await failing.chats_in_process.submit()
        await chats.result(timeout=40)
        dies = await failing.kills_its_worker.submit()
        await wait_until(lambda: '"worker_lost"' in workers.log_text(), 40)
        await dies.cancel()
        assert await workers.end() == 0
    logged = json_records(workers.log_text())
    assert all(one.keys() >= {"time", "level", "logger"} for one in logged)
    by_event = {one["event"]: one for one in logged if "event" in one}
    assert by_event["worker_started"]["capacity"] == 5
    assert by_event["worker_died"]["exit_code"] == 7  # of the supervisor
    lost = failures(workers)
    assert {(one["task"], one["type"], one["code"]) for one in lost} == {
        (dies.task_id, "kills_its_worker", "worker_lost")
    }
    (first, *_) = [one for one in logged if one.get("event") == "worker_died"]
    assert (lost[0]["attempt"], lost[0]["worker"]) == (1, first["worker"])
    # of the handler's process
    (chat,) = [one for one in logged if "mixing colours" in one.get("message", "")]
    assert (chat["level"], chat["task"], chat["attempt"]) == ("info", chats.task_id, 1)
    (other,) = [one for one in logged if one["logger"] == "some.library"]
    assert (other["level"], other["message"]) == ("warning", "low on blue")


async def test_text_begins_each_record_with_its_time(fl: Fairlead, launcher: WorkerLauncher) -> None:
    async with launcher.workers(TARGET) as workers:
        await (await failing.chats.submit()).result(timeout=40)
        assert await workers.end() == 0
        logged = records(workers.log_text())
    assert len(logged) == len(workers.log_text().splitlines())
    assert not any("a drop of blue" in one or "a detail" in one for one in logged)


async def test_the_level_counts_in_every_process_and_for_other_libraries(
    fl: Fairlead, launcher: WorkerLauncher
) -> None:
    async with launcher.workers(TARGET, "--log-level", "debug") as workers:
        await (await failing.chats.submit()).result(timeout=40)
        assert "DEBUG a drop of blue task=" in workers.log_text()
        assert "DEBUG some.library: a detail" in workers.log_text()
        assert await workers.end() == 0
    async with launcher.workers(TARGET, "--log-level", "error", ready=0) as quiet:
        chats, dies = await failing.chats.submit(), await failing.kills_its_worker.submit()
        await chats.result(timeout=40)
        await wait_until(lambda: "ERROR worker_died" in quiet.log_text(), 40)
        with contextlib.suppress(AlreadyFinished):  # it has killed as many workers as it may
            await dies.cancel()
        assert await quiet.end() == 0
    assert not any(word in quiet.log_text() for word in ("INFO", "DEBUG", "WARNING"))


async def test_an_unknown_level_is_refused(launcher: WorkerLauncher) -> None:
    workers = launcher.start(TARGET, "--log-level", "loud")
    assert await workers.exit_code() == 2
    assert "loud" in workers.log_text() and "--log-level" in workers.log_text()


def failures(workers: Workers) -> list[dict[str, Any]]:
    return [one for one in json_records(workers.log_text()) if one.get("event") == "task_failed"]


@pytest.mark.parametrize(
    "handler",
    [
        failing.fails_in_loop,
        failing.fails_in_thread,
        failing.fails_in_process,
        failing.fails_in_loop_of_process,
    ],
    ids=["loop", "thread", "process", "loop of process"],
)
async def test_each_failed_attempt_leaves_one_record_with_its_traceback(
    fl: Fairlead, launcher: WorkerLauncher, handler: Any
) -> None:
    async with launcher.workers(TARGET, "--log-format", "json", ready=0) as workers:
        task = await handler.submit(
            "a-long-prompt", max_retries=1, trace_id="4bf92f3577b34da6a3ce929d0e0e4736"
        )
        ended = await task.wait(timeout=40)
        assert ended.status is State.DEAD_LETTER
        assert await workers.end() == 0
    first, second = failures(workers)
    (started,) = [one for one in json_records(workers.log_text()) if one.get("event") == "worker_started"]
    assert [(one["attempt"], one["level"], one["retries_left"]) for one in (first, second)] == [
        (1, "warning", 1),
        (2, "error", 0),
    ]
    for one in (first, second):
        assert (one["task"], one["type"], one["code"]) == (task.task_id, ended.task_type, "ValueError")
        assert (one["trace"], one["retriable"]) == (TRACE, True)
        assert one["worker"] == started["worker"]
        lines = one["traceback"].splitlines()
        assert (lines[0], lines[-1]) == ("Traceback (most recent call last):", "ValueError: out of paint")
        assert f"in {ended.task_type}" in lines[1] and "failing.py" in lines[1]  # not how Fairlead called it
    assert first["fence"] < second["fence"] == ended.fence
    assert ended.error and ended.error.traceback == second["traceback"]
    assert "a-long-prompt" not in workers.log_text()


async def test_as_text_the_traceback_follows_its_line(fl: Fairlead, launcher: WorkerLauncher) -> None:
    async with launcher.workers(TARGET) as workers:
        task = await failing.fails_for_good.submit("a-long-prompt")
        ended = await task.wait(timeout=40)
        assert await workers.end() == 0
    (record,) = [one for one in records(workers.log_text()) if event_of(one) == "task_failed"]
    line, *traceback = record.splitlines()
    assert re.fullmatch(
        rf"\S+ ERROR task_failed task={task.task_id} type=fails_for_good attempt=1 fence={ended.fence} "
        r"worker=\S+ code=\S+ retriable=False retries_left=0",
        line,
    )
    assert traceback[0] == "    Traceback (most recent call last):"
    assert traceback[-1].endswith("PermanentError: no such colour")


async def test_failures_other_than_errors_of_the_handler_are_logged_too(
    fl: Fairlead, launcher: WorkerLauncher
) -> None:
    async with launcher.workers(TARGET, "--log-format", "json", ready=0) as workers:
        late = await failing.takes_too_long.submit(timeout_seconds=0.3, max_retries=0)
        await late.wait(timeout=40)
        killed = await failing.kills_its_process.submit()
        await killed.wait(timeout=60)
        unfit = await fl.submit("fails_in_loop", {"prompt": 7_654_321})
        await unfit.wait(timeout=40)
        assert await workers.end() == 0
    by_code = {one["code"]: one for one in failures(workers)}
    assert by_code["timeout"]["task"] == late.task_id
    assert "in takes_too_long" in by_code["timeout"]["traceback"]  # where it was
    died = [one for one in failures(workers) if one["task"] == killed.task_id]
    assert len(died) == (await killed.get()).crash_count
    assert all((one["code"], one["attempt"]) == ("handler_died", n) for n, one in enumerate(died, 1))
    assert [(one["level"], one["retries_left"]) for one in died] == [
        ("warning", 2),
        ("warning", 1),
        ("error", 0),
    ]
    assert "SIGABRT" in died[0]["problem"]
    assert by_code["invalid_input"]["task"] == unfit.task_id
    assert "traceback" not in by_code["invalid_input"]
    assert "fails_in_loop" in by_code["invalid_input"]["problem"] and "7654321" not in workers.log_text()


async def test_a_handler_that_does_not_stop_is_logged_before_its_process_ends(
    fl: Fairlead, launcher: WorkerLauncher
) -> None:
    async with launcher.workers(TARGET, "--log-format", "json", ready=0) as workers:
        task = await failing.stubborn.submit(timeout_seconds=0.3, max_retries=0)
        await task.wait(timeout=60)
        assert await workers.end() == 0
    (one,) = failures(workers)
    assert (one["task"], one["code"], one["attempt"]) == (task.task_id, "timeout", 1)


async def test_parameters_quoted_by_an_error_are_not_logged(fl: Fairlead, launcher: WorkerLauncher) -> None:
    prompt = 'a "secret" prompt\nof several lines, and long enough to be cut off where it is quoted'
    async with launcher.workers(TARGET) as workers:
        task = await failing.quotes_its_parameters.submit(prompt, max_retries=0)
        ended = await task.wait(timeout=40)
        assert await workers.end() == 0
    assert ended.error and repr(prompt) in ended.error.message  # those who may read the task may read this
    assert "secret" not in workers.log_text() and "several lines" not in workers.log_text()
    assert "ValueError: cannot paint" in workers.log_text()

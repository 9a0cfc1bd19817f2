"""The blocking API does what the async one does, on an engine of its own, a server and a gateway."""

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fairlead
from fairlead import FairleadError, LimitFull, NotAllSubmitted, StoreUnavailable, TaskCancelled, TaskFailed
from fairlead.app import handle
from fairlead.app.loading import load_app
from fairlead.live.messages import Message
from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.sync import Fairlead, JobHandle, TaskHandle
from fairlead.testing import run_inline
from tests.api.requests import NO_TASK
from tests.apps import blocking
from tests.apps.blocking import double, double_twice, draw, refuse, render
from tests.client.answering import unreachable_url

PAIRS = [
    (fairlead.Fairlead, Fairlead),
    (handle.TaskHandle, TaskHandle),
    (handle.JobHandle, JobHandle),
]


def test_a_task_is_submitted_run_and_its_result_read(fl: Fairlead) -> None:
    with fl, fl.worker():
        task = double.submit(21, priority="high", user_id="ann")
        assert task.result(timeout=30) == 42
        assert (task.get().status, task.get().user_id) == (State.COMPLETED, "ann")
        assert fl.get(task.task_id).result() == 42
        assert fl.submit("draw", {"prompt": "a cat"}).result(timeout=30) == "a picture of a cat"


def test_it_connects_on_first_use_and_again_after_it_was_closed(fl: Fairlead) -> None:
    task = double.submit(1)
    assert (task.status, task.queue_position) == (State.QUEUED, 1)
    fl.close()
    assert task.warnings == ("no worker serves 'double' yet; it waits until one does",)
    assert task.explain().sentence == "No live worker serves the task type 'double'."
    task.cancel()
    with pytest.raises(TaskCancelled):
        task.result()


def test_many_are_submitted_at_once_and_a_bad_one_spoils_nothing(fl: Fairlead) -> None:
    urgent = double.options(priority="high")
    tasks = [urgent.new(1), double.new(2, limits={"tpu": 1})]
    first, refused = fl.submit_many(tasks, return_errors=True)
    assert isinstance(first, TaskHandle) and isinstance(refused, FairleadError)
    with pytest.raises(NotAllSubmitted) as raised:
        fl.submit_many(tasks)
    assert isinstance(raised.value.handles[0], TaskHandle) and [*raised.value.errors] == [1]
    assert first.get().priority is urgent.submit(3).get().priority is Priority.HIGH


def test_the_messages_of_a_watch_are_those_of_the_async_one(fl: Fairlead) -> None:
    with fl.worker():
        task = render.submit(frames=3)
        seen = list(task.watch())
        assert [one["chunk"] for one in seen if one["type"] == "OUTPUT"] == [{"frame": n} for n in range(3)]
        assert seen[-1]["type"] == "JOB_COMPLETE"

        async def watched() -> list[Message]:
            async with fl.async_app:
                return [one async for one in (await fl.async_app.get(task.task_id)).watch()]

        assert list(task.watch()) == asyncio.run(watched())


def test_a_watch_that_is_left_early_ends(fl: Fairlead) -> None:
    task = double.submit(1)
    for message in task.watch():
        assert message["type"] == "QUEUED"
        break
    task.cancel()


def test_a_job_is_run_and_watched(fl: Fairlead) -> None:
    with fl.worker():
        job = fl.submit_job("doubled", {"number": 4}, user_id="ann")
        assert [message["type"] for message in job.watch()][-1] == "JOB_COMPLETE"
        assert job.result()["step_0_double"]["data"] == 8
        assert fl.get_job(job.job_id).get().user_id == "ann"
        assert fl.run("doubled", {"number": 5}, timeout=30)["step_0_double"]["data"] == 10


def test_tasks_and_jobs_are_listed_newest_first(fl: Fairlead) -> None:
    first, second = double.submit(1), draw.submit("a cat")
    assert [task.task_id for task in fl.list_tasks(limit=2).tasks] == [second.task_id, first.task_id]
    job = fl.submit_job("doubled", {"number": 4})
    assert [one.job_id for one in fl.list_jobs(status="PENDING").jobs] == [job.job_id]
    assert job.explain().sentence.startswith("double: ")
    assert [step.status for step in job.get().steps] == ["queued"]


def test_a_limit_is_held_while_a_block_runs(fl: Fairlead) -> None:
    with fl.acquire("gpu", holder="notebook") as lease:
        assert lease.fence > 0
        with pytest.raises(LimitFull), fl.acquire("gpu"):
            pass
        waiting = threading.Thread(target=hold_for_a_moment, args=[fl])
        waiting.start()
    waiting.join()
    with pytest.raises(ZeroDivisionError), fl.acquire("gpu"):
        print(1 / 0)
    hold_for_a_moment(fl)


def hold_for_a_moment(fl: Fairlead) -> None:
    with fl.acquire("gpu", wait=30):
        pass


def test_a_handler_in_a_thread_submits_another_task(fl: Fairlead) -> None:
    with fl.worker():
        assert double_twice.submit(3).result(timeout=30) == 12


async def test_the_function_is_still_a_function() -> None:
    assert double(4) == 8
    assert await draw("a cat") == "a picture of a cat"
    assert await run_inline(double, 4) == 8


def test_calls_inside_an_event_loop_point_to_the_async_api(fl: Fairlead) -> None:
    async def call() -> None:
        double.submit(1)

    with pytest.raises(FairleadError, match="use the async API here, `from fairlead import Fairlead`"):
        asyncio.run(call())


def test_errors_are_those_of_the_async_api(fl: Fairlead, subtests: pytest.Subtests) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "unknown task": lambda app: app.get(NO_TASK),
        "no id": lambda app: app.get("nope"),
        "unknown limit": lambda app: app.submit("double", {"number": 1}, limits={"tpu": 1}),
        "unknown option": lambda app: app.submit("double", {"number": 1}, colour="red"),
        "unknown pipeline": lambda app: app.submit_job("trebled"),
        "unknown job": lambda app: app.get_job(NO_TASK),
    }
    for name, call in calls.items():
        with subtests.test(name):
            assert refusal_of(lambda call=call: call(fl)) == refusal_of(lambda call=call: run_async(fl, call))  # type: ignore[misc]


def refusal_of(call: Callable[[], object]) -> tuple[type[BaseException], str]:
    with pytest.raises(FairleadError) as raised:
        call()
    return type(raised.value), str(raised.value)


def run_async(fl: Fairlead, call: Callable[[fairlead.Fairlead], Any]) -> None:
    async def called() -> None:
        async with fl.async_app:
            await call(fl.async_app)

    asyncio.run(called())


def test_a_failed_task_and_a_timeout_are_raised(fl: Fairlead) -> None:
    with fl.worker():
        with pytest.raises(TaskFailed, match="the account is empty") as failed:
            refuse.submit().result(timeout=30)
        assert (failed.value.code, failed.value.retriable) == ("permanent_error", False)
        with pytest.raises(TypeError, match="missing a required argument: 'number'"):
            double.submit()  # type: ignore[call-overload]
    with pytest.raises(TimeoutError):
        double.submit(1).result(timeout=0.01)


def test_a_backend_that_is_away_is_reported_by_every_call() -> None:
    with unreachable_url() as url:
        fl = Fairlead(url)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="is it running"):
                fl.submit("double", {"number": 1})
    # what could not be opened is not kept
    assert "fairlead-sync" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize(("async_class", "sync_class"), PAIRS)
def test_every_method_is_there_with_the_same_parameters(async_class: type, sync_class: type) -> None:
    inside = {"backend", "store", "declare", "confirm", "task"}  # what a front is made of, and a property
    names = [name for name in vars(async_class) if not name.startswith("_") and name not in inside]
    assert names
    for name in names:
        ours, theirs = (inspect.signature(getattr(one, name)).parameters for one in (sync_class, async_class))
        assert dict(ours) == dict(theirs), name
        assert not inspect.iscoroutinefunction(getattr(sync_class, name))


def test_the_command_line_finds_a_blocking_app() -> None:
    assert load_app("tests.apps.blocking:fl") is blocking.fl.async_app

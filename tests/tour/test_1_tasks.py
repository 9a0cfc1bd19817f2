"""A tour of Fairlead, to be read from top to bottom. The tasks are in `tests/apps/tour.py`.

`private(fl)` is `async with fl:` on a private server, removed afterwards, and `fl.worker()` runs tasks
in this process. In production it is `async with fl:` here and `fairlead worker tasks:fl` elsewhere.
"""

import pytest

from fairlead import IdempotencyConflict, InvalidInput, NotAllSubmitted, PermanentError, TaskFailed
from fairlead.model.states import State
from fairlead.testing import FakeClock, private, run_inline
from tests.apps.tour import call_flaky_api, fl, greet, pay


async def test_a_task_is_a_function_that_a_worker_runs() -> None:
    assert await greet("Zoë") == "Hi Zoë"  # it still is the function it was

    async with private(fl), fl.worker():
        task = await greet.submit("Zoë", polite=True)
        assert await task.result(timeout=30) == "Good day, Zoë"


async def test_a_task_waits_until_there_is_a_worker_and_says_why() -> None:
    async with private(fl):
        task = await greet.submit("Zoë")
        assert (task.status, task.queue_position) == (State.QUEUED, 1)
        assert task.warnings == ("no worker serves 'greet' yet; it waits until one does",)
        assert (await task.explain()).sentence == "No live worker serves the task type 'greet'."
        async with fl.worker():
            assert await task.result(timeout=30) == "Hi Zoë"


async def test_parameters_are_checked_before_anything_is_queued() -> None:
    async with private(fl):
        with pytest.raises(InvalidInput, match="Expected `str`, got `int`"):
            await greet.submit(5)  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="missing a required argument: 'name'"):
            await greet.submit()  # type: ignore[call-overload]


async def test_high_goes_before_medium_before_low() -> None:
    async with private(fl):
        low = await greet.submit("Ann", priority="low")
        medium = await greet.submit("Bob")
        high = await greet.submit("Zoë", priority="high")
        assert high.queue_position == 1
        async with fl.worker(capacity=1):
            for task in (low, medium, high):
                await task.result(timeout=30)
        started = [(await task.get()).fence for task in (high, medium, low)]  # fences only grow
        assert started == sorted(started)


async def test_many_are_submitted_at_once_and_a_bad_one_spoils_nothing() -> None:
    async with private(fl), fl.worker():
        tasks = [greet.new("Ann"), greet.new("Bob", limits={"no_such": 1}), greet.new("Zoë")]
        with pytest.raises(NotAllSubmitted) as raised:
            await fl.submit_many(tasks)
        assert [*raised.value.errors] == [1]
        assert await raised.value.handles[2].result(timeout=30) == "Hi Zoë"


async def test_asking_twice_with_one_key_makes_one_task() -> None:
    async with private(fl), fl.worker():
        first = await pay.submit(5, idempotency_key="order-7")
        again = await pay.submit(5, idempotency_key="order-7")
        assert (again.task_id, again.repeated) == (first.task_id, True)
        with pytest.raises(IdempotencyConflict):
            await pay.submit(6, idempotency_key="order-7")


async def test_a_temporary_failure_is_retried() -> None:
    async with private(fl), fl.worker():
        task = await call_flaky_api.submit()
        assert await task.result(timeout=30) == 3  # the third attempt
        assert (await task.get()).retry_count == 2


async def test_a_permanent_failure_is_not_retried() -> None:
    async with private(fl), fl.worker():
        with pytest.raises(TaskFailed, match="the account is empty"):
            await (await pay.submit(1000)).result(timeout=30)


async def test_a_task_may_be_for_later() -> None:
    clock = FakeClock()  # the store's time in your tests, which changes only when you move it
    async with private(fl, clock), fl.worker():
        task = await greet.submit("Zoë", delay_seconds=3600)
        assert task.status is State.DELAYED
        clock.advance(3600)
        await fl.store.promote()
        assert await task.result(timeout=30) == "Hi Zoë"


async def test_a_handler_can_be_tested_without_any_queue() -> None:
    assert await run_inline(greet, "Zoë") == "Hi Zoë"
    with pytest.raises(PermanentError):
        await run_inline(pay, eur=1000)

"""`fairlead.testing`, for users who test their own tasks."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from fairlead import Context, Fairlead, InvalidInput, PermanentError, errors
from fairlead.errors import NotInteractive
from fairlead.model.states import State
from fairlead.testing import START, FakeClock, Inline, check, private, run_inline
from tests.waiting import wait_until


@pytest.fixture
def fl() -> Fairlead:
    return Fairlead()


# Inline


async def test_a_handler_runs_here_and_now(fl: Fairlead) -> None:
    @fl.task
    async def draw(prompt: str, when: datetime) -> dict[str, str]:
        return {"picture": prompt, "year": str(when.year)}

    new_year = datetime(2026, 1, 1, tzinfo=UTC)
    assert await run_inline(draw, "a robot", when=new_year) == {"picture": "a robot", "year": "2026"}


async def test_a_plain_function_runs_in_a_thread_as_in_a_worker(fl: Fairlead) -> None:
    @fl.task
    def where() -> str:
        return threading.current_thread().name

    assert await run_inline(where) != threading.main_thread().name


async def test_the_reports_of_a_handler_are_collected(fl: Fairlead) -> None:
    @fl.task(timeout=40)
    async def talk(ctx: Context) -> list[object]:
        ctx.progress(0.5, "half")
        ctx.emit({"line": 1})
        ctx.extend()
        ctx.extend(3)
        return [ctx.attempt, ctx.user_id, ctx.cancelled]

    inline = Inline()
    assert await run_inline(talk, said=inline, user_id="ann", timeout_seconds=20) == [1, "ann", False]
    assert (inline.progress, inline.output, inline.extended) == ([(0.5, "half")], [{"line": 1}], [20, 3])


async def test_a_handler_reads_the_frames_of_its_test(fl: Fairlead) -> None:
    @fl.task
    async def replies(ctx: Context) -> list[object]:
        return [frame async for frame in ctx.frames()]

    @fl.task
    def replies_in_thread(ctx: Context) -> list[object]:
        return list(ctx.frames())

    sent = ["hello", {"n": 1}, None]
    assert await run_inline(replies, said=Inline(frames=sent)) == sent
    assert await run_inline(replies_in_thread, said=Inline(frames=sent)) == sent
    with pytest.raises(NotInteractive):
        await run_inline(replies)


async def test_a_handler_returns_what_it_has_when_its_test_reaches_the_deadline(fl: Fairlead) -> None:
    @fl.task
    async def draws(ctx: Context) -> str:
        reached = asyncio.Event()
        ctx.on_deadline(lambda _: reached.set())
        ctx.emit("began")
        await reached.wait()
        too_late = asyncio.Event()
        ctx.on_deadline(lambda _: too_late.set())
        await too_late.wait()
        return "a part" if ctx.truncating and ctx.cancelled else "all"

    inline = Inline()
    running = asyncio.create_task(run_inline(draws, said=inline))
    await wait_until(lambda: inline.output)
    inline.reach_deadline()
    assert await running == "a part"


async def test_a_callback_that_is_not_a_plain_function_is_refused(fl: Fairlead) -> None:
    @fl.task
    async def draws(ctx: Context) -> None:
        async def later(deadline: datetime) -> None: ...

        ctx.on_deadline(later)

    with pytest.raises(InvalidInput, match="is not a plain function"):
        await run_inline(draws)


async def test_an_exception_of_a_handler_is_raised_unchanged(fl: Fairlead) -> None:
    @fl.task
    async def fail() -> None:
        raise PermanentError("no ink")

    with pytest.raises(PermanentError, match="no ink"):
        await run_inline(fail)


async def test_a_call_that_no_worker_would_accept_is_refused_too(fl: Fairlead) -> None:
    @fl.task
    async def count(to: int) -> set[int]:
        return set(range(to))

    with pytest.raises(InvalidInput, match="Expected `int`"):
        await run_inline(count, to="five")  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="result: set is not JSON"):
        await run_inline(count, to=5)


# A private gateway


async def test_a_private_gateway_is_forgotten_afterwards(fl: Fairlead) -> None:
    @fl.task
    async def echo(text: str) -> str:
        return text

    place = fl.target
    for _ in range(2):
        async with private(fl), fl.worker():
            assert await (await echo.submit("hello", idempotency_key="k")).result(timeout=30) == "hello"
            assert (await echo.submit("hello", idempotency_key="k")).repeated
    assert fl.target == place
    with pytest.raises(errors.FairleadError, match="not connected"):
        await echo.submit("hello")


async def test_a_breach_fails_the_test(fl: Fairlead) -> None:
    fl.task("nap")(asyncio.sleep)
    with pytest.raises(AssertionError, match="I1"):
        async with private(fl):
            task = await fl.submit("nap", {"delay": 1})
            assert await check(fl) == []
            key = fl.store.connection.keys.key("task", task.task_id)
            await fl.store.connection.client.hset(key, "state", "executing")


# A fake clock


async def test_delays_pass_when_the_clock_is_moved(fl: Fairlead) -> None:
    @fl.task
    async def echo(text: str) -> str:
        return text

    clock = FakeClock()
    async with private(fl, clock), fl.worker():
        task = await echo.submit("hello", delay_seconds=3600)
        assert (await task.get()).run_at == START + 3_600_000
        clock.advance(3600)
        await fl.store.promote()
        assert await task.result(timeout=30) == "hello"


async def test_retries_pass_when_the_clock_is_moved(fl: Fairlead) -> None:
    @fl.task
    async def second_time_lucky(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise errors.RetriableError("not yet", retry_after=600)
        return ctx.attempt

    clock = FakeClock()
    async with private(fl, clock), fl.worker():
        task = await second_time_lucky.submit()
        async for message in task.watch():
            if message.get("status") == State.DELAYED:
                clock.advance(600)
                await fl.store.promote()
        assert await task.result(timeout=30) == 2


async def test_rates_refill_when_the_clock_is_moved(fl: Fairlead) -> None:
    @fl.task(limits={"api": 1})
    async def call() -> None: ...

    fl.limit("api", rate="1/min", burst=1)
    clock = FakeClock()
    async with private(fl, clock), fl.worker():
        first, second = await call.submit(), await call.submit()
        await first.result(timeout=30)
        assert (await second.get()).status is State.QUEUED
        clock.advance(60)
        await fl.store.promote()
        await second.result(timeout=30)


async def test_a_silent_worker_is_declared_dead_when_the_clock_is_moved(fl: Fairlead) -> None:
    fl.task("nap")(asyncio.sleep)
    clock = FakeClock()
    async with private(fl, clock):
        await fl.store.workers.register("gone")
        task = await fl.submit("nap", {"delay": 0})
        assert (await fl.store.claim("gone")).tasks
        clock.advance(60)
        async with fl.worker():
            assert await task.result(timeout=30) is None
        assert (await task.get()).loss_count == 1


async def test_the_time_only_changes_when_it_is_moved(fl: Fairlead) -> None:
    fl.task("nap")(asyncio.sleep)
    async with private(fl, FakeClock(5_000_000)), fl.worker():
        task = await (await fl.submit("nap", {"delay": 0})).wait(timeout=30)
        assert (task.created_at, task.completed_at) == (5_000_000, 5_000_000)

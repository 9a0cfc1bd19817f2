"""Tickers on real servers: with any number of them and any fault, each tick is one task."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead.cron import MINUTE, Cron, Missed, next_tick
from fairlead.settings import Slots
from fairlead.store.connection import Connection
from fairlead.store.store import Store
from fairlead.times import time_text
from fairlead.worker.ticker import Ticker
from tests.conftest import Clock
from tests.faults.wire import wire
from tests.reading import events_of
from tests.servers import Server
from tests.tickers import CRON, FastClock, launch
from tests.waiting import wait_until


@pytest.fixture
async def fast(open_store: Callable[..., Store]) -> Store:
    """A store on a fresh namespace in which minutes fly."""
    made = open_store(clock=FastClock())
    await made.open()
    return made


@pytest.fixture
async def began(fast: Store) -> int:
    """When CRON began in `fast`."""
    last, _ = await fast.crons.last(CRON.name)
    return last


@asynccontextmanager
async def ticking(
    store: Store, *crons: Cron, longest_sleep: float = 0.01
) -> AsyncIterator[asyncio.Task[None]]:
    running = asyncio.create_task(Ticker(store, crons, longest_sleep=longest_sleep).run())
    try:
        yield running
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def submitted_ticks(store: Store) -> list[str]:
    """The ticks of all tasks, in the order in which they were submitted."""
    tasks = [event["task"] for event in await events_of(store) if event["act"] == "submit"]
    return [str((await store.get(task)).parameters["at"]) for task in tasks]


def submitted(store: Store, count: int) -> Callable[[], Awaitable[bool]]:
    async def is_reached() -> bool:
        return len([e for e in await events_of(store) if e["act"] == "submit"]) >= count

    return is_reached


async def assert_each_tick_once(store: Store, began: int) -> None:
    last, _ = await store.crons.last(CRON.name)
    ticks = range(next_tick(CRON, began), last + 1, MINUTE)
    assert await submitted_ticks(store) == [time_text(tick) for tick in ticks]


# Several


async def test_each_tick_is_one_task_although_one_of_three_processes_is_killed(
    fast: Store, began: int, server: Server
) -> None:
    assert isinstance(fast.clock, FastClock)
    namespace = fast.connection.keys.namespace
    processes = [await launch(server.url, namespace, fast.clock) for _ in range(3)]
    try:
        await wait_until(submitted(fast, 20))
        processes[0].kill()
        await wait_until(submitted(fast, 60))
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    await assert_each_tick_once(fast, began)


async def test_no_tick_is_lost_however_often_tickers_are_cancelled(
    fast: Store, began: int, open_store: Callable[..., Store]
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    other = open_store(fast.connection.keys.namespace, fast.clock)
    for life in range(40):
        async with ticking(fast, CRON), ticking(other, CRON):
            await wait_until(submitted(fast, life + 1))
            for _ in range(dice.randrange(30)):  # somewhere in the middle of an act
                await asyncio.sleep(0)
    await assert_each_tick_once(fast, began)
    await other.close()


async def test_lost_replies_lose_no_tick_and_repeat_none(
    fast: Store, began: int, server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dice = random.Random(7)
    async with wire(server.url, tmp_path) as (line, url):
        line.lose_reply = lambda request: dice.random() < 0.3
        lossy = Store(Connection.to(url, fast.connection.keys.namespace), fast.settings, fast.clock)
        async with ticking(lossy, CRON):
            await wait_until(submitted(fast, 40))
            await wait_until(lambda: line.lost > 10)
        await lossy.close()
    assert "store_unavailable cron=c" in caplog.text
    await assert_each_tick_once(fast, began)


# One


async def test_a_ticker_sleeps_until_the_next_tick(store: Store, clock: Clock) -> None:
    clock.now = next_tick(CRON, clock.now) - 20
    async with ticking(store, CRON, longest_sleep=1000):
        await wait_until(lambda: store.connection.client.exists(store.connection.keys.key("crons")))
        clock.pass_ms(20)
        await wait_until(submitted(store, 1))
    assert await submitted_ticks(store) == [time_text(clock.now)]


async def test_a_ticker_looks_at_the_stores_clock_again_before_a_far_tick(store: Store, clock: Clock) -> None:
    daily = Cron(name="d", expression="0 3 * * *", task_type="echo", tick_parameter="at")
    async with ticking(store, daily, longest_sleep=0.01):
        await wait_until(lambda: store.connection.client.exists(store.connection.keys.key("crons")))
        clock.now = next_tick(daily, clock.now)
        await wait_until(submitted(store, 1))
    assert await submitted_ticks(store) == [time_text(clock.now)]


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("last", 1), ("all", 7)])
async def test_after_downtime_the_policy_decides_which_ticks_are_made_up(
    store: Store, clock: Clock, missed: Missed, count: int
) -> None:
    daily = Cron(name="d", expression="0 3 * * *", task_type="echo", missed=missed, tick_parameter="at")
    clock.now = next_tick(daily, clock.now)
    await store.crons.last("d")
    days = [clock.now + n * 86_400_000 for n in range(1, 9)]
    clock.now = days[6] + 5 * MINUTE
    async with ticking(store, daily):
        await wait_until(submitted(store, count))
        clock.now = days[7]
        await wait_until(submitted(store, count + 1))
    assert await submitted_ticks(store) == [time_text(day) for day in days[7 - count :]]


async def test_a_refused_task_is_logged_and_retried_and_blocks_no_other_cron(
    fast: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.worker.ticker")
    refused = Cron(name="r", expression="* * * * *", task_type="draw", wishes={"limits": {"gpu": 1}})
    async with ticking(fast, refused, CRON):
        await wait_until(submitted(fast, 5))
        await wait_until(lambda: "tick_refused cron=r" in caplog.text)
        assert "tick_submitted cron=r" not in caplog.text
        await fast.limits.set("gpu", Slots(limit=1))
        await wait_until(lambda: "tick_submitted cron=r" in caplog.text)
    assert "limits.gpu: there is no such limit: define it first" in caplog.text


async def test_a_ticker_without_crons_has_nothing_to_wait_for(store: Store) -> None:
    await Ticker(store, []).run()

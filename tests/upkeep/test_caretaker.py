"""One caretaker of many is elected; when it stops, another takes over; the duties are done in time."""

import asyncio
import contextlib
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from fairlead.upkeep import caretaker
from fairlead.upkeep.caretaker import Caretaker
from fairlead.upkeep.duties import DUTIES
from tests.caretakers import launch
from tests.servers import Server, running
from tests.waiting import wait_until

QUICK = 0.02
FOREVER = 1000.0  # seconds of an election, which no pause of the machine outlasts


@contextlib.asynccontextmanager
async def at_work(caretaker: Caretaker) -> AsyncIterator[asyncio.Task[None]]:
    working = asyncio.create_task(caretaker.run())
    try:
        yield working
    finally:
        working.cancel()
        await asyncio.wait([working])


async def elected(store: Store) -> str:
    connection = store.connection
    found: Any = await connection.client.get(connection.keys.key("caretaker"))
    return "" if found is None else found.decode()


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each duty was done."""
    counts = Counter[str]()

    async def counted(duty: str, store: Store) -> int:
        count = await DUTIES[duty](store)
        counts[duty] += 1
        return count

    monkeypatch.setattr(caretaker, "DUTIES", {duty: partial(counted, duty) for duty in DUTIES})
    return counts


async def test_every_duty_is_done_again_and_again(live_store: Store, done: Counter[str]) -> None:
    async with at_work(Caretaker(live_store, every_seconds=QUICK)):
        await wait_until(lambda: all(done[duty] > 1 for duty in DUTIES))


async def test_a_delayed_task_is_queued_and_published_although_nobody_claims(live_store: Store) -> None:
    later = NewTask(task_type="echo", delay_seconds=0.3)
    async with asyncio.timeout(20), live_store.live.watch(later.task_id) as watch:
        assert await anext(watch) is None
        async with at_work(Caretaker(live_store)):
            await live_store.submit_one(later)
            received = [await anext(watch), await anext(watch)]
    assert [event and (event.act, event.after) for event in received] == [
        ("submit", State.DELAYED),
        ("promote", State.QUEUED),
    ]


async def test_one_of_two_is_elected_and_the_other_does_nothing(
    live_store: Store, done: Counter[str]
) -> None:
    one, two = [Caretaker(live_store, elected_seconds=FOREVER) for _ in range(2)]
    assert (await one.run_once()).keys() == DUTIES.keys()
    assert await two.run_once() == {}
    assert (await one.run_once()).keys() == DUTIES.keys()
    assert (one.is_elected, two.is_elected, done) == (True, False, dict.fromkeys(DUTIES, 2))
    assert await elected(live_store) == one.name


async def test_one_of_many_caretakers_that_start_at_once_is_elected(live_store: Store) -> None:
    many = [Caretaker(live_store, elected_seconds=FOREVER) for _ in range(16)]
    reports = await asyncio.gather(*(one.run_once() for one in many))
    assert sum(bool(report) for report in reports) == sum(one.is_elected for one in many) == 1


async def test_when_one_falls_silent_the_other_takes_over(live_store: Store) -> None:
    one, two = Caretaker(live_store, elected_seconds=0.3), Caretaker(live_store, elected_seconds=FOREVER)
    await one.run_once()
    await wait_until(two.run_once)
    assert await one.run_once() == {}  # it was silent and returns
    assert (one.is_elected, two.is_elected) == (False, True)


async def test_one_that_stops_lets_another_take_over_at_once(live_store: Store) -> None:
    one, two = [Caretaker(live_store, every_seconds=QUICK, elected_seconds=FOREVER) for _ in range(2)]
    async with at_work(one) as working:
        await wait_until(lambda: one.is_elected)
        async with at_work(two):
            working.cancel()
            await wait_until(lambda: two.is_elected)
        assert await elected(live_store) == ""


async def test_a_caretaker_that_is_not_elected_ends_no_election_by_stopping(live_store: Store) -> None:
    one, two = [Caretaker(live_store, elected_seconds=FOREVER) for _ in range(2)]
    await one.run_once()
    async with at_work(two):
        await asyncio.sleep(0)  # it has begun: one that never did would not resign
    assert await elected(live_store) == one.name


async def test_a_duty_that_fails_does_not_keep_the_others(
    live_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_: Store) -> int:
        raise errors.StoreFault("broken")

    monkeypatch.setitem(DUTIES, "due", broken)
    one = Caretaker(live_store)
    assert (await one.run_once()).keys() == DUTIES.keys() - {"due"}
    assert "duty_failed duty=due" in caplog.text


async def test_a_full_batch_is_followed_by_the_next_without_a_pause(
    live_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [300, 200, 100]

    async def large(_: Store) -> int:
        return left.pop(0) if left else 0

    monkeypatch.setattr(caretaker, "DUTIES", {"large": large})
    async with at_work(Caretaker(live_store, every_seconds=1_000_000)):
        await wait_until(lambda: not left)


@pytest.mark.timeout(60)
async def test_it_survives_an_outage_of_the_store(
    done: Counter[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with running("valkey") as server:
        store = Store.connect(server.url)
        await store.open()
        one = Caretaker(store, every_seconds=QUICK)
        async with at_work(one):
            await wait_until(lambda: done["due"])
            server.process.send_signal(signal.SIGSTOP)  # for as long as it takes to notice
            await wait_until(lambda: not one.is_elected)
            before = done["due"]
            server.process.send_signal(signal.SIGCONT)
            await wait_until(lambda: one.is_elected)
            await wait_until(lambda: done["due"] > before)
            await wait_until(lambda: "upkeep_goes_on" in caplog.text)  # logged after the last of its duties
        await store.close()
    assert caplog.text.count("upkeep_waits code=store_unavailable") == 1


async def test_when_the_elected_process_is_killed_another_one_takes_over(
    live_store: Store, server: Server
) -> None:
    async def is_queued(task_id: str) -> bool:
        return (await live_store.get(task_id)).status is State.QUEUED

    namespace = live_store.connection.keys.namespace
    first = await launch(server.url, namespace)
    second: Process | None = None
    try:
        await wait_until(lambda: elected(live_store))
        killed = await elected(live_store)
        second = await launch(server.url, namespace)
        first.kill()
        later = await live_store.submit_one(NewTask(task_type="echo", delay_seconds=0.1))
        await wait_until(lambda: is_queued(later.task_id), timeout=40)
        assert killed.startswith(f"{first.pid}-")
        assert (await elected(live_store)).startswith(f"{second.pid}-")
    finally:
        for process in (first, second):
            if process and process.returncode is None:
                process.kill()
                await process.wait()

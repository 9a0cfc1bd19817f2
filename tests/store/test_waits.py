"""Watchers of tasks that wait learn when an estimate moves, by one poll for all of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from fairlead.live.feed import JobFeed, TaskFeed
from fairlead.model.event import Event
from fairlead.model.job import NewJob, NewStep
from fairlead.store import waits
from fairlead.store.live import Watcher
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import flat, forecast
from tests.store.namespace import claim_one, new
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def polls_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "LOOK_SECONDS", 0.01)


@pytest.fixture
async def busy(store: Store, clock: Clock) -> AsyncIterator[Store]:
    await store.workers.register("w", capacity=1)
    await store.submit(new())
    await claim_one(store)
    yield store
    await store.live.close()


async def waiting(store: Store) -> str:
    return (await store.submit_one(new())).task_id


async def next_estimate(watcher: Watcher) -> Event:
    async with asyncio.timeout(20):
        async for event in watcher:
            if event and event.act == "estimate":
                return event
    raise AssertionError("the watch has ended")


async def test_a_watcher_learns_the_estimate_and_when_it_moves(busy: Store, clock: Clock) -> None:
    task_id = await waiting(busy)
    async with busy.live.watch(task_id) as watcher:
        assert await anext(watcher) is None
        watcher.expect(task_id)
        await forecast(busy, clock.now, {"1n": flat(10_000, 20_000)})
        first = await next_estimate(watcher)
        assert (first.task_id, first.at, first.seq) == (task_id, clock.now, 0)
        assert first.detail == {"p50_seconds": 10, "p90_seconds": 20}
        clock.pass_seconds(4)  # it counts down, which is no news
        await forecast(busy, clock.now, {"1n": flat(6_000, 16_000)})
        await forecast(busy, clock.now, {"1n": flat(9_000, 19_000)})
        assert (await next_estimate(watcher)).detail["p50_seconds"] == 9


async def test_a_client_that_resumes_gets_the_estimate_as_well(busy: Store, clock: Clock) -> None:
    task_id = await waiting(busy)
    job_id = (await busy.jobs.submit(NewJob(feature_name="j", stages=[[NewStep("one", "echo")]]))).job_id
    await forecast(busy, clock.now, {"1n": flat(10_000, 20_000)})
    for feed in (TaskFeed(busy, task_id), JobFeed(busy, await busy.jobs.get(job_id))):
        async with asyncio.timeout(20), contextlib.aclosing(feed.messages(1)) as messages:
            message = await anext(messages)
        assert (message["type"], message["estimate"]["p50_seconds"], message["seq"]) == ("ESTIMATE", 10, 1)


async def test_of_estimates_that_were_not_read_only_the_latest_is_kept(busy: Store, clock: Clock) -> None:
    task_id = await waiting(busy)
    async with busy.live.watch(task_id) as slow, busy.live.watch(task_id) as quick:
        for watcher in (slow, quick):
            assert await anext(watcher) is None
            watcher.expect(task_id)
        for seconds in (10, 20, 30):
            await forecast(busy, clock.now, {"1n": flat(1_000 * seconds, 2_000 * seconds)})
            await next_estimate(quick)
        assert (await next_estimate(slow)).detail == {"p50_seconds": 30, "p90_seconds": 60}
        assert not slow._estimates


async def test_nothing_is_polled_for_a_task_that_has_started(busy: Store, clock: Clock) -> None:
    task_id = await waiting(busy)
    async with busy.live.watch(task_id) as watcher:
        assert await anext(watcher) is None
        watcher.expect(task_id)
        await busy.workers.register("another")
        await claim_one(busy, "another")
        assert [event.act async for event in first_of(watcher)] == ["claim"]
        assert not busy.live._waits._told


async def first_of(watcher: Watcher) -> AsyncIterator[Event]:
    event = await anext(watcher)
    assert event
    yield event


async def test_many_watchers_are_served_by_few_acts(
    busy: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [one.task_id for one in await busy.submit(*(new() for _ in range(450)))]  # type: ignore[union-attr]
    sizes: list[int] = []
    run: Callable[..., Any] = busy.run

    async def counted(act: str, *arguments: Any) -> Any:
        answer = await run(act, *arguments)
        if act == "estimates_of":
            sizes.append(len(answer["estimates"]))
        return answer

    monkeypatch.setattr(busy, "run", counted)
    await forecast(busy, clock.now, {"1n": flat(10_000, 20_000)})
    async with all_watched(busy, ids) as watchers:
        await wait_until(lambda: all(watcher._estimates for watcher in watchers))
        assert sizes[:5] == [100, 100, 100, 100, 50]


@contextlib.asynccontextmanager
async def all_watched(store: Store, ids: list[str]) -> AsyncIterator[list[Watcher]]:
    async with contextlib.AsyncExitStack() as stack:
        watchers = [await stack.enter_async_context(store.live.watch(one)) for one in ids]
        for watcher, one in zip(watchers, ids, strict=True):
            watcher.expect(one)
        yield watchers


async def test_the_poll_ends_with_the_last_watcher(busy: Store, clock: Clock) -> None:
    task_id = await waiting(busy)
    async with busy.live.watch(task_id) as watcher:
        watcher.expect(task_id)
        assert busy.live._waits._polling
    assert busy.live._waits._polling is None

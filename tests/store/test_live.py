"""A watcher receives every act on the task, and None where events may be missing."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from fairlead.model.event import Event
from fairlead.model.reports import Completed, Failed, Progress
from fairlead.model.states import State
from fairlead.store import live
from fairlead.store.keys import CHANNEL
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import events, new, raw
from tests.waiting import wait_until

pytestmark = pytest.mark.every_server


async def received(watch: AsyncIterator[Event | None], count: int) -> list[Event | None]:
    async with asyncio.timeout(20):
        return [await anext(watch) for _ in range(count)]


async def subscribers(store: Store) -> int:
    channel = store.connection.keys.key(CHANNEL)
    return int((await raw(store).pubsub_numsub(channel))[0][1])


async def test_a_watcher_first_receives_none_and_then_every_act_on_its_task(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w", capacity=2)
    task = new()
    async with store.live.watch(task.task_id) as watch:
        assert await received(watch, 1) == [None]
        await store.submit(new(), task, new())
        fence = (await store.claim("w", 2)).tasks[1].fence
        clock.pass_ms(70)
        await store.fail("w", Failed(task.task_id, code="busy", jitter=0))
        assert await received(watch, 3) == [
            Event(
                task.task_id,
                "submit",
                None,
                State.QUEUED,
                clock.now - 70,
                0,
                {"type": "echo", "priority": 1, "fair": ""},
                1,
            ),
            Event(
                task.task_id,
                "claim",
                State.QUEUED,
                State.EXECUTING,
                clock.now - 70,
                fence,
                {
                    "worker": "w",
                    "place": "1n",
                    "tag": 100_000,
                    "waited": 0,
                    "looked_at": 2,
                    "deadline": clock.now - 70 + 600_000,
                },
                2,
            ),
            Event(
                task.task_id,
                "fail",
                State.EXECUTING,
                State.DELAYED,
                clock.now,
                fence,
                {"code": "busy", "retries": 1, "delay": 500, "ran": 70, "type": "echo"},
                3,
            ),
        ]


async def test_a_watcher_of_everything_receives_the_events_of_the_outbox(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    async with store.live.watch() as watch:
        assert await received(watch, 1) == [None]
        await store.submit(*[new() for _ in range(5)])
        for task in (await store.claim("w", 3)).tasks:
            await store.complete("w", Completed(task.task_id, task.fence))
        kept = await events(store)
        got = await received(watch, len(kept))
    assert [(event.task_id, event.act, event.after, event.fence) for event in got if event] == [
        (row["task"], row["act"], row["to"], row["fence"]) for row in kept
    ]


async def test_all_watchers_share_one_subscription_that_ends_with_the_last(store: Store) -> None:
    assert await subscribers(store) == 0
    async with store.live.watch("one") as one:
        await received(one, 1)
        async with store.live.watch("one") as again, store.live.watch() as both:
            assert await received(again, 1) == await received(both, 1) == [None]
            assert await subscribers(store) == 1
        assert await subscribers(store) == 1
    await wait_until(lambda: no_subscribers(store))


async def no_subscribers(store: Store) -> bool:
    return await subscribers(store) == 0


async def test_a_watcher_that_returns_after_the_last_has_left_is_subscribed_again(store: Store) -> None:
    for _ in range(3):
        task = new()
        async with store.live.watch(task.task_id) as watch:
            assert await received(watch, 1) == [None]
            await store.submit_one(task)
            (event,) = await received(watch, 1)
            assert event and event.after is State.QUEUED


async def test_a_slow_watcher_loses_unread_events_and_is_notified(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_WAITING", 10)
    async with store.live.watch() as slow, store.live.watch() as quick:
        await received(slow, 1)
        await received(quick, 1)
        for _ in range(4):
            await store.submit(*[new() for _ in range(4)])
            await received(quick, 4)
        last = new()
        await store.submit_one(last)
        got = await received(slow, 1)
        while got[-1] is None or got[-1].task_id != last.task_id:
            got += await received(slow, 1)
    assert got[0] is None
    assert 1 < len(got) < 12


async def test_after_a_lost_connection_the_watcher_receives_none_and_then_further_events(
    store: Store,
) -> None:
    task = new()
    async with store.live.watch(task.task_id) as watch:
        await received(watch, 1)
        await raw(store).execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        assert await received(watch, 1) == [None]
        await store.submit_one(task)
        (event,) = await received(watch, 1)
        assert event and event.act == "submit"


async def test_an_unreadable_event_is_a_gap(store: Store) -> None:
    async with store.live.watch() as watch:
        await received(watch, 1)
        for message in ("garbage", "[1]", '[["id", "act", "", "no state", 1, 1, "{}"]]'):
            await raw(store).publish(store.connection.keys.key(CHANNEL), message)
            assert await received(watch, 1) == [None]


async def test_a_watcher_that_is_cancelled_leaves_nothing_behind(store: Store) -> None:
    async def watch_forever() -> None:
        async with store.live.watch() as watch:
            async for _ in watch:
                pass

    watching = asyncio.create_task(watch_forever())
    await wait_until(lambda: subscribers(store))
    watching.cancel()
    await asyncio.wait([watching])
    assert watching.cancelled()
    await wait_until(lambda: no_subscribers(store))


async def test_closing_ends_every_watch(open_store: Callable[..., Store]) -> None:
    store = open_store()
    await store.open()
    async with store.live.watch() as watch:
        await received(watch, 1)
        await store.live.close()
        async with asyncio.timeout(20):
            assert [event async for event in watch] == []


async def test_a_watcher_that_does_not_read_keeps_little(store: Store) -> None:
    """By their number and by their size; then it is notified to read the state."""
    await store.workers.register("w")
    task = new()
    await store.submit_one(task)
    await store.claim("w")
    async with store.live.watch(task.task_id) as slow, store.live.watch(task.task_id) as quick:
        assert await received(slow, 1) == await received(quick, 1) == [None]
        seqs = []
        for _ in range(40):
            await store.progress("w", Progress(task.task_id, chunks=["x" * 60_000]))
            (event,) = await received(quick, 1)
            assert event
            seqs.append(event.seq)
        assert seqs == list(range(3, 43))
        await store.cancel(task.task_id)
        unread: list[Event | None] = []
        while not unread or unread[-1] is None or unread[-1].act != "cancel":
            unread += await received(slow, 1)
        assert unread[0] is None
        assert len(unread) <= 19  # less than 1 MiB

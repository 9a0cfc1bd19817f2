"""The outbox: every transition as one event, in order, for live subscribers and for later readers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.model.reports import Completed, Failed, Grant
from fairlead.settings import Outbox, Settings
from fairlead.store.keys import CHANNEL
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.reading import entries_of, events_in
from tests.store.namespace import claim_one, events, new, raw


@pytest.fixture
async def subscriber(store: Store) -> AsyncIterator[Any]:
    """A live subscriber of the namespace."""
    listener = raw(store).pubsub()
    await listener.subscribe(store.connection.keys.key(CHANNEL))
    assert await listener.get_message(timeout=10) is not None  # it is subscribed
    yield listener
    await listener.aclose()


async def received(listener: Any, count: int) -> list[dict[str, Any]]:
    """The next `count` events, as `events` gives them."""
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        message = await listener.get_message(ignore_subscribe_messages=True, timeout=10)
        assert message is not None, f"only {len(rows)} of {count} events were published"
        rows += events_in({b"events": message["data"]})
    return rows


async def ids(store: Store) -> list[str]:
    return [number for number, _ in await entries_of(store)]


async def counts(store: Store) -> tuple[int, int]:
    """How many events are in the outbox, and how many were lost."""
    return len(await events(store)), (await store.stats()).lost_events


async def dropped(store: Store, last: str) -> int:
    """How many events are, because they are recorded up to the end of this entry."""
    return int((await store.run("recorded", last))["dropped"])


async def live_a_life(store: Store, clock: Clock) -> str:
    """One task to which most of what is possible happens."""
    await store.workers.register("w")
    submitted = await store.submit_one(new(priority="low", user_id="ann"))
    clock.pass_seconds(600)
    await store.promote()
    await store.workers.register("w")
    first = await claim_one(store)
    clock.pass_ms(250)
    await store.fail("w", Failed(first.task_id, first.fence, code="busy", jitter=0))
    clock.pass_ms(500)
    second = await claim_one(store)
    await store.release("w", Grant(second.task_id, second.fence))
    third = await claim_one(store)
    clock.pass_ms(1_500)
    await store.complete("w", Completed(third.task_id, third.fence))
    return submitted.task_id


@pytest.mark.every_server
async def test_every_transition_gives_one_event_with_all_its_facts(store: Store, clock: Clock) -> None:
    start = clock.now
    task_id = await live_a_life(store, clock)
    rows = await events(store)
    first, second = (start + 600_000) * 1000, (start + 600_750) * 1000  # fences
    assert {row["task"] for row in rows} == {task_id}
    assert [(row["act"], row["from"], row["to"], row["at"] - start, row["fence"]) for row in rows] == [
        ("submit", "", "queued", 0, 0),
        ("promote", "queued", "queued", 600_000, 0),
        ("claim", "queued", "executing", 600_000, first),
        ("fail", "executing", "delayed", 600_250, first),
        ("promote", "delayed", "queued", 600_750, first),
        ("claim", "queued", "executing", 600_750, second),
        ("release", "executing", "queued", 600_750, second),
        ("claim", "queued", "executing", 600_750, second + 1),
        ("complete", "executing", "completed", 602_250, second + 1),
    ]


async def test_the_detail_of_an_event_has_what_history_needs(store: Store, clock: Clock) -> None:
    start = clock.now
    await live_a_life(store, clock)
    submit, age, claim, fail, *_, complete = [row["detail"] for row in await events(store)]
    assert submit == {"type": "echo", "priority": 2, "fair": "0::ann"}
    assert age == {"from": "2n", "to": "1p"}
    assert claim == {
        "worker": "w",
        "place": "1p",
        "tag": 0,
        "waited": 600_000,
        "looked_at": 1,
        "deadline": start + 600_000 + 900_000,
    }
    kind = {"type": "echo", "fair": "0::ann"}
    assert fail == {"code": "busy", "retries": 1, "delay": 500, "ran": 250, **kind}
    assert complete == {"ran": 1_500, "worker": "w", **kind}


async def test_unreported_ends_have_their_events_too(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(
        new("crash"), new("late", timeout_seconds=20, max_retries=0), new("impatient", max_wait_seconds=5)
    )
    await store.claim("w", 2)
    clock.pass_seconds(31)
    await store.expire()
    await store.promote()
    found = {
        (row["act"], row["to"], row["detail"]["code"])
        for row in await events(store)
        if "code" in row["detail"]
    }
    assert found == {
        ("expire", "queued", "worker_lost"),
        ("expire", "dead_letter", "timeout"),
        ("promote", "failed", "RESOURCE_EXHAUSTED"),
    }


async def test_the_event_of_a_cancelled_run_has_its_new_fence(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    task = await claim_one(store)
    await store.cancel(task.task_id)
    last = (await events(store))[-1]
    assert (last["act"], last["from"], last["to"], last["fence"]) == (
        "cancel",
        "executing",
        "cancelled",
        task.fence + 1,
    )
    assert (await store.get(task.task_id)).fence == last["fence"]


@pytest.mark.every_server
async def test_a_subscriber_receives_the_same_events_in_the_same_order(
    store: Store, clock: Clock, subscriber: Any
) -> None:
    await live_a_life(store, clock)
    await store.submit(*[new(user_id=f"u{i}") for i in range(5)])
    written = await events(store)
    assert await received(subscriber, len(written)) == written


async def test_the_events_of_a_task_are_numbered(store: Store, clock: Clock) -> None:
    async with store.live.watch() as watch:
        assert await anext(watch) is None
        task_id = await live_a_life(store, clock)
        task = await store.get(task_id)
        async for event in watch:
            assert event
            seen = [event]
            break
        while seen[-1].after is not task.status:
            event = await anext(watch)
            assert event
            seen.append(event)
    assert [event.seq for event in seen] == list(range(1, len(seen) + 1))
    assert task.seq == len(seen) == len(await events(store, task_id))


async def test_a_task_that_waits_has_no_number_to_keep(store: Store) -> None:
    submitted = await store.submit_one(new())
    assert not await raw(store).hexists(store.connection.keys.key("task", submitted.task_id), "told")
    assert (await store.get(submitted.task_id)).seq == 1


async def test_an_act_that_changes_nothing_publishes_nothing(store: Store, subscriber: Any) -> None:
    await store.workers.register("w")
    await store.claim("w", idle=True)
    await store.submit(new(limits={"nope": 1}))
    await store.workers.heartbeat("w")
    await store.expire()
    await store.promote()
    assert await events(store) == []
    await store.submit_one(new())  # the first that is received
    assert await received(subscriber, 1) == await events(store)


@pytest.mark.every_server
async def test_the_events_of_an_act_are_one_entry_and_all_events_are_numbered(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[new() for _ in range(3)])
    await store.submit_one(new())
    await store.claim("w", 4)
    assert [(number, len(entry)) for number, entry in await entries_of(store)] == [
        ("1-3", 3),
        ("4-1", 1),
        ("5-4", 4),
    ]


class TestOverItsCap:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(outbox=Outbox(max_events=10))

    async def test_the_oldest_acts_go_and_their_events_are_counted(self, store: Store) -> None:
        for number in range(10):
            await store.submit_one(new(f"kind{number}"))
        assert await counts(store) == (10, 0)
        await store.submit(new("kind10"), new("kind11"))
        kinds = [row["detail"]["type"] for row in await events(store)]
        assert kinds == [f"kind{number}" for number in range(2, 12)]
        assert await counts(store) == (10, 2)

    async def test_an_act_goes_as_a_whole(self, store: Store) -> None:
        for _ in range(3):
            await store.submit(*[new() for _ in range(4)])
        assert await ids(store) == ["5-4", "9-4"]
        assert await counts(store) == (8, 4)
        await store.submit(new(), new())
        assert await counts(store) == (10, 4)

    async def test_an_act_with_more_events_than_fit_keeps_the_last(
        self, store: Store, subscriber: Any
    ) -> None:
        batch = [new() for _ in range(25)]
        await store.submit(*batch)
        assert [row["task"] for row in await events(store)] == [task.task_id for task in batch[15:]]
        assert (await ids(store), await counts(store)) == (["16-10"], (10, 15))
        assert len(await received(subscriber, 25)) == 25

    async def test_events_that_were_recorded_in_time_are_not_lost(self, store: Store) -> None:
        for _ in range(5):
            await store.submit(*[new() for _ in range(8)])
            await dropped(store, (await ids(store))[-1])
        assert await counts(store) == (0, 0)


async def test_recorded_drops_exactly_the_events_up_to_the_end_of_that_act(store: Store) -> None:
    for count in (2, 1, 3, 1):
        await store.submit(*[new() for _ in range(count)])
    before = await ids(store)
    assert await dropped(store, before[2]) == 6
    assert await ids(store) == before[3:]


async def test_recording_the_last_act_leaves_an_empty_outbox_that_continues(store: Store) -> None:
    await store.submit(new(), new())
    assert await dropped(store, "1-2") == 2
    assert await ids(store) == []
    await store.submit_one(new())
    assert await ids(store) == ["3-1"]


async def test_recording_again_drops_nothing_more(store: Store) -> None:
    for _ in range(5):
        await store.submit_one(new())
    before = await ids(store)
    assert await dropped(store, before[2]) == 3
    assert [await dropped(store, before[2]), await dropped(store, before[0])] == [0, 0]
    assert await ids(store) == before[3:]


@pytest.mark.parametrize("never_was", ["99999999999999-1", "1-1", "1-0", "0-1"])
async def test_an_act_that_never_was_drops_nothing(store: Store, never_was: str) -> None:
    await store.submit(new(), new())
    assert await dropped(store, never_was) == 0
    assert len(await ids(store)) == 1


async def test_entries_of_the_first_schema_go(store: Store) -> None:
    await raw(store).hset(store.connection.keys.meta, "schema", 1)
    await raw(store).xadd(store.connection.keys.key("events"), {"task": "t"})  # with the time for its id
    await store.open()
    await store.submit_one(new())
    assert await ids(store) == ["1-1"]

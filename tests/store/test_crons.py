"""A cron in the store: each tick is submitted once, by any caller; a cron never moves without its task."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.cron import MINUTE, Cron, due
from fairlead.model.states import State
from fairlead.model.task import Submitted
from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.times import time_text
from tests.conftest import Clock
from tests.store.namespace import events, everything, key_names, new, raw, wipe

DAY = 86_400_000


async def submitted(store: Store) -> list[dict[str, Any]]:
    return [event for event in await events(store) if event["act"] == "submit"]


async def registered(store: Store, clock: Clock, name: str = "c") -> int:
    """A cron that has begun now, a minute ago."""
    last, _ = await store.crons.last(name)
    clock.pass_ms(MINUTE)
    return last


# Beginning


async def test_a_new_cron_begins_now_and_stays_there(store: Store, clock: Clock) -> None:
    began = clock.now
    assert await store.crons.last("c") == (began, began)
    clock.pass_ms(5)
    assert await store.crons.last("c") == (began, began + 5)


async def test_the_time_is_the_servers(live_store: Store) -> None:
    last, now = await live_store.crons.last("c")
    seconds, _ = await raw(live_store).time()
    assert last == now
    assert abs(seconds * 1000 - now) < 60_000


async def test_crons_are_kept_apart_by_name_and_namespace(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    first = await registered(store, clock)
    assert await store.crons.last("d") == (clock.now, clock.now)
    other = open_store(clock=clock)
    await other.open()
    assert await other.crons.last("c") == (clock.now, clock.now)
    assert await store.crons.last("c") == (first, clock.now)


# Ticking


async def test_a_tick_submits_its_task_and_moves_the_cron(store: Store, clock: Clock) -> None:
    last, task = await registered(store, clock), new(parameters={"a": 1})
    await store.workers.register("w")
    assert await store.crons.tick("c", last, clock.now, task) == Submitted(
        task.task_id, State.QUEUED, queue_position=1
    )
    assert await store.crons.last("c") == (clock.now, clock.now)
    assert (await store.get(task.task_id)).parameters == {"a": 1}


async def test_a_tick_wakes_an_idle_worker(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    await store.workers.register("w")
    assert (await store.claim("w", idle=True)).tasks == []
    await store.crons.tick("c", last, clock.now, new())
    assert await raw(store).llen(store.connection.keys.key("wake", "w")) == 1


async def test_the_second_caller_submits_nothing(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    await store.crons.tick("c", last, clock.now, new())
    before = await everything(store)
    assert await store.crons.tick("c", last, clock.now, new()) is None
    assert await everything(store) == before


async def test_a_caller_that_looked_before_the_cron_existed_submits_nothing(
    store: Store, clock: Clock
) -> None:
    assert await store.crons.tick("c", clock.now - MINUTE, clock.now, new()) is None
    assert await submitted(store) == []


async def test_a_repeated_call_is_answered_as_the_first_was(store: Store, clock: Clock) -> None:
    last, task = await registered(store, clock), new()
    await store.workers.register("w")
    first = await store.crons.tick("c", last, clock.now, task)
    before = await everything(store)
    again = await store.crons.tick("c", last, clock.now, task)
    assert first == Submitted(task.task_id, State.QUEUED, queue_position=1)
    assert again == Submitted(task.task_id, State.QUEUED, repeated=True)
    assert await everything(store) == before


async def test_a_call_repeated_after_later_ticks_does_not_move_the_cron_back(
    store: Store, clock: Clock
) -> None:
    last, task, tick = await registered(store, clock), new(), clock.now
    await store.crons.tick("c", last, tick, task)
    clock.pass_ms(MINUTE)
    await store.crons.tick("c", tick, clock.now, new())
    await store.crons.tick("c", last, tick, task)
    assert await store.crons.last("c") == (clock.now, clock.now)
    assert len(await submitted(store)) == 2


async def test_one_of_twenty_tickers_submits_each_tick(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    namespace = store.connection.keys.namespace
    tickers = [open_store(namespace, clock) for _ in range(20)]
    cron = Cron(name="c", expression="* * * * *", task_type="echo", missed="all", tick_parameter="at")
    last = await registered(store, clock)
    clock.pass_ms(24 * MINUTE)
    ticks = due(cron, last, clock.now)
    assert len(ticks) == 25

    async def catch_up(ticker: Store) -> int:
        won = 0
        while True:
            previous, now = await ticker.crons.last("c")
            if not (missed := due(cron, previous, now)):
                return won
            answer = await ticker.crons.tick("c", previous, missed[0], cron.new_task(missed[0]))
            won += answer is not None

    wins = await asyncio.gather(*[catch_up(ticker) for ticker in tickers])
    assert sum(wins) == 25
    submitted_ticks = [(await store.get(event["task"])).parameters["at"] for event in await submitted(store)]
    assert submitted_ticks == [time_text(tick) for tick in ticks]
    for ticker in tickers:
        await ticker.close()


# Refusals


async def test_a_refused_task_leaves_the_cron_where_it_is_until_it_is_accepted(
    store: Store, clock: Clock
) -> None:
    last, task = await registered(store, clock), new(limits={"gpu": 2})
    before = await everything(store)
    with pytest.raises(errors.InvalidInput) as refused:
        await store.crons.tick("c", last, clock.now, task)
    assert (refused.value.field, refused.value.code) == ("limits.gpu", "unknown_limit")
    assert await everything(store) == before
    await store.limits.set("gpu", Slots(limit=2))
    assert await store.crons.tick("c", last, clock.now, task) is not None
    assert await store.crons.last("c") == (clock.now, clock.now)


async def test_ticks_can_be_left_out(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    clock.pass_ms(DAY)
    await store.crons.tick("c", last, clock.now, new())
    assert await store.crons.last("c") == (clock.now, clock.now)
    assert len(await submitted(store)) == 1


async def test_no_tick_is_submitted_before_its_time(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    with pytest.raises(errors.InvalidInput, match="in the future"):
        await store.crons.tick("c", last, clock.now + 1, new())
    assert await store.crons.last("c") == (last, clock.now)


BAD: dict[str, tuple[tuple[Any, Any, Any], str]] = {
    "a name with a space": (("a b", 1, 2), "name"),
    "a tick that is no number": (("c", 1, "2"), "tick"),
    "a previous tick that is no whole number": (("c", 1.5, 2), "previous"),
    "a tick before the previous one": (("c", 2, 1), "tick"),
    "the previous tick": (("c", 2, 2), "tick"),
}


async def test_bad_input_is_refused_by_field(store: Store, subtests: pytest.Subtests) -> None:
    for arguments, field in BAD.values():
        with subtests.test(arguments=arguments, field=field):
            with pytest.raises(errors.InvalidInput) as refused:
                await store.crons.tick(*arguments, new())
            assert refused.value.field == field
            with pytest.raises(errors.InvalidInput):
                await store.crons.last("")
            assert "crons" not in await key_names(store)


async def test_a_namespace_that_lost_its_data_says_so(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    await wipe(store)
    with pytest.raises(errors.StoreFault):
        await store.crons.last("c")
    with pytest.raises(errors.StoreFault):
        await store.crons.tick("c", last, clock.now, new())
    await store.open()


# Clocks


async def test_a_clock_set_back_by_less_than_a_day_brings_no_tick_twice(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    await store.crons.tick("c", last, clock.now, new())
    tick = clock.now
    clock.pass_ms(-DAY)
    assert await store.crons.last("c") == (tick, clock.now)


async def test_a_clock_that_was_far_ahead_does_not_stop_the_cron(store: Store, clock: Clock) -> None:
    last = await registered(store, clock)
    clock.pass_ms(400 * DAY)
    await store.crons.tick("c", last, clock.now, new())
    clock.pass_ms(-400 * DAY)
    assert await store.crons.last("c") == (clock.now, clock.now)
    clock.pass_ms(MINUTE)
    assert await store.crons.tick("c", clock.now - MINUTE, clock.now, new()) is not None

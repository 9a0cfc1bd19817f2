"""A task that needs several limits is not overtaken forever, and no task waits for a hold without need."""

import pytest

from fairlead.model.reports import Completed
from fairlead.model.task import NewTask, Task
from fairlead.settings import Rate, Settings, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import new

BOTH = {"a": 1, "b": 1}


@pytest.fixture
def settings() -> Settings:
    return Settings(limits={"a": Slots(limit=1), "b": Slots(limit=1)})


class Shop:
    """A worker with room for every task, which ends one only on request."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.running: dict[str, Task] = {}

    async def submit(self, kind: str, limits: dict[str, int], priority: str = "medium") -> NewTask:
        task = new(kind, limits=limits, priority=priority)
        await self.store.submit_one(task)
        return task

    async def claim(self) -> list[str]:
        """The types of the tasks that start now."""
        await self.store.workers.register("w", capacity=100)
        tasks = (await self.store.claim("w", 100, lease_ms=10_000_000)).tasks
        self.running |= {task.task_type: task for task in tasks}
        return [task.task_type for task in tasks]

    async def end(self, kind: str) -> list[str]:
        """Ends the task of this type; returns the types of the tasks that start then."""
        task = self.running.pop(kind)
        await self.store.complete("w", Completed(task.task_id, task.fence))
        return await self.claim()

    async def holds(self) -> dict[str, str | None]:
        return {limit.name: limit.hold for limit in await self.store.limits.all()}


@pytest.fixture
def shop(store: Store, clock: Clock) -> Shop:
    return Shop(store, clock)


async def both_busy(shop: Shop) -> NewTask:
    """a and b are taken, each by another task, and a third one waits for both."""
    await shop.submit("a0", {"a": 1})
    await shop.submit("b0", {"b": 1})
    assert await shop.claim() == ["a0", "b0"]
    return await shop.submit("both", BOTH)


async def test_a_task_with_two_limits_of_one_is_overtaken_for_hold_after_and_no_longer(shop: Shop) -> None:
    await both_busy(shop)
    starts = []
    for i in range(1, 9):
        shop.clock.pass_seconds(5)
        free = "ab"[i % 2]
        await shop.submit(f"{free}{i}", {free: 1})
        ends = next(kind for kind in shop.running if kind[0] == free or kind == "both")
        starts += await shop.end(ends)
    # its hold is made after 30 s: then a is kept, and b makes it start
    assert starts[:5] == ["b1", "a2", "b3", "a4", "b5"]
    assert starts[5] == "both"


async def test_before_its_time_a_waiting_task_holds_nothing(shop: Shop) -> None:
    await both_busy(shop)
    shop.clock.pass_ms(29_999)
    await shop.claim()
    assert await shop.holds() == {"a": None, "b": None}
    shop.clock.pass_ms(1)
    await shop.claim()
    sub = "1n:both;|a=1,b=1"
    assert await shop.holds() == {"a": sub, "b": sub}


async def test_a_promoted_task_asks_for_its_hold_at_once(shop: Shop) -> None:
    await shop.submit("a0", {"a": 1}, "high")
    await shop.submit("b0", {"b": 1}, "high")
    await shop.claim()
    await shop.submit("both", BOTH, "low")
    shop.clock.pass_seconds(600)
    await shop.claim()
    sub = "1p:both;|a=1,b=1"
    assert await shop.holds() == {"a": sub, "b": sub}


async def test_a_better_priority_passes_a_hold_and_an_equal_one_does_not(shop: Shop) -> None:
    await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    await shop.submit("equal", {"a": 1})
    assert await shop.end("a0") == []
    await shop.submit("better", {"a": 1}, "high")
    assert await shop.claim() == ["better"]


async def test_a_hold_ends_with_the_start_of_its_task(shop: Shop) -> None:
    await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    assert [await shop.end("a0"), await shop.end("b0")] == [[], ["both"]]
    assert await shop.holds() == {"a": None, "b": None}


async def test_a_hold_ends_when_its_task_is_cancelled(shop: Shop) -> None:
    both = await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    await shop.submit("next", {"a": 1})
    assert await shop.end("a0") == []
    await shop.store.cancel(both.task_id)
    assert await shop.claim() == ["next"]


@pytest.mark.parametrize("way", ["pause", "lower"])
async def test_a_hold_ends_when_its_task_can_no_longer_start(shop: Shop, way: str) -> None:
    await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    await (shop.store.limits.pause("b") if way == "pause" else shop.store.limits.set("b", Slots(limit=0)))
    assert await shop.holds() == {"a": None, "b": None}
    await shop.submit("next", {"a": 1})
    assert await shop.end("a0") == ["next"]


async def test_a_hold_is_all_or_none(shop: Shop) -> None:
    await shop.store.limits.set("c", Slots(limit=1))
    for limit in "abc":
        await shop.submit(f"{limit}0", {limit: 1})
    await shop.claim()
    await shop.submit("first", {"a": 1, "b": 1})
    await shop.submit("second", {"b": 1, "c": 1})
    shop.clock.pass_seconds(30)
    await shop.claim()
    sub = "1n:first;|a=1,b=1"
    assert await shop.holds() == {"a": sub, "b": sub, "c": None}
    assert [await shop.end("c0"), await shop.end("a0"), await shop.end("b0")] == [[], [], ["first"]]
    assert await shop.end("first") == ["second"]


async def test_nothing_is_held_for_a_task_that_no_worker_serves(shop: Shop) -> None:
    await shop.submit("a0", {"a": 1})
    await shop.submit("b0", {"b": 1})
    await shop.claim()
    await shop.store.submit_one(new("both", limits=BOTH, required_capabilities=("gpu",)))
    shop.clock.pass_seconds(30)
    await shop.claim()
    assert await shop.holds() == {"a": None, "b": None}
    await shop.store.workers.register("able", capabilities=["gpu"])
    shop.clock.pass_seconds(30)
    await shop.claim()
    sub = "1n:both;gpu|a=1,b=1"
    assert await shop.holds() == {"a": sub, "b": sub}


@pytest.mark.parametrize("way", ["drain", "leave", "silence"])
async def test_a_hold_ends_when_no_worker_is_left_that_serves_its_task(shop: Shop, way: str) -> None:
    await shop.submit("a0", {"a": 1})
    await shop.submit("b0", {"b": 1})
    await shop.claim()
    await shop.store.submit_one(new("both", limits=BOTH, required_capabilities=("gpu",)))
    shop.clock.pass_seconds(30)
    await shop.store.workers.register("able", capabilities=["gpu"])
    await shop.claim()
    assert all((await shop.holds()).values())
    match way:
        case "drain":
            await shop.store.workers.drain("able")
        case "leave":
            await shop.store.workers.leave("able")
        case "silence":
            shop.clock.pass_seconds(31)
            await shop.store.upkeep.bury()
    await shop.submit("next", {"a": 1})
    assert await shop.end("a0") == ["next"]
    assert await shop.holds() == {"a": None, "b": None}


async def test_nothing_is_held_for_a_task_that_lacks_something_else(shop: Shop) -> None:
    """A rate is not held: with its limits held back the task would still not start."""
    await shop.store.limits.set("rate", Rate(count=1, period_seconds=100, burst=1))
    await shop.submit("a0", {"a": 1})
    await shop.submit("b0", {"b": 1})
    await shop.submit("called", {"rate": 1})
    await shop.claim()
    await shop.submit("all", BOTH | {"rate": 1})
    shop.clock.pass_seconds(60)
    await shop.claim()
    assert not any((await shop.holds()).values())
    shop.clock.pass_seconds(60)
    await shop.claim()
    sub = "1n:all;|a=1,b=1,rate=1"
    assert await shop.holds() == {"a": sub, "b": sub, "rate": None}


async def test_a_hold_ends_with_a_pause_of_its_type(shop: Shop) -> None:
    await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    await shop.store.pause_type("both")
    assert await shop.holds() == {"a": None, "b": None}


async def test_a_hold_that_brings_no_start_ends_after_hold_seconds_and_may_come_again(shop: Shop) -> None:
    await both_busy(shop)
    shop.clock.pass_seconds(30)
    await shop.claim()
    await shop.submit("next", {"a": 1})
    assert await shop.end("a0") == []
    shop.clock.pass_ms(299_999)
    assert await shop.claim() == []
    shop.clock.pass_ms(1)
    assert await shop.claim() == ["next"], "b is taken for longer than a may be held"
    assert await shop.holds() == {"a": None, "b": None}
    shop.clock.pass_ms(299_999)  # others have their turn for as long as it lasted
    await shop.claim()
    assert not any((await shop.holds()).values())
    shop.clock.pass_ms(1)
    await shop.claim()
    assert all((await shop.holds()).values())


async def test_limits_that_begin_to_overlap_make_a_hold_for_a_task_that_waits_already(shop: Shop) -> None:
    await shop.store.limits.set("c", Slots(limit=1))
    await shop.submit("pair0", {"a": 1, "c": 1})
    await shop.claim()
    await shop.submit("pair1", {"a": 1, "c": 1})
    shop.clock.pass_seconds(60)
    await shop.claim()
    assert not any((await shop.holds()).values()), "c was always named with a: they are nested"
    await shop.submit("c0", {"c": 1})
    await shop.submit("a0", {"a": 1})
    await shop.claim()
    sub = "1n:pair1;|a=1,c=1"
    assert await shop.holds() == {"a": sub, "b": None, "c": sub}


async def test_limits_of_a_task_whose_wait_ended_before_any_claim_overlap_too(shop: Shop) -> None:
    """Whether a limit came alone must not depend on how soon the end of a delay is noticed."""
    await shop.submit("pair0", BOTH)
    await shop.claim()
    await shop.submit("pair1", BOTH)
    for limit in "ab":
        late = new(limit, limits={limit: 1}, delay_seconds=1, max_wait_seconds=1)
        await shop.store.submit_one(late)
    shop.clock.pass_seconds(60)
    assert await shop.claim() == [], "their delay and their wait end in one act"
    sub = "1n:pair1;|a=1,b=1"
    assert await shop.holds() == {"a": sub, "b": sub}


# Limits that lie in each other


async def test_nested_limits_never_hold_and_no_task_starves(shop: Shop) -> None:
    nests = {
        "fast": {"all": 1},
        "medium": {"all": 1, "not-fast": 1},
        "slow": {"all": 1, "not-fast": 1, "slow": 1},
    }
    for name, count in (("all", 3), ("not-fast", 2), ("slow", 1)):
        await shop.store.limits.set(name, Slots(limit=count))
    waiting = set()
    for i in range(30):
        for speed, limits in nests.items():
            waiting.add(f"{speed}-{i}")
            await shop.submit(f"{speed}-{i}", limits)
        waiting -= set(await shop.claim())
        shop.clock.pass_seconds(40)
        assert not any((await shop.holds()).values())
        waiting -= set(await shop.end(next(iter(shop.running))))
    # a third of what came has left, and of every kind the oldest first
    started = {f"{speed}-{i}" for speed in nests for i in range(30)} - waiting
    for speed in nests:
        numbers = sorted(int(kind.rpartition("-")[2]) for kind in started if kind.startswith(speed))
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > 5


# Units


async def test_a_big_task_on_overlapping_limits_gets_its_turn(shop: Shop) -> None:
    await shop.store.limits.set("a", Slots(limit=2))
    await shop.submit("small0", {"a": 1})
    await shop.submit("small1", {"a": 1})
    await shop.submit("other", {"b": 1})
    await shop.claim()
    await shop.submit("big", {"a": 2, "b": 1})
    assert await shop.end("other") == []
    shop.clock.pass_seconds(29)
    await shop.submit("small2", {"a": 1})
    assert await shop.end("small0") == ["small2"]
    shop.clock.pass_seconds(1)
    await shop.submit("small3", {"a": 1})
    assert [await shop.end("small1"), await shop.end("small2")] == [[], ["big"]]

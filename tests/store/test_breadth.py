"""Many task types, customers, tenants and profiles: cases that were wrong or slow."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.task import Task
from fairlead.settings import Admission, Fairness, Rate, Settings, Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, key_names, new, raw, wipe, woken


@pytest.fixture
def settings() -> Settings:
    admission = Admission(max_queued=1_000_000, max_queued_per_user=1_000_000)
    return Settings(admission=admission, fairness=Fairness(weights={"double": 2}))


class Singles:
    """Two workers, each with one slot of its own limit, for which eight-second tasks always wait."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.running: dict[str, Task] = {}
        self.starts: list[Task] = []

    async def begin(self) -> None:
        for limit in ("A", "B"):
            await self.store.limits.set(limit, Slots(limit=1))
        await self.store.workers.register("w", capacity=4, task_types=["single", "both"])
        await self.store.submit(*[new("single", limits={limit: 1}) for limit in "AB" for _ in range(2)])

    async def run(self, seconds: int) -> None:
        """The tasks on A and on B end by turns, four seconds apart."""
        for _ in range(seconds // 4):
            self.clock.pass_seconds(4)
            await self.store.workers.heartbeat("w")
            ended = [t for t in self.running.values() if self.clock.now - (t.started_at or 0) >= 8_000]
            await self.store.complete("w", *[Completed(t.task_id, t.fence) for t in ended])
            for task in ended:
                del self.running[task.task_id]
                if task.task_type == "single":
                    await self.store.submit_one(new("single", limits=task.limits))
            for task in (await self.store.claim("w", 1 if len(self.starts) == 0 else 2)).tasks:
                self.running[task.task_id] = task
                self.starts.append(task)


@pytest.mark.parametrize(
    "options",
    [
        {"task_type": "unserved", "limits": {"A": 1, "B": 1}},
        {"task_type": "both", "limits": {"A": 1, "B": 1}, "required_capabilities": ["unknown"]},
        {"task_type": "both", "limits": {"A": 1, "B": 1, "daily": 1}},
    ],
    ids=["no worker of its type", "no worker of its capability", "a rate that is used up"],
)
async def test_a_task_that_cannot_start_holds_nothing_back(
    store: Store, clock: Clock, options: dict[str, object]
) -> None:
    singles = Singles(store, clock)
    await singles.begin()
    await store.limits.set("daily", Rate(count=1, period_seconds=86_400, burst=1))
    await store.submit_one(new("single", limits={"daily": 1}))
    await singles.run(60)
    await store.submit_one(new(**options))  # type: ignore[arg-type]
    before = len(singles.starts)
    await singles.run(1_200)
    assert len(singles.starts) - before >= 283  # nearly all that A and B can do: two in eight seconds
    assert {limit.hold for limit in await store.limits.all()} == {None}


async def test_a_task_of_two_overlapping_limits_is_not_overtaken_forever(store: Store, clock: Clock) -> None:
    singles = Singles(store, clock)
    await singles.begin()
    await singles.run(60)
    both = await store.submit_one(new("both", limits={"A": 1, "B": 1}))
    await singles.run(120)
    assert (await store.get(both.task_id)).started_at is not None


async def test_nested_limits_do_not_fill_the_window_of_tasks_that_may_hold(
    store: Store, clock: Clock
) -> None:
    singles = Singles(store, clock)
    await singles.begin()
    await store.limits.set("gpu", Slots(limit=1))
    await store.limits.acquire("gpu", lease_ms=10_000_000)
    for n in range(40):
        group = {"concurrency_group": f"customer-{n}", "concurrency_limit": 1}
        await store.submit_one(new("both", limits={"gpu": 1}, **group))
    await singles.run(60)
    both = await store.submit_one(new("both", limits={"A": 1, "B": 1}))
    await singles.run(120)
    assert (await store.get(both.task_id)).started_at is not None


async def test_a_hold_ends_by_itself_and_returns_only_after_the_same_time(store: Store, clock: Clock) -> None:
    for limit in ("A", "B"):
        await store.limits.set(limit, Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"A": 1}), new(limits={"B": 1}))
    await store.claim("w", 2)
    await store.submit_one(new(limits={"A": 1, "B": 1}, priority="high"))

    async def is_held(after: int) -> bool:
        for _ in range(after):
            clock.pass_seconds(1)
            await store.workers.heartbeat("w")
        await store.claim("w")
        return (await store.limits.get("A")).hold is not None

    assert not await is_held(29)
    assert await is_held(1)
    assert await is_held(299)
    assert not await is_held(1)
    assert not await is_held(299)
    assert await is_held(1)


async def test_as_many_workers_are_called_as_tasks_fit_into_the_freed_units(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=8))
    await store.workers.register("busy")
    await store.submit_one(new(limits={"gpu": 8}))
    held = await claim_one(store, "busy")
    await store.submit(*[new(limits={"gpu": 1}) for _ in range(8)])
    names = [f"w{n}" for n in range(8)]
    for name in names:
        await store.workers.register(name)
        await store.claim(name, idle=True)
    await store.complete("busy", Completed(held.task_id, held.fence))
    assert await woken(store, *names) == dict.fromkeys(names, 1)


@pytest.mark.long
async def test_customers_with_a_limit_each_are_not_refused(store: Store) -> None:
    await store.workers.register("w", capacity=10_000)
    for first in range(0, 5_000, 500):
        answers = await store.submit(
            *[
                new(concurrency_group=f"customer-{n}", concurrency_limit=1)
                for n in range(first, first + 500)
                for _ in range(2)
            ]
        )
        assert not [answer for answer in answers if isinstance(answer, errors.FairleadError)]
    started: list[Task] = []
    while (claimed := await store.claim("w", 1_000)).tasks:
        started += claimed.tasks
    assert len({task.concurrency_group for task in started}) == len(started) == 5_000
    status = await store.limits.get("customer-17")
    assert (status.active, status.waiting) == (1, 1)


async def test_types_are_bounded_by_tenant_with_those_that_are_delayed(
    open_store: Callable[..., Store],
) -> None:
    store = open_store(settings=Settings(admission=Admission(max_task_types=3)))
    await store.open()
    await store.workers.register("w", capacity=9)
    for n in range(2):
        await store.submit_one(new(f"kind{n}", tenant="acme"))
    await store.submit_one(new("kind2", tenant="acme", delay_seconds=600))
    await store.submit_one(new("kind1", tenant="acme"))
    with pytest.raises(errors.TooManyTypes) as refusal:
        await store.submit_one(new("kind3", tenant="acme"))
    assert refusal.value.waiting == 3
    await store.submit_one(new("kind3", tenant="other"))


async def test_a_limit_made_by_a_submit_ends_when_nothing_needs_it(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=9)
    for delay in (None, 5.0):
        task = new(concurrency_group="session", concurrency_limit=1, delay_seconds=delay)
        await store.submit_one(task)
        assert "limit:session" in await key_names(store)
        if delay:
            clock.pass_seconds(5)
        held = await claim_one(store)
        assert (await store.limits.get("session")).active == 1
        await store.complete("w", Completed(held.task_id, held.fence))
        assert "limit:session" not in await key_names(store)
    cancelled = await store.submit_one(new(concurrency_group="session", concurrency_limit=1))
    await store.cancel(cancelled.task_id)
    assert [limit.name for limit in await store.limits.all()] == []


async def test_a_limit_that_an_operator_set_does_not_end(store: Store) -> None:
    await store.workers.register("w")
    task = await store.submit_one(new(concurrency_group="session", concurrency_limit=1))
    await store.limits.set("session", Slots(limit=3))
    await store.cancel(task.task_id)
    assert (await store.limits.get("session")).limit == 3


async def test_limits_are_listed_in_pages_by_name(store: Store) -> None:
    names = sorted(f"limit-{n}" for n in range(450))
    for name in names:
        await store.limits.set(name, Slots(limit=1))
    first, after = await store.limits.page(count=200)
    assert [limit.name for limit in first] == names[:200] and after == names[199]
    assert [limit.name for limit in await store.limits.all()] == names


async def test_one_worker_of_an_idle_fleet_watches_the_alarm(store: Store, clock: Clock) -> None:
    await store.submit_one(new(delay_seconds=3))
    alarms = []
    for n in range(5):
        await store.workers.register(f"w{n}")
        alarms.append((await store.claim(f"w{n}", idle=True)).next_alarm)
    assert alarms == [clock.now + 3_000, None, None, None, None]
    await store.submit_one(new())  # the watcher is called for it, and another one watches instead
    assert (await claim_one(store, "w0")).task_id
    called = [n for n in range(1, 5) if (await woken(store, f"w{n}"))[f"w{n}"]]
    assert len(called) == 1
    assert (await store.claim(f"w{called[0]}", idle=True)).next_alarm == clock.now + 3_000


async def test_a_deleted_record_blocks_no_other_task(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=9)
    await store.limits.set("A", Slots(limit=9))
    await store.limits.set("B", Slots(limit=9))
    specs: list[dict[str, Any]] = [
        *({}, {"limits": {"A": 1, "B": 1}}, {"priority": "low"}, {"delay_seconds": 5}),
        {"max_wait_seconds": 5},
    ]
    lost, kept = [[new(**spec) for spec in specs] for _ in range(2)]
    await store.submit(*lost, *kept)
    await raw(store).delete(*[store.connection.keys.key("task", task.task_id) for task in lost])
    clock.pass_seconds(4)
    started = {task.task_id for task in (await store.claim("w", 9)).tasks}
    clock.pass_seconds(4)
    started |= {task.task_id for task in (await store.claim("w", 9)).tasks}
    assert started == {task.task_id for task in kept}
    assert (await store.stats()).missing_records == len(lost)
    breaches = await examine(store.connection, now_ms=clock.now)
    assert {(breach.invariant, breach.about) for breach in breaches} == {
        ("I1", task.task_id) for task in lost
    }
    await wipe(store)  # the doctor would find them lost for as long as their events are kept


@pytest.mark.parametrize("ran_out", [False, True], ids=["dead", "forgotten"])
async def test_the_idle_lines_of_dead_workers_go_with_them(store: Store, clock: Clock, ran_out: bool) -> None:
    dead = [f"dead{n}" for n in range(300)]
    for name in dead:
        await store.workers.register(name)
        await store.claim(name, idle=True)
    clock.pass_seconds(3_700 if ran_out else 60)
    if ran_out:
        await raw(store).delete(*[store.connection.keys.key("worker", name) for name in dead])
    while await store.upkeep.bury():
        pass
    assert await examine(store.connection, now_ms=clock.now) == []
    assert [name for name in await key_names(store) if name.startswith("idle")] == []
    await store.workers.register("live")
    await store.claim("live", idle=True)
    await store.submit_one(new())
    assert await woken(store, "live") == {"live": 1}


async def test_a_declaration_reaches_tasks_that_wait_already(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[new("draw") for _ in range(6)])
    await store.submit(*[new("draw", priority="high") for _ in range(2)])
    await store.declare("code", {"draw": TaskSettings(limits={"gpu": 1})}, {"gpu": Slots(limit=3)})
    started = (await store.claim("w", 9)).tasks
    assert [task.limits for task in started] == [{"gpu": 1}] * 3
    assert [task.priority.word for task in started] == ["high", "high", "medium"]
    await store.complete("w", *[Completed(task.task_id, task.fence) for task in started])
    assert len((await store.claim("w", 9)).tasks) == 3


async def test_a_declared_capability_reaches_tasks_that_wait_already(store: Store) -> None:
    await store.workers.register("plain", capacity=9)
    await store.workers.register("gpu", capacity=9, capabilities=["gpu"])
    await store.submit_one(new("draw"))
    await store.declare("code", {"draw": TaskSettings(required_capabilities=["gpu"])}, {})
    assert (await store.claim("plain", 9)).tasks == []
    assert len((await store.claim("gpu", 9)).tasks) == 1


async def test_limits_that_many_sub_queues_need_are_waited_for_in_common(store: Store) -> None:
    for limit in ("A", "B"):
        await store.limits.set(limit, Slots(limit=1))
    await store.workers.register("w", capacity=99)
    held = {limit: await store.limits.acquire(limit) for limit in "AB"}
    for n in range(300):
        group: dict[str, Any] = {"concurrency_group": f"customer-{n}", "concurrency_limit": 1}
        await store.submit_one(new(limits={"A": 1, "B": 1}, **group))
    while (await store.claim("w")).again:  # the first came before the limits were known as shared
        pass
    for limit in "ABAB":  # each is free in turn: no task moves from one to the other
        await store.limits.release(held[limit])
        claimed = await store.claim("w")
        assert (claimed.tasks, claimed.again) == ([], False)
        held[limit] = await store.limits.acquire(limit)
    for lease in held.values():
        await store.limits.release(lease)
    assert len((await store.claim("w", 99)).tasks) == 1


# Profiles that come and go


async def test_a_new_profile_sees_everything_that_it_serves_before_it_is_given_anything(store: Store) -> None:
    await store.workers.register("all")
    kinds = [f"kind{n}" for n in range(400)]  # more than are looked at in one act
    await store.submit(*[new(kind, priority="low") for kind in kinds])
    await store.submit(*[new("kind399", concurrency_group=f"c{n}", concurrency_limit=1) for n in range(150)])
    await store.workers.register("some", task_types=[*kinds[::2], "kind399"], capacity=1_000)
    started: list[Task] = []
    for _ in range(100):
        claimed = await store.claim("some", 1_000)
        started += claimed.tasks
        if not claimed.tasks and not claimed.again:
            break
    assert {task.task_type for task in started} == {*kinds[::2], "kind399"}
    assert [task.priority.word for task in started] == ["medium"] * 150 + ["low"] * 201
    await store.workers.register("late", task_types=["kind1"])
    assert (await claim_one(store, "late")).task_type == "kind1"


async def test_workers_with_a_known_profile_change_nothing(store: Store) -> None:
    await store.workers.register("w1", task_types=["a", "b"])
    await store.submit(new("a"), new("b"), new("c"))
    await store.workers.leave("w1")
    before = await raw(store).hgetall(store.connection.keys.key("audiences"))
    await store.workers.register("w2", task_types=["b", "a"])
    assert await raw(store).hgetall(store.connection.keys.key("audiences")) == before
    assert (await claim_one(store, "w2")).task_type == "a"


async def test_routes_audiences_and_profiles_of_the_past_are_forgotten(store: Store, clock: Clock) -> None:
    for n in range(20):
        await store.workers.register(f"host{n}", capabilities=[f"host-{n}"])
        await store.submit_one(new(f"kind{n}", required_capabilities=[f"host-{n}"]))
        task = await claim_one(store, f"host{n}")
        await store.complete(f"host{n}", Completed(task.task_id, task.fence))
        await store.workers.leave(f"host{n}")
    for _ in range(25):
        clock.pass_seconds(3_601)
        await store.upkeep.bury()
    for name in ("routes", "audiences", "profiles"):
        assert name not in await key_names(store), name


# Schedules that broke prototypes: A = B = 1, C = 2 by default; the number is the order of arrival


class Schedule:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.users = itertools.count()
        self.tasks: dict[str, str] = {}
        self.running: dict[int, Task] = {}

    async def begin(self, **limits: int) -> "Schedule":
        for name, limit in ({"A": 1, "B": 1, "C": 2} | limits).items():
            await self.store.limits.set(name, Slots(limit=limit))
        await self.store.workers.register("w", capacity=99)
        return self

    async def submit(self, number: int, **needs: int) -> None:
        task = new(f"kind{number}", limits=needs, user_id=f"user{number}")
        self.tasks[task.task_id] = str(number)
        await self.store.submit_one(task)

    async def claim(self) -> int | None:
        for task in (await self.store.claim("w")).tasks:
            number = int(self.tasks[task.task_id])
            self.running[number] = task
            return number
        return None

    async def complete(self, number: int) -> None:
        task = self.running.pop(number)
        await self.store.complete("w", Completed(task.task_id, task.fence))


async def test_parking_under_a_marker_that_is_still_shown(store: Store) -> None:
    s = await Schedule(store).begin()
    await s.submit(1, A=1)
    assert await s.claim() == 1
    await s.submit(2, A=1)
    assert await s.claim() is None
    await s.complete(1)
    await s.submit(3, A=1)
    assert await s.claim() in (2, 3)
    first = next(iter(s.running))
    await s.submit(4, A=1)
    await s.submit(5)
    assert await s.claim() == 5
    await s.complete(first)
    await s.submit(6)
    assert await s.claim() == (2 if first == 3 else 3)
    await s.complete(2 if first == 3 else 3)
    assert [await s.claim(), await s.claim()] == [4, 6]


@pytest.mark.parametrize("slots", [9, 1], ids=["shown", "parked"])
async def test_an_aged_task_that_goes_before_the_head_of_its_new_sub_queue_is_next(
    store: Store, clock: Clock, slots: int
) -> None:
    await store.limits.set("A", Slots(limit=slots))

    async def submit(user: str, **options: Any) -> None:
        await store.submit_one(new(priority="low", user_id=user, **options))

    async def claim() -> Task:
        await store.workers.register("w", capacity=9)
        return await claim_one(store)

    for _ in range(2):
        await submit("ann", limits={"A": 1})
        await submit("double")  # has twice her weight: its second goes before her second
    clock.pass_seconds(300)
    await submit("bob", limits={"A": 1})
    clock.pass_seconds(301)
    first, second = await claim(), await claim()
    assert {first.user_id, second.user_id} == {"ann", "double"}
    clock.pass_seconds(300)
    await store.promote()
    for task in (first, second):
        await store.complete("w", Completed(task.task_id, task.fence))
    third = await claim()
    assert third.user_id == "bob"
    await store.complete("w", Completed(third.task_id, third.fence))
    assert [(await claim()).user_id for _ in range(2)] == ["double", "ann"]


async def test_raising_a_limit_shows_what_waits_for_it(store: Store) -> None:
    s = await Schedule(store).begin(C=0)
    await s.submit(1, C=2)
    assert await s.claim() is None
    await store.limits.set("C", Slots(limit=2))
    assert await s.claim() == 1


async def test_more_than_one_entry_of_a_lot_returns(store: Store) -> None:
    s = await Schedule(store).begin(B=0)
    await s.submit(3, B=1)
    await s.submit(4, A=1, B=1)
    assert await s.claim() is None
    await store.limits.set("B", Slots(limit=2))
    assert [await s.claim(), await s.claim()] == [3, 4]


async def test_a_new_profile_claims_right_after_it_joined(store: Store) -> None:
    for n in range(5):
        await store.submit_one(new(f"kind{n}"))
    await store.workers.register("late", task_types=[f"kind{n}" for n in range(1, 5)])
    assert (await claim_one(store, "late")).task_type == "kind1"


async def test_a_marker_keeps_the_arrival_of_its_first(store: Store) -> None:
    s = await Schedule(store).begin(C=0)
    await s.submit(9, C=2)
    assert await s.claim() is None
    await store.limits.set("C", Slots(limit=2))
    await s.submit(10, C=2)
    await s.submit(12)
    assert await s.claim() == 9


async def test_a_lot_larger_than_the_freed_units_is_shown_when_the_room_is_enough(store: Store) -> None:
    s = await Schedule(store).begin()
    await s.submit(1, A=1, C=1)
    assert await s.claim() == 1
    await s.submit(2, C=2)
    assert await s.claim() is None
    await s.complete(1)
    assert await s.claim() == 2

"""Tiers, elastic runs and sessions in the store: the queue of a server with few back ends, rule by rule."""

import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Settings, Slots
from fairlead.settings.tiers import Tier
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, new, raw, reopened

FAST, MEDIUM, SLOW = 3_000, 10_000, 30_000


@pytest.fixture
def settings() -> Settings:
    tiers = {
        "fast": Tier(seconds=3, limit=4),
        "medium": Tier(seconds=10, limit=2),
        "slow": Tier(seconds=30, limit=1),
    }
    return Settings(tiers={**tiers})


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def run(store: Store, duration: str | None = None) -> Task:
    """Starts a task that nothing else waits before."""
    await store.submit_one(new(duration=duration))
    return await claim_one(store)


async def claims_nothing(store: Store) -> bool:
    return (await store.claim("w")).tasks == []


async def confirm(store: Store, task: Task) -> None:
    assert await store.shortened("w", Grant(task.task_id, task.fence)) == [None]


async def tier_of(store: Store, task: Task) -> str | None:
    return (await store.get(task.task_id)).tier


@contextlib.asynccontextmanager
async def full(store: Store, name: str) -> AsyncIterator[None]:
    """A limit whose only unit is held."""
    await store.limits.set(name, Slots(limit=1))
    lease = await store.limits.acquire(name)
    yield
    await store.limits.release(lease)


async def used(store: Store) -> dict[str, int]:
    return {limit.name.removeprefix("tier:"): limit.active for limit in await store.limits.all()}


async def test_a_task_of_a_tier_takes_a_unit_of_it_and_of_all_shorter_ones(store: Store) -> None:
    task = await run(store, "medium")
    assert await used(store) == {"fast": 1, "medium": 1, "slow": 0}
    assert (task.tier, task.bounded) == ("medium", True)
    assert (task.deadline or 0) - (task.started_at or 0) == MEDIUM
    await store.complete("w", Completed(task.task_id, task.fence))
    assert await used(store) == {"fast": 0, "medium": 0, "slow": 0}


async def test_a_shorter_timeout_than_the_tier_stays_an_ordinary_timeout(store: Store) -> None:
    await store.submit_one(new(duration="slow", timeout_seconds=5))
    task = await claim_one(store)
    assert (task.bounded, (task.deadline or 0) - (task.started_at or 0)) == (False, 5_000)


async def test_slow_tasks_wait_at_their_limit_and_hold_up_no_others(store: Store) -> None:
    await run(store, "slow")
    waiting = await store.submit_one(new(duration="slow"))
    assert waiting.blocked_by == ("tier:slow",)
    assert [(await run(store, duration)).duration for duration in ("medium", "fast")] == ["medium", "fast"]
    assert await claims_nothing(store)


async def test_an_elastic_task_gets_the_longest_tier_that_is_free(store: Store) -> None:
    assert [(await run(store)).tier for _ in range(4)] == ["slow", "medium", "fast", "fast"]
    assert await used(store) == {"fast": 4, "medium": 2, "slow": 1}


async def test_a_slow_task_shortens_an_elastic_one_to_medium(store: Store) -> None:
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    shortened = await store.get(elastic.task_id)
    assert (shortened.tier, shortened.bounded) == ("medium", True)
    assert (shortened.deadline or 0) - (shortened.started_at or 0) == MEDIUM
    assert [change.tier for change in shortened.tiers] == ["slow", "medium"]
    assert await claims_nothing(store), "the unit was given away before the worker knew"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id


async def test_a_slow_task_that_lacks_medium_too_shortens_it_to_fast(store: Store) -> None:
    elastic = await run(store)
    await run(store, "medium")
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "fast"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id
    assert await used(store) == {"fast": 3, "medium": 2, "slow": 1}


async def test_a_medium_task_shortens_an_elastic_one_to_fast(store: Store) -> None:
    await run(store, "slow")
    elastic = await run(store)
    assert elastic.tier == "medium"
    medium = await store.submit_one(new(duration="medium"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "fast"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == medium.task_id


async def test_the_youngest_is_shortened_and_nobody_in_vain(store: Store, clock: Clock) -> None:
    older = await run(store)
    younger = await run(store)
    assert (older.tier, younger.tier) == ("slow", "medium")
    await store.submit_one(new(duration="medium"))
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in (older, younger)] == ["slow", "fast"]


async def test_a_random_victim_is_any_of_those_that_can_be_shortened(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    tiers = {"fast": Tier(seconds=3, limit=5), "slow": Tier(seconds=30, limit=3)}
    victims = set[int]()
    for _ in range(8):
        store = open_store(clock=clock, settings=Settings(tiers={**tiers, "victim": "random"}))
        await store.open()
        await store.workers.register("w", capacity=10)
        runs = [await run(store) for _ in range(3)]
        await store.submit_one(new(duration="slow"))
        clock.pass_ms(1)
        assert await claims_nothing(store)
        victims |= {index for index, task in enumerate(runs) if await tier_of(store, task) == "fast"}
    assert victims == {0, 1, 2}


async def test_a_full_shortest_tier_shortens_nobody(store: Store) -> None:
    """It would help nobody: the slot stays taken."""
    elastic = [await run(store) for _ in range(4)]
    for duration in ("fast", "medium", "slow", None):
        await store.submit_one(new(duration=duration))
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in elastic] == ["slow", "medium", "fast", "fast"]


async def test_a_task_that_lacks_something_else_shortens_nobody(store: Store) -> None:
    async with full(store, "gpu"):
        elastic = await run(store)
        await store.submit_one(new(duration="slow", limits={"gpu": 1}))
        assert await claims_nothing(store)
        assert await tier_of(store, elastic) == "slow"


async def test_a_slot_is_kept_for_the_task_that_a_run_is_shortened_for(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=2)
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow", priority="high"))
    behind = await store.submit_one(new(duration="fast"))
    assert (await store.claim("w", 2, idle=True)).tasks == [], "the task behind would take the slot"
    assert not await examine(store.connection, now_ms=clock.now, twice=False)
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id
    await store.complete("w", Completed(elastic.task_id, elastic.fence))
    assert (await claim_one(store)).task_id == behind.task_id


async def test_one_run_is_shortened_for_one_waiting_task(store: Store) -> None:
    first, second = await run(store), await run(store)
    await store.submit(new(duration="medium"))
    assert await claims_nothing(store)
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in (first, second)] == ["slow", "fast"]
    await confirm(store, second)
    await confirm(store, second)  # repeated, because its answer was lost
    assert (await claim_one(store)).duration == "medium"


async def test_a_call_that_was_lost_is_repeated_with_a_later_heartbeat(store: Store, clock: Clock) -> None:
    elastic = await run(store)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    call = f"deadline:{elastic.task_id}:{elastic.fence}:"
    assert await store.workers.wait("w", 0.1) == f"{call}{MEDIUM}"
    for later, repeated in ((1, None), (2, f"{call}{MEDIUM - 3_000}")):
        clock.pass_seconds(later)
        await store.workers.heartbeat("w")
        assert await store.workers.wait("w", 0.1) == repeated
    await confirm(store, elastic)
    clock.pass_seconds(3)
    await store.workers.heartbeat("w")
    assert await store.workers.wait("w", 0.1) is None


async def test_what_was_shortened_never_becomes_longer_again(store: Store) -> None:
    elastic = await run(store)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    await confirm(store, elastic)
    slow = await claim_one(store)
    await store.complete("w", Completed(slow.task_id, slow.fence))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "medium"
    await store.extend("w", Grant(elastic.task_id, elastic.fence), 60_000)
    longest = await store.get(elastic.task_id)
    assert (longest.deadline or 0) - (longest.started_at or 0) == MEDIUM


async def test_units_that_nobody_confirms_are_free_when_the_lease_ends(store: Store, clock: Clock) -> None:
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    clock.pass_seconds(store.settings.lease_ms / 1000 + 2)
    await store.expire()
    assert (await store.get(elastic.task_id)).error is not None
    await store.workers.register("w", capacity=10)
    assert slow.task_id in {task.task_id for task in (await store.claim("w", 5)).tasks}


async def test_past_its_tier_a_run_fails_for_good(store: Store, clock: Clock) -> None:
    task = await run(store, "fast")
    clock.pass_seconds(60)
    await store.expire()
    ended = await store.get(task.task_id)
    assert ended.error is not None
    assert (ended.status, ended.error.code, ended.retry_count) == (State.FAILED, "DEADLINE", 0)


async def test_a_result_after_the_deadline_is_kept_as_truncated(store: Store) -> None:
    task = await run(store, "fast")
    await store.complete("w", Completed(task.task_id, task.fence, {"lines": 3}, truncated=True))
    ended = await store.get(task.task_id)
    assert (ended.status, ended.truncated, ended.result) == (State.COMPLETED, True, {"lines": 3})


async def test_a_cancelled_run_is_not_shortened(store: Store) -> None:
    elastic = await run(store)
    await store.cancel(elastic.task_id)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "slow"
    await store.release("w", Grant(elastic.task_id, elastic.fence))
    assert (await claim_one(store)).duration == "slow"


@pytest.mark.parametrize("duration", ["long", "Slow"])
async def test_an_unknown_tier_is_refused_with_those_there_are(store: Store, duration: str) -> None:
    with pytest.raises(errors.InvalidInput, match="fast, medium, slow, interactive"):
        await store.submit_one(new(duration=duration))


async def test_steps_of_services_have_no_tier(store: Store) -> None:
    await store.submit_one(new("service:paint"))
    task = await claim_one(store)
    assert (task.tier, task.limits, task.bounded) == (None, {}, False)


# Shares of the capacity


SHARES = {"fast": Tier(seconds=3), "medium": Tier(seconds=10, limit="50%"), "slow": Tier(seconds=30, limit=3)}


async def sizes(store: Store) -> list[int | None]:
    return [(await store.limits.get(f"tier:{name}")).limit for name in SHARES]


async def test_shares_follow_the_workers_that_come_leave_and_die(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(tiers={**SHARES}))
    await store.open()
    assert await sizes(store) == [1, 1, 1]
    await store.workers.register("a", capacity=4)
    assert await sizes(store) == [4, 2, 2], "a longer tier never has more than a shorter one"
    await store.workers.register("b", capacity=5)
    await store.workers.register("services", capacity=50, task_types=["service:paint"])
    assert await sizes(store) == [9, 4, 3]
    await store.workers.register("b", capacity=2)
    assert await sizes(store) == [6, 3, 3]
    await store.workers.drain("a")
    assert await sizes(store) == [2, 1, 1]
    clock.pass_seconds(store.settings.worker_ttl_ms / 1000 + 1)
    await store.upkeep.bury()
    assert await sizes(store) == [1, 1, 1]


async def test_a_task_starts_when_a_new_worker_makes_the_shares_larger(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(tiers={**SHARES}))
    await store.open()
    await store.workers.register("w", capacity=2)
    await run(store, "medium")
    waiting = await store.submit_one(new(duration="medium"))
    await store.claim("w", 1, idle=True)
    await store.workers.register("other", capacity=2)
    assert (await claim_one(store, "other")).task_id == waiting.task_id


async def test_tiers_that_are_no_longer_configured_end(
    store: Store, open_store: Callable[..., Store], settings: Settings
) -> None:
    slow = await run(store, "slow")
    await reopened(store, open_store, Settings(tiers={"short": Tier(seconds=1)}))
    await store.stats()
    later = await run(store)
    assert later.tier == "short"
    assert {limit.name for limit in await store.limits.all()} == {
        "tier:short",
        *(f"tier:{name}" for name in ("fast", "medium", "slow")),
    }
    await store.complete("w", Completed(slow.task_id, slow.fence))
    assert {limit.name for limit in await store.limits.all()} == {"tier:short"}


async def test_what_was_accepted_before_tiers_changed_is_run_without_them(
    store: Store, open_store: Callable[..., Store]
) -> None:
    dead = await run(store, "slow")
    await store.fail("w", Failed(dead.task_id, dead.fence, retriable=False))
    job = await store.jobs.submit(
        NewJob(feature_name="two", stages=[[NewStep("a", "echo")], [NewStep("b", "echo")]])
    )
    first = await claim_one(store)
    await reopened(store, open_store, Settings())
    await store.complete("w", Completed(first.task_id, first.fence))
    assert (await claim_one(store)).job_id == job.job_id
    await store.replay(dead.task_id)
    assert ((await claim_one(store)).limits, (await store.get(dead.task_id)).bounded) == ({}, False)


async def test_the_limit_of_a_tier_is_changed_by_the_settings_alone(store: Store) -> None:
    with pytest.raises(errors.InvalidInput, match="is the limit of a tier"):
        await store.limits.set("tier:slow", Slots(limit=9))
    with pytest.raises(errors.LimitInUse):
        await store.limits.delete("tier:slow")
    await store.limits.pause("tier:slow")
    assert (await run(store)).tier == "medium"


# Sessions


async def waits(store: Store, worker: str = "w") -> None:
    """It takes tasks that it is handed."""
    assert (await store.claim(worker, 1, idle=True, acknowledged=[])).tasks == []


async def session(store: Store, worker: str = "w", *capabilities: str) -> Task:
    await waits(store, worker)
    submitted = await store.submit_one(new(duration="interactive", required_capabilities=capabilities))
    assert submitted.status is State.EXECUTING
    (task,) = (await store.claim(worker, 1, acknowledged=[])).tasks
    return task


async def halted(store: Store, task: Task) -> bool:
    known = await store.get(task.task_id)
    return known.status is State.CANCELLED and known.error is not None and known.error.code == "HALTED"


async def test_an_interactive_task_starts_at_once(store: Store) -> None:
    task = await session(store)
    assert (task.interactive, task.tier, task.bounded) == (True, None, False)
    assert await used(store) == {"fast": 1, "medium": 0, "slow": 0}


async def test_it_is_refused_at_once_without_a_slot_and_shortens_an_elastic_run(store: Store) -> None:
    first, *_ = [await run(store) for _ in range(4)]
    for expected in ("medium", "medium", "medium"):
        with pytest.raises(errors.NoCapacity):
            await store.submit_one(new(duration="interactive"))
        assert await tier_of(store, first) == expected, "what was not confirmed is not shortened further"
    assert (await store.list_tasks(status="queued")).tasks == []
    await confirm(store, first)
    with pytest.raises(errors.NoCapacity):
        await store.submit_one(new(duration="interactive"))
    tiers = [task.tier for task in (await store.list_tasks(status="executing")).tasks]
    assert tiers == ["fast", "fast", "fast", "fast"]


async def test_it_is_refused_while_the_workers_that_serve_it_are_full_or_silent(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("own", capacity=1, capabilities=["gpu"])
    await waits(store, "own")
    wanted = new(duration="interactive", required_capabilities=("gpu",))
    await store.submit_one(wanted)
    with pytest.raises(errors.NoCapacity):
        await store.submit_one(new(duration="interactive", required_capabilities=("gpu",)))
    await store.cancel(wanted.task_id)
    await store.release("own", Grant(wanted.task_id))
    clock.pass_seconds(20)
    with pytest.raises(errors.NoCapacity):
        await store.submit_one(new(duration="interactive", required_capabilities=("gpu",)))


async def test_a_worker_that_takes_no_task_with_a_message_finds_it_with_its_next_claim(store: Store) -> None:
    assert (await store.claim("w", idle=True)).tasks == []
    submitted = await store.submit_one(new(duration="interactive"))
    assert await store.workers.wait("w", 0.1) == "room"
    assert (await claim_one(store)).task_id == submitted.task_id


async def test_a_session_is_halted_when_a_task_needs_its_slot(store: Store) -> None:
    first = await session(store)
    second = await session(store)
    for _ in range(2):
        await run(store, "fast")
    waiting = await store.submit_one(new(duration="fast"))
    assert await claims_nothing(store)
    assert await halted(store, first) and not await halted(store, second)
    assert await claims_nothing(store), "its unit was given away before its worker confirmed"
    await store.release("w", Grant(first.task_id, first.fence))
    assert (await claim_one(store)).task_id == waiting.task_id


async def test_the_session_that_was_idle_longest_is_halted(store: Store, clock: Clock) -> None:
    first, second = await session(store), await session(store)
    clock.pass_seconds(1)
    await store.send_frame(first.task_id, "draw")
    for duration in ("fast", "fast", "fast"):
        await store.submit_one(new(duration=duration))
    await store.claim("w", 3)
    assert await halted(store, second) and not await halted(store, first)


async def test_a_session_is_halted_for_a_task_that_lacks_only_a_worker(store: Store) -> None:
    await store.workers.register("single", capacity=1, capabilities=["gpu"])
    task = await session(store, "single", "gpu")
    await store.submit_one(new(duration="fast"))
    assert not await halted(store, task), "the other worker has a free slot for it"
    await claim_one(store)
    await store.submit_one(new(duration="fast", required_capabilities=("gpu",)))
    assert await halted(store, task)


async def test_a_session_of_high_priority_is_halted_for_a_task_of_a_lower_one(store: Store) -> None:
    await store.workers.register("single", capacity=1, capabilities=["gpu"])
    await waits(store, "single")
    wanted = new(duration="interactive", priority="high", required_capabilities=("gpu",))
    await store.submit_one(wanted)
    await store.submit_one(new(priority="low", required_capabilities=("gpu",)))
    assert await halted(store, await store.get(wanted.task_id))


async def test_no_session_is_halted_in_vain(store: Store) -> None:
    await store.workers.register("single", capacity=1, capabilities=["gpu"])
    task = await session(store, "single", "gpu")
    await store.submit_one(new(required_capabilities=("gpu", "big")))
    async with full(store, "gpu"):
        await store.submit_one(new(limits={"gpu": 1}, required_capabilities=("gpu",)))
        assert not await halted(store, task)


async def test_frames_are_kept_in_order_until_the_handler_has_them(store: Store) -> None:
    task = await session(store)
    grant = Grant(task.task_id, task.fence)
    assert [await store.send_frame(task.task_id, text) for text in "abc"] == [1, 2, 3]
    assert [frame.frame for frame in await store.take_frames("w", grant)] == ["a", "b", "c"]
    assert [frame.seq for frame in await store.take_frames("w", grant, after=1)] == [2, 3]
    assert await store.take_frames("w", grant, after=3) == []
    assert await store.send_frame(task.task_id, "d") == 4
    assert [(f.seq, f.frame) for f in await store.take_frames("w", grant, after=3)] == [(4, "d")]


async def test_a_client_that_sends_too_fast_is_held_up(store: Store) -> None:
    task = await session(store)
    for number in range(64):
        await store.send_frame(task.task_id, number)
    with pytest.raises(errors.FramesFull):
        await store.send_frame(task.task_id, 64)
    await store.take_frames("w", Grant(task.task_id, task.fence), after=10)
    assert await store.send_frame(task.task_id, 64) == 65


async def test_frames_are_for_the_holder_of_a_running_session(store: Store) -> None:
    task, other = await session(store), await run(store)
    with pytest.raises(errors.NotInteractive):
        await store.send_frame(other.task_id, 1)
    with pytest.raises(errors.Fenced):
        await store.take_frames("w", Grant(task.task_id, task.fence - 1))
    await store.send_frame(task.task_id, 1)
    await store.complete("w", Completed(task.task_id, task.fence))
    with pytest.raises(errors.AlreadyFinished):
        await store.send_frame(task.task_id, 2)
    assert not await raw(store).exists(store.connection.keys.key("frames", task.task_id))


async def test_a_session_is_never_queued(store: Store) -> None:
    given_back, lost = await session(store), await session(store)
    await store.release("w", Grant(given_back.task_id, given_back.fence))
    assert await halted(store, given_back)
    await store.expire("w")
    ended = await store.get(lost.task_id)
    assert ended.error is not None
    assert (ended.status, ended.error.code) == (State.FAILED, "worker_lost")
    with pytest.raises(errors.NotReplayable):
        await store.replay(lost.task_id)
    acts = [event["act"] for event in await events(store, lost.task_id)]
    assert acts == ["submit", "claim", "expire"]


async def test_a_slot_that_is_kept_is_hidden_from_what_nobody_idle_serves(store: Store, clock: Clock) -> None:
    for name in "x", "y":
        await store.workers.register(name, task_types=[name], capacity=10)
    await store.submit(new("x"))
    (elastic,) = (await store.claim("x")).tasks
    await store.submit(*(new(name, duration="fast") for name in "xxy"))
    (last,) = (await store.claim("y", 3)).tasks
    await store.claim("x", 3)  # the shortest tier is full
    await store.submit(new("y", duration="fast"), new("x", duration="slow"))
    assert (await store.claim("x", idle=True)).tasks == []
    await store.complete("y", Completed(last.task_id, last.fence))
    assert (await store.get(elastic.task_id)).tier == "medium", "shortened for the worker that waits"
    assert await examine(store.connection, clock.now) == []

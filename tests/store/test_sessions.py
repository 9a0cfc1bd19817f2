"""Interactive tasks in the store: they start at once or never, and are halted for waiting tasks."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Settings, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, new, raw
from tests.store.tiered import TIERS, claims_nothing, confirm, full, run, tier_of, used


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={**TIERS})


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


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


async def test_no_session_is_halted_when_a_worker_with_a_free_slot_registers(store: Store) -> None:
    await store.workers.register("single", capacity=1, capabilities=["gpu"])
    task = await session(store, "single", "gpu")
    await store.limits.set("db", Slots(limit=1))
    await store.limits.pause("db", True)
    await store.submit_one(new(limits={"db": 1}, required_capabilities=("gpu",)))
    await store.limits.pause("db", False)
    assert not await halted(store, task)
    await store.workers.register("another", capacity=1, capabilities=["gpu"])
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


async def test_a_session_ends_when_its_client_is_gone_for_good(store: Store, clock: Clock) -> None:
    """Its gateway was killed, so nobody cancels it when the client leaves."""
    kept, gone = await session(store), await session(store)
    for task in (kept, gone):
        await store.attach(task.task_id, "client", 1_000)
    clock.pass_seconds(20)
    for task in (kept, gone):
        await store.extend("w", Grant(task.task_id, task.fence), 60_000)
    await store.attach(kept.task_id, "client of another gateway", 1_000)
    clock.pass_seconds(10)
    await store.promote()
    assert (await store.get(gone.task_id)).status is State.EXECUTING, "a client may still come back"
    clock.pass_seconds(1)
    await store.promote()
    ended = await store.get(gone.task_id)
    assert (ended.status, ended.error and ended.error.code) == (State.CANCELLED, "CLIENT_GONE")
    assert (await store.get(kept.task_id)).status is State.EXECUTING
    await store.complete("w", Completed(kept.task_id, kept.fence))
    await store.release("w", Grant(gone.task_id, gone.fence))
    assert await used(store) == {"fast": 0, "medium": 0, "slow": 0}


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

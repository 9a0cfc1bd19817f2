"""What a claim returns besides its tasks: the time, whether to claim again, and who waits to be woken."""

import pytest

from fairlead.model.reports import Completed, Grant
from fairlead.model.states import State
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.connections import with_call
from tests.store.namespace import claim_one, key_names, new, raw, woken


async def is_idle(store: Store, worker: str = "w") -> bool:
    return await raw(store).hexists(store.connection.keys.key("worker", worker), "idle")  # type: ignore[no-any-return]


async def test_every_answer_has_the_time_of_the_store(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(new(), new(delay_seconds=7))
    clock.pass_ms(5)
    first = await store.claim("w", 9, request="r")
    assert (first.now, first.next_alarm) == (clock.now, clock.now - 5 + 7_000)
    clock.pass_ms(5)
    assert (await store.claim("w", 9, request="r")).now == clock.now
    assert (await store.claim("w")).now == clock.now
    await store.workers.drain("w")
    assert (await store.claim("w")).now == clock.now


async def test_a_worker_that_got_fewer_tasks_than_it_wanted_is_woken_for_more(live_store: Store) -> None:
    await live_store.workers.register("w", capacity=5)
    await live_store.submit(new(), new())
    assert len((await live_store.claim("w", 3, idle=True)).tasks) == 2
    await live_store.submit_one(new())
    assert await woken(live_store, "w") == {"w": 1}


async def test_a_worker_that_got_what_it_wanted_does_not_wait(store: Store) -> None:
    await store.workers.register("w", capacity=5)
    await store.submit(new(), new())
    assert len((await store.claim("w", 2, idle=True)).tasks) == 2
    assert not await is_idle(store)


async def test_a_worker_that_is_full_now_does_not_wait(store: Store) -> None:
    await store.workers.register("w", capacity=2)
    await store.submit(new(), new())
    assert len((await store.claim("w", 9, idle=True)).tasks) == 2
    assert not await is_idle(store)


async def test_a_worker_whose_open_room_is_used_up_waits_for_high_alone(store: Store) -> None:
    await store.workers.register("w", capacity=2, reserve=1)
    await store.submit(new(), new())
    assert len((await store.claim("w", 9, idle=True)).tasks) == 1
    await store.submit_one(new(priority="medium"))
    assert await woken(store, "w") == {"w": 0}
    await store.submit_one(new(priority="high"))
    assert await woken(store, "w") == {"w": 1}


@pytest.mark.parametrize("idle", [True, False])
async def test_a_report_with_a_claim_may_ask_to_be_woken(store: Store, idle: bool) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    task = await claim_one(store)
    _, claimed = await store.report("w", [Completed(task.task_id, task.fence)], claim=1, idle=idle)
    assert (claimed.tasks, await is_idle(store)) == ([], idle)


async def test_a_report_that_was_passed_over_by_its_claim_says_to_claim_again(store: Store) -> None:
    store.connection = with_call(store.connection, "(redis.call)")  # scripts: each is loaded by itself
    await store.workers.register("w")
    await store.submit(new(), new())
    task = await claim_one(store)
    _, claimed = await store.report("w", [Completed(task.task_id, task.fence)], claim=1)
    await raw(store).script_flush()
    assert (await store.claim("w")).tasks == []  # loads the claim, and the claim alone
    (task,) = claimed.tasks
    await store.submit_one(new())
    (state,), claimed = await store.report("w", [Completed(task.task_id, task.fence)], claim=1, idle=True)
    assert (state, claimed.tasks, claimed.again) == (State.COMPLETED, [], True)
    assert len((await store.claim("w", idle=True)).tasks) == 1


async def test_much_that_waits_is_looked_at_in_pieces_also_after_a_start(store: Store) -> None:
    await store.limits.set("one", Slots(limit=1))
    await store.workers.register("w", capacity=9)
    # open when they came, so they are queued where claims look; all but the first will be found blocked
    await store.submit(*[new(f"kind{i}", limits={"one": 1}) for i in range(150)])
    first = await store.claim("w", 2, idle=True)
    assert (len(first.tasks), first.again, await is_idle(store)) == (1, True, False)
    second = await store.claim("w", 2, idle=True)
    assert (second.tasks, second.again, await is_idle(store)) == ([], True, False)
    third = await store.claim("w", 2, idle=True)
    assert (third.tasks, third.again, await is_idle(store)) == ([], False, True)
    (task,) = first.tasks
    await store.release("w", Grant(task.task_id, task.fence))
    assert [name for name in await key_names(store) if name.startswith("idle")] == []

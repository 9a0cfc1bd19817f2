"""Each duty of the caretaker alone: what one round does, and that the next changes nothing."""

import pytest

from fairlead import errors
from fairlead.model.reports import Failed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from fairlead.upkeep.duties import BATCH, DUTIES
from tests.conftest import Clock
from tests.connections import with_call

#: How a script calls the server: the first sweep of a namespace fails in its second act.
FAILS_ONCE_SOME_ARE_NAMED = (
    "function(command, ...) "
    'if command == "HGETALL" and redis.call("HEXISTS", KEYS[1], "buried") == 1 then error("planted") end '
    "return redis.call(command, ...) end"
)


def new(**options: object) -> NewTask:
    return NewTask(task_type="echo", **options)  # type: ignore[arg-type]


async def test_leases_that_ran_out_are_ended_in_one_round_of_several_acts(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new() for _ in range(100)))
    tasks = (await store.claim("w", 100)).tasks
    assert await DUTIES["expired_leases"](store) == 0
    clock.pass_ms(store.settings.lease_ms + 1_001)
    assert await DUTIES["expired_leases"](store) == 100
    assert await DUTIES["expired_leases"](store) == 0
    assert (await store.get(tasks[0].task_id)).status is State.QUEUED


async def test_due_tasks_are_queued(store: Store, clock: Clock) -> None:
    later = new(delay_seconds=5)
    await store.submit_one(later)
    clock.pass_ms(4_999)
    assert await DUTIES["due"](store) == 0
    clock.pass_ms(1)
    assert await DUTIES["due"](store) == 1
    assert (await store.get(later.task_id)).status is State.QUEUED
    assert await DUTIES["due"](store) == 0


def lost_workers(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if line.startswith(("worker_lost ", "workers_lost "))]


async def test_a_worker_that_falls_silent_is_named_once_and_keeps_what_it_holds(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await store.workers.register("quick")
    await store.workers.register("slow", capacity=3)
    await store.submit(new(), new())
    held = (await store.claim("slow", 2)).tasks
    clock.pass_ms(store.settings.worker_ttl_ms)
    await store.workers.heartbeat("quick")
    assert await DUTIES["dead_workers"](store) == 0
    clock.pass_ms(1)
    assert await DUTIES["dead_workers"](store) == 1
    assert await DUTIES["dead_workers"](store) == 0
    (line,) = lost_workers(caplog)
    assert line.startswith("worker_lost worker=slow seen=") and line.endswith("running=2")
    assert {(await store.get(task.task_id)).status for task in held} == {State.EXECUTING}


async def test_the_tasks_of_a_lost_worker_are_counted_although_their_leases_ended_first(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await store.workers.register("w", capacity=3)
    await store.submit(new(), new())
    await store.claim("w", 2)
    clock.pass_ms(store.settings.lease_ms + 1_001)
    assert await DUTIES["expired_leases"](store) == 2
    assert await DUTIES["dead_workers"](store) == 1
    await store.workers.register("w", capacity=3)
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    assert await DUTIES["dead_workers"](store) == 1
    held, idle = lost_workers(caplog)
    assert held.endswith("running=2")
    assert idle.endswith("running=0"), "it returned, and then held nothing"


async def test_a_worker_that_returns_and_falls_silent_again_is_named_again(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    silence = store.settings.worker_ttl_ms + 1
    for _ in range(2):
        await store.workers.register("w")
        clock.pass_ms(silence)
        assert await DUTIES["dead_workers"](store) == 1
    # two at the same instant, and one at the edge of the time looked at
    await store.workers.register("a")
    await store.workers.register("b")
    clock.pass_ms(1)
    await store.workers.register("c")
    clock.pass_ms(silence - 1)
    assert await DUTIES["dead_workers"](store) == 2
    clock.pass_ms(1)
    assert await DUTIES["dead_workers"](store) == 1
    named = [line.split()[1] for line in lost_workers(caplog)]
    assert sorted(named) == ["worker=a", "worker=b", "worker=c", "worker=w", "worker=w"]


async def test_many_workers_that_fall_silent_together_leave_a_few_lines_and_their_count(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await store.workers.register("first", capacity=3)
    await store.submit(new(), new())
    await store.claim("first", 2)
    for n in range(2 * BATCH):  # more than two acts name
        if n % 3 == 0:
            clock.pass_ms(1)
        await store.workers.register(f"w{n}")
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    assert await DUTIES["dead_workers"](store) == 2 * BATCH + 1
    *named, total = lost_workers(caplog)
    assert [line.split()[0] for line in named] == ["worker_lost"] * 5
    assert total == f"workers_lost count={2 * BATCH + 1} named=5 running=2"
    assert await DUTIES["dead_workers"](store) == 0
    assert len(lost_workers(caplog)) == 6


@pytest.mark.parametrize("count", [5, 6])
async def test_a_handful_of_lost_workers_is_named_without_a_count(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    for n in range(count):
        await store.workers.register(f"w{n}")
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    await DUTIES["dead_workers"](store)
    counted = [line for line in lost_workers(caplog) if line.startswith("workers_lost ")]
    assert counted == (["workers_lost count=6 named=5 running=0"] if count == 6 else [])


async def test_workers_named_before_an_outage_of_the_store_are_logged(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(2 * BATCH):
        clock.pass_ms(1)
        await store.workers.register(f"w{n}")
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    healthy = store.connection
    store.connection = with_call(healthy, FAILS_ONCE_SOME_ARE_NAMED)
    with pytest.raises(errors.StoreFault):
        await DUTIES["dead_workers"](store)
    store.connection = healthy
    assert lost_workers(caplog)[-1] == f"workers_lost count={BATCH} named=5 running=0"


async def test_a_worker_that_left_is_not_lost(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.workers.leave("w")
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    assert await DUTIES["dead_workers"](store) == 0


async def test_dead_letters_are_forgotten_after_their_retention(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    (task,) = (await store.claim("w")).tasks
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    clock.pass_seconds(30 * 86_400 - 1)
    assert await DUTIES["dead_letters"](store) == 0
    assert [dead.task_id for dead in (await store.dead_letters.page()).tasks] == [task.task_id]
    clock.pass_seconds(1)
    assert await DUTIES["dead_letters"](store) == 1
    assert (await store.dead_letters.page()).tasks == []
    assert await DUTIES["dead_letters"](store) == 0


async def test_one_heartbeat_of_all_workers_must_name_the_dead_when_no_caretaker_does(
    store: Store, clock: Clock
) -> None:
    for n in range(3):
        await store.workers.register(f"w{n}")

    async def requests() -> list[bool]:
        return [(await store.workers.heartbeat(f"w{n}")).should_bury for n in range(3)]

    assert await requests() == [True, False, False]
    clock.pass_seconds(9)
    assert await requests() == [False, False, False]
    clock.pass_seconds(1)
    assert await requests() == [True, False, False]
    clock.pass_seconds(9)
    await DUTIES["dead_workers"](store)
    clock.pass_seconds(9)
    assert await requests() == [False, False, False], "a caretaker was there"

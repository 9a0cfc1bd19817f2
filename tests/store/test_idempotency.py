"""A request that is sent twice takes effect once, and is answered the second time like the first."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted, Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, everything


def echo(key: str | None = None, **options: Any) -> NewTask:
    return NewTask(task_type="echo", idempotency_key=key, **options)


async def depth(store: Store) -> int:
    return sum(queue.depth for queue in (await store.stats()).queues.values())


@pytest.fixture
async def running(store: Store) -> Task:
    """A task with a unit of a limit in the hands of a worker."""
    await store.limits.set("gpu", Slots(limit=2))
    await store.workers.register("w", capacity=5)
    await store.submit_one(echo(limits={"gpu": 1}, max_retries=3))
    return await claim_one(store)


# Submitting


async def test_the_same_task_under_the_same_key_is_the_first_one(store: Store) -> None:
    first = await store.submit_one(echo("k", parameters={"a": 1}))
    before = await everything(store)
    again = await store.submit_one(echo("k", parameters={"a": 1}))
    assert (again, await everything(store)) == (replace(first, repeated=True, queue_position=None), before)


async def test_a_repeated_submit_returns_the_current_state_of_the_task(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(echo("k"))
    await claim_one(store)
    assert (await store.submit_one(echo("k"))).status is State.EXECUTING


@pytest.mark.parametrize(
    "other",
    [{"parameters": {"a": 2}}, {"priority": "high"}, {"user_id": "ann"}, {"delay_seconds": 5}],
    ids=str,
)
async def test_another_task_under_the_same_key_is_a_conflict(store: Store, other: dict[str, Any]) -> None:
    await store.submit_one(echo("k", parameters={"a": 1}))
    before = await everything(store)
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(echo("k", **{"parameters": {"a": 1}, **other}))
    assert await everything(store) == before


async def test_each_tenant_has_its_own_keys(store: Store) -> None:
    tasks = [echo("k"), echo("k", tenant="a"), echo("k", tenant="b"), echo("b:k", tenant="a")]
    tasks.append(echo("k", tenant="a:b"))
    answers = await store.submit(*tasks)
    assert [a.task_id for a in answers if isinstance(a, Submitted)] == [task.task_id for task in tasks]


async def test_a_key_twice_in_one_batch_makes_one_task(store: Store) -> None:
    one, two, three = await store.submit(echo("k"), echo("k"), echo("k", priority="low"))
    assert isinstance(one, Submitted)
    assert two == replace(one, repeated=True, queue_position=None)
    assert isinstance(three, errors.IdempotencyConflict)
    assert await depth(store) == 1


async def test_a_refused_task_does_not_use_up_its_key(store: Store) -> None:
    with pytest.raises(errors.InvalidInput):
        await store.submit_one(echo("k", limits={"nope": 1}))
    assert not (await store.submit_one(echo("k"))).repeated


async def test_many_clients_with_one_key_at_the_same_time_make_one_task(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    await store.submit_one(echo())  # loads the script
    namespace = store.connection.keys.namespace
    clients = [open_store(namespace=namespace, clock=clock) for _ in range(40)]

    async def insist(client: Store) -> list[Submitted]:
        return [await client.submit_one(echo("k")) for _ in range(5)]

    answers = [answer for row in await asyncio.gather(*map(insist, clients)) for answer in row]
    await asyncio.gather(*[client.close() for client in clients])
    assert len({answer.task_id for answer in answers}) == 1
    assert sum(not answer.repeated for answer in answers) == 1
    assert await depth(store) == 2


async def test_the_same_id_again_is_the_same_task(store: Store) -> None:
    task = echo(parameters={"a": 1})
    first = await store.submit_one(task)
    before = await everything(store)
    assert await store.submit(task, task) == [replace(first, repeated=True, queue_position=None)] * 2
    assert await everything(store) == before


async def test_the_same_id_with_other_content_is_a_conflict(store: Store) -> None:
    task = echo(parameters={"a": 1})
    await store.submit_one(task)
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(msgspec.structs.replace(task, parameters={"a": 2}))
    assert (await store.get(task.task_id)).parameters == {"a": 1}


# Claiming


async def test_a_repeated_claim_gives_the_same_tasks_and_no_second_lease(store: Store) -> None:
    await store.workers.register("w", capacity=5)
    await store.submit(*[echo() for _ in range(4)])
    first = await store.claim("w", 2, request="r1")
    before = await everything(store)
    again = await store.claim("w", 2, request="r1")
    assert (len(first.tasks), again.tasks) == (2, first.tasks)
    assert await everything(store) == before


async def test_a_repeated_claim_leaves_out_what_was_reported_since(store: Store) -> None:
    await store.workers.register("w", capacity=5)
    await store.submit(echo(), echo())
    one, two = (await store.claim("w", 2, request="r1")).tasks
    await store.complete("w", Completed(one.task_id, one.fence))
    assert (await store.claim("w", 2, request="r1")).tasks == [two]


async def test_a_claim_that_found_nothing_finds_nothing_when_repeated(store: Store) -> None:
    await store.workers.register("w")
    await store.claim("w", request="r1")
    await store.submit_one(echo())
    assert (await store.claim("w", request="r1")).tasks == []
    assert len((await store.claim("w", request="r2")).tasks) == 1


async def test_a_repeated_claim_returns_its_tasks_even_to_a_worker_that_drains_since(store: Store) -> None:
    await store.workers.register("w", capacity=5)
    await store.submit_one(echo())
    first = await store.claim("w", request="r1")
    await store.workers.drain("w")
    assert (await store.claim("w", request="r1")).tasks == first.tasks


# Reporting


Report = Callable[[Store, Task], Awaitable[object]]

REPORTS: dict[str, Report] = {
    "complete": lambda store, t: store.complete("w", Completed(t.task_id, t.fence, {"n": 1})),
    "fail": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, jitter=0)),
    "fail for good": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, retriable=False)),
    "release": lambda store, t: store.release("w", Grant(t.task_id, t.fence)),
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
async def test_a_repeated_report_has_the_same_answer_and_happens_once(
    store: Store, running: Task, report: Report
) -> None:
    first = await report(store, running)
    before = await everything(store)
    assert (await report(store, running), await everything(store)) == (first, before)


async def test_a_repeated_cancel_names_the_worker_that_must_stop_again(store: Store, running: Task) -> None:
    assert await store.cancel(running.task_id) == "w"
    before = await everything(store)
    assert (await store.cancel(running.task_id), await everything(store)) == ("w", before)


async def test_a_repeated_cancel_of_a_waiting_task_has_the_same_answer(store: Store) -> None:
    submitted = await store.submit_one(echo())
    assert await store.cancel(submitted.task_id) is None
    before = await everything(store)
    assert await store.cancel(submitted.task_id) is None
    assert await everything(store) == before


async def test_a_late_repeat_of_a_failure_does_not_touch_the_next_try(
    store: Store, running: Task, clock: Clock
) -> None:
    report = Failed(running.task_id, running.fence, jitter=0)
    await store.fail("w", report)
    clock.pass_seconds(1)
    again = await claim_one(store)
    before = await everything(store)
    await store.fail("w", report)
    assert (again.task_id, await everything(store)) == (running.task_id, before)


@pytest.mark.parametrize("first", ["fail", "release"])
async def test_a_result_after_another_report_of_the_same_run_is_refused(
    store: Store, running: Task, first: str
) -> None:
    await REPORTS[first](store, running)
    before = await everything(store)
    (answer,) = await store.complete("w", Completed(running.task_id, running.fence))
    assert isinstance(answer, errors.Fenced)
    assert await everything(store) == before


async def test_a_report_twice_in_one_batch_happens_once(store: Store, running: Task) -> None:
    report = Completed(running.task_id, running.fence, {"n": 1})
    assert await store.complete("w", report, report) == [State.COMPLETED, State.COMPLETED]
    assert len(await events(store, running.task_id)) == 3


async def test_a_repeated_acquire_is_the_same_lease(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=3))
    first = await store.limits.acquire("gpu", units=2, lease_id="l1")
    before = await everything(store)
    assert await store.limits.acquire("gpu", units=2, lease_id="l1") == first
    assert await everything(store) == before


async def test_a_lease_of_one_limit_is_not_returned_for_another(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.limits.set("cpu", Slots(limit=1))
    await store.limits.acquire("gpu", lease_id="l1")
    with pytest.raises(errors.FairleadError):
        await store.limits.acquire("cpu", lease_id="l1")
    assert (await store.limits.get("cpu")).active == 0


async def test_a_lease_is_released_once(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=3))
    lease = await store.limits.acquire("gpu", units=2)
    await store.limits.release(lease)
    before = await everything(store)
    with pytest.raises(errors.Fenced):
        await store.limits.release(lease)
    assert await everything(store) == before


async def test_registering_again_keeps_what_the_worker_runs(store: Store, running: Task) -> None:
    await store.workers.register("w", capacity=5)
    assert (await store.workers.heartbeat("w")).leases.keys() == {running.task_id}

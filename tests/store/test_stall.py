"""A worker that is alive and does not answer is not woken, and tasks that it has not begun are returned."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Grant
from fairlead.model.states import State
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, handed, status, waits
from tests.store.namespace import claim_one, events, everything, new, woken


async def test_it_is_not_handed_a_task_any_more(store: Store, clock: Clock) -> None:
    await waits(store, "silent")
    clock.pass_ms(1)
    await waits(store, "other")
    assert await store.workers.stall("silent", "1", []) == []
    task = new()
    await store.submit_one(task)
    assert (await handed(store, "other")).task.task_id == task.task_id
    assert await woken(store, "silent") == {"silent": 0}


async def test_it_is_not_called_for_a_task(store: Store) -> None:
    await waits(store, "silent")
    await store.workers.stall("silent", "1", [])
    task = new()
    await store.submit_one(task)
    assert (await woken(store, "silent"), await status(store, task)) == ({"silent": 0}, State.QUEUED)


async def test_when_it_claims_again_it_waits_again(store: Store) -> None:
    await waits(store, "w")
    await store.workers.stall("w", "1", [])
    assert (await store.claim("w", idle=True, acknowledged=())).tasks == []
    task = new()
    await store.submit_one(task)
    assert (await handed(store)).task.task_id == task.task_id


async def test_a_handed_task_that_it_has_not_begun_starts_elsewhere_uncharged(
    store: Store, clock: Clock
) -> None:
    await waits(store, "silent")
    task = new()
    await store.submit_one(task)
    call = await handed(store, "silent")
    clock.pass_ms(1)
    await waits(store, "other")
    assert await store.workers.stall("silent", "1", []) == [Grant(task.task_id, call.task.fence)]
    await called(store, "other")
    again = await claim_one(store, "other")
    assert (again.task_id, again.attempt) == (task.task_id, 1)
    assert (again.retry_count, again.crash_count, again.loss_count) == (0, 0, 0)
    assert again.fence > call.task.fence
    acts = [event["act"] for event in await events(store, task.task_id)]
    assert acts == ["submit", "claim", "release", "claim"]


async def test_the_worker_that_wakes_up_cannot_report_a_returned_task(store: Store) -> None:
    await waits(store, "silent")
    task = new()
    await store.submit_one(task)
    fence = (await handed(store, "silent")).task.fence
    await store.workers.stall("silent", "1", [])
    await store.workers.register("other")
    held = await claim_one(store, "other")
    (answer,) = await store.complete("silent", Completed(task.task_id, fence, "late"))
    assert isinstance(answer, errors.Fenced)
    assert (await store.get(task.task_id)).assigned_worker_id == "other"
    (answer,) = await store.complete("other", Completed(held.task_id, held.fence, "right"))
    assert answer is State.COMPLETED
    assert (await store.get(task.task_id)).result == "right"


async def test_begun_tasks_stay_with_it(store: Store) -> None:
    await store.workers.register("w", capacity=2)
    await store.submit(new(), new())
    first, second = (await store.claim("w", 2)).tasks
    assert await store.workers.stall("w", "1", [first.fence]) == [Grant(second.task_id, second.fence)]
    assert [(await store.get(one.task_id)).status for one in (first, second)] == ["executing", "queued"]
    assert await store.complete("w", Completed(first.task_id, first.fence)) == [State.COMPLETED]


async def test_a_returned_task_has_its_old_place(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=3)
    tasks = [new(user_id=user) for user in ("ann", "ann", "bob", "ann", "bob")]
    for task in tasks:
        await store.submit_one(task)
        clock.pass_ms(1)
    order = [(await store.explain(task.task_id)).queue_position for task in tasks]
    began = (await store.claim("w", 3)).tasks
    assert len(await store.workers.stall("w", "1", [])) == 3
    assert [(await store.explain(task.task_id)).queue_position for task in tasks] == order
    again = (await store.claim("w", 3)).tasks
    assert [task.task_id for task in again] == [task.task_id for task in began]


async def test_its_units_are_free_for_others(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("silent")
    await store.submit_one(new(limits={"gpu": 1}))
    await claim_one(store, "silent")
    await waits(store, "other")
    waiting = new(limits={"gpu": 1}, priority="high")
    await store.submit_one(waiting)
    await store.workers.stall("silent", "1", [])
    await called(store, "other")
    assert (await claim_one(store, "other")).task_id == waiting.task_id


async def test_a_call_that_it_will_not_answer_is_passed_on(store: Store, clock: Clock) -> None:
    await store.workers.register("busy")
    await store.submit_one(new())
    held = await claim_one(store, "busy")
    await waits(store, "silent")
    clock.pass_ms(1)
    await waits(store, "other")
    await store.release("busy", Grant(held.task_id, held.fence))
    assert await woken(store, "silent", "other") == {"silent": 1, "other": 0}
    await store.workers.stall("silent", "1", [])
    await called(store, "other")


async def test_a_cancelled_task_that_it_has_not_begun_frees_its_units(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w")
    await store.submit_one(new(limits={"gpu": 1}))
    task = await claim_one(store)
    await store.cancel(task.task_id)
    assert (await store.limits.get("gpu")).active == 1
    assert await store.workers.stall("w", "1", []) == [Grant(task.task_id, task.fence)]
    assert (await store.limits.get("gpu")).active == 0
    assert (await store.get(task.task_id)).status is State.CANCELLED


async def test_the_same_request_again_is_answered_like_the_first(store: Store) -> None:
    await store.workers.register("w", capacity=300)
    await store.submit(*(new() for _ in range(300)))
    held = [task for _ in range(3) for task in (await store.claim("w", 300)).tasks]
    assert len(held) == 300, "more than one act looks at"
    first = await store.workers.stall("w", "1", [])
    assert {grant.id for grant in first} == {task.task_id for task in held}
    assert await store.workers.stall("w", "1", []) == first
    before = await everything(store)
    assert await store.workers.stall("w", "2", []) == []
    after = await everything(store)
    assert before.pop("worker:w") != after.pop("worker:w")
    assert before == after


async def test_a_draining_worker_returns_tasks_that_it_has_not_begun(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    task = await claim_one(store)
    await store.workers.drain("w")
    assert await store.workers.stall("w", "1", []) == [Grant(task.task_id, task.fence)]
    assert (await store.stats()).workers[0].state == "draining"


async def test_an_unknown_worker_is_refused(store: Store) -> None:
    with pytest.raises(errors.UnknownWorker):
        await store.workers.stall("nobody", "1", [])


async def test_the_tasks_of_others_stay(store: Store) -> None:
    await store.workers.register("w")
    await store.workers.register("other")
    await store.submit_one(new())
    task = await claim_one(store, "other")
    assert await store.workers.stall("w", "1", []) == []
    assert await store.get(task.task_id) == task

"""A fence is never given twice, and it speaks for its worker alone."""

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new, wipe
from tests.waiting import wait_until

ANYBODY = ""

REPORTS: dict[str, Callable[[Store, str, Task], Awaitable[Any]]] = {
    "complete": lambda store, worker, t: store.complete(worker, Completed(t.task_id, t.fence, 1)),
    "fail": lambda store, worker, t: store.fail(worker, Failed(t.task_id, t.fence)),
    "crash": lambda store, worker, t: store.fail(worker, Failed(t.task_id, t.fence, crashed=True)),
    "release": lambda store, worker, t: store.release(worker, Grant(t.task_id, t.fence)),
    "extend": lambda store, worker, t: store.extend(worker, Grant(t.task_id, t.fence), 10**7),
    "progress": lambda store, worker, t: store.progress(worker, Progress(t.task_id, t.fence, 0.5)),
}


@pytest.fixture
async def running(store: Store) -> Task:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w")
    await store.workers.register("other")
    await store.submit_one(new(limits={"gpu": 1}))
    return await claim_one(store, "w")


async def answer_to(store: Store, report: str, worker: str, task: Task) -> Any:
    try:
        answer = await REPORTS[report](store, worker, task)
    except errors.FairleadError as problem:
        return problem
    return answer[0] if isinstance(answer, list) else answer


@pytest.mark.parametrize("report", REPORTS)
async def test_a_report_under_another_name_is_refused_and_changes_nothing(
    store: Store, running: Task, report: str
) -> None:
    before = await everything(store)
    assert isinstance(await answer_to(store, report, "other", running), errors.Fenced)
    assert await everything(store) == before


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("worker", ["w", ANYBODY])
async def test_its_holder_or_an_anonymous_caller_may_report(
    store: Store, running: Task, report: str, worker: str
) -> None:
    assert not isinstance(await answer_to(store, report, worker, running), errors.FairleadError)


@pytest.mark.parametrize("report", ["complete", "fail", "release"])
async def test_only_its_holder_confirms_that_a_cancelled_task_has_stopped(
    store: Store, running: Task, report: str
) -> None:
    await store.cancel(running.task_id)
    assert isinstance(await answer_to(store, report, "other", running), errors.Fenced)
    assert (await store.limits.get("gpu")).active == 1
    assert isinstance(await answer_to(store, report, "w", running), errors.Fenced)
    assert (await store.limits.get("gpu")).active == 0


async def test_a_repeated_report_is_recognised_although_another_worker_has_the_task_now(
    store: Store, running: Task
) -> None:
    await store.release("w", Grant(running.task_id, running.fence))
    await claim_one(store, "other")
    assert await store.release("w", Grant(running.task_id, running.fence)) == [State.EXECUTING]


async def test_a_fence_is_no_less_than_the_time_and_larger_than_all_before(
    store: Store, running: Task, clock: Clock
) -> None:
    assert running.fence == clock.now * 1000
    await store.limits.set("gpu", Slots(limit=3))
    lease = await store.limits.acquire("gpu")
    assert lease.fence == running.fence + 1
    clock.pass_ms(1)
    await store.cancel(running.task_id)
    assert (await store.get(running.task_id)).fence == running.fence + 1000
    clock.pass_seconds(-600)
    assert (await store.limits.acquire("gpu")).fence == running.fence + 1001


async def test_a_store_that_lost_all_its_data_gives_no_fence_again(live_store: Store) -> None:
    fences = []
    for _ in range(2):
        await live_store.workers.register("w")
        await live_store.submit_one(new())
        fences.append((await claim_one(live_store)).fence)
        await wipe(live_store)
        await live_store.open()
    assert fences[0] < fences[1]


async def test_fences_follow_the_clock_after_a_loss_too(live_store: Store) -> None:
    """Otherwise two replicas that take over one after the other would both count on from the same number."""
    await live_store.limits.set("gpu", Slots(limit=2))
    before = await live_store.limits.acquire("gpu")
    await live_store.epochs.seal()
    await live_store.epochs.accept("restored", 0)
    await live_store.open()
    first = await live_store.limits.acquire("gpu")
    assert first.fence > before.fence + 50_000_000
    await live_store.limits.release(first)
    given = monotonic()
    await wait_until(lambda: monotonic() > given + 0.01)
    assert (await live_store.limits.acquire("gpu")).fence > first.fence + 10_000

"""What a worker does with a task that comes with a call: it runs it once, or gives it back."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any

import pytest

from fairlead import Context, Fairlead
from fairlead.app.function import TaskFunction
from fairlead.app.handle import TaskHandle
from fairlead.model.reports import Handed
from fairlead.model.states import State
from fairlead.store.store import Store
from fairlead.worker.worker import Worker
from tests.reading import events_of
from tests.store.namespace import raw, wipe
from tests.waiting import wait_until

Call = str | Handed | None


class Calls:
    """A proxy between the store's calls and a worker: it passes them on, or keeps them back for the test."""

    def __init__(self, fl: Fairlead, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handed: list[Handed] = []
        self.kept_back = False  # from the first task on: then the worker receives only the calls of the test
        self._by_hand: asyncio.Queue[Call] = asyncio.Queue()
        self._sent = self._given = self._dealt_with = 0
        self._wait = fl.store.workers.wait
        monkeypatch.setattr(fl.store.workers, "wait", self.wait)

    async def wait(self, worker: str, seconds: float) -> Call:
        self._dealt_with = self._given
        if not (self.kept_back and self.handed):
            call = await self._wait(worker, seconds)
            if isinstance(call, Handed):
                self.handed.append(call)
            if not (self.kept_back and self.handed):
                return call
        call = await self._by_hand.get()
        self._given += 1
        return call

    def say(self, call: Call) -> None:
        self._sent += 1
        self._by_hand.put_nowait(call)

    async def say_and_wait(self, call: Call) -> None:
        """Until the worker has dealt with it, and waits again."""
        self.say(call)
        await wait_until(lambda: self._dealt_with == self._sent, because="it waits for the next call")


class Runs:
    """Tasks that run while the gate is closed; the fences of those that began."""

    def __init__(self, fl: Fairlead) -> None:
        self.fences: list[int] = []
        self.gate = asyncio.Event()

        @fl.task
        async def gated(ctx: Context) -> int:
            self.fences.append(ctx.fence)
            await self.gate.wait()
            return ctx.fence

        self.task: TaskFunction[..., ..., Any, Any] = gated

    async def submit(self, store: Store, worker: Worker) -> TaskHandle[Any]:
        """To a worker that waits and has announced it."""
        key = store.connection.keys.key("worker", worker.id)

        async def waits() -> bool:
            return all(await raw(store).hmget(key, "idle", "takes"))

        await wait_until(waits)
        return await self.task.submit()


@pytest.fixture
def runs(fl: Fairlead) -> Runs:
    return Runs(fl)


@pytest.fixture
async def calls(fl: Fairlead, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Calls]:
    async with fl:
        yield Calls(fl, monkeypatch)


async def unread(calls: Calls) -> Handed:
    """The first call that brought a task; the worker has not received it."""
    assert calls.kept_back
    await wait_until(lambda: calls.handed, because="a task was handed over")
    return calls.handed[0]


async def acts(store: Store, task: TaskHandle[Any]) -> list[str]:
    return [event["act"] for event in await events_of(store) if event["task"] == task.task_id]


RAN_ONCE = ["submit", "claim", "complete"]


async def test_a_task_that_comes_with_the_call_is_run(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    runs.gate.set()
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        fence = await task.result(timeout=30)
    (call,) = calls.handed
    came = call.task
    assert (came.task_id, came.fence, came.assigned_worker_id) == (task.task_id, fence, worker.id)
    assert runs.fences == [fence]
    assert await acts(live_store, task) == RAN_ONCE


async def test_its_next_claim_acknowledges_it(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    report = fl.store.report

    async def noted(*things: Any, claim: int, acknowledged: Iterable[int], **options: Any) -> Any:
        if claim:
            seen.extend(acknowledged)
        return await report(*things, claim=claim, acknowledged=acknowledged, **options)

    monkeypatch.setattr(fl.store, "report", noted)
    runs.gate.set()
    fences = []
    async with fl.worker(capacity=1) as worker:  # one trip at a time: two may both acknowledge it
        for _ in range(3):
            task = await runs.submit(live_store, worker)
            fences.append(await task.result(timeout=30))
    assert [call.task.fence for call in calls.handed] == seen == fences


# Calls that are lost, or come twice


async def test_a_call_that_is_lost_is_made_up_for_by_the_next_claim(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    calls.kept_back = True
    runs.gate.set()
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        lost = await unread(calls)
        assert runs.fences == []
        calls.say(None)
        assert await task.result(timeout=30) == lost.task.fence
    assert runs.fences == [lost.task.fence]
    assert await acts(live_store, task) == RAN_ONCE


@pytest.mark.parametrize("ended", [False, True])
async def test_a_call_that_comes_twice_is_run_once(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs, ended: bool
) -> None:
    calls.kept_back = True
    async with fl.worker(capacity=2) as worker:
        first = await runs.submit(live_store, worker)
        call = await unread(calls)
        await calls.say_and_wait(call)
        if ended:
            runs.gate.set()
            await first.result(timeout=30)
        await calls.say_and_wait(call)
        runs.gate.set()
        second = await runs.submit(live_store, worker)
        calls.say(None)
        fences = [await task.result(timeout=30) for task in (first, second)]
    assert runs.fences == fences
    assert [await acts(live_store, task) for task in (first, second)] == [RAN_ONCE, RAN_ONCE]


async def test_a_call_that_comes_after_the_claim_that_made_up_for_it_is_not_run_again(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    calls.kept_back = True
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        late = await unread(calls)
        await calls.say_and_wait(None)
        await wait_until(lambda: runs.fences)
        await calls.say_and_wait(late)
        runs.gate.set()
        await task.result(timeout=30)
    assert runs.fences == [late.task.fence]
    assert await acts(live_store, task) == RAN_ONCE


# Calls that lay unread for long


async def test_a_task_in_a_call_unread_for_a_lease_is_returned_and_run_again(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    calls.kept_back = True
    runs.gate.set()
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        call = await unread(calls)
        calls.say(replace(call, now=call.now - fl.store.settings.lease_ms))
        fence = await task.result(timeout=30)
    assert runs.fences == [fence]
    assert fence > call.task.fence
    assert f"came_late worker={worker.id} task={task.task_id} fence={call.task.fence}" in caplog.text
    assert await acts(live_store, task) == ["submit", "claim", "release", "claim", "complete"]


async def test_a_running_task_is_not_returned_by_an_old_unread_call(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    """A claim made up for the call, and its lease was prolonged since."""
    calls.kept_back = True
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        call = await unread(calls)
        await calls.say_and_wait(None)
        await wait_until(lambda: runs.fences)
        await calls.say_and_wait(replace(call, now=call.now - fl.store.settings.lease_ms))
        runs.gate.set()
        await task.result(timeout=30)
    assert runs.fences == [call.task.fence]
    assert await acts(live_store, task) == RAN_ONCE


# A worker that leaves


async def is_as_if_never_claimed(store: Store, task: TaskHandle[Any]) -> None:
    left = await task.get()
    assert (left.status, left.crash_count, left.retry_count) == (State.QUEUED, 0, 0)
    assert await acts(store, task) == ["submit", "claim", "release"]
    assert (await store.stats()).workers == [], "it has left"


async def test_a_worker_that_leaves_with_a_task_it_never_read_gives_it_back(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    calls.kept_back = True
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        await unread(calls)
    await is_as_if_never_claimed(live_store, task)
    assert runs.fences == []


@pytest.mark.parametrize("reads_first", [True, False])
async def test_a_worker_that_reads_it_as_it_leaves_returns_it(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs, reads_first: bool
) -> None:
    calls.kept_back = True
    async with fl.worker() as worker:
        task = await runs.submit(live_store, worker)
        call = await unread(calls)
        if reads_first:
            calls.say(call)
        worker.drain()
        if not reads_first:
            # in the same round of the loop: nobody claims or reports any more when it is read
            calls.say(call)
    await is_as_if_never_claimed(live_store, task)
    assert runs.fences == []


async def test_a_worker_outlives_the_loss_of_all_data_after_which_no_fence_comes_again(
    fl: Fairlead, live_store: Store, calls: Calls, runs: Runs
) -> None:
    runs.gate.set()
    async with fl.worker() as worker:
        before = await (await runs.submit(live_store, worker)).result(timeout=30)
        await wipe(live_store)
        await live_store.epochs.accept("new", 0)  # no handler runs: no lease has to be waited for
        await live_store.open()
        after = await (await runs.submit(live_store, worker)).result(timeout=20)
    assert runs.fences == [before, after]
    assert before < after

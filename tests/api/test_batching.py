"""Tasks of many requests go to the store together, and each gets its own answer."""

import asyncio

import pytest

from fairlead import errors
from fairlead.api.batching import MOST_AT_ONCE, SubmitBatcher
from fairlead.model.task import NewTask, Submitted
from fairlead.store.store import Store
from tests.store.namespace import new, raw
from tests.waiting import wait_until


class Gated(Store):
    """Holds its answers back until the gate is open; it knows how many tasks came with each call."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.connection, store.settings)
        self.gate = asyncio.Event()
        self.sizes: list[int] = []
        self.held = 0
        self.is_down = False

    async def submit(self, *tasks: NewTask) -> list[Submitted | errors.FairleadError]:
        self.sizes.append(len(tasks))
        answers = await super().submit(*tasks)
        self.held += 1
        await self.gate.wait()
        if self.is_down:
            raise errors.StoreUnavailable()
        return answers


async def settle() -> None:
    """Everything that can happen without an answer of the store has happened."""
    for _ in range(10):
        await asyncio.sleep(0)


async def calls(store: Store) -> int:
    stats = await raw(store).info("commandstats")
    return sum(
        stats[name]["calls"] for name in ("cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval") if name in stats
    )


async def test_a_crowd_goes_in_a_few_calls_and_everybody_gets_his_own_answer(live_store: Store) -> None:
    tasks = [new(f"kind{n}") for n in range(350)]
    await live_store.submit_one(new())
    await raw(live_store).config_resetstat()
    async with SubmitBatcher(live_store) as batcher:
        answers = await asyncio.gather(*map(batcher.submit, tasks))
    assert [answer.task_id for answer in answers] == [task.task_id for task in tasks]
    assert await calls(live_store) == -(-350 // MOST_AT_ONCE)
    for task in (tasks[0], tasks[-1]):
        assert (await live_store.get(task.task_id)).task_type == task.task_type


async def test_one_that_is_refused_does_not_spoil_the_others(live_store: Store) -> None:
    tasks = [new(), new("a b"), new(limits={"nope": 1}), new()]
    async with SubmitBatcher(live_store) as batcher:
        answers = await asyncio.gather(*map(batcher.submit, tasks), return_exceptions=True)
    refused = [answer.field for answer in answers if isinstance(answer, errors.InvalidInput)]
    assert refused == ["task_type", "limits.nope"]
    assert len((await live_store.list_tasks()).tasks) == 2


async def test_a_client_that_leaves_does_not_affect_the_answers_of_others(live_store: Store) -> None:
    async with SubmitBatcher(live_store) as batcher:
        tasks = [new() for _ in range(3)]
        first, *others = [asyncio.create_task(batcher.submit(task)) for task in tasks]
        await asyncio.sleep(0)
        first.cancel()
        answers = await asyncio.gather(*others)
        assert [answer.task_id for answer in answers] == [task.task_id for task in tasks[1:]]
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_when_the_store_is_down_all_submits_fail_and_the_next_one_tries_again() -> None:
    batcher = SubmitBatcher(Store.connect("unix:///nowhere"))
    for _ in range(2):
        answers = await asyncio.gather(*(batcher.submit(new()) for _ in range(5)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [errors.StoreUnavailable] * 5


async def test_an_unexpected_error_is_raised_in_all_waiting_submits(live_store: Store) -> None:
    class Broken(Store):
        async def submit(self, *tasks: NewTask) -> list[object]:  # type: ignore[override]
            raise ZeroDivisionError

    batcher = SubmitBatcher(Broken(live_store.connection, live_store.settings))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await batcher.submit(new())


async def test_a_second_call_goes_when_it_is_as_large_as_the_first(live_store: Store) -> None:
    store = Gated(live_store)
    async with SubmitBatcher(store) as batcher, asyncio.TaskGroup() as group:
        for size, sent in ((10, [10]), (3, [10]), (6, [10]), (1, [10, 10]), (9, [10, 10])):
            for _ in range(size):
                group.create_task(batcher.submit(new()))
            await settle()
            assert store.sizes == sent
        store.gate.set()
    assert store.sizes == [10, 10, 9]


async def test_a_submit_just_after_all_calls_were_answered_does_not_wait(live_store: Store) -> None:
    store = Gated(live_store)
    async with SubmitBatcher(store) as batcher, asyncio.TaskGroup() as group:

        async def come_right_behind() -> None:
            await store.gate.wait()
            await batcher.submit(new())

        for _ in range(2):
            group.create_task(batcher.submit(new()))
            await settle()
        await wait_until(lambda: store.held == 2)
        group.create_task(come_right_behind())
        await settle()
        store.gate.set()
    assert store.sizes == [1, 1, 1]


async def test_a_submit_behind_an_unanswered_call_fails_with_it(live_store: Store) -> None:
    store = Gated(live_store)
    store.is_down = True
    batcher = SubmitBatcher(store)
    waiting = [asyncio.create_task(batcher.submit(new())) for _ in range(5)]
    await settle()
    waiting += [asyncio.create_task(batcher.submit(new())) for _ in range(2)]
    await settle()
    store.gate.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [errors.StoreUnavailable] * 7
    assert store.sizes == [5]

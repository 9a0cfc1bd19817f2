"""`Fairlead("http://...")`: the same app as on the store itself, through a gateway."""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import (
    Context,
    Fairlead,
    FairleadError,
    InvalidInput,
    LimitFull,
    NotAllSubmitted,
    StoreUnavailable,
    TaskCancelled,
    TaskFailed,
    UnknownTask,
)
from fairlead.client.bodies import task_body
from fairlead.errors import UnknownNamespace
from fairlead.model.states import State
from fairlead.store.store import Store
from tests.api.requests import NO_TASK
from tests.api.serving import Gateway
from tests.apps import tour
from tests.client.answering import unreachable_url
from tests.tickers import CRON
from tests.waiting import wait_until


@pytest.fixture
async def connected(fl: Fairlead) -> AsyncIterator[Fairlead]:
    """The app of the tour, on the gateway."""
    place, tour.fl.target = tour.fl.target, fl.target
    async with tour.fl:
        yield tour.fl
    tour.fl.target = place


async def test_a_task_is_submitted_run_and_its_result_read(connected: Fairlead) -> None:
    async with connected.worker():
        task = await tour.greet.submit("Zoë", polite=True, priority="high")
        assert await task.result(timeout=30) == "Good day, Zoë"
        assert (await connected.submit("greet", {"name": "Bo"})).status is State.QUEUED


async def test_the_declarations_of_the_code_apply(connected: Fairlead, store: Store) -> None:
    async with connected.worker(capacity=4):
        drawn = [await tour.draw.submit(f"{n}") for n in range(4)]
        spans = sorted([await one.result(timeout=30) for one in drawn])
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    assert (await store.limits.get("gpu")).limit == 1


async def test_failures_are_retried_or_raised(connected: Fairlead) -> None:
    async with connected.worker():
        assert await (await tour.call_flaky_api.submit()).result(timeout=30) == 3
        with pytest.raises(TaskFailed, match="the account is empty"):
            await (await tour.pay.submit(eur=101)).result(timeout=30)


async def test_progress_and_output_are_watched_live(connected: Fairlead) -> None:
    async with connected.worker():
        task = await tour.render.submit(frames=20)
        frames, fractions = [], []
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                frames.append(message["chunk"]["frame"])
            if message["type"] == "PROGRESS":
                fractions.append(message["fraction"])
        assert message["type"] == "JOB_COMPLETE"
        assert frames == list(range(20))
        assert fractions == sorted(fractions)
        again = [message["chunk"]["frame"] async for message in task.watch() if message["type"] == "OUTPUT"]
        assert again == frames  # a late watcher has missed nothing


@pytest.mark.parametrize(
    "wait", [tour.wait_in_loop, tour.wait_in_thread, tour.wait_in_process], ids=["loop", "thread", "process"]
)
async def test_a_running_task_is_cancelled_wherever_it_runs(connected: Fairlead, wait: Any) -> None:
    async with connected.worker(capacity=1):
        task = await wait.submit()
        async for message in task.watch():
            if message["type"] == "OUTPUT":
                await task.cancel()
        assert message["type"] == "CANCELLED"
        with pytest.raises(TaskCancelled):
            await task.result()
        assert await (await tour.greet.submit("Zoë")).result(timeout=30) == "Hi Zoë"


async def test_many_at_once(connected: Fairlead) -> None:
    new = [tour.greet.new(f"{n}") for n in range(1500)]
    tasks = [*new, tour.greet.new("x", limits={"nothing": 1})]
    handles = await connected.submit_many(tasks, return_errors=True)
    assert isinstance(handles[-1], InvalidInput)
    with pytest.raises(NotAllSubmitted) as raised:  # the same tasks again: each is accepted once
        await connected.submit_many(tasks)
    assert [*raised.value.errors] == [1500] and raised.value.handles[1499].repeated
    async with connected.worker(capacity=200):
        last = handles[1499]
        assert not isinstance(last, FairleadError)
        assert await last.result(timeout=50) == "Hi 1499"


async def test_units_are_held_while_a_block_runs(connected: Fairlead, store: Store) -> None:
    async with connected.acquire("gpu", lease_seconds=6, holder="me") as lease:
        assert (await store.limits.get("gpu")).slots[0].holder == "me"
        with pytest.raises(LimitFull):
            async with connected.acquire("gpu"):
                pass
        ends = lease.expires_at

        async def is_renewed() -> bool:
            return ((await store.limits.get("gpu")).slots[0].expires_at or 0) > ends

        await wait_until(is_renewed)
    assert (await store.limits.get("gpu")).active == 0


async def test_a_handler_gets_more_time(fl: Fairlead) -> None:
    @fl.task(timeout=30, max_retries=0)
    async def slow(ctx: Context) -> str:
        before = ctx.deadline
        ctx.extend(60)
        while ctx.deadline == before:
            await asyncio.sleep(0.01)
        return "done"

    async with fl, fl.worker():
        assert await (await slow.submit()).result(timeout=30) == "done"


async def test_large_results_and_outputs_get_through(fl: Fairlead) -> None:
    @fl.task
    async def large(ctx: Context) -> str:
        for _ in range(200):
            ctx.emit("y" * 60_000)
        return "x" * 250_000

    @fl.task
    async def too_large() -> str:
        return "x" * 300_000

    async with fl, fl.worker(capacity=40):
        tasks = [await large.submit() for _ in range(2)]
        for task in tasks:
            assert len(await task.result(timeout=50)) == 250_000
        with pytest.raises(TaskFailed, match="at most 262144"):
            await (await too_large.submit()).result(timeout=30)


async def test_a_periodic_task_is_submitted_by_its_worker(fl: Fairlead, store: Store) -> None:
    last, _ = await store.crons.last("every")
    minute = 60_000
    # as if it had been seen an hour ago
    await store.connection.client.hset(store.connection.keys.key("crons"), "every", str(last - 60 * minute))
    ran = asyncio.Event()

    @fl.cron(CRON.expression, name="every")
    async def every() -> None:
        ran.set()

    async with fl, fl.worker(), asyncio.timeout(30):
        await ran.wait()


async def test_an_omitted_priority_is_left_to_the_gateway(fl: Fairlead) -> None:
    @fl.task
    async def draw() -> None: ...

    assert task_body(draw.new(user_id="ann")).priority is None
    assert task_body(draw.new(priority="medium")).priority == "medium"


async def test_unknown_ids_and_explanations(connected: Fairlead) -> None:
    with pytest.raises(UnknownTask):
        await connected.get(NO_TASK)
    task = await tour.greet.submit("Zoë")
    assert "worker" in (await task.explain()).sentence
    assert (await (await connected.get(task.task_id)).get()).parameters == {"name": "Zoë"}


async def test_the_address_may_come_from_the_environment(
    gateway: Gateway, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_URL", gateway.url)
    monkeypatch.setenv("FAIRLEAD_KEY", "flk_some")
    fl = Fairlead()
    assert fl.target.read_settings().engine.key == "flk_some"
    async with fl:
        await fl.submit("echo")
        with pytest.raises(FairleadError, match="behind a gateway"):
            _ = fl.store
    assert len((await store.list_tasks()).tasks) == 1
    assert Fairlead(data="here").target.read_settings().engine.url is None


async def test_a_namespace_that_the_gateway_does_not_serve_is_refused(gateway: Gateway, store: Store) -> None:
    async with Fairlead(gateway.url, namespace=gateway.namespace) as fl:
        await fl.submit("echo")
    with pytest.raises(UnknownNamespace):
        async with Fairlead(gateway.url, namespace="blue") as fl:
            await fl.submit("echo")
    assert len((await store.list_tasks()).tasks) == 1


async def test_without_a_gateway_it_does_not_connect() -> None:
    with unreachable_url() as url, pytest.raises(StoreUnavailable, match="is it running"):
        async with Fairlead(url):
            pass
    assert os.environ.get("FAIRLEAD_URL") is None

"""What the heartbeat of a worker does besides keeping it alive."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from fairlead import Fairlead
from fairlead.clock import now_ms
from fairlead.model.states import State
from fairlead.store.store import Store
from tests.store.namespace import raw
from tests.waiting import wait_until


async def test_without_a_gateway_a_worker_takes_dead_ones_off_the_list(
    fl: Fairlead, live_store: Store, open_store: Callable[..., Store], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "fairlead.upkeep")
    past = open_store(live_store.connection.keys.namespace, clock=lambda: str(now_ms() - 60_000))
    for n in range(130):  # more than one act names
        await past.workers.register(f"dead{n}")
    await past.close()

    @fl.task
    async def echo() -> None: ...

    async def only_one_is_listed() -> bool:
        return int(await raw(live_store).hlen(live_store.connection.keys.key("listed"))) == 1

    async with fl, fl.worker():
        await wait_until(only_one_is_listed)
    lines = [record.message for record in caplog.records if record.message.startswith("workers_lost")]
    assert lines == ["workers_lost count=130 named=5 running=0"]


async def test_a_worker_that_drains_beats_no_more_often_than_others(
    fl: Fairlead, live_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.worker")
    keys, client = live_store.connection.keys, raw(live_store)

    @fl.task
    async def never() -> None:
        await asyncio.Event().wait()

    async with fl, fl.worker(grace=600):
        task = await never.submit()
        await wait_until(lambda: is_executing(live_store, task.task_id))
        (worker,) = (await live_store.stats()).workers
        record = keys.key("worker", worker.worker_id)

        async def seen() -> int:
            return int(await client.hget(record, "seen"))

        async def acts() -> int:
            return int(await client.hget(keys.meta, "beat"))

        await live_store.workers.drain(worker.worker_id)
        await wait_until(lambda: "worker_draining" in caplog.text)
        first, before = await seen(), await acts()

        async def has_beaten_for_two_seconds() -> bool:
            return await seen() >= first + 2000

        await wait_until(has_beaten_for_two_seconds)
        seconds, counted = (await seen() - first) / 1000, await acts() - before
        await task.cancel()
    assert counted < 10 + 5 * seconds, "a beat every half second, and little else"


async def is_executing(store: Store, task_id: str) -> bool:
    return (await store.get(task_id)).status is State.EXECUTING

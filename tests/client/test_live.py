"""Events of a task through a gateway, with long waits and with short ones."""

import asyncio

import pytest

from fairlead.client.client import Client
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store


async def test_a_wait_that_timed_out_can_be_repeated_for_the_next_event(client: Client, store: Store) -> None:
    task = NewTask(task_type="draw")
    await store.submit_one(task)
    async with client.live.watch(task.task_id) as events, asyncio.timeout(40):
        assert await anext(events) is None  # now nothing can be missed
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(events)
        await store.cancel(task.task_id)
        ended = await anext(events)
        assert ended and ended.after is State.CANCELLED

"""Events of a task through a gateway: for who waits long, and only a little at a time."""

import asyncio

import pytest

from fairlead.client.client import Client
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store


async def test_who_gave_up_waiting_hears_what_comes_next(client: Client, store: Store) -> None:
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

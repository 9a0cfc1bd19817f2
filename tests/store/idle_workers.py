"""Workers that wait for tasks, and how they are called."""

from typing import Any

from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.store.namespace import claim_one, new, raw, woken


async def idle(store: Store, *workers: str, **facts: Any) -> None:
    """Workers whose claim was empty and that wait."""
    for worker in workers:
        await store.workers.register(worker, **facts)
        assert (await store.claim(worker, idle=True)).tasks == []


async def calls(store: Store, *workers: str) -> int:
    return sum((await woken(store, *workers)).values())


async def words(store: Store, *workers: str) -> list[str]:
    """What they are called for."""
    keys = [store.connection.keys.key("wake", worker) for worker in workers]
    return sorted([word.decode() for key in keys for word in await raw(store).lrange(key, 0, -1)])


# the worker that watched the time is called for the task, so the other one has to watch now
ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME = ["1n:1", "alarm"]


async def fill(store: Store, limit: str, units: int = 1) -> NewTask:
    """A limit of this number of units, all taken by a task of the worker `busy`."""
    await store.limits.set(limit, Slots(limit=units))
    await store.workers.register("busy", capacity=9)
    await store.submit_one(new(limits={limit: units}))
    return NewTask(task_type="echo", task_id=(await claim_one(store, "busy")).task_id)

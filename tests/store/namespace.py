"""The content of a namespace, for tests that compare or count it."""

from collections.abc import Callable
from typing import Any

from fairlead.model.reports import Completed
from fairlead.model.task import NewTask, Task
from fairlead.settings import Settings
from fairlead.store.membership import Membership
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.reading import events_of


def new(task_type: str = "echo", **options: Any) -> NewTask:
    return NewTask(task_type=task_type, **options)


def raw(store: Store) -> Any:
    """The client, for what no act of the store does."""
    return store.connection.client


async def key_names(store: Store) -> list[str]:
    """All keys of the namespace, without its prefix."""
    prefix = store.connection.keys.prefix
    found = raw(store).scan_iter(match=prefix + "*", count=1000)
    return sorted([key.decode().removeprefix(prefix) async for key in found])


async def everything(store: Store) -> dict[str, Any]:
    """Every key with all it holds and whether it runs out: the same as before when nothing was changed.

    Without the beat, which counts the acts that write: two ways to a state may take more or fewer.
    """
    client, prefix = raw(store), store.connection.keys.prefix
    content: dict[str, Any] = {}
    for name in await key_names(store):
        key = prefix + name
        kind = (await client.type(key)).decode()
        reads: dict[str, Any] = {
            "hash": lambda key=key: client.hgetall(key),
            "zset": lambda key=key: client.zrange(key, 0, -1, withscores=True),
            "list": lambda key=key: client.lrange(key, 0, -1),
            "stream": lambda key=key: client.xrange(key),
            "string": lambda key=key: client.get(key),
        }
        held = await reads[kind]()
        if name == "meta":
            held.pop(b"beat", None)
        content[name] = (held, await client.pttl(key) >= 0)
    return content


async def wipe(store: Store) -> None:
    """Leaves the server as after a loss of its data; the store does not know of the loss."""
    store.connection.membership = Membership(store.connection.keys.namespace)
    prefix = store.connection.keys.prefix
    if names := await key_names(store):
        await raw(store).delete(*[prefix + name for name in names])


async def events(store: Store, task_id: str = "") -> list[dict[str, Any]]:
    """The outbox, oldest first: of one task, or of all."""
    return [event for event in await events_of(store) if task_id in ("", event["task"])]


async def claim_one(store: Store, worker: str = "w") -> Task:
    (task,) = (await store.claim(worker)).tasks
    return task


async def run_for(store: Store, clock: Clock, user: str, seconds: float, worker: str = "w") -> None:
    """Runs a task of this user that takes this long, while nobody else waits."""
    await store.submit_one(new(user_id=user))
    task = await claim_one(store, worker)
    clock.pass_seconds(seconds)
    await store.complete(worker, Completed(task.task_id, task.fence))


async def run_all(store: Store, worker: str = "w") -> list[str]:
    """One task after the other is claimed and completed at once; their ids in the order of their starts."""
    order = []
    while tasks := (await store.claim(worker)).tasks:
        order.append(tasks[0].task_id)
        await store.complete(worker, Completed(tasks[0].task_id, tasks[0].fence))
    return order


async def woken(store: Store, *workers: str) -> dict[str, int]:
    """How many wake-up calls lie ready for each worker."""
    return {worker: await raw(store).llen(store.connection.keys.key("wake", worker)) for worker in workers}


async def reopened(store: Store, open_store: Callable[..., Store], settings: Settings) -> None:
    """Another process opens the namespace with these settings."""
    other = open_store(namespace=store.connection.keys.namespace, clock=store.clock, settings=settings)
    await other.open()
    await other.close()

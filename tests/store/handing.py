"""Workers that wait to be handed a task."""

from typing import Any

from fairlead.model.reports import Handed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store


async def waits(store: Store, *workers: str, lease_ms: int | None = None, **facts: Any) -> None:
    """Workers whose claim was empty and that wait to be handed a task."""
    for worker in workers:
        await store.workers.register(worker, **facts)
        assert (await store.claim(worker, idle=True, lease_ms=lease_ms, acknowledged=())).tasks == []


async def handed(store: Store, worker: str = "w") -> Handed:
    call = await store.workers.wait(worker, 5)
    assert isinstance(call, Handed), call
    return call


async def called(store: Store, worker: str = "w") -> str:
    """It was only called, and has to claim."""
    call = await store.workers.wait(worker, 5)
    assert isinstance(call, str), call
    return call


async def claimed(store: Store, worker: str = "w", want: int = 1, **options: Any) -> list[str]:
    """The ids of what a claim is answered with."""
    return [task.task_id for task in (await store.claim(worker, want, **options)).tasks]


async def status(store: Store, task: NewTask) -> State:
    return (await store.get(task.task_id)).status

"""A handler that blocks its whole process for any time."""

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.faults.history import History
from tests.waiting import wait_until


async def hold_up(store: Store, history: History, task_type: str, seconds: float) -> float:
    """Runs one; AssertionError unless it keeps its lease: one start, which completes. How long it blocked."""
    task = NewTask(task_type=task_type, parameters={"seconds": seconds}, timeout_seconds=120)
    await store.submit_one(task)
    await wait_until(lambda: task.task_id in history.ended, 130, f"{task_type} has ended")
    acts = [event.act for event in history.events if event.task == task.task_id]
    assert acts == ["submit", "claim", "complete"], acts
    done = await store.get(task.task_id)
    assert done.status is State.COMPLETED
    blocked: float = done.result
    return blocked

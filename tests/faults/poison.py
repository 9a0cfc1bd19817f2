"""Tasks that kill whatever runs them, among good ones."""

import random
import time
from typing import Any

from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.faults.history import History
from tests.waiting import wait_until

AT_ONCE = 500


async def swallow(store: Store, history: History, seed: int, *, good: int, pills: int) -> dict[str, Any]:
    """AssertionError unless every pill is put away after three crashes, and all others complete."""
    began, bad = time.monotonic(), [NewTask(task_type="die") for _ in range(pills)]
    mixed = bad + [NewTask(task_type="work", parameters={"seconds": 0.05}) for _ in range(good)]
    random.Random(seed).shuffle(mixed)
    for first in range(0, len(mixed), AT_ONCE):
        await store.submit(*mixed[first : first + AT_ONCE])
    await wait_until(lambda: len(history.ended) == len(mixed), 50 + len(mixed), "every task has ended")
    ended = [await store.get(task.task_id) for task in mixed]
    poison = [task for task in ended if task.task_type == "die"]
    facts = [(task.status, task.crash_count, task.retry_count) for task in poison]
    assert facts == [(State.DEAD_LETTER, 3, 0)] * pills, facts
    others = [task for task in ended if task.task_type == "work"]
    assert {task.status for task in others} == {State.COMPLETED}
    return {
        "seed": seed,
        "pills": pills,
        "good": good,
        "good_tasks_that_lost_a_worker": sum(task.crash_count + task.loss_count > 0 for task in others),
        "max_crashes_of_a_good_task": max(task.crash_count for task in others),
        "max_losses_of_a_good_task": max(task.loss_count for task in others),
        "seconds": round(time.monotonic() - began),
    }

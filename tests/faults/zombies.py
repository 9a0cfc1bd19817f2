"""A worker that is stopped (SIGSTOP) for longer than its lease, and continues as if nothing had happened."""

import asyncio
import os
import re
import signal
import time
from dataclasses import dataclass

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.faults.fleet import LEASE, Crew, Fleet
from tests.faults.history import History
from tests.faults.sink import Sink, Written
from tests.waiting import wait_until


@dataclass(frozen=True)
class Outlived:
    """What became of a stopped worker and its run."""

    crew: Crew
    pid: int
    task_type: str
    whole_crew: bool
    refused: int  # writes of the stopped run that came too late
    late: float  # seconds for which it still wrote after it had resumed
    reported: bool  # its report came too late, and was refused


async def outlive(
    store: Store,
    fleet: Fleet,
    history: History,
    sink: Sink,
    *,
    task_type: str = "write",
    seconds: float = 20 * LEASE,
    whole_crew: bool = False,
    longer: float = 0,
) -> Outlived:
    """Another worker runs the task of a stopped one, which resumes `longer` seconds later.

    AssertionError when the worker's late doings changed anything.
    """
    known, reported = len(history.events), False
    task = NewTask(task_type=task_type, parameters={"sink": sink.url, "seconds": seconds})
    await store.submit_one(task)
    await wait_until(lambda: sink.read(task.task_id), 40, "it runs")
    first = sink.read(task.task_id)[0]
    crew = fleet.crew_of(first.pid)
    send = crew.signal if whole_crew else lambda number: os.kill(first.pid, number)
    send(signal.SIGSTOP)
    await wait_until(lambda: sink.read(task.task_id)[-1].fence > first.fence, 40, "somebody else runs it")
    await asyncio.sleep(longer)
    resumed = time.monotonic()
    send(signal.SIGCONT)
    await wait_until(lambda: task.task_id in history.ended, 40)
    await wait_until(lambda: works(store, crew, history), 40, "the stopped worker works again")
    if task_type == "report_late":
        refusal = f"report_refused task={task.task_id} fence={first.fence} code=fenced"
        # on a busy machine its supervisor may be faster than its report
        killed = re.compile(rf"worker_(stuck|did_not_stop) .*pid={first.pid}\b")
        await wait_until(
            lambda: refusal in crew.log_text() or killed.search(crew.log_text()),
            because="the late report was refused",
        )
        reported = refusal in crew.log_text()
    acts = [event.act for event in history.events[known:] if event.task == task.task_id]
    assert acts[:4] == ["submit", "claim", "expire", "claim"], acts
    assert acts.index("complete") == len(acts) - 1, acts
    done = await store.get(task.task_id)
    assert done.result == done.fence > first.fence, done
    written = sink.read(task.task_id)
    assert_only_rising_fences(written)
    sink.forget(task.task_id)
    late = [row.at - resumed for row in written if row.fence == first.fence]
    refused = sum(not row.accepted for row in written)
    return Outlived(crew, first.pid, task_type, whole_crew, refused, max(0.0, *late), reported)


def assert_only_rising_fences(written: list[Written]) -> None:
    newest = 0
    for row in written:
        assert row.accepted == (row.fence >= newest), f"{row} after fence {newest}"
        newest = max(newest, row.fence)


async def works(store: Store, crew: Crew, history: History) -> bool:
    """Submits tasks; returns whether this crew got any."""
    tasks = [NewTask(task_type="work", parameters={"seconds": 0.02}) for _ in range(8)]
    await store.submit(*tasks)
    ids = {task.task_id for task in tasks}
    await wait_until(lambda: ids <= history.ended, 40, "eight short tasks have ended")
    claims = [event for event in history.events if event.act == "claim" and event.task in ids]
    return any(event.worker.startswith(f"{crew.name}-") for event in claims)

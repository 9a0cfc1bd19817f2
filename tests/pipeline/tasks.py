"""Tasks as a worker claims them, run without a store."""

import socket
from collections.abc import Mapping
from typing import Any

from fairlead.clock import monotonic
from fairlead.model.priority import Priority
from fairlead.model.reports import Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.store.store import Store
from fairlead.worker.begun import Begun, Gate
from fairlead.worker.handler import Handler
from fairlead.worker.outcome import Report
from fairlead.worker.pipe import MessagePipe
from fairlead.worker.runner import Runner
from fairlead.worker.runs import Runs
from tests.waiting import wait_until

JOB = "01900000-0000-7000-8000-00000000000a"


def claimed(task_type: str, parameters: dict[str, Any], **facts: Any) -> Task:
    usual: dict[str, Any] = {
        "task_id": "01900000-0000-7000-8000-000000000001",
        "status": State.EXECUTING,
        "priority": Priority.MEDIUM,
        "effective_priority": Priority.MEDIUM,
        "created_at": 1,
        "timeout_ms": 30_000,
        "max_retries": 2,
        "fence": 17,
    }
    return Task(task_type=task_type, parameters=parameters, **{**usual, **facts})


def step(
    task_type: str, params: dict[str, Any], context: dict[str, Any], index: int = 1, **facts: Any
) -> Task:
    """The task of a step of a job."""
    given = {"params": params, "context": context}
    return claimed(task_type, given, job_id=JOB, step=index, **facts)


def success(data: Any) -> dict[str, Any]:
    """A completed step, as it is in the context of its job."""
    return {"status": "SUCCESS", "data": data, "metrics": {"execution_time_ms": 1}}


async def no_frames(grant: Grant, after: int) -> None:
    """No task here is interactive."""


async def report_by(handlers: Mapping[str, Handler], task: Task) -> Report:
    """The outcome of a run, as a worker would report it to the store."""
    ours, theirs = socket.socketpair()
    pipe = await MessagePipe.over(ours)
    runs = Runs("w", pipe)
    runner = Runner(handlers, Gate(Begun()), runs, Store.connect("unix:///nowhere"), no_frames)
    try:
        runner.start(task, monotonic(), monotonic(), monotonic() + 60)
        await wait_until(lambda: runs.reports)
    finally:
        await runner.close()
        await pipe.close()
        theirs.close()
    return runs.reports[0]

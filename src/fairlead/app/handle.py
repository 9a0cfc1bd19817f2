"""A handle of a submitted task: wait for it, watch it, cancel it."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Generic, TypeVar, cast

from fairlead.backend import Backend, retry_while_unavailable
from fairlead.errors import TaskCancelled, TaskFailed
from fairlead.model.event import Event
from fairlead.model.states import TERMINAL, State
from fairlead.model.stats import Explanation
from fairlead.model.task import Submitted, Task

R = TypeVar("R")

LOOK_SECONDS = 5.0  # the news of a task's end may be lost: look at least this often


class TaskHandle(Generic[R]):
    """`R` is what the task's result is."""

    def __init__(self, backend: Backend, submitted: Submitted) -> None:
        self.task_id = submitted.task_id
        self.status = submitted.status  #: when it was submitted
        self.repeated = submitted.repeated  #: the same id or idempotency key was accepted before
        self.queue_position = submitted.queue_position
        self.estimate: None = None  #: there are no estimates yet
        self._backend = backend

    def __repr__(self) -> str:
        return f"<task {self.task_id}>"

    async def get(self) -> Task:
        """The task as it is now."""
        return await self._backend.get(self.task_id)

    async def explain(self) -> Explanation:
        """Why it waits."""
        return await self._backend.explain(self.task_id)

    async def cancel(self) -> None:
        """Ends it, also while it runs; AlreadyFinished when it has ended."""
        await self._backend.cancel(self.task_id)

    async def wait(self, timeout: float | None = None) -> Task:
        """Waits until it has ended, and returns it in whatever state; TimeoutError when the time is over."""
        async with asyncio.timeout(timeout), self._backend.live.watch(self.task_id) as events:
            task = await self.get()
            while task.status not in TERMINAL:
                await self._next_end(events)
                task = await retry_while_unavailable(self._backend, self.get)
            return task

    async def result(self, timeout: float | None = None) -> R:
        """What the handler returned. Raises TaskFailed, TaskCancelled or TimeoutError (then it continues)."""
        return cast(R, result_of(await self.wait(timeout)))

    async def watch(self) -> AsyncIterator[Event]:
        """What happens to it, as it happens, until it has ended; first what the store knows already."""
        seen = 0
        await self.get()  # fails at once if the task does not exist or the store cannot be reached
        async with self._backend.live.watch(self.task_id) as events:
            async for event in events:
                if event is None:  # the beginning, or some may be missing
                    for known in await retry_while_unavailable(self._backend, partial(self._known, seen)):
                        seen = known.detail.get("seq", seen)
                        yield known
                        if known.after in TERMINAL:
                            return
                elif event.act != "output" or event.detail["seq"] > seen:
                    seen = event.detail.get("seq", seen)
                    yield event
                    if event.after in TERMINAL:
                        return

    async def _known(self, seen: int) -> list[Event]:
        """Its output so far, then its state."""
        task, outputs = await self.get(), await self._backend.outputs(self.task_id, after=seen)
        state, at = task.status, task.completed_at or task.started_at or task.created_at
        detail: dict[str, Any] = {"error": task.error.code} if task.error else {}
        return [
            *(
                Event(
                    self.task_id,
                    "output",
                    state,
                    State.EXECUTING,
                    at,
                    out.fence,
                    {"seq": out.seq, "chunk": out.chunk},
                    out.event_seq,
                )
                for out in outputs
            ),
            Event(self.task_id, "state", None, state, at, task.fence, detail, task.seq),
        ]

    async def _next_end(self, events: AsyncIterator[Event | None]) -> None:
        """Until it may have ended."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                async for event in events:
                    if event is None or event.after in TERMINAL:
                        return
        except TimeoutError:
            return


def result_of(task: Task) -> Any:
    """Of a task that has ended; TaskFailed or TaskCancelled say why there is none."""
    if task.status is State.COMPLETED:
        return task.result
    if task.status is State.CANCELLED:
        raise TaskCancelled(f"Task {task.task_id} was cancelled.")
    error = task.error
    assert error
    raise TaskFailed(task.task_id, error.code, error.message, error.retriable, error.traceback)

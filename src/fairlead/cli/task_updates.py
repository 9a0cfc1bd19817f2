"""What happens to a task, as `fairlead task watch` shows it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TextIO

from fairlead.backend import Backend
from fairlead.cli.output import Output, compact
from fairlead.cli.screen import LOOK_AGAIN, Update, follow
from fairlead.model.event import Event
from fairlead.model.reports import Output as Chunk
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import Task, TaskProgress
from fairlead.shapes.event import EventLine
from fairlead.shapes.task import OutputAnswer, TaskAnswer
from fairlead.times import time_text


async def follow_task(backend: Backend, task_id: str, stream: TextIO, output: Output) -> Task:
    """Shows what happens to the task until it has ended; the task as it ended."""
    # fails at once if there is no such task, or no server
    watch = TaskWatch(backend, await backend.get(task_id))
    await follow("task", task_id, watch.updates(), stream, output)
    return watch.task


class TaskWatch:
    """The updates of a task, and the task as it was when it was last read."""

    def __init__(self, backend: Backend, task: Task) -> None:
        self.task = task
        self._backend = backend
        self._shown: object = None
        self._last_output = 0

    async def updates(self) -> AsyncGenerator[Update]:
        async with self._backend.live.watch(self.task.task_id) as events:
            while self._shown is None or self.task.status not in TERMINAL:
                event = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN):
                        event = await anext(events)
                if event is None or event.after in TERMINAL:
                    for update in await self._read():
                        yield update
                elif event.act != "output":
                    self._shown = (event.after, event.fence, "")
                    yield _event_update(event)
                elif event.detail["seq"] > self._last_output:  # else it was read with the state
                    self._last_output = event.detail["seq"]
                    yield _output_update(Chunk(self._last_output, event.fence, event.detail["chunk"]))

    async def _read(self) -> list[Update]:
        """Its state, if it is another one, and its new output. The end of a task comes last."""
        self.task = task = await self._backend.get(self.task.task_id)
        why, before = await self._why(), self._shown
        self._shown = (task.status, task.fence, why)
        state = [_state_update(task, why)] if self._shown != before else []
        outputs = await self._backend.outputs(task.task_id, after=self._last_output)
        self._last_output = outputs[-1].seq if outputs else self._last_output
        new = [_output_update(output) for output in outputs]
        return new + state if task.status in TERMINAL else state + new

    async def _why(self) -> str:
        """Why it does not run yet."""
        if self.task.status is State.QUEUED:
            return (await self._backend.explain(self.task.task_id)).sentence
        return f"Until {time_text(self.task.run_at)}." if self.task.status is State.DELAYED else ""


def _state_update(task: Task, why: str) -> Update:
    progress = task.progress if task.status is State.EXECUTING else None
    answer = {"task": TaskAnswer.from_value(task), "why": why}
    return _bar_update(answer, task.status, progress, why, starts=task.status is State.EXECUTING)


def _event_update(event: Event) -> Update:
    answer = {"event": EventLine.from_value(event)}
    if event.act == "progress":
        return _bar_update(answer, event.after, TaskProgress(**event.detail))
    code = event.detail.get("code")
    words = f"({event.act}: {code})" if code else f"({event.act})"
    return _bar_update(answer, event.after, None, words, starts=event.act == "claim")


def _bar_update(
    answer: object, state: State, progress: TaskProgress | None, words: str = "", *, starts: bool = False
) -> Update:
    fraction = progress.fraction if progress else None
    percent = "" if fraction is None else f"{fraction:.0%}"
    line = " ".join(filter(None, (state, percent, progress.message if progress else "", words)))
    waits = None if state is State.EXECUTING else 0.0
    return Update(
        answer=answer,
        line=line,
        bar=0,
        words=line,
        starts=starts,
        fraction=waits if fraction is None else fraction,
    )


def _output_update(output: Chunk) -> Update:
    return Update(answer={"output": OutputAnswer.from_value(output)}, line=f"output {compact(output.chunk)}")

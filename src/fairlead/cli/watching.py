"""Following one task to its end: a bar on a terminal, a line for each change in a pipe, or JSON lines."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import Protocol, TextIO

from fairlead.backend import Backend
from fairlead.cli.output import compact, print_json_line, printable, say
from fairlead.errors import TaskCancelled, TaskFailed
from fairlead.model.event import Event
from fairlead.model.reports import Output
from fairlead.model.states import TERMINAL, State
from fairlead.model.task import Task, TaskProgress
from fairlead.shapes.event import EventLine
from fairlead.shapes.task import OutputAnswer, TaskAnswer
from fairlead.times import time_text

LOOK_AGAIN = 5.0  # seconds of silence after which the state is read: nobody may be there to tell of it


@dataclass(frozen=True, slots=True)
class Standing:
    """How the task stands now and, if it waits, for what."""

    task: Task
    why: str

    @property
    def key(self) -> object:
        """What is worth telling when it is another."""
        return self.task.status, self.task.fence, self.why


News = Standing | Event | Output


class Screen(AbstractContextManager["Screen"], Protocol):
    """Where it is shown how a task goes."""

    def show(self, news: News) -> None: ...


async def follow(backend: Backend, task_id: str, screen: Screen) -> Task:
    """Shows what happens to the task until it has ended; the task as it ended."""
    try:
        with screen:
            async with aclosing(_news_of(backend, task_id)) as all_news:
                async for news in all_news:
                    screen.show(news)
                    if isinstance(news, Standing):
                        task = news.task
        return task
    except asyncio.CancelledError:
        say(f"Stopped watching; the task goes on. To see how: fairlead task watch {task_id}")
        raise


def check_completed(task: Task) -> None:
    """Raises what says why there is no result."""
    if task.status is State.CANCELLED:
        raise TaskCancelled(f"Task {task.task_id} was cancelled.")
    if task.status is not State.COMPLETED:
        code, message = (
            (task.error.code, task.error.message) if task.error else ("error", "no reason is known")
        )
        raise TaskFailed(task.task_id, printable(code), printable(message))


async def _news_of(backend: Backend, task_id: str) -> AsyncGenerator[News]:
    await backend.get(task_id)  # whoever names no task, or no server, need not wait to hear it
    seen: object = None
    heard = 0  # the number of the latest output
    async with backend.live.watch(task_id) as events:
        while True:
            event = await _next(events)
            if event is None or event.after in TERMINAL:
                standing = await _look(backend, task_id)
                ended = standing.task.status in TERMINAL
                if seen != (seen := standing.key) and not ended:
                    yield standing
                for output in await backend.outputs(task_id, after=heard):
                    heard = output.seq
                    yield output
                if ended:  # the end comes last, also for who comes when all is over
                    yield standing
                    return
            elif event.act != "output":
                yield event
                seen = (event.after, event.fence, "")
            elif event.detail["seq"] > heard:  # else it was read with the state
                heard = event.detail["seq"]
                yield Output(heard, event.fence, event.detail["chunk"])


async def _next(events: AsyncIterator[Event | None]) -> Event | None:
    """None: look at the state."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOOK_AGAIN):
            return await anext(events)
    return None


async def _look(backend: Backend, task_id: str) -> Standing:
    task = await backend.get(task_id)
    if task.status is State.QUEUED:
        return Standing(task, (await backend.explain(task_id)).sentence)
    return Standing(task, f"Until {time_text(task.run_at)}." if task.status is State.DELAYED else "")


def screen_for(stream: TextIO) -> Screen:
    return Bar(stream) if stream.isatty() else Lines(stream)


class Lines:
    """A line for each change."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, news: News) -> None:
        print(_line(news), file=self._stream, flush=True)


class JsonLines(Lines):
    """One JSON object a line: {"task": ...}, {"event": ...} or {"output": ...}."""

    def show(self, news: News) -> None:
        if isinstance(news, Standing):
            print_json_line({"task": TaskAnswer.from_value(news.task), "why": news.why})
        elif isinstance(news, Event):
            print_json_line({"event": EventLine.from_value(news)})
        else:
            print_json_line({"output": OutputAnswer.from_value(news)})


class Bar:
    """One line that changes in place, with a bar once the task tells its progress; outputs go above it."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        words = TextColumn("{task.description}", markup=False)
        self._progress = Progress(
            TimeElapsedColumn(),
            BarColumn(),
            TaskProgressColumn(),
            words,
            console=Console(file=stream),
            transient=True,
        )
        self._row = self._progress.add_task("", total=None)

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, news: News) -> None:
        if isinstance(news, Output):
            self._progress.console.out(_line(news), highlight=False)
            return
        progress = _progress(news)
        self._progress.update(self._row, description=_line(news))
        if progress and progress.fraction is not None:
            self._progress.update(self._row, total=1.0, completed=progress.fraction)


def _line(news: News) -> str:
    if isinstance(news, Output):
        return f"output {printable(compact(news.chunk))}"
    if isinstance(news, Event) and news.act != "progress":
        code = news.detail.get("code")
        return printable(f"{news.after} ({news.act}: {code})" if code else f"{news.after} ({news.act})")
    progress = _progress(news)
    words = [progress.message if progress else "", news.why if isinstance(news, Standing) else ""]
    if progress and progress.fraction is not None:
        words.insert(0, f"{progress.fraction:.0%}")
    state = news.after if isinstance(news, Event) else news.task.status
    return printable(" ".join(word for word in (state, *words) if word))


def _progress(news: Standing | Event) -> TaskProgress | None:
    if isinstance(news, Standing):
        return news.task.progress if news.task.status is State.EXECUTING else None
    return TaskProgress(**news.detail) if news.act == "progress" else None

"""Following a task or a job to its end: bars on a terminal, a line for each change in a pipe, or JSON."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TextIO

from fairlead.cli.output import Output, compact, printable, say

LOOK_AGAIN = 5.0  # seconds of silence after which the state is read: events may have been lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something that happened to what is watched."""

    answer: Any  # as JSON
    line: str  # in a pipe
    bar: int | None = None  # the bar that it changes; None: the line is printed above all bars
    words: str = ""  # beside the bar
    starts: bool = False  # the task or step of the bar runs now; its fraction is unknown
    fraction: float | None = None  # of the bar


Show = Callable[[Update], None]


def output_words(chunk: Any) -> str:
    return f"output {compact(chunk)}"


async def follow(
    noun: str,
    watched_id: str,
    updates: AsyncGenerator[Update],
    stream: TextIO,
    output: Output,
    bars: Sequence[str] = ("",),
) -> None:
    """Shows the updates until there are no more; each bar has a name."""
    try:
        with _screen(stream, output, bars) as show:
            async with contextlib.aclosing(updates):
                async for update in updates:
                    show(update)
    except asyncio.CancelledError:
        say(f"Stopped watching; the {noun} continues. To watch it again: fairlead {noun} watch {watched_id}")
        raise


def _screen(stream: TextIO, output: Output, bars: Sequence[str]) -> AbstractContextManager[Show]:
    if output == "json":
        # one by one as they come: a reader must not wait for a full buffer
        return contextlib.nullcontext(lambda update: print(compact(update.answer), flush=True))
    if not stream.isatty():
        return contextlib.nullcontext(lambda update: print(printable(update.line), file=stream, flush=True))
    return _bars(stream, bars)


@contextlib.contextmanager
def _bars(stream: TextIO, names: Sequence[str]) -> Iterator[Show]:
    """A bar is empty while its task waits and moves while it runs; output is printed above all bars."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description}", markup=False)
    words = TextColumn("{task.fields[words]}", markup=False)
    columns = (TimeElapsedColumn(), name, BarColumn(), words)
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        rows = [progress.add_task(printable(name), total=1.0, words="") for name in names]

        def show(update: Update) -> None:
            if update.bar is None:
                progress.console.out(printable(update.line), highlight=False)
                return
            row = rows[update.bar]
            if update.starts:
                progress.reset(row)
                progress.tasks[row].total = None  # so that it moves
            if update.fraction is not None:
                progress.update(row, total=1.0, completed=update.fraction)
            progress.update(row, words=printable(update.words))

        yield show

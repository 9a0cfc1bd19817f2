"""Following one job to its end: a bar for each step on a terminal, lines in a pipe, or JSON."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TextIO

from fairlead.app.job_handle import JobHandle, context_of
from fairlead.cli.output import Output, compact, print_json_line, printable, say
from fairlead.cli.watching import LOOK_AGAIN
from fairlead.client.job_backend import Message
from fairlead.client.resumable import Resumable
from fairlead.errors import JobFailed
from fairlead.model.job import Job

Show = Callable[[Message], None]


async def follow_job(handle: JobHandle, stream: TextIO, output: Output) -> Job:
    """Shows what happens to the job until it has ended; the job as it ended."""
    try:
        with _screen_for(stream, output, await handle.get()) as show:
            async with contextlib.aclosing(_messages_of(handle)) as messages:
                async for message in messages:
                    show(message)
        return await handle.get()
    except asyncio.CancelledError:
        say(f"Stopped watching; the job goes on. To see how: fairlead job watch {handle.job_id}")
        raise


def checked_context(job: Job) -> dict[str, Any]:
    """Raises what says why there is none."""
    try:
        return context_of(job)
    except JobFailed as problem:
        code, message = printable(problem.code), printable(problem.reason)
        again = JobFailed(job.job_id, code, message, retryable=problem.retryable, step=problem.step)
        raise again from None


async def _messages_of(handle: JobHandle) -> AsyncGenerator[Message]:
    """While it is silent the job is looked at: nobody may be there to tell of it."""
    async with Resumable(handle.watch()) as messages:
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN):
                    message = await anext(messages)
            except StopAsyncIteration:
                return
            except TimeoutError:
                await handle.get()
            else:
                yield message


def _screen_for(stream: TextIO, output: Output, job: Job) -> AbstractContextManager[Show]:
    if output == "json":
        return contextlib.nullcontext(print_json_line)
    return _bars(stream, job) if stream.isatty() else contextlib.nullcontext(_lines(stream))


def _lines(stream: TextIO) -> Show:
    return lambda message: print(line_of(message), file=stream, flush=True)


@contextlib.contextmanager
def _bars(stream: TextIO, job: Job) -> Iterator[Show]:
    """A bar for each step: empty while it waits, moving while it runs; what it puts out goes above them."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    words = TextColumn("{task.fields[words]}", markup=False)
    names = TextColumn("{task.description}", markup=False)
    with Progress(
        TimeElapsedColumn(), names, BarColumn(), words, console=Console(file=stream), transient=True
    ) as progress:
        rows = [progress.add_task(printable(step.name), total=1.0, words="") for step in job.steps]

        def show(message: Message) -> None:
            if message["type"] == "OUTPUT" or "step_index" not in message:
                progress.console.out(line_of(message), highlight=False)
                return
            row = rows[message["step_index"]]
            if message["type"] == "STEP_START":
                progress.reset(row)
                progress.tasks[row].total = None  # so it moves, however far it may be
            elif (share := _share_of(message)) is not None:
                progress.update(row, total=1.0, completed=share)
            progress.update(row, words=printable(_words_of(message)))

        yield show


def _share_of(message: Message) -> float | None:
    """How much of its step is done, if it tells."""
    if message["type"] == "PROGRESS":
        fraction: float | None = message["fraction"]
        return fraction
    return {"STEP_COMPLETE": 1.0, "QUEUED": 0.0, "RETRY": 0.0, "JOB_FAILED": 0.0}.get(message["type"])


def line_of(message: Message) -> str:
    """`image_gen (3/4) 50% half done`"""
    if "service_name" not in message:
        return printable(f"job {_words_of(message)}")
    step = f"{message['service_name']} ({message['step_index'] + 1}/{message['total_steps']})"
    return printable(f"{step} {_words_of(message)}")


#: Types of messages that need no more words.
PLAIN = {
    "QUEUED": "queued",
    "STEP_START": "running",
    "STEP_COMPLETE": "completed",
    "EXTENDED": "got more time",
    "JOB_COMPLETE": "completed",
    "CANCELLED": "cancelled",
}


def _words_of(message: Message) -> str:
    match message["type"]:
        case "WAITING":
            return f"waits for limit {', '.join(one['limit'] for one in message['limits'])}"
        case "PROGRESS":
            fraction, words = message["fraction"], message["message"]
            return words if fraction is None else f"{fraction:.0%} {words}".rstrip()
        case "OUTPUT":
            return f"output {compact(message['chunk'])}"
        case "RETRY":
            return f"is tried again in {message['delay_seconds']:g} s ({message['code']})"
        case "JOB_PROMOTED":
            return f"promoted from {message['old']} to {message['new']}"
        case "STEP_FAILED" | "JOB_FAILED":
            return f"failed ({message['code']})"
        case other:
            kind = str(other)
            return PLAIN.get(kind, kind)

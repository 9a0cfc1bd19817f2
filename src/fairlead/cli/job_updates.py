"""What happens to a job, as `fairlead job watch` shows it: a bar for each step."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TextIO

from fairlead.app.job_handle import JobHandle
from fairlead.cli.output import Output, compact
from fairlead.cli.screen import LOOK_AGAIN, Update, follow
from fairlead.client.resumable import Resumable
from fairlead.live.messages import Message
from fairlead.model.job import Job

FRACTIONS = {"STEP_COMPLETE": 1.0, "QUEUED": 0.0, "RETRY": 0.0, "JOB_FAILED": 0.0}
#: Types of messages that need no more words.
PLAIN = {
    "QUEUED": "queued",
    "STEP_START": "running",
    "STEP_COMPLETE": "completed",
    "EXTENDED": "got more time",
    "JOB_COMPLETE": "completed",
    "CANCELLED": "cancelled",
}


async def follow_job(handle: JobHandle, stream: TextIO, output: Output) -> Job:
    """Shows what happens to the job until it has ended; the job as it ended."""
    steps = [step.name for step in (await handle.get()).steps]
    await follow("job", handle.job_id, _updates(handle), stream, output, steps)
    return await handle.get()


async def _updates(handle: JobHandle) -> AsyncGenerator[Update]:
    async with Resumable(handle.watch()) as messages:
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN):
                    message = await anext(messages)
            except StopAsyncIteration:
                return
            except TimeoutError:
                await handle.get()  # fails when the server is gone
            else:
                yield _update(message)


def _update(message: Message) -> Update:
    """Its line is like `image_gen (3/4) 50% half done`."""
    words, kind = _words_of(message), message["type"]
    of = "job"
    if "service_name" in message:
        of = f"{message['service_name']} ({message['step_index'] + 1}/{message['total_steps']})"
    return Update(
        answer=message,
        line=f"{of} {words}",
        bar=None if kind == "OUTPUT" else message.get("step_index"),
        words=words,
        starts=kind == "STEP_START",
        fraction=message["fraction"] if kind == "PROGRESS" else FRACTIONS.get(kind),
    )


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
            return PLAIN.get(other, str(other))

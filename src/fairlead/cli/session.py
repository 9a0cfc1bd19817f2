"""An interactive task on a terminal: each line typed is a frame, and the frames of its handler are shown."""

import asyncio
import os
import sys
from typing import Any

from fairlead.app.handle import TaskHandle
from fairlead.app.session import TaskSession
from fairlead.background import cancel_all
from fairlead.cli.output import compact, printable, say

MOST_LINE = 64 * 1024  # bytes; a terminal passes on less


async def talk(task: TaskHandle[Any]) -> bool:
    """Until the task ends; false: the user has left, which ends it."""
    say(f"{task.task_id} runs. Each line is sent to its handler; Ctrl-D ends it.")
    async with task.session() as session:
        typing = asyncio.create_task(_send_lines(session))
        showing = asyncio.create_task(_show_frames(session))
        try:
            ended, _ = await asyncio.wait({typing, showing}, return_when=asyncio.FIRST_COMPLETED)
            for one in ended:
                one.result()
        finally:
            await cancel_all(typing, showing)
    return showing in ended


async def _send_lines(session: TaskSession) -> None:
    while line := await _typed_line():
        await session.send(line.decode(errors="replace").removesuffix("\n"))


async def _show_frames(session: TaskSession) -> None:
    async for frame in session:
        for line in frame.splitlines() if isinstance(frame, str) else [compact(frame)]:
            print(printable(line), flush=True)


async def _typed_line() -> bytes:
    """Empty at the end. It is read when it is there: a thread that reads could not be cancelled."""
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(terminal)
        line.set_result(os.read(terminal, MOST_LINE))

    loop.add_reader(terminal, read)
    try:
        return await line
    finally:
        loop.remove_reader(terminal)

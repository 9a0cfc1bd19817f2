"""A Python process of Fairlead's own that dies with its parent, and the pipe between the two."""

import asyncio
import os
import socket
import sys
from typing import Any

from fairlead.log.setup import inherited_settings, set_up_logging
from fairlead.store.engine.exec_tied import die_with
from fairlead.worker.pipe import MessagePipe
from fairlead.worker.signals import leave_signals_to_the_parent


async def start_child(
    module: str, *files: int, **options: Any
) -> tuple[asyncio.subprocess.Process, MessagePipe]:
    """Runs `module`, which calls `become_child`; `files` are the descriptors that it inherits."""
    ours, theirs = socket.socketpair()
    with theirs:
        # First the pipe: a call that is cancelled meanwhile must not leave a process that nobody knows.
        pipe = await MessagePipe.over(ours)
        passed = [theirs.fileno(), *files]
        arguments = [str(number) for number in (os.getpid(), *passed)]
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", module, *arguments, pass_fds=passed, **options
            )
        except BaseException:  # cancelled, say: a process that was started ends when it finds nobody here
            pipe.cut()
            raise
    return process, pipe


def become_child() -> tuple[socket.socket, list[int]]:
    """In the new process: its end of the pipe, and the other descriptors that it inherited."""
    parent, fd, *files = (int(argument) for argument in sys.argv[1:])
    if sys.platform == "linux" and not die_with(parent):
        sys.exit()
    set_up_logging(inherited_settings())
    leave_signals_to_the_parent()
    end = socket.socket(fileno=fd)
    end.set_inheritable(False)  # what a handler starts must not hold the pipe open
    return end, files

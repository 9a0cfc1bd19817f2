"""Commands as real processes that need not import anything first: each is forked from one that has."""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

from fairlead.cli import COMMANDS

MODULES = [*{path.partition(":")[0] for path, _ in COMMANDS.values()}, "fairlead.client.client"]


def context() -> ForkServerContext:
    """The server from which they are forked starts with the first of them and ends with the test process."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(MODULES)
    return made


async def run_command(
    arguments: list[str], env: Mapping[str, str], cwd: Path, files: tuple[IO[Any], IO[Any], IO[Any]]
) -> int:
    """`fairlead` with these arguments and standard streams; its exit code."""
    given = (arguments, dict(env), str(cwd))
    process = context().Process(target=_main, args=(*given, [_Stream(file) for file in files]), daemon=True)
    process.start()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
        process.kill()
        process.join()
    assert process.exitcode is not None
    return process.exitcode


class _Stream:
    """A file that is open in the other process too."""

    def __init__(self, file: IO[Any]) -> None:
        self.descriptor = file.fileno()

    def __getstate__(self) -> Any:
        return DupFd(self.descriptor)

    def __setstate__(self, state: Any) -> None:
        self.descriptor = state.detach()


def _main(arguments: list[str], env: dict[str, str], cwd: str, streams: list[_Stream]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.descriptor, number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = arguments
    from fairlead.cli import main

    main()

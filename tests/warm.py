"""`fairlead` as real processes that import nothing first: each is forked from one that has.

Importing takes longer than most of what a test has a command, a gateway or a supervisor do.
"""

import asyncio
import contextlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

from fairlead.cli import COMMANDS
from fairlead.store.engine import exec_tied
from tests import warm_children

MODULES = [
    *{f"fairlead.cli.{path.partition(':')[0]}" for path, _ in COMMANDS.values()},
    "fairlead.api.server",
    "fairlead.client.client",
    "tests.warm",
    *warm_children.MODULES,
    "tests.warm_heap",
]

#: Of a user, but with no processes beside a gateway: each of them takes longer to start than most tests.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "FAIRLEAD_ESTIMATES__ENABLED": "false",
    "FAIRLEAD_HISTORY__ENABLED": "false",
}


def context() -> ForkServerContext:
    """The server from which they are forked starts with the first of them and ends with the test process."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(MODULES)
    return made


def fairlead() -> None:
    from fairlead.cli import main

    main()


class WarmProcess:
    """`fairlead`, or another program, with these arguments and standard streams, in its own session."""

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        out: IO[Any],
        err: IO[Any],
        *,
        stdin: IO[Any] | None = None,
        prepare: Callable[[], None] | None = None,
        program: Callable[[], None] = fairlead,
    ) -> None:
        """`prepare` is called in the new process first."""
        with Path(os.devnull).open() as nothing:
            streams = [_Stream(file.fileno()) for file in (stdin or nothing, out, err)]
            has_session, sender = multiprocessing.Pipe(duplex=False)
            open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
            given = (sender, streams, open_files, list(arguments), dict(env), str(cwd), prepare, program)
            self._process = context().Process(target=_main, args=given, daemon=True)
            self._process.start()
        sender.close()
        with has_session, contextlib.suppress(EOFError):  # it has been killed already
            has_session.recv_bytes()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    @property
    def sentinel(self) -> int:
        """Ready when it has ended, for `multiprocessing.connection.wait`."""
        return self._process.sentinel

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def kill_session(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait_blocking(self, timeout: float) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("fairlead", timeout)
        return self.returncode

    async def wait(self) -> int:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        # a copy: a loop has one reader per descriptor, and several may wait
        sentinel = os.dup(self._process.sentinel)
        loop.add_reader(sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(sentinel)
            os.close(sentinel)
        return self.wait_blocking(10)


class _Stream:
    """A file that is open in the other process too."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __getstate__(self) -> Any:
        return DupFd(self.descriptor)

    def __setstate__(self, state: Any) -> None:
        self.descriptor = state.detach()


def _main(
    has_session: Connection,
    streams: list[_Stream],
    open_files: tuple[int, int],
    arguments: list[str],
    env: dict[str, str],
    cwd: str,
    prepare: Callable[[], None] | None,
    program: Callable[[], None],
) -> None:
    os.setsid()
    has_session.send_bytes(b".")
    has_session.close()
    # a test run that is killed leaves nothing behind: without this pipe the server ends, and we with it
    os.close(forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]
    exec_tied.die_with(os.getppid())
    for number, stream in enumerate(streams):
        os.dup2(stream.descriptor, number)
        # or a pipe would stay open when the process has closed its end
        os.close(stream.descriptor)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)  # noqa: SIM115
    # limits are inherited: here from the process that asked, not from the one that was forked
    resource.setrlimit(resource.RLIMIT_NOFILE, open_files)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = arguments
    warm_children.install()
    if prepare:
        prepare()
    program()

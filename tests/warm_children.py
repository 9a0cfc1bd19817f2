"""Processes that a warm process starts are forked from it: they too need not import anything first.

Installed in warm processes only. Those of commands that tests start by `exec` are started as everywhere.
"""

import asyncio
import contextlib
import gc
import importlib
import os
import signal
import stat
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

MODULES = (
    *("fairlead.app.worker_main", "fairlead.app.handler_process", "fairlead.cli"),
    *("fairlead.api.estimator_process", "fairlead.api.recorder_process"),
)

executed = asyncio.create_subprocess_exec


class Forked:
    """What `asyncio.subprocess.Process` offers, of a process that we have forked."""

    returncode: int | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        # not by a descriptor, for which there may be no room
        threading.Thread(target=self._reap, daemon=True).start()

    def _reap(self) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._end, code)

    def _end(self, code: int) -> None:
        self.returncode = code
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, signal.SIGKILL)


def has_open_sqlite() -> bool:
    """What SQLite knows of its locks would be wrong in a fork, which could then not open the same file."""
    for name in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            if name.readlink().name.endswith("-shm"):
                return True
    return False


async def forked_or_executed(*command: Any, **options: Any) -> Any:
    is_ours = command[:2] == (sys.executable, "-m") and command[2] in MODULES
    if not is_ours or has_open_sqlite():
        return await executed(*command, **options)
    os.close(os.open(os.devnull, os.O_RDONLY))  # as `exec` it fails where there is no room for a file
    sys.stdout.flush()
    sys.stderr.flush()
    # until the new process has none of our handlers: one of them would take a signal that is to end it
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # we have threads
        pid = os.fork()
    if not pid:
        _run(mask, *command[2:], **options)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return Forked(pid)


def install() -> None:
    asyncio.create_subprocess_exec = forked_or_executed


def _run(
    mask: set[int],
    module: str,
    *arguments: str,
    pass_fds: Sequence[int],
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
) -> NoReturn:
    """As `exec` would leave it: without our signal handlers and files."""
    code = 1
    try:
        gc.freeze()  # an object that is freed later must not close a file by a number that is in use again
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _close_all_but({0, 1, 2, *pass_fds})
        if stdin == asyncio.subprocess.DEVNULL:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        sys.argv = [module, *arguments]
        sys.path.insert(0, str(Path.cwd()))
        importlib.import_module(module).main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close_all_but(kept: set[int]) -> None:
    """Also kept are pipes from us to ourselves: libuv has one, without which it aborts."""
    opened = {}
    for name in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself
            opened[int(name.name)] = os.fstat(int(name.name))
    ends = Counter(found.st_ino for found in opened.values() if stat.S_ISFIFO(found.st_mode))
    for number, found in opened.items():
        if number not in kept and ends[found.st_ino] < 2:
            os.close(number)

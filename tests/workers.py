"""`fairlead worker` as an operator runs it: real processes that end with the test."""

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.logs import unexpected_tracebacks
from tests.waiting import wait_until
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[1]
OF_WORKERS = (b"fairlead.app.worker_main", b"multiprocessing.forkserver")  # in their command lines


@dataclass(frozen=True)
class Workers:
    """A supervisor and its worker processes."""

    process: WarmProcess
    log: Path

    def log_text(self) -> str:
        return self.log.read_text()

    def ids(self) -> list[str]:
        """Of all that have registered, in that order."""
        return re.findall(r"worker_started worker=(\S+)", self.log_text())

    def children(self) -> list[int]:
        return worker_processes(self.process.pid)

    async def ready(self, count: int = 1) -> None:
        """Until this number has registered, or it has ended."""
        await wait_until(
            lambda: len(self.ids()) >= count or self.process.returncode is not None,
            40,
            f"{count} workers have started: {self.log_text()}",
        )

    async def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code, after this signal."""
        self.process.send_signal(by)
        return await self.exit_code()

    async def exit_code(self) -> int:
        async with asyncio.timeout(40):
            return await self.process.wait()


@dataclass(frozen=True)
class WorkerLauncher:
    """Where workers run: on which store, with which settings."""

    folder: Path
    where: Callable[[], tuple[str, ...]]  # the options for it; called when a worker is started
    env: Mapping[str, str] = field(default_factory=dict)

    def start(self, target: str, *options: str) -> Workers:
        """`fairlead worker TARGET ...`"""
        log = self.folder / f"worker-{len(list(self.folder.glob('worker-*.log')))}.log"
        env = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **self.env}
        arguments = ("worker", target, *self.where(), *options)
        with log.open("wb") as out:
            return Workers(WarmProcess(arguments, env, self.folder, out, out), log)

    @contextlib.asynccontextmanager
    async def workers(self, target: str, *options: str, ready: int = 1) -> AsyncIterator[Workers]:
        """The same, once this number has registered; what is left of them at the end is killed."""
        workers = self.start(target, *options)
        try:
            await workers.ready(ready)
            yield workers
            assert not unexpected_tracebacks(workers.log_text()), workers.log_text()
        finally:
            workers.process.kill_session()
            await workers.process.wait()


def worker_processes(supervisor: int) -> list[int]:
    """Those it has started or forked, not an embedded server; none if it has ended."""
    try:
        found = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in found if any(word in _command(one) for word in OF_WORKERS)]


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

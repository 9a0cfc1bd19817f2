"""`fairlead worker` as an operator runs it: real processes that end with the test."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from tests.commands import FAIRLEAD
from tests.logs import unexpected_tracebacks
from tests.waiting import wait_until

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Workers:
    """A supervisor and its worker processes."""

    process: asyncio.subprocess.Process
    log: Path

    def said(self) -> str:
        return self.log.read_text()

    def ids(self) -> list[str]:
        """Of all that have registered, in that order."""
        return re.findall(r"worker_started worker=(\S+)", self.said())

    def children(self) -> list[int]:
        """The worker processes, not an embedded server."""
        pid = self.process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(one) for one in found if b"fairlead.app.worker_main" in _command(one)]

    async def ready(self, count: int = 1) -> None:
        """Until so many have registered, or it has ended."""
        await wait_until(
            lambda: len(self.ids()) >= count or self.process.returncode is not None,
            40,
            f"{count} workers have started: {self.said()}",
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
    where: Callable[[], tuple[str, ...]]  # the options that say so; asked when a worker is started

    async def start(self, target: str, *options: str) -> Workers:
        """`fairlead worker TARGET ...`"""
        log = self.folder / f"worker-{len(list(self.folder.glob('worker-*.log')))}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(FAIRLEAD, "worker", target, *self.where(), *options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.folder,
                env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
                start_new_session=True,
            )
        return Workers(process, log)

    @contextlib.asynccontextmanager
    async def workers(self, target: str, *options: str, ready: int = 1) -> AsyncIterator[Workers]:
        """The same, once so many have registered; what is left of them at the end is killed."""
        workers = await self.start(target, *options)
        try:
            await workers.ready(ready)
            yield workers
            assert not unexpected_tracebacks(workers.said()), workers.said()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(workers.process.pid, signal.SIGKILL)
            await workers.process.wait()


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

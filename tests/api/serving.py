"""`fairlead server` as an operator runs it: real processes that end with the test."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from tests.logs import unexpected_tracebacks
from tests.waiting import wait_until
from tests.warm import ENVIRONMENT, WarmProcess


@dataclass(frozen=True)
class Gateway:
    process: WarmProcess
    url: str
    engine: str
    namespace: str
    settings: Settings
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def log_text(self) -> str:
        return self.log.read_text()

    async def ended(self) -> int:
        """Its exit code. A second signal on its way out would end it out of order."""
        async with asyncio.timeout(40):
            return await self.process.wait()

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """It finds everything that happens meanwhile at once when it resumes."""
        status = Path(f"/proc/{self.process.pid}/stat")
        self.process.send_signal(signal.SIGSTOP)
        try:
            await wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "T")
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def serving(
    engine: str,
    namespace: str,
    folder: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    command: str = "server",
    port: int = 0,
    failing: tuple[str, ...] = (),
    prepare: Callable[[], None] | None = None,
) -> Iterator[Gateway]:
    """Until the block ends; then it must end itself, with 0; only `failing` events may have a traceback."""
    env = {"HOME": str(folder), **ENVIRONMENT, **(env or {})}
    log = folder / f"server-{len(list(folder.glob('server-*.log')))}.log"
    where = ("--engine", engine) if engine else ("--data", str(folder))
    arguments = (command, *where, "--namespace", namespace, "--port", str(port), *options)
    reading, writing = os.pipe()
    with log.open("w") as err, os.fdopen(writing, "w") as out:
        process = WarmProcess(arguments, env, folder, out, err, prepare=prepare)
    with os.fdopen(reading) as printed:
        try:
            yield Gateway(process, address(printed, log), engine, namespace, load_settings(None, env), log)
            process.terminate()
            assert process.wait_blocking(30) == 0, log.read_text()
            assert not unexpected_tracebacks(log.read_text(), *failing), log.read_text()
        finally:
            process.kill_session()


def address(printed: IO[str], log: Path) -> str:
    line = printed.readline()
    match = re.match(r"Fairlead listens at (http://\S+)", line)
    assert match, line + log.read_text()
    return match[1]

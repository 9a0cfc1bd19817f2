"""`fairlead server` as an operator runs it: real processes that end with the test."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from tests.commands import FAIRLEAD
from tests.logs import unexpected_tracebacks
from tests.waiting import wait_until


@dataclass(frozen=True)
class Gateway:
    process: subprocess.Popen[str]
    url: str
    engine: str
    namespace: str
    settings: Settings
    log: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def said(self) -> str:
        return self.log.read_text()

    async def ended(self) -> None:
        """Once it was told to stop: a second signal on its way out would end it out of order."""
        await asyncio.to_thread(self.process.wait, 30)

    @contextlib.asynccontextmanager
    async def standing_still(self) -> AsyncIterator[None]:
        """Whatever happens meanwhile, it finds at once when it goes on."""
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
    program: Sequence[str] = (FAIRLEAD,),
) -> Iterator[Gateway]:
    """Until the block ends; then it must end itself, with 0; only `failing` events may have a traceback."""
    env = {"HOME": str(folder), "PATH": "/usr/bin:/bin", **(env or {})}
    log = folder / f"server-{len(list(folder.glob('server-*.log')))}.log"
    where = ("--engine", engine) if engine else ("--data", str(folder))
    with log.open("w") as err:
        process = subprocess.Popen(
            [*program, command, *where, "--namespace", namespace, "--port", str(port), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            env=env,
            cwd=folder,
            start_new_session=True,
        )
    try:
        yield Gateway(process, address(process, log), engine, namespace, load_settings(None, env), log)
        process.terminate()
        assert process.wait(timeout=30) == 0, log.read_text()
        assert not unexpected_tracebacks(log.read_text(), *failing), log.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def address(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout
    line = process.stdout.readline()
    said = re.match(r"Fairlead listens at (http://\S+)", line)
    assert said, line + log.read_text()
    return said[1]

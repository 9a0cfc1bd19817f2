"""Processes that open the engine of a folder, print what they got, and then wait."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import redis

from fairlead.store.engine import process as server_process
from fairlead.store.engine.engine import open_engine
from tests.waiting import wait_until
from tests.warm import WarmProcess

ROOT = Path(__file__).parent.parent


@dataclass
class EngineProcess:
    """A process that opens the engine of a folder and holds it open; what it reads and prints."""

    process: WarmProcess
    typed: IO[str]
    printed: IO[str]
    owned: bool = False  # when it has opened it
    url: str = ""

    async def close(self) -> None:
        """Let it close its engine and end."""
        self.typed.write("\n")
        self.typed.flush()
        await self._end()

    async def kill(self) -> None:
        self.process.kill()
        await self._end()

    async def _end(self) -> None:
        await self.process.wait()
        self.typed.close()
        self.printed.close()


def launch(data: Path, *flags: str) -> EngineProcess:
    (stdin, typed), (printed, out) = os.pipe(), os.pipe()
    assert sys.__stderr__
    with os.fdopen(stdin) as reads, os.fdopen(out, "w") as prints:
        process = WarmProcess(
            (str(data), *flags), os.environ, ROOT, prints, sys.__stderr__, stdin=reads, program=run
        )
    return EngineProcess(process, os.fdopen(typed, "w"), os.fdopen(printed))


async def opened(launched: EngineProcess) -> EngineProcess:
    line = await asyncio.to_thread(launched.printed.readline)
    assert line, "the process ended before it had an engine"
    return replace(launched, **json.loads(line))


def server_pid(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def is_running(pid: int) -> bool:
    """Whether the process is there and not a zombie, which nobody may reap in a container."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


async def kill(pid: int) -> None:
    """SIGKILL, and wait for the end: until then its sockets are open, and new connections are cut off."""
    os.kill(pid, signal.SIGKILL)
    await wait_until(lambda: not is_running(pid), because=f"the killed process {pid} is gone")


def run() -> None:
    data, *flags = sys.argv[1:]
    if "--untied" in flags:  # as on macOS, which cannot kill a child with its parent
        server_process._tied_to_this_process = lambda command: command
    asyncio.run(_hold_open(Path(data)))


async def _hold_open(data: Path) -> None:
    async with await open_engine(data) as engine:
        print(json.dumps({"owned": engine.owned, "url": engine.url}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)

"""Processes that open the engine: `python -m tests.engine_processes DATA` prints what it got, then waits."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import dataclass
from pathlib import Path

import redis

from fairlead.store.engine import process as server_process
from fairlead.store.engine.engine import open_engine
from tests.waiting import wait_until

ROOT = Path(__file__).parent.parent


@dataclass
class EngineProcess:
    """A process that has opened the engine of a folder and holds it open."""

    process: Process
    owned: bool
    url: str

    async def close(self) -> None:
        """Let it close its engine and end."""
        await self.process.communicate(b"\n")

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()


async def launch(data: Path, *flags: str) -> Process:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.engine_processes", str(data), *flags, stdin=PIPE, stdout=PIPE, env=env
    )


async def opened(process: Process) -> EngineProcess:
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "the process ended before it had an engine"
    return EngineProcess(process, **json.loads(line))


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


async def _main(data: Path) -> None:
    async with await open_engine(data) as engine:
        print(json.dumps({"owned": engine.owned, "url": engine.url}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    if "--untied" in sys.argv:  # as on macOS, which cannot kill a child with its parent
        server_process._tied_to_this_process = lambda command: command
    asyncio.run(_main(Path(sys.argv[1])))

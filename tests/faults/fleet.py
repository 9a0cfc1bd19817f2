"""Real worker processes to break: `fairlead worker` in process groups that end with the test."""

import asyncio
import contextlib
import itertools
import os
import re
import signal
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from fairlead.settings import LeaseSettings, RetrySettings, Settings, WorkerSettings
from tests.waiting import wait_until
from tests.warm import WarmProcess
from tests.workers import worker_processes

ROOT = Path(__file__).parents[2]

#: Leases short enough to wait for.
HASTE = Settings(
    worker=WorkerSettings(heartbeat_seconds=0.5, missed_heartbeats=4),
    lease=LeaseSettings(grace_seconds=1),
    retry=RetrySettings(base_seconds=0.1, max_seconds=1),
)
LEASE = HASTE.lease_ms / 1000


def with_lease(seconds: float) -> Settings:
    """Just as fast, except for a lease that does not expire on a busy machine."""
    beats = round(seconds / HASTE.worker.heartbeat_seconds)
    return replace(HASTE, worker=replace(HASTE.worker, missed_heartbeats=beats))


def file_of(settings: Settings) -> str:
    return f"""
[worker]
heartbeat_seconds = {settings.worker.heartbeat_seconds}
missed_heartbeats = {settings.worker.missed_heartbeats}
[lease]
grace_seconds = {settings.lease.grace_seconds}
[retry]
base_seconds = {settings.retry.base_seconds}
max_seconds = {settings.retry.max_seconds}
"""


@dataclass
class Crew:
    """One supervisor and its worker processes; the ids of its workers begin with its name."""

    name: str
    process: WarmProcess
    log: Path
    processes: int

    def log_text(self) -> str:
        return self.log.read_text()

    def manned(self) -> bool:
        """Whether all of its places have a registered worker."""
        started = set(re.findall(r"worker_started worker=(\S+)", log := self.log_text()))
        gone = set(re.findall(r"worker_(?:died|ended) worker=(\S+)", log))
        return len(started - gone) == self.processes and len(self.children()) == self.processes

    def children(self) -> list[int]:
        return worker_processes(self.process.pid)

    def signal(self, number: signal.Signals) -> None:
        """To the supervisor and all it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    async def end(self) -> int:
        """Drained, as by an operator; the exit code."""
        self.process.terminate()
        return await self.process.wait()


@dataclass
class Fleet:
    """Starts crews on one store; what is left of them at the end is killed."""

    where: tuple[str, ...]  # options that name the store
    folder: Path
    more_settings: str = ""  # as in the file
    settings: Settings = HASTE
    app: str = "tests.apps.faults:fl"
    env: dict[str, str] = field(default_factory=dict)
    crews: list[Crew] = field(default_factory=list)
    names: "itertools.count[int]" = field(default_factory=itertools.count)

    async def __aenter__(self) -> "Fleet":
        (self.folder / "fleet.toml").write_text(file_of(self.settings) + self.more_settings)
        return self

    async def __aexit__(self, *_: object) -> None:
        for crew in self.crews:
            crew.signal(signal.SIGKILL)
        await asyncio.gather(*(crew.process.wait() for crew in self.crews))

    async def start(self, processes: int = 1, capacity: int = 4, *where: str) -> Crew:
        """Some other way to the store may be given."""
        name = f"crew{next(self.names)}"
        size = ("--processes", str(processes), "--capacity", str(capacity))
        log = self.folder / f"{name}.log"
        arguments = ("worker", self.app, *size, *(where or self.where), "--name", name, "--grace", "1")
        config = ("--config", str(self.folder / "fleet.toml"))
        env = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), **self.env}
        with log.open("wb") as out:
            process = WarmProcess((*arguments, *config), env, self.folder, out, out)
        crew = Crew(name, process, log, processes)
        self.crews.append(crew)
        return crew

    async def man(self, *crews: Crew) -> None:
        """Until these, or all, have all of their workers."""
        for crew in crews or self.crews:
            await wait_until(crew.manned, 40, f"the workers of {crew.name} have started")

    def crew_of(self, pid: int) -> Crew:
        """Of any process that belongs to it."""
        return next(crew for crew in self.crews if crew.process.pid == os.getpgid(pid))

    async def replace(self, crew: Crew, capacity: int) -> Crew:
        """After its supervisor was killed."""
        await crew.process.wait()
        self.crews.remove(crew)
        return await self.start(crew.processes, capacity)

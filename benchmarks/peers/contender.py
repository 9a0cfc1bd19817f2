"""One queue in the run: its producer and its worker as processes, and the records its jobs leave."""

import asyncio
import contextlib
import json
import os
import secrets
import struct
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from benchmarks.peers import processes
from benchmarks.peers.table import Peer

ROOT = Path(__file__).parents[2]
ADAPTERS = Path(__file__).parent / "adapters"
RECORDS = "bench:records"
LOOK_EVERY = 0.005  # seconds
LONGEST = 900.0  # seconds; a run that takes longer has failed
LONGEST_LINE = 2**20


class Failed(Exception):
    """A queue did not do what it should; the others continue."""


@dataclass(frozen=True, slots=True)
class Record:
    number: int
    at: int  # ns of the machine's monotonic clock


@dataclass(frozen=True, slots=True)
class Submitted:
    began: int
    ended: int

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e9


@dataclass(frozen=True, slots=True)
class Producer:
    process: Process
    log: Path

    async def submit(
        self, first: int, count: int, *, bulk: bool = False, seconds: float = 0, priority: str | None = None
    ) -> Submitted:
        """Has `count` jobs queued, numbered from `first`; each takes this number of seconds."""
        request = {"first": first, "count": count, "bulk": bulk, "seconds": seconds, "priority": priority}
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(LONGEST):
            answer = await self.process.stdout.readline()
        if not answer:
            raise Failed(f"its producer ended: {_last_line(self.log)}")
        return Submitted(**json.loads(answer))


@dataclass(frozen=True, slots=True)
class Worker:
    process: Process
    log: Path

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.process.pid)

    async def kill(self) -> None:
        if self.process.returncode is None:
            processes.kill(self.process.pid)
        await self.process.wait()


@dataclass(frozen=True, slots=True)
class Contender:
    peer: Peer
    home: Path  # of its environment
    url: str
    lease: int  # seconds
    logs: Path
    client: Redis

    @contextlib.asynccontextmanager
    async def producer(self) -> AsyncIterator[Producer]:
        log = self.logs / f"{self.peer.name}-producer.log"
        if self.peer.runs_on == "node":
            command = ["node", str(ADAPTERS / f"{self.peer.name}.mjs"), "producer"]
        else:
            command = [str(self.home / "bin" / "python"), "-m", "benchmarks.peers.producer", self.peer.name]
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=file,
                env=self._environment(),
                cwd=ROOT,
                limit=LONGEST_LINE,
            )
        try:
            yield Producer(process, log)
        finally:
            if process.returncode is None:
                processes.kill(process.pid)
            await process.wait()

    @contextlib.asynccontextmanager
    async def worker(self) -> AsyncIterator[Worker]:
        log = self.logs / f"{self.peer.name}-worker.log"
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *self._worker_command(),
                stdin=DEVNULL,
                stdout=file,
                stderr=file,
                env=self._environment(),
                cwd=ROOT,
            )
        worker = Worker(process, log)
        try:
            yield worker
        finally:
            await worker.kill()

    async def wait_for(self, count: int, worker: Worker, within: float = LONGEST) -> int:
        """Waits for this number of records; returns how many there are."""
        ends = time.monotonic() + within
        while (there := int(await self.client.llen(RECORDS))) < count:
            if worker.process.returncode is not None:
                raise Failed(f"its worker ended: {_last_line(worker.log)}")
            if time.monotonic() > ends:
                raise Failed(f"{there:,} of {count:,} jobs were done after {within:.0f} s")
            await asyncio.sleep(LOOK_EVERY)
        return there

    async def records(self) -> list[Record]:
        left: list[Any] = await self.client.lrange(RECORDS, 0, -1)
        return [Record(*struct.unpack("<qq", one)) for one in left]

    def _worker_command(self) -> list[str]:
        values = {
            "bin": self.home / "bin",
            "adapter": f"benchmarks.peers.adapters.{self.peer.name}",
            "file": ADAPTERS / f"{self.peer.name}.mjs",
            "capacity": self.peer.capacity,
        }
        return [part.format(**values) for part in self.peer.worker]

    def _environment(self) -> Mapping[str, str]:
        return os.environ | {
            "BENCH_URL": self.url,
            "BENCH_CAPACITY": str(self.peer.capacity),
            "BENCH_LEASE": str(self.lease),
            "BENCH_HOME": str(self.home),
            # one for each process: the data is deleted between scenarios, which is no loss to report
            "FAIRLEAD_ENGINE__STATE": str(self.logs / f"state-{secrets.token_hex(4)}"),
            "PYTHONPATH": str(ROOT),
        }


def _last_line(log: Path) -> str:
    return (log.read_text(errors="replace").strip().splitlines() or ["it said nothing"])[-1]

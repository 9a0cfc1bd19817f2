"""What the scenarios share: servers, stores on them, work to fill them with, the server's own counters."""

import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from fairlead.model.task import MOST_PER_CALL, NewTask
from fairlead.settings import Admission, Settings
from fairlead.store.address import make_client
from fairlead.store.store import Store
from tests.servers import running

WORKER = "bench"
HOUR = 3_600_000  # ms: no lease ends while something is measured
NO_BOUNDS = Admission(max_queued=1_000_000_000, max_queued_per_user=1_000_000_000, max_task_types=1_000_000)
SETTINGS = Settings(admission=NO_BOUNDS)

EMBEDDED = ("--hash-max-listpack-value", "1024")  # as the embedded server is started
NO_AOF = (*EMBEDDED, "--appendonly", "no")
EVERYSEC = (*EMBEDDED, "--appendonly", "yes", "--appendfsync", "everysec")
TICKS = os.sysconf("SC_CLK_TCK")
ALWAYS = (*EMBEDDED, "--appendonly", "yes", "--appendfsync", "always")
SHOWN_SETTINGS = ("appendonly", "appendfsync", "hash-max-listpack-value", "hash-max-listpack-entries", "save")

namespaces = itertools.count()


@dataclass(frozen=True, slots=True)
class Bench:
    """How to run: on which server ("valkey", "redis" or a URL), and whether only to see that it runs.

    `customers`: how many `breadth` has; None: its default. `traces`: the folder with traces to replay.
    """

    server: str = "valkey"
    quick: bool = False
    customers: int | None = None
    traces: Path | None = None

    @property
    def own(self) -> bool:
        """Servers are started for the run; otherwise an existing one is used, with its settings."""
        return "://" not in self.server

    @contextlib.contextmanager
    def serve(self, *options: str, kind: str | None = None) -> Iterator[str]:
        """The URL of a fresh server with these options, or of the one that was named."""
        if not self.own:
            yield self.server
            return
        with running(kind or self.server, *options) as server:
            yield server.url

    def require_private_server(self) -> None:
        """For scenarios that read the server's slow log, which they configure for themselves."""
        if not self.own:
            raise SystemExit("this scenario needs a private server: --server valkey or --server redis")

    @contextlib.asynccontextmanager
    async def store(self, url: str, settings: Settings = SETTINGS) -> AsyncIterator[Store]:
        """A store on its own namespace, which is wiped at the end when the server is not ours."""
        async with Store.connect(url, f"bench-{os.getpid()}-{next(namespaces)}", settings) as store:
            try:
                yield store
            finally:
                if not self.own:
                    await _wipe(store)


async def _wipe(store: Store) -> None:
    client, batch = store.connection.client, []
    async for key in client.scan_iter(match=store.connection.keys.prefix + "*", count=1000):
        batch.append(key)
        if len(batch) == 1000:
            await client.unlink(*batch)
            batch.clear()
    if batch:
        await client.unlink(*batch)


def small_task(n: int = 1, **fields: Any) -> NewTask:
    return NewTask(task_type="echo", parameters={"n": n}, **fields)


async def fill(store: Store, count: int, **fields: Any) -> None:
    """Queues `count` small tasks; their events are dropped, as by a recorder that keeps up."""
    for start in range(0, count, MOST_PER_CALL):
        await store.submit(
            *(small_task(n, **fields) for n in range(start, min(start + MOST_PER_CALL, count)))
        )
        await drop_events(store)


async def drop_events(store: Store) -> None:
    await store.connection.client.xtrim(store.connection.keys.key("events"), maxlen=0, approximate=False)


async def register(store: Store, capacity: int = 10_000) -> None:
    await store.workers.register(WORKER, capacity=capacity)


async def scripts_ran(client: Redis) -> tuple[int, int]:
    """Microseconds and calls of all scripts so far; what a script calls is in its time."""
    stats = await client.info("commandstats")
    ran = [stats[name] for name in ("cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval") if name in stats]
    return sum(one["usec"] for one in ran), sum(one["calls"] for one in ran)


async def server_cpu(client: Redis) -> float:
    """Seconds of CPU the server has used."""
    cpu = await client.info("cpu")
    return float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def describe(url: str) -> Mapping[str, str]:
    """Name, version and settings of a server, as far as it reports them."""
    client = make_client(url)
    try:
        info = await client.info("server")
        name = "valkey" if "valkey_version" in info else "redis"
        known = {"name": name, "version": str(info[f"{name}_version"]), "over": url.partition(":")[0]}
        with contextlib.suppress(Exception):  # a managed service may forbid CONFIG
            for setting in SHOWN_SETTINGS:
                known[setting] = str((await client.config_get(setting))[setting])
        return known
    finally:
        await client.aclose()

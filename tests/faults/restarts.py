"""A durable server that is killed and started again under load, any number of times."""

import asyncio
import contextlib
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from fairlead.store.store import Store
from tests.faults.fleet import LEASE, Fleet
from tests.faults.history import History, Verdict
from tests.faults.killable import KillableServer
from tests.faults.kills import CAPACITY, spread
from tests.faults.load import Load
from tests.waiting import wait_until


class Durable(KillableServer):
    """A server that syncs before it answers."""

    options = ("--appendonly", "yes", "--appendfsync", "always")

    def now_ms(self) -> int:
        with redis.Redis.from_url(self.url) as client:
            seconds, microseconds = client.time()
        return int(seconds * 1000 + microseconds // 1000)


@contextlib.contextmanager
def durable() -> Iterator[Durable]:
    folder = Path(tempfile.mkdtemp(prefix="fl-test-"))
    server = Durable(folder)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


class Breaker:
    """Kills the server and starts it again while all workers are at work."""

    def __init__(self, server: Durable, history: History, workers: int) -> None:
        self.resumed: list[int] = []  # for each worker and restart: ms from the server's return to its claim
        self._server = server
        self._history = history
        self._workers = workers

    async def restart(self, outages: list[float]) -> None:
        for seconds in outages:
            await self._all_claim(self._server.now_ms())
            self._server.kill()
            await asyncio.sleep(seconds)
            await self._server.start()
            back = self._server.now_ms()
            self.resumed += [at - back for at in (await self._all_claim(back)).values()]

    async def _all_claim(self, since: int) -> dict[str, int]:
        """Waits until every worker has claimed something since then; when each did first."""
        known, first = len(self._history.events), dict[str, int]()

        def all_have() -> bool:
            for event in self._history.events[known:]:
                if event.act == "claim" and event.at >= since:
                    first.setdefault(event.worker, event.at)
            return len(first) >= self._workers  # more when one was replaced meanwhile

        await wait_until(all_have, 40, "every worker claims")
        return first


async def play(
    store: Store,
    server: Durable,
    fleet: Fleet,
    history: History,
    seed: int,
    *,
    tasks: int,
    outages: list[float],
    crews: int,
) -> tuple[Verdict, dict[str, Any]]:
    """A restart for each outage of this many seconds; returns the history and the figures."""
    began, workers = time.monotonic(), 2 * crews
    for _ in range(crews):
        await fleet.start(2, CAPACITY)
    await fleet.man()
    load = Load(store, history, random.Random(seed), waiting=3 * workers * CAPACITY)
    breaker = Breaker(server, history, workers)
    breaking = asyncio.create_task(breaker.restart(outages))
    await load.feed(lambda fed: breaking.done() and fed >= tasks)
    await breaking
    verdict = await load.end()
    return verdict, {
        "seed": seed,
        "workers": workers,
        "tasks": len(load.needs),
        "restarts": len(outages),
        "longer_than_a_lease": sum(seconds > LEASE for seconds in outages),
        "starts": verdict.starts,
        "runs_lost": len(verdict.losses),
        "ends": dict(verdict.ends),
        "lease_ms": round(LEASE * 1000),
        "ms_until_each_worker_claimed": spread(breaker.resumed),
        "seconds": round(time.monotonic() - began),
    }

"""The store loses everything in the middle of the work, and a server restores it from the history."""

import asyncio
import contextlib
import random
import re
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from fairlead.history.database import open_database
from fairlead.history.generations import generations_of
from fairlead.history.opening import History
from fairlead.model.job import ENDED
from fairlead.model.states import TERMINAL
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.faults.fleet import Fleet
from tests.faults.loss import Forgetful, Record, forgetful
from tests.waiting import wait_until

CLIENTS = 4
AT_ONCE = 4  # as the app's limit says
SECONDS = 0.02  # of a run
JOBS = 0.1  # the share of the submits that are jobs
OVER = frozenset({*TERMINAL, *ENDED})


@dataclass
class Site:
    server: Forgetful
    gateway: Gateway
    history: History
    record: Record
    folder: Path


@contextlib.asynccontextmanager
async def site(folder: Path, durability: str, url: str, processes: int = 2) -> AsyncIterator[Site]:
    """A server that restores by itself from the database with this URL, and workers."""
    env = {"DATABASE_URL": url, "FAIRLEAD_HISTORY__ENABLED": "true"}
    settings = f'[engine]\ndurability = "{durability}"\n'
    history = History(open_database(url), "default")
    with forgetful() as server:
        await server.start()
        app = "tests.apps.returning:fl"
        async with Fleet(("--engine", server.url), folder, settings, app=app, env=env) as fleet:
            config = ("--config", str(folder / "fleet.toml"))
            with serving(server.url, "default", folder, *config, "--auto-restore", env=env) as gateway:
                await fleet.start(processes)
                await fleet.man()
                await wait_until(partial(_has_begun, history), 20, "the recorder has begun")
                try:
                    yield Site(server, gateway, history, Record(folder / "record"), folder)
                finally:
                    await history.close()


@dataclass
class Clients:
    """Submit tasks and jobs, and repeat what was refused under the same key."""

    site: Site
    dice: random.Random
    total: int
    begun: int = 0
    answered: list[str] = field(default_factory=list)
    refused: int = 0

    async def run(self, losses: int) -> None:
        losing = asyncio.create_task(self._lose(losses))
        async with httpx.AsyncClient(base_url=self.site.gateway.url, timeout=30, trust_env=False) as http:
            await asyncio.gather(*(self._submit_all(http) for _ in range(CLIENTS)))
        await losing

    async def _lose(self, losses: int) -> None:
        for number in range(losses):
            due = self.total * (number + self.dice.uniform(0.3, 0.7)) / losses
            await wait_until(partial(self._has_answered, due), 120, "submits are answered")
            refused = self.refused
            self.site.server.flush()
            await wait_until(partial(self._has_refused, refused + 1), 20, "the loss is noticed")

    def _has_answered(self, least: float) -> bool:
        return len(self.answered) >= least

    def _has_refused(self, least: int) -> bool:
        return self.refused >= least

    async def _submit_all(self, http: httpx.AsyncClient) -> None:
        while self.begun < self.total:
            self.begun += 1
            work = {"record": str(self.site.folder / "record"), "seconds": SECONDS}
            key = f"key-{self.begun}"
            if self.dice.random() < JOBS:
                body = {"user_id": "ann", "feature_name": "two_steps", "input_data": work}
                await self._submit(http, "/api/v1/jobs", "job_id", body | {"idempotency_key": key})
            else:
                body = {"task_type": "hold", "parameters": work, "idempotency_key": key}
                await self._submit(http, "/api/v1/tasks", "task_id", body)

    async def _submit(self, http: httpx.AsyncClient, path: str, field: str, body: dict[str, Any]) -> None:
        while True:
            answer = await http.post(path, json=body)
            if answer.status_code in (200, 201):
                self.answered.append(answer.json()[field])
                return
            assert answer.status_code in (503, 422), answer.text  # 422: its pipeline is declared again soon
            self.refused += 1
            await asyncio.sleep(0.05)


async def play(site: Site, seed: int, *, submits: int, losses: int) -> dict[str, Any]:
    """What happened. Fails when work is missing that the server's log does not list, or a fence repeats."""
    began = time.monotonic()
    clients = Clients(site, random.Random(seed), submits)
    await clients.run(losses)
    acknowledged = set(clients.answered)
    store = Store.connect(site.server.url)
    await wait_until(
        lambda: _is_over(store, site.history, acknowledged), 60 + submits / 20, "all work has ended"
    )
    lost = acknowledged - (await _states(site.history)).keys()
    listed = set(re.findall(r"(?:task|job):([0-9a-f-]{36})", site.gateway.log_text()))
    assert lost <= listed, (seed, lost - listed)
    fences, by_task = site.record.fences(), defaultdict[str, list[int]](list)
    for word, task, fence in site.record.lines():
        if word == "began":
            by_task[task].append(int(fence))
    assert len(set(fences)) == len(fences), (seed, "a fence was given twice")
    assert all(sorted(given) == given for given in by_task.values()), (seed, "a fence is not the newest")
    assert site.record.most_at_once() <= AT_ONCE, seed
    assert await examine(store.connection) == [], seed
    await store.close()
    return {
        "acknowledged": len(acknowledged),
        "losses": losses,
        "missing": len(lost),
        "listed": len(listed),
        "ran_again": len(fences) - len(by_task),
        "seconds": round(time.monotonic() - began, 1),
    }


async def _has_begun(history: History) -> bool:
    return bool(await generations_of(history))


async def _states(history: History) -> dict[str, str]:
    """By the latest life of each id."""
    found = dict[str, str]()
    for table in ("tasks", "jobs"):
        found |= dict(await history.database.read(f"SELECT id, status FROM {table} ORDER BY place"))
    return found


async def _is_over(store: Store, history: History, acknowledged: set[str]) -> bool:
    lag = await store.outbox.lag()
    if lag is None or lag.events:
        return False
    states = await _states(history)
    return all(states[one] in OVER for one in acknowledged & states.keys())

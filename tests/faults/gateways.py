"""kill -9 of gateways under clients that repeat unanswered requests with their idempotency keys."""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx

from fairlead.store.store import Store
from tests.engine_processes import is_running
from tests.servers import free_port
from tests.waiting import wait_until
from tests.warm import ENVIRONMENT, WarmProcess

TASKS = "/api/v1/tasks"
GIVES_UP = 0.1  # the share of submits that are not repeated: each has one task or none


@dataclass
class Server:
    """`fairlead server` on its own port; started again there after it was killed."""

    command: tuple[str, ...]
    folder: Path
    processes: int
    port: int = field(default_factory=free_port)
    process: WarmProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        arguments = (*self.command, "--port", str(self.port), "--processes", str(self.processes))
        env = {"HOME": str(self.folder), **ENVIRONMENT}
        reading, writing = os.pipe()
        with (self.folder / f"server-{self.port}.log").open("ab") as log, os.fdopen(writing, "w") as out:
            self.process = WarmProcess(arguments, env, self.folder, out, log)
        with os.fdopen(reading) as printed:
            line = await asyncio.to_thread(printed.readline)
        assert line.startswith("Fairlead listens"), line
        await wait_until(self.is_manned, 40)

    def children(self) -> list[int]:
        assert self.process
        pid = self.process.pid
        with contextlib.suppress(OSError):
            return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return []

    def is_manned(self) -> bool:
        return self.processes == 1 or len(self.children()) == self.processes

    async def strike(self, dice: random.Random) -> str:
        """Kills it, or one of its processes, which it replaces itself; returns what was killed."""
        assert self.process
        if self.processes > 1 and dice.random() < 0.9:
            os.kill(dice.choice(self.children()), signal.SIGKILL)
            await wait_until(self.is_manned, 40)
            return "process"
        children = self.children()
        await self.kill()
        await wait_until(lambda: not any(map(is_running, children)))  # they have the port
        await self.start()
        return "server"

    async def kill(self) -> None:
        if self.process and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


class Servers:
    """`async with Servers(...) as servers:` they run."""

    def __init__(self, where: tuple[str, ...], folder: Path, *processes: int) -> None:
        self.all = [Server(("server", *where), folder, count) for count in processes]

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(server.start() for server in self.all))
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(server.kill() for server in self.all))


@dataclass
class Clients:
    """Submits `total` tasks through any server that answers, in step with the kills."""

    servers: Servers
    dice: random.Random
    total: int
    kills: int
    answered: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # task ids by key
    abandoned: set[str] = field(default_factory=set)
    killed: Counter[str] = field(default_factory=Counter)
    shares_killed: int = 0
    begun: int = 0  # submits
    ended: int = 0  # submits
    under_way: int = 0  # requests
    unanswered: int = 0  # requests that were sent
    done_unanswered: int = 0  # those of them that had made their task, as the answer to the next one shows

    async def run(self, count: int) -> None:
        striking = asyncio.create_task(self._strike())
        # a connection for each request: those that are kept would all end at the process that lives longest
        limits = httpx.Limits(max_connections=count, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=20, limits=limits) as http:
            await asyncio.gather(*(self._submit_all(http) for _ in range(count)))
        await striking

    async def _strike(self) -> None:
        """At least one kill in each share of the tasks, and more until one of them has hit a request."""
        for share in range(self.kills):
            await self._until_ended(share + self.dice.uniform(0.1, 0.5))
            hit = False
            while not hit:
                await wait_until(lambda: self.under_way, 60, "requests are under way")
                self.killed[await self.dice.choice(self.servers.all).strike(self.dice)] += 1
                hit = self.unanswered > 0
            self.shares_killed += 1

    async def _until_ended(self, shares: float) -> None:
        due = self.total * shares / self.kills
        await wait_until(lambda: self.ended >= due, 60, f"{due} submits have ended")

    async def _submit_all(self, http: httpx.AsyncClient) -> None:
        while self.begun < self.total:
            key = f"key-{self.begun}"
            self.begun += 1
            while not self._has_its_kill():  # there are always requests for a kill to hit
                await self._submit(http, "repeated", patient=True)
            await self._submit(http, key, patient=self.dice.random() >= GIVES_UP)
            self.ended += 1

    def _has_its_kill(self) -> bool:
        """Whether the kill of the previous share is over: so every share sees one."""
        return self.ended * self.kills <= self.total * (self.shares_killed + 1)

    async def _submit(self, http: httpx.AsyncClient, key: str, patient: bool) -> None:
        body = {"task_type": "echo", "parameters": {"key": key}, "idempotency_key": key}
        unsure = False
        while True:
            self.under_way += 1
            try:
                answer = await http.post(self.dice.choice(self.servers.all).url + TASKS, json=body)
            except httpx.TransportError as error:
                self.unanswered += not isinstance(error, httpx.ConnectError)
                unsure = True
                if not patient:
                    self.abandoned.add(key)
                    return
                continue
            finally:
                self.under_way -= 1
            assert answer.status_code in (200, 201), answer.text
            self.done_unanswered += unsure and answer.status_code == 200 and key not in self.answered
            self.answered[key].append(answer.json()["task_id"])
            if patient or self.dice.random() < 0.5:  # some ask again although they were answered
                return
            patient = True


async def play(
    store: Store, servers: Servers, seed: int, *, clients: int, submits: int, kills: int
) -> dict[str, Any]:
    """What happened; fails when a task is missing, or there are two for one key."""
    began = time.monotonic()
    crowd = Clients(servers, random.Random(seed), submits, kills)
    await crowd.run(clients)
    kept = await tasks_by_key(store)
    lost = {key: ids for key, ids in crowd.answered.items() if kept.get(key) != [ids[0]] or len(set(ids)) > 1}
    doubled = {key: ids for key, ids in kept.items() if len(ids) > 1}
    unexpected = kept.keys() - crowd.answered.keys() - crowd.abandoned
    assert not (lost or doubled or unexpected), (seed, lost, doubled, unexpected)
    return {
        "seed": seed,
        "clients": clients,
        "kills": dict(crowd.killed),
        "acknowledged": len(crowd.answered),
        "acknowledged_and_missing": len(lost),
        "keys_with_two_tasks": len(doubled),
        "requests_unanswered": crowd.unanswered,
        "unanswered_but_done": crowd.done_unanswered,
        "given_up": {
            "with_a_task": len(crowd.abandoned & kept.keys()),
            "without": len(crowd.abandoned - kept.keys()),
        },
        "seconds": round(time.monotonic() - began),
    }


async def tasks_by_key(store: Store) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    cursor = ""
    while True:
        page = await store.list_tasks(limit=1000, cursor=cursor)
        for task in page.tasks:
            assert task.parameters == {"key": task.idempotency_key}
            ids = found[task.idempotency_key or ""]
            if task.task_id not in ids:  # a page may show one again
                ids.append(task.task_id)
        if not (cursor := page.next_cursor):
            return dict(found)

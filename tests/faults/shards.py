"""Namespaces on the shards of a real cluster under load, while shards fail over and slots are moved."""

import asyncio
import contextlib
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uuid_utils

from fairlead.errors import StoreUnavailable
from fairlead.model.states import TERMINAL, State
from fairlead.settings import Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.serving import Gateway, serving
from tests.clusters import Cluster, on_each_shard, slot_of
from tests.connections import patient_store
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

CAPACITY = 3
AT_LEAST = 20  # tasks of each namespace, before and after each fault
APP = "tests.apps.sharing:fl"
KEPT = ("--appendonly", "yes")  # so that a node that is started again has its data


class Load:
    """Submits tasks through the gateway all the time, and repeats each with its id until it is accepted."""

    def __init__(self, gateway: Gateway, namespaces: Sequence[str], record: Path) -> None:
        self.accepted: dict[str, list[str]] = {name: [] for name in namespaces}
        self._gateway, self._record = gateway, record

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with httpx.AsyncClient(base_url=self._gateway.url, timeout=40, trust_env=False) as http:
            stop = asyncio.Event()
            submitting = [asyncio.create_task(self._submit(http, name, stop)) for name in self.accepted]
            try:
                yield
            finally:
                stop.set()
                await asyncio.gather(*submitting)

    async def _submit(self, http: httpx.AsyncClient, name: str, stop: asyncio.Event) -> None:
        parameters = {"record": str(self._record), "label": name}
        while not stop.is_set():
            body = {"task_type": "step", "task_id": str(uuid_utils.uuid7()), "parameters": parameters}
            await wait_until(partial(self._accepts, http, name, body), 60, "it is accepted")
            self.accepted[name].append(body["task_id"])  # type: ignore[arg-type]
            await asyncio.sleep(0.01)

    async def _accepts(self, http: httpx.AsyncClient, name: str, body: dict[str, Any]) -> bool:
        answer = await http.post("/api/v1/tasks", json=body, headers={"fairlead-namespace": name})
        assert answer.is_success or answer.status_code == 503, answer.text
        return answer.is_success

    async def more(self, *names: str) -> None:
        """Until each of these has accepted more tasks; all of them by default."""
        wanted = {name: len(self.accepted[name]) + AT_LEAST for name in names or self.accepted}
        await wait_until(
            lambda: all(len(self.accepted[name]) >= count for name, count in wanted.items()), 60, str(wanted)
        )


@dataclass
class Scene:
    """A gateway and a worker process for a namespace on each shard."""

    deployed: Cluster
    names: list[str]
    load: Load
    stores: dict[str, Store]
    record: Path
    fail_over_seconds: list[float] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    async def kill_primary(self, number: int) -> None:
        """While no primary serves this namespace, those on other shards accept tasks."""
        name, primary = self.names[number], self.deployed.primary_of(self.names[number])
        assert primary
        others = [one for one in self.names if self.deployed.primary_of(one) is not primary]
        primary.kill()
        began = time.monotonic()
        if others:
            await self.load.more(*others)
        await self.deployed.has_primary(name, other_than=primary)
        self.fail_over_seconds.append(time.monotonic() - began)
        await self.load.more()

    async def move(self, number: int, dice: random.Random) -> None:
        """The slot of a namespace goes to another shard."""
        owner = self.deployed.primary_of(self.names[number])
        target = dice.choice([node for node in self.deployed.masters() if node is not owner])
        self.deployed.move(slot_of(self.names[number]), target)
        await self.load.more()

    async def end(self) -> None:
        """Everything that was accepted is completed, and every invariant holds."""
        await wait_until(self._are_done, 60, "all tasks have ended")
        states = [
            (await store.get(task_id)).status
            for name, store in self.stores.items()
            for task_id in self.load.accepted[name]
        ]
        breaches = [breach for store in self.stores.values() for breach in await examine(store.connection)]
        assert (set(states), breaches) == ({State.COMPLETED}, [])
        most = most_at_once(self.record)
        assert most == CAPACITY
        accepted = {name: len(ids) for name, ids in self.load.accepted.items()}
        self.figures = {"accepted": accepted, "most_at_once": most}

    async def _are_done(self) -> bool:
        # the first call after a move learns where the namespace is
        with contextlib.suppress(StoreUnavailable):
            for name, store in self.stores.items():
                for task_id in self.load.accepted[name]:
                    if (await store.get(task_id)).status not in TERMINAL:
                        return False
            return True
        return False


@contextlib.asynccontextmanager
async def scene(deployed: Cluster, folder: Path) -> AsyncIterator[Scene]:
    names, record = on_each_shard("team-"), folder / "record"
    (folder / "fairlead.toml").write_text("".join(f"[namespaces.{name}]\n" for name in names))
    launcher = WorkerLauncher(folder, lambda: ("--engine", deployed.url, "--capacity", str(CAPACITY)))
    options = [option for name in names for option in ("--namespace", name)]
    with serving(deployed.url, names[0], folder) as gateway:
        async with launcher.workers(APP, *options, ready=len(names)), opened(deployed.url, names) as stores:
            made = Scene(deployed, names, Load(gateway, names, record), stores, record)
            async with made.load.running():
                await made.load.more()
                yield made
            await made.end()


@contextlib.asynccontextmanager
async def opened(url: str, names: Sequence[str]) -> AsyncIterator[dict[str, Store]]:
    stores = {name: patient_store(url, name, Settings()) for name in names}
    for store in stores.values():
        await store.epochs.join()
    yield stores
    for store in stores.values():
        await store.close()


async def play(deployed: Cluster, folder: Path, seed: int, rounds: int) -> dict[str, Any]:
    """Kills primaries, which are started again, and moves slots, at random."""
    dice = random.Random(seed)
    async with scene(deployed, folder) as made:
        for _ in range(rounds):
            number = dice.randrange(len(made.names))
            if dice.random() < 0.5:
                await made.move(number, dice)
            else:
                await made.kill_primary(number)
                for node in deployed.nodes:
                    if node not in deployed.alive:
                        node.start()
                await wait_until(deployed.is_whole, 60, "the node that was killed follows")
    times = sorted(made.fail_over_seconds)
    figures: dict[str, Any] = {"faults": rounds, "primaries_killed": len(times)}
    figures["slots_moved"] = rounds - len(times)
    if times:
        ms = [round(1000 * seconds) for seconds in times]
        figures["ms_until_a_replica_took_over"] = {"median": statistics.median_low(ms), "max": ms[-1]}
    return {**figures, **made.figures}


def most_at_once(record: Path) -> int:
    running = most = 0
    for line in record.read_text().splitlines():
        running += 1 if line.startswith("+") else -1
        most = max(most, running)
    return most

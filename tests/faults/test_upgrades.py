"""A rolling restart: the previous release and this version side by side on one namespace, and back."""

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from fairlead.model.states import State
from fairlead.settings import Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.connections import patient_store
from tests.servers import Server
from tests.store.namespace import raw, wipe
from tests.versions import Running, Version, previous_release, this_version
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

GPUS = 2
APP = f"""
import asyncio
import os
from pathlib import Path

from fairlead import Context, Fairlead

fl = Fairlead()
fl.limit("gpu", {GPUS})
label = os.environ["VERSION"]


@fl.task(limits={{"gpu": 1}})
async def draw(ctx: Context) -> str:
    note(f"+ {{label}} {{ctx.task_id}} {{ctx.fence}}")
    await asyncio.sleep(0.02)
    note(f"- {{label}} {{ctx.task_id}} {{ctx.fence}}")
    return label


def note(line: str) -> None:
    with Path("record").open("a") as out:
        out.write(line + "\\n")
"""


@pytest.fixture
def old(tmp_path_factory: pytest.TempPathFactory) -> Version:
    return previous_release(tmp_path_factory.mktemp("previous"))


class Deployment:
    """What an operator has started of both versions."""

    def __init__(self, engine: str, namespace: str, folder: Path) -> None:
        self.where = ("--engine", engine, "--namespace", namespace)
        self.folder = folder
        self.submitted: list[str] = []
        self._running: list[Running] = []
        (folder / "tasks.py").write_text(APP)

    def start(self, version: Version, *arguments: str) -> Running:
        self._running.append(version.start(self.folder, *arguments, *self.where))
        return self._running[-1]

    async def gateway(self, version: Version) -> tuple[Running, str]:
        gateway = self.start(version, "server", "--port", "0")
        return gateway, await gateway.said(r"listens at (http://\S+)")

    async def worker(self, version: Version) -> Running:
        worker = self.start(version, "worker", "tasks:fl", "--capacity", "3")
        await worker.said("worker_started")
        return worker

    async def submit(self, url: str, count: int = 30) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=40, trust_env=False) as http:
            for _ in range(count):
                answer = await http.post("/api/v1/tasks", json={"task_type": "draw"})
                assert answer.status_code == 201, answer.text
                self.submitted.append(answer.json()["task_id"])

    def record(self) -> list[list[str]]:
        path = self.folder / "record"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def runs(self) -> Counter[str]:
        """How many runs each version has begun."""
        return Counter(label for sign, label, _, _ in self.record() if sign == "+")

    def close(self) -> None:
        for one in self._running:
            one.kill()


@pytest.fixture
def deployment(start_server: Callable[[str], Server], tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(start_server("valkey").url, f"upgrade-{os.getpid()}", tmp_path)
    yield made
    made.close()


@contextlib.asynccontextmanager
async def opened(deployment: Deployment) -> AsyncIterator[Store]:
    _, engine, _, namespace = deployment.where
    store = patient_store(engine, namespace, Settings())
    yield store
    assert await examine(store.connection) == []
    await wipe(store)
    await store.close()


async def test_two_versions_work_side_by_side_and_back(deployment: Deployment, old: Version) -> None:
    new = this_version()
    async with opened(deployment) as store:

        async def all_done() -> bool:
            states = {(await store.get(task)).status for task in deployment.submitted}
            return states == {State.COMPLETED}

        old_gateway, old_url = await deployment.gateway(old)
        old_worker = await deployment.worker(old)
        await deployment.submit(old_url)
        new_worker = await deployment.worker(new)
        new_gateway, new_url = await deployment.gateway(new)
        before = deployment.runs()
        await asyncio.gather(deployment.submit(old_url), deployment.submit(new_url))
        await wait_until(all_done)
        assert all((deployment.runs() - before)[label] for label in ("old", "new")), deployment.runs()
        assert [await one.end() for one in (old_gateway, old_worker)] == [0, 0]
        await deployment.submit(new_url)
        await wait_until(all_done)
        # and back: what this version wrote is no obstacle for the previous one
        old_worker = await deployment.worker(old)
        assert [await one.end() for one in (new_gateway, new_worker)] == [0, 0]
        _, old_url = await deployment.gateway(old)
        await deployment.submit(old_url)
        await wait_until(all_done)
    record, running, most = deployment.record(), 0, 0
    for sign, *_ in record:
        running += 1 if sign == "+" else -1
        most = max(most, running)
    assert most == GPUS
    starts = [task for sign, _, task, _ in record if sign == "+"]
    assert sorted(starts) == sorted(deployment.submitted), "each ran once"


async def test_the_previous_release_refuses_a_newer_schema_and_changes_nothing(
    deployment: Deployment, old: Version
) -> None:
    async with opened(deployment) as store:
        await store.open()
        await raw(store).hset(store.connection.keys.meta, "schema", SCHEMA + 1)
        for arguments in (("server", "--port", "0"), ("worker", "tasks:fl")):
            refused = deployment.start(old, *arguments)
            assert await refused.exit_code() != 0
            assert f"has schema {SCHEMA + 1}, this Fairlead knows" in refused.log.read_text()
        await raw(store).hset(store.connection.keys.meta, "schema", SCHEMA)


async def test_when_a_newer_release_migrates_the_namespace_running_processes_stop_and_lose_nothing(
    deployment: Deployment,
) -> None:
    """What a rolling restart over a new schema does to the processes of this version."""
    new = this_version()
    async with opened(deployment) as store:
        _, url = await deployment.gateway(new)
        worker = await deployment.worker(new)
        await deployment.submit(url)
        await wait_until(lambda: len(deployment.record()) > 10)
        meta = store.connection.keys.meta
        await raw(store).hset(meta, "schema", SCHEMA + 1)
        refusal = f"has schema {SCHEMA + 1}, this Fairlead knows {SCHEMA}: upgrade it"
        await worker.said(f"fairlead: Namespace .*{refusal}")
        async with httpx.AsyncClient(base_url=url, timeout=40, trust_env=False) as http:
            answer = await http.post("/api/v1/tasks", json={"task_type": "draw"})
            assert (answer.status_code, answer.json()["code"]) == (503, "schema_too_new")
            assert refusal in answer.json()["detail"]
            assert (await http.get("/readyz")).status_code == 503
        # here the newer release would go on; this version stands for it
        await raw(store).hset(meta, "schema", SCHEMA)

        async def all_done() -> bool:
            states = {(await store.get(task)).status for task in deployment.submitted}
            return states == {State.COMPLETED}

        await deployment.worker(new)
        await wait_until(all_done, 60)

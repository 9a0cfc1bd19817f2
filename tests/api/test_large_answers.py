"""Answers are bounded in bytes, whatever is stored: a page ends early, and says where to continue."""

import asyncio
from pathlib import Path

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings
from fairlead.store.pages import PAGE_BYTES
from fairlead.store.store import Store
from tests.api.requests import TASKS, HttpWorker, good, ids, submit
from tests.api.serving import Gateway
from tests.store.namespace import new

LARGE = 200 * 1024
MOST = PAGE_BYTES + 2 * LARGE  # a page ends behind the task that fills it


@pytest.fixture
async def large(store: Store) -> list[str]:
    """Tasks of 10 MB."""
    tasks = [new(parameters={"n": n, "x": "x" * LARGE}) for n in range(50)]
    await store.submit(*tasks)
    return [task.task_id for task in tasks]


async def test_a_list_ends_early_and_nothing_is_missing(api: httpx.AsyncClient, large: list[str]) -> None:
    found, cursor = list[str](), ""
    while cursor is not None:
        answer = await api.get(TASKS, params={"limit": 1000, "cursor": cursor})
        assert len(answer.content) < MOST
        page = good(answer)
        assert all(one["parameters"]["x"] == "x" * LARGE for one in page["tasks"])
        found += ids(page["tasks"])
        cursor = page["next_cursor"]
    assert sorted(found) == sorted(large)


async def test_dead_letters_end_early_and_nothing_is_missing(
    api: httpx.AsyncClient, gateway: Gateway, store: Store, large: list[str]
) -> None:
    worker = await HttpWorker.register(api, capacity=100)
    for _ in large:
        good(await worker.fail(await worker.poll_one(), message="no", retriable=False))
    found, cursor = list[str](), ""
    while cursor is not None:
        answer = await api.get("/api/v1/dlq", params={"limit": 1000, "cursor": cursor})
        assert len(answer.content) < MOST
        found += ids(good(answer)["tasks"])
        cursor = answer.json()["next_cursor"]
    assert sorted(found) == sorted(large)
    in_store = await store.dead_letters.page(40)
    assert 0 < len(in_store.tasks) < 40, "a page is up to 1 MiB, whoever asks"
    async with Client(Settings(engine=EngineSettings(url=gateway.url))) as client:
        page = await client.dead_letters.page(40)
    assert [one.task_id for one in page.tasks] == [one.task_id for one in in_store.tasks]
    replayed = good(await api.post("/api/v1/dlq/replay"))["replayed"]
    assert sorted(replayed) == sorted(large)


async def test_output_ends_early_and_nothing_is_missing(api: httpx.AsyncClient, gateway: Gateway) -> None:
    task_id = (await submit(api))["task_id"]
    worker = await HttpWorker.register(api)
    await worker.poll_one()
    chunks = [f"{n}:{'x' * 60_000}" for n in range(60)]
    report = {"task_id": task_id, "output": chunks}
    good(await worker.post("progress", reports=[report]))
    found, after = list[str](), 0
    while after is not None:
        answer = await api.get(f"{TASKS}/{task_id}/outputs", params={"after": after})
        assert len(answer.content) < MOST
        found += [one["chunk"] for one in good(answer)["outputs"]]
        after = answer.json()["next_after"]
    assert found == chunks
    async with Client(Settings(engine=EngineSettings(url=gateway.url))) as client:
        assert [one.chunk for one in await client.outputs(task_id)] == chunks


@pytest.mark.timeout(180)
async def test_readers_of_lists_cost_little_memory(gateway: Gateway, store: Store) -> None:
    """Small things in lists take a multiple of their bytes once they are read."""
    await store.submit(*[new(parameters={"x": [[]] * 80_000}) for _ in range(100)])

    def peak_mib() -> int:
        status = Path(f"/proc/{gateway.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) // 1024

    before = peak_mib()
    # without the check of the contract, which takes seconds for so much
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as http:
        for answer in await asyncio.gather(*(http.get(TASKS, params={"limit": 1000}) for _ in range(6))):
            assert answer.status_code == 200 and len(answer.content) > PAGE_BYTES
    assert peak_mib() - before < 100

"""Clients and workers of a gateway that asks for keys."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.client.client import Client
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.serving import Gateway
from tests.client.conftest import client_of
from tests.commands import Shell
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

TARGET = "tests.apps.draining:fl"

Keys = Callable[..., Awaitable[str]]


@pytest.fixture
async def keys(client: Client, store: Store) -> AsyncIterator[Keys]:
    """Makes keys; the gateway has noticed that there are some."""

    async def make(*scopes: str, tenant: str | None = None) -> str:
        return (await store.api_keys.create("somebody", scopes, tenant=tenant)).key_text

    await make("read")

    async def asks() -> bool:
        try:
            await client.list_tasks()
        except errors.NotAllowed:
            return True
        return False

    await wait_until(asks)
    yield make


async def test_a_key_opens_what_it_has_the_scope_for(gateway: Gateway, keys: Keys) -> None:
    async with client_of(gateway.url, await keys("submit")) as client:
        await client.submit_one(NewTask(task_type="a"))
        with pytest.raises(errors.NotAllowed, match="'read'"):
            await client.list_tasks()
    async with client_of(gateway.url, "flk_wrong") as client:
        with pytest.raises(errors.NotAllowed, match="unknown, expired or revoked"):
            await client.submit_one(NewTask(task_type="a"))


async def test_a_key_that_may_only_submit_does_not_declare(gateway: Gateway, keys: Keys) -> None:
    async with client_of(gateway.url, await keys("submit", tenant="acme")) as client:
        await client.declare("code", {}, {"gpu": Slots(limit=1)})
        await client.submit_one(NewTask(task_type="a"))


async def test_the_id_of_another_tenants_task_reveals_nothing(
    gateway: Gateway, store: Store, keys: Keys
) -> None:
    theirs = NewTask(task_type="a", tenant="acme")
    await store.submit_one(theirs)
    async with client_of(gateway.url, await keys("submit", tenant="other")) as client:
        own = await client.submit_one(NewTask(task_type="a", task_id=theirs.task_id))
        assert own.task_id != theirs.task_id and not own.repeated
        again = await client.submit_one(NewTask(task_type="a", task_id=theirs.task_id))
        assert (again.task_id, again.repeated) == (own.task_id, True)
        with pytest.raises(errors.IdempotencyConflict):  # of its own task
            await client.submit_one(NewTask(task_type="b", task_id=theirs.task_id))


async def test_a_tenants_key_gets_the_tenants_numbers(gateway: Gateway, store: Store, keys: Keys) -> None:
    for tenant in ("acme", "acme", "other"):
        await store.submit_one(NewTask(task_type="a", tenant=tenant, priority="high"))
    key = await keys("read", tenant="acme")
    async with client_of(gateway.url, key) as client:
        seen = await client.stats()
        assert (seen.queues["high"].depth, seen.held, seen.workers) == (2, 0, [])
    async with client_of(gateway.url, await keys("read")) as client:
        assert (await client.stats()).queues["high"].depth == 3


async def test_fairlead_stats_works_with_a_tenants_key(
    gateway: Gateway, store: Store, keys: Keys, tmp_path: Path
) -> None:
    await store.submit_one(NewTask(task_type="a", tenant="acme", priority="high"))
    await store.submit_one(NewTask(task_type="a", priority="high"))
    shell = Shell(tmp_path, ("--url", gateway.url, "--key", await keys("read", tenant="acme")))
    ended = await shell.run("stats")
    assert (ended.code, ended.err) == (0, "")
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["running", "0"] in lines and not any(line[:1] == ["workers"] for line in lines)
    assert next(line for line in lines if line[:1] == ["high"])[1] == "1"


async def test_a_worker_without_the_scope_reports_it_and_ends(
    gateway: Gateway, keys: Keys, tmp_path: Path
) -> None:
    key = await keys("read")
    workers = WorkerLauncher(tmp_path, lambda: ("--url", gateway.url, "--key", key)).start(TARGET)
    assert await workers.exit_code() == 2
    assert "'worker'" in workers.log_text()
    assert "--key" in workers.log_text()


async def test_a_worker_with_the_scope_works(
    gateway: Gateway, store: Store, keys: Keys, tmp_path: Path
) -> None:
    key = await keys("worker")
    async with WorkerLauncher(tmp_path, lambda: ("--url", gateway.url, "--key", key)).workers(
        TARGET
    ) as workers:
        task = NewTask(task_type="pid")
        await store.submit_one(task)

        async def has_ended() -> bool:
            return (await store.get(task.task_id)).result is not None

        await wait_until(has_ended)
        assert await workers.end() == 0
    assert key not in workers.log_text()

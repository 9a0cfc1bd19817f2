"""What has left the store is found over HTTP, by those to whom it belongs."""

from collections.abc import Mapping

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings
from fairlead.store.store import Store
from tests.api.key_holders import Keys
from tests.api.requests import TASKS, good, ids, refused, submit
from tests.api.serving import Gateway
from tests.commands import Shell
from tests.store.namespace import raw
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server_env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    path = tmp_path_factory.mktemp("history") / "history.sqlite3"
    return {"FAIRLEAD_HISTORY__ENABLED": "true", "FAIRLEAD_HISTORY__URL": f"sqlite:///{path}"}


async def recorded_and_gone(store: Store, *task_ids: str) -> None:
    """As if their retention were over."""

    async def is_recorded() -> bool:
        stats = await store.stats()
        return stats.history_lag_seconds is not None and stats.unrecorded_events == 0

    await wait_until(is_recorded)
    for task_id in task_ids:
        await raw(store).delete(store.connection.keys.key("task", task_id))


async def clients_and_commands_find_it(api: httpx.AsyncClient, store: Store, gateway: Gateway) -> None:
    task_id = (await submit(api, "draw", concurrency_group="gpu", concurrency_limit=1))["task_id"]
    await api.delete(f"{TASKS}/{task_id}")
    await recorded_and_gone(store, task_id)
    async with Client(Settings(engine=EngineSettings(url=gateway.url))) as client:
        page = await client.list_tasks(since=1_600_000_000_000, needs="gpu", error=None)
        assert [task.task_id for task in page.tasks] == [task_id]
        assert [event.act for event in (await client.history(task_id)).events] == ["submit", "cancel"]
    shell = Shell(gateway.log.parent, ("--url", gateway.url))
    listed = await shell.run("task", "list", "--since", "1h", "--needs", "gpu")
    assert task_id in listed.out and "cancelled" in listed.out
    assert "submit" in (await shell.run("task", "history", task_id)).out


async def a_tenant_finds_its_own(api: httpx.AsyncClient, store: Store, keys: Keys) -> None:
    ann, bob = [{"Authorization": f"Bearer {await keys.make(tenant=name)}"} for name in ("ann", "bob")]

    async def keys_are_required() -> bool:
        return (await api.get(TASKS)).status_code == 401

    await wait_until(keys_are_required)
    api.headers.update(ann)
    task_id = (await submit(api, "draw", user_id="u"))["task_id"]
    waiting = (await submit(api, "draw"))["task_id"]
    good(await api.delete(f"{TASKS}/{task_id}"))
    await recorded_and_gone(store, task_id)
    assert good(await api.get(f"{TASKS}/{task_id}"))["status"] == "cancelled"
    assert ids(good(await api.get(TASKS))["tasks"]) == [waiting, task_id]
    query = {"since": "2020-01-01T00:00:00Z", "status": "cancelled"}
    assert ids(good(await api.get(TASKS, params=query))["tasks"]) == [task_id]
    events = good(await api.get(f"{TASKS}/{task_id}/history"))["events"]
    assert [(one["seq"], one["act"], one["from"], one["to"]) for one in events] == [
        (1, "submit", "", "queued"),
        (2, "cancel", "queued", "cancelled"),
    ]
    refused(await api.delete(f"{TASKS}/{task_id}"), 409, "already_finished")
    refused(await api.get(TASKS, params={"since": "yesterday"}), 422, "invalid_input", "since")
    named = {"tenant": "ann"}
    for address in (TASKS, "/api/v1/jobs"):
        assert good(await api.get(address, params=named))
        refused(await api.get(address, params={"tenant": "bob"}), 403, "forbidden")
    everybodys = {"Authorization": f"Bearer {await keys.make()}"}
    found = good(await api.get(TASKS, params=named, headers=everybodys))["tasks"]
    assert [task["task_id"] for task in found] == [waiting, task_id]
    assert good(await api.get(TASKS, params={"tenant": "bob"}, headers=everybodys))["tasks"] == []
    api.headers.update(bob)
    assert good(await api.get(TASKS))["tasks"] == []
    for address in (f"{TASKS}/{task_id}", f"{TASKS}/{task_id}/history"):
        refused(await api.get(address), 404, "unknown_task")


async def test_the_past_is_found_by_those_to_whom_it_belongs(
    api: httpx.AsyncClient, store: Store, gateway: Gateway
) -> None:
    """One test: after each the store is made to forget how many events there were."""
    await clients_and_commands_find_it(api, store, gateway)
    await a_tenant_finds_its_own(api, store, Keys(store))

"""One gateway for several namespaces: the key names it, or a header; what is in the others does not exist."""

import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.errors import UnknownNamespace
from fairlead.model.task import NewTask
from fairlead.settings import EngineSettings, Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.key_holders import bearer
from tests.api.requests import TASKS, good, refused
from tests.api.serving import Gateway, serving
from tests.commands import Shell
from tests.connections import patient_store
from tests.servers import Server
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

FILE = """
[limits]
gpu = 1
[namespaces.blue]
limits = { gpu = 2 }
promotion = { budget = 7 }
[namespaces.green]
"""
NAMES = ("home", "blue", "green")


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("served")
    (folder / "fairlead.toml").write_text(FILE)
    env = {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}
    with serving(start_server("valkey").url, "home", folder, env=env) as gateway:
        yield gateway


@contextlib.asynccontextmanager
async def opened(gateway: Gateway, *names: str) -> AsyncIterator[dict[str, Store]]:
    made = {name: patient_store(gateway.engine, name, Settings()) for name in names}
    for name, store in made.items():
        await wait_until(partial(_has_opened, gateway, name))  # the first to open sets the policy
        await store.open(govern=False)
    yield made
    for store in made.values():
        assert not await examine(store.connection)
        await store.close()


async def _has_opened(gateway: Gateway, name: str) -> bool:
    async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as client:
        return (await client.get("/api/v1/limits", headers=named(name))).status_code < 500


@pytest.fixture
async def stores(gateway: Gateway) -> AsyncIterator[dict[str, Store]]:
    async with opened(gateway, *NAMES) as made:
        yield made


@pytest.fixture
async def api(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as client:
        yield client


def named(name: str) -> dict[str, str]:
    return {"fairlead-namespace": name}


async def submitted(api: httpx.AsyncClient, **headers: str) -> str:
    made = good(await api.post(TASKS, json={"task_type": "draw"}, headers=headers), 201)
    return str(made["task_id"])


async def test_without_keys_the_header_names_the_namespace(
    api: httpx.AsyncClient, stores: dict[str, Store]
) -> None:
    made = {name: await submitted(api, **named(name)) for name in NAMES}
    made_at_home = await submitted(api)
    assert good(await api.get("/api/v1/session"))["namespaces"] == sorted(NAMES)
    for name, store in stores.items():
        known = {task.task_id for task in (await store.list_tasks()).tasks}
        assert known >= {made[name]}
        assert known.isdisjoint(task for other, task in made.items() if other != name)
        foreign = [made[other] for other in NAMES if other != name]
        answers = [await api.get(f"{TASKS}/{task}", headers=named(name)) for task in foreign]
        assert [answer.status_code for answer in answers] == [404, 404]
    good(await api.get(f"{TASKS}/{made_at_home}", headers=named("home")))
    refused(await api.get(TASKS, headers=named("red")), 404, "unknown_namespace")


async def test_each_has_its_own_limits_and_policy(api: httpx.AsyncClient, stores: dict[str, Store]) -> None:
    async def limits(name: str) -> dict[str, int]:
        found = good(await api.get("/api/v1/limits", headers=named(name)))["limits"]
        return {limit["name"]: limit["limit"] for limit in found}

    assert [await limits(name) for name in NAMES] == [{"gpu": 1}, {"gpu": 2}, {}]
    settings = good(await api.get("/api/v1/settings", headers=named("blue")))["settings"]
    budget = next(one for one in settings if one["setting"] == "promotion.budget")
    assert (budget["value"], budget["source"]) == (7, "fairlead.toml, line 6")
    assert {store.connection.keys.namespace for store in stores.values()} == set(NAMES)


async def test_upkeep_runs_in_each(stores: dict[str, Store]) -> None:
    for store in stores.values():
        task = await store.submit_one(NewTask(task_type="draw", delay_seconds=0.05))

        async def is_queued(store: Store = store, task_id: str = task.task_id) -> bool:
            return str((await store.get(task_id)).status) == "queued"

        await wait_until(is_queued)


async def test_a_client_names_its_namespace(gateway: Gateway, stores: dict[str, Store]) -> None:
    def client(name: str) -> Client:
        return Client(Settings(engine=EngineSettings(url=gateway.url, namespace=name)))

    async with client("blue") as blue, client("red") as red:
        task = await blue.submit_one(NewTask(task_type="draw"))
        assert (await stores["blue"].get(task.task_id)).task_type == "draw"
        with pytest.raises(UnknownNamespace):
            await red.list_tasks()


async def test_a_worker_claims_from_several_through_the_gateway(
    gateway: Gateway, stores: dict[str, Store], tmp_path: Path
) -> None:
    (tmp_path / "now").touch()
    launcher = WorkerLauncher(tmp_path, lambda: ("--url", gateway.url, "--capacity", "1"))
    named = ("--namespace", "blue", "--namespace", "green")
    async with launcher.workers("tests.apps.sharing:fl", *named, ready=2) as workers:
        for name in ("blue", "green", "blue"):
            new = NewTask(task_type="until", parameters={"path": str(tmp_path / "now")})
            task = (await stores[name].submit_one(new)).task_id

            async def is_done(store: Store = stores[name], task_id: str = task) -> bool:
                return str((await store.get(task_id)).status) == "completed"

            await wait_until(is_done)
        assert await workers.end() == 0


async def test_one_without_its_data_leaves_the_server_ready(
    api: httpx.AsyncClient, gateway: Gateway, stores: dict[str, Store]
) -> None:
    green = stores["green"].connection
    meta: dict[Any, Any] = await green.client.hgetall(green.keys.meta)
    await green.client.delete(green.keys.meta)

    async def is_noticed() -> bool:
        return (await api.get("/readyz", headers=named("green"))).status_code == 503

    try:
        await wait_until(is_noticed)
        assert good(await api.get("/readyz")) == {"status": "ready", "not_ready": ["green"]}
        assert good(await api.get("/readyz", headers=named("blue"))) == {"status": "ready"}
        await wait_until(lambda: "not_ready reason=store_lost" in gateway.log_text())
        assert "namespace=green" in gateway.log_text()
    finally:
        await green.client.hset(green.keys.meta, mapping=meta)

    async def is_ready() -> bool:
        return (await api.get("/readyz", headers=named("green"))).status_code == 200

    await green.client.hdel(green.keys.meta, "sealed")
    await wait_until(is_ready)


@pytest.fixture
async def locked(gateway: Gateway, tmp_path: Path) -> AsyncIterator[Gateway]:
    """Another server, of namespaces with keys."""
    (tmp_path / "fairlead.toml").write_text("[namespaces.one]\n[namespaces.two]\n")
    env = {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}
    with serving(gateway.engine, "own", tmp_path, env=env) as other:
        yield other


async def test_with_a_key_in_one_of_them_all_ask_for_keys(locked: Gateway, tmp_path: Path) -> None:
    async with (
        opened(locked, "own", "one", "two") as stores,
        httpx.AsyncClient(base_url=locked.url, timeout=40, trust_env=False) as api,
    ):
        shell = Shell.beside(stores["one"], locked.engine, tmp_path)
        made = await shell.run("key", "create", "--name", "ann", "--scope", "submit,read,admin")

        async def asks() -> bool:
            answers = [await api.get(TASKS, headers=named(name)) for name in stores]
            return {answer.status_code for answer in answers} == {401}

        await wait_until(asks)
        await keys_open_their_own_namespace(api, stores, made.out.strip())


async def keys_open_their_own_namespace(api: httpx.AsyncClient, stores: dict[str, Store], one: str) -> None:
    assert one.endswith(".one")
    two = (await stores["two"].api_keys.create("bob", ["read"])).key_text
    task = await submitted(api, **bearer(one))
    assert (await stores["one"].get(task)).task_type == "draw"
    unknown = await api.get(f"{TASKS}/00000000-0000-7000-8000-000000000000", headers=bearer(two))
    foreign = await api.get(f"{TASKS}/{task}", headers=bearer(two))
    assert (foreign.status_code, foreign.json()) == (404, unknown.json())
    # a key opens its own namespace, whatever else the request says
    refused(await api.get(TASKS, headers={**bearer(one), **named("two")}), 404, "unknown_namespace")
    good(await api.get(TASKS, headers={**bearer(one), **named("one")}))
    wrong: dict[str, Any] = {
        "of another namespace": one.replace(".one", ".two"),
        "of none that is served": one.replace(".one", ".red"),
        "of the gateway's own": one.removesuffix(".one"),
        "of a nonsense name": one + "/..",
    }
    answers = {why: await api.get(TASKS, headers=bearer(key)) for why, key in wrong.items()}
    assert {why: answer.status_code for why, answer in answers.items()} == dict.fromkeys(wrong, 401)
    assert len({json.dumps(answer.json(), sort_keys=True) for answer in answers.values()}) == 1
    ticket = good(await api.post("/api/v1/tickets", headers=bearer(two)), 201)["ticket"]
    assert ticket.endswith(".two")
    assert (await stores["two"].tickets.take(ticket)) is not None

"""Permissions: every route with every kind of key, generated from the table of routes."""

from collections.abc import Mapping

import httpx
import pytest

from fairlead.api.openapi import make_pages
from fairlead.api.server import ROUTES
from fairlead.api.table import Route
from fairlead.model.key import SCOPES
from fairlead.model.reports import Failed
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.requests import BODIES, NO_BLOB, NO_TASK, TASKS, ending, good, ids, refused, submit, task
from tests.api.serving import Gateway
from tests.store.namespace import claim_one
from tests.waiting import wait_until

OPEN = {"/healthz", "/readyz", "/api/v1/session"}


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}  # these tests fail often


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def ask(api: httpx.AsyncClient, route: Route, key: str | None, some_id: str) -> httpx.Response:
    named = {"worker_id": "w", "name": "gpu", "lease_id": "l", "blob": NO_BLOB}
    path = route.path.format(task_id=some_id, job_id=some_id, **named)
    body = BODIES.get(route.body.__name__, {}) if route.body else None
    return await api.request(route.method, ending(path), json=body, headers=bearer(key))


def test_only_these_routes_are_open_to_everybody() -> None:
    assert {route.path for route in ROUTES if route.scope is None} == OPEN
    assert set(make_pages(ROUTES)) == {"/openapi.json", "/docs"}
    assert all(route.scope is None or route.scope in SCOPES for route in ROUTES)


@pytest.mark.timeout(120)
async def test_a_route_asks_for_its_scope_and_nothing_else_opens_it(
    api: httpx.AsyncClient, keys: Keys, store: Store, subtests: pytest.Subtests
) -> None:
    good_key = await keys.make()
    bad = [None, "flk_nonsense", good_key[:-1] + "!", f"flk_aaaaaaaa_{good_key[13:]}"]
    bad += [await keys.expired(), await keys.revoked()]
    of_scope = {scope: await keys.make(scope) for scope in SCOPES}
    for route in ROUTES:
        with subtests.test(route=name_of(route)):
            for key in bad:
                answer = await ask(api, route, key, NO_TASK)
                if route.scope is None:
                    assert answer.status_code == (401 if route.body else 200), "a key may be in the body"
                else:
                    refused(answer, 401, "unauthorized")
                    assert answer.headers["www-authenticate"].startswith("Bearer")
            for scope, key in of_scope.items():
                answer = await ask(api, route, key, NO_TASK)
                if route.body and route.scope is None:
                    refused(answer, 401, "unauthorized")
                elif route.scope in (None, scope):
                    assert answer.status_code not in (401, 403), answer.text
                else:
                    assert repr(route.scope) in refused(answer, 403, "forbidden")["detail"]


async def test_the_key_may_be_sent_in_no_other_way(api: httpx.AsyncClient, keys: Keys) -> None:
    key = await keys.make()
    for headers in ({"authorization": key}, {"authorization": f"Basic {key}"}, {"x-api-key": key}):
        refused(await api.get(TASKS, headers=headers), 401, "unauthorized")
    good(await api.get(TASKS, headers={"authorization": f"bearer {key}"}))
    refused(await api.get(f"{TASKS}?key={key}"), 401, "unauthorized")


async def test_a_revoked_key_ends_at_once(api: httpx.AsyncClient, keys: Keys, store: Store) -> None:
    key = await keys.make()
    good(await api.get(TASKS, headers=bearer(key)))
    await store.api_keys.revoke(key.split("_")[1])

    async def is_refused() -> bool:
        return (await api.get(TASKS, headers=bearer(key))).status_code == 401

    await wait_until(is_refused, 5)  # the notification is on its way to the server
    refused(await api.get(TASKS, headers=bearer(key)), 401, "unauthorized")


async def test_a_lease_is_freed_by_force_with_the_scope_of_admins_alone(
    api: httpx.AsyncClient, keys: Keys
) -> None:
    admin, worker = await keys.make("admin"), await keys.make("worker")
    good(await api.put("/api/v1/limits/gpu", json={"limit": 1}, headers=bearer(admin)))
    leases = "/api/v1/limits/gpu/leases"
    lease = good(await api.post(leases, json={"lease_seconds": 30}, headers=bearer(worker)), 201)
    path = f"{leases}/{lease['lease_id']}"
    problem = refused(await api.delete(f"{path}?force=true", headers=bearer(worker)), 403, "forbidden")
    assert "'admin'" in problem["detail"]
    problem = refused(await api.delete(path, headers=bearer(admin)), 403, "forbidden")
    assert "'worker'" in problem["detail"]
    good(await api.delete(f"{path}?force=true", headers=bearer(admin)))


async def test_a_job_is_resumed_by_force_with_the_scope_of_admins_alone(
    api: httpx.AsyncClient, keys: Keys
) -> None:
    admin, submitter = await keys.make("admin"), await keys.make("submit")
    path = f"/api/v1/jobs/{NO_TASK}/resume"
    problem = refused(await api.post(f"{path}?force=true", headers=bearer(submitter)), 403, "forbidden")
    assert problem["detail"] == "This key lacks the scope 'admin': use one that has it."
    refused(await api.post(path, headers=bearer(submitter)), 404, "unknown_job")
    refused(await api.post(f"{path}?force=true", headers=bearer(admin)), 404, "unknown_job")


async def test_tenants_see_their_own_and_operators_all(
    api: httpx.AsyncClient, keys: Keys, gateway: Gateway
) -> None:
    a, b, all_of_them = [await keys.make(tenant=tenant) for tenant in ("a", "b", None)]
    clients = {
        key: httpx.AsyncClient(base_url=gateway.url, headers=bearer(key), timeout=40)
        for key in (a, b, all_of_them)
    }
    one = await submit(clients[a], idempotency_key="same")
    two = await submit(clients[b], idempotency_key="same")
    assert one["task_id"] != two["task_id"]
    assert (await task(clients[a], one["task_id"]))["tenant"] == "a"
    listed = {key: set(ids(good(await client.get(TASKS))["tasks"])) for key, client in clients.items()}
    assert listed == {
        a: {one["task_id"]},
        b: {two["task_id"]},
        all_of_them: {one["task_id"], two["task_id"]},
    }
    assert (await task(clients[all_of_them], two["task_id"]))["tenant"] == "b"
    for client in clients.values():
        await client.aclose()


async def test_tenants_replay_their_own_dead_letters(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    await store.workers.register("w", capacity=9)
    for tenant in ("a", "b", "a"):
        await store.submit_one(NewTask(task_type="echo", tenant=tenant))
        claimed = await claim_one(store)
        await store.fail("w", Failed(claimed.task_id, claimed.fence, retriable=False))
    mine = bearer(await keys.make(tenant="a"))
    listed = ids(good(await api.get("/api/v1/dlq", headers=mine))["tasks"])
    assert len(listed) == 2
    replayed = good(await api.post("/api/v1/dlq/replay", headers=mine))["replayed"]
    assert sorted(replayed) == sorted(listed)
    assert [one.tenant for one in (await store.dead_letters.page()).tasks] == ["b"]


async def test_the_traceback_of_a_failure_is_for_keys_that_may_read_the_task(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit_one(NewTask(task_type="echo", tenant="a"))
    claimed = await claim_one(store)
    path = f"/api/v1/tasks/{claimed.task_id}"
    error = {
        "message": "out of paint",
        "code": "ValueError",
        "retriable": False,
        "traceback": "Traceback: here",
    }
    body = {"task_id": claimed.task_id, "status": "failed", "fence": claimed.fence, "error": error}
    good(await api.post("/internal/workers/w/result", json=body, headers=bearer(await keys.make())))
    mine = bearer(await keys.make("read", tenant="a"))
    assert good(await api.get(path, headers=mine))["error"] == error
    for listed in (await api.get("/api/v1/tasks", headers=mine), await api.get("/api/v1/dlq", headers=mine)):
        (one,) = good(listed)["tasks"]
        assert one["error"] == error | {"traceback": None}
    for other, status in (
        (await keys.make("read", tenant="b"), 404),
        (await keys.make("submit", "cancel", "worker", tenant="a"), 403),
    ):
        answer = await api.get(path, headers=bearer(other))
        assert answer.status_code == status and "Traceback" not in answer.text


async def test_the_dead_letters_of_a_tenant_are_found_behind_4100_of_another(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    await store.workers.register("w", capacity=1_000)
    for tenant, count in (("a", 3), *[("b", 1_000)] * 4, ("b", 100)):
        await store.submit(*[NewTask(task_type="echo", tenant=tenant) for _ in range(count)])
        failed = 0
        while failed < count:
            tasks = (await store.claim("w", 1_000)).tasks
            await store.fail("w", *[Failed(task.task_id, task.fence, retriable=False) for task in tasks])
            failed += len(tasks)
    mine = bearer(await keys.make(tenant="a"))
    first = good(await api.get("/api/v1/dlq", params={"limit": 2}, headers=mine))
    rest = good(await api.get("/api/v1/dlq", params={"cursor": first["next_cursor"]}, headers=mine))
    assert (len(first["tasks"]), len(rest["tasks"]), rest["next_cursor"]) == (2, 1, None)
    assert {one["tenant"] for one in first["tasks"] + rest["tasks"]} == {"a"}
    assert len(good(await api.post("/api/v1/dlq/replay", headers=mine))["replayed"]) == 3
    assert good(await api.get("/api/v1/dlq", headers=mine))["tasks"] == []


async def test_the_name_of_the_key_is_in_the_audit(api: httpx.AsyncClient, keys: Keys, store: Store) -> None:
    key = await store.api_keys.create("ann", SCOPES)
    good(await api.put("/api/v1/limits/gpu", json={"limit": 1}, headers=bearer(key.key_text)))
    assert (await store.audit.page()).entries[0].actor == "ann"

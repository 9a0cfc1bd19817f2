"""Who may upload and read files, and what tenants see of each other's."""

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests.api.key_holders import Keys, bearer
from tests.api.requests import NO_TASK, TASKS, HttpWorker, good, refused
from tests.api.test_blobs import BLOBS, HELLO, REF, put


@pytest.fixture(scope="module")
def server_env(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return {
        "FAIRLEAD_BLOBS__URL": f"file://{tmp_path_factory.mktemp('blobs')}",
        "FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0",
    }


@pytest.fixture(autouse=True)
def empty(server_env: Mapping[str, str]) -> None:
    for path in Path(server_env["FAIRLEAD_BLOBS__URL"].removeprefix("file://")).rglob("*"):
        if path.is_file():
            path.unlink()


async def test_each_route_asks_for_its_scope(api: httpx.AsyncClient, keys: Keys) -> None:
    task = {"task_id": NO_TASK}
    submits, reads, works = [bearer(await keys.make(scope)) for scope in ("submit", "read", "worker")]
    good(await api.put(BLOBS, content=b"hello", headers=submits), 201)
    for headers in (reads, works):
        refused(await api.put(BLOBS, content=b"hello", headers=headers), 403, "forbidden")
    blob = f"{BLOBS}/sha256:{HELLO}"
    assert (await api.get(blob, headers=reads)).content == b"hello"
    for headers in (submits, works):
        refused(await api.get(blob, headers=headers), 403, "forbidden")
    for headers in (submits, reads):
        refused(await api.get(blob, headers=headers, params=task), 403, "forbidden")
        refused(await api.put(BLOBS, content=b"hello", headers=headers, params=task), 403, "forbidden")
    refused(await api.get(blob, headers=works, params=task), 404, "unknown_task")


async def test_a_tenant_knows_nothing_of_the_files_of_others(api: httpx.AsyncClient, keys: Keys) -> None:
    acme, other = [bearer(await keys.make(tenant=tenant)) for tenant in ("acme", "other")]
    operator = bearer(await keys.make())
    good(await api.put(BLOBS, content=b"hello", headers=acme), 201)
    unknown = (await api.get(f"{BLOBS}/sha256:{'0' * 64}", headers=other)).json()
    for headers in (other, operator):
        assert (await api.get(f"{BLOBS}/sha256:{HELLO}", headers=headers)).json() == unknown
        body = {"task_type": "echo", "parameters": {"source": REF}}
        refused(await api.post(TASKS, json=body, headers=headers), 422, "unknown_blob", "parameters")
        # not even by an answer that it is there already
        good(await api.put(BLOBS, content=b"hello", headers=headers), 201)
    good(await api.put(BLOBS, content=b"hello", headers=acme), 200)


async def test_a_worker_gets_and_makes_files_for_its_task(api: httpx.AsyncClient, keys: Keys) -> None:
    acme, works = bearer(await keys.make(tenant="acme")), bearer(await keys.make("worker"))
    good(await api.put(BLOBS, content=b"hello", headers=acme), 201)
    body = {"task_type": "echo", "parameters": {"source": REF}}
    good(await api.post(TASKS, json=body, headers=acme), 201)
    api.headers.update(works)
    worker = await HttpWorker.register(api)
    task = await worker.poll_one()
    assert task["parameters"]["source"] == REF
    of_task = {"task_id": task["task_id"]}
    assert (await api.get(f"{BLOBS}/{REF['blob']}", params=of_task)).content == b"hello"
    made = good(await put(api, b"loud", **of_task), 201)
    good(await worker.complete(task, {"made": made["blob"]}))
    assert (await api.get(f"{BLOBS}/{made['blob']}", headers=acme)).content == b"loud"

"""A key that is used everywhere is found nowhere: not in logs, in the store, or in any answer."""

import hmac
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from fairlead.api.openapi import make_pages
from fairlead.api.server import ROUTES
from fairlead.model.key import SCOPES
from fairlead.model.task import NewTask
from fairlead.settings import Rate
from fairlead.store.store import Store
from tests.api.listening import receive_one, refused_socket, socket
from tests.api.requests import BODIES, NO_TASK, TASKS, ending
from tests.api.serving import Gateway
from tests.api.test_extremes import path_of
from tests.api_keys import usable_key
from tests.commands import Shell
from tests.store.namespace import everything
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "20"}  # so that some of its ways end there


@pytest.fixture
async def canary(api: httpx.AsyncClient, store: Store) -> str:
    """Of a server that asks for it."""
    rate = Rate(count=3, period_seconds=3600, burst=3)
    key = (await store.api_keys.create("canary", SCOPES, rate=rate)).key_text

    async def asks() -> bool:
        return (await api.get(TASKS)).status_code in (401, 429)

    await wait_until(asks)
    return key


async def ways(api: httpx.AsyncClient, key: str) -> list[httpx.Response]:
    """Every route with the key where it belongs; and a few with it where it does not."""
    answers = []
    headers = {"authorization": f"Bearer {key}"}
    for route in ROUTES:
        path = ending(path_of(route, NO_TASK))
        body = BODIES.get(route.body.__name__, {}) if route.body else None
        for known in (headers, {"authorization": f"Bearer {key}x"}):
            answers.append(await api.request(route.method, path, json=body, headers=known))
        as_body = {**headers, "content-type": "application/json"}
        answers.append(await api.request(route.method, path, content=key.encode(), headers=as_body))
    for path in (*make_pages(ROUTES), f"/{key}", f"{TASKS}/{key}", f"{TASKS}?key={key}", f"/task/{key}"):
        for known in (headers, {}, {"authorization": key}, {"authorization": f"Basic {key}"}):
            answers.append(await api.get(path, headers=known))
    for name in ("x-api-key", "cookie", "x-reason", "traceparent", "origin", "referer", "user-agent"):
        answers.append(await api.get(TASKS, headers={**headers, name: key}))
    answers.append(await api.get(f"/api/v1/limits/{quote(key)}", headers=headers))
    return answers


async def test_a_key_is_in_no_answer_no_log_and_not_in_the_store(
    api: httpx.AsyncClient, store: Store, gateway: Gateway, canary: str
) -> None:
    secret = canary.split("_", 2)[2]
    answers = await ways(api, canary)
    statuses = {answer.status_code for answer in answers}
    assert {200, 201, 400, 401, 404, 422, 429} <= statuses, statuses
    for answer in answers:
        assert secret not in answer.text, answer.request.url
        assert not any(secret in value for value in answer.headers.values()), answer.request.url
    assert secret not in gateway.log_text()
    assert secret.encode() not in repr(await everything(store)).encode()


async def test_a_key_that_comes_over_a_socket_is_nowhere_either(
    store: Store, gateway: Gateway, canary: str
) -> None:
    secret = canary.split("_", 2)[2]
    known = {"authorization": f"Bearer {canary}"}
    task_id = (await store.submit_one(NewTask(task_type="echo"))).task_id
    async with socket(gateway, f"/ws/{task_id}", known) as opened:
        received = [await receive_one(opened)]
    async with socket(gateway, "/ws/tasks", known) as opened:
        await opened.send(canary)
        received.append(await receive_one(opened))
    for path, headers in (
        (f"/ws/{canary}", known),
        (f"/ws/{task_id}?ticket={canary}", {}),
        (f"/ws/{task_id}?key={canary}", {}),
        (f"/ws/{task_id}", {"authorization": f"Bearer {canary}x"}),
    ):
        received.append((await refused_socket(gateway, path, headers))[1])
    assert secret not in repr(received)
    assert secret not in gateway.log_text()
    assert secret not in repr(await everything(store))


async def test_commands_leave_no_trace_of_a_key(
    store: Store, gateway: Gateway, tmp_path: Path, canary: str
) -> None:
    shell = Shell(tmp_path, ("--engine", gateway.engine, "--namespace", gateway.namespace))
    rotated = await shell.run("key", "rotate", canary, "--overlap", "0s")
    assert rotated.code == 0, rotated.err
    revoked = await shell.run("key", "revoke", rotated.out.strip())
    listed = await shell.run("key", "list", "--output", "json")
    assert (revoked.code, listed.code) == (0, 0)
    kept = repr(await everything(store))
    assert "audit" in kept and canary.split("_")[1] in kept
    for key in (canary, rotated.out.strip()):
        secret = key.split("_", 2)[2]  # which may hold one itself
        assert secret not in kept + revoked.out + revoked.err + listed.out + rotated.err + gateway.log_text()


async def test_a_known_id_is_compared_as_often_as_an_unknown_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the time of an answer reveals neither which ids exist nor how much of a secret was right."""
    key = (await store.api_keys.create("web", ["read"])).key_text
    compared: list[tuple[int, int]] = []
    real = hmac.compare_digest

    def compare(known: str, given: str) -> bool:
        compared.append((len(known), len(given)))
        return real(known, given)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    head, secret = key[:13], key[13:]
    nearly = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for wrong in (f"flk_zzzzzzzz_{secret}", head + "A" * 43, head + nearly):
        assert await usable_key(store, wrong) is None
    assert compared == [(64, 64)] * 3

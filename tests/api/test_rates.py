"""Request rates: with a key, its rate; without a valid key, a number of failures per minute."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from fairlead.settings import Rate
from fairlead.store.scripts import function_of
from fairlead.store.store import Store
from tests.api.requests import TASKS, good, refused
from tests.api.serving import Gateway, serving
from tests.store.namespace import everything, raw
from tests.waiting import wait_until

SLOWLY = Rate(count=5, period_seconds=3600, burst=5)  # five, and no more in this test
BODY = {"task_type": "echo"}
FAILURES = 20


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": str(FAILURES)}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def make(store: Store, rate: Rate | None = None, **facts: Any) -> dict[str, str]:
    new = await store.api_keys.create("somebody", ["submit", "read"], rate=rate, **facts)
    return bearer(new.key_text)


@pytest.fixture
async def admin(api: httpx.AsyncClient, store: Store) -> AsyncIterator[dict[str, str]]:
    """The server has noticed that there are keys."""
    key = await make(store)

    async def asks() -> bool:
        return (await api.get("/api/v1/queue/stats")).status_code in (401, 429)

    await wait_until(asks)
    yield key


async def test_a_key_submits_as_fast_as_it_may_and_no_faster(
    api: httpx.AsyncClient, store: Store, admin: dict[str, str]
) -> None:
    key = await make(store, SLOWLY)
    for _ in range(4):
        good(await api.post(TASKS, json=BODY, headers=key), 201)
    good(await api.get("/task", headers=key))
    good(await api.get(TASKS, headers=key))  # to look costs nothing
    before = await everything(store)
    for answer in (
        await api.post(TASKS, json=BODY, headers=key),
        await api.get("/task", headers=key),
        await api.post(f"{TASKS}/batch", json={"tasks": [BODY]}, headers=key),
    ):
        assert "come back later" in refused(answer, 429, "rate_limited")["detail"]
        assert 600 < int(answer.headers["retry-after"]) <= 720
    after = await everything(store)
    assert {name for name in after if name.startswith("task:")} == {
        name for name in before if name.startswith("task:")
    }
    good(await api.post(TASKS, json=BODY, headers=admin), 201)


async def test_a_batch_costs_its_number_of_tasks_and_is_refused_as_a_whole(
    api: httpx.AsyncClient, store: Store, admin: dict[str, str]
) -> None:
    key = await make(store, SLOWLY)
    good(await api.post(f"{TASKS}/batch", json={"tasks": [BODY] * 3}, headers=key), 201)
    refused(await api.post(f"{TASKS}/batch", json={"tasks": [BODY] * 3}, headers=key), 429, "rate_limited")
    assert len((await store.list_tasks()).tasks) == 3
    good(await api.post(f"{TASKS}/batch", json={"tasks": [BODY] * 2}, headers=key), 201)
    answer = await api.post(f"{TASKS}/batch", json={"tasks": [BODY] * 6}, headers=key)
    assert "at most 5" in refused(answer, 422, "invalid_input", "tasks")["detail"]


async def test_all_servers_and_processes_draw_from_one_bucket_and_the_settings_give_the_usual_one(
    server_env: Mapping[str, str], gateway: Gateway, store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    usual = {"FAIRLEAD_SERVER__SUBMIT_RATE": "{rate = '7/h', burst = 6}"}
    key = await make(store)
    where = gateway.engine, gateway.namespace, tmp_path_factory.mktemp("two")
    with serving(*where, "--processes", "2", env=usual) as one, serving(*where, env=usual) as two:
        async with (
            httpx.AsyncClient(base_url=one.url, timeout=40) as left,
            httpx.AsyncClient(base_url=two.url, timeout=40) as right,
        ):
            answers = await asyncio.gather(
                *((left, right)[n % 2].post(TASKS, json=BODY, headers=key) for n in range(20))
            )
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == [201] * 6 + [429] * 14
            other = await make(store, Rate(count=9, period_seconds=3600, burst=9))
            for n in range(9):  # its own goes before the usual one
                good(await (left, right)[n % 2].post(TASKS, json=BODY, headers=other), 201)
            refused(await left.post(TASKS, json=BODY, headers=other), 429, "rate_limited")
    assert len((await store.list_tasks()).tasks) == 15


async def spends(api: httpx.AsyncClient, store: Store, key: dict[str, str]) -> int:
    """How often the server asks the store for the rate of a key when it submits with it."""
    act, calls = function_of("spend_key"), 0
    async with raw(store).monitor() as monitor:
        good(await api.post(TASKS, json=BODY, headers=key), 201)
        await raw(store).echo("that was all")
        while "that was all" not in (command := (await monitor.next_command())["command"]):
            calls += act in command
    return calls


async def test_a_submit_costs_no_more_calls_where_no_rate_is_set(
    api: httpx.AsyncClient, store: Store, admin: dict[str, str]
) -> None:
    limited = await make(store, SLOWLY)
    good(await api.post(TASKS, json=BODY, headers=limited), 201)  # the script is known from then on
    assert await spends(api, store, limited) == 1
    assert await spends(api, store, admin) == 0


async def test_a_client_that_fails_too_often_is_refused_but_a_valid_key_works(
    api: httpx.AsyncClient, store: Store, admin: dict[str, str]
) -> None:
    tries = [{}, bearer("flk_nonsense"), bearer(f"flk_aaaaaaaa_{'x' * 43}")] * FAILURES
    answers = [await api.get(TASKS, headers=headers) for headers in tries]
    put_off = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} <= {401, 429}
    assert len(put_off) >= len(tries) / 2
    for answer in put_off:
        assert "send a valid key" in refused(answer, 429, "too_many_failures")["detail"]
        assert 1 <= int(answer.headers["retry-after"]) <= 60 / FAILURES + 1
    good(await api.get(TASKS, headers=admin))
    good(await api.get("/healthz"))

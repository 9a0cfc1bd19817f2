"""Declarations of any size hold up neither the gateway nor the store; one of many types is possible."""

from typing import Any

import httpx
import msgspec
import pytest

from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings, Slots, TaskSettings
from fairlead.store.store import Store
from tests.api.lagging import Lags, gateway, http, lags
from tests.api.serving import Gateway

__all__ = ["gateway", "http", "lags"]

THOUSAND = range(1000)
BODIES: dict[str, dict[str, Any]] = {
    "steps": {"pipelines": {"p": ["a"] * 60_000}},
    "steps beside each other": {"pipelines": {"p": [{"parallel": ["a"] * 60_000}]}},
    "numbers": {"pipelines": {"p": [1] * 120_000}},
    "lists": {"pipelines": {"p": [[]] * 80_000}},
    "pipelines": {"pipelines": {f"p{n}": ["a"] * 32 for n in THOUSAND}},
    "types": {"types": {f"{n}".rjust(200, "t"): {} for n in THOUSAND}},
    "limits": {"limits": {f"{n}".rjust(200, "l"): {"limit": 1} for n in THOUSAND}},
    "types with limits": {
        "limits": {f"l{n}": {"limit": 1} for n in THOUSAND},
        "types": {f"t{n}": {"limits": {f"l{(n + i) % 1000}": 1 for i in range(8)}} for n in THOUSAND},
    },
}


async def declare(http: httpx.AsyncClient, body: Any) -> httpx.Response:
    content = msgspec.json.encode(body)
    return await http.put(
        "/internal/declarations", content=content, headers={"content-type": "application/json"}
    )


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_a_long_declaration(http: httpx.AsyncClient, lags: Lags, body: dict[str, Any]) -> None:
    assert len(msgspec.json.encode(body)) < 256 * 1024
    await lags.check(lambda: declare(http, body))


async def test_one_that_is_too_large_is_refused_unread(http: httpx.AsyncClient, lags: Lags) -> None:
    body = {"pipelines": {"p": ["a"] * 1_000_000}}
    assert (await declare(http, body)).status_code == 413
    await lags.check(lambda: declare(http, body))


async def test_the_store_declares_few_in_one_act(store: Store) -> None:
    async def acts() -> int:
        return int((await store.connection.client.info("commandstats"))["cmdstat_fcall"]["calls"])

    limits = {f"l{n}": Slots(limit=1) for n in THOUSAND}
    before = await acts()
    await store.declare("code", {"t": TaskSettings(limits={"l999": 1})}, limits)
    assert await acts() - before >= 20
    assert len(await store.limits.all()) == 1000


async def test_a_worker_of_many_types_declares_them(gateway: Gateway, store: Store) -> None:
    """About 3 MiB: more than one request may bring."""
    limits = {f"{n}".rjust(200, "l"): Slots(limit=1) for n in THOUSAND}
    names = list(limits)
    types = {
        f"{n}".rjust(200, "t"): TaskSettings(limits={names[(n + i) % 1000]: 1 for i in range(8)})
        for n in range(1500)
    }
    async with Client(Settings(engine=EngineSettings(url=gateway.url))) as client:
        await client.declare("code", types, limits, {"p": (("a",), ("b", "c"))})
        assert client.settings.lease_ms
    pipelines = store.jobs.pipelines
    assert set(await pipelines.task_types()) == set(types)
    assert await pipelines.page("", 10) == ({"p": (("a",), ("b", "c"))}, "")
    assert len(await store.limits.all()) == 1000

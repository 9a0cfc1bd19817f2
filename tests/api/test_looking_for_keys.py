"""While there is no key, a server checks now and then for one: one check serves all concurrent requests."""

import asyncio

import pytest

from fairlead import errors
from fairlead.api.batching import SubmitBatcher
from fairlead.api.failed_keys import FailedKeys
from fairlead.api.gateway import ANYBODY, Gateway
from fairlead.api.live.connections import Connections
from fairlead.api.polls import Polls
from fairlead.api.problems import Unauthorized
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.store import Store
from tests.store.namespace import raw


def gateway_on(store: Store) -> Gateway:
    return Gateway(
        store=store,
        batcher=SubmitBatcher(store),
        polls=Polls(store),
        keys=KeyRing(store.api_keys),
        priorities=None,
        asks_for_keys=False,
        failed_keys=FailedKeys(0),
        connections=Connections(1),
    )


async def looks(store: Store) -> int:
    stats = await raw(store).info("commandstats")
    return int(stats.get("cmdstat_exists", {"calls": 0})["calls"])


async def test_a_crowd_looks_once(live_store: Store) -> None:
    gateway, before = gateway_on(live_store), await looks(live_store)
    assert await asyncio.gather(*(gateway.identify({}, "") for _ in range(50))) == [ANYBODY] * 50
    assert await looks(live_store) == before + 1


async def test_concurrent_requests_are_refused_when_there_is_a_key(live_store: Store) -> None:
    gateway = gateway_on(live_store)
    await live_store.api_keys.create("ci", ["read"])
    answers = await asyncio.gather(*(gateway.identify({}, "") for _ in range(50)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unauthorized}


async def test_the_client_that_checks_first_may_disconnect(live_store: Store) -> None:
    gateway = gateway_on(live_store)
    first, *others = [asyncio.create_task(gateway.identify({}, "")) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == [ANYBODY] * 2
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_when_the_store_is_down_all_requests_fail_and_the_next_one_checks_again() -> None:
    gateway = gateway_on(Store.connect("unix:///nowhere"))
    for _ in range(2):
        answers = await asyncio.gather(*(gateway.identify({}, "") for _ in range(5)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [errors.StoreUnavailable] * 5

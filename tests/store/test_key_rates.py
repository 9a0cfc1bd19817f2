"""How much an API key may submit: a bucket in the store, which all servers draw from."""

import asyncio
from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.model.key import ApiKey
from fairlead.settings import Rate
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import everything

TEN = Rate(count=10, period_seconds=1, burst=10)


async def made(store: Store, rate: Rate | None = TEN) -> ApiKey:
    return (await store.api_keys.create("web", ["submit"], rate=rate)).api_key


async def refused_for(store: Store, key: ApiKey, tasks: int = 1, usual: Rate | None = None) -> float:
    """Seconds."""
    with pytest.raises(errors.RateLimited) as refusal:
        await store.api_keys.spend(key.id, tasks, usual)
    return refusal.value.retry_after


async def test_as_many_as_the_burst_may_come_at_once_and_then_by_the_rate(store: Store, clock: Clock) -> None:
    key = await made(store)
    for _ in range(10):
        await store.api_keys.spend(key.id, 1, None)
    assert await refused_for(store, key) == 0.1
    clock.pass_ms(99)
    assert await refused_for(store, key) == 0.001
    clock.pass_ms(1)
    await store.api_keys.spend(key.id, 1, None)
    assert await refused_for(store, key) == 0.1
    clock.pass_seconds(100)  # no more than the burst is saved up
    await store.api_keys.spend(key.id, 10, None)
    assert await refused_for(store, key) == 0.1


async def test_the_units_of_one_request_are_taken_together_or_not_at_all(store: Store, clock: Clock) -> None:
    key = await made(store)
    await store.api_keys.spend(key.id, 7, None)
    before = await everything(store)
    assert await refused_for(store, key, 5) == 0.2
    assert await everything(store) == before
    await store.api_keys.spend(key.id, 3, None)
    clock.pass_ms(500)
    await store.api_keys.spend(key.id, 5, None)


async def test_more_than_the_burst_is_refused_for_good_with_the_maximum(store: Store) -> None:
    key = await made(store)
    with pytest.raises(errors.InvalidInput, match="11 at once, this key may send at most 10"):
        await store.api_keys.spend(key.id, 11, None)
    await store.api_keys.spend(key.id, 10, None)


async def test_a_key_without_a_rate_has_the_default_rate_and_its_own_bucket(store: Store) -> None:
    one, other, own = await made(store, None), await made(store, None), await made(store)
    usual = Rate(count=2, period_seconds=1, burst=2)
    for key in (one, other):
        await store.api_keys.spend(key.id, 2, usual)
        assert await refused_for(store, key, 1, usual) == 0.5
        await store.api_keys.spend(key.id, 1000, None)  # without a default rate there is none
    await store.api_keys.spend(own.id, 10, usual)


async def test_a_rotated_key_keeps_the_rate(store: Store) -> None:
    key = await made(store, Rate(count=60, period_seconds=60, burst=5))
    new = (await store.api_keys.rotate(key.id, 60)).api_key
    assert (new.interval_us, new.burst) == (key.interval_us, key.burst) == (1_000_000, 5)
    assert await store.api_keys.get(new.id) == new


async def test_many_servers_draw_from_one_bucket(
    store: Store, open_store: Callable[..., Store], clock: Clock
) -> None:
    key = await made(store)
    others = [open_store(store.connection.keys.namespace, clock) for _ in range(3)]
    servers = [store, *others]
    answers = await asyncio.gather(
        *(servers[n % 4].api_keys.spend(key.id, 1, None) for n in range(40)), return_exceptions=True
    )
    for other in others:
        await other.close()
    assert sum(answer is None for answer in answers) == 10
    assert sum(isinstance(answer, errors.RateLimited) for answer in answers) == 30


async def test_a_key_that_is_not_there_has_no_rate(store: Store) -> None:
    with pytest.raises(errors.UnknownKey):
        await store.api_keys.spend("aaaaaaaa", 1, TEN)


@pytest.mark.parametrize(
    "rate",
    [Rate(count=0, period_seconds=1, burst=1), Rate(count=1, period_seconds=1, burst=0)],
    ids=["nothing", "never"],
)
async def test_an_invalid_rate_is_refused(store: Store, rate: Rate) -> None:
    with pytest.raises(errors.InvalidInput, match="whole number from 1"):
        await store.api_keys.create("web", ["submit"], rate=rate)
    assert await store.api_keys.all() == []


async def test_a_clock_that_is_set_back_refuses_a_key_for_no_longer_than_its_rate(
    store: Store, clock: Clock
) -> None:
    key = await made(store)
    await store.api_keys.spend(key.id, 10, None)
    clock.pass_seconds(-600)
    assert await refused_for(store, key) == 0.1
    clock.pass_ms(100)
    await store.api_keys.spend(key.id, 1, None)

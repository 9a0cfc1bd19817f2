"""A namespace of schema 5, in which a limit and its holders were one hash and each tier had its own lots."""

import pytest

from fairlead.settings import Settings, Slots
from fairlead.settings.tiers import Tier
from fairlead.store.doctor.doctor import examine
from fairlead.store.names import LOTS_OF_TIERS, may_overlap, needs_of, needs_of_lot
from fairlead.store.scripts import SCHEMA
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import everything, key_names, new, raw

HOLDERS = 1_500  # more than one step moves


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={"fast": Tier(seconds=3), "slow": Tier(seconds=30, limit=1)})


async def make_schema_5(store: Store) -> None:
    client, key = raw(store), store.connection.keys.key
    for name in await key_names(store):
        kind, _, limit = name.partition(":")
        if kind == "holders":
            held = await client.hgetall(key(name))
            await client.hset(key("limit", limit), mapping={b"held:" + one: held[one] for one in held})
            await client.unlink(key(name))
    for lot in await client.zrange(key("lots", LOTS_OF_TIERS), 0, -1):
        for limit in needs_of_lot(lot.decode()):
            if limit.startswith(LOTS_OF_TIERS):
                await client.zadd(key("lots", limit), {lot: 0})
    await client.unlink(key("lots", LOTS_OF_TIERS))
    for sub in map(bytes.decode, await client.hkeys(key("home"))):
        if len(needs_of(sub)) > 1 and not may_overlap(sub):
            await client.zadd(key("nested"), {sub: 0})
            await client.hincrby(key("meta"), "wide_sub_queues", 1)
            for limit in needs_of(sub):
                await client.hincrby(key("limit", limit), "sub_queues", 1)
    await client.hset(key("meta"), "schema", 5)


async def a_busy_namespace(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=5_000))
    await store.workers.register("w", capacity=5_000)
    for _ in range(2):
        await store.submit(*(new(limits={"gpu": 1}) for _ in range(HOLDERS // 2)))
    while (await store.claim("w", HOLDERS)).tasks:
        pass
    await store.submit(*(new(duration="slow") for _ in range(3)), new(duration="slow", limits={"gpu": 1}))
    await store.claim("w", 1)
    await store.limits.acquire("gpu", lease_id="without-a-task")


async def test_it_is_opened_with_all_that_is_in_it(store: Store, clock: Clock) -> None:
    await a_busy_namespace(store)
    before = await everything(store)
    await make_schema_5(store)
    assert await examine(store.connection, clock.now), "the doctor misses the holders"
    await store.open()
    assert await raw(store).hget(store.connection.keys.meta, "schema") == str(SCHEMA).encode()
    after = await everything(store)
    for content in before, after:  # the first act looks for what is due
        content["meta"][0].pop(b"alarm", None)
    assert after == before
    assert await examine(store.connection, clock.now) == []


async def test_a_migration_that_was_interrupted_is_continued(store: Store, clock: Clock) -> None:
    await a_busy_namespace(store)
    await make_schema_5(store)
    await store.connection.run("migrate", "begin", b"\xc0", store.clock())
    await store.connection.run("migrate", "holders", b"\xa3gpu", store.clock())
    await store.open(govern=False)
    assert await examine(store.connection, clock.now) == []
    assert (await store.limits.get("gpu")).active == HOLDERS + 1

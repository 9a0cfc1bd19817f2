"""However many wait for a word, few connections wait for them."""

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from fairlead import errors
from fairlead.store import blocking_pool
from fairlead.store.blocking_pool import MOST_CONNECTIONS
from fairlead.store.store import Store
from tests.connections import connected
from tests.servers import Server
from tests.store.namespace import raw
from tests.waiting import wait_until

pytestmark = pytest.mark.every_server

CROWD = 300


@pytest.fixture
async def waiting(live_store: Store, server: Server) -> AsyncIterator[Store]:
    """Another store on the same namespace, whose connections are counted."""
    made = Store(connected(server.url, live_store.connection.keys.namespace), live_store.settings)
    yield made
    await made.close()


async def call(store: Store, worker: str, word: str = "work") -> None:
    await raw(store).rpush(store.connection.keys.key("wake", worker), word)


async def blocked(store: Store) -> int:
    return int((await raw(store).info("clients"))["blocked_clients"])


async def connections(store: Store) -> int:
    return len(await raw(store).client_list())


def names(count: int) -> list[str]:
    return [f"worker-{n}" for n in range(count)]


async def test_a_crowd_waits_on_few_connections_and_each_is_called_by_its_own_word(
    live_store: Store, waiting: Store
) -> None:
    before = await connections(live_store)
    waits = [asyncio.create_task(waiting.workers.wait(name, 40)) for name in names(CROWD)]
    await wait_until(lambda: blocked(live_store))
    for name in names(CROWD):
        await call(live_store, name, f"for {name}")
    async with asyncio.timeout(40):
        assert await asyncio.gather(*waits) == [f"for {name}" for name in names(CROWD)]
    assert await connections(live_store) - before <= MOST_CONNECTIONS + 1


async def test_a_wait_ends_with_its_own_time_beside_longer_ones(live_store: Store, waiting: Store) -> None:
    long = [asyncio.create_task(waiting.workers.wait(name, 40)) for name in names(CROWD)]
    await wait_until(lambda: blocked(live_store))
    async with asyncio.timeout(20):
        short = [waiting.workers.wait(f"short-{n}", 0.2) for n in range(50)]
        assert await asyncio.gather(*short) == [None] * 50
    assert not any(wait.done() for wait in long)
    for wait in long:
        wait.cancel()
    await asyncio.wait(long)


async def test_two_that_wait_for_the_same_list_get_a_word_each(live_store: Store, waiting: Store) -> None:
    waits = [asyncio.create_task(waiting.workers.wait("w", 40)) for _ in range(3)]
    await wait_until(lambda: blocked(live_store))
    for word in "abc":
        await call(live_store, "w", word)
    async with asyncio.timeout(20):
        assert sorted(map(str, await asyncio.gather(*waits))) == ["a", "b", "c"]


async def test_a_cancelled_wait_leaves_the_next_item_in_the_list(live_store: Store, waiting: Store) -> None:
    waits = {name: asyncio.create_task(waiting.workers.wait(name, 40)) for name in names(40)}
    await wait_until(lambda: blocked(live_store))
    gone = waits.pop("worker-39")
    gone.cancel()
    await asyncio.wait([gone])
    poppers, key = waiting.connection.blocking._poppers, waiting.connection.keys.key("wake", "worker-39")
    await wait_until(lambda: not any(key in (one._asked or ()) for one in poppers))
    await call(live_store, "worker-39", "kept")
    for name in waits:
        await call(live_store, name)
    async with asyncio.timeout(20):
        assert await asyncio.gather(*waits.values()) == ["work"] * 39
        assert await waiting.workers.wait("worker-39", 10) == "kept"


async def test_unused_connections_are_closed(
    live_store: Store, waiting: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking_pool, "IDLE_SECONDS", 0.1)
    await waiting.stats()
    before = await connections(live_store)
    assert await asyncio.gather(*(waiting.workers.wait(name, 0.05) for name in names(20))) == [None] * 20

    async def are_closed() -> bool:
        return await connections(live_store) == before

    await wait_until(are_closed)
    await call(live_store, "w")
    assert await waiting.workers.wait("w", 20) == "work"


async def test_a_connection_that_was_closed_while_idle_is_replaced(live_store: Store, waiting: Store) -> None:
    assert await waiting.workers.wait("w", 0.01) is None
    await raw(live_store).client_kill_filter(skipme=True, _type="normal")
    await wait_until(
        lambda: not any(one._channel.is_open for one in waiting.connection.blocking._poppers if one._channel)
    )
    await call(live_store, "w")
    assert await waiting.workers.wait("w", 20) == "work"


async def test_a_user_without_the_right_to_unblock_clients_can_still_wait(
    live_store: Store, server: Server
) -> None:
    if not server.url.startswith("unix://"):
        pytest.skip("the URL of a cluster has no place for the user of this test")
    client = raw(live_store)
    await client.execute_command(
        *("ACL", "SETUSER", "waits", "on", ">secret", "allkeys", "allchannels", "+@all", "-client|unblock")
    )
    url = server.url.replace("unix://", "unix://waits:secret@")
    store = Store(connected(url, live_store.connection.keys.namespace), live_store.settings)
    waits = [asyncio.create_task(store.workers.wait(name, 40)) for name in names(40)]
    await wait_until(lambda: blocked(live_store))
    for name in names(40):
        await call(live_store, name)
    async with asyncio.timeout(30):
        assert await asyncio.gather(*waits) == ["work"] * 40
    await store.close()
    await client.execute_command("ACL", "DELUSER", "waits")


async def test_a_lost_connection_fails_only_the_waits_on_it(live_store: Store, waiting: Store) -> None:
    """They look for themselves, and wait again."""
    waits = {name: asyncio.create_task(waiting.workers.wait(name, 40)) for name in names(2)}
    await wait_until(lambda: len(waiting.connection.blocking._poppers) == 2)
    first, second = waiting.connection.blocking._poppers
    await wait_until(lambda: first._asked and second._asked)
    assert first._channel
    await raw(live_store).client_kill_filter(_id=str(first._channel.client_id))
    with pytest.raises(errors.StoreUnavailable):
        await waits["worker-0"]
    assert not waits["worker-1"].done()
    for name in names(2):
        await call(live_store, name)
    assert await waits["worker-1"] == "work"
    assert await waiting.workers.wait("worker-0", 20) == "work"


@pytest.mark.long
async def test_a_wait_that_is_cancelled_at_any_moment_leaves_no_fault_behind(
    live_store: Store, server: Server
) -> None:
    faults: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    for steps in range(40):
        store = Store(connected(server.url, live_store.connection.keys.namespace), live_store.settings)
        waiting = asyncio.create_task(store.workers.wait("w", 20))
        for _ in range(steps):  # a new connection: it can be cancelled at many points
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        running = [popper._running for popper in store.connection.blocking._poppers]
        assert await store.workers.wait("w", 0.01) is None
        await store.close()
        await asyncio.gather(*running, return_exceptions=True)
        assert not any(task.exception() for task in running if not task.cancelled())
    gc.collect()
    assert not faults

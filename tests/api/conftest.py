"""A real server for each module, on a namespace that every test finds fresh and leaves to the doctor."""

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import httpx
import pytest

from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.contract import hold_to_contract
from tests.api.key_holders import Keys
from tests.api.requests import TASKS
from tests.api.serving import Gateway, serving
from tests.connections import patient_store
from tests.servers import Server
from tests.store.namespace import key_names, raw
from tests.waiting import wait_until

numbers = itertools.count()


COUNTS = (
    *("queued_", "delayed", "wide_sub_queues", "idle_workers", "watcher", "jobs_open", "waiters_"),
    *("finished_count", "finished_bytes", "missing_records"),
    *("tiers", "capacity", "sessions"),  # whose limits are made again when the store is opened
)


BEATS = 1_000_000  # more than a test takes


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    """Modules that need other settings override this."""
    return {}


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server],
    server_env: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Gateway]:
    engine, namespace = start_server("valkey").url, f"api-{os.getpid()}-{next(numbers)}"
    with serving(engine, namespace, tmp_path_factory.mktemp("api"), env=server_env) as gateway:
        yield gateway


@pytest.fixture
async def store(gateway: Gateway) -> AsyncIterator[Store]:
    """The store behind the gateway."""
    async with patient_store(gateway.engine, gateway.namespace, gateway.settings) as store:
        meta = await raw(store).hgetall(store.connection.keys.meta)
        # what counts the keys that are deleted below may be of a request that the test before left behind
        opened = {field: value for field, value in meta.items() if not field.decode().startswith(COUNTS)}
        # the gateway must not find that it went back
        opened[b"beat"] = str(int(meta[b"beat"]) + BEATS).encode()
        yield store
        breaches = await examine(store.connection)
        # in one step, because the upkeep continues and would complain of a lost namespace
        reset = raw(store).pipeline(transaction=True)
        reset.delete(*[store.connection.keys.prefix + name for name in await key_names(store)])
        reset.hset(store.connection.keys.meta, mapping=opened)
        await reset.execute()
        assert not breaches, breaches


@pytest.fixture
async def api(gateway: Gateway, store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the gateway that checks every answer against the OpenAPI page."""
    async with httpx.AsyncClient(
        base_url=gateway.url, timeout=40, event_hooks={"response": [hold_to_contract]}, trust_env=False
    ) as client:
        yield client


@pytest.fixture
async def keys(api: httpx.AsyncClient, store: Store) -> AsyncIterator[Keys]:
    """The server has noticed that there are keys."""
    made = Keys(store)
    await made.make()

    async def asks() -> bool:
        return (await api.get(TASKS)).status_code == 401

    await wait_until(asks)
    yield made

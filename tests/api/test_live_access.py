"""Access to sockets and streams, and how long it lasts: generated from the table of routes, as for HTTP."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from fairlead.api.server import SOCKETS
from fairlead.api.table import SocketRoute
from fairlead.model.key import SCOPES
from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.listening import receive_all, receive_one, refused_socket, say, socket, stream
from tests.api.requests import NO_TASK, good, refused
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.store.namespace import key_names

TICKETS = "/api/v1/tickets"


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0", "FAIRLEAD_TIERS__FAST": "{ seconds = 300 }"}


def name_of(route: SocketRoute) -> str:
    return route.path


async def task_of(store: Store, tenant: str | None = None) -> str:
    return (await store.submit_one(NewTask(task_type="echo", tenant=tenant))).task_id


async def path_of(store: Store, route: SocketRoute, tenant: str | None = None) -> str:
    """The socket of a new task. Some sockets open for interactive tasks only, which somebody must run."""
    if "interactive" not in route.path:
        return route.path.format(id=await task_of(store, tenant))
    await store.workers.register("w", capacity=100)
    await store.claim("w", idle=True)
    new = NewTask(task_type="echo", tenant=tenant, duration="interactive")
    return route.path.format(id=(await store.submit_one(new)).task_id)


async def ticket_for(api: httpx.AsyncClient, key: str) -> str:
    answer = good(await api.post(TICKETS, headers=bearer(key)), 201)
    assert answer["expires_in"] == 30
    ticket: str = answer["ticket"]
    return ticket


def test_every_socket_asks_for_something() -> None:
    assert SOCKETS
    for route in SOCKETS:
        assert route.scopes
        assert set(route.scopes) <= set(SCOPES)


@pytest.mark.parametrize("route", SOCKETS, ids=name_of)
async def test_a_socket_asks_for_its_scopes_and_nothing_else_opens_it(
    gateway: Gateway, keys: Keys, store: Store, route: SocketRoute
) -> None:
    path = await path_of(store, route)
    good_key = await keys.make()
    bad = [None, "flk_nonsense", good_key[:-1] + "!", f"flk_aaaaaaaa_{good_key[13:]}"]
    bad += [await keys.expired(), await keys.revoked()]
    for key in bad:
        status, problem = await refused_socket(gateway, path, bearer(key))
        assert (status, problem["code"]) == (401, "unauthorized")
    for missing in SCOPES:
        key = await keys.make(*(scope for scope in SCOPES if scope != missing))
        if missing in route.scopes:
            status, problem = await refused_socket(gateway, path, bearer(key))
            assert (status, problem["code"]) == (403, "forbidden")
            assert repr(missing) in problem["detail"]
        else:
            async with socket(gateway, await path_of(store, route), bearer(key)):
                pass
    async with socket(gateway, await path_of(store, route), bearer(await keys.make(*route.scopes))):
        pass


@pytest.mark.parametrize("route", SOCKETS, ids=name_of)
async def test_what_belongs_to_another_tenant_is_not_found(
    gateway: Gateway, keys: Keys, store: Store, route: SocketRoute
) -> None:
    key = bearer(await keys.make(tenant="other"))
    if "{id}" in route.path:
        path = await path_of(store, route, "acme")
        answer = await refused_socket(gateway, path, key)
        assert answer == await refused_socket(gateway, route.path.format(id=NO_TASK), key)
        assert answer[0] == 404
        async with socket(gateway, path, bearer(await keys.make(tenant="acme"))):
            pass
    else:
        foreign = await task_of(store, "acme")
        async with socket(gateway, route.path, key) as opened:
            await say(opened, cancel=foreign)
            assert (await receive_one(opened))["problem"]["code"] == "unknown_task"
        assert (await store.get(foreign)).status == "queued"


async def test_a_submitted_task_belongs_to_the_tenant(gateway: Gateway, keys: Keys, store: Store) -> None:
    async with socket(gateway, "/ws/tasks", bearer(await keys.make(tenant="acme"))) as opened:
        await say(opened, task_type="echo")
        assert (await store.get((await receive_one(opened))["task_id"])).tenant == "acme"


async def test_cancelling_asks_for_its_scope(gateway: Gateway, keys: Keys, store: Store) -> None:
    task_id = await task_of(store)
    async with socket(gateway, "/ws/tasks", bearer(await keys.make("submit", "read"))) as opened:
        await say(opened, cancel=task_id)
        assert (await receive_one(opened))["problem"]["code"] == "forbidden"
        await say(opened, task_type="echo", cancel_on_disconnect=True)
        assert (await receive_one(opened))["problem"]["code"] == "forbidden"
    assert (await store.get(task_id)).status == "queued"
    assert (await store.stats()).queues["medium"].depth == 1


async def test_a_ticket_opens_one_socket(
    gateway: Gateway, api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    task_id = await task_of(store, "acme")
    ticket = await ticket_for(api, await keys.make("read", tenant="acme"))
    async with socket(gateway, f"/ws/{task_id}?ticket={ticket}") as opened:
        assert (await receive_one(opened))["task_id"] == task_id
    for used in (ticket, ticket[:-1], "", "flt_nonsense"):
        status, problem = await refused_socket(gateway, f"/ws/{task_id}?ticket={used}")
        assert (status, problem["code"]) == (401, "unauthorized")


async def test_one_of_many_clients_with_the_same_ticket_is_admitted(
    gateway: Gateway, api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    path = f"/ws/{await task_of(store)}?ticket={await ticket_for(api, await keys.make())}"

    async def try_it() -> bool:
        try:
            async with socket(gateway, path) as opened:
                await receive_one(opened)
                return True
        except Exception:
            return False

    assert sum(await asyncio.gather(*(try_it() for _ in range(10)))) == 1


async def test_a_ticket_opens_what_its_key_does(
    gateway: Gateway, api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    reader = await keys.make("read", tenant="acme")
    status, problem = await refused_socket(gateway, f"/ws/tasks?ticket={await ticket_for(api, reader)}")
    assert (status, problem["code"]) == (403, "forbidden")
    foreign = await task_of(store, "other")
    status, _ = await refused_socket(gateway, f"/ws/{foreign}?ticket={await ticket_for(api, reader)}")
    assert status == 404
    ticket = await ticket_for(api, reader)
    await store.api_keys.revoke(reader.split("_")[1])
    status, _ = await refused_socket(gateway, f"/ws/{foreign}?ticket={ticket}")
    assert status == 401


async def test_the_store_knows_a_ticket_by_its_digest_and_not_for_long(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    ticket = await ticket_for(api, await keys.make())
    (kept,) = [name for name in await key_names(store) if name.startswith("ticket:")]
    assert ticket not in kept
    left = await store.connection.client.ttl(store.connection.keys.prefix + kept)
    assert 0 < left <= 30


async def test_a_key_in_the_address_opens_nothing(gateway: Gateway, keys: Keys, store: Store) -> None:
    key, task_id = await keys.make(), await task_of(store)
    assert (await refused_socket(gateway, f"/ws/{task_id}?key={key}"))[0] == 422
    assert (await refused_socket(gateway, f"/ws/{task_id}?ticket={key}"))[0] == 401
    assert key.split("_", 2)[2] not in gateway.log_text()


@pytest.mark.parametrize("route", SOCKETS, ids=name_of)
async def test_a_page_of_another_site_opens_none(
    gateway: Gateway, keys: Keys, store: Store, route: SocketRoute
) -> None:
    path, key = await path_of(store, route), bearer(await keys.make())
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        status, problem = await refused_socket(gateway, path, key | headers)
        assert (status, problem["code"]) == (403, "foreign_origin")
    async with socket(gateway, path, key | {"origin": gateway.url, "sec-fetch-site": "same-origin"}):
        pass


async def test_another_name_of_this_machine_is_refused(gateway: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = (
        "GET /ws/tasks HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    assert b" 421 " in answer.partition(b"\r\n")[0]
    assert b"wrong_host" in answer


async def test_connections_end_with_their_key(
    gateway: Gateway, api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    task_id = await task_of(store)
    ending, other = await keys.make(), await keys.make()
    path, by_ticket = f"/ws/{task_id}", f"/ws/{task_id}?ticket={await ticket_for(api, ending)}"
    async with (
        socket(gateway, path, bearer(ending)) as one,
        socket(gateway, by_ticket) as two,
        socket(gateway, "/ws/tasks", bearer(ending)) as three,
        socket(gateway, path, bearer(other)) as stays,
        stream(gateway, task_id, authorization=f"Bearer {ending}") as events,
    ):
        await receive_one(stays)
        await anext(events)
        await store.api_keys.revoke(ending.split("_")[1])
        ends = await asyncio.gather(*map(receive_all, (one, two, three)))
        assert [code for _, code in ends] == [4401] * 3
        assert [message async for message in events] == []  # the state was all, then the end
        await store.cancel(task_id)
        assert (await receive_all(stays))[1] == 1000


async def test_a_key_that_expires_ends_them_too(gateway: Gateway, keys: Keys, store: Store) -> None:
    path, key = f"/ws/{await task_of(store)}", await keys.make(seconds=6)
    async with socket(gateway, path, bearer(key)) as opened:
        assert (await receive_all(opened))[1] == 4401


async def test_the_first_key_disconnects_clients_without_one(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    path = f"/ws/{await task_of(live_store)}"
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        async with socket(gateway, path) as opened:
            await receive_one(opened)
            await live_store.api_keys.create("first", SCOPES)
            assert (await receive_all(opened))[1] == 4401
        assert (await refused_socket(gateway, path))[0] == 401


async def test_a_ticket_asks_for_the_scope_of_readers(api: httpx.AsyncClient, keys: Keys) -> None:
    refused(await api.post(TICKETS, headers=bearer(await keys.make("submit"))), 403, "forbidden")
    refused(await api.post(TICKETS), 401, "unauthorized")

"""The session of a browser: a cookie in place of the key, and a token on every request with an effect."""

import asyncio

import httpx
import pytest

from fairlead.store.access.browser_sessions import SESSION_SECONDS
from fairlead.store.store import Store
from tests.api.key_holders import Keys
from tests.api.requests import ENDLESS, TASKS, good, refused
from tests.api.serving import Gateway
from tests.store.namespace import everything, raw

SESSION = "/api/v1/session"


async def log_in(api: httpx.AsyncClient, key: str, **headers: str) -> httpx.Response:
    """The client keeps the cookie."""
    return await api.post(SESSION, json={"key": key}, headers=headers)


async def test_a_key_opens_a_session_that_may_do_what_the_key_may(api: httpx.AsyncClient, keys: Keys) -> None:
    assert good(await api.get(SESSION)) == {
        **dict.fromkeys(("name", "tenant", "namespace", "version", "csrf_token", "ends_at")),
        **{"needs_key": True, "scopes": [], "namespaces": []},
    }
    opened = await log_in(api, await keys.make("read", "submit", tenant="acme"))
    shown = good(opened)
    assert (shown["scopes"], shown["tenant"]) == (["submit", "read"], "acme")
    assert good(await api.get(SESSION)) == shown
    token = {"x-csrf-token": shown["csrf_token"]}
    answer = await api.post(TASKS, json={"task_type": "draw"}, headers=token)
    task = good(answer, 201)["task_id"]
    assert good(await api.get(f"{TASKS}/{task}"))["tenant"] == "acme"
    refused(await api.delete(f"{TASKS}/{task}", headers=token), 403, "forbidden")


async def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_send_it(
    api: httpx.AsyncClient, keys: Keys
) -> None:
    (cookie,) = (await log_in(api, await keys.make())).headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={SESSION_SECONDS}"} <= set(cookie.split("; "))
    assert "Secure" not in cookie, "this server is reached over HTTP"


async def test_every_request_that_changes_something_needs_the_token(
    api: httpx.AsyncClient, keys: Keys, store: Store, subtests: pytest.Subtests
) -> None:
    good(await log_in(api, await keys.make()))
    for method, path in [
        ("POST", TASKS),
        ("DELETE", f"{TASKS}/x"),
        ("PUT", "/api/v1/limits/gpu"),
        ("GET", "/task"),  # which submits one
        ("DELETE", SESSION),
    ]:
        for token in ("", "0" * 64):
            with subtests.test(method=method, path=path, token=token):
                answer = await api.request(method, path, headers={"x-csrf-token": token})
                refused(answer, 403, "csrf_token_missing")
    assert (await store.list_tasks()).tasks == []
    good(await api.get(TASKS))


async def test_a_session_ends_with_its_key_and_when_the_browser_logs_out(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    key = await keys.make()
    token = good(await log_in(api, key))["csrf_token"]
    good(await api.get(TASKS))
    await store.api_keys.revoke(key.split("_")[1])
    refused(await api.get(TASKS), 401, "unauthorized")
    assert good(await api.get(SESSION))["needs_key"]
    good(await api.delete(SESSION, headers={"x-csrf-token": token}))

    api.cookies.clear()
    token = good(await log_in(api, await keys.make()))["csrf_token"]
    ((name, secret),) = api.cookies.items()
    good(await api.delete(SESSION, headers={"x-csrf-token": token}))
    api.cookies.set(name, secret)
    refused(await api.get(TASKS), 401, "unauthorized")


async def test_a_stream_ends_with_the_session_that_opened_it(
    gateway: Gateway, api: httpx.AsyncClient, keys: Keys
) -> None:
    """The key lives on: it may be in use elsewhere, and by other sessions."""
    key = await keys.make("read")
    other = good(await log_in(api, key)), dict(api.cookies)
    token = good(await log_in(api, key))["csrf_token"]
    async with (
        httpx.AsyncClient(base_url=gateway.url, cookies=api.cookies, timeout=40, trust_env=False) as closing,
        httpx.AsyncClient(base_url=gateway.url, cookies=other[1], timeout=40, trust_env=False) as staying,
        closing.stream("GET", ENDLESS) as ending,
        staying.stream("GET", ENDLESS) as going_on,
    ):
        good(await api.delete(SESSION, headers={"x-csrf-token": token}))
        async with asyncio.timeout(40):
            async for _ in ending.aiter_bytes():
                pass
            await anext(going_on.aiter_bytes())
        assert not going_on.is_closed


async def test_the_store_has_only_a_digest_of_it(api: httpx.AsyncClient, keys: Keys, store: Store) -> None:
    good(await log_in(api, await keys.make()))
    (secret,) = api.cookies.values()
    content = await everything(store)
    assert secret[4:] not in repr(content)
    (name,) = [name for name in content if name.startswith("ticket:")]
    assert 0 < await raw(store).ttl(store.connection.keys.prefix + name) <= SESSION_SECONDS


async def test_a_session_is_no_ticket_and_a_ticket_no_session(store: Store) -> None:
    secret = await store.browser_sessions.open("abcd1234")
    assert await store.tickets.take(secret) is None
    assert await store.browser_sessions.find(secret.replace("fls_", "flt_")) is None
    found = await store.browser_sessions.find(secret)
    assert found and found.key_id == "abcd1234"


async def test_keys_that_are_not_valid_open_none(api: httpx.AsyncClient, keys: Keys) -> None:
    for key in ("nonsense", await keys.expired(), await keys.revoked()):
        answer = await log_in(api, key)
        refused(answer, 401, "unauthorized")
        assert "set-cookie" not in answer.headers


async def test_pages_of_other_sites_can_neither_log_in_nor_ask(api: httpx.AsyncClient, keys: Keys) -> None:
    key = await keys.make()
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        refused(await log_in(api, key, **headers), 403, "foreign_origin")
        refused(await api.get(SESSION, headers=headers), 403, "foreign_origin")


async def test_behind_tls_the_cookie_is_sent_over_tls_only(api: httpx.AsyncClient, keys: Keys) -> None:
    host = api.base_url.netloc.decode()
    answer = await log_in(api, await keys.make(), origin=f"https://{host}")
    assert "; Secure" in answer.headers["set-cookie"]


async def test_a_key_in_a_header_counts_more_than_a_session(api: httpx.AsyncClient, keys: Keys) -> None:
    good(await log_in(api, await keys.make("read")))
    header = {"authorization": f"Bearer {await keys.make('submit', 'read')}"}
    good(await api.post(TASKS, json={"task_type": "draw"}, headers=header), 201)

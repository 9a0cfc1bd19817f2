"""Access: addresses that others can reach, names of the server, and pages of other sites."""

import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import TASKS, good, refused
from tests.api.serving import Gateway, serving
from tests.commands import Shell
from tests.servers import Server
from tests.waiting import wait_until


async def test_requests_under_another_host_name_are_refused(
    api: httpx.AsyncClient, subtests: pytest.Subtests
) -> None:
    for host in ["evil.example", "127.0.0.1.evil.example", "", "0.0.0.0", "[::2]:80"]:
        with subtests.test(host=host):
            refused(await api.get(TASKS, headers={"host": host}), 421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:8000"])
async def test_the_names_of_loopback_are_its_own(api: httpx.AsyncClient, host: str) -> None:
    good(await api.get(TASKS, headers={"host": host}))


async def test_probes_may_use_any_name(api: httpx.AsyncClient) -> None:
    good(await api.get("/healthz", headers={"host": "10.1.2.3"}))
    good(await api.get("/readyz", headers={"host": "10.1.2.3"}))


async def test_a_page_of_another_site_can_do_nothing(
    api: httpx.AsyncClient, store: Store, subtests: pytest.Subtests
) -> None:
    for headers in [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"origin": "http://[bad"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ]:
        with subtests.test(headers=headers):
            for method, path in (("GET", "/task"), ("POST", "/api/v1/dlq/replay"), ("DELETE", f"{TASKS}/x")):
                answer = await api.request(method, path, headers=headers)
                refused(answer, 403, "foreign_origin")
                assert "access-control-allow-origin" not in answer.headers
            assert (await store.list_tasks()).tasks == []


async def test_its_own_pages_may_ask(api: httpx.AsyncClient, gateway: Gateway) -> None:
    good(await api.get(TASKS, headers={"origin": gateway.url, "sec-fetch-site": "same-origin"}))
    good(await api.get(TASKS, headers={"sec-fetch-site": "none"}))


async def test_browsers_get_no_leave_to_ask_from_elsewhere(api: httpx.AsyncClient) -> None:
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    answer = await api.options(TASKS, headers=preflight)
    refused(answer, 405, "method_not_allowed")
    assert not [name for name in answer.headers if name.startswith("access-control")]


# Addresses that others can reach


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    return Shell.beside(live_store, server.url, tmp_path)


@pytest.mark.parametrize("command", ["server", "up"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_they_are_not_served_without_keys(shell: Shell, command: str, host: str) -> None:
    ended = await shell.run(command, "--host", host, "--port", "0", "--processes", "2")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no key: make one with `fairlead key create`" in ended.err


async def test_the_first_key_closes_the_door_while_the_server_runs(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    with serving(server.url, live_store.connection.keys.namespace, tmp_path) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=40) as client:
            good(await client.get(TASKS))
            await live_store.api_keys.create("ann", ["read"])

            async def asks() -> bool:
                return (await client.get(TASKS)).status_code == 401

            await wait_until(asks)


async def test_a_port_that_is_taken_is_named(shell: Shell, gateway: Gateway) -> None:
    ended = await shell.run("server", "--port", str(gateway.port))
    assert ended.code == 2
    assert f"cannot listen on 127.0.0.1:{gateway.port}: Address already in use" in ended.err


async def test_with_insecure_they_are_served_and_that_is_logged(
    start_server: Callable[[str], Server], tmp_path: Path
) -> None:
    namespace = f"insecure-{os.getpid()}"
    engine = start_server("valkey").url
    with serving(engine, namespace, tmp_path, "--host", "0.0.0.0", "--insecure") as gateway:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=40) as client:
            good(await client.get(TASKS, headers={"host": "anything"}))
        assert "insecure host=0.0.0.0" in gateway.log_text()


async def test_with_a_key_they_are_served_under_the_names_in_the_settings(
    live_store: Store, server: Server, tmp_path: Path
) -> None:
    key = (await live_store.api_keys.create("ann", ["read"])).key_text
    env = {"FAIRLEAD_SERVER__HOSTS": '["queue.example"]'}
    namespace = live_store.connection.keys.namespace
    with serving(server.url, namespace, tmp_path, "--host", "0.0.0.0", env=env) as gateway:
        headers = {"host": "queue.example", "authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=40) as client:
            good(await client.get(TASKS, headers=headers))
            refused(await client.get(TASKS, headers={"host": "queue.example"}), 401, "unauthorized")
            refused(await client.get(TASKS, headers={**headers, "host": "evil.example"}), 421, "wrong_host")
            good(await client.get(TASKS, headers={**headers, "origin": "https://queue.example:8443"}))

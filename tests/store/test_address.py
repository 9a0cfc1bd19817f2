"""Every kind of URL leads to the server: host or socket, password, database, TLS; and refusals say why."""

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from fairlead import errors
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.keys import CHANNEL, KEY_CHANNEL
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.servers import binary, free_port, running
from tests.store.namespace import new, raw
from tests.waiting import wait_until


async def works(url: str) -> None:
    """Acts, reads, waits and subscriptions, each on the connection it is made for."""
    async with asyncio.timeout(20), Store.connect(url, "there") as store:
        task = new()
        async with store.live.watch(task.task_id) as events:
            assert await anext(events) is None
            await store.submit_one(task)
            event = await anext(events)
        assert event and event.act == "submit"
        assert (await store.get(task.task_id)).task_id == task.task_id
        assert await store.workers.wait("w", 0.01) is None


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a server that asks for a password, and knows a user."""
    port = free_port()
    with running("valkey", "--port", str(port), "--bind", "127.0.0.1") as server:
        with redis.Redis.from_url(server.url) as client:
            client.acl_setuser("ann", enabled=True, passwords=["+p@ss/wo:rd"], commands=["+@all"], keys=["*"])
            client.execute_command("ACL", "SETUSER", "ann", "allchannels")
            client.config_set("requirepass", "secret")
        yield port


@pytest.mark.parametrize("user", [":secret", "default:secret", "ann:p%40ss%2Fwo%3Ard"])
async def test_a_password_is_sent_to_a_server_that_requires_one(port: int, user: str) -> None:
    await works(f"redis://{user}@127.0.0.1:{port}")


async def test_the_database_of_the_url_is_the_one_that_is_used(port: int) -> None:
    url = f"redis://:secret@127.0.0.1:{port}"
    await works(f"{url}/3")
    with redis.Redis.from_url(url, db=3) as third, redis.Redis.from_url(url, db=4) as fourth:
        assert third.dbsize() and not fourth.dbsize()


@pytest.mark.parametrize("user", ["", ":wrong-one@", "ann:wrong-one@", "nobody:wrong-one@"])
async def test_a_refusal_by_the_server_is_explained_without_showing_the_password(
    port: int, user: str
) -> None:
    store = Store.connect(f"redis://{user}127.0.0.1:{port}")
    with pytest.raises(errors.StoreUnavailable, match=r"WRONGPASS|NOAUTH") as refused:
        await store.stats()
    assert "wrong-one" not in str(refused.value)
    await store.close()


async def test_a_database_that_does_not_exist_is_refused(port: int) -> None:
    store = Store.connect(f"redis://:secret@127.0.0.1:{port}/999")
    with pytest.raises(errors.StoreUnavailable, match="DB index is out of range"):
        await store.stats()
    await store.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    request = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", *request.split(), *files], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def tls_port(certificate: Path) -> Iterator[int]:
    if not binary("redis"):
        pytest.skip("no server that speaks TLS on this machine")
    port, cert, key = free_port(), str(certificate / "cert.pem"), str(certificate / "key.pem")
    files = ("--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
    with running("redis", "--tls-port", str(port), "--bind", "127.0.0.1", *files):
        yield port


async def test_a_server_behind_tls_is_known_by_its_certificate(tls_port: int, certificate: Path) -> None:
    ours = "&".join(
        f"ssl_{name}={certificate / file}"
        for name, file in (("ca_certs", "cert.pem"), ("certfile", "cert.pem"), ("keyfile", "key.pem"))
    )
    await works(f"rediss://localhost:{tls_port}?{ours}")


async def test_an_untrusted_certificate_is_refused_unless_none_is_required(
    tls_port: int, certificate: Path
) -> None:
    own = f"ssl_certfile={certificate / 'cert.pem'}&ssl_keyfile={certificate / 'key.pem'}"
    store = Store.connect(f"rediss://localhost:{tls_port}?{own}")
    with pytest.raises(errors.StoreUnavailable, match=r"(?i)certificate verify failed"):
        await store.stats()
    await store.close()
    await works(f"rediss://localhost:{tls_port}?{own}&ssl_cert_reqs=none")
    ca = f"ssl_ca_certs={certificate / 'cert.pem'}"
    store = Store.connect(f"rediss://127.0.0.1:{tls_port}?{own}&{ca}")
    with pytest.raises(errors.StoreUnavailable, match=r"(?i)certificate verify failed"):
        await store.stats()  # it is vouched for under another name
    await store.close()


async def test_sentinels_and_their_primary_behind_tls_are_known_by_an_authority_of_our_own(
    tmp_path: Path,
) -> None:
    if not binary("redis"):
        pytest.skip("no server that speaks TLS on this machine")
    ca, server = tmp_path / "ca.pem", tmp_path / "server.pem"
    certify(tmp_path)
    tls = (
        *("--port", "0", "--bind", "127.0.0.1", "--tls-auth-clients", "no", "--tls-ca-cert-file", str(ca)),
        *("--tls-cert-file", str(server), "--tls-key-file", str(tmp_path / "server.key")),
    )
    port, sentinel = free_port(), free_port()
    file = tmp_path / "sentinel.conf"
    file.write_text(f"sentinel monitor jobs 127.0.0.1 {port} 1\n")
    watches = (str(binary("redis")), str(file), "--sentinel", *tls, "--tls-port", str(sentinel))
    with running("redis", *tls, "--tls-port", str(port)):
        process = subprocess.Popen([*watches, "--tls-replication", "yes"], stdout=subprocess.DEVNULL)
        try:
            url = f"rediss+sentinel://127.0.0.1:{sentinel}/jobs"
            with redis.Redis.from_url(f"rediss://127.0.0.1:{sentinel}", ssl_ca_certs=str(ca)) as client:
                await wait_until(lambda: is_watched(client), because="the Sentinel has found the primary")
            await works(f"{url}?ssl_ca_certs={ca}")
            store = Store.connect(url)
            with pytest.raises(errors.StoreUnavailable, match=r"none of .*certificate verify failed"):
                await store.stats()
            await store.close()
        finally:
            process.kill()
            process.wait()


def is_watched(sentinel: Any) -> bool:
    with contextlib.suppress(redis.RedisError, OSError):
        return "OK" in str(sentinel.execute_command("SENTINEL", "CKQUORUM", "jobs"))
    return False


def certify(folder: Path) -> None:
    """An authority, and a certificate of it for a server at this address."""
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    new = "-newkey rsa:2048 -nodes"
    for command in (
        f"req -x509 {new} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem",
        f"req {new} -subj /CN=server -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out server.pem",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True, cwd=folder)


def test_an_option_of_the_url_that_cannot_be_used_is_named() -> None:
    with pytest.raises(errors.InvalidSettings, match="ssl_cert_reqs=maybe: use one of none"):
        Store.connect("rediss://localhost:1?ssl_cert_reqs=maybe")
    with pytest.raises(errors.InvalidSettings, match="unknown option 'colour': leave it out"):
        Store.connect("redis://localhost:1?colour=red")


@pytest.mark.every_server
async def test_events_and_changes_of_keys_come_over_one_connection(store: Store, clock: Clock) -> None:
    before = await subscriptions(store)
    async with KeyRing(store.api_keys), store.live.watch() as one, store.live.watch("other") as other:
        assert await anext(one) is None
        assert await anext(other) is None
        assert await subscriptions(store) == before + 1
    await wait_until(lambda: none_left(store, before))


async def subscriptions(store: Store) -> int:
    return len(await raw(store).client_list(_type="pubsub"))


async def none_left(store: Store, before: int) -> bool:
    return await subscriptions(store) == before


@pytest.mark.every_server
async def test_a_channel_is_unsubscribed_when_its_last_listener_leaves(store: Store) -> None:
    channels = store.connection.keys.key(CHANNEL), store.connection.keys.key(KEY_CHANNEL)

    async def subscribers() -> list[int]:
        return [count for _, count in await raw(store).pubsub_numsub(*channels)]

    async with KeyRing(store.api_keys):
        async with store.live.watch() as events:
            assert await anext(events) is None
            assert await subscribers() == [1, 1]

        async def is_left() -> bool:
            return await subscribers() == [0, 1]

        await wait_until(is_left)
        async with store.live.watch() as events:
            assert await anext(events) is None
            assert await subscribers() == [1, 1]

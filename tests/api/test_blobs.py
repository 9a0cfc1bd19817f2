"""Files over HTTP: what is kept of them, who may have them, and what hostile or unlucky uploads leave."""

import asyncio
import base64
import contextlib
import hashlib
import os
import resource
import signal
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from fairlead.blobs.local import STALE_MS
from fairlead.settings import TaskSettings
from fairlead.store.store import Store
from tests.api.requests import TASKS, good, refused, submit
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.waiting import wait_until

BLOBS = "/api/v1/blobs"
READ_SECONDS = 1.0
PIECE = b"p" * 256 * 1024
MOST = 4 * 1024 * 1024
HELLO = hashlib.sha256(b"hello").hexdigest()
REF = {"blob": f"sha256:{HELLO}", "size": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blobs")


@pytest.fixture(scope="module")
def server_env(folder: Path) -> Mapping[str, str]:
    return {
        "FAIRLEAD_BLOBS__URL": f"file://{folder}",
        "FAIRLEAD_BLOBS__MAX_BYTES": str(MOST),
        "FAIRLEAD_BLOBS__MAX_UPLOADS": "2",
        "FAIRLEAD_SERVER__READ_SECONDS": str(READ_SECONDS),
        "FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0",
    }


@pytest.fixture(autouse=True)
def empty(folder: Path) -> None:
    for path in files(folder):
        path.unlink()


def files(folder: Path) -> list[Path]:
    """Marks and claims too."""
    return [path for path in folder.rglob("*") if path.is_file()]


async def put(api: httpx.AsyncClient, content: bytes = b"hello", **query: str) -> httpx.Response:
    return await api.put(BLOBS, content=content, params=query)


async def test_an_upload_can_be_read_again(api: httpx.AsyncClient) -> None:
    answer = good(await put(api), 201)
    assert (answer["blob"], answer["size"]) == (f"sha256:{HELLO}", 5)
    again = good(await put(api), 200)
    assert again["expires_at"] >= answer["expires_at"]
    for method in ("GET", "HEAD"):
        found = await api.request(method, f"{BLOBS}/{answer['blob']}")
        assert found.content == (b"hello" if method == "GET" else b"")
        expected = {
            "content-type": "application/octet-stream",
            "content-length": "5",
            "content-disposition": "attachment",
            "etag": f'"sha256:{HELLO}"',
            "x-content-type-options": "nosniff",
        }
        assert expected.items() <= dict(found.headers).items()


async def test_a_large_file_comes_back_whole(api: httpx.AsyncClient) -> None:
    content = os.urandom(MOST)
    blob = good(await put(api, content), 201)["blob"]
    assert (await api.get(f"{BLOBS}/{blob}")).content == content


@pytest.mark.parametrize("blob", ["sha256:00", f"sha256:{'0' * 64}", f"sha256:{HELLO}%0A", "x"])
async def test_what_is_not_there_is_unknown(api: httpx.AsyncClient, blob: str) -> None:
    refused(await api.get(f"{BLOBS}/{blob}"), 404, "unknown_blob")


async def test_a_digest_that_is_given_is_checked(api: httpx.AsyncClient, folder: Path) -> None:
    wrong, right = (base64.b64encode(hashlib.sha256(it).digest()).decode() for it in (b"other", b"hello"))
    refused(await put(api, sha256="0" * 64), 422, "digest_mismatch", "sha256")
    headers = {"content-digest": f"sha-512=:x:, sha-256=:{wrong}:"}
    refused(await api.put(BLOBS, content=b"hello", headers=headers), 422, "digest_mismatch", "sha256")
    both = {"headers": headers, "params": {"sha256": HELLO}}
    refused(await api.put(BLOBS, content=b"hello", **both), 422, "invalid_input", "sha256")  # type: ignore[arg-type]
    refused(await put(api, sha256="x"), 422, "invalid_input", "sha256")
    assert files(folder) == []
    good(await api.put(BLOBS, content=b"hello", headers={"content-digest": f"sha-256=:{right}:"}), 201)
    good(await put(api, sha256=HELLO), 200)


# Bounds


async def in_pieces(count: int, pause: float = 0) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield PIECE
        await asyncio.sleep(pause)


async def test_a_file_that_is_too_large_is_refused(api: httpx.AsyncClient, folder: Path) -> None:
    refused(await put(api, b"x" * (MOST + 1)), 413, "blob_too_large")
    problem = refused(await api.put(BLOBS, content=in_pieces(17)), 413, "blob_too_large")
    assert "raise blobs.max_bytes" in problem["detail"]
    assert files(folder) == []


async def test_when_there_is_no_room_it_says_what_to_do(
    server: Server, live_store: Store, tmp_path: Path
) -> None:
    namespace = live_store.connection.keys.namespace
    env = {"FAIRLEAD_BLOBS__URL": f"file://{tmp_path}/blobs", "FAIRLEAD_BLOBS__MAX_TOTAL_BYTES": "8192"}
    with serving(server.url, namespace, tmp_path, env=env) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=40) as api:
            good(await put(api, b"a"), 201)
            good(await put(api, b"b"), 201)
            answer = await put(api)
            assert "raise blobs.max_total_bytes" in refused(answer, 507, "blob_store_full")["detail"]
            assert answer.headers["retry-after"] == "60"
            for path in files(tmp_path / "blobs"):
                path.unlink()

            async def has_room() -> bool:
                return (await put(api)).status_code == 201

            await wait_until(has_room)


async def test_a_slow_upload_may_last_if_it_moves(api: httpx.AsyncClient) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    good(await api.put(BLOBS, content=in_pieces(12, READ_SECONDS / 6)), 201)
    assert loop.time() - began > READ_SECONDS, "it was no slow one"


@contextlib.asynccontextmanager
async def beginning(gateway: Gateway, sent: bytes = PIECE) -> AsyncIterator[asyncio.StreamReader]:
    """An upload that has sent so much of itself."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"PUT {BLOBS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MOST}\r\n\r\n".encode() + sent)
    try:
        await writer.drain()
        yield reader
    finally:
        writer.transport.abort()


def uploads(folder: Path) -> list[Path]:
    return list((folder / "uploads").glob("*"))


async def test_one_that_stops_is_ended_and_leaves_nothing(
    gateway: Gateway, api: httpx.AsyncClient, folder: Path
) -> None:
    async with beginning(gateway) as reader, asyncio.timeout(20):
        await wait_until(lambda: uploads(folder))
        assert b" 408 " in await reader.readline()
    await wait_until(lambda: files(folder) == [])


async def test_one_that_is_cut_leaves_nothing(gateway: Gateway, api: httpx.AsyncClient, folder: Path) -> None:
    async with beginning(gateway):
        await wait_until(lambda: uploads(folder))
    await wait_until(lambda: files(folder) == [])


async def test_only_a_few_upload_at_once(gateway: Gateway, api: httpx.AsyncClient, folder: Path) -> None:
    async def keep_sending() -> None:
        with contextlib.suppress(httpx.TransportError):
            await api.put(BLOBS, content=in_pieces(100, READ_SECONDS / 2))

    sending = [asyncio.create_task(keep_sending()) for _ in range(2)]
    try:
        await wait_until(lambda: len(uploads(folder)) == 2)
        answer = await put(api)
        refused(answer, 503, "overloaded")
        assert answer.headers["retry-after"] == "1"
    finally:
        for one in sending:
            one.cancel()
        await asyncio.gather(*sending, return_exceptions=True)

    async def is_free() -> bool:
        return (await put(api)).status_code in (200, 201)

    await wait_until(is_free)


async def test_a_gateway_that_is_killed_leaves_no_blob(
    server: Server, live_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = live_store.connection.keys.namespace
    env = {"FAIRLEAD_BLOBS__URL": f"file://{tmp_path}/blobs", "HOME": str(tmp_path)}
    code = 0
    # that it does not end by itself is what `serving` complains of
    with contextlib.suppress(AssertionError), serving(server.url, namespace, tmp_path, env=env) as gateway:
        async with beginning(gateway):
            await wait_until(lambda: uploads(tmp_path / "blobs"))
            gateway.process.kill()
            code = await gateway.ended()
    assert code == -signal.SIGKILL
    (left,) = files(tmp_path / "blobs")
    os.utime(left, (0, left.stat().st_mtime - STALE_MS / 1000 - 1))
    with serving(server.url, namespace, tmp_path, env=env):
        await wait_until(lambda: files(tmp_path / "blobs") == [])


def with_small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST // 2, MOST // 2))


async def test_a_full_disk_is_an_answer(server: Server, live_store: Store, tmp_path: Path) -> None:
    namespace = live_store.connection.keys.namespace
    env = {"FAIRLEAD_BLOBS__URL": f"file://{tmp_path}/blobs"}
    with serving(server.url, namespace, tmp_path, env=env, prepare=with_small_files) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=40) as api:
            answer = refused(await put(api, b"x" * MOST), 507, "blob_store_full")
            assert "disk of the blobs is full" in answer["detail"]
            assert files(tmp_path / "blobs") == []
            good(await put(api), 201)


# Tasks that name them


async def test_a_task_needs_its_files(api: httpx.AsyncClient, folder: Path) -> None:
    body = {"task_type": "echo", "parameters": {"deep": [{"source": REF}]}}
    problem = refused(await api.post(TASKS, json=body), 422, "unknown_blob", "parameters")
    assert "upload the file first" in problem["detail"]
    batch = {"tasks": [body, {"task_type": "echo"}, body]}
    rows = good(await api.post(f"{TASKS}/batch", json=batch), 201)["tasks"]
    assert [row.get("error", {}).get("code") for row in rows] == ["unknown_blob", None, "unknown_blob"]
    good(await put(api), 201)
    submitted = await submit(api, parameters={"deep": [{"source": REF}]})
    assert any(path.name.endswith(submitted["task_id"]) for path in files(folder))


async def test_a_job_needs_its_files(api: httpx.AsyncClient, store: Store, folder: Path) -> None:
    await store.declare("code", {"echo": TaskSettings()}, {}, {"story": (("echo",),)})
    body = {"feature_name": "story", "input_data": {"source": REF}}
    refused(await api.post("/api/v1/jobs", json=body), 422, "unknown_blob", "input_data")
    good(await put(api), 201)
    job = good(await api.post("/api/v1/jobs", json=body), 201)
    assert any(
        f"job.{store.connection.membership.epoch}.{job['job_id']}" == one.name for one in files(folder)
    )

"""The embedded engine, with real processes, on the server of the wheel and on Debian's."""

import asyncio
import contextlib
import os
import stat
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from fairlead.errors import EngineFailed, InvalidSettings
from fairlead.settings import EngineSettings, Settings
from fairlead.settings.folders import default_data_folder
from fairlead.store.address import make_client
from fairlead.store.doctor.doctor import examine
from fairlead.store.engine import engine as engine_module
from fairlead.store.engine.engine import Engine, open_engine, url_of
from fairlead.store.engine.folder import EngineFolder, make_private_folder
from fairlead.store.engine.process import find_server
from fairlead.store.opening import connected_store
from tests.engine_processes import is_running, launch, opened, server_pid
from tests.servers import binary
from tests.waiting import wait_until


@pytest.fixture(params=["valkey", pytest.param("redis", marks=pytest.mark.other_server)])
def server_bin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    program = binary(request.param)
    if program is None:
        pytest.skip("no redis-server on this machine")
    monkeypatch.setenv("FAIRLEAD_SERVER_BIN", program)
    return program


@contextlib.asynccontextmanager
async def opened_client(data: Path, durability: str = "always") -> AsyncIterator[tuple[Engine, Redis]]:
    async with await open_engine(data, durability=durability) as engine, make_client(engine.url) as client:
        yield engine, client


@pytest.mark.usefixtures("server_bin")
async def test_it_starts_and_answers(tmp_path: Path) -> None:
    async with opened_client(tmp_path) as (engine, client):
        assert engine.owned
        assert engine.url == f"unix://{engine.socket}"
        assert await client.ping()


@pytest.mark.usefixtures("server_bin")
async def test_it_is_private_durable_and_never_evicts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with opened_client(data) as (engine, client):
        for path in (data, data / "engine", engine.socket):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        wanted = {
            "port": "0",
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
            "hash-max-listpack-value": "1024",
        }
        found = {name: (await client.config_get(name))[name] for name in wanted}
        assert found == wanted


async def test_durability_can_be_relaxed(tmp_path: Path) -> None:
    async with opened_client(tmp_path, "everysec") as (_, client):
        assert await client.config_get("appendfsync") == {"appendfsync": "everysec"}


async def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineFailed, match="always, everysec, ledger, not 'often'"):
        await open_engine(tmp_path, durability="often")


@pytest.mark.usefixtures("server_bin")
async def test_data_survives_close_and_reopen(tmp_path: Path) -> None:
    async with opened_client(tmp_path) as (_, client):
        await client.set("kept", "yes")
    async with opened_client(tmp_path) as (engine, client):
        assert engine.owned
        assert await client.get("kept") == b"yes"


async def test_close_leaves_no_server_and_no_socket(tmp_path: Path) -> None:
    engine = await open_engine(tmp_path)
    pid = server_pid(engine.url)
    await engine.close()
    assert not is_running(pid)
    assert not engine.socket.exists()
    await engine.close()


@pytest.mark.parametrize("name", ["with space", "quo'te\"s", "ünï #?%41", "-minus"])
async def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    async with opened_client(tmp_path / name) as (_, client):
        assert await client.ping()


@pytest.fixture
def short() -> Iterator[Path]:
    """Shorter than `tmp_path`, whose number grows with every run of the tests."""
    with tempfile.TemporaryDirectory(prefix="fl-") as folder:
        yield Path(folder)


@pytest.mark.usefixtures("server_bin")
async def test_a_deep_folder_gets_a_short_socket(
    tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(short))
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    async with opened_client(deep) as (engine, client):
        assert engine.socket.parent.parent == short
        assert stat.S_IMODE(engine.socket.parent.stat().st_mode) == 0o700
        assert (deep / "engine" / "socket").readlink() == engine.socket
        await client.set("kept", "yes")
        # Another process may have another temporary folder: the link in the data folder leads it.
        monkeypatch.setattr("tempfile.gettempdir", lambda: "/nowhere")
        async with opened_client(deep) as (second, second_client):
            assert not second.owned
            assert await second_client.get("kept") == b"yes"


async def test_a_second_process_connects_to_the_running_one(tmp_path: Path) -> None:
    async with opened_client(tmp_path) as (engine, client):
        other = await opened(launch(tmp_path))
        assert (other.owned, other.url) == (False, engine.url)
        await other.close()
        assert await client.ping(), "the one that did not start the server must not stop it"


async def test_when_the_owner_goes_the_other_can_open_again(tmp_path: Path) -> None:
    owner = await opened(launch(tmp_path))
    async with opened_client(tmp_path) as (adopted, client):
        await client.set("kept", "yes")
        await owner.close()
        assert not adopted.owned
    async with opened_client(tmp_path) as (engine, client):
        assert engine.owned
        assert await client.get("kept") == b"yes"


async def test_a_server_that_is_about_to_end_is_not_reused_although_it_still_answers(tmp_path: Path) -> None:
    owner = await opened(launch(tmp_path))
    async with connected_store(Settings(engine=EngineSettings(data=str(tmp_path)))) as store:
        assert await store.connection.client.ping()
        EngineFolder(tmp_path).remove_socket()  # so a close begins
        await asyncio.gather(store.reopen(), owner.close())
        await store.open()
        assert await examine(store.connection) == []


async def test_racing_processes_start_one_server(tmp_path: Path) -> None:
    processes = [launch(tmp_path) for _ in range(10)]
    engine_processes = await asyncio.gather(*(opened(process) for process in processes))
    assert sum(engine_process.owned for engine_process in engine_processes) == 1
    assert len({server_pid(engine_process.url) for engine_process in engine_processes}) == 1
    await asyncio.gather(
        *(engine_process.close() for engine_process in engine_processes if not engine_process.owned)
    )
    await asyncio.gather(
        *(engine_process.close() for engine_process in engine_processes if engine_process.owned)
    )


async def test_racing_tasks_of_one_process_start_one_server(tmp_path: Path) -> None:
    engines = await asyncio.gather(*(open_engine(tmp_path) for _ in range(5)))
    assert sum(engine.owned for engine in engines) == 1
    for engine in engines:
        await engine.close()


async def test_opening_during_a_close_waits_and_starts_again(tmp_path: Path) -> None:
    first = await open_engine(tmp_path)
    _, second = await asyncio.gather(first.close(), open_engine(tmp_path))
    async with second, make_client(second.url) as client:
        assert second.owned
        assert await client.ping()


async def test_the_server_outlives_the_thread_that_opened_it(tmp_path: Path) -> None:
    engines: list[Engine] = []
    thread = threading.Thread(target=lambda: engines.append(asyncio.run(open_engine(tmp_path))))
    thread.start()
    await asyncio.to_thread(thread.join)
    async with engines[0] as engine, make_client(engine.url) as client:
        assert engine.owned
        assert await client.ping()


async def test_a_server_that_ends_at_once_is_reported_with_its_log(tmp_path: Path) -> None:
    folder = tmp_path / "engine" / "appendonlydir"
    folder.mkdir(parents=True)
    (folder / "appendonly.aof.manifest").write_text("nonsense\n")
    with pytest.raises(EngineFailed, match=r"(?s)ended with code 1.*nonsense"):
        await open_engine(tmp_path)


async def test_a_silent_holder_of_the_folder_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "SILENT_SECONDS", 0.05)
    folder = EngineFolder(tmp_path)
    folder.prepare()
    lock = folder.take_lock()
    assert lock is not None
    try:
        with pytest.raises(EngineFailed, match=r"another process holds .* no server answers"):
            await open_engine(tmp_path)
    finally:
        os.close(lock)


async def test_a_server_that_reads_its_data_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_client(tmp_path) as (_, client), client.pipeline(transaction=False) as many:
        for number in range(40_000):
            many.set(f"key:{number}", "x")
        await many.execute()
    monkeypatch.setenv("FAIRLEAD_SERVER_BIN", str(_slow_loader(tmp_path)))
    ask, answers = engine_module._ask, []

    async def ask_and_note(socket: Path) -> engine_module.Answer:
        answers.append(await ask(socket))
        if answers[-1] == "loading":  # it was seen: now it may be quick
            async with make_client(url_of(socket)) as client:
                await client.config_set("key-load-delay", 0)
        return answers[-1]

    monkeypatch.setattr(engine_module, "_ask", ask_and_note)
    async with opened_client(tmp_path) as (_, client):
        assert "loading" in answers
        assert await client.dbsize() == 40_000


async def test_reading_data_is_forgiven_for_longer_than_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(engine_module, "monotonic", lambda: now)
    patience = engine_module.Patience(EngineFolder(tmp_path), 0)
    now = 500.0
    await patience.spend("loading", "no answer")
    now = 529.0
    await patience.spend("silent", "no answer")
    now = 531.0
    with pytest.raises(EngineFailed, match="no answer for 30 s"):
        await patience.spend("silent", "no answer")
    now = 601.0
    with pytest.raises(EngineFailed, match="still reading its data after 600 s"):
        await patience.spend("loading", "no answer")


def _slow_loader(folder: Path) -> Path:
    script = folder / "slow-server"
    # In microseconds for each key; while it reads, a server looks at its clients once in 1024 commands.
    options = "--key-load-delay 20"
    script.write_text(f'#!/bin/sh\nexec {find_server({})} "$@" {options}\n')
    script.chmod(0o700)
    return script


async def test_giving_up_while_it_starts_leaves_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_ask", _never)
    opening = asyncio.create_task(open_engine(tmp_path))
    pid_file = EngineFolder(tmp_path).pidfile
    await wait_until(lambda: pid_file.exists() and pid_file.read_text().strip())
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    monkeypatch.undo()
    pid = int(pid_file.read_text())
    await wait_until(lambda: not is_running(pid), because="the server was killed")
    async with opened_client(tmp_path) as (engine, _):
        assert engine.owned


async def _never(socket: Path) -> str:
    await asyncio.sleep(60)
    return "silent"


async def test_ctrl_c_at_the_terminal_does_not_reach_the_server(tmp_path: Path) -> None:
    async with opened_client(tmp_path) as (engine, _):
        assert os.getpgid(server_pid(engine.url)) != os.getpgid(0)


async def test_a_file_in_place_of_the_data_folder_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InvalidSettings, match="cannot use the data folder"):
        await open_engine(file)


def test_a_private_folder_is_not_taken_from_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "link")


def test_the_named_server_comes_first_then_the_wheel() -> None:
    assert find_server({"FAIRLEAD_SERVER_BIN": "/bin/sh"}) == Path("/bin/sh")
    wheel = find_server({})
    assert wheel.name == "valkey-server"
    assert subprocess.run([wheel, "--version"], capture_output=True, check=True).stdout.startswith(b"Valkey")
    with pytest.raises(EngineFailed, match="FAIRLEAD_SERVER_BIN names /no/such"):
        find_server({"FAIRLEAD_SERVER_BIN": "/no/such"})


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", {"HOME": "/h"}, "/h/.local/share/fairlead"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/fairlead"),
        ("linux", {"HOME": "/h", "XDG_DATA_HOME": "relative"}, "/h/.local/share/fairlead"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/fairlead"),
    ],
)
def test_the_default_data_folder(
    platform: str, env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert default_data_folder(env) == Path(folder)

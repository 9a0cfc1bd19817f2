"""The embedded engine when a process is killed: the server, its owner, or its owner during the start."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from fairlead.store.address import make_client
from fairlead.store.engine.engine import open_engine
from fairlead.store.engine.folder import EngineFolder
from tests.engine_processes import is_running, kill, launch, opened, server_pid
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent")


async def test_killing_the_server_loses_nothing_acknowledged(tmp_path: Path) -> None:
    engine = await open_engine(tmp_path)
    pid = server_pid(engine.url)
    async with make_client(engine.url) as client:
        for number in range(200):
            await client.rpush("acknowledged", number)
    await kill(pid)
    async with await open_engine(tmp_path) as second, make_client(second.url) as client:
        assert second.owned
        assert await client.llen("acknowledged") == 200
        await engine.close()
        assert await client.ping(), "the first owner's server is gone, and the second is not its to stop"


async def test_killing_the_owner_leaves_no_server_and_all_data(tmp_path: Path) -> None:
    owner = await opened(launch(tmp_path))
    pid = server_pid(owner.url)
    async with make_client(owner.url) as client:
        await client.set("kept", "yes")
    await owner.kill()
    await wait_until(lambda: not is_running(pid), because="the server ended with its owner")
    async with await open_engine(tmp_path) as engine, make_client(engine.url) as client:
        assert engine.owned
        assert await client.get("kept") == b"yes"


async def test_opening_right_after_the_owner_was_killed_never_gets_a_dying_server(tmp_path: Path) -> None:
    for _ in range(3):
        owner = await opened(launch(tmp_path))
        await owner.kill()
        async with await open_engine(tmp_path) as engine, make_client(engine.url) as client:
            assert engine.owned
            assert await client.ping()


async def test_killing_the_owner_while_it_starts_frees_the_folder(tmp_path: Path) -> None:
    folder = EngineFolder(tmp_path)
    process = launch(tmp_path)
    await wait_until(folder.log.exists, because="the server is being started")
    await process.kill()
    async with await open_engine(tmp_path) as engine, make_client(engine.url) as client:
        assert engine.owned
        assert await client.ping()


async def test_one_of_many_processes_that_lose_their_owner_starts_the_next_server(tmp_path: Path) -> None:
    owner = await opened(launch(tmp_path))
    async with make_client(owner.url) as client:
        await client.set("kept", "yes")
    await owner.kill()
    processes = [launch(tmp_path) for _ in range(4)]
    engine_processes = await asyncio.gather(*(opened(process) for process in processes))
    assert sum(engine_process.owned for engine_process in engine_processes) == 1
    async with make_client(engine_processes[0].url) as client:
        assert await client.get("kept") == b"yes"
    await asyncio.gather(
        *(
            engine_process.close()
            for engine_process in sorted(engine_processes, key=lambda engine_process: engine_process.owned)
        )
    )


async def test_a_server_that_outlived_its_owner_is_adopted(tmp_path: Path) -> None:
    owner = await opened(launch(tmp_path, "--untied"))
    pid = server_pid(owner.url)
    await owner.kill()
    try:
        async with await open_engine(tmp_path) as engine, make_client(engine.url) as client:
            assert not engine.owned
            assert await client.ping()
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)

"""An embedded server whose disk is full, or whose data was cut off: log and readiness say what to do."""

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.requests import TASKS, good, submit
from tests.api.serving import Gateway, serving
from tests.api.test_server_state import client_of, reasons, turns_green, turns_red
from tests.commands import Shell
from tests.engine_processes import kill, server_pid
from tests.servers import binary
from tests.waiting import wait_until

BLOCKS = 4000  # of 512 bytes: what fits on the disk
BIG = {"task_type": "echo", "parameters": {"text": "x" * 100_000}}


@pytest.fixture(params=["valkey", "redis"])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server whose files end where the disk would be full; `blocks` says where."""
    program = binary(request.param)
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no redis-server: `scripts/test-servers` installs it")
        pytest.skip("no redis-server on this machine")
    (tmp_path / "blocks").write_text(str(BLOCKS))
    script = tmp_path / "server"
    script.write_text(
        f"#!/bin/sh\ntrap '' XFSZ\nulimit -S -f $(cat {tmp_path}/blocks)\nexec {program} \"$@\"\n"
    )
    script.chmod(0o700)
    yield {"FAIRLEAD_SERVER_BIN": str(script)}


async def fill(api: httpx.AsyncClient) -> list[str]:
    """Until the disk is full; the tasks that were accepted."""
    accepted: list[str] = []
    for _ in range(100):
        answer = await api.post(TASKS, json=BIG)
        if answer.status_code != 201:
            assert answer.status_code == 503
            return accepted
        accepted.append(answer.json()["task_id"])
    raise AssertionError("the disk never got full")


async def all_there(api: httpx.AsyncClient, tasks: list[str]) -> None:
    for task_id in tasks:
        assert good(await api.get(f"{TASKS}/{task_id}"))["status"] == "queued"


async def test_a_full_disk_is_named_and_survived(small_disk: dict[str, str], tmp_path: Path) -> None:
    with serving("", "default", tmp_path, env=small_disk) as gateway:
        async with client_of(gateway) as api:
            accepted = await fill(api)
            assert accepted
            sentence = await turns_red(api, "store_cannot_save")
            assert "could not write to its disk" in sentence
            assert "free disk space" in sentence
            await wait_until(lambda: "engine_ended" in gateway.log_text())
            (tmp_path / "blocks").write_text("unlimited")
            await turns_green(api, 40)
            await all_there(api, accepted)
            await submit(api)
            assert gateway.log_text().count("engine_ended") == 1, "once, however often it was started again"


async def test_a_full_disk_of_a_server_that_syncs_later_is_named(
    small_disk: dict[str, str], tmp_path: Path
) -> None:
    env = small_disk | {"FAIRLEAD_ENGINE__DURABILITY": "everysec"}
    with serving("", "default", tmp_path, env=env) as gateway:
        async with client_of(gateway) as api:
            await fill(api)
            assert "free disk space on its machine" in await turns_red(api, "store_cannot_save")
            assert "not_ready reason=store_cannot_save" in gateway.log_text()
            pid = server_pid(f"unix://{tmp_path}/engine/socket")
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
            await turns_green(api)
            await submit(api)


async def test_a_disk_that_is_full_at_the_start_is_named(small_disk: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "blocks").write_text("100")
    shell = Shell(tmp_path, ("--data", str(tmp_path)), env=small_disk)
    ended = await shell.run("server", "--port", "0")
    assert ended.code == 3
    assert "could not write to its disk" in ended.err
    assert "free disk space where the data folder is" in ended.err
    assert "Traceback" not in ended.err


async def cut_off(gateway: Gateway, folder: Path) -> None:
    """As after a power cut: gateway and server are killed, and the last entry is half there."""
    pid = server_pid(f"unix://{folder}/engine/socket")
    gateway.process.send_signal(signal.SIGKILL)
    await kill(pid)
    (file,) = (folder / "engine" / "appendonlydir").glob("*.incr.aof")
    file.write_bytes(file.read_bytes()[:-7])


async def test_data_that_was_cut_off_is_named_until_it_is_acknowledged(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), serving("", "default", tmp_path) as killed:
        async with client_of(killed) as api:
            kept = [(await submit(api))["task_id"] for _ in range(3)]
            await submit(api)
        await cut_off(killed, tmp_path)
    for _ in range(2):  # the second server finds nothing wrong any more, and still reports it
        with serving("", "default", tmp_path) as gateway:
            async with client_of(gateway) as api:
                sentence = await turns_red(api, "engine_data_truncated")
                assert "ended in the middle of an entry" in sentence
                assert "fairlead doctor --acknowledge" in sentence
                assert "engine_data_truncated" in gateway.log_text()
                await all_there(api, kept)
    with serving("", "default", tmp_path) as gateway:
        async with client_of(gateway) as api:
            await turns_red(api, "engine_data_truncated")
            shell = Shell(tmp_path, ("--data", str(tmp_path)))
            looked = await shell.run("doctor")
            assert (looked.code, "--acknowledge" in looked.out) == (0, True), looked
            assert await reasons(api)
            accepted = await shell.run("doctor", "--acknowledge")
            assert (accepted.code, "Acknowledged" in accepted.out) == (0, True), accepted
            await turns_green(api)


async def test_a_server_that_does_not_start_again_is_named(tmp_path: Path) -> None:
    with serving("", "default", tmp_path) as gateway:
        async with client_of(gateway) as api:
            kept = (await submit(api))["task_id"]
            (file,) = (tmp_path / "engine" / "appendonlydir").glob("*.incr.aof")
            healthy = file.read_bytes()
            with file.open("r+b") as damaged:
                damaged.write(b"nonsense")
            await kill(server_pid(f"unix://{tmp_path}/engine/socket"))
            assert "Bad file format" in await turns_red(api, "engine_failed")
            assert gateway.log_text().count("engine_failed folder=") == 1
            file.write_bytes(healthy + file.read_bytes()[len(healthy) :])
            await turns_green(api, 40)
            await all_there(api, [kept])

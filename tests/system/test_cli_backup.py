"""`fairlead backup` and `restore --from`: a copy that is made under load works in another folder."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from tests.api.serving import serving
from tests.commands import Shell
from tests.faults.fleet import HASTE, Fleet, file_of
from tests.waiting import wait_until

ENV = {"FAIRLEAD_HISTORY__ENABLED": "true"}
TASKS = "/api/v1/tasks"
LEAST = 60  # tasks before the backup


class Load:
    """Submits tasks one after the other until it is cancelled."""

    def __init__(self, url: str, record: Path) -> None:
        self._url = url
        self._work = {"task_type": "hold", "parameters": {"record": str(record), "seconds": 0.01}}
        self.accepted: list[str] = []

    async def run(self) -> None:
        async with httpx.AsyncClient(base_url=self._url, trust_env=False) as http:
            while True:
                answer = await http.post(TASKS, json=self._work)
                assert answer.status_code == 201, answer.text
                self.accepted.append(answer.json()["task_id"])


@pytest.mark.timeout(120)
async def test_a_backup_under_load_works_in_another_folder(tmp_path: Path) -> None:
    first, second, copy = tmp_path / "first", tmp_path / "second", tmp_path / "copy"
    first.mkdir()
    config = tmp_path / "fairlead.toml"
    config.write_text(file_of(HASTE))
    options = ("--config", str(config))
    with serving("", "default", first, *options, env=ENV) as gateway:
        async with Fleet(("--data", str(first)), tmp_path, app="tests.apps.returning:fl", env=ENV) as fleet:
            await fleet.start()
            await fleet.man()
            load = Load(gateway.url, tmp_path / "record")
            running = asyncio.create_task(load.run())
            await wait_until(lambda: len(load.accepted) >= LEAST, 30, "some work is accepted")
            before = set(load.accepted)
            made = await Shell(tmp_path, ("--data", str(first), *options), ENV).run("backup", str(copy))
            assert made.code == 0, made
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    there = Shell(tmp_path, ("--data", str(second), *options), ENV)
    restored = await there.run("restore", "--from", str(copy))
    assert (restored.code, "Namespace 'default' is restored" in restored.out) == (0, True), restored
    again = await there.run("restore", "--from", str(copy))
    assert (again.code, "has data already" in again.err) == (2, True), again
    with serving("", "default", second, *options, env=ENV) as gateway:
        async with Fleet(("--data", str(second)), tmp_path, app="tests.apps.returning:fl", env=ENV) as fleet:
            await fleet.start()
            async with httpx.AsyncClient(base_url=gateway.url, trust_env=False) as http:

                async def all_have_run() -> bool:
                    answers = [await http.get(f"{TASKS}/{task}") for task in before]
                    return all(one.is_success and one.json()["status"] == "completed" for one in answers)

                await wait_until(all_have_run, 40, "everything accepted before the backup has run")
        examined = await there.run("doctor")
        assert examined.code == 0, examined


async def test_a_folder_without_a_complete_backup_is_refused(tmp_path: Path) -> None:
    shell = Shell(tmp_path, ("--data", str(tmp_path / "data")), ENV)
    refused = await shell.run("restore", "--from", str(tmp_path))
    assert (refused.code, "no complete backup" in refused.err) == (2, True), refused
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused = await shell.run("backup", str(tmp_path / "full"))
    assert (refused.code, "is not empty" in refused.err) == (2, True), refused
    elsewhere = Shell(tmp_path, ("--engine", "redis://127.0.0.1:1"), ENV)
    refused = await elsewhere.run("backup", str(tmp_path / "new"))
    assert (refused.code, "by its own means" in refused.err) == (2, True), refused

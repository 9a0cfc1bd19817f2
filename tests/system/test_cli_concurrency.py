"""`fairlead concurrency`: slots in a folder, and the same commands on limits."""

import json
from pathlib import Path

import pytest

from fairlead.slots import SlotStore
from tests.commands import Shell


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/slots"


async def test_the_command_line_shows_sets_and_frees_slots(url: str, shell: Shell) -> None:
    async def run(*words: str) -> str:
        return (await shell.run("concurrency", *words, "--slots", url)).out

    assert await run("set", "gpu", "--limit", "1") == "gpu: 1 at a time\n"
    slots = SlotStore(url)
    assert await slots.try_acquire("gpu", 1, "worker-1", task_id="t1")
    assert (await run("status")).splitlines()[1].split() == ["gpu", "1", "1"]
    assert (await run("status", "gpu")).splitlines()[-1].split()[:4] == ["0", "held", "worker-1", "t1"]
    refused = await shell.run("concurrency", "release", "gpu", "0", "--slots", url)
    assert (refused.code, "that worker-1 holds until" in refused.err) == (2, True)
    assert await run("release", "gpu", "0", "--force") == "gpu: slot 0 is free\n"
    answer = json.loads(await run("status", "gpu", "--output", "json"))
    assert (answer["active"], answer["slots"][0]["state"]) == (0, "free")
    again = await shell.run("concurrency", "release", "gpu", "0", "--slots", url)
    assert (again.code, "nobody holds slot 0 of gpu" in again.err) == (2, True)


async def test_without_an_object_store_the_same_commands_act_on_limits(shell: Shell) -> None:
    assert (await shell.run("concurrency", "set", "gpu", "--limit", "3")).out == "gpu: 3 at a time\n"
    assert "gpu" in (await shell.run("concurrency", "status")).out
    assert (await shell.run("concurrency", "release", "gpu", "some-lease", "--force")).code != 0

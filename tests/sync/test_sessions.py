"""A conversation with the handler of an interactive task, from blocking code."""

import time
from pathlib import Path

import pytest

from fairlead import Context
from fairlead.errors import NoCapacity
from fairlead.sync import Fairlead
from fairlead.sync.handle import TaskHandle


@pytest.fixture
def fl(tmp_path: Path) -> Fairlead:
    config = tmp_path / "tiers.toml"
    config.write_text("[tiers]\nfast = { seconds = 60 }\n")
    return Fairlead(data=str(tmp_path / "data"), config=str(config))


async def shout(ctx: Context) -> int:
    count = 0
    async for line in ctx.frames():
        count += 1
        await ctx.emit(line.upper())
        if line == "bye":
            break
    return count


def admitted(fl: Fairlead) -> TaskHandle[int]:
    """As soon as the worker waits for tasks."""
    for _ in range(1000):
        try:
            return fl.submit("shout", duration="interactive")
        except NoCapacity:
            time.sleep(0.02)
    raise AssertionError("no worker waits for tasks")


def test_frames_are_sent_and_iterated_over(fl: Fairlead) -> None:
    fl.task("shout")(shout)
    with fl.worker():
        task = admitted(fl)
        with task.session() as session:
            session.send("hello")
            assert next(iter(session)) == "HELLO"
            session.send("bye")
            assert list(session) == ["BYE"]
        assert task.result(timeout=30) == 2
        left = admitted(fl)
        with left.session() as session:
            session.send("hello")
            assert next(session) == "HELLO"
        assert left.wait(timeout=30).status == "cancelled", "the task ends with the block"
    fl.close()

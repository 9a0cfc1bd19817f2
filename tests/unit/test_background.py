"""Work in the background: what fails is logged and restarted, and repeated failures are reported."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from fairlead import background
from fairlead.background import Work, done_before, keep_running
from tests.waiting import wait_until


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(background, "LONGEST_PAUSE", 0.002)


class Story:
    """Work that fails this number of times and then runs; and its reports."""

    def __init__(self, failures: int) -> None:
        self.starts = 0
        self.failures = failures
        self.reported: list[tuple[str, bool]] = []

    async def run(self) -> None:
        self.starts += 1
        if self.starts <= self.failures:
            raise KeyError("lost")
        await asyncio.Event().wait()

    def report(self, name: str, failing: bool) -> None:
        self.reported.append((name, failing))


@asynccontextmanager
async def kept(work: Work, story: Story | None = None) -> AsyncIterator[None]:
    running = asyncio.create_task(keep_running("upkeep", work, story.report if story else None))
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_work_that_fails_is_logged_with_its_traceback_and_started_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    story = Story(1)
    with caplog.at_level(logging.ERROR):
        async with kept(story.run, story):
            await wait_until(lambda: story.starts == 2)
    (record,) = caplog.records
    assert "background_failed work=upkeep" in record.message
    assert "raise KeyError" in record.message
    assert (("upkeep", True)) not in story.reported, "a single failure is not reported"


async def test_repeated_failures_are_reported_until_it_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "SHORT_LIFE", 0.5)
    story = Story(3)
    async with kept(story.run, story):
        await wait_until(lambda: ("upkeep", True) in story.reported)
        await wait_until(lambda: story.reported[-1] == ("upkeep", False))
        assert story.starts == 4


async def test_work_that_ends_by_itself_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    ends = asyncio.Queue[None]()

    async def work() -> None:
        ends.put_nowait(None)

    async with kept(work):
        await wait_until(lambda: ends.qsize() > 2)
    assert "it ended by itself" in caplog.text


async def test_an_unintended_cancellation_is_a_failure() -> None:
    story = Story(0)

    async def work() -> None:
        story.starts += 1
        raise asyncio.CancelledError

    async with kept(work):
        await wait_until(lambda: story.starts > 2)


async def test_a_cancellation_between_failures_is_reported_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(10**9)
    async with kept(story.run, story):
        await wait_until(lambda: ("upkeep", True) in story.reported)
    assert story.reported[-1] == ("upkeep", False)


async def test_work_that_ends_first_is_done_and_one_that_is_stopped_is_cancelled() -> None:
    ended: list[str] = []

    async def work(seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("done")

    async def fail() -> None:
        raise ValueError("broken")

    stop = asyncio.Event()
    assert await done_before(work(0), stop.wait())
    stop.set()
    assert not await done_before(work(60), stop.wait())
    assert ended == ["done", "cancelled"]
    with pytest.raises(ValueError, match="broken"):
        await done_before(fail(), asyncio.Event().wait())


AT_EXIT = """
import asyncio, atexit
from fairlead.background import no_more_threads

def late():
    try:
        asyncio.run(asyncio.to_thread(print))
    except RuntimeError as problem:
        print(no_more_threads(problem), no_more_threads(RuntimeError("another one")))

atexit.register(late)
"""


def test_a_thread_that_the_interpreter_no_longer_starts_differs_from_other_errors() -> None:
    ended = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("True False\n", "")

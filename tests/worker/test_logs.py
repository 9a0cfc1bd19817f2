"""What worker processes write to their log: every process in the same format, down to the same level."""

from collections.abc import AsyncIterator, Callable

import pytest

from fairlead import Fairlead
from tests.apps import failing
from tests.logs import json_records, records
from tests.waiting import wait_until
from tests.workers import Yard

TARGET = "tests.apps.failing:fl"


@pytest.fixture
async def fl(new_app: Callable[[], Fairlead]) -> AsyncIterator[Fairlead]:
    """The app of the worker processes, here only to submit."""
    place, failing.fl.place = failing.fl.place, new_app().place
    async with failing.fl as fl:
        yield fl
    fl.place = place


async def test_every_process_logs_json_when_it_is_asked_for(fl: Fairlead, yard: Yard) -> None:
    async with yard.workers(TARGET, "--log-format", "json", ready=0) as workers:
        await wait_until(lambda: '"worker_started"' in workers.said(), 40)
        chats = await failing.chats_in_process.submit()
        await chats.result(timeout=40)
        dies = await failing.kills_its_worker.submit()
        await wait_until(lambda: '"worker_died"' in workers.said(), 40)
        await dies.cancel()
        assert await workers.end() == 0
    said = json_records(workers.said())
    assert all(one.keys() >= {"time", "level", "logger"} for one in said)
    by_event = {one["event"]: one for one in said if "event" in one}
    assert by_event["worker_started"]["capacity"] == 5
    assert by_event["worker_died"]["exit_code"] == 7  # of the supervisor
    (chat,) = [one for one in said if "mixing colours" in one.get("message", "")]  # of the handler's process
    assert (chat["level"], chat["task"], chat["attempt"]) == ("info", chats.task_id, 1)
    (other,) = [one for one in said if one["logger"] == "some.library"]
    assert (other["level"], other["message"]) == ("warning", "low on blue")


async def test_text_begins_each_record_with_its_time(fl: Fairlead, yard: Yard) -> None:
    async with yard.workers(TARGET) as workers:
        await (await failing.chats.submit()).result(timeout=40)
        assert await workers.end() == 0
        said = records(workers.said())
    assert len(said) == len(workers.said().splitlines())
    assert not any("a drop of blue" in one or "a detail" in one for one in said)


async def test_the_level_counts_in_every_process_and_for_other_libraries(fl: Fairlead, yard: Yard) -> None:
    async with yard.workers(TARGET, "--log-level", "debug") as workers:
        await (await failing.chats.submit()).result(timeout=40)
        assert "DEBUG a drop of blue task=" in workers.said()
        assert "DEBUG some.library: a detail" in workers.said()
        assert await workers.end() == 0
    async with yard.workers(TARGET, "--log-level", "error", ready=0) as quiet:
        chats, dies = await failing.chats.submit(), await failing.kills_its_worker.submit()
        await chats.result(timeout=40)
        await wait_until(lambda: "ERROR worker_died" in quiet.said(), 40)
        await dies.cancel()
        assert await quiet.end() == 0
    assert not any(word in quiet.said() for word in ("INFO", "DEBUG", "WARNING"))


async def test_a_level_that_is_none_is_refused(yard: Yard) -> None:
    workers = await yard.start(TARGET, "--log-level", "loud")
    assert await workers.exit_code() == 2
    assert "loud" in workers.said() and "--log-level" in workers.said()

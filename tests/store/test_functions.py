"""Acts are functions in the server, of this version alone; or scripts where functions are not permitted."""

from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ResponseError

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.store.connection import pack
from fairlead.store.doctor.doctor import examine
from fairlead.store.scripts import LIBRARIES, edition, function_of
from fairlead.store.store import Store
from tests.servers import running
from tests.store.namespace import claim_one, new, raw

OF_ANOTHER_VERSION = f"{LIBRARIES}0123456789abcdef"
SOMEBODY_ELSES = "fair_play"


@pytest.fixture(params=["valkey", pytest.param("redis", marks=pytest.mark.other_server)])
async def alone(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """A store on its own server."""
    with running(request.param) as server:
        async with Store.connect(server.url) as store:
            yield store
            assert await examine(store.connection) == []


async def keep(store: Store, library: str) -> None:
    function = f"redis.register_function('{library}', function() return 1 end)"
    await raw(store).function_load(f"#!lua name={library}\n{function}")


async def kept(store: Store) -> list[str]:
    entries = await raw(store).execute_command("FUNCTION LIST")
    return sorted(entry[entry.index(b"library_name") + 1].decode() for entry in entries)


async def run_one(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    task = await claim_one(store)
    assert await store.complete("w", Completed(task.task_id, task.fence)) == [State.COMPLETED]


async def test_the_server_keeps_the_acts_as_one_library(alone: Store) -> None:
    await run_one(alone)
    assert await kept(alone) == [edition()]
    assert (await raw(alone).info("memory"))["number_of_cached_scripts"] == 0


async def test_functions_of_other_versions_go_and_those_of_others_stay(alone: Store) -> None:
    await keep(alone, OF_ANOTHER_VERSION)
    await keep(alone, SOMEBODY_ELSES)
    await alone.open(govern=False)  # it only joins
    assert {OF_ANOTHER_VERSION, SOMEBODY_ELSES} <= set(await kept(alone))
    await alone.open()
    assert [name for name in await kept(alone) if name != edition()] == [SOMEBODY_ELSES]


async def test_where_functions_may_not_be_kept_scripts_are_sent(alone: Store) -> None:
    await raw(alone).execute_command(
        "ACL SETUSER", "guest", "on", ">secret", "~*", "&*", "+@all", "-function"
    )
    await raw(alone).function_flush()
    address = raw(alone).connection_pool.connection_kwargs["path"]
    async with Store.connect(f"unix://guest:secret@{address}", "theirs") as store:
        await run_one(store)
        assert await examine(store.connection) == []
    assert await kept(alone) == []
    assert (await raw(alone).info("memory"))["number_of_cached_scripts"] > 0


async def test_work_can_end_when_memory_is_full_and_the_functions_are_gone(alone: Store) -> None:
    await alone.workers.register("w")
    await alone.submit_one(new())
    task = await claim_one(alone)
    await raw(alone).function_flush()
    await raw(alone).config_set("maxmemory", 1)
    with pytest.raises(errors.StoreUnavailable, match="out of memory"):
        await alone.submit_one(new())
    assert await alone.complete("w", Completed(task.task_id, task.fence)) == [State.COMPLETED]
    await raw(alone).config_set("maxmemory", 0)
    await run_one(alone)


async def test_a_call_that_broke_leaves_nothing_to_the_next(alone: Store) -> None:
    await run_one(alone)
    meta = alone.connection.keys.meta
    spec = {
        "id": "1" * 36,
        "type": "echo",
        "parameters": "{}",
        "priority": 1,
        "capabilities": "",
        "limits": "",
    }
    with pytest.raises(ResponseError):  # the first task is read, the second breaks it off
        broken = pack([spec | {"timeout": 1, "max_retries": 0, "weight": 1, "fair": ""}, 7])
        await raw(alone).fcall(function_of("submit"), 1, meta, "", 0, broken, "")
    await run_one(alone)
    assert len((await alone.list_tasks()).tasks) == 2

"""Reads share one connection with the acts, however many there are, and hold nothing up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fairlead.model.job import NewJob, NewStep
from fairlead.model.key import Identity
from fairlead.store.batches import GOOD_BYTES, MOST_COMMANDS, next_count, size_of
from fairlead.store.store import Store
from tests.connections import connected
from tests.servers import Server
from tests.store.namespace import new, raw

CROWD = 1_500  # more than a pool of connections would lend
KIB_200 = "x" * 200 * 1024


@pytest.fixture
async def reader(live_store: Store, server: Server) -> AsyncIterator[Store]:
    """Another store on the same namespace, whose connections are counted."""
    made = Store(connected(server.url, live_store.connection.keys.namespace), live_store.settings)
    yield made
    await made.close()


async def connections(store: Store) -> int:
    return len(await raw(store).client_list())


Read = Callable[[Store, str, str], Awaitable[Any]]
READS: dict[str, Read] = {
    "task": lambda store, task, job: store.get(task),
    "job": lambda store, task, job: store.jobs.get(job),
    "dead letters": lambda store, task, job: store.dead_letters.page(),
    "explanation": lambda store, task, job: store.explain(task),
    "limits": lambda store, task, job: store.limits.all(),
    "task types": lambda store, task, job: store.task_types(),
    "any keys": lambda store, task, job: store.api_keys.any(),
    "pipelines": lambda store, task, job: store.jobs.pipelines.page("", 100),
    "ticket": lambda store, task, job: store.tickets.make(Identity(None, "ann", ("read",))),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_a_crowd_of_reads_is_answered_on_one_connection(
    live_store: Store, reader: Store, read: Read
) -> None:
    task = new()
    await live_store.submit_one(task)
    job = await live_store.jobs.submit(NewJob(feature_name="f", stages=[[NewStep("s", "echo")]]))
    before = await connections(live_store)
    async with asyncio.timeout(50):
        answers = await asyncio.gather(*(read(reader, task.task_id, job.job_id) for _ in range(CROWD)))
    assert len(answers) == CROWD
    assert await connections(live_store) - before == 1


async def read_all(store: Store) -> int:
    """How many tasks there are on all pages: one of large records ends early."""
    page = await store.list_tasks(limit=1000)
    count = len(page.tasks)
    while page.next_cursor:
        page = await store.list_tasks(limit=1000, cursor=page.next_cursor)
        count += len(page.tasks)
    return count


async def test_pages_of_large_records_are_read_in_pieces_while_small_reads_pass(
    live_store: Store, reader: Store
) -> None:
    small = new()
    large = [new(parameters={"x": KIB_200}) for _ in range(200)]
    await live_store.submit(small, *large)
    pages = asyncio.create_task(read_all(reader))
    passed = 0
    async with asyncio.timeout(50):
        while not pages.done():
            await reader.get(small.task_id)
            passed += 1
    assert await pages == 201
    assert passed > 50, "it waited behind the pages"


async def test_an_act_passes_reads_that_wait_for_their_turn(live_store: Store, reader: Store) -> None:
    task = new()
    await live_store.submit_one(task)
    await reader.get(task.task_id)  # the connection is made
    done = 0

    async def read() -> None:
        nonlocal done
        await reader.get(task.task_id)
        done += 1

    reading = [asyncio.create_task(read()) for _ in range(CROWD)]
    await asyncio.sleep(0)  # all requests are sent
    await reader.submit_one(new())
    assert done < CROWD / 2
    await asyncio.gather(*reading)


def test_pieces_grow_while_answers_are_small_and_shrink_when_they_are_large() -> None:
    assert next_count(16, 16 * 300) == 64
    assert next_count(400, 400 * 300) == MOST_COMMANDS
    assert next_count(16, 16 * 256 * 1024) == 1
    assert next_count(16, 16 * 32 * 1024) == 8
    assert next_count(8, 8 * GOOD_BYTES * 3) == 1
    assert next_count(1, 0) == 4


def test_the_size_of_an_answer_counts_what_it_holds() -> None:
    assert size_of([b"abc", {b"name": b"value"}, None, 7]) == 3 + 9 + 2

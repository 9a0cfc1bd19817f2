"""What happens in the store is found in SQL: every event once, and tasks and jobs as the store knew them."""

import asyncio
from typing import Any

import msgspec

from fairlead.errors import StoreLost
from fairlead.history.opening import History
from fairlead.history.rows import fields_of, fields_of_job
from fairlead.model.job import NewStep
from fairlead.model.reports import Completed, Failed
from fairlead.model.task import Task
from fairlead.settings.limits import Slots
from fairlead.store.records import read_record
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.reading import events_of
from tests.recording import event_rows, job_rows, record_all, task_rows
from tests.store.job_steps import complete, job
from tests.store.namespace import claim_one, new, raw

FAILURE: Any = {"code": "busy", "message": "no room", "traceback": "Traceback\n  here", "jitter": 0}


async def fields(store: Store, kind: str, of: str) -> dict[bytes, bytes]:
    found: Any = await raw(store).hgetall(store.connection.keys.key(kind, of))
    return dict(found)


async def test_every_event_is_recorded_once_and_leaves_the_outbox(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[new(user_id=f"u{i}") for i in range(3)])
    for task in (await store.claim("w", 3)).tasks:
        await store.complete("w", Completed(task.task_id, task.fence, result={"n": 1}))
    before = await events_of(store)
    assert await record_all(recorder) == 9
    rows = await event_rows(history)
    assert [row.id for row in rows] == list(range(1, 10))
    assert [(row.task_id, row.act, row.before, row.after, row.at, row.fence) for row in rows] == [
        (one["task"], one["act"], one["from"], one["to"], one["at"], one["fence"]) for one in before
    ]
    assert [msgspec.json.decode(row.detail) for row in rows] == [one["detail"] for one in before]
    assert await events_of(store) == []
    assert await record_all(recorder) == 0
    assert await history.database.read("SELECT begun_at FROM generations") == [(clock.now,)]


async def test_a_task_is_read_from_sql_as_from_the_store(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    await store.limits.set("gpu", Slots(2))
    await store.workers.register("w", capacity=9)
    await store.submit_one(
        new(
            parameters={"text": "\0é😀"},
            user_id="ann",
            tenant="acme",
            limits={"gpu": 1},
            trace_id="t",
        )
    )
    task = await claim_one(store)
    clock.pass_ms(40)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False, **FAILURE))
    await record_all(recorder)
    (row,) = await task_rows(history)
    stored = await fields(store, "task", task.task_id)
    assert fields_of(row) == stored
    assert Task.from_record(row.id, read_record(fields_of(row))) == await store.get(task.task_id)
    assert (row.status, row.user_id, row.tenant, row.ran_ms, row.error_code, row.error, row.traceback) == (
        *("failed", "ann", "acme", 40),
        *("busy", "no room", "Traceback\n  here"),
    )
    assert await history.database.read("SELECT name, place FROM task_limits") == [("gpu", row.place)]


async def test_a_row_follows_its_task(store: Store, history: History, recorder: Recorder) -> None:
    await store.workers.register("w")
    await store.submit_one(new())
    found: list[str] = []
    for act in ("submit", "claim", "complete"):
        if act == "claim":
            task = await claim_one(store)
        if act == "complete":
            await store.complete("w", Completed(task.task_id, task.fence, result=[1]))
        await record_all(recorder)
        (row,) = await task_rows(history)
        assert fields_of(row) == await fields(store, "task", row.id)
        found.append(row.status)
    assert found == ["queued", "executing", "completed"]


async def test_each_run_is_an_attempt(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    start = clock.now
    await store.workers.register("w")
    await store.submit_one(new())
    first = await claim_one(store)
    await record_all(recorder)  # its end is recorded apart from its begin
    clock.pass_ms(5)
    await store.fail("w", Failed(first.task_id, first.fence, **FAILURE))
    clock.pass_seconds(10)
    await store.promote()
    second = await claim_one(store)
    clock.pass_ms(7)
    await store.cancel(second.task_id)
    await record_all(recorder)
    rows = await history.database.read(
        "SELECT fence, worker_id, started_at, ended_at, ended_by, error_code, error, traceback "
        "FROM attempts ORDER BY fence"
    )
    assert rows == [
        (first.fence, "w", start, start + 5, "fail", "busy", "no room", "Traceback\n  here"),
        (second.fence, "w", start + 10_005, start + 10_012, "cancel", None, None, None),
    ]


async def test_a_job_is_kept_with_all_its_fields(store: Store, history: History, recorder: Recorder) -> None:
    await store.workers.register("w")
    submitted = await store.jobs.submit(job(NewStep("one", "echo"), NewStep("two", "echo")))
    await record_all(recorder)
    for _ in range(2):
        await complete(store, await claim_one(store), {"status": "ok", "data": {"n": 1}})
        await record_all(recorder)
    (row,) = await job_rows(history)
    assert (row.id, row.status) == (submitted.job_id, "COMPLETED")
    assert fields_of_job(row) == await fields(store, "job", row.id)


async def test_whatever_the_store_accepts_is_recorded(
    store: Store, history: History, recorder: Recorder
) -> None:
    """A database that refused a value would keep the recorder from all that comes after it."""
    long, any_text = "\U0001f916" * 200, "\0 \x1b \ud800 \u202e é" + "\U0001f916" * 900
    await store.workers.register("w", capacity=9)
    huge = {"n": 10**300, "f": 1e308, "text": "\0" * 40_000, "other": "é" * 5_000}
    await store.submit(
        *[new(user_id=long, tenant=long, trace_id=long, idempotency_key=long, parameters=huge)] * 1,
        *[new(user_id=long[n:], parameters={"n": n}) for n in (1, 2)],
    )
    first, second, third = (await store.claim("w", 3)).tasks
    await store.complete("w", Completed(first.task_id, first.fence, result=huge))
    failure: Any = {"code": any_text, "message": any_text, "traceback": any_text, "jitter": 0}
    for task, retriable in ((second, False), (third, True)):
        await store.fail("w", Failed(task.task_id, task.fence, retriable=retriable, **failure))
    await store.jobs.submit(job(user_id=long, tenant=long, input_data=huge))
    await store.audit.record("ann", "set", any_text.replace("\ud800", ""), huge, None)
    await record_all(recorder)
    rows = await task_rows(history)
    assert len(rows) == 4 and len(await job_rows(history)) == 1
    for row in rows:
        assert Task.from_record(row.id, read_record(fields_of(row))) == await store.get(row.id)
    assert await history.database.read("SELECT missing FROM generations") == [(0,)]


async def test_two_recorders_at_once_record_each_event_once(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.workers.register("w", capacity=500)
    another = Recorder(store, history)
    for _ in range(5):
        await store.submit(*[new() for _ in range(20)])
        await asyncio.gather(recorder.run_once(), another.run_once())
    await record_all(recorder)
    await record_all(another)
    assert [row.id for row in await event_rows(history)] == list(range(1, 101))
    ((lost, missing),) = await history.database.read("SELECT lost, missing FROM generations")
    assert (lost, missing) == (0, 0)


async def test_events_that_left_the_outbox_unread_are_counted(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.submit_one(new())
    await record_all(recorder)
    await store.submit(*[new() for _ in range(4)])
    ((number, _),) = await raw(store).xrange(store.connection.keys.key("events"))
    await store.run("recorded", number.decode())  # as if the bound had been reached
    await store.submit_one(new())
    assert await record_all(recorder) == 1
    assert await history.database.read("SELECT position, lost FROM generations") == [(6, 4)]


async def test_content_that_is_gone_before_it_is_read_is_counted(
    store: Store, history: History, recorder: Recorder
) -> None:
    submitted = await store.submit_one(new())
    await store.cancel(submitted.task_id)
    await raw(store).delete(store.connection.keys.key("task", submitted.task_id))
    assert await record_all(recorder) == 2
    assert await history.database.read("SELECT missing FROM generations") == [(1,)]
    assert len(await event_rows(history)) == 2


async def test_a_store_older_than_the_history_is_not_recorded(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.submit_one(new())
    await record_all(recorder)
    async with history.database.transaction() as transaction:
        await transaction.run("UPDATE generations SET beat = beat + 100")
    try:
        await Recorder(store, history).run_once()
    except StoreLost as problem:
        assert problem.standing == "rolled_back"
    else:
        raise AssertionError("it was recorded")

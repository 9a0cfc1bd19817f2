"""What has left the store is found as before: single tasks and jobs, lists over both, and lives of tasks."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead import errors
from fairlead.history.archive import SqlArchive
from fairlead.history.opening import History
from fairlead.history.pruning import Keep, prune
from fairlead.model.job import NewStep
from fairlead.model.reports import Completed, Failed
from fairlead.settings import TaskSettings
from fairlead.settings.limits import Slots
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import record_all
from tests.store.job_steps import complete, job
from tests.store.namespace import claim_one, new, raw

#: The second of three jobs; two of them need a limit.
STEPS = (NewStep("two", "draw"), NewStep("two", "draw"), NewStep("two", "echo"))
FAILURE: Any = {"code": "busy", "message": "No ROOM: 100% used_up", "retriable": False}


@pytest.fixture
async def archived(store: Store, history: History, history_url: str) -> AsyncIterator[Store]:
    """The store, which finds in the history what has left it."""
    store.archive = archive = SqlArchive(history_url, "default")
    yield store
    await archive.close()


async def leave(store: Store, *ids: str, kind: str = "task") -> None:
    """As if their retention were over."""
    for of in ids:
        await raw(store).delete(store.connection.keys.key(kind, of))
    while (await store.upkeep.sweep())[1]:
        pass


async def all_of(store: Store, **wanted: Any) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    cursor, limit = "", wanted.pop("limit", 3)
    for _ in range(50):
        page = await store.list_tasks(limit=limit, cursor=cursor, **wanted)
        assert len(page.tasks) <= limit and not page.warnings
        found += [task.task_id for task in page.tasks]
        if not (cursor := page.next_cursor):
            return found
    raise AssertionError("the pages do not end")


async def test_a_task_that_has_left_is_as_it_was(archived: Store, recorder: Recorder, clock: Clock) -> None:
    await archived.workers.register("w")
    await archived.submit_one(new(parameters={"a": [1]}, user_id="ann", limits={}))
    task = await claim_one(archived)
    await archived.fail("w", Failed(task.task_id, task.fence, traceback="Traceback\n  x", **FAILURE))
    before = await archived.get(task.task_id)
    assert before.error and before.error.traceback
    await record_all(recorder)
    await leave(archived, task.task_id)
    assert await archived.get(task.task_id) == before
    with pytest.raises(errors.AlreadyFinished):
        await archived.cancel(task.task_id)
    with pytest.raises(errors.UnknownTask):
        await archived.get("00000000-0000-4000-8000-000000000000")


async def test_a_job_that_has_left_is_as_it_was(archived: Store, recorder: Recorder) -> None:
    await archived.workers.register("w")
    submitted = await archived.jobs.submit(job(NewStep("one", "echo")))
    await complete(archived, await claim_one(archived), {"status": "ok", "data": {"n": 1}})
    before = await archived.jobs.get(submitted.job_id)
    others = [(await archived.jobs.submit(job(user_id="bob"))).job_id for _ in range(3)]
    await archived.jobs.cancel(others[1])
    await record_all(recorder)
    await leave(archived, submitted.job_id, others[1], kind="job")
    assert await archived.jobs.get(submitted.job_id) == before
    page = await archived.jobs.page(limit=3)
    assert [one.job_id for one in page.jobs] == others[::-1]
    page = await archived.jobs.page(limit=3, cursor=page.next_cursor)
    assert [one.job_id for one in page.jobs] == [submitted.job_id]
    page = await archived.jobs.page(tenant="acme")
    assert [one.job_id for one in page.jobs] == []
    page = await archived.jobs.page(user_id="bob", since=0, status="CANCELLED")
    assert [one.job_id for one in page.jobs] == [others[1]]


async def test_jobs_are_found_by_the_limits_that_their_steps_have_needed(
    archived: Store, recorder: Recorder
) -> None:
    """Those that are here, and those that have left."""
    store = archived
    await store.declare("code", {"draw": TaskSettings(limits={"gpu": 1})}, {"gpu": Slots(limit=9)})
    await store.workers.register("w", capacity=9)
    gone, here, other = [await store.jobs.submit(job(NewStep("one", "echo"), step)) for step in STEPS]
    assert (await store.jobs.page(needs="gpu")).jobs == []
    result = {"status": "ok", "data": {}}
    for _ in range(2):  # the second step of each is queued when the first has ended
        for task in (await store.claim("w", 3)).tasks:
            await complete(store, task, result)
    await record_all(recorder)
    await leave(store, gone.job_id, kind="job")
    page = await store.jobs.page(needs="gpu", status="COMPLETED")
    assert [one.job_id for one in page.jobs] == [here.job_id, gone.job_id]
    page = await store.jobs.page(needs="gpu", limit=1)
    assert [one.job_id for one in page.jobs] == [here.job_id]
    page = await store.jobs.page(needs="gpu", limit=1, cursor=page.next_cursor)
    assert [one.job_id for one in page.jobs] == [gone.job_id]
    assert len((await store.jobs.page()).jobs) == 3 and other


async def test_lists_of_here_and_there_are_one(
    archived: Store, recorder: Recorder, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every filter, on tasks of which some have left, some wait, and one is not recorded yet."""
    for module in ("queries", "archive"):
        monkeypatch.setattr(f"fairlead.history.{module}.MOST_LOOKED", 5)
    store, chance = archived, random.Random(7)
    tasks = [
        new(
            ("draw", "sing")[i % 2],
            user_id=("ann", "bob_by", None)[i % 3],
            tenant=("acme", None)[i % 2],
            limits={},
            concurrency_group="gpu" if i % 4 == 0 else None,
            concurrency_limit=100 if i % 4 == 0 else None,
            max_retries=0,
        )
        for i in range(24)
    ]
    for i in range(0, len(tasks), 6):
        await store.submit(*tasks[i : i + 6])
        clock.pass_seconds(10)
    await store.workers.register("w", capacity=100)
    for task in (await store.claim("w", 16)).tasks:
        if chance.random() < 0.5:
            await store.complete("w", Completed(task.task_id, task.fence))
        else:
            await store.fail("w", Failed(task.task_id, task.fence, **FAILURE))
    await record_all(recorder)
    known = {one.task_id: await store.get(one.task_id) for one in tasks}
    ended = [one for one in known if known[one].completed_at is not None]
    await leave(store, *chance.sample(ended, 10))
    last = new("draw", user_id="ann")
    await store.submit_one(last)  # it is not recorded
    known[last.task_id] = await store.get(last.task_id)
    order = [last.task_id, *[one.task_id for one in tasks][::-1]]
    begin = known[tasks[0].task_id].created_at

    async def expect(test: Any, **wanted: Any) -> None:
        expected = [of for of in order if test(known[of])]
        assert await all_of(store, **wanted) == expected, wanted
        assert wanted.get("search") or expected

    await expect(lambda t: True)
    await expect(lambda t: True, limit=1)
    await expect(lambda t: True, limit=1000)
    for status in ("completed", "failed", "executing", "queued"):
        if any(one.status == status for one in known.values()):
            await expect(lambda t, s=status: t.status == s, status=status)
    await expect(lambda t: t.task_type == "draw", task_type="draw")
    await expect(lambda t: t.user_id == "bob_by", user_id="bob_by")
    await expect(lambda t: t.tenant == "acme", tenant="acme")
    await expect(lambda t: t.tenant == "acme" and t.status == "failed", tenant="acme", status="failed")
    await expect(lambda t: t.user_id == "ann" and t.task_type == "draw", user_id="ann", task_type="draw")
    await expect(lambda t: t.error is not None, error="room: 100% USED_")
    await expect(lambda t: t.error and t.task_type == "sing", error="no room", task_type="sing")
    await expect(lambda t: "gpu" in t.limits, needs="gpu")
    await expect(lambda t: "gpu" in t.limits and t.status == "failed", needs="gpu", status="failed")
    await expect(lambda t: t.created_at >= begin + 10_000, since=begin + 10_000)
    await expect(lambda t: t.created_at <= begin + 15_000, until=begin + 15_000)
    await expect(lambda t: begin + 5 <= t.created_at <= begin + 20_000, since=begin + 5, until=begin + 20_000)
    await expect(lambda t: t.user_id == "bob_by", search="OB_B")
    await expect(lambda t: t.task_id == order[5], search=order[5][:34])
    assert await all_of(store, error="100_") == []
    assert await all_of(store, search="b%b") == []


async def test_a_clock_that_is_set_back_changes_no_order(
    archived: Store, recorder: Recorder, history: History, clock: Clock
) -> None:
    """Lists are ordered by acceptance; a time selects what was accepted then, on both sides of the jump."""
    order: list[str] = []
    for seconds in (6, 6, -9, 6, 6):
        await archived.submit(*(tasks := [new(), new()]))
        order = [*[one.task_id for one in tasks][::-1], *order]
        clock.pass_seconds(seconds)
    for of in order:
        await archived.cancel(of)
    await record_all(recorder)
    known = {of: await archived.get(of) for of in order}
    await leave(archived, *order)
    assert await all_of(archived) == order
    assert await all_of(archived, limit=1) == order
    for of in order:
        at = known[of].created_at
        assert await all_of(archived, since=at) == [one for one in order if known[one].created_at >= at]
        assert await all_of(archived, until=at) == [one for one in order if known[one].created_at <= at]
    last = max(one.created_at for one in known.values())
    assert await all_of(archived, since=last + 1) == []
    assert await prune(history, Keep(days=1), clock.now) == 0
    clock.pass_seconds(2 * 86_400)
    assert await prune(history, Keep(days=1), clock.now) == 10


async def test_a_status_that_is_recorded_but_has_changed_is_not_found(
    archived: Store, recorder: Recorder
) -> None:
    await archived.workers.register("w")
    await archived.submit_one(new())
    await record_all(recorder)
    task = await claim_one(archived)
    assert await all_of(archived, status="queued") == []
    assert await all_of(archived, status="executing") == [task.task_id]


async def test_what_happened_to_a_task_is_told_from_its_submit_to_its_end(
    archived: Store, recorder: Recorder, clock: Clock
) -> None:
    start = clock.now
    await archived.workers.register("w")
    await archived.submit_one(new())
    task = await claim_one(archived)
    await record_all(recorder)
    clock.pass_ms(5)
    await archived.fail("w", Failed(task.task_id, task.fence, traceback="Traceback\n  x", **FAILURE))
    history = await archived.history(task.task_id)  # the last event is not recorded yet
    assert [(one.seq, one.act, one.before, one.after, one.worker_id) for one in history.events] == [
        (1, "submit", "", "queued", None),
        (2, "claim", "queued", "executing", "w"),
        (3, "fail", "executing", "failed", None),
    ]
    await record_all(recorder)
    await leave(archived, task.task_id)
    later = await archived.history(task.task_id)
    assert later.events == history.events
    (attempt,) = later.attempts
    assert (attempt.worker_id, attempt.started_at, attempt.ended_at) == ("w", start, start + 5)
    assert (attempt.ended_by, attempt.error_code, attempt.traceback) == ("fail", "busy", "Traceback\n  x")
    with pytest.raises(errors.UnknownTask):
        await archived.history("00000000-0000-4000-8000-000000000000")


async def test_a_purged_dead_letter_leaves_the_history_too(
    archived: Store, recorder: Recorder, history: History
) -> None:
    await archived.workers.register("w", capacity=2)
    await archived.submit(new(), new())
    tasks = (await archived.claim("w", 2)).tasks
    await archived.fail("w", *[Failed(task.task_id, task.fence, **FAILURE) for task in tasks])
    await record_all(recorder)
    await leave(archived, tasks[0].task_id)
    for task in tasks:
        await archived.purge(task.task_id)
    assert await all_of(archived) == []
    for table in ("tasks", "events", "attempts", "task_limits"):
        assert await history.database.read(f"SELECT COUNT(*) FROM {table}") == [(0,)]


async def test_while_the_database_is_away_lists_have_what_the_store_has(store: Store) -> None:
    submitted = await store.submit_one(new())
    store.archive = archive = SqlArchive("postgresql://nobody@127.0.0.1:1/none", "default")
    try:
        page = await store.list_tasks()
        assert [task.task_id for task in page.tasks] == [submitted.task_id]
        assert page.warnings == ("The history does not answer: what has left the store is missing here.",)
        assert (await store.get(submitted.task_id)).status == "queued"
        with pytest.raises(errors.HistoryUnavailable):
            await store.get("00000000-0000-4000-8000-000000000000")
    finally:
        await archive.close()


async def test_a_store_without_a_history_says_so(store: Store) -> None:
    submitted = await store.submit_one(new())
    with pytest.raises(errors.NoHistory):
        await store.history(submitted.task_id)

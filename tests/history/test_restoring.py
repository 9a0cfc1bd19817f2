"""After a loss of its data a namespace comes back from SQL: what waits, its order, jobs at their stage."""

import contextlib
from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.history.definitions import DefinitionsCopy
from fairlead.history.opening import History
from fairlead.history.restoring import Restore, Restored
from fairlead.history.rows import TaskRow
from fairlead.model.job import JobStatus
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.settings.limits import Rate, Slots
from fairlead.store.restoring import Known, Restoring
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from tests.conftest import Clock
from tests.recording import event_rows, job_rows, record_all, task_rows
from tests.store.job_steps import complete, job
from tests.store.namespace import claim_one, everything, key_names, new, raw

#: What is made again as workers come, or starts from nothing.
OF_WORKERS = (
    *("meta", "profiles", "audiences", "routes", "heads", "home", "worker", "idle", "recent", "pace", "fin"),
    *("events", "audit", "running", "listed", "capacity", "metrics"),
)


INSERT = f"INSERT INTO tasks VALUES ({', '.join('?' * len(TaskRow._fields))})"


async def lose(store: Store) -> None:
    prefix = store.connection.keys.prefix
    await raw(store).delete(*[prefix + name for name in await key_names(store)])


async def restored(store: Store, history: History) -> Restored:
    """As the command does it; the namespace is open at once."""
    await store.epochs.seal()
    done = await Restore(store, history).run(hold_ms=0)
    await store.open()
    return done


async def lasting(store: Store) -> dict[str, Any]:
    """Of each key what it holds, as far as it does not come with workers, and whether it runs out."""
    found = await everything(store)
    return {
        name: (_opened(held), runs_out)
        for name, (held, runs_out) in found.items()
        if not name.startswith(OF_WORKERS)
    }


def _opened(held: Any) -> Any:
    """Packed facts are compared as values: the order in which they are packed is of no matter."""
    if not isinstance(held, dict):
        return held
    packed = {name: value for name, value in held.items() if name == b"facts" or name.startswith(b"step:")}
    return held | {name: msgspec.msgpack.decode(value) for name, value in packed.items()}


async def test_what_waits_comes_back_as_it_was(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    await store.limits.set("gpu", Slots(1))
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2), shared=True)
    await store.workers.register("w", capacity=9)
    failure: Any = {"code": "busy", "message": "no room", "jitter": 0}
    await store.submit(new("dead", tenant="acme", idempotency_key="d", max_retries=0), new("retried"))
    for task in (await store.claim("w", 2)).tasks:
        await store.fail("w", Failed(task.task_id, task.fence, retriable=True, **failure))
    await store.jobs.submit(job(idempotency_key="j"))
    await store.submit(
        *[new(user_id=f"u{n % 3}", tenant="acme", parameters={"n": n}, priority="low") for n in range(7)],
        new(priority="high", limits={"gpu": 1, "api": 1}, required_capabilities=("big",)),
        new(delay_seconds=30, user_id="late", idempotency_key="k"),
        new("grouped", concurrency_group="fresh", concurrency_limit=2, max_wait_seconds=1000),
    )
    await store.audit.record("ann", "limit", "gpu", None, {"limit": 1})
    clock.pass_seconds(700)
    await store.promote()
    await DefinitionsCopy(store, history).run_once()
    await record_all(recorder)
    before = await lasting(store)
    await lose(store)
    done = await restored(store, history)
    after = await lasting(store)
    assert {name: held for name, held in before.items() if after.get(name) != held} == {}
    assert after.keys() == before.keys()
    assert (done.unknown_limits, done.missing, done.kept, done.steps_again) == ([], [], 0, 0)


async def test_a_run_is_lost_with_its_lease_and_begins_again_under_a_greater_fence(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.limits.set("gpu", Slots(1))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    running = await claim_one(store)
    await record_all(recorder)
    await lose(store)
    done = await restored(store, history)
    assert done.tasks == {State.QUEUED: 1, State.EXECUTING: 1}
    assert done.unknown_limits == ["gpu"]  # nobody had copied the definitions: it gives nothing yet
    await store.workers.register("w", capacity=9)
    assert (await store.claim("w")).tasks == []
    await store.limits.set("gpu", Slots(1))
    again = await claim_one(store)
    assert (again.task_id, again.retry_count) == (running.task_id, 0)
    assert again.fence > running.fence + 50_000_000
    (refused,) = await store.complete("w", Completed(running.task_id, running.fence))
    assert isinstance(refused, errors.Fenced)
    await record_all(Recorder(store, history))
    rows = [row for row in await event_rows(history) if row.task_id == running.task_id]
    assert [(row.act, row.after) for row in rows] == [
        ("submit", "queued"),
        ("claim", "executing"),
        ("expire", "queued"),
        ("claim", "executing"),
    ]


async def test_jobs_continue_at_their_stage_whenever_their_records_were_read(
    store: Store, history: History, recorder: Recorder
) -> None:
    """The recorder reads steps and jobs one after the other: some of it may be older than the rest."""
    await store.workers.register("w", capacity=9)
    ids = [(await store.jobs.submit(job())).job_id for _ in range(4)]
    done_before, done_after, both_old, failed = [await claim_one(store) for _ in ids]
    await complete(store, done_before, {"n": 0})
    await record_all(recorder)
    await _record_jobs(store, history, recorder, [done_after, failed])
    await _record_steps(store, history, recorder, [both_old])
    await lose(store)
    done = await restored(store, history)
    assert done.jobs == {JobStatus.RUNNING: 3, JobStatus.FAILED: 1}
    await store.workers.register("w", capacity=9)
    seen: list[str] = []
    while tasks := (await store.claim("w", 9)).tasks:
        for task in tasks:
            seen.append(task.task_type)
            await complete(store, task, {"again": True})
    assert sorted(seen) == ["chat"] * 3
    statuses = [(await store.jobs.get(one)).status for one in ids]
    assert statuses == [JobStatus.COMPLETED] * 3 + [JobStatus.FAILED]


async def _record_jobs(store: Store, history: History, recorder: Recorder, ended: Any) -> None:
    """Steps end, and only their jobs are read late enough to know it."""
    done, failed = ended
    tasks = {row.id: row for row in await task_rows(history)}
    await complete(store, done, {"n": 1})
    await store.fail("w", Failed(failed.task_id, failed.fence, "oops", "it broke", retriable=False))
    await record_all(recorder)
    old = [tasks[one.task_id] for one in ended]
    async with history.database.transaction() as transaction:
        await transaction.run_many("DELETE FROM tasks WHERE id = ?", [(row.id,) for row in old])
        next_steps = "DELETE FROM tasks WHERE job_id = ? AND step = 1"
        await transaction.run(next_steps, tasks[done.task_id].job_id)
        await transaction.run_many(INSERT, old)


async def _record_steps(store: Store, history: History, recorder: Recorder, ended: Any) -> None:
    """A step ends, and its job was read too early to know it."""
    jobs = {row.id: row for row in await job_rows(history)}
    for task in ended:
        await complete(store, task, {"n": 2})
    await record_all(recorder)
    async with history.database.transaction() as transaction:
        for task in ended:
            old = jobs[task.job_id]
            await transaction.run(
                "UPDATE jobs SET status = ?, record = ? WHERE id = ?", old.status, old.record, old.id
            )
            await transaction.run("DELETE FROM tasks WHERE job_id = ? AND step = 1", old.id)


async def test_what_the_server_has_lost_of_the_latest_changes_is_repaired(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    """As after a fail-over to a replica that was behind: it has an older state of the same namespace."""
    await store.workers.register("w", capacity=9)
    await store.submit(*[new(parameters={"n": n}) for n in range(6)])
    completed, failed, retried, running = (await store.claim("w", 4)).tasks
    await store.jobs.submit(job())
    await record_all(recorder)
    before = await everything_raw(store)
    failure: Any = {"code": "busy", "message": "no room", "jitter": 0}
    await complete(store, completed, {"n": 1})
    await store.fail("w", Failed(failed.task_id, failed.fence, retriable=False, **failure))
    await store.fail("w", Failed(retried.task_id, retried.fence, retriable=True, **failure))
    waiting = await claim_one(store)
    late = [new(priority="high"), new(delay_seconds=9)]
    await store.submit(*late)
    new_job = await store.jobs.submit(job())
    await record_all(recorder)
    await put_back(store, before)
    with pytest.raises(errors.StoreLost):
        await store.submit_one(new())
    done = await restored(store, history)
    assert done.tasks[State.COMPLETED] == done.tasks[State.FAILED] == 1
    states = {task.task_id: task.status for task in (await store.list_tasks()).tasks}
    assert len(states) == 10
    assert states[completed.task_id] == State.COMPLETED
    assert states[failed.task_id] == State.FAILED
    assert states[waiting.task_id] == State.QUEUED
    assert states[running.task_id] == State.EXECUTING  # its lease was not lost
    assert {task.task_id for task in late} <= states.keys()
    assert (await store.jobs.get(new_job.job_id)).status == JobStatus.PENDING
    await record_all(Recorder(store, history))
    ids = [row.id for row in await event_rows(history)]
    assert len(ids) == len({*[(row.task_id, row.seq) for row in await event_rows(history)]})


async def everything_raw(store: Store) -> dict[str, tuple[bytes, int]]:
    client, prefix = raw(store), store.connection.keys.prefix
    return {
        name: (await client.dump(prefix + name), max(0, await client.pttl(prefix + name)))
        for name in await key_names(store)
    }


async def put_back(store: Store, content: dict[str, tuple[bytes, int]]) -> None:
    await lose(store)
    for name, (dumped, ttl) in content.items():
        await raw(store).restore(store.connection.keys.prefix + name, ttl, dumped)


async def test_a_restore_that_is_interrupted_at_any_point_is_repeated(
    store: Store, clock: Clock, history: History, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.limits.set("gpu", Slots(2))
    await store.workers.register("w", capacity=9)
    await store.jobs.submit(job())
    await store.submit(*[new(limits={"gpu": 1}, idempotency_key=f"k{n}") for n in range(3)])
    await claim_one(store)
    await DefinitionsCopy(store, history).run_once()
    await record_all(recorder)
    await lose(store)
    await store.epochs.seal()
    run, steps = Restoring.run, 0

    async def interrupted(self: Restoring, step: str, given: Any = None) -> Any:
        nonlocal steps
        answer = await run(self, step, given)
        steps += 1
        if steps in stops:
            raise errors.StoreUnavailable
        return answer

    monkeypatch.setattr(Restoring, "run", interrupted)
    stops, attempts = {1, 3, 6, 10, 15, 21, 28}, 0
    while not (await store.epochs.look()).opening:
        attempts += 1
        with contextlib.suppress(errors.StoreUnavailable):
            await Restore(store, history).run(hold_ms=0)
        if (await store.epochs.look()).sealed:
            with pytest.raises(errors.InvalidInput, match="fairlead restore"):
                await store.epochs.accept("restored", 0)
            await raw(store).hset(store.connection.keys.meta, "restoring_at", 0)  # it was silent for a while
    assert attempts > 3
    await store.open()
    tasks = (await store.list_tasks()).tasks
    assert [task.status for task in tasks] == [State.QUEUED] * 4
    assert len({*[task.task_id for task in tasks]}) == 4


async def test_one_process_restores_at_a_time(store: Store, history: History, recorder: Recorder) -> None:
    await store.submit_one(new())
    await record_all(recorder)
    await lose(store)
    await store.epochs.seal()
    first, second = Restore(store, history), Restore(store, history)
    standing, found, life = await first.look()
    begun = Restoring(store)
    await begun.begin(Known(life.epoch, life.beat, life.position, 0, 0), standing, found)
    with pytest.raises(errors.RestoreRefused, match="Another process"):
        await second.run(hold_ms=0)
    await raw(store).hset(store.connection.keys.meta, "restoring_at", 0)
    await second.run(hold_ms=0)
    with pytest.raises(errors.RestoreRefused):
        await begun.end(0)
    await store.open()


async def test_what_is_not_lost_is_not_restored(store: Store, history: History, recorder: Recorder) -> None:
    with pytest.raises(errors.RestoreRefused, match="nothing of this namespace"):
        await Restore(store, history).run(hold_ms=0)
    await store.submit_one(new())
    await record_all(recorder)
    with pytest.raises(errors.RestoreRefused, match="Nothing is lost"):
        await Restore(store, history).run(hold_ms=0)


async def test_what_an_operator_gave_up_is_not_restored_later(
    store: Store, history: History, recorder: Recorder
) -> None:
    given_up = await store.submit_one(new())
    await record_all(recorder)
    await lose(store)
    await store.epochs.accept("new", 0)
    await store.open()
    kept = await store.submit_one(new())
    await record_all(Recorder(store, history))
    await lose(store)
    assert (await Restore(store, history).plan()).tasks == {State.QUEUED: 1}
    await restored(store, history)
    assert [task.task_id for task in (await store.list_tasks()).tasks] == [kept.task_id] != [given_up.task_id]


async def test_an_idempotency_key_is_known_until_its_window_ends(
    store: Store, clock: Clock, history: History, recorder: Recorder
) -> None:
    await store.workers.register("w", capacity=9)
    task, other = new(idempotency_key="k"), new(idempotency_key="other")
    await store.submit_one(task)
    await complete(store, await claim_one(store))
    await store.submit_one(other)
    await record_all(recorder)
    await lose(store)
    await restored(store, history)
    again = await store.submit_one(new(idempotency_key="k"))
    assert (again.task_id, again.status) == (task.task_id, State.COMPLETED)
    assert (await store.submit_one(new(idempotency_key="other"))).task_id == other.task_id
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(new("another", idempotency_key="k"))

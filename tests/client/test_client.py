"""Every method of the client, against a real gateway: the values are those that the store itself gives."""

import subprocess
import sys
from dataclasses import replace as replaced

import pytest
from msgspec.structs import replace

from fairlead import errors
from fairlead.client.client import Client
from fairlead.model.dead_letter import DeadFilter
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Rate, Slots, TaskSettings
from fairlead.store.store import Store
from tests.api.requests import NO_TASK
from tests.waiting import wait_until

EVERYTHING = NewTask(
    task_type="draw",
    parameters={"a": [1, None, "€"]},
    priority="high",
    user_id="ann",
    required_capabilities=("gpu",),
    limits={"gpu": 2},
    concurrency_group="studio",
    concurrency_limit=3,
    timeout_seconds=7.5,
    max_retries=0,
    max_wait_seconds=60,
    delay_seconds=3600,
    idempotency_key="order-7",
    trace_id="t1",
)


async def claim(client: Client, worker: str = "w", want: int = 9) -> list[Task]:
    return (await client.report(worker, claim=want))[1].tasks


def plain(task: Task) -> Task:
    """As the API shows it: without the number of its events, and what only its worker needs."""
    return replace(task, seq=1, queued_at=None, reported_fence=None, traceparent=None)


async def registered(client: Client, worker: str = "w") -> str:
    await client.workers.register(worker, capacity=9, capabilities=["gpu"])
    return worker


async def test_a_task_is_returned_as_the_store_knows_it(client: Client, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    submitted = await client.submit_one(EVERYTHING)
    assert (submitted.task_id, submitted.status) == (EVERYTHING.task_id, State.DELAYED)
    known = await store.get(EVERYTHING.task_id)
    assert await client.get(EVERYTHING.task_id) == plain(known)
    assert (known.timeout_ms, known.max_retries, known.user_id) == (7500, 0, "ann")


async def test_a_batch_is_answered_in_order_each_on_its_own(client: Client) -> None:
    good, nothing, bad = NewTask(task_type="a"), NewTask(task_type="no type!"), NewTask(task_type="b")
    unknown = NewTask(task_type="c", limits={"nothing": 1})
    first, second, third, fourth = await client.submit(good, nothing, bad, unknown)
    assert [getattr(one, "task_id", None) for one in (first, third)] == [good.task_id, bad.task_id]
    assert getattr(first, "warnings", None) == ("no worker serves 'a' yet; it waits until one does",)
    assert isinstance(second, errors.InvalidInput)
    assert second.field == "task_type"
    assert isinstance(fourth, errors.InvalidInput)
    assert (fourth.field, fourth.code) == ("limits.nothing", "unknown_limit")


async def test_a_large_batch_goes_in_several_bodies(client: Client) -> None:
    large = {"text": "x" * 250_000}
    tasks = [NewTask(task_type="a", parameters=large) for _ in range(40)]
    answers = await client.submit(*tasks)
    assert [getattr(one, "task_id", one) for one in answers] == [task.task_id for task in tasks]


async def test_the_same_task_again_is_one_task(client: Client) -> None:
    task = NewTask(task_type="a")
    assert not (await client.submit_one(task)).repeated
    assert (await client.submit_one(task)).repeated
    assert len((await client.list_tasks()).tasks) == 1


async def test_an_invalid_task_is_refused_before_it_is_sent(client: Client) -> None:
    with pytest.raises(errors.InvalidInput, match="tenant: is that of the key"):
        await client.submit_one(NewTask(task_type="a", tenant="acme"))
    with pytest.raises(errors.InvalidInput, match=r"parameters\.x: nan is not JSON"):
        await client.submit_one(NewTask(task_type="a", parameters={"x": float("nan")}))
    with pytest.raises(errors.InvalidInput, match="1001 at once"):
        await client.submit(*[NewTask(task_type="a")] * 1001)


async def test_the_reason_for_waiting_has_the_same_text(client: Client, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    task = NewTask(task_type="a", limits={"gpu": 1})
    await client.submit_one(task)
    await registered(client)
    explained = await client.explain(task.task_id)
    assert replaced(explained, at=0) == replaced(await store.explain(task.task_id), at=0)
    assert explained.sentence == "It waits for a unit of gpu, which is paused."


async def test_a_task_is_cancelled_and_its_worker_named(client: Client) -> None:
    worker = await registered(client)
    await client.submit(*(NewTask(task_type="a") for _ in range(2)))
    (running,) = await claim(client, want=1)
    assert await client.cancel(running.task_id) == worker
    (waiting,) = (await client.list_tasks(status="queued")).tasks
    assert await client.cancel(waiting.task_id) is None


async def test_tasks_are_listed_page_by_page(client: Client) -> None:
    tasks = [NewTask(task_type="a", user_id="ann", priority="low") for _ in range(5)]
    await client.submit(*tasks)
    await client.submit_one(NewTask(task_type="b"))
    seen: list[str] = []
    cursor = ""
    while True:
        page = await client.list_tasks(task_type="a", user_id="ann", priority="low", limit=2, cursor=cursor)
        seen += [task.task_id for task in page.tasks]
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == [task.task_id for task in reversed(tasks)]


async def test_dead_letters_are_listed_replayed_and_purged(client: Client, store: Store) -> None:
    await registered(client)
    await client.submit(*(NewTask(task_type="a") for _ in range(3)))
    tasks = await claim(client)
    await client.fail("w", *(Failed(one.task_id, one.fence, "bad", "no", retriable=False) for one in tasks))
    dead = (await client.dead_letters.page()).tasks
    assert dead == [plain(one) for one in (await store.dead_letters.page()).tasks]
    first = await client.dead_letters.page(1)
    rest = await client.dead_letters.page(2, first.next_cursor)
    assert [one.task_id for one in (*first.tasks, *rest.tasks)] == [one.task_id for one in dead]
    assert await client.dead_letters.get(dead[0].task_id) == plain(
        await store.dead_letters.get(dead[0].task_id)
    )
    wanted = DeadFilter(code="bad", since=dead[0].completed_at, text="nothing of the kind")
    assert (await client.dead_letters.page(wanted=wanted)).tasks == []
    await client.replay(dead[0].task_id)
    await client.purge(dead[1].task_id)
    assert [one.task_id for one in (await client.dead_letters.page()).tasks] == [dead[2].task_id]


async def test_stats_and_workers_are_those_of_the_store(client: Client, store: Store) -> None:
    await registered(client)
    await client.submit(*(NewTask(task_type="a") for _ in range(2)))
    (task,) = await claim(client, want=1)
    await client.report("w", [Completed(task.task_id, task.fence)])
    seen, known = await client.stats(), await store.stats()
    assert seen.workers == known.workers
    assert seen.ended_last_minute == known.ended_last_minute
    assert {name: queue.depth for name, queue in seen.queues.items()} == {"high": 0, "medium": 1, "low": 0}


async def test_limits_are_set_and_seen(client: Client, store: Store) -> None:
    await client.limits.set("gpu", Slots(limit=2))
    await client.limits.set("api", Rate(count=7, period_seconds=60, burst=3))
    lease = await client.limits.acquire("gpu", units=2, holder="me")
    assert await client.limits.get("gpu") == await store.limits.get("gpu")
    assert [(one.name, one.active) for one in await client.limits.all()] == [("api", 0), ("gpu", 2)]
    assert (await client.limits.get("api")).interval_us == (await store.limits.get("api")).interval_us
    with pytest.raises(errors.LimitFull):
        await client.limits.acquire("gpu")
    assert (await client.limits.renew(lease, 60_000)).expires_at > lease.expires_at
    await client.limits.release(lease)
    with pytest.raises(errors.Fenced):
        await client.limits.release(lease)
    stuck = await client.limits.acquire("gpu")
    await client.limits.force_release("gpu", stuck.lease_id)
    assert (await store.limits.get("gpu")).active == 0
    await client.limits.delete("gpu")
    with pytest.raises(errors.UnknownLimit):
        await client.limits.delete("gpu")
    await store.limits.acquire("api")
    with pytest.raises(errors.LimitInUse, match="have not ended"):
        await client.limits.delete("api")
    with pytest.raises(errors.UnknownLimit):
        await client.limits.get("nothing")


async def test_a_worker_does_all_that_it_does_at_the_store(client: Client, store: Store) -> None:
    worker = await registered(client)
    await client.submit(*(NewTask(task_type="a", user_id="ann", parameters={"n": n}) for n in range(4)))
    tasks = await claim(client)
    assert {(one.parameters["n"], one.user_id, one.attempt) for one in tasks} == {
        (n, "ann", 1) for n in range(4)
    }
    beat = await client.workers.heartbeat(worker)
    assert beat.deadlines == {one.task_id: one.deadline for one in tasks}
    assert set(beat.leases) == set(beat.deadlines)
    done, retried, back, cancelled = tasks
    assert await client.progress(worker, Progress(done.task_id, done.fence, 0.5, "half", ["a", "b"], 1)) == [
        None
    ]
    assert [one.chunk for one in await client.outputs(done.task_id)] == ["a", "b"]
    longer = await client.extend(worker, Grant(done.task_id, done.fence), 3_600_000)
    assert longer == (await store.get(done.task_id)).deadline
    reports, claimed = await client.report(
        worker, [Completed(done.task_id, done.fence, {"x": 1})], [Failed(retried.task_id, retried.fence)]
    )
    assert (reports[0], claimed.tasks) == (State.COMPLETED, [])
    assert await client.release(worker, Grant(back.task_id, back.fence)) == [State.QUEUED]
    await client.cancel(cancelled.task_id)
    assert (await client.workers.heartbeat(worker)).cancelled == [cancelled.task_id]
    assert await client.workers.wait(worker, 5) == f"cancel:{cancelled.task_id}"
    with pytest.raises(errors.InvalidInput, match="still holds"):
        await client.workers.leave(worker)
    await client.workers.drain(worker)
    assert (await client.workers.heartbeat(worker)).state == "draining"
    assert await client.expire(worker) == 1


async def test_reports_that_are_refused_do_not_spoil_the_others(client: Client) -> None:
    worker = await registered(client)
    await client.submit(*(NewTask(task_type="a") for _ in range(3)))
    one, two, three = await claim(client)
    answers, claimed = await client.report(
        worker,
        [Completed(one.task_id, one.fence + 9), Completed(two.task_id, two.fence, float("inf"))],
        [Failed(three.task_id, three.fence, retriable=False)],
        claim=5,
        request="a1",
    )
    assert [type(answer) for answer in answers[:2]] == [errors.Fenced, errors.InvalidInput]
    assert (answers[2], claimed.tasks) == (State.FAILED, [])


async def test_a_claim_that_is_repeated_gives_the_same_tasks(client: Client) -> None:
    worker = await registered(client)
    await client.submit(*(NewTask(task_type="a") for _ in range(3)))
    first = (await client.report(worker, claim=2, request="a1"))[1]
    assert (await client.report(worker, claim=2, request="a1"))[1].tasks == first.tasks
    assert len((await client.report(worker, claim=2, request="a2"))[1].tasks) == 1


async def test_types_and_limits_are_declared_and_the_rhythm_is_learned(client: Client, store: Store) -> None:
    types = {"draw": TaskSettings(limits={"gpu": 1}, timeout_seconds=5, required_capabilities=["cuda"])}
    await client.declare(
        "code", types, {"gpu": Slots(limit=1), "api": Rate(count=1, period_seconds=1, burst=1)}
    )
    task = NewTask(task_type="draw")
    await client.submit_one(task)
    known = await store.get(task.task_id)
    assert (known.timeout_ms, known.limits, known.required_capabilities) == (5000, {"gpu": 1}, ("cuda",))
    assert (client.settings.lease_ms, client.settings.worker.heartbeat_seconds) == (40_000, 0.5)
    await client.declare("code", {}, {}, {"film": (("write",), ("draw", "sing"))})
    with pytest.raises(errors.InvalidInput) as caught:
        await client.declare("code", {"draw": TaskSettings(limits={"nothing": 1})}, {})
    assert caught.value.field == "tasks.draw.limits.nothing"


async def test_a_tick_is_submitted_once(client: Client, store: Store) -> None:
    last, now = await client.crons.last("report")
    assert last <= now
    tick = last + 1

    async def has_come() -> bool:
        return (await client.crons.last("report"))[1] >= tick

    await wait_until(has_come)
    with pytest.raises(errors.InvalidInput, match="no such limit"):
        await client.crons.tick("report", last, tick, NewTask(task_type="a", limits={"nothing": 1}))
    first = await client.crons.tick("report", last, tick, NewTask(task_type="report"))
    assert first
    assert (await store.get(first.task_id)).task_type == "report"
    assert await client.crons.tick("report", last, tick, NewTask(task_type="report")) is None
    assert (await client.crons.last("report"))[0] == tick


@pytest.mark.parametrize("task_id", [NO_TASK, "no-id", "..", ""])
async def test_an_unknown_task_is_unknown_with_any_id(client: Client, task_id: str) -> None:
    for call in (client.get, client.explain, client.cancel, client.replay, client.purge, client.outputs):
        with pytest.raises(errors.UnknownTask):
            await call(task_id)


async def test_an_unknown_worker_is_refused(client: Client) -> None:
    for call in (client.workers.heartbeat, client.workers.drain):
        with pytest.raises(errors.UnknownWorker):
            await call("nobody")
    with pytest.raises(errors.UnknownWorker):
        await client.report("nobody", claim=1)
    await client.workers.leave("nobody")  # it left before


def test_the_client_does_not_load_redis() -> None:
    """The HTTP client needs no library of the store: none may be imported through a shared value."""
    loaded = (
        "import sys, fairlead.client.client; sys.exit(bool({'redis', 'fairlead.store'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


async def test_what_is_declared_is_confirmed(client: Client, store: Store) -> None:
    await client.declare("code", {"draw": TaskSettings()}, {}, {"picture": (("draw",),)})
    assert await client.confirm(["draw"], ["picture"])
    assert not await client.confirm(["draw", "gone"], ["picture"])
    assert await client.confirm([], [])
    many = {f"t{n}": TaskSettings() for n in range(1_100)}
    await client.declare("code", many, {})
    assert await client.confirm(many, ["picture"])


async def test_task_types_are_listed_and_paused(client: Client, store: Store) -> None:
    await store.declare("code", {f"t{n:04}": TaskSettings() for n in range(1_001)}, {})
    await client.pause_type("t0001")
    assert await client.task_types() == await store.task_types()
    assert [name for name, since in (await client.task_types()).items() if since] == ["t0001"]
    await client.pause_type("t0001", False)
    assert await client.task_types() == dict.fromkeys(f"t{n:04}" for n in range(1_001))


async def test_crons_are_listed(client: Client, store: Store) -> None:
    await client.crons.last("report", "0 3 1 1 *", "Europe/Berlin")
    await client.crons.last("old")
    assert await client.crons.all() == await store.crons.all()
    assert [(cron.name, cron.schedule) for cron in await client.crons.all()] == [
        ("old", None),
        ("report", "0 3 1 1 *"),
    ]


async def test_the_audit_is_read_and_verified(client: Client, store: Store) -> None:
    for n in range(3):
        await store.audit.record("ann", "drain", f"w{n}", None, {"status": "draining"})
    first = await client.audit.page(2)
    assert first.entries == (await store.audit.page()).entries[:2]
    second = await client.audit.page(2, first.next_cursor)
    assert (second.entries, second.next_cursor) == ((await store.audit.page()).entries[2:], "")
    assert await client.audit.verify() == []

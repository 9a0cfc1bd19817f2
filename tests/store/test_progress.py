"""What a run reports: its progress, its output, and that it needs more time."""

import asyncio
import math
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant, Output, Progress
from fairlead.model.states import State
from fairlead.model.task import Task, TaskProgress
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, everything, key_names, new, raw

LEASE = 30_000


@pytest.fixture
async def running(store: Store) -> Task:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=5)
    await store.submit_one(new(limits={"gpu": 1}, timeout_seconds=100))
    return await claim_one(store)


def report(task: Task, *chunks: Any, **facts: Any) -> Progress:
    return Progress(task.task_id, task.fence, chunks=chunks, **facts)


async def run_again(store: Store, task: Task, clock: Clock) -> Task:
    await store.fail("w", Failed(task.task_id, task.fence, jitter=0))
    clock.pass_seconds(1)
    return await claim_one(store)


# Progress


async def test_the_task_has_the_last_progress_of_its_run(store: Store, running: Task) -> None:
    assert running.progress is None
    await store.progress("w", report(running, fraction=0.25, message="loading"))
    assert await store.progress("w", report(running, fraction=0.5)) == [None]
    assert (await store.get(running.task_id)).progress == TaskProgress(fraction=0.5, message="")
    await store.progress("w", report(running, message="nearly"), report(running, "chunk"))
    assert (await store.get(running.task_id)).progress == TaskProgress(fraction=None, message="nearly")
    await store.complete("w", Completed(running.task_id, running.fence))
    assert (await store.get(running.task_id)).progress == TaskProgress(message="nearly")


async def test_a_new_run_has_made_no_progress(store: Store, running: Task, clock: Clock) -> None:
    await store.progress("w", report(running, fraction=1))
    assert (await run_again(store, running, clock)).progress is None
    assert (await store.get(running.task_id)).progress is None


# What it puts out


async def test_chunks_are_kept_in_order_with_their_run(store: Store, running: Task, clock: Clock) -> None:
    await store.progress("w", report(running, "a", {"b": [1, None]}))
    await store.progress("w", report(running, 2.5), report(running, "ü𝄞"))
    then = clock.now
    again = await run_again(store, running, clock)
    await store.progress("w", report(again, "restarted"))
    first, second = running.fence, again.fence
    kept = [
        Output(1, first, "a", 3, then),  # after its submit and its claim
        Output(2, first, {"b": [1, None]}, 4, then),
        Output(3, first, 2.5, 5, then),
        Output(4, first, "ü𝄞", 6, then),
        Output(5, second, "restarted", 10, clock.now),  # after a failure, a delay and another claim
    ]
    assert await store.outputs(running.task_id) == kept
    for seq in range(1, 11):
        newer = [output for output in kept if output.event_seq > seq]
        assert await store.outputs(running.task_id, after_event=seq) == newer
        page = await store.output_page(running.task_id, after_event=seq, most=2)
        assert page == (newer[:2], len(newer) > 2)
    assert await store.outputs(running.task_id, after=3) == kept[3:]
    assert await store.outputs(running.task_id, after=5) == []
    assert await store.outputs(running.task_id, after=99) == []


async def test_the_latest_thousand_chunks_are_kept(store: Store, running: Task) -> None:
    await store.progress("w", report(running, *range(1, 1001)))
    await store.progress("w", report(running, *range(1001, 1301)))
    kept = await store.outputs(running.task_id)
    assert [output.chunk for output in kept] == list(range(301, 1301))
    assert [output.seq for output in kept] == list(range(301, 1301))
    assert (await store.outputs(running.task_id, after=100))[0].seq == 301
    assert [output.seq for output in await store.outputs(running.task_id, after=1298)] == [1299, 1300]


async def test_numbered_chunks_that_come_again_are_kept_once(
    store: Store, running: Task, clock: Clock
) -> None:
    async def chunks() -> list[Any]:
        return [output.chunk for output in await store.outputs(running.task_id)]

    await store.progress("w", report(running, "a", "b", first=1))
    before = await everything(store)
    await store.progress("w", report(running, "a", "b", first=1))
    assert await everything(store) == before
    await store.progress("w", report(running, "b", "c", first=2))
    await store.progress("w", report(running, "d", first=4))
    assert await chunks() == ["a", "b", "c", "d"]
    again = await run_again(store, running, clock)
    await store.progress("w", report(again, "e", first=1))
    await store.progress("w", report(again, "e", "f", first=1))
    assert await chunks() == ["a", "b", "c", "d", "e", "f"]


async def test_a_task_without_output_has_none_and_an_unknown_one_is_unknown(
    store: Store, running: Task
) -> None:
    assert await store.outputs(running.task_id) == []
    for task_id in (new().task_id, "odd"):
        with pytest.raises(errors.UnknownTask):
            await store.outputs(task_id)
    with pytest.raises(errors.InvalidInput):
        await store.outputs(running.task_id, after=-1)


async def test_output_ends_with_its_task(store: Store, running: Task) -> None:
    keys = store.connection.keys
    await store.progress("w", report(running, "a"))
    assert await raw(store).pttl(keys.key("output", running.task_id)) == -1
    await store.fail("w", Failed(running.task_id, running.fence, retriable=False))
    ends = [await raw(store).pexpiretime(keys.key(name, running.task_id)) for name in ("task", "output")]
    assert ends[0] > 0 and abs(ends[0] - ends[1]) < 1_000
    await store.replay(running.task_id)
    assert await raw(store).pttl(keys.key("output", running.task_id)) == -1
    again = await claim_one(store)
    await store.progress("w", report(again, "b"))
    await store.fail("w", Failed(again.task_id, again.fence, retriable=False))
    assert [output.seq for output in await store.outputs(running.task_id)] == [1, 2]
    await store.purge(running.task_id)
    assert f"output:{running.task_id}" not in await key_names(store)


async def test_output_of_a_cancelled_run_ends_with_its_record(store: Store, running: Task) -> None:
    await store.progress("w", report(running, "a"))
    await store.cancel(running.task_id)
    keys = store.connection.keys
    ends = [await raw(store).pexpiretime(keys.key(name, running.task_id)) for name in ("task", "output")]
    assert ends[1] > 0 and abs(ends[0] - ends[1]) < 1_000


# Who receives it


async def test_live_listeners_receive_it_and_the_outbox_does_not_keep_it(
    store: Store, running: Task, clock: Clock
) -> None:
    before = await events(store)
    async with asyncio.timeout(20), store.live.watch(running.task_id) as watch:
        assert await anext(watch) is None
        clock.pass_ms(5)
        await store.progress("w", report(running, "a", {"b": 'c"'}, fraction=0.5, message="on"))
        received = [await anext(watch) for _ in range(3)]
    facts = [(e.act, e.before, e.after, e.at, e.fence, e.detail) for e in received if e]
    same = (State.EXECUTING, State.EXECUTING, clock.now, running.fence)
    assert facts == [
        ("progress", *same, {"fraction": 0.5, "message": "on"}),
        ("output", *same, {"seq": 1, "chunk": "a"}),
        ("output", *same, {"seq": 2, "chunk": {"b": 'c"'}}),
    ]
    assert await events(store) == before


# Who may report it


async def test_a_worker_that_does_not_hold_the_task_is_refused(
    store: Store, running: Task, clock: Clock
) -> None:
    other = new("other")
    await store.submit_one(other)
    before = await everything(store)
    reports = [
        Progress(running.task_id, running.fence + 1, 0.5, chunks=["a"]),
        Progress(other.task_id, 1, 0.5, chunks=["a"]),
        Progress(new().task_id, 1, 0.5),
    ]
    answers = await store.progress("w", *reports)
    assert [type(answer) for answer in answers] == [errors.Fenced, errors.Fenced, errors.UnknownTask]
    (answer,) = await store.progress("stranger", Progress(running.task_id, fraction=0.5))
    assert isinstance(answer, errors.Fenced)
    for grant in (Grant(running.task_id, running.fence + 1), Grant(other.task_id, 1)):
        with pytest.raises(errors.Fenced):
            await store.extend("w", grant, 500_000)
    with pytest.raises(errors.Fenced):
        await store.extend("stranger", Grant(running.task_id), 500_000)
    with pytest.raises(errors.UnknownTask):
        await store.extend("w", Grant(new().task_id, 1), 500_000)
    assert await everything(store) == before


async def test_a_cancelled_run_is_refused_and_keeps_its_units_for_it_still_runs(
    store: Store, running: Task
) -> None:
    await store.cancel(running.task_id)
    before = await everything(store)
    (answer,) = await store.progress("w", report(running, "a", fraction=0.5))
    assert isinstance(answer, errors.Fenced)
    with pytest.raises(errors.Fenced):
        await store.extend("w", Grant(running.task_id, running.fence), 500_000)
    assert await everything(store) == before
    assert (await store.limits.get("gpu")).active == 1


async def test_the_worker_that_holds_it_needs_no_fence(store: Store, running: Task) -> None:
    assert await store.progress("w", Progress(running.task_id, chunks=["a"])) == [None]
    assert await store.extend("w", Grant(running.task_id), 500_000) > 0


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "more than all": ({"fraction": 1.01}, "fraction"),
    "less than nothing": ({"fraction": -0.1}, "fraction"),
    "a fraction that is NaN": ({"fraction": math.nan}, "fraction"),
    "a fraction that is true": ({"fraction": True}, "fraction"),
    "a fraction as text": ({"fraction": "0.5"}, "fraction"),
    "a message that is a number": ({"message": 5}, "message"),
    "a chunk that is no JSON": ({"chunks": ["good", {1}]}, "chunks[1]"),
    "a chunk that is NaN": ({"chunks": [{"a": math.nan}]}, "chunks[0].a"),
    "a chunk of more than 64 KiB": ({"chunks": ["x" * 65_536]}, "chunks[0]"),
    "a text for a list": ({"chunks": "abc"}, "chunks"),
    "1,001 chunks": ({"chunks": [1] * 1_001}, "chunks"),
    "a number before the first": ({"chunks": [1], "first": 0}, "first"),
}


async def test_an_invalid_report_is_refused_by_its_field_and_does_not_affect_the_rest(
    store: Store, running: Task
) -> None:
    before = await everything(store)
    wrong = [Progress(running.task_id, running.fence, **facts) for facts, _ in BAD.values()]
    answers = await store.progress("w", *wrong)
    found = [answer.field for answer in answers if isinstance(answer, errors.InvalidInput)]
    assert found == [field for _, field in BAD.values()]
    assert await everything(store) == before
    answers = await store.progress("w", wrong[0], report(running, "good"), wrong[1])
    assert [type(answer) for answer in answers] == [errors.InvalidInput, type(None), errors.InvalidInput]
    assert len(await store.outputs(running.task_id)) == 1


async def test_the_largest_chunk_and_an_unreadable_message_are_taken(store: Store, running: Task) -> None:
    large = report(running, "x" * (65_536 - 2), message="caf\udce9" + "x" * 9_000)
    assert await store.progress("w", large) == [None]
    progress = (await store.get(running.task_id)).progress
    assert progress and progress.message == "caf?" + "x" * 3_996


# More time


async def test_a_deadline_moves_forward_from_now_and_never_back(
    store: Store, running: Task, clock: Clock
) -> None:
    grant = Grant(running.task_id, running.fence)
    clock.pass_seconds(20)
    assert await store.extend("w", grant, 300_000) == clock.now + 300_000
    later = await store.get(running.task_id)
    assert (later.deadline, later.lease_until) == (clock.now + 300_000, clock.now + LEASE)
    assert await store.extend("w", grant, 1_000) == clock.now + 300_000
    assert (await store.get(running.task_id)).deadline == clock.now + 300_000
    extended = [row for row in await events(store) if row["act"] == "extend"]
    assert [(row["from"], row["to"], row["fence"], row["detail"]) for row in extended] == [
        ("executing", "executing", running.fence, {"deadline": clock.now + 300_000, "worker": "w"})
    ]


async def test_a_run_with_more_time_is_not_ended_by_its_first_deadline(
    store: Store, running: Task, clock: Clock
) -> None:
    grant = Grant(running.task_id, running.fence)
    for _ in range(5):
        clock.pass_seconds(20)
        await store.workers.heartbeat("w", [grant], lease_ms=LEASE)
    clock.pass_seconds(10)  # past its deadline, by which its lease is no longer prolonged
    await store.extend("w", grant, 200_000)
    clock.pass_seconds(25)
    assert await store.expire() == 0
    assert (await store.get(running.task_id)).status is State.EXECUTING
    assert await store.complete("w", Completed(running.task_id, running.fence)) == [State.COMPLETED]


async def test_a_lease_that_ends_later_is_not_shortened(store: Store, running: Task, clock: Clock) -> None:
    grant = Grant(running.task_id, running.fence)
    until = (await store.workers.heartbeat("w", [grant], lease_ms=90_000)).leases[grant.id]
    await store.extend("w", grant, 500_000)
    assert (await store.get(running.task_id)).lease_until == until == clock.now + 90_000


@pytest.mark.parametrize("ms", [0, -1, 1.5, math.nan, True, 10**15])
async def test_an_impossible_time_is_refused(store: Store, running: Task, ms: Any) -> None:
    with pytest.raises(errors.InvalidInput):
        await store.extend("w", Grant(running.task_id, running.fence), ms)

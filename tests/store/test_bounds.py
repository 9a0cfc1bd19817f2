"""No act is long: it takes a bounded number of items and bytes, and the store sends the rest after it."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.task import Submitted, Task
from fairlead.settings import Slots
from fairlead.store.connection import Answer, unpack_answer
from fairlead.store.scripts import edition
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.servers import running
from tests.store.namespace import events, new, raw, woken

MOST_BYTES = 1024 * 1024
KIB_200 = "x" * 200 * 1024


class Watched:
    """Every act that a store sends from now on: its name, its arguments, its answer, and its round trip."""

    def __init__(self, store: Store) -> None:
        self.acts: list[tuple[str, Sequence[Any], Any]] = []
        self.trips: list[int] = []  # acts in each
        self._call = store.connection.shared.call
        store.connection.shared.call = self._record  # type: ignore[method-assign]

    async def _record(self, *commands: Any, **options: Any) -> list[Any]:
        answers = await self._call(*commands, **options)
        calls = [(command, answer) for command, answer in zip(commands, answers, strict=True)]
        acts = [(c[1].removeprefix(f"{edition()}_"), c[6:], a) for c, a in calls if c[0] == "FCALL"]
        self.acts += acts
        self.trips.append(len(acts))
        return answers

    def arguments(self, act: str) -> list[Sequence[Any]]:
        return [arguments for name, arguments, _ in self.acts if name == act]

    def answers(self, act: str) -> list[Answer]:
        return [unpack_answer(answer) for name, _, answer in self.acts if name == act]

    def sizes(self, act: str, argument: int) -> list[int]:
        """How many items each act brought."""
        return [len(msgspec.msgpack.decode(arguments[argument])) for arguments in self.arguments(act)]


async def holding(store: Store, count: int, worker: str = "w", **options: Any) -> list[Task]:
    """A worker that holds this number of tasks."""
    await store.workers.register(worker, capacity=count)
    for start in range(0, count, 1000):
        await store.submit(*(new(**options) for _ in range(min(1000, count - start))))
    tasks: list[Task] = []
    while len(tasks) < count:
        tasks += (await store.claim(worker, count)).tasks
    return tasks


# Heartbeats


async def test_a_heartbeat_names_at_most_256_holders_in_an_act(store: Store, clock: Clock) -> None:
    tasks = await holding(store, 600)
    watched = Watched(store)
    clock.pass_seconds(5)
    grants = [Grant(task.task_id, task.fence) for task in tasks[:-1]]
    beat = await store.workers.heartbeat("w", [*grants, Grant(tasks[-1].task_id, 1)], lease_ms=20_000)
    assert watched.sizes("heartbeat", 2) == [256, 256, 88]
    assert beat.leases == dict.fromkeys([grant.id for grant in grants], clock.now + 20_000)
    assert (beat.lost, beat.now, beat.state) == ([tasks[-1].task_id], clock.now, "active")


async def test_a_heartbeat_for_all_that_a_worker_holds_goes_page_by_page(store: Store, clock: Clock) -> None:
    tasks = await holding(store, 1000)
    await store.cancel(tasks[7].task_id)
    watched = Watched(store)
    clock.pass_seconds(5)
    beat = await store.workers.heartbeat("w", lease_ms=20_000)
    pages = [len(answer["rows"]) for answer in watched.answers("heartbeat")]
    assert len(pages) >= 4
    assert max(pages) < 300, "a page may be a little larger, as the server's cursor has it"
    others = {task.task_id for task in tasks} - {tasks[7].task_id}
    assert (set(beat.leases), beat.cancelled, beat.lost) == (others, [tasks[7].task_id], [])
    assert set(beat.deadlines) == others


async def test_a_heartbeat_of_a_worker_with_nothing_is_one_act(store: Store) -> None:
    await store.workers.register("w")
    watched = Watched(store)
    assert (await store.workers.heartbeat("w")).state == "active"
    assert (await store.workers.heartbeat("w", [], draining=True)).state == "draining"
    assert watched.trips == [1, 1]


# A dead worker


async def test_the_runs_of_a_dead_worker_are_ended_32_at_a_time(store: Store) -> None:
    tasks = await holding(store, 80)
    watched = Watched(store)
    assert await store.expire("w") == 80
    assert [answer["ended"] for answer in watched.answers("expire")] == [32, 32, 16]
    statuses = {(await store.get(task.task_id)).status for task in tasks}
    assert statuses == {State.QUEUED}
    with pytest.raises(errors.UnknownWorker):
        await store.claim("w")


async def test_a_dead_worker_is_given_nothing_between_the_acts_that_end_what_it_held(store: Store) -> None:
    await holding(store, 50)
    await store.workers.register("w", capacity=100)  # it still has room, and waits
    assert (await store.claim("w", 10, idle=True)).tasks == []
    await store.run("expire", "w")  # the first of the acts
    assert await woken(store, "w") == {"w": 0}
    claimed = await store.claim("w", 10)
    assert (claimed.tasks, claimed.draining) == ([], True)
    assert await store.expire("w") == 18
    with pytest.raises(errors.UnknownWorker):
        await store.claim("w")


# Time


async def with_eight_limits(store: Store, count: int, **options: Any) -> list[Submitted]:
    """This number of tasks, each with 8 limits: an act of a single kind moves 4 of them."""
    for name in range(8):
        await store.limits.set(f"l{name}", Slots(limit=1000))
    tasks = [new(limits={f"l{name}": 1 for name in range(8)}, **options) for _ in range(count)]
    return [answer for answer in await store.submit(*tasks) if isinstance(answer, Submitted)]


async def states_of(store: Store, submitted: Sequence[Submitted]) -> list[State]:
    return [(await store.get(each.task_id)).status for each in submitted]


async def test_leases_that_run_out_free_about_32_limits_in_an_act(store: Store, clock: Clock) -> None:
    submitted = await with_eight_limits(store, 10)
    await store.workers.register("w", capacity=10)
    assert await claim_all(store, 10) == ([10], [False])
    clock.pass_seconds(60)
    watched = Watched(store)
    assert await store.expire() == 10
    assert [answer["ended"] for answer in watched.answers("expire")] == [4, 4, 2]
    assert set(await states_of(store, submitted)) == {State.QUEUED}


async def test_leases_that_are_left_over_end_in_the_next_acts(store: Store, clock: Clock) -> None:
    submitted = await with_eight_limits(store, 10)
    await store.workers.register("w", capacity=10)
    await claim_all(store, 10)
    clock.pass_seconds(60)
    await store.workers.register("other", capacity=1, task_types=["other"])
    left = []
    for _ in range(3):
        await store.claim("other")
        left.append((await states_of(store, submitted)).count(State.EXECUTING))
    assert left == [6, 2, 0]


async def promoted(store: Store) -> list[int]:
    """How many each act moved, until none is due."""
    watched = Watched(store)
    await store.promote()
    return [answer["moved"] for answer in watched.answers("promote")]


async def test_delays_that_end_queue_tasks_with_about_32_limits_in_an_act(store: Store, clock: Clock) -> None:
    submitted = await with_eight_limits(store, 10, delay_seconds=1)
    clock.pass_seconds(2)
    assert await promoted(store) == [4, 4, 2]
    assert set(await states_of(store, submitted)) == {State.QUEUED}


async def test_a_better_task_that_did_not_fit_is_not_overtaken(store: Store, clock: Clock) -> None:
    await with_eight_limits(store, 60, delay_seconds=1, priority="high")
    (low,) = await with_eight_limits(store, 1, priority="low")
    clock.pass_seconds(2)
    await store.workers.register("w", capacity=61)
    sizes, agains = await claim_all(store, 61)
    assert (sum(sizes), agains[-1]) == (61, False)
    started_last = await store.get(low.task_id)
    assert started_last.started_at is not None
    high = [task for task in (await store.list_tasks(limit=100)).tasks if task.priority is Priority.HIGH]
    assert [task.fence < started_last.fence for task in high] == [True] * 60


async def test_patience_that_ends_fails_tasks_with_about_32_limits_in_an_act(
    store: Store, clock: Clock
) -> None:
    submitted = await with_eight_limits(store, 10, max_wait_seconds=1)
    clock.pass_seconds(2)
    assert await promoted(store) == [4, 4, 2]
    assert set(await states_of(store, submitted)) == {State.FAILED}


async def test_tasks_with_about_32_limits_are_promoted_by_age_in_an_act(store: Store, clock: Clock) -> None:
    await with_eight_limits(store, 10, priority="low")
    clock.pass_seconds(store.settings.promotion.low_to_medium_seconds + 1)
    assert await promoted(store) == [4, 4, 2]


async def test_all_kinds_that_are_due_share_one_act_and_none_keeps_the_others_waiting(
    store: Store, clock: Clock
) -> None:
    seconds = store.settings.promotion.low_to_medium_seconds + store.settings.promotion.medium_to_high_seconds
    await holding(store, 100, timeout_seconds=2 * seconds)
    for options in ({"delay_seconds": seconds}, {"max_wait_seconds": seconds}, {"priority": "low"}):
        await store.submit(*(new(**options) for _ in range(100)))
    clock.pass_seconds(seconds)
    await store.workers.register("other", task_types=["other"])
    before = await events(store)
    await store.claim("other")
    moved = (await events(store))[len(before) :]
    assert {(event["from"], event["to"], event["detail"].get("from")) for event in moved} == {
        ("executing", "queued", None),
        ("delayed", "queued", None),
        ("queued", "failed", None),
        ("queued", "queued", "2n"),
        ("queued", "queued", "1n"),
        ("queued", "queued", "1p"),
    }
    assert len(moved) <= 64


# Batches


async def test_a_large_batch_of_submits_goes_in_acts_of_200_in_one_round_trip(store: Store) -> None:
    await store.submit_one(new())  # the act is known now
    watched = Watched(store)
    tasks = [new(parameters={"n": n}) for n in range(1000)]
    answers = await store.submit(*tasks)
    assert watched.sizes("submit", 0) == [200] * 5
    assert watched.trips == [5]
    assert [answer.task_id for answer in answers if isinstance(answer, Submitted)] == [
        task.task_id for task in tasks
    ]
    assert [answer.queue_position for answer in answers if isinstance(answer, Submitted)] == list(
        range(2, 1002)
    )


async def test_bad_items_of_a_large_batch_are_answered_in_their_places(store: Store) -> None:
    tasks = [new(limits={"none": 1}) if n % 3 else new("" if n % 2 else "echo") for n in range(600)]
    answers = await store.submit(*tasks)
    kinds = [
        answer.code if isinstance(answer, errors.InvalidInput) else type(answer).__name__
        for answer in answers
    ]
    assert kinds == [
        "unknown_limit" if n % 3 else "invalid_input" if n % 2 else "Submitted" for n in range(600)
    ]


async def test_an_act_submits_tasks_with_at_most_200_limits(store: Store) -> None:
    for name in range(8):
        await store.limits.set(f"l{name}", Slots(limit=10))
    watched = Watched(store)
    await store.submit(*(new(limits={f"l{name}": 1 for name in range(8)}) for _ in range(60)))
    assert watched.sizes("submit", 0) == [25, 25, 10]


async def test_an_act_submits_at_most_a_megabyte(store: Store) -> None:
    watched = Watched(store)
    await store.submit(*(new(parameters={"x": KIB_200}) for _ in range(12)))
    assert watched.sizes("submit", 0) == [5, 5, 2]
    assert all(len(arguments[0]) <= MOST_BYTES for arguments in watched.arguments("submit"))


async def test_reports_in_a_large_batch_go_in_acts_of_200(store: Store) -> None:
    tasks = await holding(store, 900)
    done, broken, back = tasks[:450], tasks[450:700], tasks[700:]
    watched = Watched(store)
    reported, claimed = await store.report(
        "w",
        [Completed(task.task_id, task.fence, {"n": n}) for n, task in enumerate(done)],
        [Failed(task.task_id, task.fence, retriable=False) for task in broken],
        claim=1,
    )
    assert watched.sizes("complete", 1) == [200, 200, 50]
    assert watched.sizes("fail", 1) == [200, 50]
    assert reported == [State.COMPLETED] * 450 + [State.FAILED] * 250
    assert claimed.tasks == []
    answers = await store.progress("w", *(Progress(task.task_id, task.fence, 0.5) for task in [*back, *done]))
    assert watched.sizes("progress", 1) == [200, 200, 200, 50]
    assert [type(answer) for answer in answers] == [type(None)] * 200 + [errors.Fenced] * 450
    released = await store.release("w", *(Grant(task.task_id, task.fence) for task in [*back, *broken]))
    assert watched.sizes("release", 1) == [200, 200, 50]
    assert released == [State.QUEUED] * 200 + [State.FAILED] * 250


async def test_reports_with_large_results_go_in_acts_of_a_megabyte(store: Store) -> None:
    tasks = await holding(store, 12)
    watched = Watched(store)
    await store.complete("w", *(Completed(task.task_id, task.fence, KIB_200) for task in tasks))
    assert watched.sizes("complete", 1) == [5, 5, 2]


async def test_much_output_of_one_run_goes_in_acts_of_a_megabyte(store: Store) -> None:
    (task,) = await holding(store, 1)
    watched = Watched(store)
    chunks = [f"{n}" + "y" * 60_000 for n in range(50)]
    report = Progress(task.task_id, task.fence, 0.5, "half", chunks, first=1)
    stale = Progress(task.task_id, 99, chunks=chunks)
    for _ in range(2):  # also when it is repeated
        answers = await store.progress("w", stale, report)
        assert [type(answer) for answer in answers] == [errors.Fenced, type(None)]
    assert all(len(arguments[1]) <= MOST_BYTES for arguments in watched.arguments("progress"))
    kept = await store.outputs(task.task_id)
    assert [(output.seq, output.chunk) for output in kept] == list(enumerate(chunks, start=1))


async def test_a_batch_that_fills_the_server_half_way_says_what_was_accepted() -> None:
    with running("valkey", "--maxmemory-policy", "noeviction") as server:
        async with Store.connect(server.url, "full") as store:
            await store.submit_one(new())
            used = (await raw(store).info("memory"))["used_memory"]
            await raw(store).config_set("maxmemory", used + 3 * MOST_BYTES)
            tasks = [new(parameters={"x": "y" * 4096}) for _ in range(1000)]
            answers = await store.submit(*tasks)
            accepted = [answer for answer in answers if isinstance(answer, Submitted)]
            refused = [answer for answer in answers if isinstance(answer, errors.StoreFull)]
            assert accepted and refused and [*accepted, *refused] == answers
            await raw(store).config_set("maxmemory", 0)
            again = await store.submit(*tasks)
            repeated = [answer.repeated for answer in again if isinstance(answer, Submitted)]
            assert repeated == [True] * len(accepted) + [False] * len(refused)


# Claims


async def claim_all(store: Store, want: int) -> tuple[list[int], list[bool]]:
    """The answers of consecutive claims, until one says that there is no more."""
    given: list[int] = []
    agains: list[bool] = []
    while not agains or agains[-1]:
        claimed = await store.claim("w", want - sum(given))
        given.append(len(claimed.tasks))
        agains.append(claimed.again)
    return given, agains


async def test_a_claim_gives_at_most_128_tasks_and_says_that_there_is_more(store: Store) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new() for _ in range(400)))
    assert await claim_all(store, 300) == ([128, 128, 44], [True, True, False])


async def test_a_claim_gives_about_a_megabyte_and_says_that_there_is_more(store: Store) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new(parameters={"x": KIB_200}) for _ in range(14)))
    assert await claim_all(store, 14) == ([6, 6, 2], [True, True, False])


async def test_a_claim_gives_tasks_with_128_limits_and_says_that_there_is_more(store: Store) -> None:
    for name in range(8):
        await store.limits.set(f"l{name}", Slots(limit=1000))
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new(limits={f"l{name}": 1 for name in range(8)}) for _ in range(40)))
    assert await claim_all(store, 40) == ([16, 16, 8], [True, True, False])
    watched = Watched(store)
    assert await store.expire("w") == 40
    assert [answer["ended"] for answer in watched.answers("expire")] == [4] * 10


async def test_a_claim_gives_less_when_time_has_moved_much_in_the_same_act(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new(delay_seconds=1) for _ in range(32)), *(new() for _ in range(200)))
    clock.pass_seconds(2)
    assert await claim_all(store, 232) == ([96, 128, 8], [True, True, False])


async def test_a_worker_without_free_slots_is_not_asked_to_claim_again(store: Store) -> None:
    await store.workers.register("w", capacity=6)
    await store.submit(*(new(parameters={"x": KIB_200}) for _ in range(14)))
    claimed = await store.claim("w", 14)
    assert (len(claimed.tasks), claimed.again) == (6, False)


async def test_a_claim_that_is_cut_short_does_not_wait_to_be_woken(store: Store) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new() for _ in range(201)))
    assert (await store.claim("w", 300, idle=True)).again
    assert not await raw(store).hexists(store.connection.keys.key("worker", "w"), "idle")


async def test_a_repeated_claim_asks_to_claim_again_like_the_first(store: Store) -> None:
    await store.workers.register("w", capacity=1000)
    await store.submit(*(new() for _ in range(200)))
    first = await store.claim("w", 200, request="a1")
    assert first.again
    repeated = await store.claim("w", 200, request="a1")
    assert (repeated.again, repeated.tasks) == (True, first.tasks)
    last = await store.claim("w", 200, request="a2")
    assert (len(last.tasks), last.again) == (72, False)
    assert not (await store.claim("w", 200, request="a2")).again


async def test_a_repeated_claim_that_ran_out_of_looks_asks_to_claim_again_too(
    store: Store, clock: Clock
) -> None:
    """It returned no task, because better ones are due: the caller must still claim again at once."""
    await store.submit(*(new(delay_seconds=1, required_capabilities=("gpu",)) for _ in range(40)))
    await store.submit_one(new(priority="low"))
    clock.pass_seconds(2)
    await store.workers.register("w", capacity=10)
    first = await store.claim("w", 1, request="a1")
    assert (first.tasks, first.again) == ([], True)
    assert (await store.claim("w", 1, request="a1")).again


# Others


async def test_lost_workers_are_named_128_at_a_time_each_once(store: Store, clock: Clock) -> None:
    for n in range(300):
        await store.workers.register(f"w{n}")
        clock.pass_ms(n % 2)  # some at the same instant
    clock.pass_seconds(60)
    rounds = []
    while lost := await store.upkeep.bury():
        rounds.append([worker.worker_id for worker in lost])
    assert max(map(len, rounds)) <= 128
    assert sorted(worker for some in rounds for worker in some) == sorted(f"w{n}" for n in range(300))


async def test_many_workers_lost_at_the_same_instant_are_named_once(store: Store, clock: Clock) -> None:
    for n in range(150):
        await store.workers.register(f"w{n}")
    clock.pass_seconds(60)
    named = [worker.worker_id for worker in await store.upkeep.bury()]
    assert sorted(named) == sorted(f"w{n}" for n in range(150))
    assert await store.upkeep.bury() == []


async def test_keys_are_read_page_by_page(store: Store) -> None:
    ids = [
        (await store.api_keys.create(f"k{n}", ["read"], expires_seconds=9999 - n)).api_key.id
        for n in range(300)
    ]
    watched = Watched(store)
    assert [key.id for key in await store.api_keys.all()] == ids[::-1]
    assert max(len(answer["keys"]) for answer in watched.answers("show_keys")) < 300


async def test_kept_output_is_read_a_megabyte_at_a_time(store: Store) -> None:
    (task,) = await holding(store, 1)
    chunks = ["y" * 60_000 for _ in range(40)]
    for start in range(0, 40, 10):
        await store.progress("w", Progress(task.task_id, task.fence, chunks=chunks[start : start + 10]))
    watched = Watched(store)
    assert [output.seq for output in await store.outputs(task.task_id)] == list(range(1, 41))
    page, more = await store.output_page(task.task_id, 3, most=30)
    assert ([output.seq for output in page], more) == (list(range(4, 4 + len(page))), True)
    assert 10 < len(page) < 30
    assert max(sum(map(len, answer["chunks"])) for answer in watched.answers("outputs")) < 1.5 * MOST_BYTES

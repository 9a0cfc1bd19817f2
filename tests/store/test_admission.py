"""Admission bounds how many tasks may wait, in total and per user; an accepted task is never refused."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask, Submitted
from fairlead.settings import Admission, Settings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new

Answers = list[Submitted | errors.FairleadError]


@pytest.fixture
def settings() -> Settings:
    return Settings(admission=Admission(max_queued=6, max_queued_per_user=3))


def accepted(answers: Answers) -> int:
    return sum(isinstance(answer, Submitted) for answer in answers)


async def is_full(store: Store, **options: Any) -> errors.QueueFull:
    answer = (await store.submit(new(**options)))[0]
    assert isinstance(answer, errors.QueueFull), answer
    return answer


async def has_room(store: Store, **options: Any) -> str:
    return (await store.submit_one(new(**options))).task_id


async def test_a_batch_is_accepted_as_far_as_there_is_room(store: Store) -> None:
    answers = await store.submit(*(new() for _ in range(9)))
    assert [type(answer) for answer in answers] == [Submitted] * 6 + [errors.QueueFull] * 3
    full = answers[-1]
    assert isinstance(full, errors.QueueFull)
    assert (full.code, full.waiting, full.retry_after) == ("queue_full", 6, None)
    assert full.message == "6 tasks wait already: come back later, or raise admission.max_queued."


async def test_each_user_has_room_of_his_own(store: Store) -> None:
    answers = await store.submit(*(new(user_id=user) for user in ("ann", "ann", "bob", "ann", "ann", "bob")))
    assert [isinstance(answer, Submitted) for answer in answers] == [True] * 4 + [False, True]
    full = await is_full(store, user_id="ann")
    assert full.waiting == 3
    assert "3 tasks of this user wait already" in full.message
    assert "admission.max_queued_per_user" in full.message
    await has_room(store, user_id="bob")


async def test_users_of_different_tenants_are_different_users(store: Store) -> None:
    await store.submit(*(new(user_id="ann", tenant="acme") for _ in range(3)))
    assert (await is_full(store, user_id="ann", tenant="acme")).waiting == 3
    await has_room(store, user_id="ann", tenant="best")
    await has_room(store, user_id="ann")
    await has_room(store, user_id="acme")
    assert (await is_full(store, user_id="ann", tenant="acme")).waiting == 3


async def test_names_that_are_equal_when_joined_are_distinguished(store: Store) -> None:
    await store.submit(*(new(user_id="c", tenant="a:b") for _ in range(3)))
    await has_room(store, user_id="b:c", tenant="a")
    await has_room(store, user_id="a:b:c")


async def test_a_tenant_that_names_no_users_is_one(store: Store) -> None:
    assert accepted(await store.submit(*(new(tenant="acme") for _ in range(4)))) == 3
    await has_room(store, tenant="acme", user_id="ann")


async def test_tasks_without_a_user_count_in_the_total_only(store: Store) -> None:
    assert accepted(await store.submit(*(new() for _ in range(5)))) == 5
    await has_room(store, user_id="ann")
    assert (await is_full(store, user_id="bob")).waiting == 6


async def test_delayed_tasks_wait_too(store: Store, clock: Clock) -> None:
    later = [new(user_id="ann", delay_seconds=60) for _ in range(3)]
    await store.submit(*later)
    assert (await is_full(store, user_id="ann")).waiting == 3
    assert accepted(await store.submit(*(new(delay_seconds=60) for _ in range(4)))) == 3
    assert (await is_full(store)).waiting == 6
    clock.pass_seconds(60)
    await store.promote()
    assert (await is_full(store, user_id="ann")).waiting == 3
    assert (await is_full(store)).waiting == 6


async def started(store: Store, clock: Clock, first: str) -> None:
    await store.workers.register("w")
    assert (await claim_one(store)).task_id == first


async def cancelled(store: Store, clock: Clock, first: str) -> None:
    await store.cancel(first)


async def given_up(store: Store, clock: Clock, first: str) -> None:
    clock.pass_seconds(100)
    await store.promote()
    assert (await store.get(first)).status is State.FAILED


@pytest.mark.parametrize("leaves", [started, cancelled, given_up])
async def test_a_task_that_leaves_the_queue_makes_room_for_one(
    leaves: Callable[[Store, Clock, str], Any], store: Store, clock: Clock
) -> None:
    first = await has_room(store, user_id="ann", max_wait_seconds=100)
    await store.submit(*(new(user_id="ann") for _ in range(2)), *(new() for _ in range(3)))
    await is_full(store, user_id="ann")
    await is_full(store)
    await leaves(store, clock, first)
    await has_room(store, user_id="ann")
    await is_full(store, user_id="ann")
    await is_full(store)


async def test_a_delayed_task_that_is_cancelled_makes_room(store: Store) -> None:
    later = [await has_room(store, user_id="ann", delay_seconds=60) for _ in range(3)]
    await is_full(store, user_id="ann")
    await store.cancel(later[1])
    await has_room(store, user_id="ann")
    await is_full(store, user_id="ann")


async def test_an_accepted_task_returns_to_a_full_queue(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=4)
    ids = [await has_room(store, user_id="ann") for _ in range(3)]
    released, retried, lost = (await store.claim("w", 3)).tasks
    await store.submit(*(new(user_id="ann") for _ in range(3)), *(new() for _ in range(3)))
    assert await store.release("w", Grant(released.task_id, released.fence)) == [State.QUEUED]
    assert await store.fail("w", Failed(retried.task_id, retried.fence)) == [State.DELAYED]
    clock.pass_ms(store.settings.lease_ms + 1_001)
    await store.expire()
    assert (await store.get(lost.task_id)).status is State.QUEUED
    assert {released.task_id, retried.task_id, lost.task_id} == set(ids)
    assert (await is_full(store, user_id="ann")).waiting == 6
    assert (await is_full(store)).waiting == 9


async def test_a_replay_is_not_refused(store: Store) -> None:
    await store.workers.register("w")
    task_id = await has_room(store, user_id="ann")
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.submit(*(new(user_id="ann") for _ in range(3)), *(new() for _ in range(3)))
    await store.replay(task_id)
    assert (await is_full(store, user_id="ann")).waiting == 4


async def test_the_later_steps_of_a_job_are_not_refused(store: Store) -> None:
    await store.workers.register("w")
    later = [NewStep("second", "echo"), NewStep("third", "echo")]
    await store.jobs.submit(
        NewJob(feature_name="f", user_id="ann", stages=[[NewStep("first", "echo")], later])
    )
    task = await claim_one(store)
    await store.submit(*(new(user_id="ann") for _ in range(3)), *(new() for _ in range(3)))
    assert await store.complete("w", Completed(task.task_id, task.fence)) == [State.COMPLETED]
    assert (await is_full(store, user_id="ann")).waiting == 5
    assert (await is_full(store)).waiting == 8


async def test_a_refused_task_leaves_no_trace(store: Store) -> None:
    await store.submit(*(new() for _ in range(6)))
    before = await everything(store)
    refused = new(
        "other", idempotency_key="k", concurrency_group="fresh", concurrency_limit=2, max_wait_seconds=9
    )
    assert isinstance((await store.submit(refused))[0], errors.QueueFull)
    assert await everything(store) == before


async def test_a_task_that_was_accepted_before_is_answered_as_before(store: Store) -> None:
    first = new(idempotency_key="k", user_id="ann")
    await store.submit_one(first)
    await store.submit(*(new(user_id="ann") for _ in range(2)), *(new() for _ in range(3)))
    again = await store.submit_one(new(idempotency_key="k", user_id="ann"))
    assert (again.task_id, again.repeated) == (first.task_id, True)
    assert (await store.submit_one(first)).repeated


async def test_an_invalid_task_is_refused_as_invalid_even_when_the_queue_is_full(store: Store) -> None:
    await store.submit(*(new() for _ in range(6)))
    (answer,) = await store.submit(new(limits={"nowhere": 1}))
    assert isinstance(answer, errors.InvalidInput)


async def test_the_refusal_says_in_how_many_seconds_a_task_ends(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    for _ in range(4):
        await has_room(store)
        task = await claim_one(store)
        await store.complete("w", Completed(task.task_id, task.fence))
    await store.submit(*(new() for _ in range(6)))
    assert (await is_full(store)).retry_after == 15
    clock.pass_seconds(120)
    assert (await is_full(store)).retry_after is None


async def test_a_changed_limit_holds_at_once_for_all(
    store: Store, clock: Clock, open_store: Callable[..., Store]
) -> None:
    await store.submit(*(new(user_id="ann") for _ in range(3)))
    larger = Settings(admission=Admission(max_queued=8, max_queued_per_user=5))
    other = open_store(store.connection.keys.namespace, clock, larger)
    await other.open()
    assert accepted(await store.submit(*(new(user_id="ann") for _ in range(3)))) == 2
    assert accepted(await store.submit(*(new() for _ in range(9)))) == 3
    await store.open()  # and back: more wait than may
    assert (await is_full(store, user_id="ann")).waiting == 5
    await other.close()


async def test_the_tick_of_a_cron_is_refused_and_the_cron_stays(store: Store, clock: Clock) -> None:
    last, _ = await store.crons.last("c")
    await store.submit(*(new() for _ in range(6)))
    clock.pass_seconds(60)
    with pytest.raises(errors.QueueFull):
        await store.crons.tick("c", last, clock.now, new())
    assert (await store.crons.last("c"))[0] == last


@pytest.mark.parametrize("per_call", [1, 5])
async def test_64_clients_that_submit_at_once_fill_exactly_the_maximum(
    per_call: int, live_store: Store, open_store: Callable[..., Store]
) -> None:
    wide = Settings(admission=Admission(max_queued=40, max_queued_per_user=9))
    stores = [open_store(live_store.connection.keys.namespace, settings=wide) for _ in range(8)]
    await stores[0].open()
    users = [f"user {n % 8}" for n in range(64)]

    async def submit(n: int) -> tuple[str, int]:
        tasks: list[NewTask] = [new(user_id=users[n], delay_seconds=n % 3 * 100) for _ in range(per_call)]
        return users[n], accepted(await stores[n % 8].submit(*tasks))

    answers = await asyncio.gather(*(submit(n) for n in range(64)))
    of_user: Counter[str] = Counter()
    for user, count in answers:
        of_user[user] += count
    assert sum(of_user.values()) == 40
    assert max(of_user.values()) <= 9
    stats = await live_store.stats()
    assert stats.delayed + sum(queue.depth for queue in stats.queues.values()) == 40
    await asyncio.gather(*(store.close() for store in stores))


async def test_64_submits_for_one_user_fill_exactly_its_maximum(store: Store) -> None:
    answers = await asyncio.gather(*(store.submit(new(user_id="ann")) for _ in range(64)))
    assert sum(map(accepted, answers)) == 3

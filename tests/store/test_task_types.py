"""The number of task types, each with its capabilities, that a tenant may have waiting is bounded."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Submitted
from fairlead.settings import Admission, Settings, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, complete, job
from tests.store.namespace import claim_one, everything, new


@pytest.fixture
def settings() -> Settings:
    return Settings(
        admission=Admission(max_task_types=3), tasks={"paint": TaskSettings(required_capabilities=["gpu"])}
    )


async def is_refused(store: Store, task_type: str, **options: Any) -> errors.TooManyTypes:
    task = new(task_type, **options)
    (answer,) = await store.submit(task)
    assert isinstance(answer, errors.TooManyTypes), answer
    with pytest.raises(errors.UnknownTask):
        await store.get(task.task_id)
    return answer


async def accepted(store: Store, task_type: str, **options: Any) -> str:
    return (await store.submit_one(new(task_type, **options))).task_id


async def three_wait(store: Store, **options: Any) -> list[str]:
    return [await accepted(store, task_type, **options) for task_type in ("a", "b", "c")]


async def test_a_batch_is_accepted_as_far_as_there_is_room_for_its_types(store: Store) -> None:
    answers = await store.submit(*[new(task_type) for task_type in "aabcdadeb"])
    refused = [
        task_type
        for task_type, answer in zip("aabcdadeb", answers, strict=True)
        if not isinstance(answer, Submitted)
    ]
    assert refused == ["d", "d", "e"]
    full = answers[4]
    assert isinstance(full, errors.TooManyTypes)
    assert (full.code, full.waiting, full.retry_after) == ("too_many_task_types", 3, None)
    assert "admission.max_task_types" in full.message


async def test_any_number_of_tasks_of_a_waiting_type_is_accepted(store: Store) -> None:
    await three_wait(store)
    await is_refused(store, "d")
    for priority in ("high", "medium", "low"):
        await accepted(store, "a", priority=priority, user_id="ann")
    await is_refused(store, "d")


async def test_a_type_with_other_capabilities_is_another(store: Store) -> None:
    await accepted(store, "a")
    await accepted(store, "a", required_capabilities=("x",))
    await accepted(store, "a", required_capabilities=("y", "x"))
    await accepted(store, "a", required_capabilities=("x", "y"))
    await is_refused(store, "a", required_capabilities=("y",))


async def test_the_capabilities_that_are_declared_of_a_type_are_not_another(store: Store) -> None:
    await accepted(store, "paint")
    await accepted(store, "a")
    await accepted(store, "b")
    await accepted(store, "paint", required_capabilities=("gpu",))
    await is_refused(store, "c")


async def test_another_tenant_has_its_own_room(store: Store) -> None:
    await three_wait(store, tenant="acme")
    await is_refused(store, "d", tenant="acme")
    await is_refused(store, "d", tenant="acme", user_id="ann")
    for tenant in ("best", None):
        await three_wait(store, tenant=tenant)
        assert (await is_refused(store, "d", tenant=tenant)).waiting == 3


async def test_delayed_tasks_count_before_and_after_their_time(store: Store, clock: Clock) -> None:
    await three_wait(store, delay_seconds=60)
    await is_refused(store, "d")
    await is_refused(store, "d", delay_seconds=60)
    clock.pass_seconds(60)
    await store.promote()
    await is_refused(store, "d")


async def started(store: Store, clock: Clock, task_id: str) -> None:
    await store.workers.register("w")
    assert (await claim_one(store)).task_id == task_id


async def cancelled(store: Store, clock: Clock, task_id: str) -> None:
    await store.cancel(task_id)


async def given_up(store: Store, clock: Clock, task_id: str) -> None:
    clock.pass_seconds(100)
    await store.promote()
    assert (await store.get(task_id)).status is State.FAILED


@pytest.mark.parametrize("leaves", [started, cancelled, given_up])
async def test_the_last_of_its_type_that_leaves_makes_room_for_another_type(
    store: Store, clock: Clock, leaves: Callable[[Store, Clock, str], Any]
) -> None:
    first = await accepted(store, "a", max_wait_seconds=100)
    await accepted(store, "b")
    twins = [await accepted(store, "c"), await accepted(store, "c")]
    await store.cancel(twins[0])
    await is_refused(store, "d")
    await leaves(store, clock, first)
    await accepted(store, "d")
    await is_refused(store, "a")


async def test_a_delayed_one_that_is_cancelled_makes_room(store: Store) -> None:
    later, *_ = await three_wait(store, delay_seconds=60)
    await store.cancel(later)
    await accepted(store, "d")


async def test_an_accepted_task_returns_to_the_queue_whatever_waits(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=4)
    await store.submit(new("x"), new("y"), new("z"))
    released, retried, lost = (await store.claim("w", 3)).tasks
    await three_wait(store)
    assert await store.release("w", Grant(released.task_id, released.fence)) == [State.QUEUED]
    assert await store.fail("w", Failed(retried.task_id, retried.fence)) == [State.DELAYED]
    clock.pass_ms(store.settings.lease_ms + 1_001)
    await store.expire()
    assert (await store.get(lost.task_id)).status is State.QUEUED
    assert (await is_refused(store, "d")).waiting == 6


async def test_a_replay_is_not_refused(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(new("x"))
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await three_wait(store)
    await store.replay(task.task_id)
    assert (await store.get(task.task_id)).status is State.QUEUED


async def test_a_job_is_refused_as_a_whole_or_runs_to_its_end(store: Store) -> None:
    await store.workers.register("w", task_types=["enhance", "chat"])
    submitted = await store.jobs.submit(job(ENHANCE, CHAT))
    step = await claim_one(store)
    await three_wait(store)
    before = await everything(store)
    with pytest.raises(errors.TooManyTypes):
        await store.jobs.submit(job(ENHANCE, CHAT))
    assert await everything(store) == before
    await complete(store, step)
    second = await claim_one(store)
    assert (second.task_type, second.job_id) == ("chat", submitted.job_id)


async def test_the_tick_of_a_cron_is_refused_and_the_cron_stays(store: Store, clock: Clock) -> None:
    last, _ = await store.crons.last("c")
    await three_wait(store)
    clock.pass_seconds(60)
    with pytest.raises(errors.TooManyTypes):
        await store.crons.tick("c", last, clock.now, new("d"))
    assert (await store.crons.last("c"))[0] == last


async def test_a_refused_task_leaves_no_trace(store: Store) -> None:
    await three_wait(store)
    before = await everything(store)
    await is_refused(
        store, "d", idempotency_key="k", concurrency_group="fresh", concurrency_limit=2, max_wait_seconds=9
    )
    assert await everything(store) == before


async def test_a_task_that_was_accepted_before_is_answered_as_before(store: Store) -> None:
    await store.workers.register("w")
    first = new("x", idempotency_key="k")
    await store.submit_one(first)
    await claim_one(store)
    await three_wait(store)
    again = await store.submit_one(new("x", idempotency_key="k"))
    assert (again.task_id, again.repeated) == (first.task_id, True)


async def test_a_changed_bound_holds_at_once_for_all(
    store: Store, clock: Clock, open_store: Callable[..., Store]
) -> None:
    await three_wait(store)
    larger = Settings(admission=Admission(max_task_types=4))
    other = open_store(store.connection.keys.namespace, clock, larger)
    await other.open()
    await accepted(store, "d")
    await is_refused(store, "e")
    await other.close()


class TestByDefault:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings()

    async def test_tasks_of_a_thousand_types_may_wait(self, store: Store) -> None:
        tasks = [new(f"t{i}") for i in range(1_000)]
        assert all(isinstance(answer, Submitted) for answer in await store.submit(*tasks))
        assert (await is_refused(store, "t1000")).waiting == 1_000
        assert (await store.submit_one(new("t7"))).status == "queued"

    async def test_one_type_in_all_priorities_counts_once(self, store: Store) -> None:
        for first in (0, 300, 600):
            kinds = [f"t{i}" for i in range(first, first + 300)]
            tasks = [new(kind, priority=p) for kind in kinds for p in ("high", "medium", "low")]
            answers = await store.submit(*tasks)
            assert [answer for answer in answers if isinstance(answer, errors.FairleadError)] == []

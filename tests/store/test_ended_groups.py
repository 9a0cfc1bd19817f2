"""A limit that a submit made ends with the last task that needs it; failed tasks can be replayed."""

from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, complete, job, later
from tests.store.namespace import claim_one, everything, new, raw

GROUP: dict[str, Any] = {"concurrency_group": "g", "concurrency_limit": 2}


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def names(store: Store) -> list[str]:
    return [limit.full_name for limit in await store.limits.all()]


async def failed(store: Store, task: NewTask) -> str:
    await store.submit_one(task)
    held = await claim_one(store)
    await store.fail("w", Failed(held.task_id, held.fence, retriable=False))
    return held.task_id


async def runs_again(store: Store, task_id: str, limit: str = "g", tenant: str | None = None) -> None:
    """Under its limit, which ends with it once more."""
    await store.replay(task_id)
    again = await claim_one(store)
    known = await store.limits.get(limit, tenant=tenant)
    assert (again.task_id, known.limit, known.active) == (task_id, 2, 1)
    assert not await examine(store.connection)
    await store.complete("w", Completed(task_id, again.fence))
    assert await names(store) == []
    assert not await examine(store.connection)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        (GROUP, "g"),
        ({"concurrency_limit": 2}, "echo"),
        (GROUP | {"limits": {"g": 2}}, "g"),
    ],
    ids=["a group", "named like its type", "with units"],
)
async def test_a_task_defines_its_group_again_when_it_is_replayed(
    store: Store, options: dict[str, Any], limit: str
) -> None:
    task_id = await failed(store, new(**options))
    assert await names(store) == []
    await store.replay(task_id)
    assert (await store.limits.get(limit)).limit == 2
    assert (await claim_one(store)).task_id == task_id


async def test_a_group_that_is_defined_again_holds_and_ends_as_before(store: Store) -> None:
    await runs_again(store, await failed(store, new(**GROUP)))


async def test_a_task_that_was_not_started_in_time_returns_to_its_group(store: Store, clock: Clock) -> None:
    submitted = await store.submit_one(new(**GROUP, delay_seconds=5, max_wait_seconds=3))
    for _ in range(2):
        await later(store, clock, 5)
        await store.promote()
    assert (await store.get(submitted.task_id)).status is State.FAILED
    await runs_again(store, submitted.task_id)


async def test_the_group_of_a_tenant_is_its_own_again(store: Store) -> None:
    task = new(tenant="a/b", by_tenant=True, **GROUP)
    await runs_again(store, await failed(store, task), tenant="a/b")


async def test_a_record_of_an_older_version_defines_its_group_too(store: Store) -> None:
    task_id = await failed(store, new(**GROUP))
    key = store.connection.keys.key("task", task_id)
    facts = msgspec.msgpack.decode(await raw(store).hget(key, "facts"))
    await raw(store).hset(key, mapping=facts)
    await raw(store).hdel(key, "facts")
    await runs_again(store, task_id)


async def test_a_group_that_another_task_has_defined_meanwhile_is_kept(store: Store) -> None:
    task_id = await failed(store, new(**GROUP))
    await store.submit_one(new(concurrency_group="g", concurrency_limit=7))
    await store.replay(task_id)
    assert (await store.limits.get("g")).limit == 7


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"concurrency_group": "g"}, "unknown_limit"),
        ({"limits": {"g": 1}}, "unknown_limit"),
        (GROUP | {"limits": {"g": 3}}, "too_many_units"),
    ],
    ids=["named only", "needed only", "larger than it would define"],
)
async def test_a_task_that_used_the_group_of_another_is_refused_with_what_it_lacks(
    store: Store, options: dict[str, Any], code: str
) -> None:
    other = await store.submit_one(new("other", concurrency_group="g", concurrency_limit=3, delay_seconds=5))
    task_id = await failed(store, new(**options))
    await store.cancel(other.task_id)
    before = await everything(store)
    with pytest.raises(errors.InvalidInput) as refused:
        await store.replay(task_id)
    assert (refused.value.field, refused.value.code) == ("limits.g", code)
    assert await everything(store) == before
    await store.limits.set("g", Slots(limit=3))
    await store.replay(task_id)
    assert (await claim_one(store)).task_id == task_id


async def test_a_group_that_a_task_type_needs_does_not_end(store: Store) -> None:
    other = await store.submit_one(new("other", **GROUP))
    await store.declare("code", {"echo": TaskSettings(limits={"g": 1})}, {})
    await store.cancel(other.task_id)
    assert (await store.limits.get("g")).limit == 2
    await store.submit_one(new())


async def test_a_job_is_resumed_once_the_limit_of_its_step_is_there_again(store: Store, clock: Clock) -> None:
    other = await store.submit_one(new("other", **GROUP))
    await store.declare("code", {"chat": TaskSettings(limits={"g": 1})}, {})
    submitted = await store.jobs.submit(job(CHAT, max_wait_seconds=3))
    await later(store, clock, 5)
    await store.promote()
    # An older version let a group end that a type needs, and forgot the declaration when the code changed.
    await raw(store).hset(store.connection.keys.key("limit", "g"), "group", 1)
    await store.declare("code", {"chat": TaskSettings()}, {})
    await store.cancel(other.task_id)
    assert await names(store) == []

    before = await everything(store)
    with pytest.raises(errors.InvalidInput) as refused:
        await store.jobs.resume(submitted.job_id)
    assert (refused.value.field, refused.value.code) == ("limits.g", "unknown_limit")
    assert await everything(store) == before
    await store.limits.set("g", Slots(limit=1))
    await store.jobs.resume(submitted.job_id)
    await complete(store, await claim_one(store))
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED

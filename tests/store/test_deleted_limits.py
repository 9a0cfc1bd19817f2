"""A limit is deleted when nothing needs it, and at no other time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.settings import Rate, Settings, Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new, reopened

API = Rate(count=1000, period_seconds=1, burst=1000)
NEEDS_GPU: dict[str, Any] = {"limits": {"gpu": 1}}


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=2000)
    await store.limits.set("gpu", Slots(limit=2))
    await store.limits.set("api", API)
    return store


async def names(store: Store) -> list[str]:
    return [limit.full_name for limit in await store.limits.all()]


async def is_refused(store: Store, name: str, why: str, tenant: str | None = None) -> None:
    before = await everything(store)
    with pytest.raises(errors.LimitInUse, match=why) as refusal:
        await store.limits.delete(name, tenant=tenant)
    assert (refusal.value.http_status, refusal.value.code) == (409, "limit_in_use")
    assert await everything(store) == before


async def test_a_limit_that_nothing_needs_is_gone(store: Store, clock: Clock) -> None:
    await store.limits.delete("gpu")
    assert await names(store) == ["api"]
    with pytest.raises(errors.UnknownLimit):
        await store.limits.delete("gpu")
    (refused,) = await store.submit(new(**NEEDS_GPU))
    assert isinstance(refused, errors.InvalidInput)
    assert refused.code == "unknown_limit"
    assert await examine(store.connection, now_ms=clock.now) == []


async def test_it_is_defined_again_as_new(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2), shared=True)
    await store.limits.pause("gpu")
    await store.limits.delete("gpu")
    await store.limits.set("gpu", Slots(limit=1))
    again = await store.limits.get("gpu")
    assert (again.limit, again.paused, again.shared) == (1, False, False)


async def queued(store: Store) -> None:
    await store.submit_one(new(**NEEDS_GPU))


async def delayed(store: Store) -> None:
    await store.submit_one(new(**NEEDS_GPU, delay_seconds=60))


async def waits_to_acquire(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    wanted = ("", "gpu", 1, 1000, "l", "me", 5000, 1, "", "1.0")
    assert (await store.ask("acquire", *wanted))["answer"] == "waiting"


@pytest.mark.parametrize("waits", [queued, delayed, waits_to_acquire])
async def test_it_stays_while_something_waits_for_it(
    store: Store, waits: Callable[[Store], Awaitable[None]]
) -> None:
    await waits(store)
    await is_refused(store, "gpu", r"wait for it \(1\); let them run or cancel them first")


@pytest.mark.parametrize("limit", ["gpu", "api"])
async def test_it_stays_while_a_task_that_needs_it_runs(store: Store, limit: str) -> None:
    await store.submit_one(new(limits={limit: 1}, max_retries=1))
    task = await claim_one(store)
    await is_refused(store, limit, "have not ended")
    await store.fail("w", Failed(task.task_id, task.fence))
    await is_refused(store, limit, r"wait for it \(1\)")
    await store.cancel(task.task_id)
    await store.limits.delete(limit)


@pytest.mark.parametrize("limit", ["gpu", "api"])
async def test_a_cancelled_task_needs_it_until_its_worker_has_stopped(store: Store, limit: str) -> None:
    await store.submit_one(new(limits={limit: 1}))
    task = await claim_one(store)
    await store.cancel(task.task_id)
    await is_refused(store, limit, "have not ended")
    await store.complete("w", Completed(task.task_id, task.fence))
    await store.limits.delete(limit)


@pytest.mark.parametrize("limit", ["gpu", "api"])
async def test_it_stays_while_units_are_held_without_a_task(store: Store, limit: str) -> None:
    lease = await store.limits.acquire(limit)
    await is_refused(store, limit, "have not ended")
    await store.limits.release(lease)
    await store.limits.delete(limit)


async def test_what_was_a_rate_when_a_task_started_stays_until_the_task_has_ended(store: Store) -> None:
    await store.submit_one(new(limits={"api": 1}))
    task = await claim_one(store)
    await store.limits.set("api", Slots(limit=5))
    await is_refused(store, "api", "have not ended")
    await store.complete("w", Completed(task.task_id, task.fence))
    await store.limits.delete("api")


async def test_it_stays_while_code_declares_a_type_that_needs_it(store: Store) -> None:
    limits = {"gpu": Slots(limit=2), "big.gpu": Slots(limit=1)}
    await store.declare("code", {"draw": TaskSettings(limits={"big.gpu": 1})}, limits)
    await is_refused(store, "big.gpu", "task type draw needs it; declare the type without it first")
    await store.limits.delete("gpu")  # of which the name is a part
    await store.declare("code", {"draw": TaskSettings()}, {})
    await store.limits.delete("big.gpu")


async def test_it_stays_while_a_settings_file_declares_it(
    store: Store, open_store: Callable[..., Store]
) -> None:
    await reopened(store, open_store, Settings(limits={"gpu": Slots(limit=2)}))
    await is_refused(store, "gpu", "the settings of a server declare it; remove it there")
    await reopened(store, open_store, Settings())
    await store.limits.delete("gpu")


async def test_a_limit_that_code_declares_is_defined_again_by_the_next_process(store: Store) -> None:
    for _ in range(2):
        await store.declare("code", {}, {"cpu": Slots(limit=3)})
        assert (await store.limits.get("cpu")).limit == 3
        await store.limits.delete("cpu")


async def test_a_tenant_deletes_its_own_and_not_the_shared_one_of_this_name(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=2), shared=True)
    with pytest.raises(errors.UnknownLimit):
        await store.limits.delete("gpu", tenant="acme")
    await store.limits.set("gpu", Slots(limit=1), tenant="acme")
    await store.submit_one(new(tenant="acme", by_tenant=True, **NEEDS_GPU))
    await is_refused(store, "gpu", "Limit gpu is in use", tenant="acme")
    task = await claim_one(store)
    await store.complete("w", Completed(task.task_id, task.fence))
    await store.limits.delete("gpu", tenant="acme")
    assert await names(store) == ["api", "gpu"]
    await store.limits.delete("gpu")
    assert [limit.name for limit in await store.limits.all(tenant="acme")] == []


async def test_a_failed_task_can_be_replayed_when_its_limit_is_defined_again(store: Store) -> None:
    await store.submit_one(new(**NEEDS_GPU))
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
    await store.limits.delete("gpu")
    with pytest.raises(errors.InvalidInput, match="there is no such limit"):
        await store.replay(task.task_id)
    await store.limits.set("gpu", Slots(limit=1))
    await store.replay(task.task_id)
    assert (await store.get(task.task_id)).status is State.QUEUED


class TestManyRun:
    """More than one call of the act looks at."""

    @pytest.fixture
    async def store(self, store: Store) -> Store:
        await store.submit(*(new() for _ in range(600)))
        claimed = 0
        while claimed < 600:
            claimed += len((await store.claim("w", 128)).tasks)
        return store

    async def test_a_rate_that_none_of_them_needs_is_deleted(self, store: Store) -> None:
        await store.limits.delete("api")
        assert await names(store) == ["gpu"]

    async def test_the_one_that_needs_it_is_found(self, store: Store) -> None:
        await store.submit_one(new(limits={"api": 1}))
        await claim_one(store)
        await is_refused(store, "api", "have not ended")

    async def test_one_that_starts_between_two_calls_is_noticed(self, store: Store) -> None:
        first = await store.ask("delete_limit", "", "api", "", "")
        assert first["answer"] == "more"
        await store.submit_one(new(limits={"api": 1}))
        await claim_one(store)
        second = await store.ask("delete_limit", "", "api", first["cursor"], first["taken"])
        assert (second["answer"], second["by"]) == ("limit_in_use", "running")

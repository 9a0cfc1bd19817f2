"""A lease without a task, renewed and released by a client that kept its id and its limit."""

import pytest

from fairlead import errors
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, everything, new


@pytest.fixture
async def limits(store: Store) -> None:
    for name in ("gpu", "disk"):
        await store.limits.set(name, Slots(limit=2))


@pytest.mark.usefixtures("limits")
async def test_it_is_renewed_and_returns_its_fence(store: Store, clock: Clock) -> None:
    lease = await store.limits.acquire("gpu", lease_ms=1000)
    clock.pass_ms(900)
    renewed = await store.limits.renew_known("gpu", lease.lease_id, lease_ms=5000)
    assert (renewed.lease_id, renewed.limit, renewed.fence) == (lease.lease_id, "gpu", lease.fence)
    assert renewed.expires_at == clock.now + 5000
    assert await store.limits.renew_known("gpu", lease.lease_id, lease.fence, lease_ms=5000) == renewed


@pytest.mark.usefixtures("limits")
async def test_it_is_released(store: Store) -> None:
    lease = await store.limits.acquire("gpu")
    await store.limits.release_known("gpu", lease.lease_id, lease.fence)
    assert (await store.limits.get("gpu")).active == 0
    with pytest.raises(errors.Fenced):
        await store.limits.release_known("gpu", lease.lease_id)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("case", ["another fence", "another limit", "another id", "a task"])
async def test_with_anything_wrong_nothing_happens(store: Store, case: str) -> None:
    await store.workers.register("w")
    await store.submit_one(new(limits={"gpu": 1}))
    task = await claim_one(store)
    lease = await store.limits.acquire("gpu")
    name, lease_id, fence = {
        "another fence": ("gpu", lease.lease_id, lease.fence + 1),
        "another limit": ("disk", lease.lease_id, lease.fence),
        "another id": ("gpu", "nobody", lease.fence),
        "a task": ("gpu", task.task_id, task.fence),
    }[case]
    before = await everything(store)
    for act in (store.limits.renew_known, store.limits.release_known):
        with pytest.raises(errors.Fenced):
            await act(name, lease_id, fence)
    assert await everything(store) == before


@pytest.mark.usefixtures("limits")
async def test_an_acquire_ends_expired_leases_when_no_other_client_does(store: Store, clock: Clock) -> None:
    for _ in range(2):
        await store.limits.acquire("gpu", lease_ms=1000)
    clock.pass_ms(1000 + 999)  # the grace of a second is not over
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire("gpu")
    clock.pass_ms(1)
    await store.limits.acquire("gpu", units=2)
    assert (await store.limits.get("gpu")).active == 2

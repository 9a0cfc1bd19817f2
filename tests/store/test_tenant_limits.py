"""Limits of tenants in the store: what a name means, and what an older namespace has."""

import pytest

from fairlead import errors
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots, TaskSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.store.namespace import raw

ODD = ("a/b", "a=1,b", "~echo", "!@|;", "Käse")


def wanted(tenant: str | None, **options: object) -> NewTask:
    return NewTask(task_type="echo", tenant=tenant, by_tenant=tenant is not None, **options)  # type: ignore[arg-type]


async def test_tenants_with_odd_names_have_limits_like_others(store: Store) -> None:
    await store.workers.register("w", capacity=50)
    for tenant in ODD:
        for _ in range(2):
            await store.submit_one(wanted(tenant, concurrency_group="gpu", concurrency_limit=1))
        await store.limits.set("cpu", Slots(limit=1), tenant=tenant)
        await store.limits.acquire("cpu", tenant=tenant, by_tenant=True, lease_id="l")
    claimed = (await store.claim("w", 50)).tasks
    assert sorted(str(task.tenant) for task in claimed) == sorted(ODD)
    for tenant in ODD:
        cpu, gpu = await store.limits.all(tenant=tenant)
        assert (cpu.name, cpu.tenant, cpu.active, gpu.name, gpu.tenant) == ("cpu", tenant, 1, "gpu", tenant)
    assert len(await store.limits.all()) == 2 * len(ODD)


async def test_a_task_that_an_operator_submits_for_a_tenant_names_the_operators_limits(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    task = NewTask(task_type="echo", tenant="acme", limits={"gpu": 1})
    assert (await store.submit_one(task)).blocked_by == ("gpu",)
    lease = store.limits.acquire("gpu", tenant="acme")
    with pytest.raises(errors.LimitFull):
        await lease


async def test_its_own_limit_goes_before_a_shared_one(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0), shared=True)
    assert (await store.submit_one(wanted("acme", limits={"gpu": 1}))).blocked_by == ("gpu",)
    await store.limits.set("gpu", Slots(limit=5), tenant="acme")
    assert (await store.submit_one(wanted("acme", limits={"gpu": 1}))).blocked_by == ()
    assert (await store.submit_one(wanted("other", limits={"gpu": 1}))).blocked_by == ("gpu",)


async def test_a_lease_of_a_shared_limit_is_released_although_the_tenant_has_its_own_by_now(
    store: Store,
) -> None:
    await store.limits.set("gpu", Slots(limit=1), shared=True)
    lease = await store.limits.acquire("gpu", tenant="acme", by_tenant=True)
    await store.limits.set("gpu", Slots(limit=5), tenant="acme")
    await store.limits.renew_known("gpu", lease.lease_id, lease.fence, tenant="acme")
    await store.limits.release_known("gpu", lease.lease_id, tenant="acme")
    assert (await store.limits.get("gpu")).active == 0


async def test_declared_later_a_limit_of_its_type_joins_one_of_the_tenant_with_the_same_name(
    store: Store,
) -> None:
    task = wanted("acme", concurrency_group="gpu", concurrency_limit=1)
    await store.submit_one(task)
    await store.declare("code", {"echo": TaskSettings(limits={"gpu": 2})}, {"gpu": Slots(limit=2)})
    await store.workers.register("w", capacity=5)
    await store.claim("w", 5)
    assert (await store.get(task.task_id)).limits == {"acme/gpu": 1, "gpu": 2}


async def test_a_declaration_shares_a_limit_and_a_manual_setting_is_kept(store: Store) -> None:
    async def declare(**limits: Slots | Rate) -> None:
        await store.declare("file", {}, limits)

    async def shared() -> bool:
        return (await store.limits.get("api")).shared

    await declare(api=Rate(count=1, period_seconds=1, burst=1, shared=True))
    assert await shared()
    await store.limits.set("api", Slots(limit=3), shared=False)
    await declare(api=Rate(count=1, period_seconds=1, burst=1, shared=True))
    assert not await shared(), "the file has not changed"
    await declare(api=Slots(limit=3, shared=True))
    assert await shared()
    await declare(api=Slots(limit=3))
    assert not await shared()


async def test_a_page_of_what_a_tenant_may_name_has_shared_ones_first_and_no_others(store: Store) -> None:
    for name in "abcd":
        await store.limits.set(name, Slots(limit=1), shared=name in "bd")
        await store.limits.set(name, Slots(limit=1), tenant="acme")
        await store.limits.set(name, Slots(limit=1), tenant="acme0")
        await store.limits.set(name, Slots(limit=1), tenant="acm")
    seen, after = [], ""
    for _ in range(6):
        (one,), after = await store.limits.page(after, 1, tenant="acme")
        seen.append(one.full_name)
    assert seen == ["b", "d", "acme/a", "acme/b", "acme/c", "acme/d"]
    assert await store.limits.page(after, 1, tenant="acme") == ([], "")
    assert [one.full_name for one in await store.limits.all(tenant="acme")] == seen


async def test_a_tenant_defines_a_thousand_limits_and_no_more(store: Store) -> None:
    for number in range(1_000):
        await store.limits.set(f"l{number}", Slots(limit=1), tenant="acme")
    with pytest.raises(errors.InvalidInput) as refused:
        await store.limits.set("one-more", Slots(limit=1), tenant="acme")
    assert refused.value.code == "too_many_limits"
    await store.limits.set("l7", Slots(limit=2), tenant="acme")
    await store.limits.set("one-more", Slots(limit=1), tenant="other")
    await store.limits.set("one-more", Slots(limit=1))


async def test_a_group_of_a_tenant_from_before_is_used_up_and_ends(store: Store) -> None:
    """An older version kept the groups of all tenants under one name; what waits there still runs."""
    before = NewTask(task_type="echo", tenant="acme", concurrency_group="gpu", concurrency_limit=1)
    await store.submit_one(before)  # as an older gateway did
    await store.submit_one(wanted("acme", concurrency_group="gpu", concurrency_limit=1))
    assert [one.full_name for one in await store.limits.all()] == ["acme/gpu", "gpu"]
    await store.workers.register("w", capacity=5)
    for task in (await store.claim("w", 5)).tasks:
        await store.cancel(task.task_id)
    await store.expire("w")
    assert await store.limits.all() == []
    assert not await examine(store.connection)
    assert await raw(store).exists(store.connection.keys.key("shared")) == 0

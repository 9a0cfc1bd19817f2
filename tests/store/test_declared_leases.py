"""The lease of a task type, or of a service: longer than that of its worker, for every run."""

import pytest

from fairlead.model.job import NewStep
from fairlead.model.reports import Grant
from fairlead.model.states import State
from fairlead.settings import ServiceSettings, Settings, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import job
from tests.store.namespace import claim_one, new

LEASE, LONG = 30_000, 400_000


@pytest.fixture
def settings() -> Settings:
    return Settings(
        services={
            "painter": ServiceSettings(url="http://127.0.0.1:9000/", timeout_seconds=360, lease_seconds=400)
        },
        tasks={"render": TaskSettings(lease_seconds=400), "brief": TaskSettings(lease_seconds=0.5)},
    )


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def state_after(store: Store, clock: Clock, task_id: str, ms: int) -> State:
    clock.pass_ms(ms)
    await store.expire()
    return (await store.get(task_id)).status


async def test_a_call_of_a_lost_worker_is_repeated_when_its_lease_has_ended(
    store: Store, clock: Clock
) -> None:
    await store.jobs.submit(job(NewStep("painter", "service:painter")))
    call = await claim_one(store)
    assert call.lease_until == clock.now + LONG
    assert await state_after(store, clock, call.task_id, LONG) is State.EXECUTING
    # after the grace: it is past its deadline by now, so this is a timeout
    assert await state_after(store, clock, call.task_id, 1_000) is State.DELAYED


@pytest.mark.parametrize("task_type", ["echo", "brief"])
async def test_other_leases_are_as_the_worker_asks(store: Store, clock: Clock, task_type: str) -> None:
    await store.submit_one(new(task_type))
    task = await claim_one(store)
    assert task.lease_until == clock.now + LEASE
    assert await state_after(store, clock, task.task_id, LEASE + 1_000) is State.QUEUED


async def test_every_renewal_is_as_long(store: Store, clock: Clock) -> None:
    await store.submit_one(new("render", timeout_seconds=3600))
    task = await claim_one(store)
    grant = Grant(task.task_id, task.fence)
    clock.pass_ms(10_000)
    assert (await store.workers.heartbeat("w")).leases == {task.task_id: clock.now + LONG}
    clock.pass_ms(10_000)
    assert (await store.workers.heartbeat("w", [grant])).leases == {task.task_id: clock.now + LONG}
    clock.pass_ms(10_000)
    await store.extend("w", grant, 5_000_000)
    assert (await store.get(task.task_id)).lease_until == clock.now + LONG

"""Three tiers, for tests of what they do: fast within medium within slow."""

import contextlib
from collections.abc import AsyncIterator

from fairlead.model.reports import Grant
from fairlead.model.task import Task
from fairlead.settings import Slots
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from tests.store.namespace import claim_one, new

TIERS = {
    "fast": Tier(seconds=3, limit=4),
    "medium": Tier(seconds=10, limit=2),
    "slow": Tier(seconds=30, limit=1),
}
FAST, MEDIUM, SLOW = 3_000, 10_000, 30_000


async def run(store: Store, duration: str | None = None) -> Task:
    """Starts a task that nothing else waits before."""
    await store.submit_one(new(duration=duration))
    return await claim_one(store)


async def claims_nothing(store: Store) -> bool:
    return (await store.claim("w")).tasks == []


async def confirm(store: Store, task: Task) -> None:
    assert await store.shortened("w", Grant(task.task_id, task.fence)) == [None]


async def tier_of(store: Store, task: Task) -> str | None:
    return (await store.get(task.task_id)).tier


@contextlib.asynccontextmanager
async def full(store: Store, name: str) -> AsyncIterator[None]:
    """A limit whose only unit is held."""
    await store.limits.set(name, Slots(limit=1))
    lease = await store.limits.acquire(name)
    yield
    await store.limits.release(lease)


async def used(store: Store) -> dict[str, int]:
    return {limit.name.removeprefix("tier:"): limit.active for limit in await store.limits.all()}

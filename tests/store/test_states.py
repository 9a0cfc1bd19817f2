"""Every state x every act through the real store: the result is the one in `states.TRANSITIONS`."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import uuid_utils

from fairlead.errors import FairleadError, NoCapacity, UnknownTask
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import Act, State, allowed
from fairlead.model.task import NewTask
from fairlead.settings import RetrySettings, Settings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.renewing import renewed_by
from tests.store.namespace import claim_one, events

pytestmark = pytest.mark.every_server

LEASE_SECONDS, SHORT_SECONDS, TIMEOUT_SECONDS, MANY_SECONDS = 31, 300, 900, 1_000_000


@dataclass
class Scene:
    """One task, alone of its type, and what it takes to act on it."""

    store: Store
    clock: Clock
    task_id: str = field(default_factory=lambda: str(uuid_utils.uuid7()))
    fence: int = 1

    @property
    def task_type(self) -> str:
        return self.task_id

    @property
    def worker(self) -> str:
        """Its own worker: one that held the task of another scene would hold two tasks."""
        return f"w-{self.task_id}"

    async def submit(
        self,
        delay: float | None = None,
        max_wait: float | None = None,
        max_retries: int = 2,
        duration: str | None = None,
    ) -> None:
        task = NewTask(
            task_id=self.task_id,
            task_type=self.task_type,
            priority="low",
            delay_seconds=delay,
            max_wait_seconds=max_wait,
            max_retries=max_retries,
            duration=duration,
        )
        await self.store.submit_one(task)

    async def claim(self) -> None:
        await self.store.workers.register(self.worker, task_types=[self.task_type], capacity=1000)
        for task in (await self.store.claim(self.worker)).tasks:
            self.fence = task.fence

    async def shorten(self) -> None:
        """An interactive task that finds no worker shortens the youngest elastic run."""
        with suppress(NoCapacity):
            await self.store.submit_one(NewTask(task_type="unserved", duration="interactive"))

    async def start(self, **options: Any) -> None:
        await self.submit(**options)
        await self.claim()

    async def fail(self, retriable: bool = True, retry_after_ms: int = 0, crashed: bool = False) -> None:
        report = Failed(
            self.task_id,
            self.fence,
            retriable=retriable,
            retry_after_ms=retry_after_ms,
            jitter=0,
            crashed=crashed,
        )
        await self.store.fail(self.worker, report)

    async def expire_after(self, seconds: int) -> None:
        self.clock.pass_seconds(seconds)
        await self.store.expire()

    async def promote_after(self, seconds: int) -> None:
        self.clock.pass_seconds(seconds)
        await self.store.promote()

    async def state(self) -> State | None:
        try:
            return (await self.store.get(self.task_id)).status
        except UnknownTask:
            return None


Step = Callable[[Scene], Awaitable[object]]


# How a task gets into each state


async def nothing(scene: Scene) -> None: ...


async def delayed(scene: Scene) -> None:
    await scene.submit(delay=10)


async def waiting_for_a_retry(scene: Scene) -> None:
    await scene.start()
    await scene.fail(retry_after_ms=10_000)


async def queued(scene: Scene) -> None:
    await scene.submit()


async def impatient(scene: Scene) -> None:
    await scene.submit(max_wait=60)


async def given_back(scene: Scene) -> None:
    await scene.start()
    await scene.store.release(scene.worker, Grant(scene.task_id, scene.fence))


async def executing(scene: Scene) -> None:
    await scene.start()


async def bounded_by_its_tier(scene: Scene) -> None:
    await scene.start(duration="short")


async def on_its_second_try(scene: Scene) -> None:
    await scene.start()
    await scene.fail()
    await scene.claim()


async def on_its_only_try(scene: Scene) -> None:
    await scene.start(max_retries=0)


async def after_two_crashes(scene: Scene) -> None:
    for again in range(3):
        await (scene.claim() if again else scene.start())
        if again < 2:
            await scene.store.expire(scene.worker)


async def completed(scene: Scene) -> None:
    await scene.start()
    await scene.store.complete(scene.worker, Completed(scene.task_id, scene.fence))


async def failed(scene: Scene) -> None:
    await scene.start()
    await scene.fail(retriable=False)


async def not_started_in_time(scene: Scene) -> None:
    await impatient(scene)
    await scene.promote_after(61)


async def cancelled(scene: Scene) -> None:
    await scene.submit()
    await scene.store.cancel(scene.task_id)


async def cancelled_while_it_ran(scene: Scene) -> None:
    await scene.start()
    await scene.store.cancel(scene.task_id)


async def crashed_three_times(scene: Scene) -> None:
    for again in range(3):
        await (scene.claim() if again else scene.start())
        await scene.fail(crashed=True)


async def out_of_retries(scene: Scene) -> None:
    await on_its_only_try(scene)
    await scene.fail()


async def lost_three_workers(scene: Scene) -> None:
    await after_two_crashes(scene)
    await scene.store.expire(scene.worker)


WAYS_INTO: dict[State | None, list[Step]] = {
    None: [nothing],
    State.DELAYED: [delayed, waiting_for_a_retry],
    State.QUEUED: [queued, impatient, given_back],
    State.EXECUTING: [executing, bounded_by_its_tier, on_its_second_try, on_its_only_try, after_two_crashes],
    State.COMPLETED: [completed],
    State.FAILED: [failed, not_started_in_time],
    State.CANCELLED: [cancelled, cancelled_while_it_ran],
    State.DEAD_LETTER: [out_of_retries, lost_three_workers, crashed_three_times],
}

#: Every act in the variants that may lead to different states.
VARIANTS: dict[Act, list[Step]] = {
    Act.SUBMIT: [Scene.submit, lambda scene: scene.submit(delay=5)],
    Act.CLAIM: [Scene.claim],
    Act.RENEW: [lambda scene: renewed_by(scene.store, scene.worker, Grant(scene.task_id, scene.fence))],
    Act.EXTEND: [
        lambda scene: scene.store.extend(scene.worker, Grant(scene.task_id, scene.fence), 10_000_000)
    ],
    Act.SHORTEN: [Scene.shorten],
    Act.COMPLETE: [lambda scene: scene.store.complete(scene.worker, Completed(scene.task_id, scene.fence))],
    Act.FAIL: [
        Scene.fail,
        lambda scene: scene.fail(retriable=False),
        lambda scene: scene.fail(retry_after_ms=1_000),
        lambda scene: scene.fail(crashed=True),
    ],
    Act.RELEASE: [lambda scene: scene.store.release(scene.worker, Grant(scene.task_id, scene.fence))],
    Act.CANCEL: [lambda scene: scene.store.cancel(scene.task_id)],
    Act.EXPIRE: [
        lambda scene: scene.expire_after(LEASE_SECONDS),
        lambda scene: scene.expire_after(TIMEOUT_SECONDS),
        lambda scene: scene.expire_after(MANY_SECONDS),
        lambda scene: scene.store.expire(scene.worker),
    ],
    Act.PROMOTE: [
        lambda scene: scene.promote_after(11),
        lambda scene: scene.promote_after(601),
        lambda scene: scene.promote_after(MANY_SECONDS),
    ],
    Act.REPLAY: [lambda scene: scene.store.replay(scene.task_id)],
}


#: A first retry comes at once and a second one is delayed. The short tier ends before the timeout.
SETTINGS = Settings(
    retry=RetrySettings(base_seconds=0.001, max_seconds=1),
    tiers={"short": Tier(seconds=SHORT_SECONDS, limit=1000), "long": Tier(seconds=10**6, limit=1000)},
)


@pytest.fixture
def settings() -> Settings:
    return SETTINGS


async def outcome(scene: Scene, act: Act, step: Step) -> State | None:
    """The state after the act. What it did is in the outbox, and nothing that the table does not allow."""
    before, count = await scene.state(), len(await events(scene.store, scene.task_id))
    try:
        await step(scene)
    except FairleadError:
        assert not allowed(before, act), f"{act} was refused"
    after = await scene.state()
    new = (await events(scene.store, scene.task_id))[count:]
    if after == before and not allowed(before, act):
        assert new == [], f"{act} changed nothing and published an event"
    if after != before:
        assert (new[0]["act"], new[0]["from"], new[-1]["to"]) == (act, before or "", after)
    return after


async def outcomes(store: Store, clock: Clock, state: State | None, act: Act) -> set[State | None]:
    """Where the act leads from the state, over all ways into it and all variants of the act."""
    seen = set()
    for way in WAYS_INTO[state]:
        for step in VARIANTS[act]:
            scene = Scene(store, clock)
            await way(scene)
            assert await scene.state() == state, way.__name__
            seen.add(await outcome(scene, act, step))
    return seen


@pytest.mark.parametrize("state", WAYS_INTO, ids=str)
async def test_every_act_on_a_task_leads_exactly_where_the_table_says(
    store: Store, clock: Clock, state: State | None
) -> None:
    seen = {act: await outcomes(store, clock, state, act) for act in Act}
    assert seen == {act: allowed(state, act) or {state} for act in Act}


async def test_a_running_task_that_loses_its_worker_is_claimed_by_another_with_a_new_fence(
    store: Store, clock: Clock
) -> None:
    scene = Scene(store, clock)
    await scene.start()
    first = scene.fence
    await scene.expire_after(LEASE_SECONDS)
    await store.workers.register("other")
    task = await claim_one(store, "other")
    assert (task.fence > first, task.assigned_worker_id) == (True, "other")


async def test_one_act_may_end_a_delay_and_the_maximum_wait_with_an_event_for_each(
    store: Store, clock: Clock
) -> None:
    scene = Scene(store, clock)
    await scene.submit(delay=10, max_wait=60)
    await scene.promote_after(MANY_SECONDS)
    path = [(event["act"], event["to"]) for event in await events(store, scene.task_id)]
    assert path == [("submit", "delayed"), ("promote", "queued"), ("promote", "failed")]

"""Shares between waiting accounts: by starts and weight, whatever their time of arrival and run times.

Within 10 % means for each account: |share / expected - 1| <= 0.10, where the weight gives the expected share.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import groupby

import pytest

from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Grant
from fairlead.model.task import NewTask, Task
from fairlead.settings import Admission, Fairness, Promotion, Scheduling, Settings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new

pytestmark = pytest.mark.long

STARTS = 500
MANY = Admission(max_queued_per_user=10_000)


@pytest.fixture
def settings() -> Settings:
    return Settings(admission=MANY, fairness=Fairness(weights={"triple": 3}))


class Slot:
    """One worker that starts one task after the other, each of which takes `seconds`."""

    def __init__(self, store: Store, clock: Clock, seconds: Callable[[Task], float]) -> None:
        self.store, self.clock, self.seconds = store, clock, seconds
        self.started: list[Task] = []
        self.served: dict[str | None, float] = defaultdict(float)

    async def serve(self, starts: int) -> Counter[str | None]:
        """Starts by user."""
        first = len(self.started)
        await self.store.workers.register("w", capacity=1)
        reports: list[Completed] = []
        for _ in range(starts):
            _, claimed = await self.store.report("w", reports, claim=1)
            (task,) = claimed.tasks
            self.started.append(task)
            ran = self.seconds(task)
            self.clock.pass_ms(int(ran * 1000))
            self.served[task.user_id] += ran
            reports = [Completed(task.task_id, task.fence)]
            if self.clock.now % 7 == 0:
                await self.store.workers.heartbeat("w")
        await self.store.report("w", reports)
        return Counter(task.user_id for task in self.started[first:])


def is_fair(parts: Mapping[str | None, float], **weights: float) -> bool:
    """Within 10 % of the weights; parts are starts, or seconds of service."""
    all_parts, all_weights = sum(parts.values()), sum(weights.values())
    shares = {name: parts[name] / all_parts / (weight / all_weights) for name, weight in weights.items()}
    print(dict(parts), shares)
    return all(0.9 <= share <= 1.1 for share in shares.values())


async def submit(store: Store, *tasks: NewTask) -> None:
    for first in range(0, len(tasks), 200):
        await store.submit(*tasks[first : first + 200])


async def test_users_that_arrive_before_and_after_the_first_run_of_a_type_share_equally(
    store: Store, clock: Clock
) -> None:
    await submit(store, *[new(user_id="ann") for _ in range(400)])
    slot = Slot(store, clock, lambda task: 0.01)
    await slot.serve(1)
    await submit(store, *[new(user_id="bob") for _ in range(400)])
    starts = await slot.serve(STARTS)
    assert is_fair(starts, ann=1, bob=1)


async def test_a_type_that_becomes_faster_between_two_submits(store: Store, clock: Clock) -> None:
    await submit(store, *[new(user_id="ann") for _ in range(100)])
    slot = Slot(store, clock, lambda task: 1.0)
    await slot.serve(100)
    await submit(store, *[new(user_id="ann") for _ in range(400)])
    slot.seconds = lambda task: 0.01
    await slot.serve(100)
    await submit(store, *[new(user_id="bob") for _ in range(400)])
    starts = await slot.serve(STARTS)
    assert is_fair(starts, ann=1, bob=1)


async def test_starts_go_by_weight(store: Store, clock: Clock) -> None:
    await submit(store, *[new(user_id=user) for _ in range(400) for user in ("triple", "single")])
    starts = await Slot(store, clock, lambda task: 0.01).serve(STARTS)
    assert is_fair(starts, triple=3, single=1)


async def test_jobs_of_many_steps_get_no_more_than_single_tasks(store: Store, clock: Clock) -> None:
    stages = [[NewStep(f"s{n}", "step")] for n in range(32)]
    for _ in range(20):
        await store.jobs.submit(NewJob(feature_name="long", stages=stages, user_id="ann"))
    await submit(store, *[new("single", user_id="bob") for _ in range(300)])
    starts = await Slot(store, clock, lambda task: 10.0).serve(STARTS)
    assert is_fair(starts, ann=1, bob=1)


TINY = [NewStep("tiny", "tiny")]
IN_A_ROW = [TINY, *([NewStep("heavy", "heavy")] for _ in range(31))]
AT_ONCE = [TINY, [NewStep(f"heavy{n}", "heavy") for n in range(31)]]


async def serve_tiny_and_heavy(store: Store, clock: Clock, stages: list[list[NewStep]]) -> Slot:
    """Thirty jobs of Ann against single tasks of Bob; more of them wait than can be started."""
    for _ in range(30):
        await store.jobs.submit(NewJob(feature_name="long", stages=stages, user_id="ann"))
    await submit(store, *[new("heavy", user_id="bob") for _ in range(350)])
    slot = Slot(store, clock, lambda task: 10.0 if task.task_type == "heavy" else 0.1)
    starts = await slot.serve(STARTS)
    assert is_fair(starts, ann=1, bob=1)
    assert is_fair(slot.served, ann=1, bob=1)
    return slot


class TestJobsThatBeginWithATinyStep:
    """Against single tasks as long as their other steps. Nearly all starts are of promoted tasks."""

    @pytest.mark.parametrize("stages", [IN_A_ROW, AT_ONCE], ids=["in a row", "at once"])
    async def test_by_default(self, store: Store, clock: Clock, stages: list[list[NewStep]]) -> None:
        slot = await serve_tiny_and_heavy(store, clock, stages)
        jobs = [task.job_id for task in slot.started if task.user_id == "ann"]
        assert [job for job, _ in groupby(jobs)] == list(dict.fromkeys(jobs))  # one after the other

    @pytest.mark.parametrize(
        ("seconds", "stages"),
        [(0, AT_ONCE), (60, IN_A_ROW), (645, AT_ONCE)],
        ids=["never", "after the first tiny step", "after the next"],
    )
    async def test_whenever_they_are_promoted(
        self, open_store: Callable[..., Store], clock: Clock, stages: list[list[NewStep]], seconds: int
    ) -> None:
        promotion = Promotion(medium_to_high_seconds=seconds)
        store = open_store(clock=clock, settings=Settings(admission=MANY, promotion=promotion))
        await store.open()
        await serve_tiny_and_heavy(store, clock, stages)

    async def test_when_started_jobs_do_not_go_first(
        self, open_store: Callable[..., Store], clock: Clock
    ) -> None:
        scheduling = Scheduling(started_jobs_first=False)
        store = open_store(clock=clock, settings=Settings(admission=MANY, scheduling=scheduling))
        await store.open()
        await serve_tiny_and_heavy(store, clock, IN_A_ROW)


async def test_a_step_that_is_promoted_after_later_ones_of_its_job_goes_before_them(
    store: Store, clock: Clock
) -> None:
    stages = [[NewStep(f"s{n}", "step") for n in range(4)]]
    await store.jobs.submit(NewJob(feature_name="wide", stages=stages, user_id="ann"))
    await submit(store, *[new("single", user_id="ann") for _ in range(2)])
    await store.workers.register("w", capacity=1)
    first = await claim_one(store)
    clock.pass_seconds(1_200)
    await store.promote()
    await store.workers.register("w", capacity=1)
    await store.release("w", Grant(first.task_id, first.fence))
    slot = Slot(store, clock, lambda task: 1.0)
    await slot.serve(6)
    assert [task.step for task in slot.started] == [0, 1, 2, 3, None, None]


async def test_the_steps_of_a_started_job_go_before_later_work_of_the_same_user(
    store: Store, clock: Clock
) -> None:
    stages = [[NewStep("a", "step")], [NewStep("b", "step")], [NewStep("c", "step")]]
    job = await store.jobs.submit(NewJob(feature_name="short", stages=stages, user_id="ann"))
    await submit(store, *[new("single", user_id="ann") for _ in range(3)])
    slot = Slot(store, clock, lambda task: 1.0)
    await slot.serve(6)
    assert [task.job_id for task in slot.started] == [job.job_id] * 3 + [None] * 3


async def test_the_same_user_of_two_tenants_is_two_accounts(store: Store, clock: Clock) -> None:
    await submit(store, *[new(user_id="1", tenant="a") for _ in range(300)])
    await submit(store, *[new(user_id=str(n % 2), tenant="b") for n in range(300)])
    slot = Slot(store, clock, lambda task: 0.01)
    await slot.serve(300)
    starts = Counter((task.tenant, task.user_id) for task in slot.started)
    assert starts == {("a", "1"): 100, ("b", "0"): 100, ("b", "1"): 100}


async def test_the_tasks_of_one_user_type_and_priority_start_in_the_order_they_came(
    store: Store, clock: Clock
) -> None:
    """A run that is shorter or longer than expected changes nothing for tasks that wait already."""
    kinds = [("ann", "a"), ("ann", "b"), ("bob", "a")]
    chance = random.Random(1)
    came: list[NewTask] = []
    slot = Slot(store, clock, lambda task: chance.choice([0.01, 1.0, 20.0]))
    for n in range(200):
        more = [new(kind, user_id=user) for user, kind in kinds[n % 3 :] + kinds[: n % 3]]
        await submit(store, *more)
        came += more
        await slot.serve(2)
    for user, kind in kinds:
        mine = [task.task_id for task in slot.started if (task.user_id, task.task_type) == (user, kind)]
        theirs = [task.task_id for task in came if (task.user_id, task.task_type) == (user, kind)]
        assert mine == theirs[: len(mine)]
    assert min(Counter(task.user_id for task in slot.started).values()) > 100


class TestByUser:
    @pytest.fixture
    def settings(self) -> Settings:
        fairness = Fairness(weights={"gold": 2, "boss": 4})
        return Settings(admission=Admission(max_queued_per_user=10_000), fairness=fairness)

    async def test_the_weight_of_a_tenant_is_that_of_each_of_its_users_without_one(
        self, store: Store, clock: Clock
    ) -> None:
        accounts = [("gold", "u"), ("gold", "boss"), ("plain", "u")]
        await submit(store, *[new(tenant=name, user_id=user) for _ in range(300) for name, user in accounts])
        slot = Slot(store, clock, lambda task: 0.01)
        await slot.serve(350)
        starts = Counter((task.tenant, task.user_id) for task in slot.started)
        assert starts == {("gold", "boss"): 200, ("gold", "u"): 100, ("plain", "u"): 50}


class TestByTenant:
    @pytest.fixture
    def settings(self) -> Settings:
        fairness = Fairness(by="tenant", weights={"gold": 2})
        return Settings(admission=MANY, fairness=fairness)

    async def test_a_tenant_of_a_hundred_users_gets_what_a_tenant_of_one_gets(
        self, store: Store, clock: Clock
    ) -> None:
        await submit(store, *[new(tenant="many", user_id=f"u{n % 100}") for n in range(400)])
        await submit(store, *[new(tenant="one", user_id="u") for _ in range(400)])
        slot = Slot(store, clock, lambda task: 0.01)
        await slot.serve(STARTS)
        starts = Counter(task.tenant for task in slot.started)
        assert is_fair(starts, many=1, one=1)

    async def test_tenants_go_by_weight(self, store: Store, clock: Clock) -> None:
        await submit(store, *[new(tenant=name) for _ in range(350) for name in ("gold", "plain")])
        slot = Slot(store, clock, lambda task: 0.01)
        await slot.serve(450)
        starts = Counter(task.tenant for task in slot.started)
        assert is_fair(starts, gold=2, plain=1)

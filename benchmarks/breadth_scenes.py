"""The cases of the benchmark `breadth`: broad queues, each with the workers that serve it.

Each case keeps its shape while it is measured: a task that was claimed is replaced by one like it.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from benchmarks.bench import HOUR, WORKER, drop_events, small_task
from fairlead.clock import now_ms
from fairlead.errors import FairleadError
from fairlead.model.reports import Grant
from fairlead.model.task import NewTask, Task
from fairlead.settings import Admission, Promotion, Scheduling, Settings, Slots, WorkerSettings
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store

BASE, TIERED = "1 type", "3 tiers"
BATCH = 100
CAPACITY = 100_000  # of a worker: never what a claim waits for
MOST_CLAIMS = 1_000  # in a row that return nothing although the store says "again"
COMMON_TYPES = 20
MEASURED_HOSTS = 4
DAY = 86_400

#: No worker falls silent, no task is promoted and no hold is made while something is measured.
CALM = Settings(
    admission=Admission(max_queued=1_000_000_000, max_queued_per_user=1_000_000_000),
    worker=WorkerSettings(heartbeat_seconds=600),
    promotion=Promotion(low_to_medium_seconds=DAY, medium_to_high_seconds=DAY),
    scheduling=Scheduling(hold_after_seconds=DAY),
)

IN_TIERS = replace(
    CALM,
    tiers={
        "fast": Tier(seconds=DAY),
        "medium": Tier(seconds=2 * DAY, limit=BATCH // 2),
        "slow": Tier(seconds=3 * DAY, limit=BATCH // 4),
    },
)


@dataclass(frozen=True, slots=True)
class Sizes:
    customers: int = 10_000
    types: int = 1_000
    limited_types: int = 87
    idle_workers: int = 100
    profiles: int = 100
    paired: int = 1_000
    dead_workers: int = 3_000
    rounds: int = 20
    singles: int = 20  # of each act in a round


QUICK = Sizes(
    customers=400,
    types=50,
    limited_types=10,
    idle_workers=4,
    profiles=5,
    paired=50,
    dead_workers=50,
    rounds=2,
    singles=3,
)


class NothingToClaim(FairleadError):
    """A claim found nothing although tasks that can start are queued."""

    code = "nothing_to_claim"


def accepted(answers: Iterable[object]) -> None:
    """Raises the first refusal."""
    for answer in answers:
        if isinstance(answer, FairleadError):
            raise answer


class Scene:
    """One type, no limit, one worker: what the other cases are compared with."""

    most: ClassVar[float] = 2  # times what the base costs: the aim

    def __init__(self, name: str, store: Store, sizes: Sizes, workers: Iterable[str] = (WORKER,)) -> None:
        self.name = name
        self.store = store
        self.sizes = sizes
        self.hands: dict[str, deque[Task]] = {worker: deque() for worker in workers}  # what each one runs
        self.turns = itertools.cycle(self.hands)

    def task(self, n: int) -> NewTask:
        return small_task(n)

    def limit(self, n: int) -> str:
        """The limit whose status is read: one that task `n` needs, if it needs any."""
        return "spare"

    async def prepare(self) -> None:
        """Queues as many tasks as there are customers in that case, beside those that run."""
        await self.store.limits.set("spare", Slots(limit=1))
        await self.register()
        await self.queue(range(self.sizes.customers + len(self.hands) * BATCH))
        await self.fill_hands(BATCH)

    async def register(self) -> None:
        for worker in self.hands:
            await self.store.workers.register(worker, capacity=CAPACITY)

    async def queue(self, numbers: Iterable[int]) -> None:
        remaining = iter(numbers)
        while batch := list(itertools.islice(remaining, BATCH)):
            accepted(await self.store.submit(*map(self.task, batch)))
            await drop_events(self.store)

    async def fill_hands(self, each: int) -> None:
        for worker, hand in self.hands.items():
            hand.extend(await self.claim(worker, each))

    async def claim(self, worker: str, want: int) -> list[Task]:
        """Exactly `want` tasks, however many calls it takes."""
        tasks: list[Task] = []
        for _ in range(MOST_CLAIMS):
            claimed = await self.store.claim(worker, want - len(tasks), lease_ms=HOUR)
            tasks += claimed.tasks
            if len(tasks) == want:
                return tasks
            if not claimed.tasks and not claimed.again:
                break
        raise NothingToClaim(f"{worker} asked for {want} tasks and was given {len(tasks)}")

    async def confirm(self, worker: str) -> None:
        """What the worker was asked to confirm."""

    async def rest(self) -> None:
        """Between two measurements."""
        await drop_events(self.store)


class ManyTypes(Scene):
    """`named`: the worker lists all the types it serves instead of serving any."""

    def __init__(self, name: str, store: Store, sizes: Sizes, *, named: bool = False) -> None:
        super().__init__(name, store, sizes)
        self.types = [f"type-{i}" for i in range(sizes.types)]
        self.named = named

    def task(self, n: int) -> NewTask:
        return NewTask(task_type=self.types[n % len(self.types)], parameters={"n": n})

    async def register(self) -> None:
        types = self.types if self.named else None
        await self.store.workers.register(WORKER, task_types=types, capacity=CAPACITY)


class FullLimit(Scene):
    """Many types under one limit. It is full except for the unit that was just returned."""

    def task(self, n: int) -> NewTask:
        kind = f"type-{n % self.sizes.limited_types}"
        return NewTask(task_type=kind, parameters={"n": n}, limits={"shared": 1})

    def limit(self, n: int) -> str:
        return "shared"

    async def register(self) -> None:
        await self.store.limits.set("shared", Slots(limit=BATCH))
        await super().register()


class Customers(Scene):
    """Every customer has a limit of 1, one task that runs and one that waits. All workers are idle."""

    def __init__(self, name: str, store: Store, sizes: Sizes) -> None:
        holders = min(sizes.idle_workers, sizes.customers // BATCH)
        super().__init__(name, store, sizes, [f"worker-{i}" for i in range(holders)])
        self.fleet = [f"worker-{i}" for i in range(sizes.idle_workers)]

    def task(self, n: int) -> NewTask:
        return small_task(n, concurrency_group=f"customer-{n}", concurrency_limit=1)

    def limit(self, n: int) -> str:
        return f"customer-{n}"

    async def prepare(self) -> None:
        for worker in self.fleet:
            await self.store.workers.register(worker, capacity=CAPACITY)
        customers = range(self.sizes.customers)
        await self.queue(customers)
        share, more = divmod(len(customers), len(self.hands))
        for i, (worker, hand) in enumerate(self.hands.items()):
            hand.extend(await self.claim(worker, share + (i < more)))
        await self.queue(customers)
        await self.rest()

    async def rest(self) -> None:
        """Those that were woken find nothing, and are idle again."""
        for worker in self.fleet:
            while (claimed := await self.store.claim(worker, idle=True, lease_ms=HOUR)).again:
                pass
            if claimed.tasks:
                raise FairleadError(f"{worker} was given a task although every customer runs one")
        await super().rest()


class Profiles(Scene):
    """Every worker serves the common types and the tasks that need its own host."""

    def __init__(self, name: str, store: Store, sizes: Sizes) -> None:
        super().__init__(name, store, sizes, [f"host-{i}" for i in range(MEASURED_HOSTS)])

    def task(self, n: int) -> NewTask:
        """One in four can only run on one host."""
        host = () if n % 4 else (f"host-{n // 4 % self.sizes.profiles}",)
        kind = f"common-{n % COMMON_TYPES}"
        return NewTask(task_type=kind, parameters={"n": n}, required_capabilities=host)

    async def register(self) -> None:
        types = [f"common-{i}" for i in range(COMMON_TYPES)]
        for i in range(self.sizes.profiles):
            host = f"host-{i}"
            await self.store.workers.register(host, capabilities=[host], task_types=types, capacity=CAPACITY)


class Paired(Scene):
    """Tasks need A, B and the limit of their customer. Single ones hold A and B, which get room in turn."""

    LIMITS = ("A", "B")

    def __init__(self, name: str, store: Store, sizes: Sizes) -> None:
        super().__init__(name, store, sizes, self.LIMITS)

    def task(self, n: int) -> NewTask:
        """The first ones need both."""
        if n < self.sizes.paired:
            group = f"customer-{n}"
            return NewTask(
                task_type="paired",
                parameters={"n": n},
                limits=dict.fromkeys(self.LIMITS, 1),
                concurrency_group=group,
                concurrency_limit=1,
            )
        limit = self.LIMITS[n % 2]
        return NewTask(task_type=f"single-{limit}", parameters={"n": n}, limits={limit: 1})

    def limit(self, n: int) -> str:
        return "A"

    async def prepare(self) -> None:
        for limit in self.LIMITS:
            await self.store.limits.set(limit, Slots(limit=BATCH))
            await self.store.workers.register(
                limit, task_types=["paired", f"single-{limit}"], capacity=CAPACITY
            )
        first = self.sizes.paired
        running = first + len(self.hands) * BATCH
        await self.queue(range(first, running))
        await self.fill_hands(BATCH)
        await self.queue(range(first))
        await self.queue(range(running, running + self.sizes.customers))


class Tiers(Scene):
    """Tasks of three tiers and elastic ones in turn. The longer tiers are full most of the time.

    Workers confirm at once that a run was shortened. That act is not part of what is measured.
    """

    most = 1.5
    DURATIONS = ("fast", None, "medium", None, "slow")

    def task(self, n: int) -> NewTask:
        return small_task(n, duration=self.DURATIONS[n % len(self.DURATIONS)])

    def limit(self, n: int) -> str:
        return "tier:slow"

    async def confirm(self, worker: str) -> None:
        connection = self.store.connection
        calls = connection.keys.key("wake", worker)
        # a blocking read would let the server sleep, and what follows would be slower
        while word := await connection.client.lpop(calls):
            kind, task_id, fence, _ = word.decode().split(":")
            assert kind == "deadline", word
            await self.store.shortened(worker, Grant(task_id, int(fence)))


class DeadWorkers(Scene):
    """Workers of as many profiles died while they were idle, and the caretaker has noticed."""

    async def prepare(self) -> None:
        store = self.store
        past = now_ms() - CALM.worker_ttl_ms - 60_000
        store.clock = lambda: str(past)
        for i in range(self.sizes.dead_workers):
            await store.workers.register(f"dead-{i}", task_types=[f"other-{i}"])
            await store.claim(f"dead-{i}", idle=True)
        store.clock = lambda: ""
        await super().prepare()
        while await store.upkeep.bury():
            pass


def cases(sizes: Sizes) -> dict[str, Callable[[str, Store, Sizes], Scene]]:
    """By name; the first is the base."""
    return {
        BASE: Scene,
        f"{sizes.types:,} types": ManyTypes,
        f"{sizes.types:,} types, named": partial(ManyTypes, named=True),
        f"{sizes.limited_types} types, one full limit": FullLimit,
        f"{sizes.customers:,} customers": Customers,
        f"{sizes.profiles} profiles": Profiles,
        f"{{A, B, customer}} of {sizes.paired:,}": Paired,
        f"{sizes.dead_workers:,} dead idle workers": DeadWorkers,
        TIERED: Tiers,
    }

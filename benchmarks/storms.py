"""The storms of the benchmark `storm`. Each one prepares what it needs, then begins to measure."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from benchmarks import slowlog
from benchmarks.bench import HOUR, scripts_ran, small_task
from benchmarks.figures import Check, Figure
from fairlead import Fairlead
from fairlead.clock import now_ms
from fairlead.errors import FairleadError
from fairlead.model.priority import Priority
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store

BATCH = 100  # tasks in a call, where a storm does not say otherwise
MOST_BARREN = 10_000  # claims in a row that start nothing
LARGE = 125_000  # bytes of parameters
EIGHTS = 100  # sets of eight limits
RATE = 10  # starts a second that the fleet is allowed
DEAD_SUBMITS = 100

T = TypeVar("T")
Started = list[Priority]  # of the tasks, in the order in which they started


class Storm:
    """A store with a clock that only the storm moves, and the times of its acts."""

    def __init__(self, name: str, store: Store, url: str) -> None:
        self.name = name
        self.store = store
        self.url = url
        self.round_trips: list[float] = []  # ms
        self.figures: list[Figure] = []
        self.checks: list[Check] = []
        self._now = now_ms()
        store.clock = lambda: str(self._now)

    async def begin(self) -> None:
        """What came before was the preparation."""
        await slowlog.take(self.store.connection.client)
        self.round_trips.clear()

    async def act(self, call: Awaitable[T]) -> T:
        started = time.perf_counter()
        try:
            return await call
        finally:
            self.round_trips.append((time.perf_counter() - started) * 1000)

    def pass_seconds(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    def figure(self, measure: str, unit: str, value: float) -> None:
        self.figures.append(Figure(self.name, measure, unit, [value]))

    def check(self, name: str, held: bool, detail: str = "") -> None:
        self.checks.append(Check(self.name, name, held, detail))

    def check_started(self, started: Started, count: int) -> None:
        self.check("everything started", len(started) == count, f"{len(started):,} of {count:,}")

    async def submit(self, tasks: Iterable[NewTask], batch: int = BATCH) -> None:
        """A refusal of one is kept as a check that does not hold; the others are queued."""
        refused: list[FairleadError] = []
        remaining = iter(tasks)
        while some := list(itertools.islice(remaining, batch)):
            answers = await self.act(self.store.submit(*some))
            refused += [answer for answer in answers if isinstance(answer, FairleadError)]
        detail = f"{len(refused):,} were refused: {refused[0]}" if refused else ""
        self.check("everything was accepted", not refused, detail)

    async def register(self, count: int, name: str = "worker", *, capacity: int = 100_000) -> list[str]:
        workers = [f"{name}-{i}" for i in range(count)]
        for worker in workers:
            await self.store.workers.register(worker, capacity=capacity)
        return workers

    async def wait_for_work(self, workers: Sequence[str]) -> None:
        """They find nothing to start, and are idle."""
        for worker in workers:
            while (await self.store.claim(worker, idle=True)).again:
                pass

    async def start_all(
        self, workers: Sequence[str], each: int = BATCH, upkeep: Callable[[], Awaitable[object]] | None = None
    ) -> Started:
        """The workers claim in turn until none finds a task. `upkeep`: done after every round."""
        started: Started = []
        barren = satisfied = 0  # claims in a row that started nothing; those that need not be repeated
        for worker in itertools.cycle(workers):
            claimed = await self.act(self.store.claim(worker, each, lease_ms=HOUR))
            started += [task.priority for task in claimed.tasks]
            barren = 0 if claimed.tasks else barren + 1
            satisfied = 0 if claimed.tasks or claimed.again else satisfied + 1
            if satisfied == len(workers) or barren == MOST_BARREN:
                break
            if upkeep and worker == workers[-1]:
                await self.act(upkeep())
        return started

    async def promote(self) -> None:
        """One act of what the caretaker does."""
        await self.store.run("promote")

    async def end_leases(self, count: int, worker: str = "") -> None:
        """Like the caretaker: until nothing is left to end."""
        ended = 0
        while some := await self.act(self.store.expire(worker)):
            ended += some
        self.check("every lease ended", ended == count, f"{ended:,} of {count:,}")

    async def hold(self, workers: Sequence[str], count: int, lease_ms: int) -> None:
        """Queues tasks and lets each of these workers run its share."""
        await self.submit(map(small_task, range(count)))
        share, held = count // len(workers), 0
        for worker, _ in itertools.product(workers, range(0, share, BATCH)):
            held += len((await self.store.claim(worker, min(BATCH, share), lease_ms=lease_ms)).tasks)
        self.check("everything ran before", held == count, f"{held:,} of {count:,}")


async def due(storm: Storm, count: int) -> None:
    """Delayed tasks of all priorities fall due in the same instant; low ones were submitted first."""
    words = [priority.word for priority in sorted(Priority, reverse=True)]
    await storm.submit(small_task(n, priority=words[n * 3 // count], delay_seconds=60) for n in range(count))
    storm.pass_seconds(60)
    workers = await storm.register(4)
    await storm.begin()
    started = await storm.start_all(workers, 64, storm.promote)
    storm.check_started(started, count)
    overtakes = _overtakes(started)
    storm.figure("started before a better one", "tasks", overtakes)
    storm.check("better priorities started first", overtakes == 0, f"{overtakes:,} went before a better one")


def _overtakes(started: Started) -> int:
    """How many started while a task of a better priority waited."""
    best_behind, overtakes = max(Priority), 0
    for priority in reversed(started):
        overtakes += priority > best_behind
        best_behind = min(best_behind, priority)
    return overtakes


async def leases(storm: Storm, count: int) -> None:
    """All leases of a fleet end in the same instant."""
    await storm.hold(await storm.register(10, "lost"), count, 30_000)
    storm.pass_seconds(60)
    workers = await storm.register(10)
    await storm.begin()
    await storm.end_leases(count)
    storm.check_started(await storm.start_all(workers), count)


async def mixed(storm: Storm, count: int) -> None:
    """Leases, delays, waits and three promotions are due in the same instant, under eight limits each."""
    day = 86_400
    names = [f"limit-{n}" for n in range(8 * EIGHTS)]
    for name in names:
        await storm.store.limits.set(name, Slots(limit=count))
    eights = [dict.fromkeys(names[n * 8 : n * 8 + 8], 1) for n in range(EIGHTS)]
    part = count // 6

    def tasks(**options: Any) -> Iterable[NewTask]:
        return (small_task(n, limits=eights[n % EIGHTS], **options) for n in range(part))

    await storm.submit(tasks(priority="high", timeout_seconds=2 * day))
    lost = await storm.register(10, "lost")
    for worker, _ in itertools.product(lost, range(0, part // 10 + 1, BATCH)):
        while (await storm.store.claim(worker, BATCH, lease_ms=day * 1000)).again:
            pass
    for priority in ("low", "medium"):
        await storm.submit(tasks(priority=priority))
    await storm.submit(tasks(delay_seconds=day))
    await storm.submit(tasks(max_wait_seconds=day))
    storm.pass_seconds(day + 2)
    workers = await storm.register(10)
    await storm.begin()
    started = await storm.start_all(workers, 100, storm.promote)
    least, most = part * 4, part * 5  # of those that waited too long, some may start before they are ended
    storm.check(
        "everything started", least <= len(started) <= most, f"{len(started):,} of at least {least:,}"
    )


async def limit(storm: Storm, count: int) -> None:
    """A paused limit gets room for everything that waits for it while a fleet is idle."""
    await storm.store.limits.set("gate", Slots(limit=0))
    await storm.submit(small_task(n, limits={"gate": 1}) for n in range(count))
    workers = await storm.register(100)
    await storm.wait_for_work(workers)
    await storm.begin()
    await storm.act(storm.store.limits.set("gate", Slots(limit=count)))
    storm.check_started(await storm.start_all(workers), count)


async def types(storm: Storm, count: int) -> None:
    """As many new types appear while a fleet is idle."""
    workers = await storm.register(10)
    await storm.wait_for_work(workers)
    await storm.begin()
    await storm.submit(NewTask(task_type=f"type-{n}") for n in range(count))
    storm.check_started(await storm.start_all(workers), count)


async def workers(storm: Storm, count: int) -> None:
    """Workers of as many profiles register at once, and each claims one task; 100 types are queued."""
    await storm.submit(NewTask(task_type=f"type-{n % 100}") for n in range(count))
    fleet = [f"host-{i}" for i in range(count)]
    register = storm.store.workers.register
    await storm.begin()
    await asyncio.gather(*(storm.act(register(host, capabilities=[host])) for host in fleet))
    storm.check_started(await storm.start_all(fleet, 1), count)


async def expire_worker(storm: Storm, count: int) -> None:
    """A worker that ran everything is known to be dead."""
    await storm.hold(await storm.register(1, "dead"), count, HOUR)
    workers = await storm.register(10)
    await storm.begin()
    await storm.end_leases(count, "dead-0")
    storm.check_started(await storm.start_all(workers), count)


async def heartbeat(storm: Storm, count: int) -> None:
    """One worker runs everything and prolongs all its leases."""
    (worker,) = await storm.register(1)
    await storm.hold([worker], count, 30_000)
    storm.pass_seconds(20)
    await storm.begin()
    await storm.act(storm.store.workers.heartbeat(worker, lease_ms=30_000))
    storm.pass_seconds(20)
    ended = await storm.act(storm.store.expire())
    storm.check("every lease was prolonged", ended == 0, f"{ended:,} ended")


async def limits(storm: Storm, count: int) -> None:
    """Tasks with eight limits each, all different, are submitted in one call."""
    for n in range(count * 8):
        await storm.store.limits.set(f"limit-{n}", Slots(limit=1))
    workers = await storm.register(10)
    await storm.begin()
    needs = [{f"limit-{n * 8 + i}": 1 for i in range(8)} for n in range(count)]
    await storm.submit((small_task(n, limits=needs[n]) for n in range(count)), batch=count)
    storm.check_started(await storm.start_all(workers), count)


async def large(storm: Storm, count: int) -> None:
    """Tasks with large parameters are claimed in one call."""
    tasks = (NewTask(task_type="large", parameters={"text": "x" * LARGE}) for _ in range(count))
    await storm.submit(tasks, batch=10)
    workers = await storm.register(1)
    await storm.begin()
    storm.check_started(await storm.start_all(workers, count), count)


async def dead_workers(storm: Storm, count: int) -> None:
    """Idle workers die together; then tasks come that each of them could have served."""
    await storm.wait_for_work(await storm.register(count, "dead"))
    storm.pass_seconds(60)
    workers = await storm.register(1)
    await storm.begin()
    await storm.submit(map(small_task, range(DEAD_SUBMITS)), batch=1)
    storm.check_started(await storm.start_all(workers), DEAD_SUBMITS)


async def rate_fleet(storm: Storm, count: int) -> None:
    """Real workers wait for a rate: what they ask of the server for each task, once they have settled."""
    settle, seconds = (16, 10) if count > 10 else (0.5, 1)
    storm.store.clock = lambda: ""
    fl = Fairlead(storm.url, namespace=storm.store.connection.keys.namespace)
    fl.limit("slow", rate=f"{RATE}/s", burst=1)
    starts = 0

    @fl.task(limits={"slow": 1})
    async def tick() -> None:
        nonlocal starts
        starts += 1

    client = storm.store.connection.client
    async with fl, contextlib.AsyncExitStack() as stack:
        for i in range(count):
            await stack.enter_async_context(fl.worker(capacity=1, name=f"worker-{i}"))
        await storm.submit(NewTask(task_type="tick") for _ in range(round((settle + seconds) * RATE * 2)))
        await asyncio.sleep(settle)  # a worker looks by itself after a while, and finds more tasks
        await storm.begin()
        before, starts = await scripts_ran(client), 0
        await asyncio.sleep(seconds)
        after = await scripts_ran(client)
        storm.figure("acts per started task", "acts", (after[1] - before[1]) / max(1, starts))
        storm.figure("acts a second per worker", "acts/s", (after[1] - before[1]) / seconds / count)
        storm.figure("server time", "%", (after[0] - before[0]) / seconds / 10_000)
    storm.check("something started", starts > 0)


#: The name of a storm, what it does, and its full size.
STORMS: dict[str, tuple[Callable[[Storm, int], Awaitable[None]], int]] = {
    "{} tasks due at once": (due, 100_000),
    "{} leases ending at once": (leases, 10_000),
    "{} tasks due in every way at once": (mixed, 60_000),
    "a limit from 0 to {}": (limit, 10_000),
    "{} new types": (types, 5_000),
    "{} workers registering": (workers, 1_000),
    "expire a worker with {} tasks": (expire_worker, 10_000),
    "heartbeat with {} tasks": (heartbeat, 10_000),
    "{} submits with 8 limits each": (limits, 1_000),
    "claim {} large tasks": (large, 1_000),
    "{} dead idle workers": (dead_workers, 3_000),
    "{} workers on a rate": (rate_fleet, 40),
}

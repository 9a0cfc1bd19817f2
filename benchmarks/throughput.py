"""Tasks a second through one asyncio client: submitted in batches, completed while the next are claimed.

`plain` has no limits, `limited` needs a slot of a limit that is never full, and `bound` is no product: a bare
client with the minimal work of a queue, for comparison. They take turns on the same servers.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import uuid_utils
from redis.asyncio import Redis

from benchmarks.bench import (
    ALWAYS,
    EVERYSEC,
    NO_AOF,
    WORKER,
    Bench,
    describe,
    drop_events,
    register,
    server_cpu,
    small_task,
)
from benchmarks.figures import Figure, Outcome
from fairlead.model.reports import Completed
from fairlead.settings import Slots
from fairlead.store.store import Store

Sizes = tuple[tuple[int, int, int], ...]
#: tasks, how many per submit, how many per claim
SIZES = ((1_500, 1, 1), (6_000, 100, 16), (10_000, 1_000, 64))
QUICK_SIZES = ((50, 1, 1), (200, 100, 16), (500, 500, 64))
RATE, SERVER, CLIENT = "rate", "server CPU", "client CPU"


class Line(Protocol):
    """Something that takes tasks and gives them out again."""

    @property
    def name(self) -> str: ...
    @property
    def client(self) -> Redis: ...
    async def submit(self, count: int, batch: int) -> None: ...
    async def drain(self, count: int, batch: int) -> None: ...


@dataclass
class Fairlead:
    name: str
    store: Store
    limits: dict[str, int]

    @property
    def client(self) -> Redis:
        return self.store.connection.client

    async def submit(self, count: int, batch: int) -> None:
        for _ in range(0, count, batch):
            await self.store.submit(*(small_task(n, limits=self.limits) for n in range(batch)))

    async def drain(self, count: int, batch: int) -> None:
        reports: list[Completed] = []
        while count:
            _, claimed = await self.store.report(WORKER, reports, claim=min(batch, count))
            reports = [Completed(task.task_id, task.fence, task.parameters) for task in claimed.tasks]
            count -= len(reports)
        await self.store.complete(WORKER, *reports)


@dataclass
class Bound:
    client: Redis
    prefix: str
    name: str = "bound"

    def __post_init__(self) -> None:
        folder = Path(__file__).parent
        self._accept = self.client.register_script((folder / "bound_submit.lua").read_text())
        self._next = self.client.register_script((folder / "bound_next.lua").read_text())
        self._keys = [self.prefix + "bound", self.prefix + "bound:"]

    async def submit(self, count: int, batch: int) -> None:
        for _ in range(0, count, batch):
            await self._accept(keys=self._keys, args=[str(uuid_utils.uuid7()) for _ in range(batch)])

    async def drain(self, count: int, batch: int) -> None:
        done: list[Any] = []
        while count:
            rows = await self._next(keys=self._keys, args=[min(batch, count), *done])
            done = [row[0] for row in rows]
            count -= len(done)
        await self._next(keys=self._keys, args=[0, *done])


async def run(bench: Bench) -> Outcome:
    sizes, rounds = (QUICK_SIZES, 1) if bench.quick else (SIZES, 7)
    modes = {"no AOF": NO_AOF, "everysec": EVERYSEC, "always": ALWAYS} if bench.own else {"as it is": ()}
    outcome = Outcome(
        notes=[
            "drain: completes a batch and claims the next in one round trip; no recorder beside",
            "finished tasks stay in the store, so its heap grows by the round: the best is of a young one",
        ]
    )
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        lines: dict[str, list[Line]] = {}
        for mode, options in modes.items():
            url = stack.enter_context(bench.serve(*options))
            outcome.servers[mode] = await describe(url)
            store = await stack.enter_async_context(bench.store(url))
            lines[mode] = await _lines(store)
        for _ in range(rounds):
            for mode in modes:
                for line in lines[mode]:
                    await _measure(line, mode, sizes, seen)
    units = {RATE: "tasks/s", SERVER: "us/task", CLIENT: "us/task"}
    for (case, measure), values in seen.items():
        better = "more" if measure == RATE else "less"
        outcome.figures.append(Figure(case, measure, units[measure], values, better))  # type: ignore[arg-type]
    _relate(outcome, list(modes), sizes)
    return outcome


async def _lines(store: Store) -> list[Line]:
    await store.limits.set("room", Slots(limit=1_000_000))
    client = store.connection.client
    return [
        Fairlead("plain", store, {}),
        Fairlead("limited", store, {"room": 1}),
        Bound(client, store.connection.keys.prefix),
    ]


async def _measure(line: Line, mode: str, sizes: Sizes, seen: dict[tuple[str, str], list[float]]) -> None:
    for count, per_submit, per_claim in sizes:
        if isinstance(line, Fairlead):
            await register(line.store)
        for case, work in (
            (f"submit {per_submit}, {line.name}, {mode}", line.submit(count, per_submit)),
            (f"drain {per_claim}, {line.name}, {mode}", line.drain(count, per_claim)),
        ):
            for measure, value in (await _cost(line.client, count, work)).items():
                seen[case, measure].append(value)
        if isinstance(line, Fairlead):
            await drop_events(line.store)


async def _cost(client: Redis, count: int, work: Awaitable[None]) -> dict[str, float]:
    server, own, started = await server_cpu(client), time.process_time(), time.perf_counter()
    await work
    took, own = time.perf_counter() - started, time.process_time() - own
    server = await server_cpu(client) - server
    return {RATE: count / took, SERVER: server / count * 1e6, CLIENT: own / count * 1e6}


def _relate(outcome: Outcome, modes: list[str], sizes: Sizes) -> None:
    submit, drain, mode = f"submit {sizes[-1][1]}", f"drain {sizes[-1][2]}", modes[0]

    def relate(name: str, above: str, below: str, target: str = "") -> None:
        outcome.compare(name, (above, RATE), (below, RATE), target)

    for act, target in ((drain, ""), (submit, "moonshot 0.3"), ("submit 1", "moonshot 0.9")):
        relate(f"{act}: plain to bound", f"{act}, plain, {mode}", f"{act}, bound, {mode}", target)
    above, below = f"{drain}, limited, {mode}", f"{drain}, plain, {mode}"
    relate(f"{drain}: limited to plain", above, below, ">= 0.8, moonshot 0.9")
    if "always" in modes:
        above, below = f"{drain}, plain, always", f"{drain}, plain, everysec"
        relate(f"{drain}: always to everysec", above, below, ">= 0.6, moonshot 0.8")

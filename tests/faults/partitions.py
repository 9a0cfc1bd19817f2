"""A worker that cannot reach the store for a while: every crew is behind its own wire."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fairlead.model.task import NewTask
from fairlead.store.store import Store
from tests.faults.fleet import LEASE, Crew, Fleet
from tests.faults.history import History
from tests.faults.sink import Sink, Written
from tests.faults.wire import Wire, wire
from tests.faults.zombies import works
from tests.waiting import wait_until


@dataclass(frozen=True)
class Afar:
    """A crew that reaches the store over its wire alone."""

    crew: Crew
    line: Wire

    def cut(self, silent: bool) -> None:
        """`silent`: its requests arrive, but the answers are lost."""
        self.line.silent, self.line.down = silent, not silent
        if not silent:
            self.line.cut()

    def heal(self) -> None:
        self.line.silent = self.line.down = False


@dataclass(frozen=True)
class Cut:
    """What became of a worker that was cut off."""

    afar: Afar
    pid: int
    task_type: str
    seconds: float
    silent: bool
    starts: int
    apart: float  # least seconds between the last sign of a run and the first of the next
    resumed: float  # seconds from the end of the cut to the next task of that worker


@contextlib.asynccontextmanager
async def crews_afar(store: Store, url: str, fleet: Fleet, count: int) -> AsyncIterator[list[Afar]]:
    async with contextlib.AsyncExitStack() as stack:
        found = []
        for number in range(count):
            folder = fleet.folder / f"wire{number}"
            folder.mkdir()
            line, way = await stack.enter_async_context(wire(url, folder))
            where = ("--engine", way, "--namespace", store.connection.keys.namespace)
            found.append(Afar(await fleet.start(1, 4, *where), line))
        await fleet.man()
        yield found


async def cut_off(
    store: Store,
    crews: list[Afar],
    history: History,
    sink: Sink,
    *,
    task_type: str = "write",
    seconds: float = 2 * LEASE,
    silent: bool = False,
) -> Cut:
    """Cuts off the worker that runs a task, for this time. AssertionError if two of its runs overlapped."""
    task = NewTask(task_type=task_type, parameters={"sink": sink.url, "seconds": seconds + 3 * LEASE})
    await store.submit_one(task)
    await wait_until(lambda: sink.read(task.task_id), 40, "it runs")
    first = sink.read(task.task_id)[0]
    afar = next(one for one in crews if one.crew.process.pid == os.getpgid(first.pid))
    afar.cut(silent)
    await asyncio.sleep(seconds)
    afar.heal()
    healed = time.monotonic()
    await wait_until(lambda: works(store, afar.crew, history), 40, "it works again")
    resumed = time.monotonic() - healed
    await wait_until(lambda: task.task_id in history.ended, 60)
    done = await store.get(task.task_id)
    assert done.result == done.fence, done
    written = sink.read(task.task_id)
    sink.forget(task.task_id)
    apart = gap_between_runs(written)
    assert apart > 0, written
    starts = sum(event.act == "claim" for event in history.events if event.task == task.task_id)
    return Cut(afar, first.pid, task_type, seconds, silent, starts, apart, resumed)


def gap_between_runs(written: list[Written]) -> float:
    """The least time between the last write of a run and the first of the next; negative: they overlapped."""
    fences = sorted({row.fence for row in written})
    spans = [[row.at for row in written if row.fence == fence] for fence in fences]
    return min((min(after) - max(before) for before, after in itertools.pairwise(spans)), default=LEASE)

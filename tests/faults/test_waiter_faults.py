"""An act that breaks while it grants units to an acquire that waits: nobody loses its turn or has two.

Every call of the act fails in turn, as in test_script_faults. Afterwards all waiting clients
repeat their calls, as usual, until each has had its units.
"""

import contextlib
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any

import pytest

from fairlead import errors
from fairlead.model.limit import Lease
from fairlead.model.reports import Completed, Grant
from fairlead.model.task import NewTask, Task
from fairlead.settings import Rate, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.faults.breaking import Breaking, plant
from tests.saved import Saved

# by lease id: limit, units, priority
WAITERS = {
    "urgent": ("gpu", 1, "high"),
    "usual": ("gpu", 1, "medium"),
    "wide": ("gpu", 2, "low"),
    "caller": ("api", 1, "medium"),
}


class Line:
    """Clients that wait for a limit of two units, held by a task and a lease, and for a used-up rate."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.fences: dict[str, int] = {}
        self.lease: Lease
        self.task: Task
        self.behind = NewTask(task_type="draw", limits={"gpu": 1}, priority="low")

    async def form(self) -> None:
        limits = self.store.limits
        await limits.set("gpu", Slots(limit=2))
        await limits.set("api", Rate(count=1, period_seconds=3, burst=1))
        await self.store.workers.register("w")
        await self.store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))
        (self.task,) = (await self.store.claim("w")).tasks
        self.lease = await limits.acquire("gpu", lease_ms=2_000)
        await limits.acquire("api", lease_ms=1_000)
        for name in WAITERS:
            assert not await self.ask(name)
        await self.store.submit_one(self.behind)

    def on(self, store: Store) -> "Line":
        """Its present state, for a store on the same namespace."""
        other = copy(self)
        other.store, other.fences = store, dict(self.fences)
        return other

    async def ask(self, name: str) -> bool:
        """Has it its units? If not, it keeps its place."""
        limit, units, priority = WAITERS[name]
        try:
            lease = await self.store.limits.acquire(
                limit, units=units, priority=priority, lease_id=name, keep_place=True
            )
        except errors.LimitFull:
            return False
        assert self.fences.setdefault(name, lease.fence) == lease.fence, "it was granted twice"
        return True

    async def granted(self) -> set[str]:
        """The clients that have units by now, whether they know it or not."""
        client, keys = self.store.connection.client, self.store.connection.keys
        return {name for name in WAITERS if await client.hexists(keys.key("lease", name), "fence")}

    async def called(self) -> set[str]:
        client, keys = self.store.connection.client, self.store.connection.keys
        return {name for name in WAITERS if await client.exists(keys.key("granted", name))}

    async def move_up(self) -> None:
        """All clients repeat their calls until each has had its turn; each returns its units."""
        waiting = set(WAITERS)
        for _ in range(len(WAITERS)):
            for name in sorted(waiting):
                if await self.ask(name):
                    await self.store.limits.release_known(WAITERS[name][0], name, self.fences[name])
                    waiting.remove(name)
            self.clock.pass_seconds(3)
        assert not waiting, "it has lost its turn"
        assert len(set(self.fences.values())) == len(WAITERS)


async def complete(line: Line) -> None:
    await line.store.complete("w", Completed(line.task.task_id, line.task.fence))


async def release(line: Line) -> None:
    with contextlib.suppress(errors.Fenced):  # it was given back already
        await line.store.limits.release(line.lease)


async def cancel_and_confirm(line: Line) -> None:
    await line.store.cancel(line.task.task_id)
    await line.store.release("w", Grant(line.task.task_id, line.task.fence))


async def after_a_while(line: Line, act: Callable[[], Awaitable[Any]]) -> None:
    """When the lease has ended and the rate has refilled."""
    line.clock.now = max(line.clock.now, line.lease.expires_at + 2_000)
    await act()


ACTS: dict[str, Callable[[Line], Awaitable[object]]] = {
    "complete": complete,
    "release a lease": release,
    "cancel": cancel_and_confirm,
    "raise the limit": lambda line: line.store.limits.set("gpu", Slots(limit=4)),
    "expire a worker": lambda line: line.store.expire("w"),
    "expire": lambda line: after_a_while(line, line.store.expire),
    "promote": lambda line: after_a_while(line, line.store.promote),
    "claim": lambda line: after_a_while(line, lambda: line.store.claim("w")),
    "ask": lambda line: after_a_while(line, lambda: line.ask("caller")),
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ACTS)
async def test_an_act_that_breaks_while_it_grants_takes_no_turn_and_gives_none_twice(
    name: str, store: Store, clock: Clock
) -> None:
    formed = Line(store, clock)
    await formed.form()
    now, saved = clock.now, await Saved.of(store.connection)
    broken = 0
    for k in range(1, 1000):
        clock.now, healthy = now, await saved.put_back()
        line = formed.on(Store(healthy, store.settings, clock))
        finished = await completes(line, name, k)
        left = await examine(healthy, now_ms=clock.now, twice=False)
        assert {breach.invariant for breach in left} <= {"W1"}, (k, left)
        await line.store.stats()  # any act finishes what was left
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        asker = {"caller"} if name == "ask" else set()
        granted = await line.granted()
        assert granted - asker <= await line.called(), k
        await ACTS[name](line)  # the caller repeats it, as after a lost reply
        assert granted <= await line.granted(), k
        await complete(line)
        await release(line)
        await line.move_up()
        assert await examine(healthy, now_ms=clock.now, twice=False) == [], k
        if finished:
            break
        broken += 1
    assert granted, "the act grants nothing"
    assert broken >= 3, "the act makes fewer calls than this test supposes"


async def completes(line: Line, name: str, k: int) -> bool:
    """Whether the act came to its end although its k-th call would fail."""
    healthy = line.store.connection
    plant(line.store, Breaking(healthy, k))
    try:
        await ACTS[name](line)
    except errors.StoreFault as fault:
        assert "planted fault" in str(fault)
        return False
    finally:
        plant(line.store, healthy)
    return True

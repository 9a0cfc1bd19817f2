"""kill -9 of worker processes and supervisors under load, any number of times."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from typing import Any

from fairlead.store.store import Store
from tests.faults.causes import LONGEST_LEASE_MS, Cause, Coroner, Kill
from tests.faults.fleet import LEASE, Crew, Fleet
from tests.faults.history import History, Verdict
from tests.faults.load import Load

CAPACITY = 4


class Killer:
    def __init__(self, store: Store, fleet: Fleet, dice: random.Random) -> None:
        self.kills: list[Kill] = []
        self._store = store
        self._fleet = fleet
        self._dice = dice

    async def kill(self, count: int, lonely: float) -> None:
        """One after another, each in a crew that is whole again; most of the crews are always at work.

        `lonely`: the share of kills without another one near, for which recovery can be measured.
        """
        for _ in range(count):
            while len(whole := [crew for crew in self._fleet.crews if crew.manned()]) * 2 <= len(
                self._fleet.crews
            ):
                await asyncio.sleep(0.05)
            pause = LONGEST_LEASE_MS / 1000 + 1 if self._dice.random() < lonely else 0
            await asyncio.sleep(pause + self._dice.uniform(0, 0.3))
            await self._strike(self._dice.choice(whole))
            await asyncio.sleep(pause)

    async def _strike(self, crew: Crew) -> None:
        target = "supervisor" if self._dice.random() < 0.3 else "worker"
        pid = crew.process.pid if target == "supervisor" else self._dice.choice(crew.children())
        at = await self._now()
        os.kill(pid, signal.SIGKILL)
        self.kills.append(Kill(at, await self._now(), crew.name, target, pid))
        if target == "supervisor":
            await self._fleet.replace(crew, CAPACITY)

    async def _now(self) -> int:
        seconds, microseconds = await self._store.connection.client.time()
        return int(seconds * 1000 + microseconds // 1000)

    def recoveries(self, verdict: Verdict, coroner: Coroner) -> dict[str, dict[str, list[int]]]:
        """For each task that was in the hands of the killed: ms until it was queued and until it ran again.

        The latter only where no other kill came near: it would have the limits that the task waits for. Of a
        task that was given to the dead, both are counted from then: its lease began then.
        """
        found: dict[str, dict[str, list[int]]] = {
            target: {"queued": [], "started": []} for target in ("worker", "supervisor")
        }
        for loss in verdict.losses:
            if kill := coroner.killer_of(loss):
                since = max(kill.at, loss.began)
                found[kill.target]["queued"].append(loss.noticed - since)
                if loss.again and self._kills_between(kill.at - LONGEST_LEASE_MS, loss.again) == 1:
                    found[kill.target]["started"].append(loss.again - since)
        return found

    def _kills_between(self, first: int, last: int) -> int:
        return sum(first <= kill.at <= last for kill in self.kills)


async def play(
    store: Store,
    fleet: Fleet,
    history: History,
    seed: int,
    *,
    tasks: int,
    kills: int,
    crews: int,
    processes: int,
    lonely: float = 0.0,
) -> tuple[Verdict, dict[str, Any]]:
    """At least this number of tasks, and more while kills are left; returns the history and the figures."""
    dice, began = random.Random(seed), time.monotonic()
    for _ in range(crews):
        await fleet.start(processes, CAPACITY)
    await fleet.man()
    killer = Killer(store, fleet, dice)
    load = Load(store, history, dice, waiting=crews * processes * CAPACITY)
    killing = asyncio.create_task(killer.kill(kills, lonely))
    await load.feed(lambda fed: killing.done() and fed >= tasks)
    await killing
    verdict = await load.end()
    coroner = Coroner(fleet.folder, killer.kills)
    causes = Counter(map(coroner.cause_of, verdict.losses))
    recoveries = killer.recoveries(verdict, coroner)
    return verdict, {
        "seed": seed,
        "workers": crews * processes,
        "tasks": len(load.needs),
        "kills": dict(Counter(kill.target for kill in killer.kills)),
        "starts": verdict.starts,
        "runs_lost": len(verdict.losses),
        "lost_runs_by_cause": {cause.value: causes[cause] for cause in Cause},
        "ends": dict(verdict.ends),
        "lease_ms": round(LEASE * 1000),
        "recovery_ms": {
            target: {until: spread(times) for until, times in found.items()}
            for target, found in recoveries.items()
        },
        "seconds": round(time.monotonic() - began),
    }


def spread(values: list[int]) -> dict[str, int]:
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    at = {name: ordered[int(share * (len(ordered) - 1))] for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {"count": len(ordered), **at, "max": ordered[-1]}

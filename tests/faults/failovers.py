"""Fail-overs under tasks, jobs and leases: what was acknowledged, and what of it is left.

Nothing here relies on the engine's own history, which a fail-over may lose: submitters note which tasks and
jobs were acknowledged, an inner worker which claims and completions, and all holders when they ran.
"""

import asyncio
import contextlib
import random
import re
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import redis
from msgspec.structs import replace

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.model.states import TERMINAL
from fairlead.settings import EngineSettings, Slots
from fairlead.store.doctor.doctor import examine
from tests.api.serving import serving
from tests.faults.fleet import Fleet
from tests.faults.kills import spread
from tests.faults.players import CALM, LIMITS, Players, Seen
from tests.faults.record import over_limit, read, repeated_fences
from tests.sentinels import SERVICE, Deployment, Node, deployment, opened
from tests.waiting import wait_until

CAREFUL = ("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")

#: "behind": the replicas lack what was acknowledged in the moments before the primary is killed.
How = Literal["kill", "stop", "replace", "behind"]

#: Longer than a server stalls on a busy machine: else fail-overs follow one another, and Sentinels promote a
#: replica that has not caught up.
DOWN_MS = 3000

APP = "tests.apps.held:fl"
ENDED_WITHIN = 120.0  # seconds, after the last submit


@dataclass
class Breaker:
    deployed: Deployment
    seen: Seen
    count: Counter[str] = field(default_factory=Counter)
    back_ms: list[int] = field(default_factory=list)  # from the promotion to the next acknowledged submit
    late_ms: list[int] = field(default_factory=list)  # of it, since a replica followed it

    async def fail_over(self, how: How) -> None:
        await self.deployed.settled()
        primary = self.deployed.primary()
        others = [server for server in self.deployed.servers if server is not primary]
        if how == "behind":
            for server in others:
                server.ask("REPLICAOF", "127.0.0.1", 1)
            acknowledged = len(self.seen.acknowledged_at)
            await wait_until(lambda: len(self.seen.acknowledged_at) > acknowledged + 3)
        if how in ("kill", "behind"):
            primary.kill()
        elif how == "stop":
            primary.signal(signal.SIGSTOP)
        else:
            self.deployed.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE)
        promoted_at = await instant(lambda: any(server.role() == "master" for server in others))
        usable_at = await instant(lambda: any(self._is_usable(server) for server in others))
        await wait_until(lambda: self.seen.acknowledged_at[-1] > usable_at, 60, "submits are accepted again")
        first = next(at for at in self.seen.acknowledged_at if at > promoted_at)
        self.back_ms.append(round((first - promoted_at) * 1000))
        self.late_ms.append(max(0, round((first - usable_at) * 1000)))
        self.count[how] += 1
        after = await self.deployed.another_is_primary(primary)
        if how in ("kill", "behind"):
            primary.start(replica_of=after)
        elif how == "stop":
            primary.signal(signal.SIGCONT)

    def _is_usable(self, server: Node) -> bool:
        """A Sentinel names it, and a replica follows it."""
        info = server.ask("INFO", "replication")
        return info["connected_slaves"] > 0 and self.deployed.primary() is server


async def instant(condition: Callable[[], bool]) -> float:
    """When it was first seen to hold; of servers that may not answer."""

    def holds() -> bool:
        with contextlib.suppress(redis.RedisError, OSError):
            return condition()
        return False

    await wait_until(holds, 60)
    return time.monotonic()


@contextlib.asynccontextmanager
async def staged(
    folder: Path, dice: random.Random, *, replicas: int, restores: bool = False
) -> AsyncIterator[tuple[Deployment, Players]]:
    """Servers and Sentinels, a gateway, two workers, and the players in this process.

    `restores`: the history has all that is accepted, and the gateway repairs from it what was lost.
    """
    durability: Literal["ledger", "always"] = "ledger" if restores else "always"
    async with deployment("valkey", *(CAREFUL if replicas else ()), down_ms=DOWN_MS) as deployed:
        engine = EngineSettings(url=deployed.url, replicas=replicas, durability=durability)
        settings = replace(CALM, engine=engine)
        env = {"FAIRLEAD_ENGINE__URL": deployed.url, "FAIRLEAD_ENGINE__REPLICAS": str(replicas)}
        env |= {"FAIRLEAD_ENGINE__DURABILITY": durability}
        if restores:
            env |= {
                "DATABASE_URL": f"sqlite:///{folder / 'history.sqlite3'}",
                "FAIRLEAD_HISTORY__ENABLED": "true",
            }
        options = ("--config", str(folder / "fleet.toml"), *(["--auto-restore"] if restores else []))
        async with (
            opened(deployed.url, settings) as store,
            Fleet(("--engine", deployed.url), folder, settings=settings, app=APP, env=env) as fleet,
        ):
            await fleet.start(2, 4)
            await fleet.man()
            with serving(deployed.url, "default", folder, *options, env=env) as gateway:
                yield deployed, Players(store, gateway, folder / "record", dice, restores)
            assert [await crew.end() for crew in fleet.crews] == [0]
            breaches = await examine(store.connection)
            assert not breaches, breaches


async def play(
    deployed: Deployment, players: Players, hows: list[How], *, tasks: int, workers: int = 2
) -> dict[str, Any]:
    """At least this number of tasks, and more while there are fail-overs left; what was found."""
    began, store, seen = time.monotonic(), players.store, players.seen
    for name, units in LIMITS.items():
        await store.limits.set(name, Slots(limit=units))
    breaker = Breaker(deployed, seen)
    async with asyncio.TaskGroup() as group:
        hands = [group.create_task(players.work(f"hand{number}")) for number in range(workers)]
        hands.append(group.create_task(players.operate()))
        callers = [
            group.create_task(caller)
            for caller in (
                players.submit(1 << 30),
                players.submit_over_http(),
                players.submit_jobs(),
                *(players.hold_the_gate() for _ in range(3)),
            )
        ]
        await wait_until(lambda: len(seen.acknowledged_at) > 3)
        for how in hows:
            await breaker.fail_over(how)
        await wait_until(lambda: len(seen.tasks) >= tasks, 3600, "all tasks are submitted")
        players.stopping = True
        await asyncio.gather(*callers)
        await wait_until(lambda: _is_quiet(players), ENDED_WITHIN, "everything has ended")
        for hand in hands:
            hand.cancel()
    if players.restores:
        seen.losses_noticed = len(re.findall(r"\brestored tasks=", players.gateway.log_text()))
    runs = read(players.record)
    return {
        "tasks": len(seen.tasks),
        "jobs": len(seen.jobs),
        "fail_overs": dict(breaker.count),
        "runs": len(runs),
        "losses_noticed": seen.losses_noticed,
        **await _missing(players),
        "fences_given_twice": len(repeated_fences(runs)),
        "over_a_limit": len(over_limit(runs, LIMITS)),
        "ms_until_service_was_back": spread(breaker.back_ms),
        "ms_after_the_new_primary_had_a_replica": spread(breaker.late_ms),
        "seconds": round(time.monotonic() - began),
    }


async def _is_quiet(players: Players) -> bool:
    """Nothing waits and nothing runs, as far as the store knows."""
    stats = await players.until_answered(players.store.stats)
    busy = any(queue.depth for queue in stats.queues.values()) or stats.delayed or stats.used_capacity
    return not busy


async def _missing(players: Players) -> dict[str, Any]:
    """What was acknowledged and is not there, listed. The gateway knows what has left the store."""
    lost: dict[str, list[str]] = {"tasks": [], "results": [], "jobs": []}
    seen = players.seen
    async with httpx.AsyncClient(base_url=players.gateway.url, timeout=30, trust_env=False) as http:

        async def found(path: str) -> dict[str, Any] | None:
            answer = await http.get(f"/api/v1/{path}")
            assert answer.status_code in (200, 404), answer.text
            return answer.json() if answer.is_success else None

        for task_id in sorted(seen.tasks):
            try:
                task = await players.store.get(task_id)
                status, result = task.status, task.result
            except errors.UnknownTask:
                if (past := await found(f"tasks/{task_id}")) is None:
                    lost["tasks"].append(task_id)
                    continue
                status, result = past["status"], past["result"]
            assert status in TERMINAL, (task_id, status)
            if seen.results.get(task_id, result) != result:
                lost["results"].append(task_id)
        for job_id in sorted(seen.jobs):
            job = await found(f"jobs/{job_id}")
            if job is None:
                lost["jobs"].append(job_id)
            else:
                assert job["status"] == JobStatus.COMPLETED, job
    return {"acknowledged_and_lost": {what: len(ids) for what, ids in lost.items()}, "lost": lost}

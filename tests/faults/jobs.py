"""kill -9 of everything in turn while jobs run: gateways, service workers, their supervisors, the store."""

import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from fairlead.model.job import Job, JobStatus
from fairlead.store.store import Store
from tests.faults.fleet import LEASE, Fleet
from tests.faults.gateways import Servers
from tests.faults.history import History, Judge
from tests.faults.meter import Meter
from tests.faults.restarts import Durable
from tests.pipeline.servers import raw_service

JOBS = "/api/v1/jobs"
LIMITS = {"enhancer": 3, "chat": 2, "image": 1}
SECONDS = {"enhancer": (0.05, 0.3), "chat": (0.05, 0.4), "image": (0.05, 0.2)}
PIPELINES: dict[str, list[str | list[str]]] = {
    "text": ["enhancer", "chat"],
    "picture": ["enhancer", "image"],
    "story": ["enhancer", ["chat", "image"], "chat"],
}
AT_ONCE = 12  # jobs
LOOK_SECONDS = 0.2
DOWN_SECONDS = (0, 0.5, LEASE + 1.5)  # of the store


def settings_for(url: str) -> str:
    """As in a file: the services, all at one address, and pipelines of them."""
    services = "".join(
        f'[services.{name}]\nurl = "{url}"\nlimit = {limit}\ntimeout_seconds = 30\n'
        for name, limit in LIMITS.items()
    )
    pipelines = "".join(
        f"{name} = [{', '.join(map(_stage, stages))}]\n" for name, stages in PIPELINES.items()
    )
    return f"{services}[pipelines]\n{pipelines}"


def _stage(stage: str | list[str]) -> str:
    return f'"{stage}"' if isinstance(stage, str) else f"{{ parallel = {json.dumps(stage)} }}"


@dataclass
class Customers:
    """Each submits a job, looks at it until it has ended, and resumes it where that can be."""

    servers: Servers
    dice: random.Random
    ended: list[str] = field(default_factory=list)  # ids of jobs
    begun: int = 0
    resumed: int = 0
    unanswered: int = 0

    async def run(self, enough: Callable[[int], bool]) -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=20, limits=limits, trust_env=False) as http:
            await asyncio.gather(*(self._serve(http, enough) for _ in range(AT_ONCE)))

    async def _serve(self, http: httpx.AsyncClient, enough: Callable[[int], bool]) -> None:
        while not enough(self.begun):
            self.begun += 1
            body = {
                "feature_name": self.dice.choice(list(PIPELINES)),
                "user_id": f"u{self.begun % 5}",
                "priority": self.dice.choice(("high", "medium", "low")),
                "input_data": {"number": self.begun},
                "idempotency_key": f"job-{self.begun}",
            }
            submitted = await self._insist(http, "POST", JOBS, json=body)
            self.ended.append(await self._watch(http, submitted.json()["job_id"]))

    async def _watch(self, http: httpx.AsyncClient, job_id: str) -> str:
        while True:
            job = (await self._insist(http, "GET", f"{JOBS}/{job_id}")).json()
            if job["status"] == "FAILED" and job["error"]["retryable"]:
                answer = await self._insist(http, "POST", f"{JOBS}/{job_id}/resume")
                self.resumed += answer.is_success  # else it was resumed already and the answer was lost
            elif job["status"] not in ("PENDING", "RUNNING"):
                return job_id
            await asyncio.sleep(LOOK_SECONDS)

    async def _insist(self, http: httpx.AsyncClient, method: str, path: str, **more: Any) -> httpx.Response:
        """Repeats the request until a gateway answers."""
        while True:
            try:
                answer = await http.request(method, self.dice.choice(self.servers.all).url + path, **more)
            except httpx.TransportError:
                self.unanswered += 1
            else:
                assert answer.status_code in (200, 201, 409, 503), answer.text
                if answer.status_code != 503:
                    return answer
            await asyncio.sleep(0.05)


class Killer:
    """One after another, each when all are up again; at least this many, and more until one has hit a run."""

    def __init__(
        self, store: Durable, servers: Servers, fleet: Fleet, history: History, dice: random.Random
    ) -> None:
        self.kills: Counter[str] = Counter()
        self._store = store
        self._servers = servers
        self._fleet = fleet
        self._history = history
        self._dice = dice

    async def kill(self, count: int) -> None:
        strikes = {
            "gateway": self._kill_gateway,
            "worker": self._kill_worker,
            "supervisor": self._kill_supervisor,
            "store": self._kill_store,
        }
        while (done := self.kills.total()) < count or (not self._has_hit() and done < 3 * count):
            await self._fleet.man()
            await asyncio.sleep(self._dice.uniform(0.2, 1))
            victim = list(strikes)[done % len(strikes)]
            await strikes[victim]()
            self.kills[victim] += 1

    def _has_hit(self) -> bool:
        """Whether a run was lost: a few kills may all find nobody at work."""
        return any(event.act == "expire" for event in self._history.events)

    async def _kill_gateway(self) -> None:
        await self._dice.choice(self._servers.all).strike(self._dice)

    async def _kill_worker(self) -> None:
        os.kill(self._dice.choice(self._dice.choice(self._fleet.crews).children()), signal.SIGKILL)

    async def _kill_supervisor(self) -> None:
        crew = self._dice.choice(self._fleet.crews)
        os.kill(crew.process.pid, signal.SIGKILL)
        await self._fleet.replace(crew, sum(LIMITS.values()))

    async def _kill_store(self) -> None:
        self._store.kill()
        await asyncio.sleep(self._dice.choice(DOWN_SECONDS))
        await self._store.start()


async def play(
    server: Durable, store: Store, fleet: Fleet, history: History, seed: int, *, jobs: int, kills: int
) -> dict[str, Any]:
    """At least this number of jobs, and more while kills are left; fails when a promise is broken."""
    dice, began = random.Random(seed), time.monotonic()
    meter = Meter(dice, SECONDS)
    async with raw_service(meter.reply) as service:
        fleet.app = "--services"
        config = fleet.folder / "fleet.toml"
        config.write_text(config.read_text() + settings_for(service.url))
        where = (*fleet.where, "--config", str(config))
        async with Servers(where, fleet.folder, 1, 1) as servers:
            await fleet.start(1, sum(LIMITS.values()))
            killer, customers = Killer(server, servers, fleet, history, dice), Customers(servers, dice)
            killing = asyncio.create_task(killer.kill(kills))
            await customers.run(lambda begun: killing.done() and begun >= jobs)
            await killing
    return {
        "seed": seed,
        "jobs": len(customers.ended),
        "kills": dict(killer.kills),
        **await _verdict(store, history, meter, customers.ended),
        "jobs_resumed": customers.resumed,
        "requests_unanswered": customers.unanswered,
        "lease_ms": round(LEASE * 1000),
        "seconds": round(time.monotonic() - began),
    }


async def _verdict(store: Store, history: History, meter: Meter, ended: list[str]) -> dict[str, Any]:
    assert len(set(ended)) == len(ended), "a key has two jobs"
    found = [await store.jobs.get(job_id) for job_id in ended]
    unfinished = [job for job in found if job.status is not JobStatus.COMPLETED]
    assert not unfinished, unfinished
    needs = {step.task_id: {step.name: 1} for job in found for step in job.steps}
    verdict = Judge(LIMITS, needs).judge(history.events)
    assert not verdict.faults, verdict.faults[:10]
    assert len(set(history.ended)) == len(needs), "a step has two tasks"
    _check_results(found, history)
    calls = Counter((seen.step, seen.fence) for seen in meter.calls)
    assert max(calls.values()) == 1, "a run made two calls"
    tasks = {f"{job.job_id}:{step.index}": step.task_id for job in found for step in job.steps}
    most = meter.most_at_once(tasks, history.events)
    assert all(most[name] <= limit for name, limit in LIMITS.items()), most
    return {
        "steps": len(needs),
        "calls": len(meter.calls),
        "calls_cut_off": len(meter.cut_off()),
        "runs_lost": len(verdict.losses),
        "max_concurrent_calls": {name: {"found": most[name], "limit": LIMITS[name]} for name in LIMITS},
    }


def _check_results(found: list[Job], history: History) -> None:
    """Each step completed once, and its recorded result is the answer to that run."""
    completed = Counter(event.task for event in history.events if event.act == "complete")
    fences = {event.task: event.fence for event in history.events if event.act == "complete"}
    for step in (step for job in found for step in job.steps):
        assert completed[step.task_id] == 1, (step, completed[step.task_id])
        assert step.result and step.result["data"] == {"fence": fences[step.task_id]}, step

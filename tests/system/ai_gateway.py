"""The example under many users on all plans: when each was served, and how busy the services were."""

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import httpx

from fairlead.model.job import Job, JobStatus
from fairlead.store.store import Store
from tests.compose_stack import ENDPOINTS, ComposeStack, answers, endpoints
from tests.reading import events_of
from tests.waiting import wait_until

PLANS = {"enterprise": 1, "pro": 3, "free": 6}  # of ten users
FEATURES = {"text_only": 4, "picture": 3, "story": 2, "full_pipeline": 1}  # of ten jobs
LIMITS = {"prompt_enhancer": 5, "fast_chat_llm": 4, "image_gen": 1, "model_3d_gen": 1}
TIGHTEST = "image_gen"  # of those that every third job needs
AT_ONCE = 20  # requests

Span = tuple[int, int]  # ms of the store's clock


@dataclass
class Queue:
    """What the log shows of one service."""

    waiting: dict[str, int] = field(default_factory=dict)  # base priority of each step that waits
    competed: int = 0  # starts while a step of a worse base priority waited
    waits: list[Span] = field(default_factory=list)  # while somebody waited
    since: int = 0

    def enter(self, task: str, priority: int, at: int) -> None:
        if not self.waiting:
            self.since = at
        self.waiting[task] = priority

    def start(self, task: str, place: str, at: int) -> None:
        """No step starts at a priority while one of a better base priority waits for the same service."""
        del self.waiting[task]
        better = [other for other, base in self.waiting.items() if base < int(place[0])]
        assert not better, f"{task} started as {place} though {better} waited"
        self.competed += any(base > int(place[0]) for base in self.waiting.values())
        if not self.waiting:
            self.waits.append((self.since, at))


def replay(events: list[dict[str, Any]]) -> dict[str, Queue]:
    """All queues, by service."""
    queues: dict[str, Queue] = defaultdict(Queue)
    kinds: dict[str, tuple[str, int]] = {}
    for event in events:
        task, detail, at = event["task"], event["detail"], event["at"]
        if event["act"] == "submit":
            kinds[task] = detail["type"].removeprefix("service:"), detail["priority"]
        service, priority = kinds[task]
        if event["to"] == "queued" and event["from"] != "queued":
            queues[service].enter(task, priority, at)
        elif event["act"] == "claim":
            queues[service].start(task, detail["place"], at)
    return queues


def utilisation(queue: Queue, jobs: list[Job], events: list[dict[str, Any]], service: str) -> float:
    """Of the time in which steps waited for it, the share in which the service was busy, by its own watch.

    A call lasted as long as the service reports, and ended when its result was recorded.
    """
    recorded = {event["task"]: event["at"] for event in events if event["act"] == "complete"}
    steps = [step for job in jobs for step in job.steps if step.name == service and step.result]
    busy = 0
    for step in steps:
        assert step.result
        end = recorded[step.task_id]
        begin = end - step.result["metrics"]["execution_time_ms"]
        busy += sum(max(0, min(end, last) - max(begin, first)) for first, last in queue.waits)
    return busy / sum(last - first for first, last in queue.waits) / LIMITS[service]


async def submit(gateway: str, dice: random.Random, count: int) -> dict[str, str]:
    """The plan of each job, by its id."""
    room, plans = asyncio.Semaphore(AT_ONCE), {}

    async def one(http: httpx.AsyncClient, number: int, plan: str, feature: str) -> None:
        body = {
            "user_id": f"user_{plan}_{number}",
            "feature_name": feature,
            "input_data": {"prompt": f"number {number}"},
        }
        async with room:
            answer = await http.post("/api/v1/jobs", json=body)
        assert answer.status_code == 201, answer.text
        plans[answer.json()["job_id"]] = plan

    chosen = [dice.choices(list(choice), list(choice.values()), k=count) for choice in (PLANS, FEATURES)]
    async with httpx.AsyncClient(base_url=gateway, timeout=30, trust_env=False) as http:
        await asyncio.gather(*(one(http, *call) for call in zip(range(count), *chosen, strict=True)))
    return plans


async def play(compose: ComposeStack, store: Store, seed: int, *, jobs: int, faster: float) -> dict[str, Any]:
    """What happened; fails when a job did not complete, a service had too much, or a worse one went first."""
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(endpoints(compose, faster))
        await stack.enter_async_context(compose.running("priority_service"))
        await stack.enter_async_context(compose.running("gateway", "--processes", "2"))
        await answers(compose.url("priority_service") + "/users/user_pro_1/priority")
        await answers(compose.url("gateway") + "/readyz")
        plans = await submit(compose.url("gateway"), random.Random(seed), jobs)
        found: list[Job] = []

        async def all_have_ended() -> bool:
            found[:] = [await store.jobs.get(job_id) for job_id in plans]
            return all(job.completed_at for job in found)

        await wait_until(all_have_ended, 300, "all jobs have ended")
        stats = {name: await answers(compose.url(name) + "/stats") for name in ENDPOINTS}
    assert {job.status for job in found} == {JobStatus.COMPLETED}, [job.error for job in found if job.error]
    for name, limit in LIMITS.items():
        assert stats[name]["most"] <= limit and stats[name]["refused"] == 0, stats
    events = await events_of(store)
    queues = replay(events)
    return {
        "seed": seed,
        "speedup": faster,
        "jobs": jobs,
        "calls": sum(one["calls"] for one in stats.values()),
        "max_concurrent_calls": {
            name: {"found": stats[name]["most"], "limit": LIMITS[name]} for name in LIMITS
        },
        "starts_ahead_of_worse_priorities": sum(queue.competed for queue in queues.values()),
        "percent_busy_while_jobs_wait": {
            TIGHTEST: round(100 * utilisation(queues[TIGHTEST], found, events, TIGHTEST), 1)
        },
        "mean_job_seconds": _means(found, plans),
        "seconds": round(time.monotonic() - began),
    }


def _means(jobs: list[Job], plans: dict[str, str]) -> dict[str, float]:
    took: dict[str, list[int]] = defaultdict(list)
    for job in jobs:
        assert job.completed_at
        took[plans[job.job_id]].append(job.completed_at - job.queued_at)
    return {plan: round(sum(took[plan]) / len(took[plan]) / 1000, 1) for plan in PLANS if took[plan]}

"""Submits jobs of users on all plans, then shows what the endpoints do until the last job has ended."""

import argparse
import asyncio
import contextlib
import os
import random
from collections import Counter
from typing import Any

import httpx
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

PLANS = {"enterprise": 1, "pro": 3, "free": 6}  # of ten users
FEATURES = {"text_only": 6, "picture": 2, "story": 1, "full_pipeline": 1}  # of ten jobs
SUBJECTS = ("city", "forest", "harbour", "robot", "castle", "market")
ENDED = ("COMPLETED", "FAILED", "CANCELLED")
SERVICE = "service:"  # begins the names of the limits of services
LOOK_SECONDS = 0.5
START_SECONDS = 30  # for which the gateway may be unreachable at first
AT_ONCE = 20  # requests


class Jobs:
    """Those that were submitted: the plan of their user, and the status they had when last looked at."""

    def __init__(self, gateway: httpx.AsyncClient) -> None:
        self._gateway = gateway
        self._room = asyncio.Semaphore(AT_ONCE)
        self._plans: dict[str, str] = {}
        self._status: dict[str, str] = {}

    async def submit(self, count: int) -> None:
        await asyncio.gather(*(self._submit(number) for number in range(count)))

    async def _submit(self, number: int) -> None:
        plan, feature = one_of(PLANS), one_of(FEATURES)
        wanted = {
            "user_id": f"user_{plan}_{number}",
            "feature_name": feature,
            "input_data": {"prompt": f"a {random.choice(SUBJECTS)}, number {number}"},
        }
        async with self._room:
            answer = good(await self._gateway.post("/api/v1/jobs", json=wanted))
        self._plans[answer["job_id"]] = plan
        self._status[answer["job_id"]] = answer["status"]

    async def look(self) -> None:
        waiting = [job for job, status in self._status.items() if status not in ENDED]
        await asyncio.gather(*(self._look(job) for job in waiting))

    async def _look(self, job_id: str) -> None:
        async with self._room:
            answer = good(await self._gateway.get(f"/api/v1/jobs/{job_id}"))
        self._status[job_id] = answer["status"]

    @property
    def all_ended(self) -> bool:
        return all(status in ENDED for status in self._status.values())

    @property
    def all_completed(self) -> bool:
        return all(status == "COMPLETED" for status in self._status.values())

    def table(self) -> Table:
        counts = Counter((self._plans[job], status) for job, status in self._status.items())
        table = Table("plan", "jobs", "waiting", "running", "completed", "failed", title="Jobs")
        for plan in PLANS:
            found = [counts[plan, status] for status in ("PENDING", "RUNNING", "COMPLETED", "FAILED")]
            table.add_row(plan, str(sum(found)), *map(str, found))
        return table


async def ready(gateway: httpx.AsyncClient) -> None:
    """Until the gateway listens: it may have been started together with this program."""
    for _ in range(round(START_SECONDS / LOOK_SECONDS)):
        with contextlib.suppress(httpx.TransportError):
            if (await gateway.get("/readyz")).is_success:
                return
        await asyncio.sleep(LOOK_SECONDS)


async def services(gateway: httpx.AsyncClient) -> Table:
    table = Table("endpoint", "in use", "limit", "waiting", title="Endpoints")
    for limit in good(await gateway.get("/api/v1/limits"))["limits"]:
        if limit["name"].startswith(SERVICE):
            facts = (limit["active"], limit["limit"], limit["waiting"])
            table.add_row(limit["name"].removeprefix(SERVICE), *map(str, facts))
    return table


class Refused(Exception):
    """The gateway says no."""


def good(answer: httpx.Response) -> Any:
    if answer.is_error:
        raise Refused(f"the gateway answered {answer.status_code}: {answer.text}")
    return answer.json()


def one_of(weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]


async def run(url: str, key: str, count: int) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=30, trust_env=False) as gateway:
        await ready(gateway)
        jobs = Jobs(gateway)
        await jobs.submit(count)
        with Live(console=Console(), auto_refresh=False) as live:
            while True:
                await jobs.look()
                live.update(Group(await services(gateway), jobs.table()), refresh=True)
                if jobs.all_ended:
                    return 0 if jobs.all_completed else 1
                await asyncio.sleep(LOOK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=os.environ.get("FAIRLEAD_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--key", default=os.environ.get("FAIRLEAD_KEY", ""))
    parser.add_argument("--jobs", type=int, default=200)
    given = parser.parse_args()
    try:
        raise SystemExit(asyncio.run(run(given.url, given.key, given.jobs)))
    except Refused as problem:
        raise SystemExit(str(problem)) from None
    except httpx.TransportError as problem:
        raise SystemExit(f"{given.url} cannot be reached: {problem or type(problem).__name__}") from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

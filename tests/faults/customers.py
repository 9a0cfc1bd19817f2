"""Thousands of customers, each with a limit of one task at a time, served over HTTP by real workers."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from fairlead.store.store import Store
from tests.faults.fleet import Fleet, with_lease
from tests.faults.gateways import TASKS, Servers
from tests.faults.history import History, Judge
from tests.waiting import wait_until

CALM = with_lease(30)  # nobody is killed here: a busy machine must not look as if somebody was
TASKS_EACH = 3
CAPACITY = 8
BATCH = 500  # tasks of one request
CLIENTS = 4  # that send at once
LONGEST_SECONDS = 0.01  # of a handler
PATIENCE = 900  # seconds until all have ended


@dataclass
class Crowd:
    """Submits the tasks of all customers; those of one customer come one after another.

    So they would run at once, were it not for the limit.
    """

    url: str
    bodies: list[dict[str, Any]]
    accepted: dict[str, str] = field(default_factory=dict)  # the customer of each task, by its id
    refused: list[Any] = field(default_factory=list)

    async def submit(self) -> None:
        batches = iter([self.bodies[at : at + BATCH] for at in range(0, len(self.bodies), BATCH)])
        async with httpx.AsyncClient(base_url=self.url, timeout=60, trust_env=False) as http:
            await asyncio.gather(*(self._send(http, batches) for _ in range(CLIENTS)))

    async def _send(self, http: httpx.AsyncClient, batches: Iterator[list[dict[str, Any]]]) -> None:
        for bodies in batches:
            answer = await http.post(f"{TASKS}/batch", json={"tasks": bodies})
            assert answer.is_success, answer.text
            for body, one in zip(bodies, answer.json()["tasks"], strict=True):
                if "error" in one:
                    self.refused.append(one)
                else:
                    self.accepted[one["task_id"]] = body["parameters"]["customer"]


def bodies_for(customers: int, record: Path, dice: random.Random, limited: bool) -> list[dict[str, Any]]:
    names = [f"customer-{number}" for number in range(customers)]
    dice.shuffle(names)
    return [
        {
            "task_type": "serve",
            "parameters": {
                "record": str(record),
                "customer": name,
                "seconds": round(dice.uniform(0, LONGEST_SECONDS), 4),
            },
            **({"concurrency_group": name, "concurrency_limit": 1} if limited else {}),
        }
        for name in names
        for _ in range(TASKS_EACH)
    ]


def twice_at_once(lines: Iterable[str]) -> set[str]:
    """The customers that had two runs at once, by the handlers' own record.

    All append to one file: the order of its lines is the order in which runs began and ended.
    """
    running, found = Counter[str](), set[str]()
    for line in lines:
        what, customer, _ = line.split()
        running[customer] += 1 if what == "began" else -1
        if running[customer] > 1:
            found.add(customer)
    return found


async def play(
    store: Store, fleet: Fleet, history: History, seed: int, *, customers: int, limited: bool
) -> dict[str, Any]:
    """On a fleet that is at work; fails when something of the promise is broken."""
    record = fleet.folder / f"record-{'limited' if limited else 'free'}"
    known, first = len(history.ended), len(history.events)
    where = (*fleet.where, "--config", str(fleet.folder / "fleet.toml"))
    async with Servers(where, fleet.folder, 1) as servers:
        crowd = Crowd(servers.all[0].url, bodies_for(customers, record, random.Random(seed), limited))
        began = time.monotonic()
        await crowd.submit()
        submitted = time.monotonic() - began
        assert not crowd.refused, crowd.refused[:10]
        await wait_until(
            lambda: len(history.ended) - known >= len(crowd.accepted), PATIENCE, "every task has ended"
        )
        seconds = time.monotonic() - began
    lines = record.read_text().splitlines()
    found = twice_at_once(lines)
    assert not (limited and found), f"{len(found)} customers had two runs at once: {sorted(found)[:10]}"
    _check_log(history, first, crowd.accepted, limited)
    _check_record(lines, crowd.accepted)
    left = await store.limits.all()
    assert not left, f"{len(left)} limits are left: {left[:10]}"
    return {
        "tasks": len(crowd.accepted),
        "refused": len(crowd.refused),
        "customers_with_two_tasks_at_once": len(found),
        "limits_left": len(left),
        "submit_seconds": round(submitted, 1),
        "total_seconds": round(seconds, 1),
        "tasks_per_second": round(len(crowd.accepted) / seconds),
    }


def _check_log(history: History, first: int, accepted: dict[str, str], limited: bool) -> None:
    """The store's own record: each task started once and completed, under the limit of its customer."""
    needs = {task: {customer: 1} if limited else {} for task, customer in accepted.items()}
    verdict = Judge(dict.fromkeys(accepted.values(), 1), needs).judge(history.events[first:])
    assert not verdict.faults, verdict.faults[:10]
    assert verdict.ends == {"completed": len(accepted)}, verdict.ends
    assert verdict.starts == len(accepted), f"{verdict.starts} starts of {len(accepted)} tasks"


def _check_record(lines: list[str], accepted: dict[str, str]) -> None:
    """The handlers' record: each task began once and ended once."""
    seen = Counter(lines)
    should = {
        f"{what} {customer} {task}" for task, customer in accepted.items() for what in ("began", "ended")
    }
    assert seen.keys() == should, sorted(seen.keys() ^ should)[:10]
    assert max(seen.values()) == 1, seen.most_common(10)

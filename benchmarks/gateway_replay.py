"""Traces of real gateways, replayed faster through a real gateway: were the estimates true?

Requests are submitted over HTTP at their times, and a real worker runs each as long as it ran then. Times of
the trace, and those after which tasks are promoted, are divided by the same factor. Results are in seconds of
the replay, in which the estimator is as much too slow as everything else is too fast.
"""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx

from benchmarks.bench import NO_AOF, Bench, describe
from benchmarks.figures import Figure, Outcome, percentile
from benchmarks.gateway_judge import Given, Past, judge_estimates, judge_order
from benchmarks.gateway_order import Start, compare_with_simulation, starts_of
from benchmarks.gateway_traces import Part, Wanted, wanted
from benchmarks.http import served
from fairlead.store.store import Store
from tests.commands import FAIRLEAD

SETTLE_SECONDS = 4.0  # until there is a worker, and a first forecast
DRAIN_SECONDS = 120.0

Answer = Mapping[str, Any]


async def run(bench: Bench) -> Outcome:
    outcome = Outcome()
    found = wanted("gateway_replay", bench)
    with bench.serve(*NO_AOF) as url:
        outcome.servers["store"] = await describe(url)
        for part in found:
            await _replay(part, url, outcome)
    return outcome


async def _replay(part: Part, url: str, outcome: Outcome) -> None:
    namespace = f"replay-{os.getpid()}-{part.requests[0].task_type}"
    outcome.notes.append(
        f"{part.name}: {part.about}, {part.faster} times as fast, {len(part.requests)} tasks"
    )
    command = [FAIRLEAD, "server", "--engine", url, "--namespace", namespace, "--port", "0"]
    with tempfile.TemporaryDirectory() as folder, served(command, folder, _promotions(part.faster)) as server:
        _, address = server
        worker = [FAIRLEAD, "worker", "benchmarks.gateway_app:fl", "--url", address]
        process = subprocess.Popen([*worker, "--capacity", str(part.slots)], stdout=subprocess.DEVNULL)
        try:
            answers, late = await _played(part, address)
        finally:
            process.terminate()
            process.wait()
        store = Store.connect(url, namespace)
        try:
            started = await starts_of(store)
        finally:
            await store.close()
    _judge_harness(part, answers, late, started, outcome)
    judge_estimates(part.name, list(_given(part, answers, started)), outcome)
    judge_order(part.name, started, outcome)
    share = compare_with_simulation(part, started)
    outcome.figures.append(
        Figure(f"{part.name}: order", "starts as in the simulation", "share", [share], "more")
    )


def _promotions(faster: int) -> Mapping[str, str]:
    """The usual ones, as much sooner."""
    return {
        "FAIRLEAD_PROMOTION__LOW_TO_MEDIUM_SECONDS": str(600 / faster),
        "FAIRLEAD_PROMOTION__MEDIUM_TO_HIGH_SECONDS": str(1_200 / faster),
        "FAIRLEAD_SCHEDULING__HOLD_AFTER_SECONDS": str(30 / faster),
    }


async def _played(part: Part, address: str) -> tuple[list[Answer], list[float]]:
    """The answers to the submits, and how many ms late each was sent."""
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for name, limit in part.limits.items():
            (await http.put(f"/api/v1/limits/{name}", json={"limit": limit})).raise_for_status()
        await asyncio.sleep(SETTLE_SECONDS)
        loop, answers, late = asyncio.get_running_loop(), [], []
        begin = loop.time()
        for request in part.requests:
            due = begin + request.arrival / part.faster
            await asyncio.sleep(max(0, due - loop.time()))
            late.append(1000 * (loop.time() - due))
            answers.append(asyncio.ensure_future(_submit(http, request, part.faster)))
        submitted = await asyncio.gather(*answers)
        await _drained(http)
        return submitted, late


async def _submit(http: httpx.AsyncClient, request: Wanted, faster: int) -> Answer:
    body = {
        "task_type": request.task_type,
        "parameters": {"seconds": request.duration / faster},
        "priority": request.priority,
        "user_id": request.user,
        "limits": request.limits,
        "size_hint": request.size_hint or None,
    }
    answer = await http.post("/api/v1/tasks", json=body)
    answer.raise_for_status()
    submitted: Answer = answer.json()
    return submitted


async def _drained(http: httpx.AsyncClient) -> None:
    end = asyncio.get_running_loop().time() + DRAIN_SECONDS
    while asyncio.get_running_loop().time() < end:
        stats = (await http.get("/api/v1/queue/stats")).json()
        if not stats["workers"]["used_capacity"] and not any(q["depth"] for q in stats["queues"].values()):
            return
        await asyncio.sleep(0.2)
    raise SystemExit("gateway_replay: tasks still wait, long after the last of them came")


def _judge_harness(
    part: Part, answers: Sequence[Answer], late: Sequence[float], starts: Sequence[Start], outcome: Outcome
) -> None:
    """What is not of the gateway: if it is as long as the waits, the replay is too fast for the machine."""
    by_id = {start.task_id: start for start in starts}
    pairs = ((by_id[answer["task_id"]], one) for answer, one in zip(answers, part.requests, strict=True))
    longer = [start.ended - start.at - 1000 * one.duration / part.faster for start, one in pairs]
    for name, values in (("submitted late", late), ("runs longer than wanted", longer)):
        for percent in (50, 99):
            case = f"{part.name}: harness"
            outcome.figures.append(Figure(case, f"{name}, p{percent}", "ms", [percentile(values, percent)]))


def _given(part: Part, answers: Sequence[Answer], starts: Sequence[Start]) -> Iterator[Given]:
    """Of tasks that waited, once a run had ended: before, nobody could guess."""
    units = {answer["task_id"]: request.units for answer, request in zip(answers, part.requests, strict=True)}
    past = Past((start.ended, start.ended - start.at, units[start.task_id]) for start in starts)
    by_id = {start.task_id: start for start in starts}
    for answer in answers:
        start, estimate = by_id[answer["task_id"]], answer["estimate"]
        naive = past.guess(start.arrival, answer["queue_position"] - 1, part.slots)
        if estimate is None or start.at == start.arrival or naive is None:
            continue
        waited = (start.at - start.arrival) / 1000
        yield Given(answer["priority"], estimate["p50_seconds"], estimate["p90_seconds"], naive, waited)

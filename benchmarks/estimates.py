"""What estimates cost: a forecast of a long queue, reading one, and what a gateway beside it notices.

A quarter of the tasks needs a limit of two slots, a quarter one of fifty, and they are of 100 users. Reads
are measured on the same queue with and without a forecast, the gateway with its estimator at work and
stopped, in turns.
"""

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence

import httpx

from benchmarks.bench import HOUR, NO_AOF, SETTINGS, Bench, describe, scripts_ran, server_cpu, small_task
from benchmarks.figures import Figure, Outcome, percentile
from benchmarks.http import served
from fairlead.estimates.forecast import forecast
from fairlead.model.reports import Completed
from fairlead.model.task import MOST_PER_CALL, NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.upkeep.estimator import TTL_MS, Estimator
from tests.commands import FAIRLEAD

WORKERS, CAPACITY = 4, 5
WHO = "bench"
CALLS = 100  # between two looks at the server's counters


async def run(bench: Bench) -> Outcome:
    sizes, rounds = ((500,), 2) if bench.quick else ((1_000, 10_000, 100_000), 10)
    outcome = Outcome(notes=[f"{rounds} rounds; {WORKERS * CAPACITY} slots"])
    for size in sizes:
        with bench.serve(*NO_AOF) as url:
            outcome.servers["every queue"] = await describe(url)
            async with bench.store(url) as store:
                await _fill(store, size)
                await _refresh(store, size, rounds, outcome)
                await _read(store, size, rounds, outcome)
            if size == sizes[-1]:
                await _gateway(bench, url, size, rounds, outcome)
    case = f"{sizes[-1]:,} queued"
    for act in ("submit", "explain"):
        name = f"{act}: with a forecast to without one"
        outcome.compare(name, (case, f"{act}, server"), (f"{case}, no forecast", f"{act}, server"))
    return outcome


async def _fill(store: Store, size: int) -> None:
    """Some runs have ended, 20 run, and the others wait."""
    chance = random.Random(1)
    await store.limits.set("gpu", Slots(limit=2))
    await store.limits.set("wide", Slots(limit=50))
    for number in range(WORKERS):
        await store.workers.register(f"w{number}", capacity=CAPACITY)
    for start in range(0, size, MOST_PER_CALL):
        await store.submit(*(_task(chance) for _ in range(start, min(start + MOST_PER_CALL, size))))
    for number in range(WORKERS):
        ended = (await store.claim(f"w{number}", want=CAPACITY, lease_ms=HOUR)).tasks
        await store.complete(f"w{number}", *(Completed(task.task_id, task.fence) for task in ended))
        await store.claim(f"w{number}", want=CAPACITY, lease_ms=HOUR)


def _task(chance: random.Random) -> NewTask:
    limits = chance.choice([{"gpu": 1}, {"wide": 1}, {}, {}])
    priority, user = chance.choice(["high", "medium", "low"]), f"u{chance.randrange(100)}"
    return small_task(priority=priority, limits=limits, user_id=user)


async def _refresh(store: Store, size: int, rounds: int, outcome: Outcome) -> None:
    await store.upkeep.elect(WHO, HOUR)
    estimator = Estimator(store, WHO)
    await estimator.begin()
    while await estimator.learn():
        pass
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        before, used = await server_cpu(store.connection.client), time.process_time()
        picture = await store.estimates.picture()
        fields = forecast(picture, estimator.knowledge)
        assert await store.estimates.save_forecast(WHO, fields, TTL_MS)
        ours.append(time.process_time() - used)
        theirs.append(1000 * (await server_cpu(store.connection.client) - before))
    case = f"{size:,} queued"
    outcome.figures += [
        Figure(case, "forecast, estimator CPU", "s", ours),
        Figure(case, "forecast, server CPU", "ms", theirs),
    ]


async def _read(store: Store, size: int, rounds: int, outcome: Outcome) -> None:
    """One by one, in turns with and without a forecast."""
    chance, key = random.Random(2), store.connection.keys.key("curves")
    client = store.connection.client
    saved, seen = await client.dump(key), dict[tuple[str, str], list[float]]()
    for _ in range(rounds):
        for case in (f"{size:,} queued", f"{size:,} queued, no forecast"):
            await client.delete(key)
            if "no" not in case:
                await client.restore(key, 0, saved)
            tasks = [_task(chance) for _ in range(CALLS)]
            before = await scripts_ran(client)
            for task in tasks:
                await store.submit_one(task)
            between = await scripts_ran(client)
            for task in tasks:
                await store.explain(task.task_id, brief=True)
            after = await scripts_ran(client)
            for act, one, other in (("submit", before, between), ("explain", between, after)):
                seen.setdefault((case, act), []).append((other[0] - one[0]) / (other[1] - one[1]))
    outcome.figures += [Figure(case, f"{act}, server", "us", values) for (case, act), values in seen.items()]


async def _gateway(bench: Bench, url: str, size: int, rounds: int, outcome: Outcome) -> None:
    """One client submits and cancels a task after the other."""
    namespace, waits = f"bench-{os.getpid()}-gateway", dict[str, list[list[float]]]()
    async with Store.connect(url, namespace, SETTINGS) as store:
        await _fill(store, size)
    command = [FAIRLEAD, "server", "--engine", url, "--namespace", namespace, "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        served(command, folder) as (pid, address),
        httpx.Client(base_url=address, timeout=30) as http,
    ):
        child = _child_of(pid)
        for _ in range(rounds):
            for case in ("estimator at work", "estimator stopped"):
                with _stopped(child) if "stopped" in case else contextlib.nullcontext():
                    waits.setdefault(case, []).append(_calls(http, 0.2 if bench.quick else 4.0))
    for case, of_rounds in waits.items():
        for percent in (50, 99):
            values = [1000 * percentile(some, percent) for some in of_rounds]
            name = f"gateway, {size:,} queued, {case}"
            outcome.figures.append(Figure(name, f"submit p{percent}", "ms", values))


def _calls(http: httpx.Client, seconds: float) -> Sequence[float]:
    taken, end = [], time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        answer = http.post("/api/v1/tasks", json={"task_type": "echo", "priority": "high"}).raise_for_status()
        taken.append(time.perf_counter() - begin)
        http.delete(f"/api/v1/tasks/{answer.json()['task_id']}").raise_for_status()
    return taken


def _child_of(pid: int) -> int:
    """The estimator of this server, when it is there."""
    while True:
        found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
        if found.stdout:
            return int(found.stdout.split()[0])
        time.sleep(0.1)


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)

"""How long a scrape of `/metrics` takes with many limits, and what it costs the server.

200 limits have series of their own, with a histogram each. The sums of the others are read again every 15
seconds, by the scrape after that: the rounds are spread over that time, so the slowest scrapes include it.
"""

import http.client
import tempfile
import time
from collections.abc import Iterator

from benchmarks.bench import NO_AOF, WORKER, Bench, cpu_of, describe, register
from benchmarks.figures import Check, Figure, Outcome, percentile
from benchmarks.http import served
from fairlead.model.task import MOST_PER_CALL, NewTask
from fairlead.settings import LimitSettings, Slots
from fairlead.store.metrics import MOST_LIMITS
from fairlead.store.store import Store
from tests.commands import FAIRLEAD

FEW = 10
TARGET_MS = 10
PAUSE = 0.2  # seconds between two scrapes


async def run(bench: Bench) -> Outcome:
    many, rounds, scrapes = (300, 1, 3) if bench.quick else (10_000, 5, 20)
    outcome = Outcome(notes=["one server process, no AOF; the answer is read whole by one client"])
    with tempfile.TemporaryDirectory() as folder:
        for limits in (FEW, many):
            with bench.serve(*NO_AOF) as url:
                outcome.servers["store"] = await describe(url)
                async with bench.store(url) as store:
                    await _use_limits(store, limits)
                    namespace = store.connection.keys.namespace
                    command = [FAIRLEAD, "server", "--engine", url, "--namespace", namespace, "--port", "0"]
                    with served(command, folder, {"FAIRLEAD_ESTIMATES__ENABLED": "false"}) as server:
                        outcome.figures += _scrape(f"{limits:,} limits", server, rounds, scrapes)
    median = outcome.find(f"{many:,} limits", P50).median
    outcome.checks.append(
        Check(f"{many:,} limits", f"p50 < {TARGET_MS} ms", median < TARGET_MS, f"{median:.1f} ms")
    )
    return outcome


P50, P99, CPU, SIZE = "scrape p50", "scrape p99", "server CPU", "answer"


def _scrape(case: str, server: tuple[int, str], rounds: int, scrapes: int) -> Iterator[Figure]:
    pid, address = server
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    size = _get(connection)[1]  # the first reads the sums of all others
    times: list[list[float]] = []
    cpu: list[float] = []
    for _ in range(rounds):
        before, took = cpu_of(pid), []
        for _ in range(scrapes):
            took.append(_get(connection)[0])
            time.sleep(PAUSE)
        times.append(took)
        cpu.append((cpu_of(pid) - before) / scrapes * 1e3)
    yield Figure(case, P50, "ms", [percentile(one, 50) for one in times])
    yield Figure(case, P99, "ms", [percentile(one, 99) for one in times])
    yield Figure(case, CPU, "ms/scrape", cpu)
    yield Figure(case, SIZE, "KiB", [size / 1024])


def _get(connection: http.client.HTTPConnection) -> tuple[float, int]:
    """Milliseconds, and bytes."""
    began = time.perf_counter()
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return (time.perf_counter() - began) * 1e3, len(body)


async def _use_limits(store: Store, count: int) -> None:
    """Each is used by a task, so that as many as possible have series of their own; half are full."""
    await store.open()
    names = [f"limit-{number:05}" for number in range(count)]
    for start in range(0, count, MOST_PER_CALL):
        some = names[start : start + MOST_PER_CALL]
        limits: dict[str, LimitSettings] = {
            name: Slots(limit=1 + index % 2) for index, name in enumerate(some)
        }
        await store.declare("code", {}, limits)
        await store.submit(*(NewTask(task_type="echo", limits={name: 1}) for name in some))
    await register(store)
    want = min(count, 2 * MOST_LIMITS)
    while want > 0:
        tasks = (await store.claim(WORKER, want)).tasks
        want -= len(tasks)

"""Traces of real gateways on a virtual clock: were estimates true, and does the store do as the simulator?

Requests are submitted over HTTP to the routes of a gateway in this process. The store is a real one, and so
is the estimator. The clock leaps from event to event, so nothing comes late, and starts can be compared with
those of the simulator to the millisecond. There is a forecast every two seconds, as far as a submit reads it.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence

import httpx

from benchmarks.bench import NO_AOF, NO_BOUNDS, Bench, describe
from benchmarks.figures import Check, Figure, Outcome
from benchmarks.gateway_judge import Given, Past, judge_estimates, judge_order
from benchmarks.gateway_order import share_in_order, starts_of
from benchmarks.gateway_traces import Part, Wanted, wanted
from benchmarks.virtual_clock import AWAKE, FOR_EVER_MS, Answer, Played, VirtualClock, played, simulated
from fairlead.api.batching import SubmitBatcher
from fairlead.api.failed_keys import FailedKeys
from fairlead.api.gateway import Gateway
from fairlead.api.live.connections import Connections
from fairlead.api.polls import Polls
from fairlead.api.server import make_app
from fairlead.settings import Outbox, Settings
from fairlead.store.access.key_ring import KeyRing
from fairlead.store.store import Store
from fairlead.testing import FakeClock
from fairlead.upkeep.estimator import EVERY_SECONDS, KEPT_SECONDS, Estimator

WHO = "benchmark"
SETTINGS = Settings(admission=NO_BOUNDS, worker=AWAKE, outbox=Outbox(max_events=1_000_000))
TIMEOUT_SECONDS = 30 * 86_400  # no run of a trace is cut off
MOST_FORECASTS = 3_000


async def run(bench: Bench) -> Outcome:
    outcome = Outcome()
    found = wanted("virtual_replay", bench, virtual=True)
    with bench.serve(*NO_AOF) as url:
        outcome.servers["store"] = await describe(url)
        for part in found:
            async with bench.store(url, SETTINGS) as store:
                await _replay(part, store, outcome)
    return outcome


async def _replay(part: Part, store: Store, outcome: Outcome) -> None:
    clock, tasks = FakeClock(), played(part.requests)
    store.clock = clock
    await store.upkeep.elect(WHO, FOR_EVER_MS)
    forecaster = Forecaster(store, clock)
    begin = clock.now_ms
    async with _client(store) as http:
        for name, limit in part.limits.items():
            (await http.put(f"/api/v1/limits/{name}", json={"limit": limit})).raise_for_status()

        async def submit(one: Wanted) -> Answer:
            return await _submit(http, one)

        driven = VirtualClock(store, clock, tasks, part.slots)
        await driven.run(submit, forecaster.forecast, forecast_instants([task.arrival for task in tasks]))
    outcome.notes.append(
        f"{part.name}: {part.about}, {len(tasks)} tasks, {forecaster.made} forecasts, "
        f"{sum(task.started == task.arrival for task in tasks)} tasks started at once and are left out"
    )
    judge_estimates(part.name, list(_given(part, tasks)), outcome, errors=True)
    started = await starts_of(store)
    assert [start.at - begin for start in started] == [task.started for task in tasks]
    judge_order(part.name, started, outcome)
    _compare(part, driven, outcome)


class Forecaster:
    """The estimator, at instants that the driver chooses."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self._estimator, self._clock = Estimator(store, WHO), clock
        self._kept_at, self.made = clock.now_ms, 0

    async def forecast(self) -> None:
        while await self._estimator.learn():
            pass
        if self._clock.now_ms - self._kept_at >= KEPT_SECONDS * 1000:
            self._kept_at = self._clock.now_ms
            assert await self._estimator.keep()
        assert await self._estimator.forecast()
        self.made += 1


def forecast_instants(arrivals: Sequence[int]) -> list[int]:
    """The last one before each arrival, or an even part of these."""
    every = round(EVERY_SECONDS * 1000)
    instants = sorted({arrival // every * every for arrival in arrivals})
    step = max(1.0, len(instants) / MOST_FORECASTS)
    return [instants[int(count * step)] for count in range(int(len(instants) / step))]


@contextlib.asynccontextmanager
async def _client(store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """Of a gateway in this process, without the works of a server that go by the real time."""
    async with SubmitBatcher(store) as batcher, Polls(store) as polls, KeyRing(store.api_keys) as keys:
        gateway = Gateway(
            store,
            batcher,
            polls,
            keys,
            priorities=None,
            asks_for_keys=False,
            failed_keys=FailedKeys(0),
            connections=Connections(1),
        )
        transport = httpx.ASGITransport(app=make_app(gateway))
        async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as http:
            yield http


async def _submit(http: httpx.AsyncClient, one: Wanted) -> Answer:
    body = {
        "task_type": one.task_type,
        "priority": one.priority,
        "user_id": one.user,
        "limits": one.limits,
        "size_hint": one.size_hint or None,
        "timeout_seconds": TIMEOUT_SECONDS,
    }
    answer = await http.post("/api/v1/tasks", json=body)
    answer.raise_for_status()
    submitted: Answer = answer.json()
    return submitted


def _given(part: Part, tasks: Sequence[Played]) -> Iterator[Given]:
    """Of tasks that waited, once a run had ended: before, nobody could guess."""
    past = Past(
        (task.started + task.duration, task.duration, task.wanted.units)
        for task in tasks
        if task.started is not None
    )
    for task in tasks:
        estimate = task.answer["estimate"]
        naive = past.guess(task.arrival, task.answer["queue_position"] - 1, part.slots)
        if task.started is None or task.started == task.arrival or naive is None or estimate is None:
            continue
        waited = (task.started - task.arrival) / 1000
        yield Given(task.wanted.priority, estimate["p50_seconds"], estimate["p90_seconds"], naive, waited)


def _compare(part: Part, driven: VirtualClock, outcome: Outcome) -> None:
    expected = simulated(driven.tasks, part.slots, part.limits, SETTINGS)
    same = sum(driven.tasks[number].started == at for number, at in expected)
    in_order = share_in_order(driven.order, [number for number, _ in expected])
    outcome.checks.append(Check(part.name, "all tasks started", len(driven.order) == len(driven.tasks)))
    case, count = f"{part.name}: order", len(driven.tasks)
    outcome.figures += [
        Figure(case, "starts at the instant of the simulation", "share", [same / count], "more"),
        Figure(case, "starts as in the simulation", "share", [in_order], "more"),
    ]

"""The forecast as people see it: at each limit who holds it until when, and who is expected to start next."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from fairlead.estimates.curve import quantiles
from fairlead.estimates.forecast import REPLICAS, Chance, Played
from fairlead.estimates.picture import BARE, Run
from fairlead.estimates.reading import corrected
from fairlead.estimates.scene import Known
from fairlead.estimates.tracks import MOST_TRACKS, Placed, Stay, placed
from fairlead.model.forecast import (
    MOST_RUNS,
    ForecastRun,
    LimitForecast,
    Outlook,
    Pressure,
    Track,
    TypeLoad,
)
from fairlead.model.priority import Priority
from fairlead.model.tenants import cut_name

MOST_KEPT_LIMITS, MOST_KEPT_RUNS = 300, 3_000  # of a forecast
MOST_PRESSURES, MOST_TYPES = 3_000, 1_000
WORKERS = ""  # instead of a limit: all slots of the workers
LEASE = "lease"  # instead of a priority: without a task


class Row(NamedTuple):
    """A run on the tracks of one limit."""

    holder: str
    run: ForecastRun


class Expected:
    """Makes this of each forecast, and remembers the tracks from one to the next."""

    def __init__(self) -> None:
        self._before: dict[str, Placed] = {}

    def of(self, played: Played) -> Outlook:
        """`WORKERS` first, then the limits with the longest waits."""
        queues, room = _Queues(played), MOST_KEPT_RUNS
        found, tracks = dict[str, LimitForecast](), dict[str, Placed]()
        names = queues.names()
        for name in names[:MOST_KEPT_LIMITS]:
            rows = queues.rows(name, min(MOST_RUNS, room))
            room -= len(rows)
            found[name], tracks[name] = queues.forecast_of(name, rows, self._before.get(name, {}))
        self._before = tracks
        pressures = {name: queues.pressure_of(name) for name in names[1 : 1 + MOST_PRESSURES]}
        return Outlook(limits=found, pressures=pressures, types=queues.types())


class _Queues:
    """Who holds and who waits for each limit of one forecast."""

    def __init__(self, played: Played) -> None:
        self._scene, self._starts, self._head = played.scene, played.starts, played.head
        self._picture = played.scene.picture
        self._chances = [Chance(self._scene, seed) for seed in range(REPLICAS)]
        self._quantiles = [quantiles(sorted(starts)) for starts in played.starts]
        self._facts = {task.task_id: task.facts for task in self._picture.waiting}
        self._held: dict[str, list[tuple[Run, int]]] = defaultdict(list)
        self._waited: dict[str, list[tuple[int, int]]] = defaultdict(list)  # the first to start first
        self._last: dict[str, float] = defaultdict(float)  # p50 of the last start, in ms
        self._waiting_by_priority: dict[str, Counter[str]] = defaultdict(Counter)
        self._find_holders()
        self._find_waiting()

    def names(self) -> list[str]:
        """Those that are paused wait for ever."""
        used = (self._held.keys() | self._waited.keys()) - {WORKERS}
        return [WORKERS, *sorted(used, key=lambda name: (-self._last[name], -self._waiting(name), name))]

    def rows(self, name: str, most: int) -> list[Row]:
        """What holds units, and what is expected to start first."""
        rows = [Row(run.holder, self._running(run, units)) for run, units in self._held[name][:most]]
        expected = (one for one in self._waited[name] if math.isfinite(self._quantiles[one[0]][1]))
        for number, units in islice(expected, most - len(rows)):
            rows.append(Row(self._scene.known[number].task_id, self._expected(number, units)))
        return rows

    def forecast_of(
        self, name: str, rows: Sequence[Row], before: Placed
    ) -> tuple[LimitForecast, dict[str, tuple[int, ...]]]:
        facts, waiting = self._facts_of(name), self._waiting(name)
        slots = facts["limit"] if facts["kind"] != "rate" and facts["limit"] <= MOST_TRACKS else 0
        stays = [Stay(holder, run.units, run.start_p50, run.end_p50, run.is_running) for holder, run in rows]
        tracks = placed(stays, slots, before)
        forecast = LimitForecast(
            **facts,
            waiting=waiting,
            tracks=tuple(_tracks(rows, tracks, slots)),
            more=max(0, waiting - sum(not run.is_running for _, run in rows)),
            last_start_p50=self._last_start(name) if waiting else None,
        )
        return forecast, tracks

    def pressure_of(self, name: str) -> Pressure:
        waiting, held = self._waiting_by_priority[name], Counter[str]()
        for run, units in self._held[name]:
            held[LEASE if run.holder.startswith(BARE) else _priority_of(run.facts).word] += units
        last = self._last_start(name) if waiting else None
        return Pressure(self._picture.at, dict(waiting), dict(held), last)

    def types(self) -> dict[str, TypeLoad]:
        """The busiest."""
        waiting, running = defaultdict[str, Counter[str]](Counter), Counter[str]()
        for known in self._scene.known:
            if known.stands_for:
                waiting[known.kind[0]][_class_of(known)] += known.stands_for
        running.update(run.facts["type"] for run in self._scene.runs if run.facts)
        load = Counter({name: counts.total() for name, counts in waiting.items()}) + running
        return {
            name: TypeLoad(dict(waiting[name]), running[name]) for name, _ in load.most_common(MOST_TYPES)
        }

    def _last_start(self, name: str) -> int | None:
        last = self._last[name]
        return self._picture.at + round(last) if math.isfinite(last) else None

    # Facts

    def _facts_of(self, name: str) -> dict[str, Any]:
        if name == WORKERS:
            capacity = sum(worker.capacity for worker in self._picture.workers)
            return {"name": "workers", "kind": "workers", "limit": capacity, "active": len(self._held[name])}
        known, (tenant, plain) = self._picture.limits[name], cut_name(name)
        size = int(known.get("limit") or known.get("burst") or 0)
        return {
            "name": plain,
            "tenant": tenant,
            "kind": known["kind"],
            "limit": size,
            "active": int(known.get("used") or 0),
            "paused": "paused" in known or not size,
        }

    def _waiting(self, name: str) -> int:
        if name == WORKERS:
            return sum(known.stands_for for known in self._scene.known)
        return int(self._picture.limits[name].get("waiting") or 0)

    def _find_holders(self) -> None:
        for run in self._scene.runs:
            if run.worker:
                self._held[WORKERS].append((run, 1))
            for name, units in self._scene.needs_of(run.needs) or ():
                self._held[name].append((run, units))

    def _find_waiting(self) -> None:
        tasks = [waiting.task for waiting in self._scene.snapshot.waiting if not waiting.task.is_probe]
        for task in sorted(tasks, key=lambda task: (*self._quantiles[task.number], task.number)):
            known = self._scene.known[task.number]
            for name, units in ((WORKERS, 1), *task.kind.needs):
                self._waiting_by_priority[name][_class_of(known)] += known.stands_for
                self._waited[name].append((task.number, units))
                self._last[name] = max(self._last[name], self._corrected(task.number)[0])

    # Runs

    def _running(self, run: Run, units: int) -> ForecastRun:
        at = self._picture.at
        end_p50, end_p90 = (at + round(self._scene.left_of(run, share)) for share in (0.5, 0.9))
        started = run.started or at
        ends: dict[str, Any] = {
            "start_p50": started,
            "start_p90": started,
            "end_p50": end_p50,
            "end_p90": end_p90,
        }
        if not run.holder.startswith(BARE):
            return ForecastRun(is_running=True, units=units, **ends, **_named(run.holder, run.facts))
        tenant, lease_id = cut_name(run.holder.removeprefix(BARE))
        return ForecastRun(is_running=True, units=units, **ends, tenant=tenant, lease_id=lease_id)

    def _expected(self, number: int, units: int) -> ForecastRun:
        starts, task_id = self._starts[number], self._scene.known[number].task_id
        ends = sorted(
            start + chance.single(number) for start, chance in zip(starts, self._chances, strict=True)
        )
        (raw_p50, raw_p90), (done_p50, done_p90) = self._quantiles[number], quantiles(ends)
        at, (p50, p90) = self._picture.at, self._corrected(number)
        end_p50 = p50 + done_p50 - raw_p50
        return ForecastRun(
            is_running=False,
            units=units,
            start_p50=at + round(p50),
            start_p90=at + round(p90),
            end_p50=at + round(end_p50),
            end_p90=at + round(max(end_p50, p90 + done_p90 - raw_p90)),
            **_named(task_id, self._facts[task_id]),
        )

    def _corrected(self, number: int) -> tuple[float, float]:
        """As in the estimate of this task."""
        p50, p90 = self._quantiles[number]
        if math.isinf(p90):
            return math.inf, math.inf
        return corrected(self._head, int(self._scene.known[number].place[0]), round(p50), round(p90))


def _named(task_id: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: facts.get(name) for name in ("job_id", "user_id", "tenant")}
    return names | {"task_id": task_id, "task_type": facts.get("type"), "priority": _priority_of(facts)}


def _priority_of(facts: Mapping[str, Any]) -> Priority:
    return Priority(int(facts.get("priority", Priority.MEDIUM)))


def _class_of(known: Known) -> str:
    """The priority at which it waits."""
    return Priority(int(known.place[0])).word


def _tracks(rows: Iterable[Row], tracks: Placed, slots: int) -> Iterator[Track]:
    on: dict[int, list[ForecastRun]] = {track: [] for track in range(slots)}
    for holder, run in rows:
        for track in tracks[holder]:
            on.setdefault(track, []).append(run)
    for track, runs in sorted(on.items()):
        yield Track(track, tuple(sorted(runs, key=lambda run: run.start_p50)))

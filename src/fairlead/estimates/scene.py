"""What a forecast is simulated from: the picture of a namespace, with probes that represent newcomers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from fairlead.estimates.arrivals import Arrival, Arrivals, Window, expected
from fairlead.estimates.curve import Point, sized
from fairlead.estimates.durations import Durations, RunKind
from fairlead.estimates.histogram import Distribution
from fairlead.estimates.picture import Picture, Run
from fairlead.model.priority import Priority
from fairlead.rules.fairness import USUAL, Ledger, stride_of
from fairlead.rules.limits import TIER, Limit, Rate, Slots
from fairlead.rules.values import Place, Policy, Tier, Worker
from fairlead.simulate.values import Kind, Needs, Running, Snapshot, Task, Waiting

WRITTEN_TIER = re.compile(r"([^=,]+)=(\d+)/(\d+)(%?)")
MOST_AUDIENCES, MOST_LIMITS = 100, 300  # with probes
ANY = {"*": ";"}  # the route of a type that was never submitted, for workers that serve all
STOPPING_MS = 2_000  # a cancelled run holds its units for a moment
NEVER = 1 << 40


@dataclass(frozen=True, slots=True)
class Known:
    """A task of the simulation that a curve passes through: one that waits, or a probe."""

    place: str
    tag: int
    seq: int
    curves: Sequence[str]  #: names of the curves that it is on
    stands_for: int  #: 0: a probe
    kind: RunKind
    task_id: str

    @property
    def position(self) -> tuple[str, int, int]:
        return self.place, self.tag, self.seq

    def point(self, rank: int, starts: Sequence[float]) -> Point:
        return Point(self.tag, self.seq, rank, self.stands_for, starts)


class Arriving(NamedTuple):
    """What tasks that are expected have in common."""

    kind: Kind
    priority: int
    account: str
    durations: Distribution


class Scene:
    """`known` are the tasks of the simulation by number; those that arrive later have greater ones."""

    def __init__(self, picture: Picture, durations: Durations, arrivals: Arrivals) -> None:
        self.picture, self._durations = picture, durations
        self._kinds: dict[object, Kind] = {}
        self.policy = _policy(picture.policy)
        self.limits = {name: _limit(known) for name, known in picture.limits.items()}
        self.known: list[Known] = []
        self._waiting: list[Waiting] = []
        self.runs = [run for run in picture.running if self.needs_of(run.needs) is not None]
        self._like_arrivals: dict[Arrival, Arriving | None] = {}
        self._arriving = [self._likely(window) for window in arrivals.windows(picture.at)]
        self._add_waiting()
        self._add_probes()

    @cached_property
    def snapshot(self) -> Snapshot:
        picture, meta = self.picture, self.picture.meta
        workers = {worker.worker_id for worker in picture.workers}
        running = [self._running(number, run, workers) for number, run in enumerate(self.runs)]
        return Snapshot(
            now=picture.at,
            policy=self.policy,
            workers=[
                _worker(one.worker_id, one.profile, one.capacity, one.reserve) for one in picture.workers
            ],
            limits=self.limits,
            paused_types=picture.paused,
            waiting=self._waiting,
            running=running,
            ledgers={place: self._ledger(place) for place in Place},
            streaks={priority: int(meta.get(f"streak_{priority:d}", 0)) for priority in Priority},
            jobs_open="jobs_open" in meta,
            last_seq=int(meta.get("seq", 0)) + len(self.known),
        )

    # How long things take

    def spread(self, number: int) -> Distribution:
        return self._durations.of(self.known[number].kind)

    def left_of(self, run: Run, share: float) -> int:
        """What is left of a run, by the share of such runs that end sooner."""
        elapsed, most = max(0, self.picture.at - run.started), max(0, run.until - self.picture.at)
        if not run.facts:
            return most
        if run.stops:
            return min(most, STOPPING_MS)
        left = self._durations.of(RunKind.of_facts(run.facts, run.tier)).left(share, elapsed)
        return min(most or NEVER, round(left))

    def pace(self, name: str, numbers: Sequence[int]) -> float:
        """The ms between two starts on a curve, when all slots or units are in use."""
        limit_name = limit_of(name)
        means = [self.spread(number).mean * self._units(number, limit_name) for number in numbers]
        limit = self.limits.get(limit_name)
        if isinstance(limit, Rate):
            return limit.interval / 1000
        width = limit.limit if limit else sum(worker.capacity for worker in self.picture.workers)
        return float(sum(means) / len(means) / max(1, width))

    def paces(self) -> dict[str, float]:
        """The ms between two starts of tasks like those that came lately, at each limit when it is full."""
        found: dict[str, list[float]] = {}
        for window in self._arriving[-1:]:
            for arriving in window.kinds:
                for name, units in arriving.kind.needs:
                    if isinstance(limit := self.limits[name], Slots):
                        pace = arriving.durations.mean * units / max(1, limit.limit)
                        found.setdefault(sized(name, units), []).append(pace)
        return {name: sum(some) / len(some) for name, some in islice(found.items(), MOST_LIMITS)}

    def _units(self, number: int, limit: str) -> int:
        """1 if it does not need the limit: then it takes a slot of a worker."""
        return dict(self._waiting[number].task.kind.needs).get(limit, 1)

    def arrivals(self, seed: int, share: Callable[[int], float]) -> Iterator[Task]:
        """Those that are expected after the snapshot; `share` draws how long each runs."""
        first = len(self.known)
        for count, (at, one) in enumerate(expected(self._arriving, self.picture.at, seed)):
            duration = round(one.durations.draw(share(count)))
            yield Task(first + count, one.kind, one.priority, one.account, at, duration)

    def _likely(self, window: Window[Arrival]) -> Window[Arriving]:
        """Without those whose limits are not there any more."""
        found = [one for arrival in window.kinds if (one := self._like(arrival))]
        return Window(window.until, found, window.every * len(window.kinds) / max(1, len(found)))

    def _like(self, arrival: Arrival) -> Arriving | None:
        if arrival not in self._like_arrivals:
            self._like_arrivals[arrival] = self._arriving_like(arrival)
        return self._like_arrivals[arrival]

    def _arriving_like(self, arrival: Arrival) -> Arriving | None:
        task_type, _, _, needed, account = arrival.run_kind
        needs = self.needs_of(needed)
        if needs is None:
            return None
        kind = self._kind(task_type, arrival.capabilities, needs, arrival.elastic)
        return Arriving(kind, arrival.priority, account, self._durations.of(arrival.run_kind))

    # Parts

    def _add_waiting(self) -> None:
        for task in self.picture.waiting:
            place, rest = task.sub[:2], task.sub[3:]
            route, _, needed = rest.partition("|")
            task_type, _, capabilities = route.partition(";")
            needs, facts = self.needs_of(needed), task.facts
            audience = self.picture.audiences.get(route)
            if needs is None or audience is None:
                continue
            of_limits = (curve for need in needs for curve in curves_of(place, *need))
            curves = [f"{place}:{audience}", *of_limits]
            kind = self._kind(task_type, capabilities, needs, bool(facts.get("elastic")), task.stands_for)
            stride = stride_of(float(facts.get("weight") or 1.0), int(facts.get("factor") or USUAL))
            self._add(
                Known(
                    place,
                    task.tag,
                    task.seq,
                    curves,
                    task.stands_for,
                    RunKind.of_facts({"type": task_type, **facts}, str(facts.get("duration") or "")),
                    task.task_id,
                ),
                kind,
                int(facts.get("priority", place[0])),
                facts.get("fair") or "",
                task.arrival,
                stride,
            )

    def _add_probes(self) -> None:
        """Behind all that wait in each place: one of each lane, and one of each limit that is waited for."""
        audiences = {audience: route for route, audience in self.picture.audiences.items()} | ANY
        for audience, route in list(audiences.items())[:MOST_AUDIENCES]:
            task_type, _, capabilities = route.partition(";")
            for priority in Priority:
                lane = f"{Place.native(priority)}:{audience}"
                self._add_probe(priority, self._kind(task_type, capabilities, ()), [lane])
        for kind in islice(self._kinds_to_probe(), MOST_LIMITS):
            for priority in Priority:
                self._add_probe(priority, kind, curves_of(Place.native(priority), *kind.needs[0]))

    def _kinds_to_probe(self) -> Iterator[Kind]:
        """Of each limit that is waited for or lacks room, and for as many units: needing nothing else."""
        found: set[str] = set()
        for kind, is_waiting in self._kinds_that_may_wait():
            for name, units in kind.needs:
                if sized(name, units) not in found and (is_waiting or not self._has_room(name, units)):
                    found.add(sized(name, units))
                    yield self._kind(kind.type, ",".join(sorted(kind.capabilities)), ((name, units),))

    def _kinds_that_may_wait(self) -> Iterator[tuple[Kind, bool]]:
        yield from ((task.task.kind, True) for task in self._waiting)
        for run in self.runs:
            if run.facts:
                needs = self.needs_of(run.needs) or ()
                yield self._kind(run.facts["type"], run.facts.get("capabilities") or "", needs), False
        for window in self._arriving[-1:]:
            yield from ((arriving.kind, False) for arriving in window.kinds)

    def _has_room(self, name: str, units: int) -> bool:
        limit = self.picture.limits.get(name, {})
        return "limit" not in limit or int(limit.get("used", 0)) + units <= int(limit["limit"])

    def _add_probe(self, priority: Priority, kind: Kind, curves: Sequence[str]) -> None:
        place = Place.native(priority)
        last, account = max(self._last.get(place, (0, "")), (self._virtual(place), ""))
        seq = int(self.picture.meta.get("seq", 0)) + 1 + len(self.known)
        known = Known(place, last, seq, curves, 0, RunKind(""), "")
        self._add(known, kind, priority, account, self.picture.at, 1)

    @cached_property
    def _last(self) -> Mapping[str, tuple[int, str]]:
        """The greatest tag of each place, and whose it is: a probe behind it has to be promoted as late."""
        last: dict[str, tuple[int, str]] = {}
        for waiting in self._waiting:
            last[waiting.place] = max((waiting.tag, waiting.task.account), last.get(waiting.place, (0, "")))
        return last

    def _add(self, known: Known, kind: Kind, base: int, account: str, arrival: int, stride: int) -> None:
        task = Task(len(self.known), kind, base, account, arrival, is_probe=not known.stands_for)
        self.known.append(known)
        self._waiting.append(Waiting(task, Place(known.place), known.tag, known.seq, stride))

    def _running(self, number: int, run: Run, workers: set[str]) -> Running:
        tiers = [tier.name for tier in self.policy.tiers]
        return Running(
            left=0,
            needs=self.needs_of(run.needs) or (),
            worker=run.worker if run.worker in workers else None,
            base=int(run.facts.get("priority", Priority.MEDIUM)),
            account=run.facts.get("fair") or "",
            started=run.started,
            tier=tiers.index(run.tier) if run.facts.get("elastic") and run.tier in tiers else None,
            number=number,
        )

    def needs_of(self, text: str) -> Needs | None:
        """None: one of the limits is not there any more."""
        needs: dict[str, int] = {}
        for need in filter(None, text.split(",")):
            name, _, units = need.rpartition("=")
            needs[name] = needs.get(name, 0) + int(units)
        return tuple(sorted(needs.items())) if needs.keys() <= self.limits.keys() else None

    def _kind(
        self, task_type: str, capabilities: str, needs: Needs, elastic: bool = False, stands_for: int = 1
    ) -> Kind:
        """A task that represents others may take longer than its tier allows."""
        of_tiers = [name for name, _ in needs if name.startswith(TIER)]
        tier = len(of_tiers) - 1 if of_tiers and stands_for == 1 else None
        key = task_type, capabilities, needs, elastic, tier
        if key not in self._kinds:
            served = frozenset(filter(None, capabilities.split(",")))
            self._kinds[key] = Kind(task_type, served, needs, tier, elastic and tier is not None)
        return self._kinds[key]

    def _ledger(self, place: Place) -> Ledger:
        return Ledger(self._virtual(place), dict(self.picture.fins.get(place, {})))

    def _virtual(self, place: Place) -> int:
        return int(float(self.picture.meta.get(f"virtual_{place}", 0)))


def curves_of(place: str, limit: str, units: int) -> list[str]:
    """That of all that need the limit, and unless it is one unit that of those that need about as many."""
    return [f"{place}@{name}" for name in dict.fromkeys((limit, sized(limit, units)))]


def limit_of(curve: str) -> str:
    """Empty: it is the curve of a lane."""
    return curve.partition("@")[2].partition("#")[0]


def _worker(worker_id: str, profile: str, capacity: int, reserve: int) -> Worker:
    types, _, capabilities = profile.partition(";")
    return Worker(
        worker_id,
        frozenset(filter(None, capabilities.split(","))),
        None if types == "*" else frozenset(filter(None, types.split(","))),
        capacity,
        reserve,
    )


def _limit(known: Mapping[str, str]) -> Limit:
    paused = "paused" in known
    if known["kind"] == "rate":  # the interval is in microseconds
        return Rate(
            1000, int(known["interval"]), int(known["burst"]), int(float(known.get("tat", 0))), paused
        )
    return Slots(int(known["limit"]), paused)


def _policy(stored: Mapping[str, Any]) -> Policy:
    numbers = {field.name for field in fields(Policy)} - {"tiers"}
    tiers = tuple(
        Tier(name, int(ms), None if sign else int(share), int(share) if sign else 100)
        for name, ms, share, sign in WRITTEN_TIER.findall(stored.get("tiers") or "")
    )
    return Policy(**{name: int(value) for name, value in stored.items() if name in numbers}, tiers=tiers)

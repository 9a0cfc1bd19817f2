"""What people ask of the store: how much waits, and why one task does."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead.priority import Priority
from fairlead.states import State
from fairlead.store.connection import Answer, text


@dataclass(frozen=True, slots=True)
class Depth:
    depth: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True)
class WorkerStats:
    worker_id: str
    state: str  # active, draining, dead
    capacity: int
    running: int
    seen: int
    reserve: int = 0
    task_types: tuple[str, ...] | None = None  # None: any
    capabilities: tuple[str, ...] = ()
    name: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Stats:
    queues: dict[str, Depth]
    workers: list[WorkerStats]
    delayed: int
    ended_last_minute: Counter[str]
    lost_events: int
    missing_records: int = 0  # queued tasks whose records were deleted by somebody else

    @property
    def total_capacity(self) -> int:
        return sum(worker.capacity for worker in self.workers if worker.state == "active")

    @property
    def used_capacity(self) -> int:
        return sum(worker.running for worker in self.workers)


@dataclass(frozen=True, slots=True)
class Blocker:
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: int | None = None  # ms, of a rate limit


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task waits. `sentence` says it in words."""

    task_id: str
    state: State
    effective_priority: Priority | None = None
    promoted: bool = False
    position: int | None = None  # among those of the same place
    ahead: dict[str, int] = field(default_factory=dict)  # by better priority
    promotes_at: int | None = None
    blocked_by: tuple[Blocker, ...] = ()
    held_for: str | None = None  # the task whose hold keeps the units back
    type_paused: bool = False
    no_capable_worker: bool = False
    reserve: bool = False  # the only free slots are reserved for base priority high
    run_at: int | None = None

    @property
    def queue_position(self) -> int | None:
        """With those of better priorities; None when it does not stand in a queue."""
        return None if self.position is None else self.position + sum(self.ahead.values())

    @property
    def sentence(self) -> str:
        if self.state is not State.QUEUED:
            return f"It is {self.state}."
        if self.type_paused:
            return "Its task type is paused."
        if self.no_capable_worker:
            return "No live worker has the capabilities and task types it needs."
        if self.blocked_by:
            return "It waits for " + ", ".join(_blocker_words(blocker) for blocker in self.blocked_by) + "."
        if self.reserve:
            return "The free slots are reserved for high priority."
        before = (self.queue_position or 1) - 1
        return f"It waits for a free worker; {before} go first." if before else "It is next."


def _blocker_words(blocker: Blocker) -> str:
    if blocker.paused:
        return f"limit {blocker.limit} (paused)"
    return f"limit {blocker.limit} (needs {blocker.needs}, {blocker.used} of {blocker.of} used)"


def read_stats(answer: Answer) -> Stats:
    _, now, places, workers, ended, delayed, lost, missing = answer
    depth: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for place, count, arrival in places:
        word = Priority(int(place[:1])).word
        depth[word] += count
        if arrival:
            oldest[word] = min(oldest.get(word, int(now)), int(float(arrival)))
    counts: Counter[str] = Counter()
    for state, count in ended:
        counts[text(state)] += int(count)
    return Stats(
        queues={
            p.word: Depth(depth[p.word], (int(now) - oldest.get(p.word, int(now))) / 1000) for p in Priority
        },
        workers=[_worker_stats(row) for row in workers],
        delayed=delayed,
        ended_last_minute=counts,
        lost_events=int(lost),
        missing_records=int(missing),
    )


def _worker_stats(row: list[Any]) -> WorkerStats:
    running = row[1]
    worker, _, state, seen, capacity, reserve, types, capabilities, name, version = map(text, row)
    return WorkerStats(
        worker_id=worker,
        state=state,
        capacity=int(capacity),
        running=running,
        seen=int(seen),
        reserve=int(reserve),
        task_types=None if types == "*" else _listed(types),
        capabilities=_listed(capabilities),
        name=name,
        version=version,
    )


def _listed(names: str) -> tuple[str, ...]:
    """`,a,b,` as the store writes it."""
    return tuple(name for name in names.split(",") if name)


def read_explanation(task_id: str, answer: Answer) -> Explanation:
    facts = msgspec.json.decode(answer[2])
    if facts["state"] != State.QUEUED:
        return Explanation(task_id, State(facts["state"]), run_at=facts.get("run_at"))
    blocked = facts["blocked_by"] or []  # an empty Lua table is an object in JSON
    return Explanation(
        task_id,
        State.QUEUED,
        effective_priority=Priority(int(facts["place"][0])),
        promoted=facts["place"][1] == "p",
        position=facts["position"],
        ahead={Priority(int(place)).word: count for place, count in facts["ahead"].items()},
        promotes_at=facts.get("promotes_at"),
        blocked_by=tuple(Blocker(**blocker) for blocker in blocked),
        held_for=facts.get("held_for"),
        type_paused=facts["type_paused"],
        no_capable_worker=facts["capable_workers"] == 0,
        reserve=facts["only_reserve_free"],
    )

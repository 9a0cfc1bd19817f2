"""What people ask of the store: how much waits, and why one task does."""

from collections import Counter
from dataclasses import dataclass, field

from fairlead.checks import check_short
from fairlead.priority import Priority
from fairlead.states import State
from fairlead.store.connection import Answer
from fairlead.tenants import cut_name


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
    held: int | None = (
        None  # of one tenant: its tasks that workers have; the workers themselves are not its own
    )

    @property
    def total_capacity(self) -> int:
        return sum(worker.capacity for worker in self.workers if worker.state == "active")

    @property
    def used_capacity(self) -> int:
        return sum(worker.running for worker in self.workers) if self.held is None else self.held


@dataclass(frozen=True, slots=True)
class Blocker:
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: int | None = None  # ms, of a rate limit
    tenant: str | None = None  # whose own limit it is; None: the operator's


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


def of_tenant(tenant: str | None) -> str:
    """Whose numbers are asked for, as the act takes it: of one tenant, which has no workers, or of all."""
    check_short("tenant", tenant)
    return tenant or ""


def read_stats(answer: Answer) -> Stats:
    now: int = answer["now"]
    depth: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for row in answer["places"]:
        word = Priority(int(row["place"][0])).word
        depth[word] += row["depth"]
        oldest[word] = min(oldest.get(word, now), row.get("oldest", now))
    return Stats(
        queues={p.word: Depth(depth[p.word], (now - oldest[p.word]) / 1000) for p in Priority},
        workers=[_worker_stats(row) for row in answer["workers"]],
        delayed=answer["delayed"],
        ended_last_minute=Counter(answer["ended"] or {}),  # an empty Lua table is packed as a list
        lost_events=answer["lost_events"],
        missing_records=answer["missing_records"],
        held=answer.get("held"),
    )


def _worker_stats(row: Answer) -> WorkerStats:
    types = row.get("types", "*")
    return WorkerStats(
        worker_id=row["id"],
        state=row["state"],
        capacity=row["capacity"],
        running=row["running"],
        seen=row["seen"],
        reserve=row["reserve"],
        task_types=None if types == "*" else _listed(types),
        capabilities=_listed(row.get("capabilities", "")),
        name=row.get("name", ""),
        version=row.get("version", ""),
    )


def _listed(names: str) -> tuple[str, ...]:
    """`,a,b,` as the store writes it."""
    return tuple(name for name in names.split(",") if name)


def read_explanation(task_id: str, answer: Answer) -> Explanation:
    if answer["state"] != State.QUEUED:
        return Explanation(task_id, State(answer["state"]), run_at=answer.get("run_at"))
    ahead = answer["ahead"] or {}  # an empty Lua table is packed as a list
    return Explanation(
        task_id,
        State.QUEUED,
        effective_priority=Priority(int(answer["place"][0])),
        promoted=answer["place"][1] == "p",
        position=answer["position"],
        ahead={Priority(int(place)).word: count for place, count in ahead.items()},
        promotes_at=answer.get("promotes_at"),
        blocked_by=tuple(map(_blocker, answer["blocked_by"])),
        held_for=answer.get("held_for"),
        type_paused=answer["type_paused"],
        no_capable_worker=answer["capable_workers"] == 0,
        reserve=answer["only_reserve_free"],
    )


def _blocker(row: Answer) -> Blocker:
    tenant, name = cut_name(row["limit"])
    return Blocker(**{**row, "limit": name, "tenant": tenant})

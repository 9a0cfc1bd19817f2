"""What people ask of the store: how much waits, and why one task does."""

from collections import Counter
from collections.abc import Iterable

from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.model.stats import Blocker, Depth, Explanation, Stats
from fairlead.model.tenants import cut_name
from fairlead.model.worker import WorkerStats
from fairlead.store.connection import Answer


def read_stats(answer: Answer, workers: Iterable[WorkerStats]) -> Stats:
    now: int = answer["now"]
    depth: Counter[str] = Counter()
    oldest: dict[str, int] = {}
    for row in answer["places"]:
        word = Priority(int(row["place"][0])).word
        depth[word] += row["depth"]
        oldest[word] = min(oldest.get(word, now), row.get("oldest", now))
    return Stats(
        queues={p.word: Depth(depth[p.word], (now - oldest[p.word]) / 1000) for p in Priority},
        workers=list(workers),
        delayed=answer["delayed"],
        ended_last_minute=Counter(answer["ended"] or {}),  # an empty Lua table is packed as a list
        lost_events=answer["lost_events"],
        missing_records=answer["missing_records"],
        held=answer.get("held"),
    )


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

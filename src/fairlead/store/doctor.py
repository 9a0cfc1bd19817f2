"""The doctor: looks at a namespace and names every invariant that does not hold. It changes nothing.

I1 to I10 are the invariants of tasks, leases and limits, S1 to S10 those of the scheduler. W1: an act broke
half-way. K1: a key that is not Fairlead's, or of the wrong type. K2: a record that runs out too early, or
never. K3: a declared task type that no submit can use. K4: an API key that is not listed by when it ends.
K5: a limit that is not listed as it is shared. C1: a wrong count of what waits. R1: what has ended is not
listed or counted rightly. J1 and J2: a job and its steps do not agree. A1: the audit was edited.
"""

from collections.abc import Callable, Iterable, Iterator

from fairlead.store import (
    doctor_access,
    doctor_counts,
    doctor_jobs,
    doctor_limits,
    doctor_places,
    doctor_retention,
    doctor_tasks,
    doctor_waiters,
    doctor_workers,
)
from fairlead.store.breach import Breach
from fairlead.store.connection import Connection
from fairlead.store.keys import LIVE
from fairlead.store.snapshot import Snapshot, number, split, take

__all__ = ["Breach", "diagnose", "examine"]

LOOK_WITHIN = 120.0  # seconds; a large namespace is read in pieces
GONE_AT_REST = frozenset(key.name for key in LIVE) - {"listed", "idle", "idlers"}


async def examine(
    connection: Connection, now_ms: int | None = None, *, twice: bool = True, lowered: Iterable[str] = ()
) -> list[Breach]:
    """What is wrong. `twice`: only what a second look sees too (a third, where the picture may be torn).

    `now_ms`: the time, if it is not the server's. `lowered`: limits that may have more in use than allowed.
    """
    seen = await connection.guard(take(connection, now_ms, lowered), LOOK_WITHIN)
    breaches = diagnose(seen)
    looks = 0 if not twice else 2 if seen.torn else 1
    while breaches and looks:
        seen = await connection.guard(take(connection, now_ms, lowered, before=seen), LOOK_WITHIN)
        breaches = [breach for breach in diagnose(seen) if any(map(breach.same_as, breaches))]
        looks -= 1
    return breaches


def diagnose(snapshot: Snapshot) -> list[Breach]:
    """Every breach in one picture, in the order of the invariants."""
    if (left := snapshot.unfinished) is not None:
        return [
            Breach(
                "W1", f"an act broke half-way; its remaining {left} writes are made by the next act", "act"
            )
        ]
    breaches = list(known_keys(snapshot))
    if "schema" in snapshot.meta:
        breaches += [breach for check in CHECKS for breach in check(snapshot)]
    return breaches


def known_keys(s: Snapshot) -> Iterator[Breach]:
    """K1: only Fairlead's keys, each of its type."""
    for key, problem in s.strange.items():
        yield Breach("K1", f"key {key}: {problem}", key)
    if s.present and "schema" not in s.meta:
        yield Breach("K1", f"key meta has no schema, but there are {len(s.present)} keys", "meta")


def nothing_left_at_rest(s: Snapshot) -> Iterator[Breach]:
    """I10: without work nothing is used and no index is left."""
    if s.torn:  # work may be in what was read at another instant
        return
    waits = any(t.get("state") in ("queued", "delayed") for t in s.tasks.values())
    if waits or s.leased or s.bare_leases or s.waiters:
        return
    for name, limit in s.limits.items():
        if used := number(limit, "used"):
            yield Breach("I10", f"nothing waits or runs, but limit {name} has {used} units in use", name)
    for key in s.present:
        if split(key)[0] in GONE_AT_REST:
            yield Breach("I10", f"nothing waits or runs, but key {key} is there", key)


CHECKS: tuple[Callable[[Snapshot], Iterator[Breach]], ...] = (
    doctor_tasks.one_place,
    doctor_tasks.none_lost,
    doctor_tasks.dead_are_listed,
    doctor_tasks.dead_are_listed_by_tenant,
    doctor_tasks.one_lease,
    doctor_limits.use_is_held,
    doctor_limits.all_units_or_none,
    doctor_tasks.fences_rise,
    doctor_tasks.ends_once,
    doctor_tasks.newest_fence_wins,
    doctor_tasks.keys_name_one_task,
    doctor_tasks.events_are_a_path,
    nothing_left_at_rest,
    doctor_limits.within_limits,
    doctor_limits.refills_are_near,
    doctor_places.homes,
    doctor_places.stands,
    doctor_places.lots,
    doctor_places.alarm,
    doctor_workers.idle_workers,
    doctor_workers.profiles,
    doctor_workers.nobody_idles,
    doctor_waiters.lines,
    doctor_waiters.counts,
    doctor_waiters.turns,
    doctor_waiters.revisits,
    doctor_limits.within_capacity,
    doctor_counts.places,
    doctor_counts.others,
    doctor_counts.what_waits,
    doctor_counts.groups,
    doctor_counts.of_tenants,
    doctor_places.patience,
    doctor_places.holds,
    doctor_tasks.records_run_out,
    doctor_retention.finished_are_listed,
    doctor_retention.failed_jobs_are_listed,
    doctor_retention.finished_are_counted,
    doctor_limits.declarations,
    doctor_limits.shared_with_tenants,
    doctor_jobs.jobs_go_on,
    doctor_jobs.results_are_kept,
    doctor_access.keys_are_listed,
    doctor_access.audit_is_a_chain,
)

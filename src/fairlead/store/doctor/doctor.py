"""The doctor: looks at a namespace and names every invariant that does not hold. It changes nothing.

I1 to I10 are the invariants of tasks, leases and limits, S1 to S10 those of the scheduler. W1: an act broke
half-way. K1: a key that is not Fairlead's, or of the wrong type. K2: a record that runs out too early, or
never. K3: a declared task type that no submit can use. K4: an API key that is not listed by when it ends.
K5: a limit that is not listed as it is shared. K6: a value that cannot be read. K7: what code declares is not
listed by when. C1: a wrong count of what waits. R1: what has ended is not listed or counted rightly. L1: a
task or a job is not in the list of all. J1 to J4: a job and its steps do not agree. A1: the audit was edited.
"""

from collections.abc import Callable, Iterable, Iterator

from fairlead.checks import LATEST
from fairlead.store.access.audit import problems
from fairlead.store.connection import Connection
from fairlead.store.doctor import (
    counts,
    jobs,
    limits,
    listing,
    places,
    retention,
    tasks,
    tiers,
    values,
    waiters,
    workers,
)
from fairlead.store.doctor.snapshot import Breach, Fields, Snapshot, number, split, take
from fairlead.store.keys import LIVE

__all__ = ["Breach", "diagnose", "examine"]

LOOK_WITHIN = 120.0  # seconds; a large namespace is read in pieces
GONE_AT_REST = frozenset(key.name for key in LIVE) - {"listed", "capacity", "idle", "idlers"}


async def examine(
    connection: Connection, now_ms: int | None = None, *, twice: bool = True, lowered: Iterable[str] = ()
) -> list[Breach]:
    """What is wrong. `twice`: only what a second look sees too (a third, if the snapshot may be torn).

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
    """Every breach in one snapshot, in the order of the invariants."""
    breaches = list(values.readable(snapshot))
    if (left := snapshot.unfinished) is not None:
        sentence = f"an act broke half-way; its remaining {left} writes are made by the next act"
        breaches.append(Breach("W1", sentence, "act"))
    else:
        breaches += known_keys(snapshot)
        if "schema" in snapshot.meta:
            breaches += [breach for check in CHECKS for breach in check(snapshot)]
    return [breach.printable() for breach in breaches]


def known_keys(s: Snapshot) -> Iterator[Breach]:
    """K1: only Fairlead's keys, each of its type."""
    for key, problem in s.strange.items():
        yield Breach("K1", f"key {key}: {problem}", key)
    if s.present and "schema" not in s.meta:
        yield Breach("K1", f"key meta has no schema, but there are {len(s.present)} keys", "meta")


def nothing_left_at_rest(s: Snapshot) -> Iterator[Breach]:
    """I10: without work nothing is used and no index is left."""
    if s.torn:  # there may be work in what was read at another instant
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


def keys_are_listed(s: Snapshot) -> Iterator[Breach]:
    """K4: the list of API keys and their records know the same keys and ends."""
    listed, records = s.zset("keys"), s.hashes.get("key", {})
    for key, record in records.items():
        end, right = listed.get(key), _end(record)
        if end != right:
            at = "does not have it" if end is None else f"has it with {end:.0f}"
            yield Breach("K4", f"API key {key} ends at {right}, but the list of keys {at}", key)
    for key in listed.keys() - records.keys():
        yield Breach("K4", f"the list of keys has {key}, which has no record", key)


def _end(record: Fields) -> int:
    return min(number(record, name) if name in record else LATEST for name in ("expires", "revoked"))


def audit_is_a_chain(s: Snapshot) -> Iterator[Breach]:
    """A1: every entry of the audit names the one before it, and all that were written are there."""
    written = number(s.meta, "audited")
    for problem in problems(s.audit, written, written):
        yield Breach("A1", f"audit: {problem}", problem)


CHECKS: tuple[Callable[[Snapshot], Iterator[Breach]], ...] = (
    tasks.one_place,
    tasks.none_lost,
    tasks.dead_are_listed,
    tasks.one_lease,
    limits.use_is_held,
    limits.all_units_or_none,
    tasks.fences_rise,
    tasks.ends_once,
    tasks.newest_fence_wins,
    tasks.keys_name_one_task,
    tasks.events_are_a_path,
    nothing_left_at_rest,
    limits.within_limits,
    limits.refills_are_near,
    places.positions,
    places.indexes,
    places.lots,
    places.alarm,
    tiers.capacity,
    tiers.elastic_runs,
    tiers.sessions,
    tiers.relief,
    workers.idle_workers,
    workers.profiles,
    workers.nobody_idles,
    waiters.lines,
    waiters.counts,
    waiters.turns,
    waiters.revisits,
    limits.within_capacity,
    counts.places,
    counts.others,
    counts.what_waits,
    counts.groups,
    counts.of_tenants,
    places.patience,
    places.holds,
    tasks.records_run_out,
    retention.finished_are_listed,
    retention.failed_jobs_are_listed,
    retention.finished_are_counted,
    listing.all_are_listed,
    limits.declarations,
    limits.shared_with_tenants,
    limits.declared_by_code,
    jobs.jobs_go_on,
    jobs.results_are_kept,
    jobs.steps_are_known,
    jobs.failed_steps_are_current,
    keys_are_listed,
    audit_is_a_chain,
)
